//! Speculative insertions: the rows of INSERT … ON CONFLICT that may yet turn out to conflict.
//!
//! PostgreSQL inserts such a row, then its index entries, and takes the row back if an index has its
//! key already. Another transaction that finds the row must wait for that decision only, and not until
//! the inserting transaction ends: two transactions that waited for each other's end would deadlock. It
//! waits for the *token* that PostgreSQL gave the row.
//!
//! At any time a transaction has such rows in one table only, mostly a single row, and needs their token for a moment.
//! So tokens are in shared memory and not in the table: a list with one element for each backend that is speculating. A
//! row that is taken back gets a deletion that everybody sees, although its transaction continues.

use std::cell::Cell;
use std::ops::Range;

use pgrx::pg_sys;

use super::reader::Reader;
use super::{kept, logged_rows, tid};
use crate::pg::shmem::Area;
use crate::pg::slot::Slot;
use crate::pg::table::OpenTable;
use crate::pg::{lock, server, transaction};
use crate::storage::tombstone::{FLAG_FROZEN, Tail, Tombstone, kind};

/// The number of backends that can speculate at the same time. A backend speculates only while it
/// inserts one row, or the rows that [`super::pending_rows`] has gathered.
const SPECULATIONS_MAX: usize = 1024;

/// Rows that may be taken back.
#[derive(Clone, Copy)]
struct Speculation {
    xid: u32,
    token: u32,
    storage_id: u64,
    row: u64,
    /// So many rows from `row` on.
    rows: u64,
}

const NOTHING: Speculation = Speculation {
    xid: 0,
    token: 0,
    storage_id: 0,
    row: 0,
    rows: 0,
};

static SPECULATIONS: Area<(), [Speculation; SPECULATIONS_MAX]> =
    Area::new(c"lanes speculations", || ((), [NOTHING; SPECULATIONS_MAX]));

thread_local! {
    /// The place of this backend's speculation in the list, and the depth of its subtransaction.
    static OWN: Cell<Option<(usize, i32)>> = const { Cell::new(None) };
}

/// Requests the shared memory. Called from `_PG_init`.
pub fn register() {
    SPECULATIONS.add();
}

/// Notes that the row in the slot, which was just inserted, has a token.
pub fn begin(table: OpenTable<'_>, slot: Slot<'_>, token: u32) {
    if let Some(row) = tid::to_row(&slot.tid()) {
        note(table, transaction::current_xid(), row..row + 1, token);
    }
}

/// Notes that some rows, which transaction `xid` has just inserted, have a token until [`release`].
pub fn begin_rows(table: OpenTable<'_>, xid: u32, rows: Range<u64>) {
    let token = lock::take_token(xid);
    note(table, xid, rows, token);
}

/// Ends the speculation of transaction `xid`: the rows stay that were not taken back.
pub fn release(xid: u32) {
    end();
    lock::release_token(xid);
}

fn note(table: OpenTable<'_>, xid: u32, rows: Range<u64>, token: u32) {
    let speculation = Speculation {
        xid,
        token,
        storage_id: kept::end(table).meta.storage_id,
        row: rows.start,
        rows: rows.end - rows.start,
    };
    end();
    let start = server::process_id() as usize;
    let place = SPECULATIONS.locked(|list| {
        let mut places = (start..start + SPECULATIONS_MAX).map(|at| at % SPECULATIONS_MAX);
        let free = places.find(|&place| list[place].xid == 0)?;
        list[free] = speculation;
        Some(free)
    });
    if place.is_none() {
        crate::error::raise(
            pgrx::PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
            "too many sessions insert rows with ON CONFLICT at the same time",
            "Run the statement again.",
        );
    }
    OWN.set(place.map(|place| (place, transaction::nest_level())));
}

/// Notes that the row in the slot stays, or takes it back.
pub fn complete(table: OpenTable<'_>, slot: Slot<'_>, stays: bool) {
    if stays {
        logged_rows::log_inserted_slot(table, slot, transaction::current_xid());
    } else if let Some(row) = tid::to_row(&slot.tid()) {
        take_back(table, row);
    }
    end();
}

/// Deletes a row for everybody, although its transaction continues.
pub fn take_back(table: OpenTable<'_>, row: u64) {
    let mut reader = Reader::open(table);
    let Some(content) = reader.content.take() else {
        return;
    };
    let tombstone = Tombstone {
        row,
        next_row: 0,
        xmax: transaction::current_xid(),
        cmax: 0,
        kind: kind::DELETE,
        mode: pg_sys::LockTupleMode::LockTupleExclusive as u16,
        flags: FLAG_FROZEN,
    };
    Tail::lock(table, &content.meta).push(table, &tombstone, &content.tombstones);
    table.count_delete();
}

/// Ends the speculation of a (sub)transaction at this depth, or within it, because it aborted. An
/// abort may call this function at any time, so it neither raises errors nor allocates.
pub fn forget(nest_level: i32) {
    if OWN.get().is_some_and(|(_, own)| own >= nest_level) {
        end();
    }
}

/// Ends this backend's speculation.
fn end() {
    if let Some((place, _)) = OWN.take() {
        SPECULATIONS.locked(|list| list[place] = NOTHING);
    }
}

/// The token of a row that transaction `xid` has inserted; 0: the row stays if its transaction
/// commits. The transaction is still in progress.
pub fn token_of(xid: u32, storage_id: u64, row: u64) -> u32 {
    let is_it = |s: &&Speculation| {
        let rows = s.row..s.row + s.rows;
        s.xid == xid && s.storage_id == storage_id && rows.contains(&row)
    };
    SPECULATIONS.locked(|list| list.iter().find(is_it).map_or(0, |found| found.token))
}
