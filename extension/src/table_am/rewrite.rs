//! VACUUM FULL and CLUSTER: rows that anybody may still see are copied into a new file, in runs as
//! long as possible. CLUSTER by an index sorts the rows on the way.
//!
//! Rows keep their transaction: consecutive kept rows of the same transaction and command, or all frozen, become one
//! run. A deletion that some snapshot may not see yet moves along as a tombstone under the row's new number.

use std::collections::{HashMap, HashSet};

use lanes_columnar::column::Column;

use crate::pg::access::CopyCounts;
use crate::pg::cluster_sort::{ClusterSort, RowOrigin};
use crate::pg::datum::RowIntake;
use crate::pg::table::OpenTable;
use crate::pg::{ports, progress};
use crate::storage::directory::{FLAG_DEAD, FLAG_FADING, FLAG_FROZEN};
use crate::storage::metapage::Meta;
use crate::storage::tombstone::{Tail, Tombstone, kind};
use crate::table::append::PreparedRun;
use crate::table::reader::{Access, Content, Reader, SegmentView, ViewRequest};
use crate::table::visibility::{XidStatus, xid_precedes, xid_status};
use crate::table::{insert, pending_rows};
use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};
use lanes_columnar::streamed::StreamMemory;

/// The number of rows between two reports of progress.
const REPORT_ROWS: u64 = 4096;

/// The inserting transaction of a run: xmin, cmin, and a flag if everybody sees it.
type Owner = (u32, u32, u32);

struct Copier<'a> {
    target: OpenTable<'a>,
    reader: &'a Reader<'a>,
    intake: RowIntake,
    columns: Vec<Column>,
    /// The old numbers of the gathered rows.
    rows: Vec<u64>,
    owner: Owner,
    followed: HashSet<u64>,
    renumbered: HashMap<u64, u64>,
    kept_tombstones: Vec<Tombstone>,
    /// Takes the rows before they are gathered.
    sort: Option<ClusterSort<'a>>,
}

/// `relation_copy_for_cluster`, which VACUUM FULL calls without an order and CLUSTER with one. Both tables are locked
/// exclusively and of one row type.
pub fn copy(
    source: OpenTable<'_>,
    target: OpenTable<'_>,
    sort: Option<ClusterSort<'_>>,
    horizon: u32,
) -> CopyCounts {
    let mut counts = CopyCounts::default();
    pending_rows::flush_table(source.oid());
    let mut reader = Reader::open(source);
    let Some(content) = reader.content.take() else {
        return counts;
    };
    let mut copier = Copier {
        target,
        reader: &reader,
        intake: RowIntake::new(source.descriptor(), &reader.shape.kinds),
        columns: reader.shape.columns(),
        rows: Vec::new(),
        owner: (0, 0, 0),
        followed: surviving_successors(&content, horizon),
        renumbered: HashMap::new(),
        kept_tombstones: Vec::new(),
        sort,
    };
    progress::copying(source.blocks());
    copier.copy_all(&content, horizon, &mut counts);
    copier.copy_sorted(&counts);
    copier.flush();
    copier.write_tombstones();
    counts
}

/// The rows that a surviving UPDATE tombstone points at.
fn surviving_successors(content: &Content, horizon: u32) -> HashSet<u64> {
    let tombstones = content.tombstones.borrow();
    tombstones
        .range(0, u64::MAX)
        .flat_map(|(_, list)| list)
        .filter(|t| t.kind == kind::UPDATE && fate(t, horizon) == Fate::Keep)
        .map(|t| t.next_row)
        .collect()
}

#[derive(PartialEq, Eq)]
enum Fate {
    /// Everybody sees the deletion: the row is dropped.
    Gone,
    /// Some snapshot may not see the deletion yet: row and tombstone are kept.
    Keep,
    /// The deletion does not count.
    Void,
}

fn fate(tombstone: &Tombstone, horizon: u32) -> Fate {
    if !tombstone.deletes() {
        return Fate::Void;
    }
    if tombstone.is_frozen() {
        return Fate::Gone;
    }
    match xid_status(tombstone.xmax) {
        XidStatus::Aborted => Fate::Void,
        XidStatus::Committed if xid_precedes(tombstone.xmax, horizon) => Fate::Gone,
        _ => Fate::Keep,
    }
}

impl Copier<'_> {
    fn copy_all(&mut self, content: &Content, horizon: u32, counts: &mut CopyCounts) {
        let mut memory = StreamMemory::default();
        for index in 0..content.runs.len() {
            let run = content.runs.get(index);
            // Nobody reads fading rows any more: VACUUM FULL waited for its lock until their readers had finished.
            let dead = run.flags & (FLAG_DEAD | FLAG_FADING) != 0
                || (run.flags & FLAG_FROZEN == 0 && xid_status(run.xmin) == XidStatus::Aborted);
            if dead {
                counts.removed += run.rows as f64;
                continue;
            }
            let frozen = run.flags & FLAG_FROZEN != 0
                || (xid_status(run.xmin) == XidStatus::Committed
                    && xid_precedes(run.xmin, horizon));
            let owner = match frozen {
                true => (run.xmin, 0, FLAG_FROZEN),
                false => (run.xmin, run.cmin, 0),
            };
            let (mut from, end) = (run.first_row, run.end_row());
            while from < end {
                let segment = segment_of(from);
                let to = end.min(segment_first_row(segment) + segment_rows_max(segment) as u64);
                let request = ViewRequest {
                    reader: self.reader,
                    content,
                    rows: from..to,
                    access: Access::Once(&mut memory),
                };
                let mut view = request.open();
                view.fill(view.place(from)..view.place(to), None);
                for row in from..to {
                    if self.is_kept(content, row, horizon, counts) {
                        self.copy_row(&view, row, owner);
                    }
                }
                memory = view.into_memory().unwrap_or_default();
                from = to;
                let written = if self.sort.is_some() {
                    0.0
                } else {
                    counts.kept
                };
                progress::copied_rows((counts.kept + counts.removed) as u64, written as u64);
                ports::CHECK_FOR_INTERRUPTS();
            }
        }
    }

    /// Gathers a row, or gives it to the sort.
    #[inline]
    fn copy_row(&mut self, view: &SegmentView, row: u64, owner: Owner) {
        let place = view.place(row);
        if let Some(sort) = &mut self.sort {
            let (xmin, cmin, flags) = owner;
            let origin = RowOrigin {
                xmin,
                cmin,
                is_frozen: flags & FLAG_FROZEN != 0,
                row,
            };
            sort.put(view.outlet(), place, origin);
        } else {
            self.start_row(owner);
            let columns = &mut self.columns;
            self.intake.push_row(columns, view.outlet(), place);
            self.rows.push(row);
        }
    }

    /// Gathers the rows that were sorted.
    fn copy_sorted(&mut self, counts: &CopyCounts) {
        let Some(mut sort) = self.sort.take() else {
            return;
        };
        progress::sorting();
        sort.sort();
        progress::writing_sorted();
        let (mut written, read) = (0, counts.kept + counts.removed);
        while let Some(origin) = sort.advance() {
            let flags = if origin.is_frozen { FLAG_FROZEN } else { 0 };
            self.start_row((origin.xmin, origin.cmin, flags));
            sort.push_current(&mut self.intake, &mut self.columns);
            self.rows.push(origin.row);
            written += 1;
            if written % REPORT_ROWS == 0 {
                progress::copied_rows(read as u64, written);
            }
            ports::CHECK_FOR_INTERRUPTS();
        }
        progress::copied_rows(read as u64, written);
    }

    /// Whether a row moves to the new file. Its deletion moves along if some snapshot may not see it.
    fn is_kept(
        &mut self,
        content: &Content,
        row: u64,
        horizon: u32,
        counts: &mut CopyCounts,
    ) -> bool {
        let tombstones = content.tombstones.borrow();
        let mut of_row = tombstones.of_row(row).iter();
        if let Some(deletion) = of_row.find(|t| fate(t, horizon) != Fate::Void) {
            if fate(deletion, horizon) == Fate::Gone {
                counts.removed += 1.0;
                return false;
            }
            counts.recently_dead += 1.0;
            self.kept_tombstones.push(*deletion);
        }
        counts.kept += 1.0;
        true
    }

    /// Writes the gathered rows if the next row cannot join them.
    fn start_row(&mut self, owner: Owner) {
        let same = owner == self.owner || (owner.2 & self.owner.2 & FLAG_FROZEN != 0);
        let full = insert::is_full(&self.columns, self.rows.len());
        if !self.rows.is_empty() && (!same || full) {
            self.flush();
        }
        self.owner = owner;
    }

    fn flush(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        let (xmin, cmin, flags) = self.owner;
        let first = {
            PreparedRun::write(
                self.target,
                &self.reader.shape.kinds,
                &self.columns,
                self.rows.len(),
            )
            .publish(xmin, cmin, flags)
        };
        let tracked: HashSet<u64> = self.kept_tombstones.iter().map(|t| t.row).collect();
        for (offset, old) in self.rows.drain(..).enumerate() {
            if self.followed.contains(&old) || tracked.contains(&old) {
                self.renumbered.insert(old, first + offset as u64);
            }
        }
        for column in &mut self.columns {
            column.clear();
        }
    }

    fn write_tombstones(&self) {
        for old in &self.kept_tombstones {
            let Some(&row) = self.renumbered.get(&old.row) else {
                continue;
            };
            let next = self.renumbered.get(&old.next_row).copied();
            let kind = if next.is_some() {
                old.kind
            } else {
                kind::DELETE
            };
            let tombstone = Tombstone {
                row,
                next_row: next.unwrap_or(row),
                kind,
                ..*old
            };
            let meta = Meta::load_or_create(self.target);
            Tail::lock(self.target, &meta).push_alone(self.target, &tombstone);
        }
    }
}
