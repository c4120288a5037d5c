//! Binary COPY of rows into PostgreSQL.

use lanes_support::error::{Error, Result};
use postgres::Client;
use std::io::Write;

const POSTGRES_EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;
/// The number of bytes that are collected before they are sent.
const CHUNK_BYTES: usize = 1 << 18;

/// Copies rows of a number of columns; `write_row` writes the fields of a row.
pub fn copy(
    client: &mut Client,
    table: &str,
    columns: i16,
    rows: usize,
    write_row: impl Fn(usize, &mut Fields),
) -> Result<()> {
    let broken = |source| Error::Other(format!("COPY into {table}: {source}"));
    let mut copy = client.copy_in(&format!("COPY {table} FROM STDIN (FORMAT binary)"))?;
    let mut fields = Fields(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec());
    for row in 0..rows {
        fields.0.extend_from_slice(&columns.to_be_bytes());
        write_row(row, &mut fields);
        if fields.0.len() >= CHUNK_BYTES {
            copy.write_all(&fields.0).map_err(broken)?;
            fields.0.clear();
        }
    }
    fields.0.extend_from_slice(&(-1i16).to_be_bytes());
    copy.write_all(&fields.0).map_err(broken)?;
    match copy.finish()? {
        written if written == rows as u64 => Ok(()),
        written => Err(Error::Other(format!(
            "COPY into {table} stored {written} rows of {rows}"
        ))),
    }
}

/// The fields of a row in COPY's binary format: length, then bytes.
pub struct Fields(Vec<u8>);

impl Fields {
    /// Appends a field with these bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0
            .extend_from_slice(&(bytes.len() as i32).to_be_bytes());
        self.0.extend_from_slice(bytes);
    }

    /// Appends a time in microseconds since 1970.
    pub fn time(&mut self, microseconds: i64) {
        self.bytes(&(microseconds - POSTGRES_EPOCH_MICROSECONDS).to_be_bytes());
    }
}
