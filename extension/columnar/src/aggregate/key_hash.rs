//! Hashes of keys. They depend on the values alone, not on how a lane stores them.

use super::key::{Key, KeyReader, canonical};
use crate::bytes16::Bytes16;
use crate::lane::LaneData;
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::number::{Number, NumberType};
use crate::vector::selection::Selection;
use crate::vector::text::item_payload;
use crate::vector::value::Operand;
use crate::with_number;

/// The number that stands for NULL.
const NULL: u64 = 0x6a09_e667_f3bc_c909;

/// A hash, with one more value mixed in.
#[inline]
fn mixed(hash: u64, value: u64) -> u64 {
    let wide = u128::from(hash ^ value ^ 0x9e37_79b9_7f4a_7c15)
        .wrapping_mul(0xd6e8_feb8_6659_fd93_a5a3_56b1_0d2f_9c31);
    (wide >> 64) as u64 ^ wide as u64
}

impl KeyReader {
    /// Mixes the values of the selected rows into hashes of other keys' values.
    pub(super) fn hash(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
        hashes: &mut [u64; VECTOR_ROWS],
    ) -> Evaluation<()> {
        let mut mix = |row: usize, value| hashes[row] = mixed(hashes[row], value);
        let valid = match &mut self.key {
            Key::Text(attribute) => {
                let (lane, valid) = (frame.lane(*attribute), frame.present(*attribute, selection));
                valid.for_each(|row| {
                    // SAFETY: a row of the vector that is not NULL, of a lane of items.
                    let text = unsafe { item_payload(lane.pointer(frame.place + row)) };
                    mix(row, xxhash_rust::xxh3::xxh3_64(text));
                });
                valid
            }
            Key::Bytes16(attribute) => {
                let valid = frame.present(*attribute, selection);
                if let LaneData::Fixed { values, .. } = frame.lane(*attribute).data {
                    valid.for_each(|row| {
                        // SAFETY: the lane covers the vector; bytes have no alignment.
                        let bytes =
                            unsafe { *values.add((frame.place + row) * 16).cast::<[u8; 16]>() };
                        mix(row, xxhash_rust::xxh3::xxh3_64(&Bytes16::of(bytes).bytes()));
                    });
                }
                valid
            }
            Key::Truth(predicate) => {
                let truth = predicate.evaluate(frame, selection)?;
                truth.yes.for_each(|row| mix(row, 1));
                truth.no.for_each(|row| mix(row, 0));
                truth.yes.or(&truth.no)
            }
            Key::Number(value) => {
                let number = value.number();
                let operand = value.evaluate(frame, selection)?;
                let valid = operand.valid(selection);
                with_number!(number, T => valid.for_each(|row| {
                    // SAFETY: the operand has a `T` for each row of the vector.
                    mix(row, canonical(unsafe { operand.get::<T>(row) }));
                }));
                valid
            }
            Key::Bucket(value, _) => {
                let number = value.number();
                let operand = value.evaluate(frame, selection)?;
                let valid = operand.valid(selection);
                // SAFETY: times are integers of this type.
                let time = |row| unsafe { time_of(number, operand, row) };
                valid.for_each(|row| mix(row, self.bucket_of(time(row)).value as u64));
                valid
            }
        };
        selection.and_not(&valid).for_each(|row| mix(row, NULL));
        Ok(())
    }
}

/// The time of a row.
///
/// # Safety
/// The operand has integers of this type, one for each row of its vector, to which the row belongs.
#[inline]
unsafe fn time_of(number: NumberType, operand: Operand, row: usize) -> i64 {
    // SAFETY: this function's contract.
    unsafe {
        match number {
            NumberType::I32 => operand.get::<i32>(row).to_scalar().0 as i64,
            _ => operand.get::<i64>(row),
        }
    }
}
