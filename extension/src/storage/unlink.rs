//! Taking dead pages out of a chain, so that a table that is updated for ever does not grow for ever.
//!
//! A directory page whose runs are all dead, a tombstone page whose entries are all void, and a page of dead parts say nothing: the page before
//! links past them. Readers that stand on such a page go on from it, because it keeps its content and its link: its block
//! is free only for the *next* VACUUM's sweep, which finds that nothing names it. The last page of a chain stays. What was
//! read of the chain before (positions, numbers of runs) is void, so the caller raises the generation.

use pgrx::pg_sys;

use super::metapage::{self, META_BLOCK, Meta};
use super::{directory, part, tombstone};
use crate::pg::page::{LockedPage, PageChange};
use crate::pg::ports::CHECK_FOR_INTERRUPTS;

/// Dead pages are taken out when there are at least so many and they are at least an eighth of their chain: doing it
/// makes every cache of the chain start over.
const PAGES_MIN: usize = 4;

/// The chains of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Chain {
    Directory,
    Tombstones,
    Parts,
}

impl Chain {
    fn head(self, meta: &Meta) -> u32 {
        match self {
            Chain::Directory => meta.directory_head,
            Chain::Tombstones => meta.tombstone_head,
            Chain::Parts => meta.part_head,
        }
    }

    fn next(self, bytes: &[u8]) -> Option<u32> {
        match self {
            Chain::Directory => directory::DirectoryPage::parse(bytes).next(),
            Chain::Tombstones => tombstone::next(bytes),
            Chain::Parts => part::next(bytes),
        }
    }

    fn is_dead(self, bytes: &[u8]) -> bool {
        match self {
            Chain::Directory => {
                let page = directory::DirectoryPage::parse(bytes);
                (0..page.count()).all(|i| page.entry(i).flags & directory::FLAG_DEAD != 0)
            }
            Chain::Tombstones => (0..tombstone::count(bytes))
                .all(|i| tombstone::entry(bytes, i).kind == tombstone::kind::VOID),
            Chain::Parts => {
                (0..part::count(bytes)).all(|i| part::entry(bytes, i).flags & part::FLAG_DEAD != 0)
            }
        }
    }
}

/// Links past the dead pages of a chain; returns their blocks. The caller is the table's only VACUUM.
///
/// # Safety
/// `relation` is an open lanes table with this metapage.
pub unsafe fn unlink_dead_pages(relation: pg_sys::Relation, meta: &Meta, chain: Chain) -> Vec<u32> {
    // SAFETY: the caller's promise; links of pages before the last change only here.
    unsafe {
        let mut pages: Vec<(u32, bool)> = Vec::new();
        let mut at = Some(chain.head(meta)).filter(|&head| head != 0);
        while let Some(block) = at {
            let page = LockedPage::share(relation, block);
            at = chain.next(page.bytes());
            pages.push((block, at.is_some() && chain.is_dead(page.bytes())));
            drop(page);
            CHECK_FOR_INTERRUPTS();
        }
        let dead = pages.iter().filter(|(_, dead)| *dead).count();
        if dead < PAGES_MIN.max(pages.len() / 8) {
            return Vec::new();
        }
        let mut before = None;
        let mut skipped = false;
        for &(block, dead) in &pages {
            if dead {
                skipped = true;
                continue;
            }
            if std::mem::take(&mut skipped) {
                link(relation, chain, before, block);
            }
            before = Some(block);
        }
        pages
            .into_iter()
            .filter_map(|(block, dead)| dead.then_some(block))
            .collect()
    }
}

/// Makes `block` the next page after `before`, or the chain's first.
unsafe fn link(relation: pg_sys::Relation, chain: Chain, before: Option<u32>, block: u32) {
    // SAFETY: `unlink_dead_pages`'s caller promised an open table.
    unsafe {
        let page = LockedPage::exclusive(relation, before.unwrap_or(META_BLOCK));
        let mut change = PageChange::begin(relation);
        let bytes = change.edit(&page);
        match (before, chain) {
            (None, Chain::Directory) => metapage::set_directory_head(bytes, block),
            (None, Chain::Tombstones) => metapage::set_tombstone_head(bytes, block),
            (None, Chain::Parts) => metapage::set_part_head(bytes, block),
            (Some(_), Chain::Directory) => directory::set_next(bytes, block),
            (Some(_), Chain::Tombstones) => tombstone::set_next(bytes, block),
            (Some(_), Chain::Parts) => part::set_next(bytes, block),
        }
        change.finish();
    }
}
