//! The cache of tables in one shared-memory area, which every process maps at an address of its
//! own.
//!
//! The pages of PostgreSQL are the source of a table's data. The arena holds copies of them, which
//! may be evicted at any time while they are not pinned, and are gone after a restart.
//!
//! ```text
//! header ─ slots ─ relation ─┬─ runs: list of (rows, xid, place in the pages)
//!    │                       └─ entries ─ segment ─┬─ column ─ lane, validity, dictionary, items
//!    │                                    │        └─ or: images of sealed runs
//!    └─ region: allocator         └───── ring ─────┘         (payloads of the segment)
//! ```
//!
//! The cast, from the bytes upwards:
//! - `memory`: offsets to pointers. `header`: the fixed part. `region`: the allocator.
//! - `table`: arrays that grow without moving.
//! - `slot`, `runs`: a relation and its list of runs. `relation`: the handle on them.
//! - `layout`, `segment_head`: a segment in shared memory and its pins. `segment`: the handle.
//! - `images`: a segment that is kept as it is stored.
//! - `extend`, `lane_write`, `items_write`, `dictionary`: appending rows to a segment. `zones`: the
//!   zones of its vectors, by which scans skip rows.
//! - `decimals`: room for the integers of numerics, beside their items.
//! - `held`: the pins of a process, which are released when it ends.
//! - `core`: allocation with eviction, and the search for relations.
//!
//! Locks and pins:
//! - *Reading takes no lock.* A relation is pinned, then a segment of it, then its published rows
//!   are read. Rows are written before they are counted (release, acquire); published rows never
//!   change except for hint bits.
//! - *Each relation has one writer* at a time, under the relation's lock.
//! - *Allocation, eviction and the set of relations* require the allocator's lock, which is taken
//!   within a relation's lock and never the other way round.
//! - *Eviction* frees only what has no pins, and claims the pin word in the same atomic step.
//! - A pin is a value; dropping it takes no lock and frees nothing. What was retired while pinned
//!   is freed when memory is next needed.
//!
//! When the arena is full, calls return `None` or `false`, nothing half-written is visible, and the
//! caller reads from the pages instead. Nothing here panics because the arena is full or busy.

mod core;
mod decimals;
mod dictionary;
mod extend;
mod header;
mod held;
mod image_zones;
mod images;
mod items_write;
mod lane_write;
mod layout;
mod memory;
mod region;
mod relation;
mod runs;
mod segment;
mod segment_head;
mod slot;
mod table;
#[cfg(test)]
mod tests;
mod zones;

use std::sync::Arc;

use self::core::{BYTES_MIN, Core};
use memory::Memory;
use region::LINE_BYTES;

pub use images::{Images, KeptImage, NewImage};
pub use relation::Relation;
pub use runs::{Position, RunEntry};
pub use segment::Segment;

/// The locks between the processes that share an arena. Each method calls the closure while the
/// lock is held, and returns its result. Different hashes may share a lock. The closures never
/// panic, never take the same lock again, and take no other lock than the allocator's within a
/// relation's.
pub trait Locks {
    /// Runs `f` under the arena's only allocator lock.
    fn with_allocator<R>(&self, f: impl FnOnce() -> R) -> R;
    /// Runs `f` under the lock of the relation with this hash.
    fn with_relation<R>(&self, hash: u64, f: impl FnOnce() -> R) -> R;
}

/// The key under which the arena caches a table's data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RelationKey {
    /// The OID of the tablespace.
    pub space: u32,
    /// The OID of the database.
    pub database: u32,
    /// The number of the file.
    pub file: u32,
    /// The random id of the file's contents, from its metapage. A later file of the same number has
    /// another id.
    pub storage_id: u64,
    /// The fingerprint of the column kinds in which the rows are decoded.
    pub shape: u64,
}

impl RelationKey {
    fn hash(self) -> u64 {
        let mut bytes = [0; 28];
        bytes[..4].copy_from_slice(&self.space.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.database.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.file.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.storage_id.to_le_bytes());
        bytes[20..].copy_from_slice(&self.shape.to_le_bytes());
        xxhash_rust::xxh3::xxh3_64(&bytes)
    }
}

/// How full an arena is, and how it fares.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ArenaStats {
    /// Bytes of the whole area.
    pub bytes_total: u64,
    /// Bytes of it that can be allocated.
    pub bytes_usable: u64,
    /// Bytes allocated, the allocator's own heads included.
    pub bytes_used: u64,
    /// Bytes of the largest allocation that would succeed without eviction.
    pub bytes_largest_free: u64,
    /// Relations that can be cached at once.
    pub relations_max: u64,
    /// Relations cached.
    pub relations: u64,
    /// Segments resident, those retired but still pinned not included.
    pub segments: u64,
    /// Segments evicted so far to make room.
    pub segment_evictions: u64,
    /// Relations evicted so far to make room.
    pub relation_evictions: u64,
    /// Allocations and openings refused so far for want of room.
    pub refusals: u64,
}

/// The use of an arena by one relation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RelationStats {
    /// Bytes of its resident segments, the allocator's own heads included.
    pub bytes_used: u64,
    /// Bytes that they may take; 0: no bound but the arena's.
    pub bytes_max: u64,
    /// Segments that left to keep to that.
    pub segment_evictions: u64,
}

/// A handle on an arena, as mapped in this process.
pub struct Arena<L: Locks> {
    core: Core,
    locks: Arc<L>,
}

// SAFETY: the area is shared by processes, so threads may share it too: heads are atomics, and
// lanes are written by one writer beyond what others read, under the locks, which are shared here.
unsafe impl<L: Locks + Send + Sync> Send for Arena<L> {}
// SAFETY: as above.
unsafe impl<L: Locks + Send + Sync> Sync for Arena<L> {}
// SAFETY: a segment is an arena handle and offsets; its pins are atomics.
unsafe impl<L: Locks + Send + Sync> Send for Segment<L> {}
// SAFETY: as above.
unsafe impl<L: Locks + Send + Sync> Sync for Segment<L> {}

impl<L: Locks> Clone for Arena<L> {
    fn clone(&self) -> Self {
        Arena {
            core: self.core,
            locks: Arc::clone(&self.locks),
        }
    }
}

/// The first address from `memory` on that is a multiple of a line. Processes agree on it, since
/// pages are larger than lines.
fn align(memory: *mut u8) -> (*mut u8, usize) {
    let skipped = (memory as usize).next_multiple_of(LINE_BYTES as usize) - memory as usize;
    (memory.wrapping_add(skipped), skipped)
}

impl<L: Locks> Arena<L> {
    /// The smallest area that [`initialise`](Self::initialise) takes.
    pub const fn bytes_min() -> usize {
        BYTES_MIN
    }

    /// Makes an empty arena. At most an eighth of the area is used for relations' slots, so very
    /// small areas hold fewer than `relations_max`.
    ///
    /// # Safety
    /// `memory` points to `bytes` bytes that have no other users now, and only arenas as users
    /// later.
    ///
    /// # Panics
    /// If there are fewer than [`bytes_min`](Self::bytes_min).
    pub unsafe fn initialise(memory: *mut u8, bytes: usize, relations_max: u32) {
        assert!(bytes >= BYTES_MIN, "{bytes} bytes are too few for an arena");
        let (base, skipped) = align(memory);
        // SAFETY: this function's contract; the base is aligned.
        unsafe {
            let memory = Memory::new(base);
            Core::initialise(memory, (bytes - skipped) as u64, relations_max);
        }
    }

    /// A handle on an arena that was initialised, perhaps by another process at another address.
    ///
    /// # Safety
    /// `memory` points to such an arena, mapped at the same distance from a page's start, and it
    /// stays mapped while the handle, any clone, or any relation or segment got from it lives.
    /// `locks` are those of everyone who attaches to it.
    ///
    /// # Panics
    /// If there is no arena.
    pub unsafe fn attach(memory: *mut u8, locks: L) -> Self {
        let (base, _) = align(memory);
        // SAFETY: this function's contract; the base is aligned.
        let core = unsafe { Core::attach(Memory::new(base)) };
        Arena {
            core,
            locks: Arc::new(locks),
        }
    }

    /// Releases all pins of this thread and returns their number. A process that ends without
    /// dropping the values on its stack calls it.
    ///
    /// # Safety
    /// No relation or segment that this thread got from the arena is used or dropped afterwards.
    pub unsafe fn release_all(&self) -> usize {
        // SAFETY: this function's contract.
        unsafe { held::release_all(&self.core) }
    }

    /// Opens a relation, which is made empty if it does not exist. Other generations of it are
    /// retired; their pins stay valid. Returns `None` if all relations that fit into the arena are
    /// pinned.
    pub fn open(&self, key: RelationKey, generation: u64) -> Option<Relation<L>> {
        let core = self.core;
        let slot = core.find(key, generation).or_else(|| {
            self.locks
                .with_allocator(|| core.find_or_fill(key, generation))
        })?;
        Some(Relation::new(self.clone(), slot))
    }

    /// Retires whatever is cached of a file (tablespace, database, file number), whatever its
    /// storage id.
    pub fn purge(&self, key_file: (u32, u32, u32)) {
        self.locks.with_allocator(|| {
            self.core
                .purge(|key| (key.space, key.database, key.file) == key_file);
        });
    }

    /// Retires all that is cached of a database.
    pub fn purge_database(&self, database: u32) {
        self.locks
            .with_allocator(|| self.core.purge(|key| key.database == database));
    }

    /// How full the arena is.
    pub fn stats(&self) -> ArenaStats {
        self.locks.with_allocator(|| self.core.stats())
    }
}
