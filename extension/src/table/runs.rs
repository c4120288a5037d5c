//! The list of a table's runs.
//!
//! It is the directory's list, without runs that a part covers and with the segments of parts in
//! their places. Whoever scans the table completes the list from where it ends. The segments after
//! the last run of the directory are always added together with that run, so that a writer that
//! adds its own run next leaves none out.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use lanes_columnar::arena::{Position, Relation, RelationKey, RunEntry};

use super::arena_budget;
use super::shape::arena_key;
use crate::pg::shmem::{self, ArenaLocks};
use crate::pg::table::OpenTable;
use crate::storage::directory;
use crate::storage::metapage::Meta;
use crate::storage::part::Parts;

/// The runs of a table as of one moment. The list is the arena's, or this backend's own copy if the
/// arena has none: for temporary tables, without a preloaded library, or if the arena has no room
/// even for a directory.
#[derive(Clone)]
pub enum Runs {
    Shared {
        // Clones share this pin, because rows are looked up one by one.
        cached: Rc<Relation<ArenaLocks>>,
        runs: u32,
    },
    Private {
        entries: Rc<RefCell<PrivateDirectory>>,
        runs: usize,
    },
}

/// A table's directory in this backend's own memory, which is completed from where it ends.
pub struct PrivateDirectory {
    generation: u64,
    position: Position,
    entries: Vec<RunEntry>,
}

/// The number of tables whose directories a backend keeps for itself. When there are more, it
/// forgets all of them.
const PRIVATE_DIRECTORIES_MAX: usize = 32;

thread_local! {
    static PRIVATE: RefCell<HashMap<RelationKey, Rc<RefCell<PrivateDirectory>>>> = RefCell::new(HashMap::new());
}

impl PrivateDirectory {
    /// This backend's copy of the table's directory, brought up to date.
    fn of(table: OpenTable<'_>, meta: &Meta) -> Rc<RefCell<PrivateDirectory>> {
        let key = meta.key(table);
        let shared = PRIVATE.with_borrow_mut(|known| {
            if known.len() >= PRIVATE_DIRECTORIES_MAX && !known.contains_key(&key) {
                known.clear();
            }
            // Scans in progress keep the copy of their own generation.
            if known
                .get(&key)
                .is_none_or(|d| d.borrow().generation != meta.generation)
            {
                let empty = PrivateDirectory {
                    generation: meta.generation,
                    position: Position::default(),
                    entries: Vec::new(),
                };
                known.insert(key, Rc::new(RefCell::new(empty)));
            }
            known[&key].clone()
        });
        let position = shared.borrow().position;
        let end_row = shared.borrow().entries.last().map_or(0, RunEntry::end_row);
        {
            walk_runs(table, meta, position, end_row, |runs, next| {
                let mut directory = shared.borrow_mut();
                directory.entries.extend_from_slice(runs);
                directory.position = next;
                true
            });
        }
        shared
    }
}

/// Calls `visit` with the runs from `position` of the directory on that begin at or after
/// `end_row`, and with the position after them. Stops early when `visit` returns false.
fn walk_runs(
    table: OpenTable<'_>,
    meta: &Meta,
    position: Position,
    mut end_row: u64,
    mut visit: impl FnMut(&[RunEntry], Position) -> bool,
) {
    let parts = Parts::of(table, meta);
    let mut runs: Vec<RunEntry> = Vec::new();
    let (mut last, mut goes_on) = (position, true);
    directory::walk(
        table,
        meta.directory_head,
        position,
        |block, entries, next| {
            runs.clear();
            for entry in entries {
                if parts.of_row(entry.first_row).is_none() {
                    parts.push_runs(table, end_row, entry.first_row, &mut runs);
                    runs.push(*entry);
                    end_row = entry.end_row();
                }
            }
            if next.block == block {
                parts.push_runs(table, end_row, u64::MAX, &mut runs);
                end_row = runs.last().map_or(end_row, RunEntry::end_row).max(end_row);
            }
            last = next;
            goes_on = visit(&runs, next);
            goes_on
        },
    );
    runs.clear();
    parts.push_runs(table, end_row, u64::MAX, &mut runs);
    if goes_on && !runs.is_empty() {
        // No entries are left on the last page of the directory.
        visit(&runs, last);
    }
}

impl Runs {
    /// All runs that the directory has now, with the arena's rows of a shape.
    pub fn of(table: OpenTable<'_>, meta: &Meta, fingerprint: u64) -> Runs {
        if !table.uses_local_buffers() {
            let cached = shmem::arena()
                .and_then(|arena| arena.open(arena_key(table, meta, fingerprint), meta.generation));
            if let Some(cached) = cached
                && let Some(runs) = catch_up(table, meta, &cached)
            {
                arena_budget::tell(table, &cached);
                let cached = Rc::new(cached);
                return Runs::Shared { cached, runs };
            }
        }
        let entries = PrivateDirectory::of(table, meta);
        let runs = entries.borrow().entries.len();
        Runs::Private { entries, runs }
    }

    /// Adds the runs that the directory has gained; false: the table has another generation by now,
    /// or there is no room.
    pub fn read_on(&mut self, table: OpenTable<'_>, meta: &Meta) -> bool {
        let position = match self {
            Runs::Shared { cached, .. } => cached.position(),
            Runs::Private { entries, .. } => entries.borrow().position,
        };
        let is_complete = directory::ends_at(table, position);
        match self {
            Runs::Shared { cached, runs }
                if is_complete && cached.generation() == meta.generation =>
            {
                *runs = cached.runs();
                true
            }
            Runs::Shared { cached, runs } => match catch_up(table, meta, cached) {
                Some(count) => {
                    *runs = count;
                    true
                }
                None => false,
            },
            Runs::Private { .. } => is_complete,
        }
    }

    /// The number of runs.
    pub fn len(&self) -> usize {
        match self {
            Runs::Shared { runs, .. } => *runs as usize,
            Runs::Private { runs, .. } => *runs,
        }
    }

    /// One run.
    pub fn get(&self, index: usize) -> RunEntry {
        match self {
            Runs::Shared { cached, .. } => cached.run(index as u32),
            Runs::Private { entries, .. } => entries.borrow().entries[index],
        }
    }

    /// Notes flags that a visibility check has found.
    pub fn learn(&mut self, index: usize, flags: u32) {
        match self {
            Runs::Shared { cached, .. } => cached.set_flags(index as u32, flags),
            Runs::Private { entries, .. } => entries.borrow_mut().entries[index].flags |= flags,
        }
    }

    /// The first row of the first run; 0 if there is none.
    pub fn first_row(&self) -> u64 {
        match self.len() {
            0 => 0,
            _ => self.get(0).first_row,
        }
    }

    /// The row after the last one.
    pub fn end_row(&self) -> u64 {
        match self.len() {
            0 => 0,
            len => {
                let last = self.get(len - 1);
                last.first_row + last.rows as u64
            }
        }
    }

    /// The run that holds a row.
    pub fn find(&self, row: u64) -> Option<usize> {
        if let Runs::Shared { cached, runs } = self {
            let index = cached.find_run(row).filter(|index| index < runs);
            return index.map(|index| index as usize);
        }
        let index = self.first_ending_after(row);
        (index < self.len() && self.get(index).first_row <= row).then_some(index)
    }

    /// The first run that ends after `row`.
    pub fn first_ending_after(&self, row: u64) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let run = self.get(middle);
            if run.first_row + run.rows as u64 > row {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// The table in the arena, if it is there.
    pub fn cached(&self) -> Option<&Rc<Relation<ArenaLocks>>> {
        match self {
            Runs::Shared { cached, .. } => Some(cached),
            Runs::Private { .. } => None,
        }
    }
}

/// Adds the directory's new runs to the arena's list. `None`: there is no room, or the arena has
/// another generation.
fn catch_up(table: OpenTable<'_>, meta: &Meta, cached: &Relation<ArenaLocks>) -> Option<u32> {
    loop {
        let (mut confirmed, position) = cached.published();
        // The arena has a later generation than the caller. The head of the chain that the caller
        // knows may be unlinked, and the caller does not know the newer parts. So it starts over.
        if cached.generation() != meta.generation {
            return None;
        }
        let end_row = match confirmed {
            0 => 0,
            runs => cached.run(runs - 1).end_row(),
        };
        let mut complete = true;
        walk_runs(table, meta, position, end_row, |runs, next| {
            complete = cached.publish(confirmed, runs, next);
            confirmed += if complete { runs.len() as u32 } else { 0 };
            complete
        });
        if complete {
            return Some(confirmed);
        }
        // Another backend has added more runs, or there is no room.
        if cached.published().0 == confirmed {
            return None;
        }
    }
}
