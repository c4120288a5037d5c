//! INSERT and COPY: slots become the columns of a run. Each call makes its own run, visible to later commands at once; what
//! is gathered across calls, and why nobody can tell, is [`super::insert_buffer`]'s business.

use lanes_columnar::column::Column;
use lanes_columnar::kind::LaneKind;
use pgrx::pg_sys;

use crate::error;
use crate::pg::datum::{self, RowIntake};
use crate::pg::ports;
use crate::storage::directory::FLAG_FROZEN;
use crate::table::append::{PreparedRun, RUN_ROWS_MAX};
use crate::table::tid;

/// Appends the rows of some slots as one run (or several, past [`RUN_ROWS_MAX`]) and gives each slot its TID.
///
/// # Safety
/// `relation` is an open lanes table locked for writing; the slots are filled and of its row type.
pub unsafe fn insert_slots(
    relation: pg_sys::Relation,
    slots: &[*mut pg_sys::TupleTableSlot],
    command: pg_sys::CommandId,
    options: i32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let kinds = datum::kinds((*relation).rd_att);
        let mut intake = RowIntake::new((*relation).rd_att, &kinds);
        let mut columns: Vec<Column> = kinds.iter().map(|kind| Column::new(*kind)).collect();
        let mut pending = 0;
        for (index, &slot) in slots.iter().enumerate() {
            take_slot((*relation).rd_att, &mut intake, &mut columns, slot);
            pending += 1;
            if index + 1 < slots.len() && !is_full(&columns, pending) {
                continue;
            }
            let flags = entry_flags(options);
            let first_row = insert_columns(relation, &kinds, &columns, pending, command, flags);
            for (row, &slot) in (first_row..).zip(&slots[index + 1 - pending..=index]) {
                (*slot).tts_tid = tid::from_row(row);
                (*slot).tts_tableOid = (*relation).rd_id;
            }
            for column in &mut columns {
                column.clear();
            }
            pending = 0;
        }
    }
}

/// Bytes of columns after which they are written as a run: bounds memory, and the image, when rows are wide.
const RUN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Whether these rows are to be written before another one joins them.
pub fn is_full(columns: &[Column], rows: usize) -> bool {
    rows >= RUN_ROWS_MAX || columns.iter().map(Column::byte_len).sum::<usize>() >= RUN_BYTES_MAX
}

unsafe fn take_slot(
    descriptor: pg_sys::TupleDesc,
    intake: &mut RowIntake,
    columns: &mut [Column],
    slot: *mut pg_sys::TupleTableSlot,
) {
    // SAFETY: a filled slot of this descriptor.
    unsafe {
        let natts = (*descriptor).natts;
        if ((*slot).tts_nvalid as i32) < natts {
            pg_sys::slot_getsomeattrs_int(slot, natts);
        }
        intake.push(columns, (*slot).tts_values, (*slot).tts_isnull);
    }
}

/// Appends rows that are columns already as one run of the current transaction; returns the first row's number.
///
/// # Safety
/// `relation` is an open lanes table locked for writing, whose attributes are of `kinds`, as are the columns.
pub unsafe fn insert_columns(
    relation: pg_sys::Relation,
    kinds: &[LaneKind],
    columns: &[Column],
    rows: usize,
    command: pg_sys::CommandId,
    flags: u32,
) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        let xid = pg_sys::GetCurrentTransactionId().into_inner();
        append(relation, kinds, columns, rows, xid, command, flags)
    }
}

/// The flags of a run that was inserted with these options.
pub fn entry_flags(options: i32) -> u32 {
    if options & pg_sys::TABLE_INSERT_FROZEN as i32 != 0 {
        FLAG_FROZEN
    } else {
        0
    }
}

/// The same as work of transaction `xid`, which is the current one or a parent of it.
///
/// # Safety
/// As for [`insert_columns`].
pub unsafe fn append(
    relation: pg_sys::Relation,
    kinds: &[LaneKind],
    columns: &[Column],
    rows: usize,
    xid: u32,
    command: pg_sys::CommandId,
    flags: u32,
) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        ports::CheckForSerializableConflictIn(relation);
        let first_row =
            PreparedRun::write(relation, kinds, columns, rows).publish(xid, command, flags);
        if first_row + rows as u64 > tid::ROWS_MAX {
            error::too_large(
                &format!(
                    "table \"{}\" has handed out all its row numbers",
                    ports::RelationGetRelationName(relation)
                ),
                "Partition the table, or rewrite it with VACUUM FULL.",
            );
        }
        pg_sys::pgstat_count_heap_insert(relation, rows as _);
        first_row
    }
}

/// The row of a filled slot as columns.
///
/// # Safety
/// The slot is filled and of the row type `descriptor`, whose attributes are of `kinds`.
pub unsafe fn columns_of(
    descriptor: pg_sys::TupleDesc,
    kinds: &[LaneKind],
    slot: *mut pg_sys::TupleTableSlot,
) -> Vec<Column> {
    let mut columns: Vec<Column> = kinds.iter().map(|kind| Column::new(*kind)).collect();
    // SAFETY: the caller's promise.
    unsafe {
        let mut intake = RowIntake::new(descriptor, kinds);
        take_slot(descriptor, &mut intake, &mut columns, slot);
    }
    columns
}
