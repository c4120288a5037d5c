//! SQL functions over times and values. They run in PostgreSQL's own plans on any table, and define
//! the results that the vectorised executor must produce.
//!
//! | module | contents |
//! |---|---|
//! | [`time_bucket`] | functions of one row |
//! | [`first_last`], [`vwap`], [`ema`], [`over_time`], [`histogram`], [`candlestick`] | aggregates |
//! | [`delta`] | window functions |
//!
//! They compute with [`crate::arithmetic`]. `sql/functions.sql` declares the functions.
//!
//! State. An aggregate's state is in its group's memory and is changed in place: each group has its own, and different
//! aggregates never share one. A window function's state is in its partition's memory. Other values that are kept from
//! row to row are in the memory of the call's place in the query. No state needs dropping, so an error leaks nothing.
//!
//! Failure. Widths, origins and weights out of range and float8 overflow are errors with the
//! SQLSTATEs of PostgreSQL's own functions. Each has a hint.

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::error;
use crate::pg::call::Call;

pub mod candlestick;
pub mod delta;
pub mod ema;
pub mod first_last;
pub mod histogram;
pub mod over_time;
pub mod time_bucket;
pub mod vwap;

/// The memory of the aggregate that a call belongs to. Outside an aggregate it is an error.
fn aggregate_memory(call: &Call) -> pg_sys::MemoryContext {
    call.aggregate_memory().unwrap_or_else(|| {
        error::raise(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "a part of an aggregate was called by itself",
            "Call the aggregate, not its parts.",
        )
    })
}
