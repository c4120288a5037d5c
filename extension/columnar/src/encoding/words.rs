//! A column's values as numbers of 64 bits.

use crate::bits;

/// How values of fixed width become numbers.
#[derive(Clone, Copy)]
pub(super) enum Widening {
    /// Two's complement.
    Signed,
    /// The bits of a bool.
    Zero,
}

/// The numbers of values without padding, in the byte order of the machine. The number of a NULL
/// row is the number before it.
pub(super) fn numbers(
    values: &[u8],
    width: usize,
    widening: Widening,
    validity: Option<&[u64]>,
) -> Vec<u64> {
    let mut words: Vec<u64> = match (width, widening) {
        (1, Widening::Signed) => values
            .iter()
            .map(|&value| i64::from(value as i8) as u64)
            .collect(),
        (2, Widening::Signed) => {
            collect(values, |value| i64::from(i16::from_ne_bytes(value)) as u64)
        }
        (4, Widening::Signed) => {
            collect(values, |value| i64::from(i32::from_ne_bytes(value)) as u64)
        }
        (4, Widening::Zero) => collect(values, |value| u64::from(u32::from_ne_bytes(value))),
        _ => collect(values, u64::from_ne_bytes),
    };
    fill_nulls(&mut words, validity);
    words
}

fn collect<const N: usize>(values: &[u8], number: impl Fn([u8; N]) -> u64) -> Vec<u64> {
    let values = values.as_chunks::<N>().0;
    values.iter().map(|&value| number(value)).collect()
}

/// Sets the number of each NULL row to the number before it, and of those before the first number
/// to that number.
pub(super) fn fill_nulls(words: &mut [u64], validity: Option<&[u64]>) {
    let Some(validity) = validity else {
        return;
    };
    let first = (0..words.len()).find(|&row| bits::get(validity, row));
    let mut before = first.map_or(0, |row| words[row]);
    for (row, word) in words.iter_mut().enumerate() {
        if bits::get(validity, row) {
            before = *word;
        } else {
            *word = before;
        }
    }
}
