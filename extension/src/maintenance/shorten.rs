//! Returning the free end of the file to the file system, as VACUUM of a heap does.
//!
//! ```text
//! survey    how much of the end is free, not counting pages of chains, which can be moved
//! lock      the table exclusively: tried for a while and never waited for, so nobody queues behind it
//! survey    again: blocks that others have taken or written in the meantime stay
//! move      pages of chains that lie past the cut to free blocks before it, each by one record
//! cut       the metapage names nothing past the cut any more, and that record is on disk; then the file is truncated
//! ```
//!
//! Why nobody misses the end that was cut off:
//! - *Scans.* Whoever reads or writes a table has locked it, also a cursor between two fetches. So there
//!   is none while the file is cut, and standbys replay the lock before the rest. Those that come later
//!   read the metapage first. Lists of runs and positions in chains that were remembered belong to an
//!   older generation, because moving a page raises it. They may name a dead run in the part that was
//!   cut off. No scan sees its rows, and reading it finds that the file is too short
//!   ([`crate::storage::data_page::read`]).
//! - *Blocks that old snapshots need* are not free: the sweep keeps the blocks of unsettled parts and
//!   runs.
//! - *Crashes.* All changes that made these blocks free were logged before, and are on disk before the
//!   file is truncated. After a crash in an earlier step the table is unchanged, except that some pages
//!   have moved; the next sweep frees their old blocks.
//! - *Unknown blocks*, which a writer took before it failed, are in no list. They stay until a sweep
//!   has found them.

use lanes_columnar::arena::Relation;

use crate::pg::lock::SoleUse;
use crate::pg::page::{self, LockedPage, PageChange};
use crate::pg::ports::PAGE_HEADER_BYTES;
use crate::pg::shmem::{self, ArenaLocks};
use crate::pg::table::OpenTable;
use crate::pg::transaction;
use crate::storage::chain::Chain;
use crate::storage::directory::{self, FLAG_INLINE};
use crate::storage::extent::{self, Extent};
use crate::storage::metapage::{self, META_BLOCK, Meta};
use crate::table::shape::TableShape;
use crate::table::{generation, shape};

/// The most pages of chains that are moved, because others wait for the table in the meantime.
const MOVED_MAX: u32 = 64;
/// The least number of blocks for which others are kept from the table for a moment.
const BLOCKS_MIN: u32 = 16;

/// How much has to be gained, and how often the lock is tried.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The file is shortened if one in so many of its blocks can be freed,
    share: u32,
    /// and at least so many blocks,
    blocks_min: u32,
    /// or if so many blocks can be freed.
    blocks_enough: u32,
    /// How often the lock is tried.
    attempts: u32,
}

impl Effort {
    /// The effort of VACUUM: what VACUUM of a heap considers worth it.
    pub const VACUUM: Effort = Effort {
        share: 16,
        blocks_min: BLOCKS_MIN,
        blocks_enough: 1000,
        attempts: 20,
    };
    /// The effort of the background worker. It comes often, and standbys cancel queries that
    /// conflict with the lock for too long. So it leaves space that the next rows are going to take
    /// again.
    pub const BACKGROUND: Effort = Effort {
        share: 4,
        blocks_min: 1000,
        blocks_enough: u32::MAX,
        attempts: 4,
    };

    /// Whether it is worth freeing so many blocks of a file of `length`.
    pub fn is_worth(&self, blocks: u32, length: u32) -> bool {
        blocks >= self.blocks_enough || blocks >= self.blocks_min.max(length / self.share)
    }
}

/// The pages of all chains.
struct Chains([(Chain, Vec<u32>); 3]);

impl Chains {
    fn of(table: OpenTable<'_>, meta: &Meta) -> Chains {
        Chains(Chain::ALL.map(|chain| (chain, chain.blocks(table, meta))))
    }

    /// Adds the pages that were added since. Nobody else removes any.
    fn read_on(&mut self, table: OpenTable<'_>, meta: &Meta) {
        for (chain, pages) in &mut self.0 {
            let last = pages.pop();
            match last {
                Some(last) => chain.walk_from(table, last, |block, _| pages.push(block)),
                None => *pages = chain.blocks(table, meta),
            }
        }
    }

    /// All pages, ascending.
    fn sorted(&self) -> Vec<u32> {
        let mut blocks: Vec<u32> = self
            .0
            .iter()
            .flat_map(|(_, pages)| pages)
            .copied()
            .collect();
        blocks.sort_unstable();
        blocks
    }
}

/// Shortens the file if that is worth the effort. The caller is the table's only VACUUM. `unlinked`
/// are the pages that it has taken out of chains.
pub fn shorten(table: OpenTable<'_>, unlinked: &[u32], effort: Effort) {
    let Some(meta) = Meta::load(table) else {
        return;
    };
    let (length, free) = extent::survey(table);
    let most = blocks_of(&free) + unlinked.len() as u32;
    if !effort.is_worth(most, length) {
        return;
    }
    let mut unlinked = unlinked.to_vec();
    unlinked.sort_unstable();
    let mut chains = Chains::of(table, &meta);
    let cut = lowest_cut(length, &free, &unlinked, &chains.sorted());
    if !effort.is_worth(length - cut, length) {
        return;
    }
    let Some(_sole) = SoleUse::within(table, effort.attempts) else {
        return;
    };
    let Some(meta) = Meta::load(table) else {
        return;
    };
    chains.read_on(table, &meta);
    let (length, free) = extent::survey(table);
    let cut = lowest_cut(length, &free, &unlinked, &chains.sorted());
    if effort.is_worth(length - cut, length) {
        cut_off(table, &meta, chains, free, cut);
    }
}

fn blocks_of(extents: &[Extent]) -> u32 {
    extents.iter().map(|e| e.blocks).sum()
}

/// The least length that a file can be cut to. `free` are its free extents, `unlinked` the blocks
/// that are free once nobody uses the table, and `movable` the blocks that can then be moved to
/// free ones. All of them ascend.
fn lowest_cut(length: u32, free: &[Extent], unlinked: &[u32], movable: &[u32]) -> u32 {
    let (mut at, mut cut) = (length, length);
    let (mut free, mut room) = (free, blocks_of(free));
    let mut moved = 0_u32;
    while let Some(last) = at.checked_sub(1) {
        match free {
            [before @ .., extent] if extent.first + extent.blocks == at => {
                at = extent.first;
                room -= extent.blocks;
                free = before;
                // As many of these blocks stay as are needed for the pages that are moved.
                let needed = moved.saturating_sub(room);
                if needed <= extent.blocks {
                    cut = at + needed;
                }
            }
            _ if unlinked.binary_search(&last).is_ok() => at = last,
            _ if moved < MOVED_MAX && movable.binary_search(&last).is_ok() => {
                at = last;
                moved += 1;
            }
            _ => break,
        }
        if moved <= room {
            cut = at;
        }
    }
    cut
}

/// Moves what has to be moved, and cuts the file.
fn cut_off(table: OpenTable<'_>, meta: &Meta, chains: Chains, mut free: Vec<Extent>, cut: u32) {
    let cached = cached(table, meta);
    let mut generation = meta.generation;
    for (chain, mut pages) in chains.0 {
        for place in 0..pages.len() {
            if pages[place] < cut {
                continue;
            }
            let Some(target) = extent::take(&mut free, 1, cut) else {
                return;
            };
            let neighbours = Neighbours {
                before: place.checked_sub(1).map(|before| pages[before]),
                is_last: place + 1 == pages.len(),
            };
            generation = move_page(table, chain, pages[place], target, neighbours, &mut free);
            pages[place] = target;
        }
    }
    if let Some(earlier) = &cached
        && generation != meta.generation
    {
        generation::hand_over(table, earlier, meta.generation, generation, None);
    }
    let mut free = extent::within(free, cut);
    let page = LockedPage::exclusive(table, META_BLOCK);
    let mut change = PageChange::begin(table);
    extent::write(change.edit(&page), &mut free);
    change.finish();
    drop(page);
    if table.needs_wal() {
        transaction::flush_wal();
    }
    table.truncate(cut);
}

/// The table in the arena, in its present shape.
fn cached(table: OpenTable<'_>, meta: &Meta) -> Option<Relation<ArenaLocks>> {
    if table.uses_local_buffers() {
        return None;
    }
    let shape = TableShape::of(table.descriptor());
    let key = shape::arena_key(table, meta, shape.fingerprint);
    shmem::arena()?.open(key, meta.generation)
}

/// The neighbours of a page in its chain.
struct Neighbours {
    before: Option<u32>,
    is_last: bool,
}

/// Moves a page of a chain to a block that was just taken from `free`, to which its old block is
/// added. Returns the new generation.
fn move_page(
    table: OpenTable<'_>,
    chain: Chain,
    from: u32,
    to: u32,
    neighbours: Neighbours,
    free: &mut Vec<Extent>,
) -> u64 {
    let old = LockedPage::share(table, from);
    let new = LockedPage::zeroed(table, to);
    let before = neighbours
        .before
        .map(|before| LockedPage::exclusive(table, before));
    let meta = LockedPage::exclusive(table, META_BLOCK);
    let mut change = PageChange::begin(table);
    let bytes = change.create(&new);
    bytes[PAGE_HEADER_BYTES..].copy_from_slice(&old.bytes()[PAGE_HEADER_BYTES..]);
    page::set_lower(bytes, page::lower(old.bytes()));
    page::set_upper(bytes, page::upper(old.bytes()));
    if chain == Chain::Directory {
        directory::set_block_of(bytes, FLAG_INLINE, to);
    }
    if let Some(before) = &before {
        chain.set_next(change.edit(before), to);
    }
    let bytes = change.edit(&meta);
    if before.is_none() {
        chain.set_head(bytes, to);
    }
    if neighbours.is_last {
        chain.set_tail(bytes, to);
    }
    extent::write(bytes, free);
    let generation = metapage::raise_generation(bytes);
    change.finish();
    generation
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(list: &[(u32, u32)]) -> Vec<Extent> {
        list.iter()
            .map(|&(first, blocks)| Extent { first, blocks })
            .collect()
    }

    #[test]
    fn a_used_block_at_the_end_keeps_all_before_it() {
        assert_eq!(lowest_cut(100, &extents(&[(10, 89)]), &[], &[]), 100);
        assert_eq!(lowest_cut(100, &extents(&[(10, 90)]), &[], &[]), 10);
        assert_eq!(lowest_cut(100, &extents(&[(5, 2), (10, 90)]), &[], &[]), 10);
        assert_eq!(lowest_cut(100, &[], &[], &[]), 100);
    }

    #[test]
    fn pages_of_chains_go_to_free_blocks_before_the_cut() {
        let free = extents(&[(5, 2), (10, 40), (51, 49)]);
        assert_eq!(lowest_cut(100, &free, &[], &[50]), 10);
        assert_eq!(lowest_cut(100, &free, &[50], &[]), 10);
        // Two fit below block 10; a third one takes the block after it.
        let free = extents(&[(5, 2), (10, 40)]);
        assert_eq!(lowest_cut(52, &free, &[], &[50, 51]), 10);
        assert_eq!(lowest_cut(53, &free, &[], &[50, 51, 52]), 11);
        let free = extents(&[(10, 89)]);
        assert_eq!(lowest_cut(100, &free, &[], &[99]), 11);
        assert_eq!(lowest_cut(100, &free, &[9], &[99]), 11);
        // The first pages of chains stay where they are.
        let free = extents(&[(3, 97)]);
        assert_eq!(lowest_cut(100, &free, &[], &[1, 2]), 3);
    }

    #[test]
    fn no_more_pages_are_moved_than_is_soon_done() {
        let movable: Vec<u32> = (1000..1100).collect();
        let free = extents(&[(10, 990)]);
        let cut = lowest_cut(1100, &free, &[], &movable);
        assert_eq!(cut, 1100 - MOVED_MAX);
    }

    #[test]
    fn little_is_left_as_it_is() {
        assert!(!Effort::VACUUM.is_worth(15, 20));
        assert!(Effort::VACUUM.is_worth(16, 20));
        assert!(!Effort::VACUUM.is_worth(99, 1600));
        assert!(Effort::VACUUM.is_worth(100, 1600));
        assert!(Effort::VACUUM.is_worth(1000, 1_000_000));
        assert!(!Effort::BACKGROUND.is_worth(999, 1200));
        assert!(!Effort::BACKGROUND.is_worth(200_000, 1_000_000));
        assert!(Effort::BACKGROUND.is_worth(1000, 1200));
    }
}
