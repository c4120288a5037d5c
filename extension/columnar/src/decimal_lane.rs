//! The numbers of a column of `numeric` as integers, kept beside its items.
//!
//! A number is stored as an item of some ten bytes, and reading it takes ten times as long as an integer takes. So the
//! numbers of whole vectors are kept as integers once they were read: see [`vector::decimal`](crate::vector::decimal)
//! for the integers, and the arena for where they lie.
//!
//! ```text
//! a vector is read the first time ──► want() ──► the owner makes room when the segment is opened next
//! a vector is read with room ──► claim() ──► all of its items are read ──► publish()
//! a vector is read again ──► known()
//! ```
//!
//! | bytes | room for a segment of `n` vectors |
//! |---|---|
//! | 16n | a head for each vector: a word, and the greatest magnitude |
//! | | zeros up to a multiple of 64 |
//! | 16,384n | the integers, of 8 bytes each |
//!
//! | word | the vector |
//! |---|---|
//! | 0 | was not read yet |
//! | 1 | is being read by one reader |
//! | 2 | does not fit: it has numbers of several scales, or one that is no integer of 64 bits |
//! | 3 + 256 × scale | is known: the other word and the integers were written before |
//!
//! Each word changes twice at most, and integers are written by the one reader that changed it from 0 to 1. So readers
//! take no lock, and what they have found does not change.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::limits::{LANE_ALIGN, VECTOR_ROWS};

const UNREAD: u64 = 0;
const CLAIMED: u64 = 1;
const UNFIT: u64 = 2;
const KNOWN: u64 = 3;
const SCALE_SHIFT: u32 = 8;

/// Whether the integers of one vector are known, and their greatest magnitude. The integers themselves lie behind the
/// heads of all vectors.
#[repr(C)]
struct VectorHead {
    word: AtomicU64,
    magnitude: AtomicU64,
}

/// The integers of a lane of items, as far as they are kept.
#[derive(Clone, Copy, Debug)]
pub struct DecimalLane {
    /// Set if there is no room yet but a reader wanted it. Null: nothing is kept of the lane.
    wanted: *const AtomicU32,
    /// Null: no room.
    heads: *const VectorHead,
    values: *mut i64,
    vectors: usize,
}

/// The integers of a vector.
#[derive(Clone, Copy)]
pub(crate) struct KnownVector {
    /// The number of digits after the point, of all rows that are not NULL.
    pub(crate) scale: u8,
    /// No integer is greater in magnitude.
    pub(crate) magnitude: u64,
    /// Of each row, while the lane's owner lives.
    pub(crate) values: *const [i64; VECTOR_ROWS],
}

impl DecimalLane {
    /// Of a lane of which nothing is kept.
    pub const NONE: DecimalLane = DecimalLane {
        wanted: std::ptr::null(),
        heads: std::ptr::null(),
        values: std::ptr::null_mut(),
        vectors: 0,
    };

    /// Bytes of the room for so many rows, whole vectors of them.
    pub(crate) fn room_bytes(rows: usize) -> usize {
        Self::head_bytes(rows / VECTOR_ROWS) + rows * size_of::<i64>()
    }

    fn head_bytes(vectors: usize) -> usize {
        (vectors * size_of::<VectorHead>()).next_multiple_of(LANE_ALIGN)
    }

    /// Bytes at the beginning of the room that must be zero at first.
    pub(crate) fn zero_bytes(rows: usize) -> usize {
        Self::head_bytes(rows / VECTOR_ROWS)
    }

    /// The integers of a lane of so many rows, in `room`. If `room` is null, none are kept, and readers can ask for
    /// room by `wanted`.
    ///
    /// # Safety
    /// `wanted`, and the room if there is any, live as long as the lane's owner. The room is aligned to 64 bytes, has
    /// [`room_bytes`](Self::room_bytes), and is changed by values of this type only.
    pub(crate) unsafe fn new(wanted: *const AtomicU32, room: *mut u8, rows: usize) -> DecimalLane {
        let vectors = rows / VECTOR_ROWS;
        if room.is_null() {
            return DecimalLane {
                wanted,
                ..DecimalLane::NONE
            };
        }
        DecimalLane {
            wanted,
            heads: room.cast(),
            // SAFETY: this function's contract.
            values: unsafe { room.add(Self::head_bytes(vectors)) }.cast(),
            vectors,
        }
    }

    /// Asks for room, unless there is some.
    pub(crate) fn want(&self) {
        // SAFETY: the word lives as long as the lane's owner.
        if let Some(wanted) = unsafe { self.wanted.as_ref() }
            && self.heads.is_null()
            && wanted.load(Relaxed) == 0
        {
            wanted.store(1, Relaxed);
        }
    }

    fn head(&self, vector: usize) -> Option<&VectorHead> {
        // SAFETY: there is a head for each vector, which lives as long as the lane's owner.
        (vector < self.vectors).then(|| unsafe { &*self.heads.add(vector) })
    }

    /// The integers of a vector, if they are known.
    #[inline]
    pub(crate) fn known(&self, vector: usize) -> Option<KnownVector> {
        let head = self.head(vector)?;
        let word = head.word.load(Acquire);
        (word & 0xFF == KNOWN).then(|| KnownVector {
            scale: (word >> SCALE_SHIFT) as u8,
            magnitude: head.magnitude.load(Relaxed),
            // SAFETY: the room has integers for each vector.
            values: unsafe { self.values.add(vector * VECTOR_ROWS) }.cast(),
        })
    }

    /// The right to write the integers of a vector, if nobody had it yet.
    pub(crate) fn claim(&self, vector: usize) -> Option<DecimalClaim<'_>> {
        let head = self.head(vector)?;
        let claimed = head
            .word
            .compare_exchange(UNREAD, CLAIMED, Relaxed, Relaxed);
        claimed.ok()?;
        Some(DecimalClaim {
            head,
            // SAFETY: the room has integers for each vector.
            values: unsafe { self.values.add(vector * VECTOR_ROWS) },
            word: UNFIT,
        })
    }
}

/// The right to write the integers of a vector. When it ends without them, the vector does not fit.
pub(crate) struct DecimalClaim<'a> {
    head: &'a VectorHead,
    values: *mut i64,
    word: u64,
}

impl DecimalClaim<'_> {
    /// Makes the integers known, which have a scale and a greatest magnitude.
    pub(crate) fn publish(mut self, scale: u8, magnitude: u64, values: &[i64; VECTOR_ROWS]) {
        // SAFETY: there is room for the vector, and nobody else reads or writes it before the word changes.
        unsafe {
            self.values
                .copy_from_nonoverlapping(values.as_ptr(), VECTOR_ROWS);
        }
        self.head.magnitude.store(magnitude, Relaxed);
        self.word = KNOWN | u64::from(scale) << SCALE_SHIFT;
    }
}

impl Drop for DecimalClaim<'_> {
    fn drop(&mut self) {
        self.head.word.store(self.word, Release);
    }
}
