//! Refusals: the features that lanes tables do not have, with hints at what to do instead.

#![allow(
    clippy::too_many_arguments,
    reason = "signatures that Postgres prescribes"
)]

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::error::refuse;

/// BRIN indexes where ANALYZE reads the blocks that it counts. A lanes table with such an index
/// counts ranges of rows as blocks, and its file has fewer.
#[cfg(any(feature = "pg17", feature = "pg18"))]
pub fn brin() -> ! {
    refuse(
        "lanes tables do not support BRIN indexes on PostgreSQL 17 and later",
        "Scans of lanes tables skip rows by minimum and maximum without an index. Use btree to look up single rows.",
    )
}

/// CLUSTER by an index that is no btree.
pub fn clustering() -> ! {
    refuse(
        "lanes tables are clustered by btree indexes only",
        "Cluster by a btree index, or set the order in which rows are sealed: ALTER TABLE … SET (order_by = '…').",
    )
}

#[pg_guard]
pub extern "C-unwind" fn relation_toast_am(_rel: pg_sys::Relation) -> pg_sys::Oid {
    refuse(
        "lanes tables have no TOAST table",
        "Long values are stored in line.",
    )
}

#[pg_guard]
pub extern "C-unwind" fn relation_fetch_toast_slice(
    _toast: pg_sys::Relation,
    _value: pg_sys::Oid,
    _size: i32,
    _offset: i32,
    _length: i32,
    _result: *mut pg_sys::varlena,
) {
    refuse(
        "lanes tables have no TOAST table",
        "Long values are stored in line.",
    )
}
