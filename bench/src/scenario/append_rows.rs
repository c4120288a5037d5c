//! The rows of the scenario `append`, in COPY's binary format and as FlatBuffer batches, created
//! before they are sent.

use lanes_support::error::{Error, Result};
use lanes_wire::{ColumnSource, ValuesSource};
use postgres::Client;
use std::io::Write;
use std::ops::Range;

/// 2000-01-01 in microseconds since 1970.
const POSTGRES_EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;
/// 2026-01-01 00:00 UTC in microseconds since 1970.
const START: i64 = 1_767_225_600_000_000;
const MICROSECONDS_BETWEEN: i64 = 1000;
const SERIES: usize = 1000;
/// COPY's signature, flags, and length of the header extension.
const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The rows of all loads.
pub struct Rows {
    count: usize,
    batches: Vec<Vec<u8>>,
    at_once: Vec<Vec<u8>>,
    by_batch: Vec<Vec<u8>>,
}

impl Rows {
    /// Creates `count` rows in batches of `batch_rows`.
    ///
    /// # Errors
    /// There are no rows, or a batch cannot hold them.
    pub fn new(count: usize, batch_rows: usize) -> Result<Rows> {
        if count == 0 || batch_rows == 0 {
            return Err(Error::Other("there are no rows to append".to_owned()));
        }
        let parts = || {
            (0..count)
                .step_by(batch_rows)
                .map(|first| first..count.min(first + batch_rows))
        };
        let batches = parts().map(batch).collect::<Result<_>>()?;
        Ok(Rows {
            count,
            batches,
            at_once: vec![copied(0..count)],
            by_batch: parts().map(copied).collect(),
        })
    }

    /// Returns the rows as FlatBuffers.
    pub fn batches(&self) -> &[Vec<u8>] {
        &self.batches
    }

    /// Returns the rows as one COPY.
    pub fn copied_at_once(&self) -> &[Vec<u8>] {
        &self.at_once
    }

    /// Returns the rows as a COPY for each batch.
    pub fn copied_by_batch(&self) -> &[Vec<u8>] {
        &self.by_batch
    }

    /// Returns the number of rows, and the sum of their series.
    pub fn count_and_sum(&self) -> (i64, i64) {
        let sum: i64 = (0..self.count).map(|row| i64::from(series(row))).sum();
        (self.count as i64, sum)
    }
}

/// The messages of one load.
pub enum Sent<'a> {
    /// A COPY, and so a transaction, for each part.
    Copy(&'a [Vec<u8>]),
    /// A call for each batch, and whether each is a transaction.
    Append(&'a [Vec<u8>], bool),
}

impl Sent<'_> {
    /// Sends the rows, and waits until they are committed.
    ///
    /// # Errors
    /// PostgreSQL fails.
    pub fn send(&self, client: &mut Client, table: &str) -> Result<()> {
        match self {
            Sent::Copy(parts) => {
                for part in *parts {
                    let mut copy =
                        client.copy_in(&format!("COPY {table} FROM STDIN (FORMAT binary)"))?;
                    copy.write_all(part)
                        .map_err(|source| Error::Other(format!("COPY into {table}: {source}")))?;
                    copy.finish()?;
                }
            }
            Sent::Append(batches, commits_each) => {
                let append = client.prepare(&format!("SELECT lanes.append('{table}', $1)"))?;
                if *commits_each {
                    for batch in *batches {
                        client.query_one(&append, &[batch])?;
                    }
                } else {
                    let mut all = client.transaction()?;
                    for batch in *batches {
                        all.query_one(&append, &[batch])?;
                    }
                    all.commit()?;
                }
            }
        }
        Ok(())
    }
}

fn time(row: usize) -> i64 {
    START + row as i64 * MICROSECONDS_BETWEEN
}

fn series(row: usize) -> i32 {
    (row % SERIES) as i32
}

fn value(row: usize) -> f64 {
    row as f64
}

fn copied(rows: Range<usize>) -> Vec<u8> {
    const COLUMNS: i16 = 3;
    let mut bytes = COPY_HEADER.to_vec();
    for row in rows {
        bytes.extend_from_slice(&COLUMNS.to_be_bytes());
        let time = time(row) - POSTGRES_EPOCH_MICROSECONDS;
        field(&time.to_be_bytes(), &mut bytes);
        field(&series(row).to_be_bytes(), &mut bytes);
        field(&value(row).to_be_bytes(), &mut bytes);
    }
    bytes.extend_from_slice(&(-1i16).to_be_bytes());
    bytes
}

fn field(value: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(&(value.len() as i32).to_be_bytes());
    into.extend_from_slice(value);
}

fn batch(rows: Range<usize>) -> Result<Vec<u8>> {
    let times: Vec<i64> = rows.clone().map(time).collect();
    let series: Vec<i32> = rows.clone().map(series).collect();
    let values: Vec<f64> = rows.clone().map(value).collect();
    let columns = [
        ("ts", ValuesSource::Timestamp(&times)),
        ("series", ValuesSource::Int32(&series)),
        ("value", ValuesSource::Float64(&values)),
    ]
    .map(|(name, values)| ColumnSource {
        name,
        values,
        validity: None,
    });
    let mut batch = Vec::new();
    lanes_wire::encode(rows.len(), &columns, &mut batch)
        .map_err(|error| Error::Other(format!("a batch of {} rows: {error}", rows.len())))?;
    Ok(batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_in_one_part() {
        const ROW_BYTES: usize = 2 + 4 + 8 + 4 + 4 + 4 + 8;
        let rows = Rows::new(10, 4).unwrap();
        let count = |part: &Vec<u8>| (part.len() - COPY_HEADER.len() - 2) / ROW_BYTES;
        let counts: Vec<usize> = rows.copied_by_batch().iter().map(count).collect();
        assert_eq!(counts, [4, 4, 2]);
        assert_eq!(count(&rows.copied_at_once()[0]), 10);
        let counts: Vec<usize> = rows
            .batches()
            .iter()
            .map(|batch| lanes_wire::BatchView::verify(batch).unwrap().rows())
            .collect();
        assert_eq!(counts, [4, 4, 2]);
        assert_eq!(rows.count_and_sum(), (10, 45));
        assert!(Rows::new(0, 4).is_err() && Rows::new(4, 0).is_err());
    }
}
