//! INSERT, COPY and `lanes.append`: the rows of one call become a run, which later commands see at
//! once. INSERT and COPY bring slots ([`insert_slots`]); `lanes.append` and a restore from object
//! storage bring columns ([`insert_columns`]). Where PostgreSQL inserts a row at a time,
//! [`super::pending_rows`] gathers rows over many calls.

use lanes_columnar::column::Column;
use lanes_columnar::kind::LaneKind;
use pgrx::pg_sys;

use super::append::{PreparedRun, RUN_ROWS_MAX};
use super::logged_rows;
use super::row_columns::RowColumns;
use super::tid;
use crate::error;
use crate::pg::slot::{RowHeader, Slot};
use crate::pg::table::OpenTable;
use crate::pg::transaction;
use crate::storage::directory::FLAG_FROZEN;

/// Appends the rows of filled slots of the table as one run, or as several if there are more than
/// [`RUN_ROWS_MAX`]. Sets the tuple id of each slot.
pub fn insert_slots<'a>(
    table: OpenTable<'_>,
    slots: impl ExactSizeIterator<Item = Slot<'a>>,
    command: pg_sys::CommandId,
    options: i32,
) {
    let mut new_rows = RowColumns::of(table);
    let (mut pending, mut left) = (Vec::with_capacity(slots.len()), slots.len());
    for slot in slots {
        new_rows.push(slot);
        pending.push(slot);
        left -= 1;
        if left > 0 && !is_full(new_rows.columns(), pending.len()) {
            continue;
        }
        let rows = pending.len();
        let (kinds, columns) = (new_rows.kinds(), new_rows.columns());
        let first_row = insert_columns(table, kinds, columns, rows, command, options);
        let header = RowHeader::new(transaction::current_xid(), command);
        for (row, slot) in (first_row..).zip(pending.drain(..)) {
            slot.set_written(tid::from_row(row), table.oid(), header);
        }
        new_rows.clear();
    }
}

/// Columns of so many bytes are written as a run. This bounds memory, and the size of an image,
/// when rows are wide.
const RUN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Whether these rows have to be written before another row is added.
pub fn is_full(columns: &[Column], rows: usize) -> bool {
    rows >= RUN_ROWS_MAX || columns.iter().map(Column::byte_len).sum::<usize>() >= RUN_BYTES_MAX
}

/// Appends rows that are already columns, as one run of the current transaction and with
/// PostgreSQL's options of an insert. Returns the number of the first row.
pub fn insert_columns(
    table: OpenTable<'_>,
    kinds: &[LaneKind],
    columns: &[Column],
    rows: usize,
    command: pg_sys::CommandId,
    options: i32,
) -> u64 {
    let xid = transaction::current_xid();
    append(table, kinds, columns, rows, xid, command, options)
}

/// The flags of a run that was inserted with these options.
fn entry_flags(options: i32) -> u32 {
    if options & pg_sys::TABLE_INSERT_FROZEN as i32 != 0 {
        FLAG_FROZEN
    } else {
        0
    }
}

/// Appends rows as [`insert_columns`] does, as work of transaction `xid`, which is the current
/// transaction or a parent of it.
pub fn append(
    table: OpenTable<'_>,
    kinds: &[LaneKind],
    columns: &[Column],
    rows: usize,
    xid: u32,
    command: pg_sys::CommandId,
    options: i32,
) -> u64 {
    table.check_conflict_in(None);
    let prepared = PreparedRun::write(table, kinds, columns, rows);
    if options & pg_sys::TABLE_INSERT_NO_LOGICAL as i32 == 0 {
        logged_rows::log_insert(table, xid, prepared.image());
    }
    let first_row = prepared.publish(xid, command, entry_flags(options));
    if first_row + rows as u64 > tid::ROWS_MAX {
        error::too_large(
            &format!(
                "table \"{}\" has handed out all its row numbers",
                table.name()
            ),
            "Partition the table, or rewrite it with VACUUM FULL.",
        );
    }
    table.count_inserts(rows);
    first_row
}
