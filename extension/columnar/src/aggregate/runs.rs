//! Runs of rows of one group: what a vector mostly consists of where a table is sorted by what is grouped by. Whatever costs
//! something for each row (to look for its group, to wait for the sum that the row before has just written) then costs it for
//! each run.
//!
//! A vector is cut into runs only if they are long on average ([`ROWS_MIN`]). A few looks at the vector tell so beforehand of
//! columns, so that a vector without runs loses next to nothing.
//!
//! Invariants: the runs of a vector are all of its rows; each has a row that is selected, as only that makes a group. Rows that
//! are not selected belong to the run before them, or to the first.

use std::ops::Range;

use lanes_simd::runs::{self, Bits};

use super::accumulator::Grouping;
use super::key::Ids;
use crate::limits::VECTOR_ROWS;
use crate::value_runs::ROWS_MIN;
use crate::vector::selection::Selection;

/// Pairs of neighbours that are looked at beforehand.
const LOOKS: usize = 16;
/// How many of them have to be equal. Of runs of [`ROWS_MIN`] rows mostly more are.
const EQUAL_MIN: usize = 12;

/// The runs of a vector.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// Where each of them begins, and at last the number of rows.
    pub starts: &'a [u32],
    /// The group of each.
    pub groups: &'a [u32],
}

impl<'a> Runs<'a> {
    /// All rows as one run.
    pub(super) fn one(whole: &'a [u32; 2], group: &'a [u32]) -> Runs<'a> {
        Runs {
            starts: whole,
            groups: group,
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.starts.last().map_or(0, |rows| *rows as usize)
    }

    /// Each with its group.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = (u32, Range<usize>)> + 'a {
        let ranges = self.starts.windows(2);
        let ranges = ranges.map(|pair| pair[0] as usize..pair[1] as usize);
        self.groups.iter().copied().zip(ranges)
    }

    /// The selection as kernels want it: null if all rows are selected, which they do faster.
    pub(super) fn chosen(self, selection: &Selection) -> *const u64 {
        if selection.is_full(self.rows()) {
            std::ptr::null()
        } else {
            selection.as_ptr()
        }
    }

    /// Each with its group and how many of its rows are selected.
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

    /// The same, as accumulators want it.
    pub(super) fn grouping(self) -> Grouping<'a> {
        match self.groups {
            [one] => Grouping::One(*one),
            _ => Grouping::Runs(self),
        }
    }

    /// Writes the group of each row.
    pub fn spread(self, out: &mut [u32]) {
        for (group, rows) in self.iter() {
            out[rows].fill(group);
        }
    }
}

/// Runs in memory of their own.
#[derive(Default)]
pub(crate) struct RunList {
    starts: Vec<u32>,
    groups: Vec<u32>,
}

impl RunList {
    /// The runs, once they are [ended](Self::end).
    #[inline]
    pub(crate) fn runs(&self) -> Runs<'_> {
        debug_assert_eq!(self.starts.len(), self.groups.len() + 1);
        Runs {
            starts: &self.starts,
            groups: &self.groups,
        }
    }

    /// The same, as a key's ids.
    #[inline]
    pub(super) fn ids(&self) -> Ids<'_> {
        match self.groups[..] {
            [one] => Ids::One(one),
            _ => Ids::Runs(self.runs()),
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        (self.starts.capacity() + self.groups.capacity()) * size_of::<u32>()
    }

    /// Begins with no run.
    pub(crate) fn clear(&mut self) {
        self.starts.clear();
        self.groups.clear();
    }

    /// Adds a run of rows from `from` on, some of which are selected.
    #[inline]
    pub(crate) fn push(&mut self, from: usize, group: u32) {
        if self.groups.last() == Some(&group) {
            return;
        }
        let from = if self.groups.is_empty() { 0 } else { from };
        self.starts.push(from as u32);
        self.groups.push(group);
    }

    /// Whether so many runs of the first `rows` rows are too many to go on.
    #[inline]
    pub(crate) fn are_short(&self, rows: usize) -> bool {
        // At the beginning there may be some short ones.
        self.groups.len() * ROWS_MIN > rows + VECTOR_ROWS / 8
    }

    /// The last run ends with the vector.
    pub(crate) fn end(&mut self, rows: usize) {
        self.starts.push(rows as u32);
    }

    /// Cuts rows, of which some are selected, wherever a value changes, and asks for the group of the first selected row of
    /// each run. False if it does not pay.
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
            self.starts.clear();
            self.starts.resize(most, 0);
            let Some(count) = runs::cut(values, rows, most, self.starts.as_mut_ptr()) else {
                return false;
            };
            self.starts.truncate(count);
        }
        self.groups.clear();
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

    /// Cuts rows wherever an id changes. False if runs are too short to pay; of few rows they never are.
    pub(crate) fn cut_ids(&mut self, ids: &[u32]) -> bool {
        let most = ids.len() / ROWS_MIN + VECTOR_ROWS / 64;
        self.starts.clear();
        self.starts.resize(most, 0);
        let starts = self.starts.as_mut_ptr();
        // SAFETY: the ids of a slice; there is room for as many starts as are asked for.
        let Some(count) = (unsafe { runs::cut(ids.as_ptr(), ids.len(), most, starts) }) else {
            return false;
        };
        self.starts.truncate(count);
        self.groups.clear();
        let groups = self.starts.iter().map(|start| ids[*start as usize]);
        self.groups.extend(groups);
        self.end(ids.len());
        true
    }

    /// Takes over the runs of the first of several keys.
    pub(crate) fn copy(&mut self, runs: Runs<'_>) {
        self.clear();
        self.starts.extend_from_slice(runs.starts);
        self.groups.extend_from_slice(runs.groups);
    }

    /// Cuts the runs of one key where those of another begin, and gives each piece that has a selected row the group of the
    /// pair.
    pub(crate) fn combine(
        &mut self,
        left: Runs<'_>,
        right: Runs<'_>,
        selection: &Selection,
        mut pair: impl FnMut(u32, u32) -> u32,
    ) {
        debug_assert_eq!(left.rows(), right.rows());
        self.clear();
        let (mut a, mut b, mut from) = (0, 0, 0);
        while a < left.len() && b < right.len() {
            let (left_end, right_end) = (left.starts[a + 1], right.starts[b + 1]);
            let end = left_end.min(right_end);
            if selection.next(from).is_some_and(|row| row < end as usize) {
                self.push(from, pair(left.groups[a], right.groups[b]));
            }
            a += usize::from(left_end == end);
            b += usize::from(right_end == end);
            from = end as usize;
        }
        self.end(left.rows());
    }
}

/// Whether neighbours here and there are mostly equal.
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
