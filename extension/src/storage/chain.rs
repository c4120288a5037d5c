//! The three chains of a table, alike in that pages are linked one after the other from a head that the metapage names to a tail
//! that it names too.

use super::metapage::{self, META_BLOCK, Meta};
use super::{directory, part, tombstone};
use crate::pg::page::{LockedPage, PageChange};
use crate::pg::ports::CHECK_FOR_INTERRUPTS;
use crate::pg::table::OpenTable;

/// The chains of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chain {
    Directory,
    Tombstones,
    Parts,
}

impl Chain {
    /// All of them.
    pub const ALL: [Chain; 3] = [Chain::Directory, Chain::Tombstones, Chain::Parts];

    /// Calls `visit` with each page and its bytes, in the chain's order.
    pub fn walk(self, table: OpenTable<'_>, meta: &Meta, visit: impl FnMut(u32, &[u8])) {
        let head = self.head(meta);
        if head != 0 {
            self.walk_from(table, head, visit)
        }
    }

    /// The same from one of its pages on.
    pub fn walk_from(self, table: OpenTable<'_>, block: u32, mut visit: impl FnMut(u32, &[u8])) {
        let mut at = Some(block);
        while let Some(block) = at {
            let page = LockedPage::share(table, block);
            at = self.next(page.bytes());
            visit(block, page.bytes());
            drop(page);
            CHECK_FOR_INTERRUPTS();
        }
    }

    /// The blocks of its pages, in its order.
    pub fn blocks(self, table: OpenTable<'_>, meta: &Meta) -> Vec<u32> {
        let mut blocks = Vec::new();
        self.walk(table, meta, |block, _| blocks.push(block));
        blocks
    }

    fn head(self, meta: &Meta) -> u32 {
        match self {
            Chain::Directory => meta.directory_head,
            Chain::Tombstones => meta.tombstone_head,
            Chain::Parts => meta.part_head,
        }
    }

    /// The page after one of its pages.
    pub fn next(self, bytes: &[u8]) -> Option<u32> {
        match self {
            Chain::Directory => directory::DirectoryPage::parse(bytes).next(),
            Chain::Tombstones => tombstone::next(bytes),
            Chain::Parts => part::next(bytes),
        }
    }

    /// Whether one of its pages says nothing any more.
    pub fn is_dead(self, bytes: &[u8]) -> bool {
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

    /// Notes in the metapage which page is the first.
    pub fn set_head(self, meta: &mut [u8], block: u32) {
        match self {
            Chain::Directory => metapage::set_directory_head(meta, block),
            Chain::Tombstones => metapage::set_tombstone_head(meta, block),
            Chain::Parts => metapage::set_part_head(meta, block),
        }
    }

    /// Notes in the metapage which page is the last.
    pub fn set_tail(self, meta: &mut [u8], block: u32) {
        match self {
            Chain::Directory => metapage::set_directory_tail(meta, block),
            Chain::Tombstones => metapage::set_tombstone_tail(meta, block),
            Chain::Parts => metapage::set_part_tail(meta, block),
        }
    }

    /// Notes in one of its pages which one comes after.
    pub fn set_next(self, bytes: &mut [u8], block: u32) {
        match self {
            Chain::Directory => directory::set_next(bytes, block),
            Chain::Tombstones => tombstone::set_next(bytes, block),
            Chain::Parts => part::set_next(bytes, block),
        }
    }

    /// Makes `block` the next page after `before`, or the chain's first.
    pub fn link(self, table: OpenTable<'_>, before: Option<u32>, block: u32) {
        let page = LockedPage::exclusive(table, before.unwrap_or(META_BLOCK));
        let mut change = PageChange::begin(table);
        let bytes = change.edit(&page);
        match before {
            None => self.set_head(bytes, block),
            Some(_) => self.set_next(bytes, block),
        }
        change.finish();
    }
}
