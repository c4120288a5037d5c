//! Selections: the rows of a vector that count.

use super::VECTOR_WORDS;
use crate::limits::VECTOR_ROWS;

/// One bit a row of a vector; the bits past its rows are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(64))]
pub struct Selection {
    /// The bits.
    pub words: [u64; VECTOR_WORDS],
}

impl Default for Selection {
    fn default() -> Self {
        Selection::NONE
    }
}

impl Selection {
    /// No row.
    pub const NONE: Selection = Selection {
        words: [0; VECTOR_WORDS],
    };

    /// The first `rows` rows.
    pub fn first(rows: usize) -> Selection {
        let mut selection = Selection::NONE;
        selection.insert(0, rows);
        selection
    }

    /// Adds the rows `from..to`.
    pub fn insert(&mut self, from: usize, to: usize) {
        debug_assert!(to <= VECTOR_ROWS);
        if from >= to {
            return;
        }
        let (first, last) = (from / 64, (to - 1) / 64);
        let (head, tail) = (u64::MAX << (from % 64), u64::MAX >> (63 - (to - 1) % 64));
        if first == last {
            self.words[first] |= head & tail;
            return;
        }
        self.words[first] |= head;
        self.words[first + 1..last].fill(u64::MAX);
        self.words[last] |= tail;
    }

    /// The selected rows in `from..to`.
    pub fn within(&self, from: usize, to: usize) -> Selection {
        let mut range = Selection::NONE;
        range.insert(from, to);
        self.and(&range)
    }

    /// The selection for a vector that begins so many words of rows later. The rows before it are
    /// removed.
    pub fn from_word(&self, word: usize) -> Selection {
        let mut later = Selection::NONE;
        let left = &self.words[word..];
        later.words[..left.len()].copy_from_slice(left);
        later
    }

    /// Rows of both.
    pub fn and(&self, other: &Selection) -> Selection {
        let mut both = *self;
        both.keep(other);
        both
    }

    /// Rows of either.
    pub fn or(&self, other: &Selection) -> Selection {
        let mut words = self.words;
        words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(a, b)| *a |= b);
        Selection { words }
    }

    /// Rows of this one that the other has not.
    pub fn and_not(&self, other: &Selection) -> Selection {
        let mut words = self.words;
        words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(a, b)| *a &= !b);
        Selection { words }
    }

    /// Rows of this one whose bit is set in a bitmap; a null pointer stands for all.
    ///
    /// # Safety
    /// The bitmap is null, or readable for every word up to the last one in which this selection
    /// has a row.
    pub unsafe fn and_bitmap(&self, bitmap: *const u64) -> Selection {
        let mut both = *self;
        // SAFETY: this function's contract.
        unsafe { both.keep_bitmap(bitmap) };
        both
    }

    /// Leaves the rows whose bit is set in a bitmap; a null pointer stands for all.
    ///
    /// # Safety
    /// As for [`Self::and_bitmap`].
    pub unsafe fn keep_bitmap(&mut self, bitmap: *const u64) {
        if !bitmap.is_null() {
            let rows = self.reach();
            let words = self.words.as_mut_ptr();
            // SAFETY: this function's contract. A writer may meanwhile set bits of the last word,
            // but only of rows that are not visible and so not selected. The kernel loads whole
            // words.
            unsafe { lanes_simd::combine::and(words, bitmap, rows, words) };
        }
    }

    /// The number of selected rows whose bit is set in a bitmap; a null pointer stands for all
    /// bits.
    ///
    /// # Safety
    /// As for [`Self::and_bitmap`].
    pub unsafe fn count_bitmap(&self, bitmap: *const u64) -> usize {
        if bitmap.is_null() {
            return self.count();
        }
        let rows = self.reach();
        // SAFETY: this function's contract.
        unsafe { lanes_simd::combine::count_ones_and(self.as_ptr(), bitmap, rows) as usize }
    }

    /// The number of rows in the words up to the last one that is not zero.
    #[inline]
    fn reach(&self) -> usize {
        if self.words[VECTOR_WORDS - 1] != 0 {
            return VECTOR_ROWS;
        }
        let last = self.words.iter().rposition(|word| *word != 0);
        last.map_or(0, |last| (last + 1) * 64)
    }

    /// The first row, or 0 if no row is selected.
    #[inline]
    pub fn first_row(&self) -> usize {
        let word = self.words.iter().position(|word| *word != 0);
        word.map_or(0, |word| {
            word * 64 + self.words[word].trailing_zeros() as usize
        })
    }

    /// Takes out a row.
    #[inline]
    pub fn remove(&mut self, row: usize) {
        self.words[row / 64] &= !(1 << (row % 64));
    }

    /// Leaves the rows that the other one has too.
    #[inline]
    pub fn keep(&mut self, other: &Selection) {
        let pairs = self.words.iter_mut().zip(&other.words);
        pairs.for_each(|(mine, other)| *mine &= other);
    }

    /// The number of selected rows.
    #[inline]
    pub fn count(&self) -> usize {
        // SAFETY: the words are a bitmap of a whole vector.
        unsafe { lanes_simd::combine::count_ones(self.words.as_ptr(), VECTOR_ROWS) as usize }
    }

    /// The number of selected rows in a range.
    pub fn count_within(&self, rows: std::ops::Range<usize>) -> usize {
        if rows.is_empty() {
            return 0;
        }
        let (first, last) = (rows.start / 64, (rows.end - 1) / 64);
        let head = u64::MAX << (rows.start % 64);
        let tail = u64::MAX >> (63 - (rows.end - 1) % 64);
        if first == last {
            return (self.words[first] & head & tail).count_ones() as usize;
        }
        let inner = &self.words[first + 1..last];
        let ends = (self.words[first] & head).count_ones() + (self.words[last] & tail).count_ones();
        ends as usize
            + inner
                .iter()
                .map(|word| word.count_ones() as usize)
                .sum::<usize>()
    }

    /// Whether the first `rows` rows are all selected.
    #[inline]
    pub fn is_full(&self, rows: usize) -> bool {
        let whole = rows / 64;
        let (first, rest) = self.words.split_at(whole);
        // Without a branch a word, so that it takes a few instructions; but most that are not full
        // show it at once.
        first.first().is_none_or(|word| *word == u64::MAX)
            && first.iter().fold(u64::MAX, |all, word| all & word) == u64::MAX
            && (rows.is_multiple_of(64) || rest[0] == u64::MAX >> (64 - rows % 64))
    }

    /// Whether no row is selected.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words[0] == 0 && self.words.iter().fold(0, |any, word| any | word) == 0
    }

    /// Whether a row is selected.
    #[inline]
    pub fn contains(&self, row: usize) -> bool {
        self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// The first row at `from` or after.
    #[inline]
    pub fn next(&self, from: usize) -> Option<usize> {
        let mut index = from / 64;
        if index >= VECTOR_WORDS {
            return None;
        }
        let mut word = self.words[index] & (u64::MAX << (from % 64));
        while word == 0 {
            index += 1;
            if index == VECTOR_WORDS {
                return None;
            }
            word = self.words[index];
        }
        Some(index * 64 + word.trailing_zeros() as usize)
    }

    /// The first row at `from` or after that is not selected.
    fn next_gap(&self, from: usize) -> usize {
        let mut index = from / 64;
        let mut rest = from % 64;
        while index < VECTOR_WORDS {
            let gaps = !self.words[index] & (u64::MAX << rest);
            if gaps != 0 {
                return index * 64 + gaps.trailing_zeros() as usize;
            }
            (index, rest) = (index + 1, 0);
        }
        VECTOR_ROWS
    }

    /// The stretches of rows that are selected without a gap, ascending.
    pub fn stretches(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let start = self.next(from)?;
            from = self.next_gap(start);
            Some(start..from)
        })
    }

    /// The range of words that contain selected rows, in rows of a vector of `rows` rows. Values
    /// outside of it need not be read. It begins at a multiple of 64 rows, and so of the stripes of
    /// sums.
    pub fn span(&self, rows: usize) -> std::ops::Range<usize> {
        let from = self.words.iter().position(|word| *word != 0).unwrap_or(0);
        let to = self
            .words
            .iter()
            .rposition(|word| *word != 0)
            .map_or(0, |word| word + 1);
        from * 64..(to * 64).min(rows).max(from * 64)
    }

    /// The last row.
    pub fn last(&self) -> Option<usize> {
        let index = self.words.iter().rposition(|w| *w != 0)?;
        Some(index * 64 + 63 - self.words[index].leading_zeros() as usize)
    }

    /// The last row before `to`.
    pub fn previous(&self, to: usize) -> Option<usize> {
        let mut index = to.div_ceil(64).min(VECTOR_WORDS);
        let last_bits = if index * 64 > to { to % 64 } else { 64 };
        let mut mask = u64::MAX >> (64 - last_bits);
        while index > 0 {
            index -= 1;
            let word = self.words[index] & mask;
            if word != 0 {
                return Some(index * 64 + 63 - word.leading_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    /// The rows, ascending.
    #[inline(always)]
    pub fn for_each(&self, mut take: impl FnMut(usize)) {
        for (i, &word) in self.words.iter().enumerate() {
            if word == u64::MAX {
                (i * 64..i * 64 + 64).for_each(&mut take);
                continue;
            }
            let mut rest = word;
            while rest != 0 {
                take(i * 64 + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }

    /// The rows of a vector of `rows` rows, ascending, without a look at the bits if all are
    /// selected.
    #[inline(always)]
    pub fn for_each_of(&self, rows: usize, mut take: impl FnMut(usize)) {
        if self.is_full(rows) {
            (0..rows).for_each(take);
        } else {
            self.for_each(&mut take);
        }
    }

    /// The rows, ascending, as long as `take` succeeds.
    #[inline(always)]
    pub fn try_for_each<E>(&self, mut take: impl FnMut(usize) -> Result<(), E>) -> Result<(), E> {
        // One place that calls `take`, so that the compiler puts it there.
        for (i, &word) in self.words.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                take(i * 64 + rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
            }
        }
        Ok(())
    }

    /// The address of the words, for kernels.
    pub fn as_ptr(&self) -> *const u64 {
        self.words.as_ptr()
    }
}
