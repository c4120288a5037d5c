//! Row numbers that are found at one time and used at another.
//!
//! Sealing gives rows new numbers. So a statement that changes or locks rows shares the
//! [`RowNumbersLock`] before it looks for them, until its transaction ends. No sealing then changes
//! their numbers.
//!
//! Scans that began without this lock remain. For example, a cursor that was not declared FOR
//! UPDATE may have returned a row that a later statement of the same transaction names by WHERE
//! CURRENT OF. So each scan notes the numbering that it reads. While a scan of an older numbering
//! is open, a sealed row is neither changed nor fetched by its number. A row that is not sealed may
//! be: its number was never given to another row.
//!
//! A table that a statement only reads is covered too. When its row is fetched again, because a
//! joined row had to be waited for, it is still the same row.

use std::cell::{Cell, RefCell};

use lanes_columnar::arena::RunEntry;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::reader::Content;
use crate::error;
use crate::pg::lock::RowNumbersLock;
use crate::pg::table::OpenTable;
use crate::storage::directory::{FLAG_DEAD, FLAG_SEALED};
use crate::storage::metapage::Meta;

/// A scan's note of the numbering that it reads. The note is removed when the scan ends.
#[derive(PartialEq, Eq)]
pub struct Reading {
    table: pg_sys::Oid,
    sealings: u64,
}

thread_local! {
    static OPEN: RefCell<Vec<(pg_sys::Oid, u64)>> = const { RefCell::new(Vec::new()) };
    /// The last table whose row numbers lock this backend has shared. It shares the lock until the
    /// transaction ends.
    static SHARED: Cell<pg_sys::Oid> = const { Cell::new(pg_sys::InvalidOid) };
}

impl Reading {
    /// Notes a scan of a table, with the metapage as it was when the scan began.
    pub fn begin(table: OpenTable<'_>, meta: Option<&Meta>) -> Reading {
        let sealings = meta.map_or(0, |meta| meta.sealings);
        let table = table.oid();
        OPEN.with_borrow_mut(|open| open.push((table, sealings)));
        Reading { table, sealings }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let note = (self.table, self.sealings);
        // At the end of the process the list may be dropped before its memory contexts are.
        let _ = OPEN.try_with(|open| {
            let mut open = open.borrow_mut();
            if let Some(place) = open.iter().rposition(|other| *other == note) {
                open.swap_remove(place);
            }
        });
    }
}

/// Keeps row numbers unchanged until the transaction ends, if this backend has locked the table in
/// a mode that allows it to change or lock rows. Returns whether it has.
pub fn keep_if_changing(table: OpenTable<'_>) -> bool {
    let changes = SHARED.get() == table.oid() || table.is_locked_by_me(pg_sys::RowShareLock, true);
    if changes {
        keep(table);
    }
    changes
}

/// Keeps row numbers unchanged until the transaction ends.
pub fn keep(table: OpenTable<'_>) {
    if !table.uses_local_buffers() && SHARED.get() != table.oid() {
        RowNumbersLock::share_until_commit(table);
        SHARED.set(table.oid());
    }
}

/// A transaction has ended or a subtransaction was rolled back, and its locks are released.
pub fn forget() {
    SHARED.set(pg_sys::InvalidOid);
}

/// Raises an ERROR if a row's number may have belonged to another row in an older numbering: see
/// [`check`]. A row that is not sealed has had its number since it was inserted, and no other row
/// ever had that number.
pub fn check_row(table: OpenTable<'_>, content: &Content, row: u64) {
    let run = content.run_of(row).map(|(_, run)| run);
    check_row_of(table, content, run.as_ref());
}

/// Does so for a row of a run; `None`: no run has the row.
pub fn check_row_of(table: OpenTable<'_>, content: &Content, run: Option<&RunEntry>) {
    let is_open = run.is_some_and(|run| run.flags & (FLAG_SEALED | FLAG_DEAD) == 0);
    if !is_open {
        check(table, &content.meta);
    }
}

/// Raises an ERROR if a row is to be changed or fetched by a number that a scan of an older
/// numbering may have returned.
pub fn check(table: OpenTable<'_>, meta: &Meta) {
    let table = table.oid();
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
