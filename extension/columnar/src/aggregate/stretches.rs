//! Stretches: consecutive rows of one group. If a table is sorted by its keys, most vectors consist
//! of stretches. Work that is otherwise done for each row, such as finding its group and waiting
//! for the previous sum, is then done for each stretch.
//!
//! A vector is cut into stretches only if they are long on average (`ROWS_MIN`). For columns, a
//! sample of the vector shows that beforehand, so a vector without stretches loses next to nothing.
//! Time buckets may be *short stretches* (`SHORT_ROWS_MIN`), such as the six samples of a minute.
//! Accumulators add their rows one by one, in the order of rows that have an id each, but find the
//! state once for each stretch.
//!
//! Invariants: the stretches of a vector cover all of its rows. Each has a selected row, because
//! only a selected row makes a group. Rows that are not selected belong to the stretch before them,
//! or to the first.

use std::ops::Range;

use lanes_simd::stretches::{self, Bits};

use super::accumulator::Grouping;
use super::key::Ids;
use crate::limits::VECTOR_ROWS;
use crate::repeats::ROWS_MIN;
use crate::vector::number::Number;
use crate::vector::selection::Selection;

/// The number of pairs of neighbours in the sample.
const LOOKS: usize = 16;
/// So many of them have to be equal. In stretches of [`ROWS_MIN`] rows mostly more are.
const EQUAL_MIN: usize = 12;

/// The least average number of rows in a stretch of time buckets. Shorter stretches are as fast row
/// by row.
const SHORT_ROWS_MIN: usize = 4;

/// The stretches of a vector.
#[derive(Clone, Copy, Debug)]
pub struct Stretches<'a> {
    /// Where each stretch begins, and at last the number of rows.
    pub starts: &'a [u32],
    /// The group of each stretch.
    pub groups: &'a [u32],
    /// Whether they are short stretches, whose rows are added in the order of rows that have an id each.
    pub are_short: bool,
}

impl<'a> Stretches<'a> {
    /// All rows as one stretch.
    pub(crate) fn one(whole: &'a [u32; 2], group: &'a [u32]) -> Stretches<'a> {
        Stretches {
            starts: whole,
            groups: group,
            are_short: false,
        }
    }

    /// The number of stretches.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.starts.last().map_or(0, |rows| *rows as usize)
    }

    /// Each stretch with its group.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = (u32, Range<usize>)> + 'a {
        let ranges = self.starts.windows(2);
        let ranges = ranges.map(|pair| pair[0] as usize..pair[1] as usize);
        self.groups.iter().copied().zip(ranges)
    }

    /// The selection in the form that kernels take: null if all rows are selected, which is faster.
    pub(super) fn chosen(self, selection: &Selection) -> *const u64 {
        if selection.is_full(self.rows()) {
            std::ptr::null()
        } else {
            selection.as_ptr()
        }
    }

    /// Each stretch with its group and the number of its selected rows.
    #[inline]
    pub(super) fn counts(
        self,
        selection: &Selection,
    ) -> impl Iterator<Item = (usize, usize)> + use<'a, '_> {
        let whole = selection.is_full(self.rows());
        self.iter().map(move |(group, rows)| {
            let count = if whole {
                rows.len()
            } else {
                selection.count_within(rows)
            };
            (group as usize, count)
        })
    }

    /// The stretches in the form that accumulators take.
    pub(super) fn grouping(self) -> Grouping<'a> {
        match self.groups {
            [one] if !self.are_short => Grouping::One(*one),
            _ => Grouping::Stretches(self),
        }
    }

    /// Writes the group of each row.
    pub fn spread(self, out: &mut [u32]) {
        for (group, rows) in self.iter() {
            out[rows].fill(group);
        }
    }
}

/// Stretches in memory of their own.
#[derive(Default)]
pub(crate) struct StretchList {
    starts: Vec<u32>,
    groups: Vec<u32>,
    are_short: bool,
}

impl StretchList {
    /// The stretches, once they are [ended](Self::end).
    #[inline]
    pub(crate) fn stretches(&self) -> Stretches<'_> {
        debug_assert_eq!(self.starts.len(), self.groups.len() + 1);
        Stretches {
            starts: &self.starts,
            groups: &self.groups,
            are_short: self.are_short,
        }
    }

    /// The stretches in the form of a key's ids.
    #[inline]
    pub(super) fn ids(&self) -> Ids<'_> {
        match self.groups[..] {
            [one] if !self.are_short => Ids::One(one),
            _ => Ids::Stretches(self.stretches()),
        }
    }

    /// The number of stretches so far.
    pub(super) fn count(&self) -> usize {
        self.groups.len()
    }

    /// Where stretches from `from` on begin, and the group of each. They are not ended yet.
    pub(super) fn stretches_from(&self, stretch: usize) -> (&[u32], &[u32]) {
        (&self.starts[stretch..], &self.groups[stretch..])
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        (self.starts.capacity() + self.groups.capacity()) * size_of::<u32>()
    }

    /// Begins with no stretch.
    pub(crate) fn clear(&mut self) {
        self.starts.clear();
        self.groups.clear();
        self.are_short = false;
    }

    /// Adds a stretch of rows that begins at `from`. Some of the rows are selected.
    #[inline]
    pub(crate) fn push(&mut self, from: usize, group: u32) {
        if self.groups.last() == Some(&group) {
            return;
        }
        let from = if self.groups.is_empty() { 0 } else { from };
        self.starts.push(from as u32);
        self.groups.push(group);
    }

    /// Whether it pays to continue after so many stretches of the first `rows` rows. They may turn
    /// out to be short.
    #[inline]
    pub(crate) fn do_pay(&mut self, rows: usize) -> bool {
        // At the beginning there may be some short ones.
        let rows = rows + VECTOR_ROWS / 8;
        self.are_short |= self.groups.len() * ROWS_MIN > rows;
        self.groups.len() * SHORT_ROWS_MIN <= rows
    }

    /// Ends the last stretch at the end of the vector.
    pub(crate) fn end(&mut self, rows: usize) {
        self.starts.push(rows as u32);
    }

    /// Cuts rows, some of which are selected, wherever a value changes, and asks for the group of
    /// the first selected row of each stretch. False: it does not pay.
    ///
    /// # Safety
    /// There are so many values.
    pub(crate) unsafe fn cut<T: Bits + PartialEq>(
        &mut self,
        values: *const T,
        rows: usize,
        selection: &Selection,
        mut group_of: impl FnMut(usize) -> u32,
    ) -> bool {
        // SAFETY: the caller's promise; there is room for as many starts as are asked for.
        unsafe {
            if !has_equal_neighbours(values, rows) {
                return false;
            }
            let most = rows / ROWS_MIN;
            self.clear();
            self.starts.resize(most, 0);
            let Some(count) = stretches::cut(values, rows, most, self.starts.as_mut_ptr()) else {
                return false;
            };
            self.starts.truncate(count);
        }
        if selection.is_full(rows) {
            let firsts = self.starts.iter().map(|start| group_of(*start as usize));
            self.groups.extend(firsts);
        } else {
            let starts = std::mem::take(&mut self.starts);
            let ends = starts.iter().skip(1).copied().chain([rows as u32]);
            for (start, end) in starts.iter().zip(ends) {
                let first = selection.next(*start as usize);
                if let Some(first) = first.filter(|first| *first < end as usize) {
                    self.push(*start as usize, group_of(first));
                }
            }
        }
        self.end(rows);
        true
    }

    /// Cuts rows as [`Self::cut`] does wherever the bits of a number change.
    ///
    /// # Safety
    /// There are so many values of type `T`.
    pub(crate) unsafe fn cut_numbers<T: Number>(
        &mut self,
        values: *const u8,
        rows: usize,
        selection: &Selection,
        group_of: impl FnMut(usize) -> u32,
    ) -> bool {
        // SAFETY: the caller's promise; integers of the same width read the same bytes.
        unsafe {
            match T::TYPE.width() {
                2 => self.cut(values.cast::<u16>(), rows, selection, group_of),
                4 => self.cut(values.cast::<u32>(), rows, selection, group_of),
                _ => self.cut(values.cast::<u64>(), rows, selection, group_of),
            }
        }
    }

    /// Gives each stretch another group.
    pub(crate) fn map_groups(&mut self, of: impl Fn(u32) -> u32) {
        self.groups.iter_mut().for_each(|group| *group = of(*group));
    }

    /// Cuts rows wherever an id changes. False: the stretches are too short to pay, which is never
    /// so for few rows.
    pub(crate) fn cut_ids(&mut self, ids: &[u32]) -> bool {
        let most = ids.len() / ROWS_MIN + VECTOR_ROWS / 64;
        self.clear();
        self.starts.resize(most, 0);
        let starts = self.starts.as_mut_ptr();
        // SAFETY: the ids of a slice; there is room for as many starts as are asked for.
        let Some(count) = (unsafe { stretches::cut(ids.as_ptr(), ids.len(), most, starts) }) else {
            return false;
        };
        self.starts.truncate(count);
        let groups = self.starts.iter().map(|start| ids[*start as usize]);
        self.groups.extend(groups);
        self.end(ids.len());
        true
    }

    /// Takes over the stretches of the first of several keys.
    pub(crate) fn copy(&mut self, stretches: Stretches<'_>) {
        self.clear();
        self.starts.extend_from_slice(stretches.starts);
        self.groups.extend_from_slice(stretches.groups);
        self.are_short = stretches.are_short;
    }

    /// Cuts the stretches of one key where those of another begin, and gives each piece that has a
    /// selected row the group of the pair of ids.
    pub(crate) fn combine(
        &mut self,
        left: Stretches<'_>,
        right: Stretches<'_>,
        selection: &Selection,
        mut pair: impl FnMut(u32, u32) -> u32,
    ) {
        debug_assert_eq!(left.rows(), right.rows());
        self.clear();
        self.are_short = left.are_short || right.are_short;
        let most = left.len() + right.len();
        self.starts.reserve(most);
        self.groups.reserve(most);
        let are_all_selected = selection.is_full(left.rows());
        let mut of_right = right.iter().peekable();
        let mut from = 0;
        for (left_group, left_rows) in left.iter() {
            while from < left_rows.end
                && let Some((right_group, right_rows)) = of_right.peek()
            {
                let end = left_rows.end.min(right_rows.end);
                if are_all_selected || selection.next(from).is_some_and(|row| row < end) {
                    self.push(from, pair(left_group, *right_group));
                }
                if end == right_rows.end {
                    of_right.next();
                }
                from = end;
            }
        }
        self.end(left.rows());
    }
}

/// Whether neighbours in a sample of the rows are mostly equal.
///
/// # Safety
/// There are so many values.
unsafe fn has_equal_neighbours<T: Copy + PartialEq>(values: *const T, rows: usize) -> bool {
    if rows < LOOKS * 4 {
        return false;
    }
    let step = (rows - 1) / LOOKS;
    let is_equal = |look: usize| {
        // SAFETY: a row and the next, both of which there are.
        unsafe { *values.add(look * step) == *values.add(look * step + 1) }
    };
    (0..LOOKS).filter(|look| is_equal(*look)).count() >= EQUAL_MIN
}
