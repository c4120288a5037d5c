//! The view `lanes.space`: how the file of a table is used.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::check_readable;
use crate::pg::ports::BLCKSZ;
use crate::pg::table::OpenedTable;
use crate::storage::extent;
use crate::storage::metapage::Meta;

/// Bytes of a lanes table's file, and how many of them are free: all, and those behind everything that is in use. No
/// row for a table that has no file yet, or is gone.
#[pg_extern(sql = false)]
fn stored_space(
    target: pg_sys::Oid,
) -> TableIterator<
    'static,
    (
        name!(bytes, i64),
        name!(bytes_free, i64),
        name!(bytes_free_at_end, i64),
    ),
> {
    let opened = OpenedTable::try_open(target, pg_sys::AccessShareLock);
    let survey = opened.and_then(|opened| {
        let table = opened.get();
        check_readable(table, "lanes.stored_space()");
        Meta::load(table).map(|_| extent::survey(table))
    });
    TableIterator::new(survey.map(|(length, free)| {
        let bytes = |blocks: u32| i64::from(blocks) * BLCKSZ as i64;
        let at_end = free
            .last()
            .filter(|last| last.first + last.blocks == length);
        (
            bytes(length),
            free.iter().map(|extent| bytes(extent.blocks)).sum(),
            at_end.map_or(0, |last| bytes(last.blocks)),
        )
    }))
}
