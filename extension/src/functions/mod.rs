//! Ordinary SQL functions over times and values. They run in stock plans on any table, and define what the vectorised
//! executor must equal.
//!
//! Arithmetic ([`bucket`], [`bucket_zone`], [`zone_clock`], [`float8`]; no Postgres but its errors) → functions of one row
//! ([`time_bucket`]) → aggregates ([`first_last`], [`vwap`], [`ema`]) → window functions ([`delta`]).
//! `sql/functions.sql` declares them.
//!
//! State. An aggregate's state lies in its group's memory and is changed in place: Postgres gives each group its own and
//! never shares it between aggregates that differ. A window function's lies in its partition's memory,
//! and what else is remembered from row to row in that of the call's place in the query. No state owns
//! anything that needs Drop, so an ERROR leaves nothing behind.
//!
//! Failure. Widths, origins, weights out of range and float8 overflow are ERRORs with the SQLSTATE that Postgres's own
//! functions use; each names a remedy in its hint.

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::error;
use crate::pg::call::Call;

pub mod bucket;
pub mod bucket_zone;
pub mod delta;
pub mod ema;
pub mod first_last;
pub mod float8;
pub mod time_bucket;
pub mod vwap;
pub mod zone_clock;

/// The memory of the aggregate that this call belongs to; an ERROR outside of one.
fn aggregate_memory(call: &Call) -> pg_sys::MemoryContext {
    call.aggregate_memory().unwrap_or_else(|| {
        error::raise(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "a part of an aggregate was called by itself",
            "Call the aggregate, not its parts.",
        )
    })
}
