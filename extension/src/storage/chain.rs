//! The three chains of a table. Each is a list of linked pages; the metapage names its first page
//! (head) and its last page (tail).

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

    /// Calls `visit` with the block and the bytes of each page, in the order of the chain.
    pub fn walk(self, table: OpenTable<'_>, meta: &Meta, visit: impl FnMut(u32, &[u8])) {
        let head = self.head(meta);
        if head != 0 {
            self.walk_from(table, head, visit)
        }
    }

    /// Does as [`walk`](Self::walk), from the page `block` on.
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

    /// The blocks of the chain's pages, in its order.
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

    /// The block of the page after the one with these bytes.
    pub fn next(self, bytes: &[u8]) -> Option<u32> {
        match self {
            Chain::Directory => directory::DirectoryPage::parse(bytes).next(),
            Chain::Tombstones => tombstone::next(bytes),
            Chain::Parts => part::next(bytes),
        }
    }

    /// Whether a page of the chain says nothing any more.
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

    /// Writes the first page of the chain into the bytes of the metapage.
    pub fn set_head(self, meta: &mut [u8], block: u32) {
        match self {
            Chain::Directory => metapage::set_directory_head(meta, block),
            Chain::Tombstones => metapage::set_tombstone_head(meta, block),
            Chain::Parts => metapage::set_part_head(meta, block),
        }
    }

    /// Writes the last page of the chain into the bytes of the metapage.
    pub fn set_tail(self, meta: &mut [u8], block: u32) {
        match self {
            Chain::Directory => metapage::set_directory_tail(meta, block),
            Chain::Tombstones => metapage::set_tombstone_tail(meta, block),
            Chain::Parts => metapage::set_part_tail(meta, block),
        }
    }

    /// Writes the link to the next page into the bytes of a page.
    pub fn set_next(self, bytes: &mut [u8], block: u32) {
        match self {
            Chain::Directory => directory::set_next(bytes, block),
            Chain::Tombstones => tombstone::set_next(bytes, block),
            Chain::Parts => part::set_next(bytes, block),
        }
    }

    /// Makes `block` the page after `before`, or the first page of the chain.
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
