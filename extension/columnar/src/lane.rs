//! A lane: the values of one column of a segment or run, wherever they are stored.
//!
//! A lane consists of plain pointers, so a scan and its kernels treat shared memory and private
//! memory alike. Row indexes are relative to the lane's first row. Every function here is unsafe
//! for one reason: a lane borrows memory without a lifetime. Its reader must keep the owner (an
//! unchanged [`Column`](crate::column::Column) or a pinned [`Segment`](crate::arena::Segment)) and
//! stay below the number of rows that the owner reports.
//!
//! In a segment that is growing, a word of a bitmap may gain bits of new rows while it is read. The
//! bits of published rows never change, and the writer stores whole aligned words. The functions
//! here load such words atomically. A kernel must load them as whole aligned elements of 8 bytes,
//! or vectors of such, and mask out all other rows.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::decimal_lane::DecimalLane;

/// One column's values and which of them are not NULL.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    /// Where the values lie.
    pub data: LaneData,
    /// One bit a row, 1 = not NULL; null pointer = no NULLs.
    pub validity: *const u64,
    /// Items that are numerics may also be kept as integers.
    pub decimals: DecimalLane,
}

/// The values of a lane. The value of a NULL row is unspecified, but its code or slot is within
/// bounds.
#[derive(Clone, Copy, Debug)]
pub enum LaneData {
    /// Every row is NULL.
    Null,
    /// One bit a row.
    Bool(*const u64),
    /// Values of one width.
    Fixed {
        /// The first value.
        values: *const u8,
        /// Bytes from one value to the next.
        stride: u32,
    },
    /// Items of any length. The item of a row is at `heap + slots[row]`.
    Offsets {
        /// One offset a row.
        slots: *const u64,
        /// The base of the offsets.
        heap: *const u8,
    },
    /// Items of a dictionary. The item of a row is at `heap + slots[codes[row]]`. Within one lane,
    /// two rows have equal codes if and only if their items are equal.
    Codes {
        /// One code a row.
        codes: *const u32,
        /// One offset a code.
        slots: *const u64,
        /// The base of the offsets.
        heap: *const u8,
    },
}

/// The dictionary of a lane's codes. Results for an item can be stored by instance and code,
/// because the codes of an instance never change their meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DictionaryView {
    /// The number of the dictionary, which is never 0. No other dictionary of the same arena has
    /// this number, and with the highest bit set no other column of this process has it.
    pub instance: u64,
    /// The instance of which this one began as a copy; 0 if there is none.
    pub parent: u64,
    /// Codes below this number have their meaning in common with the parent.
    pub inherited: u32,
    /// Codes below this number may be looked up: the codes of all resident rows, and possibly codes
    /// that no row uses.
    pub items: u32,
}

/// Loads one bit of a bitmap that a writer may be extending.
///
/// # Safety
/// `words` is aligned and readable up to the word that holds `bit`.
#[inline]
unsafe fn load_bit(words: *const u64, bit: usize) -> bool {
    // SAFETY: the caller vouches for the word; it is only ever written by whole atomic stores.
    let word = unsafe { AtomicU64::from_ptr(words.add(bit / 64).cast_mut()) };
    word.load(Ordering::Relaxed) >> (bit % 64) & 1 == 1
}

impl Lane {
    /// A lane of which nothing is kept in another form.
    #[inline]
    pub const fn new(data: LaneData, validity: *const u64) -> Lane {
        Lane {
            data,
            validity,
            decimals: DecimalLane::NONE,
        }
    }

    /// A lane whose every row is NULL.
    pub const NULL: Lane = Lane {
        data: LaneData::Null,
        validity: std::ptr::null(),
        decimals: DecimalLane::NONE,
    };

    /// Whether `row` is NULL.
    ///
    /// # Safety
    /// The lane's owner is alive and unchanged, and has more than `row` rows.
    #[inline]
    pub unsafe fn is_null(&self, row: usize) -> bool {
        if self.validity.is_null() {
            return matches!(self.data, LaneData::Null);
        }
        // SAFETY: a validity bitmap covers every row of its owner.
        unsafe { !load_bit(self.validity, row) }
    }

    /// The value of `row` of a lane of bools; `false` for any other lane.
    ///
    /// # Safety
    /// As for [`is_null`](Self::is_null).
    #[inline]
    pub unsafe fn bool(&self, row: usize) -> bool {
        match self.data {
            // SAFETY: a bitmap covers every row of its owner.
            LaneData::Bool(words) => unsafe { load_bit(words, row) },
            _ => false,
        }
    }

    /// The address of the value of `row` in a lane of fixed width or of items; null for other
    /// lanes.
    ///
    /// # Safety
    /// As for [`is_null`](Self::is_null). The bytes behind the pointer are a value only if the row
    /// is not NULL.
    #[inline]
    pub unsafe fn pointer(&self, row: usize) -> *const u8 {
        match self.data {
            LaneData::Null | LaneData::Bool(_) => std::ptr::null(),
            // SAFETY: the values cover every row of their owner.
            LaneData::Fixed { values, stride } => unsafe { values.add(row * stride as usize) },
            // SAFETY: there is a slot a row, and each is an offset within the heap.
            LaneData::Offsets { slots, heap } => unsafe { heap.add(*slots.add(row) as usize) },
            // SAFETY: there is a code a row, a slot a code, and each is an offset within the heap.
            LaneData::Codes { codes, slots, heap } => unsafe {
                heap.add(*slots.add(*codes.add(row) as usize) as usize)
            },
        }
    }
}
