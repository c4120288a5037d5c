//! Bitmaps of 64-bit words, least significant bit first.

use crate::buffer::Buffer;

/// Words that `bits` bits take.
#[inline]
pub(crate) const fn words(bits: usize) -> usize {
    bits.div_ceil(64)
}

/// A word whose lowest `count` bits are set; `count` is at most 64.
#[inline]
pub(crate) const fn low_bits(count: usize) -> u64 {
    if count >= 64 {
        u64::MAX
    } else {
        (1 << count) - 1
    }
}

/// One bit.
#[inline]
pub(crate) fn get(words: &[u64], bit: usize) -> bool {
    words[bit / 64] >> (bit % 64) & 1 == 1
}

/// The `count` bits (1 to 64) from bit `first` on, in the low end of a word.
#[inline]
pub(crate) fn read(words: &[u64], first: usize, count: usize) -> u64 {
    let (index, shift) = (first / 64, first % 64);
    let mut bits = words[index] >> shift;
    if shift != 0 && shift + count > 64 {
        bits |= words[index + 1] << (64 - shift);
    }
    bits & low_bits(count)
}

/// Walks `count` bits of a destination from bit `into` on, a word at a time: `visit(index, shift,
/// bits)` for every destination word, with the number of bits that lie in it from `shift` on, and
/// how many were visited before.
#[inline]
pub(crate) fn each_word(
    into: usize,
    count: usize,
    mut visit: impl FnMut(usize, usize, usize, usize),
) {
    let mut done = 0;
    while done < count {
        let (index, shift) = ((into + done) / 64, (into + done) % 64);
        let bits = (64 - shift).min(count - done);
        visit(index, shift, bits, done);
        done += bits;
    }
}

/// Set bits among `count` bits from bit `first` on.
pub(crate) fn count_ones(words: &[u64], first: usize, count: usize) -> usize {
    let mut ones = 0;
    each_word(first, count, |index, shift, bits, _| {
        ones += (words[index] >> shift & low_bits(bits)).count_ones() as usize;
    });
    ones
}

/// A bitmap that grows. Invariant: bits past `len` in the last word are 0.
pub(crate) struct Bitmap {
    words: Buffer<u64>,
    len: usize,
}

impl Bitmap {
    pub(crate) const fn new() -> Self {
        Bitmap {
            words: Buffer::new(),
            len: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    #[inline]
    pub(crate) fn pointer(&self) -> *const u64 {
        self.words.pointer()
    }

    pub(crate) fn byte_len(&self) -> usize {
        self.words.byte_len()
    }

    #[inline]
    pub(crate) fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        self.words[self.len / 64] |= u64::from(bit) << (self.len % 64);
        self.len += 1;
    }

    pub(crate) fn extend_repeated(&mut self, bit: bool, count: usize) {
        let into = self.make_room(count);
        if bit {
            let words = &mut self.words;
            each_word(into, count, |index, shift, bits, _| {
                words[index] |= low_bits(bits) << shift;
            });
        }
    }

    /// Appends the first `count` bits of `source`.
    pub(crate) fn extend_from(&mut self, source: &[u64], count: usize) {
        let into = self.make_room(count);
        let words = &mut self.words;
        each_word(into, count, |index, shift, bits, done| {
            words[index] |= read(source, done, bits) << shift;
        });
    }

    /// Appends `count` zeros and answers where they begin.
    fn make_room(&mut self, count: usize) -> usize {
        let into = self.len;
        self.len += count;
        self.words.extend_zeros(words(self.len) - self.words.len());
        into
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.len = len;
        self.words.truncate(words(len));
        if let Some(last) = self.words.last_mut()
            && !len.is_multiple_of(64)
        {
            *last &= low_bits(len % 64);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pack(bits: &[bool]) -> Vec<u64> {
        let mut packed = vec![0; words(bits.len())];
        for (index, &bit) in bits.iter().enumerate() {
            packed[index / 64] |= u64::from(bit) << (index % 64);
        }
        packed
    }

    proptest! {
        #![proptest_config(crate::test_support::cases(64))]

        #[test]
        fn appends_agree_with_a_list_of_bools(
            parts in prop::collection::vec((prop::collection::vec(any::<bool>(), 0..150), 0..3), 0..6),
            cut in 0..400_usize,
        ) {
            let (mut bitmap, mut model) = (Bitmap::new(), Vec::new());
            for (bits, how) in parts {
                match how {
                    0 => {
                        // Bits past the count must not leak in.
                        let mut source = pack(&bits);
                        if let Some(last) = source.last_mut() {
                            *last |= !low_bits((bits.len() - 1) % 64 + 1);
                        }
                        bitmap.extend_from(&source, bits.len());
                        model.extend(&bits);
                    }
                    1 => {
                        let bit = bits.len() % 2 == 0;
                        bitmap.extend_repeated(bit, bits.len());
                        model.extend(bits.iter().map(|_| bit));
                    }
                    _ => for bit in bits {
                        bitmap.push(bit);
                        model.push(bit);
                    },
                }
                prop_assert_eq!(bitmap.words(), pack(&model));
            }
            bitmap.truncate(cut);
            model.truncate(cut);
            prop_assert_eq!(bitmap.len(), model.len());
            prop_assert_eq!(bitmap.words(), pack(&model));
            for first in 0..model.len() {
                prop_assert_eq!(get(bitmap.words(), first), model[first]);
                let count = (model.len() - first).min(64);
                prop_assert_eq!(read(bitmap.words(), first, count), pack(&model[first..first + count])[0]);
                prop_assert_eq!(
                    count_ones(bitmap.words(), first, model.len() - first),
                    model[first..].iter().filter(|&&bit| bit).count()
                );
            }
        }
    }
}
