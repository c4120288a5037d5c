//! Hashes of registered series, for gateways that start.
//!
//! `lanes.series_hashes` contains the hashes of all series up to its greatest `last_id`, where
//! [`add`] continues. A gateway loads the hashes instead of label sets, and reads only the label
//! sets of later series. If the table is empty or behind, the gateway reads more label sets.
//!
//! Each row ends where a row of `lanes.series_runs` ends. So a gateway that stops after any row
//! continues with whole rows of `lanes.series_runs`.

use lanes_labels::{HashBlock, SeriesHasher};
use pgrx::pg_sys::BuiltinOid::{BYTEAOID, INT4OID, INT8OID};
use pgrx::prelude::*;

use super::maintain::{RUN_IDS, SERIES, next_series};
use super::packed;
use crate::error;
use crate::pg::server;
use crate::pg::statement::{OwnedArgument, Statement};
use crate::pg::text;

static LAST: Statement = Statement::changing(
    c"SELECT last_id, seed FROM lanes.series_hashes ORDER BY last_id DESC LIMIT 1",
    &[],
);
/// The statement that reads the last block.
static BLOCK: Statement = Statement::changing(
    c"SELECT hashes FROM lanes.series_hashes WHERE last_id = $1",
    &[INT4OID],
);
static DELETE: Statement = Statement::changing(
    c"DELETE FROM lanes.series_hashes WHERE last_id = $1",
    &[INT4OID],
);
static PUT: Statement = Statement::changing(
    c"INSERT INTO lanes.series_hashes (last_id, seed, hashes) VALUES ($1, $2, $3)",
    &[INT4OID, INT8OID, BYTEAOID],
);

/// Adds the hashes of series that have none. The caller holds the label index's lock.
pub fn add() {
    let mut last: Option<(i32, i64)> = None;
    LAST.each_row(&[], |row| last = row.get(1).zip(row.get(2)));
    let (mut after, seed) = last.unwrap_or_else(|| (0, random()));
    let Some(mut first) = next_series(after) else {
        return;
    };
    let mut block = HashBlock::new(seed as u64);
    if last.is_some()
        && let Some(before) = open_block(after, seed as u64)
    {
        DELETE.run(&[pg_sys::Datum::from(after)]);
        block = before;
    }
    loop {
        let range = [first, first.saturating_add(RUN_IDS - 1)];
        SERIES.each_row(&range.map(pg_sys::Datum::from), |row| {
            let columns = (row.get::<i32>(1), row.get::<&[u8]>(2), row.get::<&[u8]>(3));
            let (Some(first), Some(metric), Some(labels)) = columns else {
                return;
            };
            if block.is_full() {
                put(&block, seed);
                block = HashBlock::new(seed as u64);
            }
            let metric = text::utf8_text(metric);
            let hasher = SeriesHasher::new(&String::from_utf8_lossy(&metric), seed as u64);
            let mut id = first as u32;
            packed::unpack(labels, |labels| {
                block.push(id, hasher.hash(labels));
                id += 1;
            });
            after = id as i32 - 1;
            pgrx::check_for_interrupts!();
        });
        match next_series(after) {
            Some(next) => first = next,
            None => break,
        }
    }
    put(&block, seed);
}

/// The last block, if series can be added to it. A damaged block is left unchanged: gateways read label sets from there
/// on.
fn open_block(last_id: i32, seed: u64) -> Option<HashBlock> {
    let mut block = None;
    BLOCK.each_row(&[pg_sys::Datum::from(last_id)], |row| {
        let bytes = row.get::<&[u8]>(1).unwrap_or_default();
        block = HashBlock::read(bytes, seed).ok();
    });
    block.filter(|block| !block.is_full())
}

fn put(block: &HashBlock, seed: i64) {
    if let (Some((_, last)), Some(bytes)) = (block.ids(), OwnedArgument::of(block.write())) {
        PUT.run(&[
            pg_sys::Datum::from(last as i32),
            pg_sys::Datum::from(seed),
            bytes.datum(),
        ]);
    }
}

fn random() -> i64 {
    let random = server::random_u64().unwrap_or_else(|| {
        error::raise(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            "could not generate random bytes for the hashes of series",
            "The log of the operating system may contain the cause.",
        )
    });
    random as i64
}
