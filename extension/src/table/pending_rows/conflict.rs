//! INSERT … ON CONFLICT DO NOTHING: rows that are gathered although their keys may be there already.
//!
//! ```text
//! a row comes            ask the indexes for its keys ───────── there: the row is passed over
//!                        its keys may be those of a gathered row: write the gathered rows, ask again
//!                        gather the row
//! the rows are written   as one run, with a token for all of it
//!   for each row         make its entries ─────────────── its key is there by now: take the row back,
//!                                                         release the token, ask the indexes again:
//!                                                         pass the row over, or write it once more
//! ```
//! Between the question and the entries another session may have made the key. PostgreSQL finds that out while it makes
//! the entries, and does not wait there. Nobody waits while rows have a token: this needs indexes that
//! [decide all keys](crate::pg::open_indexes::OpenIndexes::decide_all_keys). Entries are made in the order in which the
//! rows came, and none is made before the row before it is decided. So two sessions that insert the same keys in the
//! same order wait for each other in one direction only, as they do where each row is written by itself.

use std::ops::Range;

use lanes_columnar::column::Column;
use pgrx::pg_sys;

use super::{FRAMES, flush_table};
use crate::pg::insert_indexes::InsertIndexes;
use crate::pg::open_indexes::arbiters::KeyNumbers;
use crate::pg::open_indexes::{HeldRows, OpenIndexes};
use crate::pg::slot::{RowHeader, Slot};
use crate::pg::table::OpenTable;
use crate::pg::whole_error;
use crate::table::row_columns::RowColumns;
use crate::table::{insert, logged_rows, speculation, tid};

/// So many gathered rows are written. What another session takes away from them meanwhile leaves a row and a tombstone
/// each.
pub const ROWS_MAX: usize = 1024;

/// Whether the row in the slot is to be gathered: its keys are not there.
pub fn admits(indexes: InsertIndexes, table: OpenTable<'_>, slot: Slot<'_>) -> bool {
    let indexes = indexes.asked();
    loop {
        let asked = whole_error::attempt(|| {
            let is_free = indexes.have_no_key_of(slot);
            is_free.then(|| indexes.hash_keys(slot))
        });
        let Some(keys) = asked.unwrap_or_else(|failure| failure.raise()) else {
            return false;
        };
        if !note_keys(keys) {
            return true;
        }
        flush_table(table.oid());
    }
}

/// Notes the keys of a row. Returns whether one of them may be that of a gathered row.
fn note_keys(keys: KeyNumbers) -> bool {
    FRAMES.with_borrow_mut(|frames| {
        let Some(frame) = frames.last_mut() else {
            return false;
        };
        let (known, gathers) = (&mut frame.keys, !frame.gathered.is_empty());
        if !gathers {
            known.clear();
        }
        let note = |is_known, key| !known.insert(key) || is_known;
        keys.iter().fold(false, note) && gathers
    })
}

/// Rows that are in the directory, and have no index entries.
#[derive(Clone, Copy)]
pub struct Written<'a> {
    pub table: OpenTable<'a>,
    pub indexes: OpenIndexes,
    pub xid: u32,
    pub command: pg_sys::CommandId,
    pub options: i32,
    pub first_row: u64,
    pub rows: usize,
}

impl Written<'_> {
    /// Makes the index entries of all rows but those whose keys are there by now. Returns the number of these. An ERROR
    /// jumps over this frame, which owns nothing.
    pub fn enter(self, rows: &HeldRows<Vec<Column>>) -> usize {
        let taken = self.enter_together(rows, 0..self.rows);
        let mut passed_over = 0;
        if taken < self.rows {
            passed_over += usize::from(!self.write_again(rows, taken));
            for row in taken + 1..self.rows {
                passed_over += usize::from(!self.enter_alone(rows, row));
            }
        }
        // The held rows are freed next.
        self.show(rows, 0).clear();
        passed_over
    }

    /// Makes the entries of some rows. Returns the first whose key is there by now, which it takes back, or the end.
    fn enter_together(self, rows: &HeldRows<Vec<Column>>, some: Range<usize>) -> usize {
        let numbers = self.number(some.start)..self.number(some.end);
        speculation::begin_rows(self.table, self.xid, numbers);
        let id_of = |row| tid::from_row(self.number(row));
        let indexes = self.indexes;
        let end = indexes.enter_until_taken(rows, some.clone(), self.header(), id_of);
        if end < some.end {
            speculation::take_back(self.table, self.number(end));
        }
        speculation::release(self.xid);
        if self.table.is_logically_logged() {
            for row in some.start..end {
                logged_rows::log_inserted_slot(self.table, self.show(rows, row), self.xid);
            }
        }
        end
    }

    /// Makes the entries of a row after another session has made the key of one before. It may have made more of them,
    /// so the indexes are asked first: then a row that is taken back leaves no entries. Returns whether the row stays.
    fn enter_alone(self, rows: &HeldRows<Vec<Column>>, row: usize) -> bool {
        if !self.indexes.have_no_key_of(self.show(rows, row)) {
            speculation::take_back(self.table, self.number(row));
            return false;
        }
        self.enter_together(rows, row..row + 1) > row || self.write_again(rows, row)
    }

    /// Writes a row again that was taken back, if its key is not there after all: whoever made the key may have rolled
    /// back. Returns whether the row is there now.
    fn write_again(self, rows: &HeldRows<Vec<Column>>, row: usize) -> bool {
        loop {
            let slot = self.show(rows, row);
            if !self.indexes.have_no_key_of(slot) {
                return false;
            }
            let number = self.append(slot);
            slot.set_written(tid::from_row(number), self.table.oid(), self.header());
            speculation::begin_rows(self.table, self.xid, number..number + 1);
            let stays = self.indexes.enter_shown();
            if !stays {
                speculation::take_back(self.table, number);
            }
            speculation::release(self.xid);
            if stays {
                logged_rows::log_inserted_slot(self.table, slot, self.xid);
                return true;
            }
        }
    }

    /// Appends the row in the slot by itself, and returns its number.
    fn append(self, slot: Slot<'_>) -> u64 {
        let row = RowColumns::of_slot(self.table, slot);
        let options = self.options | pg_sys::TABLE_INSERT_NO_LOGICAL as i32;
        let (kinds, columns) = (row.kinds(), row.columns());
        insert::append(
            self.table,
            kinds,
            columns,
            1,
            self.xid,
            self.command,
            options,
        )
    }

    fn show(self, rows: &HeldRows<Vec<Column>>, row: usize) -> Slot<'static> {
        let id = tid::from_row(self.number(row));
        self.indexes.show(rows, row, id, self.header())
    }

    fn header(self) -> RowHeader {
        RowHeader::new(self.xid, self.command)
    }

    fn number(self, row: usize) -> u64 {
        self.first_row + row as u64
    }
}
