//! Where the rows of one column are decoded to.

use std::ops::Range;

use crate::bits;
use crate::buffer::{Buffer, Plain};
use crate::encoding::Values;
use crate::kind::LaneKind;
use crate::limits::{LANE_ALIGN, VECTOR_ROWS};

/// Room for the values and the marks of NULLs of one column.
pub(super) struct Room {
    pub(super) values: Buffer<u64>,
    pub(super) validity: Buffer<u64>,
    /// Whether any row may be NULL.
    pub(super) has_nulls: bool,
}

impl Room {
    pub(super) fn new() -> Room {
        Room {
            values: Buffer::new(),
            validity: Buffer::new(),
            has_nulls: false,
        }
    }

    /// Prepares memory for the values of so many places. It contains old values or zeros.
    pub(super) fn prepare(&mut self, kind: LaneKind, places: usize, has_nulls: bool) {
        let bytes = match kind {
            LaneKind::Bool => places.div_ceil(8),
            LaneKind::Fixed { stride, .. } => places * usize::from(stride),
            LaneKind::Varlena { .. } => places * size_of::<u32>(),
            LaneKind::Absent => 0,
        };
        let words = bytes.div_ceil(LANE_ALIGN) * (LANE_ALIGN / size_of::<u64>());
        make_room(&mut self.values, words);
        self.has_nulls = has_nulls;
        if has_nulls {
            make_room(&mut self.validity, bits::words(places));
        }
    }

    /// The memory of the values at these places, if decoded values may be written there directly.
    pub(super) fn values_at(
        &mut self,
        kind: LaneKind,
        at: usize,
        rows: usize,
    ) -> Option<Values<'_>> {
        match kind {
            LaneKind::Bool if at.is_multiple_of(64) && rows.is_multiple_of(64) => {
                Some(Values::Bits(&mut self.values[at / 64..(at + rows) / 64]))
            }
            LaneKind::Fixed { stride: 8, .. } => {
                Some(Values::Wide(&mut self.values[at..at + rows]))
            }
            LaneKind::Fixed { stride: 4, .. } | LaneKind::Varlena { .. } => {
                Some(Values::Narrow(self.codes_at(at..at + rows)))
            }
            _ => None,
        }
    }

    /// Values of 4 bytes.
    pub(super) fn codes_at(&mut self, places: Range<usize>) -> &mut [u32] {
        // SAFETY: words hold two numbers each, any bits of which are numbers; what is borrowed is
        // all that may be used.
        let (_, narrow, _) = unsafe { self.values.align_to_mut::<u32>() };
        &mut narrow[places]
    }

    pub(super) fn bytes(&self) -> usize {
        self.values.byte_len() + self.validity.byte_len()
    }

    pub(super) fn zero_codes(&mut self, places: Range<usize>) {
        const ZEROS: [u32; VECTOR_ROWS] = [0; VECTOR_ROWS];
        for place in places.clone().step_by(VECTOR_ROWS) {
            let count = (places.end - place).min(VECTOR_ROWS);
            write_bytes(&mut self.values, place * size_of::<u32>(), &ZEROS[..count]);
        }
    }

    pub(super) fn validity(&self) -> *const u64 {
        match self.has_nulls {
            true => self.validity.pointer(),
            false => std::ptr::null(),
        }
    }
}

/// Makes a buffer of at least so many words. Old contents are dropped instead of copied, because
/// zeros in mapped pages cost nothing until they are touched.
fn make_room(buffer: &mut Buffer<u64>, words: usize) {
    if buffer.len() < words {
        *buffer = Buffer::new();
        buffer.extend_zeros(words);
    }
}

/// Copies numbers to a place of a buffer, in bytes from its beginning.
pub(super) fn write_bytes<T: Plain>(into: &mut Buffer<u64>, at: usize, from: &[T]) {
    let bytes = size_of_val(from);
    assert!(at + bytes <= into.byte_len(), "values beyond their room");
    // SAFETY: both are plain integers without padding, the bytes are within the buffer, and what is
    // borrowed elsewhere is not in it.
    unsafe {
        into.as_mut_ptr()
            .cast::<u8>()
            .add(at)
            .copy_from_nonoverlapping(from.as_ptr().cast(), bytes);
    }
}

/// Sets `count` bits from bit `at` on. `value(done, bits)` returns the next `bits` bits after the
/// first `done`.
pub(super) fn write_bits(
    into: &mut [u64],
    at: usize,
    count: usize,
    mut value: impl FnMut(usize, usize) -> u64,
) {
    bits::each_word(at, count, |index, shift, bits, done| {
        let mask = bits::low_bits(bits) << shift;
        into[index] = into[index] & !mask | value(done, bits) << shift;
    });
}
