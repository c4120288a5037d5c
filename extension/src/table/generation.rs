//! Raising a table's generation, so that every cache of its pages is read anew.

use std::ops::Range;

use lanes_columnar::arena::Relation;
use lanes_columnar::limits::segment_of;

use super::runs::Runs;
use super::shape::TableShape;
use crate::pg::page::{LockedPage, PageChange};
use crate::pg::shmem::{self, ArenaLocks};
use crate::pg::table::OpenTable;
use crate::storage::directory;
use crate::storage::metapage::{self, META_BLOCK, Meta};

/// The effect of a new generation on what the arena caches of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Arena {
    /// The arena was told of every change and stays valid.
    Follows,
    /// The arena's list of runs is out of date; its segments stay valid.
    StartsOver,
}

/// Raises the generation in the metapage.
pub fn raise(table: OpenTable<'_>, arena: Arena) {
    let Some(meta) = Meta::load(table) else {
        return;
    };
    let runs = Runs::of(table, &meta, TableShape::of(table.descriptor()).fingerprint);
    let page = LockedPage::exclusive(table, META_BLOCK);
    let mut change = PageChange::begin(table);
    let generation = metapage::raise_generation(change.edit(&page));
    change.finish();
    if let Some(cached) = runs.cached() {
        match arena {
            Arena::Follows => {
                cached.advance_generation(meta.generation, generation);
            }
            Arena::StartsOver => {
                drop(page);
                hand_over(table, cached, meta.generation, generation, None);
            }
        }
    }
}

/// Lets the arena continue with a new generation. It keeps all segments except those of the sealed
/// rows.
pub fn hand_over(
    table: OpenTable<'_>,
    earlier: &Relation<ArenaLocks>,
    from: u64,
    generation: u64,
    sealed: Option<Range<u64>>,
) {
    let Some(arena) = shmem::arena() else {
        return;
    };
    if earlier.generation() != from {
        return;
    }
    let Some(later) = arena.open(earlier.key(), generation) else {
        return;
    };
    let Some(last_row) = directory::next_row(table).checked_sub(1) else {
        return;
    };
    if earlier.runs() == 0 {
        return;
    }
    let first = segment_of(earlier.run(0).first_row);
    let covered = sealed.map(|rows| segment_of(rows.start)..=segment_of(rows.end - 1));
    let is_kept = |segment: &u32| {
        covered
            .as_ref()
            .is_none_or(|covered| !covered.contains(segment))
    };
    later.adopt_segments(earlier, (first..=segment_of(last_row)).filter(is_kept));
}
