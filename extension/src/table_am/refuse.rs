//! What lanes tables do not do, each refused by name with what to do instead.

#![allow(
    clippy::too_many_arguments,
    reason = "signatures that Postgres prescribes"
)]

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::error::refuse;

const INDEX_HINT: &str = "Scans of lanes tables skip what they can by themselves; keep keys in an ordinary (heap) table \
     and join to it, or drop the index, PRIMARY KEY, UNIQUE or EXCLUDE clause.";

/// Any index, and every constraint that needs one.
pub fn indexes() -> ! {
    refuse("lanes tables do not support indexes", INDEX_HINT)
}

#[pg_guard]
pub extern "C-unwind" fn index_build_range_scan(
    _table: pg_sys::Relation,
    _index: pg_sys::Relation,
    _info: *mut pg_sys::IndexInfo,
    _allow_sync: bool,
    _any_visible: bool,
    _progress: bool,
    _start: pg_sys::BlockNumber,
    _blocks: pg_sys::BlockNumber,
    _callback: pg_sys::IndexBuildCallback,
    _state: *mut std::ffi::c_void,
    _scan: pg_sys::TableScanDesc,
) -> f64 {
    indexes()
}

#[pg_guard]
pub extern "C-unwind" fn index_validate_scan(
    _table: pg_sys::Relation,
    _index: pg_sys::Relation,
    _info: *mut pg_sys::IndexInfo,
    _snapshot: pg_sys::Snapshot,
    _state: *mut pg_sys::ValidateIndexState,
) {
    indexes()
}

#[pg_guard]
pub extern "C-unwind" fn index_fetch_begin(
    _rel: pg_sys::Relation,
) -> *mut pg_sys::IndexFetchTableData {
    indexes()
}

#[pg_guard]
pub extern "C-unwind" fn index_fetch_reset(_data: *mut pg_sys::IndexFetchTableData) {
    indexes()
}

#[pg_guard]
pub extern "C-unwind" fn index_fetch_end(_data: *mut pg_sys::IndexFetchTableData) {
    indexes()
}

#[pg_guard]
pub extern "C-unwind" fn index_fetch_tuple(
    _scan: *mut pg_sys::IndexFetchTableData,
    _tid: pg_sys::ItemPointer,
    _snapshot: pg_sys::Snapshot,
    _slot: *mut pg_sys::TupleTableSlot,
    _call_again: *mut bool,
    _all_dead: *mut bool,
) -> bool {
    indexes()
}

#[pg_guard]
pub extern "C-unwind" fn index_delete_tuples(
    _rel: pg_sys::Relation,
    _state: *mut pg_sys::TM_IndexDeleteOp,
) -> pg_sys::TransactionId {
    indexes()
}

#[pg_guard]
pub extern "C-unwind" fn tuple_insert_speculative(
    _rel: pg_sys::Relation,
    _slot: *mut pg_sys::TupleTableSlot,
    _command: pg_sys::CommandId,
    _options: i32,
    _bulk: *mut pg_sys::BulkInsertStateData,
    _token: u32,
) {
    refuse(
        "lanes tables do not support INSERT … ON CONFLICT with a conflict target",
        INDEX_HINT,
    )
}

#[pg_guard]
pub extern "C-unwind" fn tuple_complete_speculative(
    _rel: pg_sys::Relation,
    _slot: *mut pg_sys::TupleTableSlot,
    _token: u32,
    _succeeded: bool,
) {
    refuse(
        "lanes tables do not support INSERT … ON CONFLICT with a conflict target",
        INDEX_HINT,
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
