//! Raising a table's generation, so that whoever caches what its pages say reads anew.

use pgrx::pg_sys;

use super::runs::{Runs, Shape};
use crate::maintenance::seal;
use crate::pg::page::{LockedPage, PageChange};
use crate::storage::metapage::{self, META_BLOCK, Meta};

/// What a new generation means for what the arena caches of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Arena {
    /// It was told of every change.
    Follows,
    /// Its runs are not the directory's any more; its segments are.
    StartsOver,
}

/// Raises the generation in the metapage.
///
/// # Safety
/// `relation` is an open lanes table, of which the caller is the only VACUUM.
pub unsafe fn raise(relation: pg_sys::Relation, arena: Arena) {
    // SAFETY: the caller's promise: the generation is not raised meanwhile.
    unsafe {
        let Some(meta) = Meta::load(relation) else {
            return;
        };
        let runs = Runs::of(relation, &meta, Shape::of((*relation).rd_att).fingerprint);
        let page = LockedPage::exclusive(relation, META_BLOCK);
        let mut change = PageChange::begin(relation);
        let generation = metapage::raise_generation(change.edit(&page));
        change.finish();
        if let Some(cached) = runs.cached() {
            match arena {
                Arena::Follows => {
                    cached.advance_generation(meta.generation, generation);
                }
                Arena::StartsOver => {
                    drop(page);
                    seal::hand_over(relation, cached, meta.generation, generation, None);
                }
            }
        }
    }
}
