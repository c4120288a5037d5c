//! Which rows of a stretch a snapshot sees.

use lanes_columnar::arena::RunEntry;

use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;
use crate::storage::directory::{FLAG_DEAD, FLAG_FROZEN};
use crate::table::reader::Content;
use crate::table::visibility::{XidStatus, xid_status};

/// Consecutive visible rows of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub from: u64,
    pub to: u64,
    pub xmin: u32,
    pub cmin: u32,
}

/// The visible rows of `[start, end)` as ranges, ascending. No snapshot means every row there is.
pub fn visible_ranges(
    table: OpenTable<'_>,
    content: &mut Content,
    snapshot: Option<Snapshot<'_>>,
    serializable: bool,
    start: u64,
    end: u64,
) -> Vec<Range> {
    let mut ranges = Vec::new();
    let tombstones = content.tombstones.borrow();
    for index in content.runs.first_ending_after(start)..content.runs.len() {
        let run = content.runs.get(index);
        if run.first_row >= end {
            break;
        }
        let mut learned = 0;
        if !snapshot.is_none_or(|s| s.sees_run(&run, |flags| learned = flags)) {
            if serializable {
                report_unseen(table, snapshot, &run);
            }
        } else {
            let range = Range {
                from: run.first_row.max(start),
                to: (run.first_row + run.rows as u64).min(end),
                xmin: run.xmin,
                cmin: run.cmin,
            };
            ranges.push(range);
        }
        if learned != 0 {
            content.runs.learn(index, learned);
        }
    }
    let Some(snapshot) = snapshot.filter(|_| !tombstones.is_empty()) else {
        return ranges;
    };
    let mut alive = Vec::with_capacity(ranges.len());
    for mut range in ranges {
        for (row, list) in tombstones.range(range.from, range.to) {
            if list.iter().any(|t| snapshot.sees_deletion(t)) {
                if range.from < row {
                    alive.push(Range { to: row, ..range });
                }
                range.from = row + 1;
            } else if serializable {
                for tombstone in list.iter().filter(|t| t.deletes() && !t.is_frozen()) {
                    table.check_conflict_out(tombstone.xmax, snapshot);
                }
            }
        }
        if range.from < range.to {
            alive.push(range);
        }
    }
    alive
}

/// Serializable isolation: a run that this snapshot does not see was written by a transaction that we ignore.
fn report_unseen(table: OpenTable<'_>, snapshot: Option<Snapshot<'_>>, run: &RunEntry) {
    if let Some(snapshot) = snapshot
        && run.flags & (FLAG_DEAD | FLAG_FROZEN) == 0
        && !matches!(
            xid_status(run.xmin),
            XidStatus::Current | XidStatus::Aborted
        )
    {
        table.check_conflict_out(run.xmin, snapshot);
    }
}
