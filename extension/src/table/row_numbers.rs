//! Row numbers that are found at one time and used at another.
//!
//! Sealing numbers rows anew. So a statement that changes or locks rows shares [`RowNumbersLock`] before it looks for
//! them, until its transaction ends: that keeps their numbers. What is left are scans that were begun without it, such
//! as a cursor's that was not declared FOR UPDATE, whose rows a later statement of the same transaction may name (WHERE
//! CURRENT OF): each scan notes which numbering it reads, and a row is not changed or fetched by number while a scan of
//! an older one is open, unless the row is not sealed: sealing never gave its number to another one. So a row of a
//! table that a statement only reads is never another one when it is fetched again, because a row that it was joined to
//! had to be waited for.

use std::cell::RefCell;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::reader::Content;
use crate::error;
use crate::pg::lock::RowNumbersLock;
use crate::pg::ports;
use crate::storage::directory::{FLAG_DEAD, FLAG_SEALED};
use crate::storage::metapage::Meta;

/// A scan's note of the numbering that it reads; gone when it ends.
#[derive(PartialEq, Eq)]
pub struct Reading {
    table: pg_sys::Oid,
    sealings: u64,
}

thread_local! {
    static OPEN: RefCell<Vec<(pg_sys::Oid, u64)>> = const { RefCell::new(Vec::new()) };
}

impl Reading {
    /// Notes a scan of a table as its metapage was when the scan began.
    ///
    /// # Safety
    /// `relation` is open.
    pub unsafe fn begin(relation: pg_sys::Relation, meta: Option<&Meta>) -> Reading {
        let sealings = meta.map_or(0, |meta| meta.sealings);
        // SAFETY: the caller's promise.
        let table = unsafe { (*relation).rd_id };
        OPEN.with_borrow_mut(|open| open.push((table, sealings)));
        Reading { table, sealings }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let note = (self.table, self.sealings);
        // At the end of the process the list may be gone before its memory contexts are.
        let _ = OPEN.try_with(|open| {
            let mut open = open.borrow_mut();
            if let Some(place) = open.iter().rposition(|other| *other == note) {
                open.swap_remove(place);
            }
        });
    }
}

/// Keeps the numbers of rows as they are until the transaction ends, if this backend has locked the table in a mode that
/// allows it to change or lock rows. Whether it has.
///
/// # Safety
/// `relation` is open.
pub unsafe fn keep_if_changing(relation: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let changes = pg_sys::CheckRelationLockedByMe(relation, pg_sys::RowShareLock as i32, true);
        if changes {
            keep(relation);
        }
        changes
    }
}

/// Keeps the numbers of rows as they are until the transaction ends.
///
/// # Safety
/// `relation` is open.
pub unsafe fn keep(relation: pg_sys::Relation) {
    // SAFETY: the caller's promise.
    unsafe {
        if !ports::RelationUsesLocalBuffers(relation) {
            RowNumbersLock::share_until_commit(relation);
        }
    }
}

/// Refuses to go by the number of a row that may have been another one's in an older numbering: see [`check`]. A row
/// that is not sealed has had its number since it was inserted, and no other row ever had it.
///
/// # Safety
/// As for [`check`]; `content` is of the same table.
pub unsafe fn check_row(relation: pg_sys::Relation, content: &Content, row: u64) {
    let found = content.run_of(row);
    let is_open = found.is_some_and(|(_, run)| run.flags & (FLAG_SEALED | FLAG_DEAD) == 0);
    if !is_open {
        // SAFETY: the caller's promise.
        unsafe { check(relation, &content.meta) };
    }
}

/// Refuses to go by a row number, to change its row or to read it again, that a scan of an older numbering may have given out.
///
/// # Safety
/// `relation` is the open lanes table that `meta` was read from, whose numbers are [kept](keep).
pub unsafe fn check(relation: pg_sys::Relation, meta: &Meta) {
    // SAFETY: the caller's promise.
    let table = unsafe { (*relation).rd_id };
    let is_stale =
        |(other, sealings): &(pg_sys::Oid, u64)| *other == table && *sealings != meta.sealings;
    if OPEN.with_borrow(|open| open.iter().any(is_stale)) {
        error::raise(
            PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
            "could not go by the row's number: the table was sealed since a scan of this transaction began",
            "Run the transaction again, or read FOR UPDATE or FOR SHARE, which keeps the table from being sealed.",
        );
    }
}
