//! Groups that a node puts aside before it has read all of its rows, because they take too much memory.
//!
//! PostgreSQL combines the transition states of a group that several processes return, or the nodes of several
//! partitions. So one node may return a group several times too. Where it cannot let [rows wait](super::waiting_rows),
//! it bounds its memory in this way:
//!
//! ```text
//! 1  groups := none
//! 2  for each row: add it to its group; groups take too much memory ──► put their rows aside, forget the groups
//! 3  return the rows that were put aside, then the groups
//! ```
//! Rows that are put aside take `work_mem`, and then temporary files.

use super::results::Groups;
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::row_store::{RowDescriptor, RowQueue};
use crate::pg::exec::slot::Slot;

/// So few groups are not put aside, whatever they take. The tables of keys take memory even if they are almost empty,
/// and a small limit would put each group aside at once.
const GROUPS_MIN: usize = 256;

/// The rows of groups that were put aside.
pub struct EarlyGroups {
    rows: RowQueue,
    /// How many groups were put aside.
    pub groups: usize,
}

impl EarlyGroups {
    /// Whether so many groups that take so many bytes are put aside.
    pub fn are_too_large(groups: usize, bytes: usize, limit: usize) -> bool {
        bytes > limit && groups >= GROUPS_MIN
    }

    /// No groups yet, in the current memory context.
    pub fn new(node: ExecNode<'_>) -> EarlyGroups {
        EarlyGroups {
            rows: RowQueue::new(RowDescriptor::of_slot(node.scan_slot())),
            groups: 0,
        }
    }

    /// Puts aside the rows of all groups.
    pub fn put(&mut self, groups: &mut Groups, node: ExecNode<'_>) {
        let (context, slot) = (node.context(), node.scan_slot());
        loop {
            context.reset();
            let mut row = slot.writer();
            if !context.memory().enter(|| groups.write_next(&mut row)) {
                break;
            }
            self.rows.put_slot(row.store());
            self.groups += 1;
        }
    }

    /// The next row that was put aside, valid until the one after it. All rows are dropped at the end.
    pub fn next_row(&mut self) -> Option<Slot> {
        self.rows.next_row()
    }

    /// Deletes temporary files.
    pub fn free(self) {
        self.rows.free();
    }
}
