//! The rows of a stretch that a snapshot sees.

use lanes_columnar::arena::RunEntry;

use crate::pg::snapshot::{Snapshot, SnapshotKind};
use crate::pg::table::OpenTable;
use crate::storage::directory::{FLAG_DEAD, FLAG_FROZEN};
use crate::storage::tombstone::{Tombstone, Tombstones};
use crate::table::reader::Content;
use crate::table::runs::Runs;
use crate::table::visibility::{XidStatus, xid_precedes, xid_status};

/// Consecutive visible rows of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub from: u64,
    pub to: u64,
    pub xmin: u32,
    pub cmin: u32,
}

/// The visible rows of `[start, end)` as ranges, ascending. Without a snapshot these are all rows.
pub fn visible_ranges(
    table: OpenTable<'_>,
    content: &mut Content,
    snapshot: Option<Snapshot<'_>>,
    serializable: bool,
    start: u64,
    end: u64,
) -> Vec<Range> {
    let (mut ranges, mut indexes) = (Vec::new(), Vec::new());
    let tombstones = content.tombstones.borrow();
    for index in content.runs.first_ending_after(start)..content.runs.len() {
        let run = content.runs.get(index);
        if run.first_row >= end {
            break;
        }
        let mut learned = 0;
        if !snapshot.is_none_or(|s| s.sees_run(&run, |flags| learned = flags)) {
            if serializable && let Some(snapshot) = snapshot {
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
            indexes.push((index, run.rows == 1));
        }
        if learned != 0 {
            content.runs.learn(index, learned);
        }
    }
    let Some(snapshot) = snapshot.filter(|_| !tombstones.is_empty()) else {
        return ranges;
    };
    let (alive, deleted) = without_deleted(
        table,
        &tombstones,
        snapshot,
        serializable,
        ranges.into_iter().zip(indexes),
    );
    drop(tombstones);
    if snapshot.kind() == SnapshotKind::Mvcc {
        learn_gone(table, &mut content.runs, &deleted);
    }
    alive
}

/// Cuts the rows whose deletion the snapshot sees out of ranges. With each range come the index of
/// its run, and whether the run has one row. Also returns the runs of one row whose row is deleted,
/// each with the transaction that deleted the row.
#[inline]
fn without_deleted(
    table: OpenTable<'_>,
    tombstones: &Tombstones,
    snapshot: Snapshot<'_>,
    serializable: bool,
    ranges: impl ExactSizeIterator<Item = (Range, (usize, bool))>,
) -> (Vec<Range>, Vec<(usize, u32)>) {
    let mut alive = Vec::with_capacity(ranges.len());
    let mut deleted = Vec::new();
    let mut deletions = Deletions::under(snapshot);
    for (mut range, (index, is_one_row)) in ranges {
        for (row, list) in tombstones.range(range.from, range.to) {
            if let Some(deletion) = list.iter().find(|t| deletions.sees(t)) {
                if is_one_row {
                    deleted.push((index, deletion.xmax));
                }
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
    (alive, deleted)
}

/// The deletions that a snapshot sees. Most rows are deleted by few commands, and under an MVCC
/// snapshot the result for a command does not change.
struct Deletions<'s> {
    snapshot: Snapshot<'s>,
    /// The results for the transactions and commands that were checked last.
    known: Vec<(u32, u32, bool)>,
}

impl<'s> Deletions<'s> {
    /// The number of results that are kept.
    const KNOWN_MAX: usize = 8;

    fn under(snapshot: Snapshot<'s>) -> Deletions<'s> {
        Deletions {
            snapshot,
            known: Vec::new(),
        }
    }

    /// Whether the snapshot sees the deletion of a tombstone.
    fn sees(&mut self, tombstone: &Tombstone) -> bool {
        let is_plain = tombstone.deletes() && !tombstone.is_frozen();
        if !is_plain || self.snapshot.kind() != SnapshotKind::Mvcc {
            return self.snapshot.sees_deletion(tombstone);
        }
        let (xid, command) = (tombstone.xmax, tombstone.cmax);
        let mut known = self.known.iter();
        if let Some((.., seen)) = known.find(|known| (known.0, known.1) == (xid, command)) {
            return *seen;
        }
        let seen = self.snapshot.sees_deletion(tombstone);
        if self.known.len() == Self::KNOWN_MAX {
            self.known.clear();
        }
        self.known.push((xid, command, seen));
        seen
    }
}

/// A scan that meets so many deleted rows that are runs of their own marks the runs that are gone.
const DELETED_MIN: usize = 32;

/// Marks runs of one row that nobody will see any more, by the transactions that deleted their
/// rows. Later scans then pass them quickly: a row that is updated again and again leaves many of
/// them until the next VACUUM.
fn learn_gone(table: OpenTable<'_>, runs: &mut Runs, deleted: &[(usize, u32)]) {
    if deleted.len() < DELETED_MIN {
        return;
    }
    let horizon = table.oldest_non_removable_xid();
    for &(index, xmax) in deleted {
        if xid_precedes(xmax, horizon) {
            runs.learn(index, FLAG_DEAD);
        }
    }
}

/// For serializable isolation, notes that a run that this snapshot does not see was written by a
/// concurrent transaction.
pub fn report_unseen(table: OpenTable<'_>, snapshot: Snapshot<'_>, run: &RunEntry) {
    if run.flags & (FLAG_DEAD | FLAG_FROZEN) == 0
        && !matches!(
            xid_status(run.xmin),
            XidStatus::Current | XidStatus::Aborted
        )
    {
        table.check_conflict_out(run.xmin, snapshot);
    }
}
