//! The SQL functions for recalling. They work on standbys, and in read-only transactions.

use pgrx::PgSqlErrorCode;
use pgrx::datum::Interval;
use pgrx::prelude::*;

use crate::pg::{call, server};
use crate::remote::cold_cache;
use crate::remote::key::Key;
use crate::remote::requests::{self, Cause};
use crate::{error, gucs};

/// The longest time of one wait.
const WAIT_MAX: i64 = 3_600_000_000;

/// The keys of segments of this database that backends wait for.
#[pg_extern(sql = false)]
fn recall_next(timeout: Interval) -> SetOfIterator<'static, String> {
    let keys = requests::next(server::database(), wait_micros(&timeout));
    SetOfIterator::new(keys.into_iter().map(|key| key.to_string()))
}

/// Waits until backends wait for segments of this database. The wait is a transaction without a
/// snapshot. So waiting for hours neither keeps rows from being sealed nor from being removed by
/// VACUUM.
#[pg_extern(sql = false)]
fn recall_wait(timeout: Option<Interval>, info: pg_sys::FunctionCallInfo) {
    let wait = timeout.as_ref().map_or(0, wait_micros);
    let waited = call::commit_before(info, || requests::wait(server::database(), wait));
    if waited.is_none() {
        error::raise(
            PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION,
            "lanes.recall_wait() cannot run inside a transaction block or a function",
            "It begins with a COMMIT: CALL it as a statement of its own.",
        );
    }
}

fn wait_micros(timeout: &Interval) -> i64 {
    timeout.as_micros().clamp(0, i128::from(WAIT_MAX)) as i64
}

/// Supplies a segment that was asked for. A segment that nobody wants any more is ignored.
#[pg_extern(sql = false)]
fn recall_supply(key: &str, image: &[u8]) {
    let parsed = parse(key);
    let Some(expected) = requests::expected(&parsed) else {
        return;
    };
    if let Err(refusal) = expected.check(image) {
        let reason = format!("the object {key} is not the segment's image: {refusal}");
        requests::failed(&parsed, &reason, Cause::Image);
        error::raise(
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            reason,
            "Find out who or what changed the object in the store, and put a copy of the right one back; who waited for it is told.",
        );
    }
    if let Err(failure) = cold_cache::write(&parsed, image, gucs::cold_cache_bytes()) {
        let reason = format!("the cold cache cannot be written: {failure}");
        requests::failed(&parsed, &reason, Cause::Delivery);
        error::raise(
            PgSqlErrorCode::ERRCODE_IO_ERROR,
            reason,
            "Check free disk space of the data directory, and lanes.cold_cache_size.",
        );
    }
    requests::supplied(&parsed);
}

/// Reports that a segment that was asked for cannot be supplied.
#[pg_extern(sql = false)]
fn recall_fail(key: &str, reason: &str) {
    requests::failed(&parse(key), reason, Cause::Delivery);
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
