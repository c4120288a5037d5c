//! The owner of each block.
//!
//! Only VACUUM and sealing free blocks, and the caller locks them out. Writers take blocks that were free. So a block
//! that has an owner when the chains are read is in no list of free extents that is read afterwards.

use lanes_columnar::arena::{Position, RunEntry};

use super::Findings;
use crate::pg::page::LockedPage;
use crate::pg::ports::CHECK_FOR_INTERRUPTS;
use crate::pg::table::OpenTable;
use crate::storage::directory::{self, FLAG_DEAD, FLAG_INLINE};
use crate::storage::metapage::{META_BLOCK, Meta};
use crate::storage::part::{self, Parts};
use crate::storage::{data_page, extent, part_image, tombstone};

/// Finds blocks that have two owners, lie past the file's end, or have an owner and are listed as free.
pub fn check(table: OpenTable<'_>, findings: &mut Findings) {
    let Some(meta) = Meta::load(table) else {
        return;
    };
    let mut owned = OwnedBlocks {
        findings,
        words: Vec::new(),
    };
    owned.claim(META_BLOCK, 1, "the metapage");
    claim_directory(table, &meta, &mut owned);
    claim_tombstones(table, &meta, &mut owned);
    claim_parts(table, &meta, &mut owned);
    let (length, free) = extent::survey(table);
    owned.check_end(length);
    for extent in free {
        for block in extent.first..extent.first + extent.blocks {
            if owned.has(block) {
                owned
                    .findings
                    .add(format!("block {block}"), "it is in use, and listed as free");
            }
        }
    }
}

fn claim_directory(table: OpenTable<'_>, meta: &Meta, owned: &mut OwnedBlocks<'_>) {
    let start = Position { block: 0, index: 0 };
    let mut last = meta.directory_head;
    owned.claim(last, 1, "the directory");
    let visit = |block: u32, runs: &[RunEntry], _: Position| {
        if block != last {
            owned.claim(block, 1, "the directory");
            last = block;
        }
        for run in runs {
            if run.flags & (FLAG_DEAD | FLAG_INLINE) == 0 {
                let owner = format!("the run at row {}", run.first_row);
                let blocks = data_page::blocks_for(run.bytes as usize);
                claim_data(table, run.block, blocks, &owner, owned);
            }
        }
        true
    };
    directory::walk(table, meta.directory_head, start, visit);
}

fn claim_tombstones(table: OpenTable<'_>, meta: &Meta, owned: &mut OwnedBlocks<'_>) {
    let mut at = Some(meta.tombstone_head);
    while let Some(block) = at {
        owned.claim(block, 1, "the tombstones");
        at = tombstone::next(LockedPage::share(table, block).bytes());
        CHECK_FOR_INTERRUPTS();
    }
}

/// Parts that later ones cover keep their blocks until they are dead. A later part may have taken them over, so they
/// are not looked at.
fn claim_parts(table: OpenTable<'_>, meta: &Meta, owned: &mut OwnedBlocks<'_>) {
    part::walk(table, meta, |block, _| {
        owned.claim(block, 1, "the parts");
    });
    for part in Parts::of(table, meta).live() {
        let entry = &part.entry;
        let owner = format!("the part at row {}", entry.first_row);
        let stream = data_page::blocks_for(entry.bytes as usize);
        claim_data(table, entry.block, stream, &owner, owned);
        if entry.is_remote() {
            continue;
        }
        for segment in &part.index(table).segments {
            let own = part_image::own_bytes(entry, segment.bytes);
            let own = data_page::blocks_for(own);
            claim_data(table, segment.block, own, &owner, owned);
        }
    }
}

/// Claims data pages. A damaged entry may name any number of blocks, so it is compared with the file first, which may
/// have grown since other blocks were claimed.
fn claim_data(
    table: OpenTable<'_>,
    first: u32,
    blocks: u32,
    owner: &str,
    owned: &mut OwnedBlocks<'_>,
) {
    let (end, length) = (first.saturating_add(blocks), table.blocks());
    match end <= length {
        true => owned.claim(first, blocks, owner),
        false => {
            let problem = format!("it ends at block {end}, but the file has {length} blocks");
            owned.findings.add(owner, problem);
        }
    }
}

/// A bit for each block that has an owner.
struct OwnedBlocks<'f> {
    findings: &'f mut Findings,
    words: Vec<u64>,
}

impl OwnedBlocks<'_> {
    /// Notes the owner of consecutive blocks.
    fn claim(&mut self, first: u32, blocks: u32, owner: &str) {
        for block in first..first.saturating_add(blocks) {
            let (word, bit) = (block as usize / 64, 1 << (block % 64));
            if word >= self.words.len() {
                self.words.resize(word + 1, 0);
            }
            if self.words[word] & bit != 0 {
                self.findings.add(
                    format!("block {block}"),
                    format!("{owner} is not its only owner"),
                );
            }
            self.words[word] |= bit;
        }
    }

    fn has(&self, block: u32) -> bool {
        let word = self.words.get(block as usize / 64);
        word.is_some_and(|word| word >> (block % 64) & 1 != 0)
    }

    /// Finds owned blocks at or past the end of the file.
    fn check_end(&mut self, length: u32) {
        let end = self.words.len() as u32 * 64;
        if let Some(block) = (length..end).find(|&block| self.has(block)) {
            self.findings.add(
                format!("block {block}"),
                format!("it is in use, but the file has {length} blocks"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_owners_and_blocks_past_the_end_are_found() {
        let mut findings = Findings::default();
        let mut owned = OwnedBlocks {
            findings: &mut findings,
            words: Vec::new(),
        };
        owned.claim(0, 3, "a");
        owned.claim(3, 70, "b");
        owned.check_end(73);
        assert!(owned.findings.list.is_empty());
        assert!(owned.has(72) && !owned.has(73));
        owned.claim(72, 2, "c");
        owned.check_end(73);
        let places: Vec<_> = findings.list.iter().map(|found| &found.place[..]).collect();
        assert_eq!(places, ["block 72", "block 73"]);
    }
}
