//! The memory of a lane that is filled for one vector: values of any width, which lie side by side.

use super::number::Number;
use crate::limits::VECTOR_ROWS;

/// Room for a vector of values of up to 64 bits.
pub struct LaneBuffer(Box<[u64; VECTOR_ROWS]>);

impl Default for LaneBuffer {
    fn default() -> LaneBuffer {
        LaneBuffer::new()
    }
}

impl LaneBuffer {
    /// A buffer of zeros.
    pub fn new() -> LaneBuffer {
        LaneBuffer(Box::new([0; VECTOR_ROWS]))
    }

    /// The buffer as 64-bit values.
    pub fn words(&self) -> &[u64; VECTOR_ROWS] {
        &self.0
    }

    /// The buffer as 64-bit values.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.0[..]
    }

    /// Sets the value of a row, where values lie side by side.
    #[inline]
    pub fn set<T: LaneValue>(&mut self, row: usize, value: T) {
        const { assert!(size_of::<T>() <= size_of::<u64>()) };
        assert!(row < VECTOR_ROWS, "a row outside of the vector");
        // SAFETY: the buffer has a word for each row of a vector, and a value is no larger.
        unsafe { self.0.as_mut_ptr().cast::<T>().add(row).write(value) }
    }
}

/// A value of a lane.
///
/// # Safety
/// The type has at most 8 bytes, no greater alignment, and no invalid bit patterns.
pub unsafe trait LaneValue: Copy {}

// SAFETY: a number of a lane is a plain number; the buffer checks how large it is.
unsafe impl<T: Number> LaneValue for T {}
