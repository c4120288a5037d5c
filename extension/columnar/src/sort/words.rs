//! The words of key columns, by whose unsigned order rows are sorted.

use crate::bits;
use crate::body::Body;
use crate::column::Column;
use crate::interrupt::Steps;
use crate::kind::{LaneKind, Number};

/// The words of a key column, one a row.
pub(super) enum Words<'a> {
    /// Signed values of 8 bytes in their own memory. Most keys are such values, and a copy of many
    /// times would cost too much.
    Long(&'a [[u8; 8]]),
    /// Signed values of 4 bytes in their own memory.
    Int(&'a [[u8; 4]]),
    Own(Vec<u64>),
}

impl Words<'_> {
    #[inline]
    pub(super) fn at(&self, row: u32) -> u64 {
        match self {
            Words::Long(values) => long_word(values[row as usize]),
            Words::Int(values) => int_word(values[row as usize]),
            Words::Own(words) => words[row as usize],
        }
    }
}

/// The words of a key column, one list for each word of the value. The word of a NULL row is
/// arbitrary.
pub(super) fn words_of(key: &Column) -> Vec<Words<'_>> {
    match key.body() {
        Body::Absent => Vec::new(),
        Body::Bool(bitmap) => {
            let words = (0..key.rows()).map(|row| u64::from(bits::get(bitmap.words(), row)));
            vec![Words::Own(words.collect())]
        }
        Body::Fixed {
            width,
            stride,
            values,
        } => {
            let number = match key.kind() {
                LaneKind::Fixed { number, .. } => number,
                _ => Number::Opaque,
            };
            let all = values;
            let values = values.chunks_exact(*stride).map(|value| &value[..*width]);
            match (number, *width) {
                (Number::Signed, 8) => vec![Words::Long(all.as_chunks().0)],
                (Number::Signed, 4) => vec![Words::Int(all.as_chunks().0)],
                (Number::Signed, _) => vec![Words::Own(values.map(signed_word).collect())],
                (Number::Float, _) => vec![Words::Own(values.map(float_word).collect())],
                _ => (0..width.div_ceil(8))
                    .map(|word| {
                        let at = word * 8;
                        let values = values.clone();
                        let word = |value: &[u8]| opaque_word(&value[at..value.len().min(at + 8)]);
                        Words::Own(values.map(word).collect())
                    })
                    .collect(),
            }
        }
        Body::Plain(items) => {
            let ranks = ranks((0..items.len()).map(|row| items.item(row)));
            vec![Words::Own(ranks)]
        }
        Body::Coded { codes, dictionary } => {
            let items = dictionary.items();
            let ranks = ranks((0..items.len()).map(|code| items.item(code)));
            let rank = |&code: &u32| ranks.get(code as usize).copied().unwrap_or_default();
            vec![Words::Own(codes.iter().map(rank).collect())]
        }
    }
}

#[inline(always)]
pub(super) fn long_word(value: [u8; 8]) -> u64 {
    u64::from_ne_bytes(value) ^ 1 << 63
}

#[inline(always)]
pub(super) fn int_word(value: [u8; 4]) -> u64 {
    i64::from(i32::from_ne_bytes(value)) as u64 ^ 1 << 63
}

fn signed_word(value: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..value.len()].copy_from_slice(value);
    let shift = 64 - 8 * value.len() as u32;
    let widened = i64::from_ne_bytes(bytes) << shift >> shift;
    widened as u64 ^ 1 << 63
}

#[inline]
pub(super) fn float_word(value: &[u8]) -> u64 {
    let number = match value.try_into() {
        Ok(bytes) => f64::from_ne_bytes(bytes),
        Err(_) => f64::from(f32::from_ne_bytes(value.try_into().unwrap_or_default())),
    };
    // -0 and +0 are one key, and so are all NaNs.
    let number = if number == 0.0 { 0.0 } else { number };
    let bits = if number.is_nan() {
        f64::NAN.to_bits() & !(1 << 63)
    } else {
        number.to_bits()
    };
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

fn opaque_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(word)
}

/// For each item its place among the distinct ones in order.
fn ranks<'a>(items: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<u64> {
    let steps = Steps::default();
    let mut distinct = items.clone().collect::<Vec<_>>();
    distinct.sort_unstable_by(|a, b| {
        steps.step();
        a.cmp(b)
    });
    distinct.dedup();
    let rank = |item| {
        steps.step();
        distinct.partition_point(|other| *other < item) as u64
    };
    items.map(rank).collect()
}
