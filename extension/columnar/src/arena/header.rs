//! The fixed part at the start of the shared area.
//!
//! | offset | what |
//! |---|---|
//! | 0 | [`Header`] |
//! | `SLOTS_OFFSET` | `relations_max` [`RelationSlot`](super::slot::RelationSlot)s |
//! | then, up to the end | the [region](super::region) |

use std::sync::atomic::{AtomicU32, AtomicU64};

use super::memory::Shared;
use super::region::RegionState;

/// The first word of an initialised area. Attaching to any other memory is detected by it.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"lanes\0\0\x01");

/// Where the relations' slots begin.
pub(super) const SLOTS_OFFSET: u64 = size_of::<Header>() as u64;

/// Where the allocator's state lies.
pub(super) const REGION_STATE_OFFSET: u64 = std::mem::offset_of!(Header, region) as u64;

/// The state that the whole area shares. Everything but the counters is changed under the
/// allocator's lock.
#[repr(C, align(64))]
pub(super) struct Header {
    pub(super) magic: AtomicU64,
    /// Bytes of the area.
    pub(super) bytes: AtomicU64,
    pub(super) relations_max: AtomicU32,
    /// The slot at which the search for a relation to evict goes on.
    pub(super) relation_hand: AtomicU32,
    /// The segment at which the search for one to evict goes on: a member of the ring, 0 = empty.
    pub(super) segment_hand: AtomicU64,
    /// Segments that were replaced while pinned, linked by their `next`; 0 if there is none.
    pub(super) retired: AtomicU64,
    /// Relations that are retired but still hold memory.
    pub(super) retired_relations: AtomicU64,
    pub(super) relations: AtomicU64,
    pub(super) segments: AtomicU64,
    pub(super) segment_evictions: AtomicU64,
    pub(super) relation_evictions: AtomicU64,
    pub(super) refusals: AtomicU64,
    /// Dictionaries made so far, which numbers them.
    pub(super) dictionaries: AtomicU64,
    pub(super) region: RegionState,
}

// SAFETY: atomics only.
unsafe impl Shared for Header {}
