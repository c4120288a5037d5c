//! The gateway's half of recalling, as SQL functions. They work on standbys, and in read-only transactions.

use pgrx::PgSqlErrorCode;
use pgrx::datum::Interval;
use pgrx::prelude::*;

use super::key::{Key, own_database};
use super::{cold_cache, requests};
use crate::error;
use crate::gucs;

/// Waits no longer than this at a time.
const WAIT_MAX: i64 = 3_600_000_000;

/// Keys of segments of this database that backends wait for.
#[pg_extern(sql = false)]
fn recall_next(timeout: Interval) -> SetOfIterator<'static, String> {
    let wait = timeout.as_micros().clamp(0, i128::from(WAIT_MAX)) as i64;
    let keys = requests::next(own_database(), wait);
    SetOfIterator::new(keys.into_iter().map(|key| key.to_string()))
}

/// Here is a segment that was asked for. One that nobody wants any more is ignored.
#[pg_extern(sql = false)]
fn recall_supply(key: &str, image: &[u8]) {
    let parsed = parse(key);
    let Some(bytes) = requests::bytes_wanted(&parsed) else {
        return;
    };
    if !cold_cache::is_sound(image, bytes) {
        error::raise(
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            format!("the image supplied for {key} is damaged or another's"),
            "Get it again, or say why not with lanes.recall_fail().",
        );
    }
    if let Err(failure) = cold_cache::write(&parsed, image, gucs::cold_cache_bytes()) {
        let reason = format!("the cold cache cannot be written: {failure}");
        requests::failed(&parsed, &reason);
        error::raise(
            PgSqlErrorCode::ERRCODE_IO_ERROR,
            reason,
            "Check free disk space of the data directory, and lanes.cold_cache_size.",
        );
    }
    requests::supplied(&parsed);
}

/// A segment that was asked for cannot be had.
#[pg_extern(sql = false)]
fn recall_fail(key: &str, reason: &str) {
    requests::failed(&parse(key), reason);
}

fn parse(text: &str) -> Key {
    Key::parse(text).unwrap_or_else(|| {
        error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("\"{text}\" is no key of a segment of this database"),
            "Give a key as lanes.recall_next() gave it.",
        )
    })
}
