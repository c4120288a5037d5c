//! VACUUM FULL: copies what anybody may still see into a new file, in runs as long as they can be.
//!
//! Rows keep their transaction: consecutive kept rows of the same transaction and command, or all frozen, become one
//! run. A deletion that some snapshot may not see yet moves along as a tombstone under the row's new number.

use std::collections::{HashMap, HashSet};

use lanes_columnar::column::Column;
use pgrx::pg_sys;

use super::{insert, refuse};
use crate::pg::datum::RowIntake;
use crate::pg::ports;
use crate::storage::directory::{FLAG_DEAD, FLAG_FADING, FLAG_FROZEN};
use crate::storage::metapage::Meta;
use crate::storage::tombstone::{Tail, Tombstone, kind};
use crate::table::append::PreparedRun;
use crate::table::reader::{Access, Content, Reader, ViewRequest};
use crate::table::visibility::{XidStatus, xid_precedes, xid_status};
use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};
use lanes_columnar::streamed::StreamMemory;

/// Rows kept and dropped.
#[derive(Default)]
pub struct Counts {
    pub kept: f64,
    pub removed: f64,
    pub recently_dead: f64,
}

struct Copier<'a> {
    target: pg_sys::Relation,
    reader: &'a Reader,
    intake: RowIntake,
    columns: Vec<Column>,
    /// Old numbers of the rows that are gathered.
    rows: Vec<u64>,
    owner: (u32, u32, u32),
    followed: HashSet<u64>,
    renumbered: HashMap<u64, u64>,
    kept_tombstones: Vec<Tombstone>,
}

/// `relation_copy_for_cluster`, which VACUUM FULL calls without an index.
///
/// # Safety
/// Both tables are exclusively locked lanes tables of one row type.
pub unsafe fn copy(
    source: pg_sys::Relation,
    target: pg_sys::Relation,
    index: pg_sys::Relation,
    horizon: u32,
) -> Counts {
    if !index.is_null() {
        refuse::indexes();
    }
    let mut counts = Counts::default();
    // SAFETY: the caller's promise.
    unsafe {
        let mut reader = Reader::open(source);
        let Some(content) = reader.content.take() else {
            return counts;
        };
        let mut copier = Copier {
            target,
            reader: &reader,
            intake: RowIntake::new((*source).rd_att, &reader.shape.kinds),
            columns: reader.shape.columns(),
            rows: Vec::new(),
            owner: (0, 0, 0),
            followed: surviving_successors(&content, horizon),
            renumbered: HashMap::new(),
            kept_tombstones: Vec::new(),
        };
        copier.copy_all(&content, horizon, &mut counts);
        copier.flush();
        copier.write_tombstones();
    }
    counts
}

/// Rows that a surviving UPDATE tombstone points at.
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
    /// The deletion counts for everybody: the row goes.
    Gone,
    /// Somebody may not see the deletion yet: row and tombstone stay.
    Keep,
    /// No deletion after all.
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
    unsafe fn copy_all(&mut self, content: &Content, horizon: u32, counts: &mut Counts) {
        let descriptor = self.reader.relation;
        // SAFETY: `copy`'s caller promised an open table.
        let natts = unsafe { (*(*descriptor).rd_att).natts as usize };
        let mut values = vec![pg_sys::Datum::null(); natts];
        let mut nulls = vec![true; natts];
        let mut memory = StreamMemory::default();
        for index in 0..content.runs.len() {
            let run = content.runs.get(index);
            // Nobody who saw fading rows reads on: the lock waited for who had read the table.
            let dead = run.flags & (FLAG_DEAD | FLAG_FADING) != 0
                || (run.flags & FLAG_FROZEN == 0 && xid_status(run.xmin) == XidStatus::Aborted);
            if dead {
                counts.removed += run.rows as f64;
                continue;
            }
            let frozen = run.flags & FLAG_FROZEN != 0
                || (xid_status(run.xmin) == XidStatus::Committed
                    && xid_precedes(run.xmin, horizon));
            let owner = if frozen {
                (run.xmin, 0, FLAG_FROZEN)
            } else {
                (run.xmin, run.cmin, 0)
            };
            let (mut from, end) = (run.first_row, run.first_row + run.rows as u64);
            while from < end {
                let segment = segment_of(from);
                let to = end.min(segment_first_row(segment) + segment_rows_max(segment) as u64);
                // SAFETY: the rows are the run's; the view lives while its values are copied.
                unsafe {
                    let request = ViewRequest {
                        reader: self.reader,
                        content,
                        rows: from..to,
                        access: Access::Once(&mut memory),
                    };
                    let mut view = request.open();
                    view.fill(view.place(from)..view.place(to), None);
                    for row in from..to {
                        let tombstones = content.tombstones.borrow();
                        let deletion = tombstones
                            .of_row(row)
                            .iter()
                            .find(|t| fate(t, horizon) != Fate::Void);
                        if let Some(deletion) = deletion {
                            if fate(deletion, horizon) == Fate::Gone {
                                counts.removed += 1.0;
                                continue;
                            }
                            counts.recently_dead += 1.0;
                            self.kept_tombstones.push(*deletion);
                        }
                        counts.kept += 1.0;
                        self.start_row(owner);
                        (*view.outlet()).read(
                            view.place(row),
                            0,
                            natts,
                            values.as_mut_ptr(),
                            nulls.as_mut_ptr(),
                        );
                        self.intake
                            .push(&mut self.columns, values.as_ptr(), nulls.as_ptr());
                        self.rows.push(row);
                    }
                    memory = view.into_memory().unwrap_or_default();
                }
                from = to;
                ports::CHECK_FOR_INTERRUPTS();
            }
        }
    }

    /// Writes what is gathered if the next row cannot join it.
    unsafe fn start_row(&mut self, owner: (u32, u32, u32)) {
        let same = owner == self.owner || (owner.2 & self.owner.2 & FLAG_FROZEN != 0);
        let full = insert::is_full(&self.columns, self.rows.len());
        if !self.rows.is_empty() && (!same || full) {
            // SAFETY: `copy`'s caller promised open tables.
            unsafe { self.flush() };
        }
        self.owner = owner;
    }

    unsafe fn flush(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        let (xmin, cmin, flags) = self.owner;
        // SAFETY: `copy`'s caller promised an exclusively locked target of the same row type.
        let first = unsafe {
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

    unsafe fn write_tombstones(&self) {
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
            // SAFETY: `copy`'s caller promised an exclusively locked target.
            unsafe {
                let meta = Meta::load_or_create(self.target);
                Tail::lock(self.target, &meta).push(self.target, &tombstone);
            }
        }
    }
}
