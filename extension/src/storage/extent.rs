//! Free space: extents of consecutive blocks, kept in the metapage.
//!
//! The lowest blocks are taken first. So the blocks in use gather at the beginning of the file, and
//! its end can be cut off ([`crate::maintenance::shorten`]).
//!
//! The list is a cache: a block is free if no chain, run or part names it. The list may lack free
//! blocks, after a crash or because there are more extents than it has room for; the next VACUUM's
//! sweep finds them again. It never contains a block that is in use.

use super::metapage::{AT_EXTENT_COUNT, AT_EXTENTS, META_BLOCK};
use crate::pg::fresh;
use crate::pg::page::{self, LockedPage, PageChange, get_u32, put_u32};
use crate::pg::ports::BLCKSZ;
use crate::pg::table::OpenTable;

/// The number of extents that the metapage has room for.
pub const EXTENTS_MAX: usize = (BLCKSZ - AT_EXTENTS) / 8;

/// Consecutive blocks `[first, first + blocks)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    pub first: u32,
    pub blocks: u32,
}

fn read(bytes: &[u8]) -> Vec<Extent> {
    let count = (get_u32(bytes, AT_EXTENT_COUNT) as usize).min(EXTENTS_MAX);
    (0..count)
        .map(|i| Extent {
            first: get_u32(bytes, AT_EXTENTS + i * 8),
            blocks: get_u32(bytes, AT_EXTENTS + i * 8 + 4),
        })
        .collect()
}

/// Writes the list. If not all extents fit, the largest are written.
pub fn write(bytes: &mut [u8], extents: &mut Vec<Extent>) {
    if extents.len() > EXTENTS_MAX {
        extents.sort_by_key(|e| std::cmp::Reverse(e.blocks));
        extents.truncate(EXTENTS_MAX);
        extents.sort_by_key(|e| e.first);
    }
    put_u32(bytes, AT_EXTENT_COUNT, extents.len() as u32);
    for (i, extent) in extents.iter().enumerate() {
        put_u32(bytes, AT_EXTENTS + i * 8, extent.first);
        put_u32(bytes, AT_EXTENTS + i * 8 + 4, extent.blocks);
    }
    page::set_lower(bytes, AT_EXTENTS + extents.len() * 8);
}

/// Takes the lowest `wanted` consecutive blocks from the list, all of which lie below a block.
pub fn take(extents: &mut Vec<Extent>, wanted: u32, below: u32) -> Option<u32> {
    let fits = |e: &Extent| e.blocks >= wanted && e.first.saturating_add(wanted) <= below;
    let index = extents.iter().position(fits)?;
    let extent = &mut extents[index];
    let first = extent.first;
    extent.first += wanted;
    extent.blocks -= wanted;
    if extent.blocks == 0 {
        extents.remove(index);
    }
    Some(first)
}

/// The parts of the extents that lie within a file of `length` blocks.
pub fn within(mut extents: Vec<Extent>, length: u32) -> Vec<Extent> {
    extents.retain_mut(|e| {
        e.blocks = e.blocks.min(length.saturating_sub(e.first));
        e.blocks > 0
    });
    extents
}

/// Blocks that were taken.
#[derive(Clone, Copy)]
pub struct Allocation {
    /// The first one; the others follow.
    pub first: u32,
    /// The file was extended by these blocks: they contain zeros, and no buffer has them.
    pub is_fresh: bool,
}

/// The length of the file in blocks, and its free blocks, ascending. Others may change both at any
/// time, unless the caller holds the table's exclusive lock.
pub fn survey(table: OpenTable<'_>) -> (u32, Vec<Extent>) {
    let meta = LockedPage::share(table, META_BLOCK);
    let length = table.blocks();
    (length, within(read(meta.bytes()), length))
}

/// Takes consecutive blocks for the caller, and extends the file if necessary. The caller holds the
/// space lock, or links the block into a chain before it unlocks the last page of that chain.
pub fn allocate(table: OpenTable<'_>, wanted: u32) -> Allocation {
    let meta = LockedPage::exclusive(table, META_BLOCK);
    let length = table.blocks();
    match take_listed(table, &meta, length, wanted, length) {
        Some(first) => Allocation {
            first,
            is_fresh: false,
        },
        None => {
            fresh::lengthen(table, length, wanted);
            Allocation {
                first: length,
                is_fresh: true,
            }
        }
    }
}

/// Takes consecutive blocks that lie below `below`; `None`: there are none.
pub fn allocate_below(table: OpenTable<'_>, wanted: u32, below: u32) -> Option<Allocation> {
    let meta = LockedPage::exclusive(table, META_BLOCK);
    let length = table.blocks();
    let first = take_listed(table, &meta, length, wanted, below)?;
    Some(Allocation {
        first,
        is_fresh: false,
    })
}

/// Takes blocks off the list in the metapage.
fn take_listed(
    table: OpenTable<'_>,
    meta: &LockedPage,
    length: u32,
    wanted: u32,
    below: u32,
) -> Option<u32> {
    let listed = read(meta.bytes());
    // Extending a file is not logged. So the list may name blocks past its end after a crash, a
    // promotion or a restore.
    let mut extents = within(listed.clone(), length);
    let taken = take(&mut extents, wanted, below);
    // The list is changed before the file is extended: otherwise it could name blocks that somebody
    // uses by then.
    if extents != listed {
        let mut change = PageChange::begin(table);
        write(change.edit(meta), &mut extents);
        change.finish();
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::{Extent, take, within};

    #[test]
    fn what_lies_past_the_end_is_not_given_out() {
        let extent = |first, blocks| Extent { first, blocks };
        let listed = vec![extent(5, 3), extent(18, 4), extent(20, 2), extent(30, 1)];
        assert_eq!(within(listed.clone(), 20), [extent(5, 3), extent(18, 2)]);
        assert_eq!(within(listed.clone(), 31), listed);
        assert_eq!(within(listed, 0), []);
    }

    #[test]
    fn takes_the_lowest_that_are_enough() {
        let extent = |first, blocks| Extent { first, blocks };
        let mut extents = vec![extent(10, 2), extent(30, 8), extent(50, 3)];
        assert_eq!(take(&mut extents, 3, 100), Some(30));
        assert_eq!(take(&mut extents, 2, 11), None);
        assert_eq!(take(&mut extents, 2, 12), Some(10));
        assert_eq!(take(&mut extents, 9, 100), None);
        assert_eq!(take(&mut extents, 3, 35), None);
        assert_eq!(take(&mut extents, 3, 100), Some(33));
        assert_eq!(extents, [extent(36, 2), extent(50, 3)]);
    }
}
