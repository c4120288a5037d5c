//! The latest row within bounds, found while both sides are read by key, and the rows of a key in
//! the order of their times. A table that is sealed by key and time is stored in this order.
//!
//! ```text
//! for each stretch of left rows of a key:
//!   skip right stretches of lesser keys
//!   gather the right rows of this key from as many vectors as they fill
//!   merge the times of both: count the right rows that each left row has passed; the last of them is the match
//! ```
//! Nothing is searched for, each row is read once, and the gathered rows are those of one key,
//! which mostly stay in the CPU's caches.
//!
//! The caller ensures that the keys of the right side ascend before the first left row is answered:
//! a right row that came late would be missed. Everything else is detected in time
//! ([`Step::OutOfOrder`]): keys of the left side that do not ascend, and times of a key that
//! decrease, on either side. The answers up to then are right.

use std::cmp::Ordering;
use std::ops::Range;

use lanes_simd::search;

use super::cursor::Bound;
use super::joined_column::JoinedColumn;
use super::keys::{self, JoinKeys};
use super::reading::{RightVector, check};
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;
use crate::with_number;

mod side;

use side::Side;

/// What the join needs next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Another left vector.
    LeftDone,
    /// Another right vector, or the end of the right side.
    RightDone,
    /// Another way to find right rows, for this left vector and all after it.
    OutOfOrder,
}

/// Checks that the keys of the right side ascend, before they are read.
pub struct Ascending(Side);

impl Ascending {
    /// Nothing seen yet.
    #[expect(clippy::new_without_default, reason = "as its neighbours")]
    pub fn new() -> Ascending {
        Ascending(Side::new())
    }

    /// Begins with a vector. False if its stretches are too short to pay.
    pub fn enter(&mut self, ids: &[u32], selection: &Selection, rows: usize) -> bool {
        self.0.enter_ids(ids, selection, rows)
    }

    /// Whether the keys ascend as far as they were seen. `order` is that of the keys by their ids.
    pub fn holds(&mut self, order: impl Fn(u32, u32) -> Ordering) -> bool {
        while let Some((id, _)) = self.0.stretch() {
            if !self.0.follows(id, &order) {
                return false;
            }
            self.0.pass(id);
        }
        true
    }
}

/// A column of the right side.
struct Column {
    number: NumberType,
    /// The window's numbers.
    window: Operand,
    /// The numbers of the gathered rows in 64 bits, and which are not NULL unless all are.
    values: Vec<u64>,
    valid: Option<Vec<bool>>,
}

impl Column {
    /// Writes the column's numbers in the matches of left rows, which begin at the row `from`. Each
    /// of them has passed `at` gathered rows, and as many more as `passed` says.
    #[inline]
    fn answer(
        &self,
        at: usize,
        passed: &[u32],
        from: usize,
        found: &Selection,
        joined: &mut JoinedColumn,
    ) {
        let to = from + passed.len();
        let first = (at + passed.first().map_or(0, |passed| *passed as usize)).max(1) - 1;
        let offset = at.wrapping_sub(1);
        with_number!(self.number, T => {
            let (values, validity) = joined.parts::<T>();
            for (value, passed) in values[from..to].iter_mut().zip(passed) {
                let place = offset.wrapping_add(*passed as usize);
                *value = T::of_scalar(Scalar(self.values[place]));
            }
            let words = validity.iter_mut().zip(&found.words);
            words.for_each(|(valid, found)| *valid |= found);
            // The gathered rows may be more than the rows that were checked for NULLs.
            let nulls = self.valid.as_ref().filter(|valid| valid[first..].contains(&false));
            if let Some(valid) = nulls {
                for (row, passed) in (from..to).zip(passed) {
                    if !valid[offset.wrapping_add(*passed as usize)] {
                        validity[row / 64] &= !(1 << (row % 64));
                    }
                }
            }
        });
    }
}

/// The join with the current vectors of both sides.
pub struct ByKey {
    inclusive: bool,
    left: Side,
    right: Side,
    right_rows: Selection,
    /// The place of the right vector in its window.
    base: usize,
    right_ended: bool,
    /// The key whose rows are gathered, and their times.
    key: Option<u32>,
    times: Vec<i64>,
    columns: Vec<Column>,
    /// How many of them the left rows of the key have passed, and the last time of those rows.
    at: usize,
    left_time: i64,
    passed: Box<[u32; VECTOR_ROWS]>,
    matching: Selection,
    found: Selection,
}

impl ByKey {
    /// A join with right rows of these columns, up to a left row's time or before it.
    pub fn new(inclusive: bool, columns: &[NumberType]) -> ByKey {
        let column = |number: &NumberType| Column {
            number: *number,
            window: Operand::Null,
            values: Vec::new(),
            valid: None,
        };
        ByKey {
            inclusive,
            left: Side::new(),
            right: Side::new(),
            right_rows: Selection::NONE,
            base: 0,
            right_ended: false,
            key: None,
            times: Vec::new(),
            columns: columns.iter().map(column).collect(),
            at: 0,
            left_time: i64::MIN,
            passed: Box::new([0; VECTOR_ROWS]),
            matching: Selection::NONE,
            found: Selection::NONE,
        }
    }

    /// Begins with a vector of the left side, with the upper bounds of its rows. `matching` are the
    /// selected rows whose bounds are not NULL; those without a key are taken out. Returns false if
    /// another kind of join is faster.
    ///
    /// # Errors
    /// The errors of the keys.
    pub fn enter_left(
        &mut self,
        frame: &Frame<'_>,
        upper: Option<&Bound>,
        keys: &mut JoinKeys,
        matching: &mut Selection,
        joined: &mut [JoinedColumn],
    ) -> Evaluation<bool> {
        let Some(times) = upper.and_then(|bound| bound.own_times(frame.rows)) else {
            return Ok(false);
        };
        let ids = keys.assign(keys::Side::Left, frame, matching)?;
        check(&ids, matching, frame.rows);
        // SAFETY: the times are read before the left side goes on, as in every evaluation.
        Ok(unsafe { self.begin_left(times.as_ptr(), &ids, matching, frame.rows, joined) })
    }

    /// Begins with a vector of the right side; the columns are its window's from the first row on.
    /// False as for the left side.
    ///
    /// # Panics
    /// If the vector's parts are not of as many rows.
    pub fn enter_right(&mut self, vector: &RightVector<'_>, columns: Vec<Operand>) -> bool {
        let Some(times) = vector.own_times() else {
            return false;
        };
        let (ids, selection) = (&vector.ids[..], &vector.selection);
        let window = (vector.place, columns);
        // SAFETY: times and columns are read before the right side goes on, as in every evaluation.
        unsafe { self.begin_right(times.as_ptr(), ids, selection, vector.rows, window) }
    }

    /// Begins with a vector of the left side, of which some rows match. Returns false if another
    /// kind of join is faster.
    ///
    /// # Safety
    /// There is a time for each row, and the times stay readable until the next vector of this
    /// side.
    pub(super) unsafe fn begin_left(
        &mut self,
        times: *const i64,
        ids: &[u32],
        matching: &Selection,
        rows: usize,
        joined: &mut [JoinedColumn],
    ) -> bool {
        self.matching = *matching;
        self.found = Selection::NONE;
        joined.iter_mut().for_each(JoinedColumn::clear);
        // SAFETY: this function's contract.
        unsafe { self.left.enter(times, ids, matching, rows) }
    }

    /// Begins with a vector of the right side, which begins at a place of its window; the columns
    /// are the window's from its first row on. False as for the left side.
    ///
    /// # Safety
    /// As there, of the columns too.
    pub(super) unsafe fn begin_right(
        &mut self,
        times: *const i64,
        ids: &[u32],
        selection: &Selection,
        rows: usize,
        (place, columns): (usize, Vec<Operand>),
    ) -> bool {
        (self.base, self.right_rows) = (place, *selection);
        for (column, window) in self.columns.iter_mut().zip(columns) {
            column.window = window;
        }
        // SAFETY: this function's contract.
        unsafe { self.right.enter(times, ids, selection, rows) }
    }

    /// There are no more right rows.
    pub fn end_right(&mut self) {
        self.right_ended = true;
    }

    /// Writes the matches of left rows, until one of the vectors is done. `order` is the order of
    /// the keys by their ids. The caller has left neither the vectors nor the window that were
    /// entered.
    pub fn advance(
        &mut self,
        joined: &mut [JoinedColumn],
        order: impl Fn(u32, u32) -> Ordering,
    ) -> Step {
        while let Some((key, rows)) = self.left.stretch() {
            if self.key != Some(key) {
                if !self.left.follows(key, &order) {
                    return Step::OutOfOrder;
                }
                self.begin(key);
            }
            // All rows of the key are gathered once a right stretch of a greater key follows, or
            // the right side ends.
            loop {
                let Some((right_key, right_rows)) = self.right.stretch() else {
                    if self.right_ended {
                        break;
                    }
                    return Step::RightDone;
                };
                if !self.right.follows(right_key, &order) {
                    return Step::OutOfOrder;
                }
                if right_key == key {
                    // SAFETY: the right vector and its columns stay readable until the next one
                    // is entered.
                    if !unsafe { self.gather(right_rows) } {
                        return Step::OutOfOrder;
                    }
                } else if order(right_key, key).is_gt() {
                    break;
                }
                self.right.pass(right_key);
            }
            // SAFETY: the left vector stays readable until the next one is entered.
            if !unsafe { self.answer(rows, joined) } {
                return Step::OutOfOrder;
            }
            self.left.pass(key);
        }
        Step::LeftDone
    }

    /// The left vector's rows that found a match. All rows must be done.
    pub fn found(&self) -> Selection {
        self.found
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let columns = self.columns.iter().map(|column| {
            column.values.capacity() * 8 + column.valid.as_ref().map_or(0, Vec::capacity)
        });
        size_of::<[u64; 4 * VECTOR_ROWS]>()
            + self.times.capacity() * 8
            + columns.sum::<usize>()
            + self.left.stretches.bytes()
            + self.right.stretches.bytes()
    }

    /// Begins with a key, of which no row is gathered yet.
    fn begin(&mut self, key: u32) {
        self.key = Some(key);
        (self.at, self.left_time) = (0, i64::MIN);
        self.times.clear();
        for column in &mut self.columns {
            column.values.clear();
            column.valid = None;
        }
    }

    /// Gathers rows of the right vector that are of the key; false if their times decrease.
    ///
    /// # Safety
    /// The vector and its columns are readable.
    unsafe fn gather(&mut self, rows: Range<usize>) -> bool {
        let from = self.times.len();
        let whole = self.right_rows.count_within(rows.clone()) == rows.len();
        let chosen = self.right_rows;
        // SAFETY: this function's contract.
        let times = unsafe { std::slice::from_raw_parts(self.right.times, rows.end) };
        if whole {
            self.times.extend_from_slice(&times[rows.clone()]);
        } else {
            let counted = rows.clone().filter(|row| chosen.contains(*row));
            self.times.extend(counted.map(|row| times[row]));
        }
        let base = self.base;
        for column in &mut self.columns {
            let counted = |row: &usize| whole || chosen.contains(*row);
            let window = column.window;
            with_number!(column.number, T => {
                match window {
                    Operand::Each { values, .. } if whole => {
                        // SAFETY: the column covers the vector.
                        let values = unsafe {
                            let first = values.cast::<T>().add(base + rows.start);
                            std::slice::from_raw_parts(first, rows.len())
                        };
                        column.values.extend(values.iter().map(|value| value.to_scalar().0));
                    }
                    _ => column.values.extend(rows.clone().filter(counted).map(|row| {
                        // SAFETY: as above.
                        unsafe { window.get::<T>(base + row) }.to_scalar().0
                    })),
                }
            });
            let has_nulls = !matches!(window, Operand::Each { validity, .. } if validity.is_null());
            if has_nulls && column.valid.is_none() {
                column.valid = Some(vec![true; from]);
            }
            if let Some(valid) = &mut column.valid {
                // SAFETY: as above.
                let is_valid = |row: usize| unsafe { window.is_valid(base + row) };
                valid.extend(rows.clone().filter(counted).map(is_valid));
            }
        }
        let checked = &self.times[from.saturating_sub(1)..];
        // SAFETY: the times of a slice.
        unsafe { search::is_sorted_i64(checked.as_ptr(), checked.len()) }
    }

    /// Writes the matches of rows of the left vector, all of the key, among the gathered rows.
    /// Returns false if their times decrease.
    ///
    /// # Safety
    /// The vector is readable.
    unsafe fn answer(&mut self, rows: Range<usize>, joined: &mut [JoinedColumn]) -> bool {
        // SAFETY: this function's contract.
        if !unsafe { self.count_passed(&rows) } {
            return false;
        }
        let passed = &self.passed[rows.clone()];
        // Rows are in order: the rows without a match are the first of the key.
        let nothing = if self.at > 0 {
            0
        } else {
            passed.partition_point(|passed| *passed == 0)
        };
        let (from, passed) = (rows.start + nothing, &passed[nothing..]);
        let found = self.matching.within(from, rows.end);
        self.found = self.found.or(&found);
        for (column, joined) in self.columns.iter().zip(joined) {
            column.answer(self.at, passed, from, &found, joined);
        }
        self.at += passed.last().map_or(0, |passed| *passed as usize);
        true
    }

    /// Counts the gathered rows that each of these rows of the left vector passes, from those on
    /// that the rows before have passed. Returns false if the times of the rows decrease.
    ///
    /// # Safety
    /// The vector is readable.
    #[inline]
    unsafe fn count_passed(&mut self, rows: &Range<usize>) -> bool {
        let count = rows.len();
        // SAFETY: this function's contract.
        unsafe {
            let times = self.left.times.add(rows.start);
            let last = *times.add(count - 1);
            if *times < self.left_time || !search::is_sorted_i64(times, count) {
                return false;
            }
            self.left_time = last;
            // No left row goes further than the last one, where the following rows begin.
            let right = &self.times[self.at..];
            let reach = if self.inclusive {
                search::upper_bound_i64(right.as_ptr(), right.len(), last)
            } else {
                search::lower_bound_i64(right.as_ptr(), right.len(), last)
            };
            let passed = self.passed.as_mut_ptr().add(rows.start);
            search::merge_positions_i64(
                times,
                count,
                right.as_ptr(),
                reach,
                self.inclusive,
                passed,
            );
        }
        true
    }
}
