//! The metapage, block 0.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 24 | 4 | magic `LANE` |
//! | 28 | 2 | format version |
//! | 30 | 2 | unused |
//! | 32 | 8 | storage id: random, new with every new file, the arena's proof that it caches this file |
//! | 40 | 8 | generation: raised when entries already written changed |
//! | 48 | 4 | first directory page |
//! | 52 | 4 | last directory page |
//! | 56 | 4 | first tombstone page |
//! | 60 | 4 | last tombstone page |
//! | 64 | 4 | first page of parts, 0 while nothing was ever sealed |
//! | 68 | 4 | last page of parts |
//! | 72 | 8 | how often rows were numbered anew: each sealing adds one |
//! | 80 | 4 | blocks that the file had when VACUUM was last done with it |
//! | 84 | 4 | free extents in use |
//! | 88 | 8 each | free extents: first block, blocks; ascending, not adjacent |

use std::cell::Cell;

use lanes_columnar::arena::RelationKey;

use super::{directory, tombstone};
use crate::pg::lock::ExtensionLock;
use crate::pg::page::{
    self, LockedPage, PageChange, get_u16, get_u32, get_u64, put_u16, put_u32, put_u64,
};
use crate::pg::ports::Locator;
use crate::pg::server;
use crate::pg::table::OpenTable;

/// The metapage's block.
pub const META_BLOCK: u32 = 0;
const MAGIC: u32 = u32::from_le_bytes(*b"LANE");
const VERSION: u16 = 3;
const AT_MAGIC: usize = 24;
const AT_VERSION: usize = 28;
const AT_STORAGE_ID: usize = 32;
const AT_GENERATION: usize = 40;
const AT_DIRECTORY_HEAD: usize = 48;
const AT_DIRECTORY_TAIL: usize = 52;
const AT_TOMBSTONE_HEAD: usize = 56;
const AT_TOMBSTONE_TAIL: usize = 60;
const AT_PART_HEAD: usize = 64;
const AT_PART_TAIL: usize = 68;
const AT_SEALINGS: usize = 72;
const AT_VACUUMED_BLOCKS: usize = 80;
pub const AT_EXTENT_COUNT: usize = 84;
pub const AT_EXTENTS: usize = 88;

thread_local! {
    /// The file of which this backend last found that it has blocks. It keeps having some until the
    /// transaction ends, unless this backend itself truncates it.
    static WRITTEN: Cell<Option<Locator>> = const { Cell::new(None) };
}

/// Forgets which files have blocks. Called when files were truncated, and when the transaction has
/// ended.
pub fn forget_written() {
    WRITTEN.set(None);
}

/// The content of the metapage, without the free extents.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    pub storage_id: u64,
    pub generation: u64,
    pub directory_head: u32,
    pub directory_tail: u32,
    pub tombstone_head: u32,
    pub tombstone_tail: u32,
    /// 0 while nothing was ever sealed.
    pub part_head: u32,
    pub part_tail: u32,
    /// Row numbers keep their meaning while this number stays.
    pub sealings: u64,
    /// The file's length at the end of the last VACUUM. Only the planner's cost of index-only scans depends on it.
    pub vacuumed_blocks: u32,
}

impl Meta {
    /// Reads a metapage's bytes.
    pub fn parse(bytes: &[u8]) -> Meta {
        if get_u32(bytes, AT_MAGIC) != MAGIC {
            crate::error::corrupt("block 0 is not the metapage of a lanes table");
        }
        let version = get_u16(bytes, AT_VERSION);
        if version != VERSION {
            crate::error::corrupt(&format!(
                "the table's format version is {version}, this library reads version {VERSION}"
            ));
        }
        Meta {
            storage_id: get_u64(bytes, AT_STORAGE_ID),
            generation: get_u64(bytes, AT_GENERATION),
            directory_head: get_u32(bytes, AT_DIRECTORY_HEAD),
            directory_tail: get_u32(bytes, AT_DIRECTORY_TAIL),
            tombstone_head: get_u32(bytes, AT_TOMBSTONE_HEAD),
            tombstone_tail: get_u32(bytes, AT_TOMBSTONE_TAIL),
            part_head: get_u32(bytes, AT_PART_HEAD),
            part_tail: get_u32(bytes, AT_PART_TAIL),
            sealings: get_u64(bytes, AT_SEALINGS),
            vacuumed_blocks: get_u32(bytes, AT_VACUUMED_BLOCKS),
        }
    }

    /// The relation's metapage, `None` for a relation that nothing was ever written to.
    pub fn load(table: OpenTable<'_>) -> Option<Meta> {
        // The file of a temporary table may have the number of another file.
        let file = (!table.uses_local_buffers()).then(|| table.locator());
        if file.is_none() || WRITTEN.get() != file {
            if table.blocks() == 0 {
                return None;
            }
            WRITTEN.set(file);
        }
        let page = LockedPage::share(table, META_BLOCK);
        (!page.is_new()).then(|| Meta::parse(page.bytes()))
    }

    /// The metapage. It is written first if the table has none.
    pub fn load_or_create(table: OpenTable<'_>) -> Meta {
        if let Some(meta) = Meta::load(table) {
            return meta;
        }
        let _extension = ExtensionLock::acquire(table);
        Meta::load(table).unwrap_or_else(|| create(table))
    }

    /// The key of this file, without a shape. A later file with this number has another key.
    pub fn key(&self, table: OpenTable<'_>) -> RelationKey {
        let (space, database, file) = table.locator();
        RelationKey {
            space,
            database,
            file,
            storage_id: self.storage_id,
            shape: 0,
        }
    }
}

/// Writes the metapage and the first pages of the directory and of the tombstones by one record. A
/// crash may have left some of these blocks in the file without content; they are used as they are.
fn create(table: OpenTable<'_>) -> Meta {
    const FIRST_BLOCKS: u32 = 3;
    let existing = table.blocks();
    let mut pages = Vec::with_capacity(FIRST_BLOCKS as usize);
    for block in 0..FIRST_BLOCKS {
        pages.push(if block < existing {
            LockedPage::zeroed(table, block)
        } else {
            LockedPage::extend(table)
        });
    }
    let meta = Meta {
        storage_id: server::random_u64().unwrap_or_else(|| {
            pgrx::error!("could not generate a random identity for a new table")
        }),
        generation: 1,
        directory_head: 1,
        directory_tail: 1,
        tombstone_head: 2,
        tombstone_tail: 2,
        part_head: 0,
        part_tail: 0,
        sealings: 0,
        vacuumed_blocks: 0,
    };
    let mut change = PageChange::begin(table);
    let bytes = change.create(&pages[0]);
    put_u32(bytes, AT_MAGIC, MAGIC);
    put_u16(bytes, AT_VERSION, VERSION);
    put_u64(bytes, AT_STORAGE_ID, meta.storage_id);
    put_u64(bytes, AT_GENERATION, meta.generation);
    put_u32(bytes, AT_DIRECTORY_HEAD, 1);
    put_u32(bytes, AT_DIRECTORY_TAIL, 1);
    put_u32(bytes, AT_TOMBSTONE_HEAD, 2);
    put_u32(bytes, AT_TOMBSTONE_TAIL, 2);
    page::set_lower(bytes, AT_EXTENTS);
    directory::initialise_page(change.create(&pages[1]), 0);
    tombstone::initialise_page(change.create(&pages[2]), 0);
    change.finish();
    meta
}

/// Writes the tail of the directory chain.
pub fn set_directory_tail(bytes: &mut [u8], block: u32) {
    put_u32(bytes, AT_DIRECTORY_TAIL, block);
}

/// Writes the tail of the tombstone chain.
pub fn set_tombstone_tail(bytes: &mut [u8], block: u32) {
    put_u32(bytes, AT_TOMBSTONE_TAIL, block);
}

/// Writes the head of the directory chain.
pub fn set_directory_head(bytes: &mut [u8], block: u32) {
    put_u32(bytes, AT_DIRECTORY_HEAD, block);
}

/// Writes the head of the tombstone chain.
pub fn set_tombstone_head(bytes: &mut [u8], block: u32) {
    put_u32(bytes, AT_TOMBSTONE_HEAD, block);
}

/// Writes the head of the chain of parts.
pub fn set_part_head(bytes: &mut [u8], block: u32) {
    put_u32(bytes, AT_PART_HEAD, block);
}

/// Writes the tail of the chain of parts.
pub fn set_part_tail(bytes: &mut [u8], block: u32) {
    put_u32(bytes, AT_PART_TAIL, block);
}

/// Notes how many blocks the file has after a VACUUM.
pub fn set_vacuumed_blocks(bytes: &mut [u8], blocks: u32) {
    put_u32(bytes, AT_VACUUMED_BLOCKS, blocks);
}

/// Notes that rows were numbered anew.
pub fn count_sealing(bytes: &mut [u8]) {
    let next = get_u64(bytes, AT_SEALINGS) + 1;
    put_u64(bytes, AT_SEALINGS, next);
}

/// Raises the generation.
pub fn raise_generation(bytes: &mut [u8]) -> u64 {
    let next = get_u64(bytes, AT_GENERATION) + 1;
    put_u64(bytes, AT_GENERATION, next);
    next
}
