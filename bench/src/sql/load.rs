//! The tables in PostgreSQL: schemas `on_lanes` and `on_heap` with the same rows in the same order,
//! loaded by binary COPY.
//!
//! Heap tables have the indexes that serve the queries best, covering ones where that avoids
//! reading the table. They are vacuumed, so that index-only scans need not visit the table.

use crate::sql::copy::copy;
use crate::sql::generate::{Data, service, symbol};
use lanes_support::error::Result;
use postgres::Client;

/// The schema of the lanes tables.
pub const ON_LANES: &str = "on_lanes";
/// The schema of the heap tables.
pub const ON_HEAP: &str = "on_heap";

const HEAP_INDEXES: &str = "
    CREATE INDEX ON trades (sym, ts) INCLUDE (price, size);
    CREATE INDEX ON trades (ts) INCLUDE (price);
    CREATE INDEX ON trades USING brin (ts);
    CREATE INDEX ON trades (price) INCLUDE (size);
    CREATE INDEX ON quotes (sym, ts) INCLUDE (bid);
    CREATE INDEX ON events (duration);
    CREATE INDEX ON events (ts) WHERE is_error;";

/// Creates the tables of one schema and fills them.
pub fn load(client: &mut Client, data: &Data, schema: &str, access_method: &str) -> Result<()> {
    client.batch_execute(&format!(
        "CREATE SCHEMA {schema}; SET search_path = {schema}, public; SET default_table_access_method = {access_method};
         CREATE TABLE trades (ts timestamptz NOT NULL, sym text NOT NULL, price float8 NOT NULL, size int4 NOT NULL);
         CREATE TABLE quotes (ts timestamptz NOT NULL, sym text NOT NULL, bid float8 NOT NULL, ask float8 NOT NULL);
         CREATE TABLE events (ts timestamptz NOT NULL, duration real NOT NULL, is_error boolean NOT NULL, service text NOT NULL);
         CREATE TABLE empty (x int4)"
    ))?;
    let (trades, quotes, events) = (&data.trades, &data.quotes, &data.events);
    copy(client, "trades", 4, trades.ts.len(), |row, fields| {
        fields.time(trades.ts[row]);
        fields.bytes(symbol(trades.sym[row]).as_bytes());
        fields.bytes(&trades.price[row].to_be_bytes());
        fields.bytes(&trades.size[row].to_be_bytes());
    })?;
    copy(client, "quotes", 4, quotes.ts.len(), |row, fields| {
        fields.time(quotes.ts[row]);
        fields.bytes(symbol(quotes.sym[row]).as_bytes());
        fields.bytes(&quotes.bid[row].to_be_bytes());
        fields.bytes(&quotes.ask[row].to_be_bytes());
    })?;
    copy(client, "events", 4, events.ts.len(), |row, fields| {
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
