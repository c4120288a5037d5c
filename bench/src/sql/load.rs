//! The tables in PostgreSQL: schema `on_lanes` and schema `on_heap`, the same rows in the same order, by binary COPY.
//!
//! Heap tables have the indexes that serve the queries best, covering ones where that avoids the table, and are vacuumed, so that
//! index-only scans need no look at it.

use crate::sql::generate::{Data, service, symbol};
use lanes_tests::error::{Error, Result};
use postgres::Client;
use std::io::Write;

/// The schema of the lanes tables.
pub const ON_LANES: &str = "on_lanes";
/// The schema of the heap tables.
pub const ON_HEAP: &str = "on_heap";

const POSTGRES_EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;
/// How many bytes of COPY are gathered before they are sent.
const CHUNK_BYTES: usize = 1 << 18;

const HEAP_INDEXES: &str = "
    CREATE INDEX ON trades (sym, ts) INCLUDE (price, size);
    CREATE INDEX ON trades (ts) INCLUDE (price);
    CREATE INDEX ON trades USING brin (ts);
    CREATE INDEX ON trades (price) INCLUDE (size);
    CREATE INDEX ON quotes (sym, ts) INCLUDE (bid);
    CREATE INDEX ON events (duration);
    CREATE INDEX ON events (ts) WHERE is_error;";

/// Makes the tables in one schema and fills them.
pub fn load(client: &mut Client, data: &Data, schema: &str, access_method: &str) -> Result<()> {
    client.batch_execute(&format!(
        "CREATE SCHEMA {schema}; SET search_path = {schema}, public; SET default_table_access_method = {access_method};
         CREATE TABLE trades (ts timestamptz NOT NULL, sym text NOT NULL, price float8 NOT NULL, size int4 NOT NULL);
         CREATE TABLE quotes (ts timestamptz NOT NULL, sym text NOT NULL, bid float8 NOT NULL, ask float8 NOT NULL);
         CREATE TABLE events (ts timestamptz NOT NULL, duration real NOT NULL, is_error boolean NOT NULL, service text NOT NULL);
         CREATE TABLE empty (x int4)"
    ))?;
    let (trades, quotes, events) = (&data.trades, &data.quotes, &data.events);
    copy(client, "trades", trades.ts.len(), |row, fields| {
        fields.time(trades.ts[row]);
        fields.bytes(symbol(trades.sym[row]).as_bytes());
        fields.bytes(&trades.price[row].to_be_bytes());
        fields.bytes(&trades.size[row].to_be_bytes());
    })?;
    copy(client, "quotes", quotes.ts.len(), |row, fields| {
        fields.time(quotes.ts[row]);
        fields.bytes(symbol(quotes.sym[row]).as_bytes());
        fields.bytes(&quotes.bid[row].to_be_bytes());
        fields.bytes(&quotes.ask[row].to_be_bytes());
    })?;
    copy(client, "events", events.ts.len(), |row, fields| {
        fields.time(events.ts[row]);
        fields.bytes(&events.duration[row].to_be_bytes());
        fields.bytes(&[u8::from(events.is_error[row])]);
        fields.bytes(service(events.service[row]).as_bytes());
    })?;
    if schema == ON_HEAP {
        client.batch_execute(HEAP_INDEXES)?;
    }
    for table in ["trades", "quotes", "events", "empty"] {
        client.batch_execute(&format!("VACUUM ANALYZE {table}"))?;
    }
    Ok(())
}

/// Copies rows of four columns.
fn copy(
    client: &mut Client,
    table: &str,
    rows: usize,
    write_row: impl Fn(usize, &mut Fields),
) -> Result<()> {
    const COLUMNS: i16 = 4;
    let broken = |source| Error::Other(format!("COPY into {table}: {source}"));
    let mut copy = client.copy_in(&format!("COPY {table} FROM STDIN (FORMAT binary)"))?;
    let mut fields = Fields(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec());
    for row in 0..rows {
        fields.0.extend_from_slice(&COLUMNS.to_be_bytes());
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
            "COPY into {table} took {written} rows of {rows}"
        ))),
    }
}

/// Fields of a row in COPY's binary format: length, then bytes.
struct Fields(Vec<u8>);

impl Fields {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0
            .extend_from_slice(&(bytes.len() as i32).to_be_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn time(&mut self, microseconds: i64) {
        self.bytes(&(microseconds - POSTGRES_EPOCH_MICROSECONDS).to_be_bytes());
    }
}
