//! Taking dead pages out of a chain, so that a table that is updated for ever does not grow for
//! ever.
//!
//! A page is dead if it says nothing any more: all runs of a directory page are dead, all entries
//! of a tombstone page are void, or all parts of a page of parts are dead. The page before a dead
//! page is linked to the page after it. The dead page keeps its content and its link, so readers
//! that are at it go on from there. Its block is free only for the *next* VACUUM's sweep, which
//! finds that nothing names it. The last page of a chain always stays. Positions and numbers of
//! runs that were read of the chain before are void, so the caller raises the generation.

use crate::pg::table::OpenTable;

use super::chain::Chain;
use super::metapage::Meta;

/// Dead pages are taken out only when there are at least so many and they are at least an eighth of
/// their chain. Each time, every cache of the chain starts over.
const PAGES_MIN: usize = 4;

/// Links past the dead pages of a chain and returns their blocks. The caller is the table's only
/// VACUUM.
pub fn unlink_dead_pages(table: OpenTable<'_>, meta: &Meta, chain: Chain) -> Vec<u32> {
    let mut pages: Vec<(u32, bool)> = Vec::new();
    chain.walk(table, meta, |block, bytes| {
        let is_last = chain.next(bytes).is_none();
        pages.push((block, !is_last && chain.is_dead(bytes)));
    });
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
            chain.link(table, before, block);
        }
        before = Some(block);
    }
    pages
        .into_iter()
        .filter_map(|(block, dead)| dead.then_some(block))
        .collect()
}
