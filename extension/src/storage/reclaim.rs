//! Returning unreferenced blocks to the free extents.
//!
//! Mark and sweep. Blocks that are in use are marked: the metapage, the pages of all chains, and
//! the data pages of runs and parts that are not dead. All other blocks are free. So no block is
//! lost for good, whatever ended a writer between taking blocks and naming them.

use lanes_columnar::arena::{Position, RunEntry};

use super::directory::{self, FLAG_DEAD, FLAG_INLINE};
use super::extent::{self, Extent};
use super::metapage::{self, META_BLOCK, Meta};
use super::{data_page, part, part_image, tombstone};
use crate::pg::lock::SpaceLock;
use crate::pg::page::{LockedPage, PageChange};
use crate::pg::table::OpenTable;

/// Recomputes the free extents and notes the length of the file. Returns how many blocks are free.
/// Readers may still be at pages that this VACUUM has just unlinked, so these are not free yet. The
/// caller is the table's only VACUUM.
pub fn sweep(table: OpenTable<'_>, meta: &Meta, unlinked: &[u32]) -> u64 {
    // Parts change only under the lock that the caller holds.
    let parts = blocks_of_parts(table, meta);
    let _space = SpaceLock::exclusive(table);
    let mut used = Marks::new(table.blocks());
    used.mark(META_BLOCK, 1);
    for block in unlinked {
        used.mark(*block, 1);
    }
    for (first, blocks) in parts {
        used.mark(first, blocks);
    }
    // Most of the directory is read before its last page is locked. Only VACUUM changes these
    // pages, and only their flags.
    let end = used.mark_directory(table, meta);
    let tombstone_tail = tombstone::Tail::lock(table, meta);
    used.mark_tombstones(table, meta, &tombstone_tail);
    let tail = used.mark_appended(table, meta, end);
    let meta_page = LockedPage::exclusive(table, META_BLOCK);
    let mut extents = used.gaps();
    let free = extents.iter().map(|e| e.blocks as u64).sum();
    let mut change = PageChange::begin(table);
    let bytes = change.edit(&meta_page);
    extent::write(bytes, &mut extents);
    metapage::set_vacuumed_blocks(bytes, used.blocks);
    change.finish();
    drop(meta_page);
    drop(tail);
    drop(tombstone_tail);
    free
}

/// The blocks of parts, of their indexes and of their pages, as (first, how many). Nobody else adds
/// parts meanwhile, because that needs the lock that the caller holds on the table.
fn blocks_of_parts(table: OpenTable<'_>, meta: &Meta) -> Vec<(u32, u32)> {
    let mut alive: Vec<part::PartEntry> = Vec::new();
    let mut used = Vec::new();
    {
        part::walk(table, meta, |block, entries| {
            used.push((block, 1));
            alive.extend(entries.iter().filter(|e| e.flags & part::FLAG_DEAD == 0));
        });
        for entry in alive {
            used.push((entry.block, data_page::blocks_for(entry.bytes as usize)));
            if entry.is_remote() {
                continue;
            }
            for segment in part_image::read_index(table, &entry).segments {
                let own = part_image::own_bytes(&entry, segment.bytes);
                used.push((segment.block, data_page::blocks_for(own)));
            }
        }
    }
    used
}

/// One bit for each block.
struct Marks {
    words: Vec<u64>,
    blocks: u32,
}

impl Marks {
    fn new(blocks: u32) -> Marks {
        Marks {
            words: vec![0; blocks.div_ceil(64) as usize],
            blocks,
        }
    }

    fn mark(&mut self, first: u32, blocks: u32) {
        for block in first..first.saturating_add(blocks).min(self.blocks) {
            self.words[block as usize / 64] |= 1 << (block % 64);
        }
    }

    /// Marks the data pages of a run, unless it has none or is dead.
    fn mark_run(&mut self, run: &RunEntry) {
        if run.flags & (FLAG_DEAD | FLAG_INLINE) == 0 {
            self.mark(run.block, data_page::blocks_for(run.bytes as usize));
        }
    }

    /// Marks the directory and its runs. Returns the position after them.
    fn mark_directory(&mut self, table: OpenTable<'_>, meta: &Meta) -> Position {
        let start = Position { block: 0, index: 0 };
        let mut end = start;
        let mark_entries = |block: u32, entries: &[RunEntry], next: Position| {
            self.mark(block, 1);
            self.mark(next.block, 1);
            for run in entries {
                self.mark_run(run);
            }
            end = next;
            true
        };
        directory::walk(table, meta.directory_head, start, mark_entries);
        end
    }

    /// Marks the pages of tombstones, the last of which is locked.
    fn mark_tombstones(&mut self, table: OpenTable<'_>, meta: &Meta, tail: &tombstone::Tail) {
        let mut block = meta.tombstone_head;
        loop {
            self.mark(block, 1);
            let (tail_block, _) = tail.content();
            if block == tail_block {
                break;
            }
            let page = LockedPage::share(table, block);
            match tombstone::next(page.bytes()) {
                Some(next) => block = next,
                None => break,
            }
        }
    }

    /// Marks what the directory has gained after a position. Returns its last page, which is
    /// locked.
    fn mark_appended(&mut self, table: OpenTable<'_>, meta: &Meta, after: Position) -> LockedPage {
        let mut at = if after.block == 0 {
            meta.directory_head
        } else {
            after.block
        };
        let mut from = after.index as usize;
        loop {
            let page = LockedPage::exclusive(table, at);
            let view = directory::DirectoryPage::parse(page.bytes());
            self.mark(at, 1);
            for index in from..view.count() {
                self.mark_run(&view.entry(index));
            }
            match view.next() {
                Some(next) => {
                    at = next;
                    from = 0;
                }
                None => break page,
            }
        }
    }

    fn is_marked(&self, block: u32) -> bool {
        self.words[block as usize / 64] >> (block % 64) & 1 == 1
    }

    /// Maximal stretches of unmarked blocks, ascending.
    fn gaps(&self) -> Vec<Extent> {
        let mut gaps: Vec<Extent> = Vec::new();
        for block in (0..self.blocks).filter(|&block| !self.is_marked(block)) {
            match gaps.last_mut() {
                Some(last) if last.first + last.blocks == block => last.blocks += 1,
                _ => gaps.push(Extent {
                    first: block,
                    blocks: 1,
                }),
            }
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_what_is_not_marked() {
        let mut marks = Marks::new(130);
        marks.mark(0, 3);
        marks.mark(64, 2);
        marks.mark(129, 9);
        assert_eq!(
            marks.gaps(),
            vec![
                Extent {
                    first: 3,
                    blocks: 61
                },
                Extent {
                    first: 66,
                    blocks: 63
                }
            ]
        );
    }
}
