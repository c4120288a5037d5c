//! Giving the free end of the file back to the file system, as VACUUM of a heap does.
//!
//! ```text
//! survey    how much of the end is free, but for pages of chains, which can be moved
//! lock      the table to itself: tried for a while, never waited for, so nobody stands behind it
//! survey    again: what others took or wrote meanwhile stays
//! move      pages of chains that lie past the cut go to free blocks before it, each by one record
//! cut       the metapage names nothing past the cut any more; that record is on disk; then the file ends there
//! ```
//!
//! Why nobody misses what was cut off:
//! - *Scans.* Whoever reads or writes a table, cursors between two fetches too, has locked it, so there is none while it is cut; on
//!   standbys the lock is replayed before the rest. Who comes after reads the metapage first. Lists of runs and positions in
//!   chains that were remembered from before belong to a generation, which moving a page raises. They may name a dead
//!   run in the part that was cut off: no scan sees its rows, and reading it finds that the file is too short for it
//!   ([`crate::storage::data_page::read`]).
//! - *Blocks that old snapshots still need* are not free: the sweep keeps what unsettled parts and runs name.
//! - *Crashes.* All that made these blocks free was logged before, and is on disk before the file is shortened. Ended after any
//!   of the steps before, the table is as it was but for pages that lie elsewhere; the blocks that those left are for the next sweep.
//! - *Unknown blocks*, which a writer took and then failed, are on no list: they stay until a sweep has found them.

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

/// Pages of chains that are moved at most: others wait for the table meanwhile.
const MOVED_MAX: u32 = 64;
/// The least that is worth keeping others from the table for a moment.
const BLOCKS_MIN: u32 = 16;

/// How much has to be gained, and how hard it is tried.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The file is shortened if this share of it can be given back,
    share: u32,
    /// of so many blocks at least,
    blocks_min: u32,
    /// or if so many blocks can.
    blocks_enough: u32,
    /// The lock is tried so often.
    attempts: u32,
}

impl Effort {
    /// VACUUM's: what that of a heap takes for worth it.
    pub const VACUUM: Effort = Effort {
        share: 16,
        blocks_min: BLOCKS_MIN,
        blocks_enough: 1000,
        attempts: 20,
    };
    /// The background worker's. It comes often, and standbys cancel queries that stand in the lock's way for too long: so not for
    /// the space that the next rows are going to take again.
    pub const BACKGROUND: Effort = Effort {
        share: 4,
        blocks_min: 1000,
        blocks_enough: u32::MAX,
        attempts: 4,
    };

    /// Whether it is worth giving back so many blocks of a file of `length`.
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

    /// Notes pages that were added since; nobody else takes any away.
    fn read_on(&mut self, table: OpenTable<'_>, meta: &Meta) {
        for (chain, pages) in &mut self.0 {
            let last = pages.pop();
            match last {
                Some(last) => chain.walk_from(table, last, |block, _| pages.push(block)),
                None => *pages = chain.blocks(table, meta),
            }
        }
    }

    /// All of them, ascending.
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

/// Shortens the file if that is worth the effort. The caller is the table's only VACUUM; `unlinked` are the pages that
/// it has taken out of chains.
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

/// The least length that a file can be cut to, given its free extents, ascending, the blocks that are free once nobody uses the
/// table (`unlinked`), and those that can then be moved to free ones (`movable`), all sorted.
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
                // As many of these stay as are needed for what is moved.
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

/// What the arena has of the table as it is.
fn cached(table: OpenTable<'_>, meta: &Meta) -> Option<Relation<ArenaLocks>> {
    if table.uses_local_buffers() {
        return None;
    }
    let shape = TableShape::of(table.descriptor());
    let key = shape::arena_key(table, meta, shape.fingerprint);
    shmem::arena()?.open(key, meta.generation)
}

/// What a page of a chain lies between.
struct Neighbours {
    before: Option<u32>,
    is_last: bool,
}

/// Moves a page of a chain to a block that `free`, what is free from now on, has just given; the new generation.
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
        // Two fit below block 10; a third one takes the block after.
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
