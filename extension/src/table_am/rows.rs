//! The rows of lanes tables: INSERT, UPDATE, DELETE, row locks, rows by their ids.

use pgrx::pg_sys::{self, CommandId, ItemPointerData, TM_FailureData, TM_Result};

use super::modify;
use super::routine::LanesTable;
use crate::pg::access::{Conflicts, RowAccess, RowLock, Updated};
use crate::pg::slot::Slot;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;
use crate::table::{insert, kept, one_row, pending_rows, speculation};

impl RowAccess for LanesTable {
    fn fetch(
        table: OpenTable<'_>,
        id: &ItemPointerData,
        snapshot: Snapshot<'_>,
        slot: Slot<'_>,
    ) -> bool {
        one_row::fetch(table, id, snapshot, slot)
    }

    fn is_visible(table: OpenTable<'_>, slot: Slot<'_>, snapshot: Snapshot<'_>) -> bool {
        one_row::exists(table, &slot.tid(), snapshot)
    }

    fn follow_updates(table: OpenTable<'_>, snapshot: Snapshot<'_>, id: &mut ItemPointerData) {
        modify::latest(table, snapshot, id);
    }

    fn insert(
        table: OpenTable<'static>,
        slot: Slot<'_>,
        command: CommandId,
        options: i32,
        is_bulk: bool,
    ) {
        if !pending_rows::gather(is_bulk, table, slot, command, options) {
            insert::insert_slots(table, std::iter::once(slot), command, options);
        }
    }

    fn insert_all<'s>(
        table: OpenTable<'_>,
        slots: impl ExactSizeIterator<Item = Slot<'s>>,
        command: CommandId,
        options: i32,
    ) {
        insert::insert_slots(table, slots, command, options);
    }

    fn finish_bulk_insert(table: OpenTable<'_>) {
        // Rows that were gathered for it must be written before it is closed.
        pending_rows::flush_table(table.oid());
    }

    fn insert_speculatively(
        table: OpenTable<'_>,
        slot: Slot<'_>,
        command: CommandId,
        options: i32,
        token: u32,
    ) {
        // Logged when it is sure to stay.
        let options = options | pg_sys::TABLE_INSERT_NO_LOGICAL as i32;
        insert::insert_slots(table, std::iter::once(slot), command, options);
        speculation::begin(table, slot, token);
    }

    fn complete_speculation(table: OpenTable<'_>, slot: Slot<'_>, stays: bool) {
        speculation::complete(table, slot, stays);
        // The executor asks the indexes once more for the keys of a row that was taken back, so it still has to see
        // them.
        if stays {
            pending_rows::note_single_row(table);
        }
    }

    fn delete(
        table: OpenTable<'_>,
        id: &ItemPointerData,
        command: CommandId,
        conflicts: Conflicts<'_>,
        is_moved: bool,
        failure: &mut TM_FailureData,
    ) -> TM_Result::Type {
        modify::delete(table, id, command, conflicts, is_moved, failure)
    }

    fn update(
        table: OpenTable<'_>,
        id: &ItemPointerData,
        slot: Slot<'_>,
        command: CommandId,
        conflicts: Conflicts<'_>,
        failure: &mut TM_FailureData,
    ) -> Updated {
        let needs_entries = kept::indexes(table).any;
        let (result, mode) = modify::update(table, id, slot, command, conflicts, failure);
        Updated {
            result,
            mode,
            needs_entries,
        }
    }

    fn lock(
        table: OpenTable<'_>,
        id: &mut ItemPointerData,
        slot: Slot<'_>,
        request: RowLock,
        failure: &mut TM_FailureData,
    ) -> TM_Result::Type {
        modify::lock(table, id, slot, request, failure)
    }
}
