//! Tombstones: the rows that they name.

use super::Findings;
use crate::pg::table::OpenTable;
use crate::storage::directory;
use crate::storage::tombstone::{FLAG_MOVED, Tombstone, kind};
use crate::table::reader::Content;
use crate::table::visibility::{XidStatus, xid_status};

/// Checks that tombstones name rows that the table has or had. Row numbers only grow, and tombstones are read first.
pub fn check(table: OpenTable<'_>, content: &Content, findings: &mut Findings) {
    let end = directory::next_row(table);
    for (row, list) in content.tombstones.borrow().range(0, u64::MAX) {
        let mut add = |problem: String| findings.add(format!("tombstones of row {row}"), problem);
        if row >= end {
            add(format!("the table has {end} rows"));
        }
        for tombstone in list {
            if tombstone.kind > kind::LOCK {
                add(format!("there is no tombstone of kind {}", tombstone.kind));
            }
            let has_version = tombstone.kind == kind::UPDATE && tombstone.flags & FLAG_MOVED == 0;
            if has_version && counts(tombstone) && tombstone.next_row >= end {
                add(format!(
                    "its next version is row {}, which the table never had",
                    tombstone.next_row
                ));
            }
        }
        let deletions = list.iter().filter(|tombstone| tombstone.deletes());
        if deletions.filter(|tombstone| counts(tombstone)).count() > 1 {
            add("the row is deleted more than once".to_owned());
        }
    }
}

/// Whether those who wrote a tombstone committed.
fn counts(tombstone: &Tombstone) -> bool {
    tombstone.is_frozen() || xid_status(tombstone.xmax) == XidStatus::Committed
}
