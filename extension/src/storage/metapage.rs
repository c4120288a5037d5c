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
//! | 80 | 4 | unused |
//! | 84 | 4 | free extents in use |
//! | 88 | 8 each | free extents: first block, blocks; ascending, not adjacent |

use lanes_columnar::arena::RelationKey;
use pgrx::pg_sys;

use super::{directory, tombstone};
use crate::pg::page::{self, LockedPage, PageChange, get_u32, get_u64, put_u32, put_u64};
use crate::pg::ports;

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
pub const AT_EXTENT_COUNT: usize = 84;
pub const AT_EXTENTS: usize = 88;

/// What the metapage says, but for its free extents.
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
    /// Row numbers mean the same as long as this does.
    pub sealings: u64,
}

impl Meta {
    /// Reads a metapage's bytes.
    pub fn parse(bytes: &[u8]) -> Meta {
        if get_u32(bytes, AT_MAGIC) != MAGIC {
            crate::error::corrupt("block 0 is not the metapage of a lanes table");
        }
        let version = page::header_u16(bytes, AT_VERSION);
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
        }
    }

    /// The relation's metapage, `None` for a relation that nothing was ever written to.
    ///
    /// # Safety
    /// `relation` is an open lanes table.
    pub unsafe fn load(relation: pg_sys::Relation) -> Option<Meta> {
        // SAFETY: the caller's promise.
        unsafe {
            if blocks(relation) == 0 {
                return None;
            }
            let page = LockedPage::share(relation, META_BLOCK);
            (!page.is_new()).then(|| Meta::parse(page.bytes()))
        }
    }

    /// The metapage, written first if the relation has none.
    ///
    /// # Safety
    /// `relation` is an open lanes table, locked for writing.
    pub unsafe fn load_or_create(relation: pg_sys::Relation) -> Meta {
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(meta) = Meta::load(relation) {
                return meta;
            }
            pg_sys::LockRelationForExtension(relation, pg_sys::ExclusiveLock as i32);
            let meta = Meta::load(relation).unwrap_or_else(|| create(relation));
            pg_sys::UnlockRelationForExtension(relation, pg_sys::ExclusiveLock as i32);
            meta
        }
    }

    /// The key of this file, without a shape. A later file of the same number has another key.
    ///
    /// # Safety
    /// `relation` is the open lanes table that this was read from.
    pub unsafe fn key(&self, relation: pg_sys::Relation) -> RelationKey {
        // SAFETY: the caller's promise.
        let (space, database, file) =
            ports::locator_parts(&unsafe { ports::relation_locator(relation) });
        RelationKey {
            space,
            database,
            file,
            storage_id: self.storage_id,
            shape: 0,
        }
    }
}

/// Blocks of the relation's main fork.
///
/// # Safety
/// `relation` is open.
pub unsafe fn blocks(relation: pg_sys::Relation) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::RelationGetNumberOfBlocksInFork(relation, pg_sys::ForkNumber::MAIN_FORKNUM) }
}

/// Writes metapage and the first page of either chain, in one record. A crash can leave some of these blocks in the
/// file without content: they are taken as they are.
unsafe fn create(relation: pg_sys::Relation) -> Meta {
    const FIRST_BLOCKS: u32 = 3;
    // SAFETY: the caller holds the relation's extension lock.
    unsafe {
        let existing = blocks(relation);
        let mut pages = Vec::with_capacity(FIRST_BLOCKS as usize);
        for block in 0..FIRST_BLOCKS {
            pages.push(if block < existing {
                LockedPage::zeroed(relation, block)
            } else {
                LockedPage::extend(relation)
            });
        }
        let meta = Meta {
            storage_id: random_u64(),
            generation: 1,
            directory_head: 1,
            directory_tail: 1,
            tombstone_head: 2,
            tombstone_tail: 2,
            part_head: 0,
            part_tail: 0,
            sealings: 0,
        };
        let mut change = PageChange::begin(relation);
        let bytes = change.create(&pages[0]);
        put_u32(bytes, AT_MAGIC, MAGIC);
        bytes[AT_VERSION..AT_VERSION + 2].copy_from_slice(&VERSION.to_ne_bytes());
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
}

fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer is as long as said.
    if !unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) } {
        pgrx::error!("no random bytes to be had for a new table's identity");
    }
    u64::from_ne_bytes(bytes)
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

/// Rows were numbered anew.
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
