//! What lanes tables do not do, each refused by name with what to do instead.

#![allow(
    clippy::too_many_arguments,
    reason = "signatures that Postgres prescribes"
)]

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::error::refuse;

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
