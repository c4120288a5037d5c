//! A table of samples with known values: loaded by `lanes.append` in the order of scrapes, and read
//! by series. Each answer is verified.

use crate::peers::http::now_milliseconds;
use lanes_support::error::{Error, Result};
use lanes_wire::{ColumnSource, ValuesSource, encode};
use postgres::{Client, Statement};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The table's name.
pub const NAME: &str = "sample_table";
/// The least number of rows of an append, which contains whole scrapes of a part of the series.
const APPEND_ROWS: usize = 1 << 17;

/// The content of the table: a sample of each series at each step.
#[derive(Debug, Clone, Copy)]
pub struct SampleTable {
    series: usize,
    steps: usize,
    /// The microseconds between steps.
    interval: i64,
    /// The time of the first step, in microseconds since 1970.
    start: i64,
}

impl SampleTable {
    /// Describes a table of `series` series with `steps` samples each. The last samples are an hour
    /// old.
    pub fn new(series: usize, steps: usize, interval: Duration) -> SampleTable {
        const AGO_MILLISECONDS: i64 = 3_600_000;
        let interval = interval.as_micros() as i64;
        let end = (now_milliseconds() - AGO_MILLISECONDS) * 1000;
        SampleTable {
            series,
            steps,
            interval,
            start: end - interval * steps as i64,
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.series * self.steps
    }

    fn time(&self, step: usize) -> i64 {
        self.start + self.interval * step as i64
    }

    /// Returns a sample's value. A third of the series are constant counters, a third are growing
    /// counters, and a third are gauges with two decimals.
    fn value(series: usize, step: usize) -> f64 {
        let mixed = ((series as u64) << 32) | step as u64;
        let random = (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64;
        match series % 3 {
            0 => (series % 1000) as f64,
            1 => (series * 100 + 8 * step * (1 + series % 50)) as f64 + (random % 8.0).floor(),
            _ => (series % 100) as f64 + (random % 400.0).floor() / 100.0,
        }
    }

    /// Creates the table and fills it step by step, and within a step series by series.
    ///
    /// # Errors
    /// PostgreSQL fails.
    pub fn load(&self, client: &mut Client) -> Result<()> {
        client.batch_execute(&format!(
            "CREATE TABLE {NAME} (ts timestamptz NOT NULL, series int4 NOT NULL, value float8 NOT NULL)
             USING lanes WITH (order_by = 'series, ts')"
        ))?;
        let append = client.prepare(&format!("SELECT lanes.append('{NAME}', $1)"))?;
        let (mut times, mut ids, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let mut batch = Vec::new();
        for step in 0..self.steps {
            for series in 0..self.series {
                times.push(self.time(step));
                ids.push(series as i32);
                values.push(SampleTable::value(series, step));
            }
            if times.len() < APPEND_ROWS && step + 1 < self.steps {
                continue;
            }
            let column = |name, values| ColumnSource {
                name,
                values,
                validity: None,
            };
            let columns = [
                column("ts", ValuesSource::Timestamp(&times)),
                column("series", ValuesSource::Int32(&ids)),
                column("value", ValuesSource::Float64(&values)),
            ];
            batch.clear();
            encode(times.len(), &columns, &mut batch)
                .map_err(|error| Error::Other(format!("FlatBuffer: {error}")))?;
            client.execute(&append, &[&batch])?;
            times.clear();
            ids.clear();
            values.clear();
        }
        let rows: i64 = client
            .query_one(&format!("SELECT count(*) FROM {NAME}"), &[])?
            .get(0);
        match rows as usize == self.rows() {
            true => Ok(()),
            false => Err(Error::Other(format!(
                "{NAME} has {rows} rows of {} appended",
                self.rows()
            ))),
        }
    }

    /// Seals all rows into one part, and vacuums. An older snapshot of another transaction may keep
    /// rows from being sealed, so sealing is repeated until no row is open.
    ///
    /// # Errors
    /// PostgreSQL fails, or rows stay open.
    pub fn seal(&self, client: &mut Client) -> Result<()> {
        const ATTEMPTS_MAX: u32 = 20;
        let open = format!(
            "SELECT count(*) FROM lanes.arena_segments('{NAME}') WHERE state ~ 'open|in part' AND rows > rows_dead"
        );
        for attempt in 0..ATTEMPTS_MAX {
            std::thread::sleep(Duration::from_millis(100) * attempt);
            client.batch_execute(&format!("SELECT lanes.seal('{NAME}')"))?;
            if client.query_one(&open, &[])?.get::<_, i64>(0) == 0 {
                return Ok(client.batch_execute(&format!("VACUUM ANALYZE {NAME}"))?);
            }
        }
        Err(Error::Other(format!("rows of {NAME} stay open")))
    }

    /// Returns `count` series that are far apart.
    pub fn spread(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let (series, count) = (self.series, count.clamp(1, self.series));
        (0..count).map(move |place| place * series / count)
    }

    /// Creates a reader on this connection.
    ///
    /// # Errors
    /// PostgreSQL fails.
    pub fn reader(&self, client: Client) -> Result<Reader> {
        let mut client = client;
        let statement = client.prepare(&format!(
            "SELECT ts, value FROM {NAME} WHERE series = $1 AND ts >= $2 AND ts < $3"
        ))?;
        Ok(Reader {
            table: *self,
            client,
            statement,
        })
    }
}

/// Reads one series at a time by a prepared statement.
pub struct Reader {
    table: SampleTable,
    client: Client,
    statement: Statement,
}

impl Reader {
    /// Reads all samples of a series, and verifies them. Returns milliseconds from the query to the
    /// last row.
    ///
    /// # Errors
    /// PostgreSQL fails, or the answer is wrong.
    pub fn read(&mut self, series: usize) -> Result<f64> {
        let table = self.table;
        let time = |step| UNIX_EPOCH + Duration::from_micros(table.time(step) as u64);
        let (from, to) = (time(0), time(table.steps));
        let start = Instant::now();
        let rows = self
            .client
            .query(&self.statement, &[&(series as i32), &from, &to])?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        let mut found: Vec<(SystemTime, f64)> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        found.sort_by_key(|(time, _)| *time);
        let expected = (0..table.steps).map(|step| (time(step), SampleTable::value(series, step)));
        match found.into_iter().eq(expected) {
            true => Ok(milliseconds),
            false => Err(Error::Other(format!(
                "series {series} does not have the appended samples"
            ))),
        }
    }

    /// Runs an empty query and returns its milliseconds, which are part of every other query's
    /// time.
    ///
    /// # Errors
    /// PostgreSQL fails.
    pub fn floor(&mut self) -> Result<f64> {
        let start = Instant::now();
        self.client.query("SELECT 1", &[])?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }

    /// Returns the connection.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_series_are_far_apart_and_values_differ() {
        let table = SampleTable::new(1000, 360, Duration::from_secs(10));
        let spread: Vec<usize> = table.spread(4).collect();
        assert_eq!(spread, [0, 250, 500, 750]);
        assert_eq!(table.spread(5000).count(), 1000);
        assert_eq!(
            (table.rows(), table.time(1) - table.time(0)),
            (360_000, 10_000_000)
        );
        let of = |series| (0..3).map(move |step| SampleTable::value(series, step));
        assert!(of(3).eq([3.0; 3]) && of(1).is_sorted() && !of(2).eq(of(5)));
    }
}
