//! The latest row within bounds, found while both sides come by key, and the rows of a key in the order of their times: as a
//! table lies that was sealed by key and time.
//!
//! ```text
//! for each stretch of left rows of a key:
//!   pass right stretches of lesser keys
//!   gather the right rows of this key, as many vectors as they go on
//!   merge the times of both: how many right rows each left row has passed; the last of them is what it finds
//! ```
//! Nothing is looked for, each row is read once, and what is gathered is one key's rows, which mostly stay in the processor's
//! caches.
//!
//! Whoever drives it makes sure that the keys of the right side ascend before the first left row is answered: a right row
//! that came late would be missed. All else is noticed in time ([`Step::OutOfOrder`]): keys of the left side that do not ascend, and times
//! of a key that decrease, on either side. What was answered until then is right.

use std::cmp::Ordering;

use lanes_simd::search;

use super::joined_column::JoinedColumn;
use crate::aggregate::stretches::StretchList;
use crate::limits::VECTOR_ROWS;
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;
use crate::with_number;

/// What it takes to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Another left vector.
    LeftDone,
    /// Another right vector, or word that there is none.
    RightDone,
    /// Another way to find right rows, for this left vector and all after it.
    OutOfOrder,
}

/// A vector of one side as stretches of rows of one key.
struct Side {
    stretches: StretchList,
    next: usize,
    times: *const i64,
    /// Ids and times, where those of the vector are not to be relied on because some rows do not count.
    own_ids: Box<[u32; VECTOR_ROWS]>,
    own_times: Box<[i64; VECTOR_ROWS]>,
    /// The key of the stretch before.
    latest: Option<u32>,
}

impl Side {
    fn new() -> Side {
        let mut stretches = StretchList::default();
        stretches.end(0);
        Side {
            stretches,
            next: 0,
            times: std::ptr::null(),
            own_ids: Box::new([0; VECTOR_ROWS]),
            own_times: Box::new([0; VECTOR_ROWS]),
            latest: None,
        }
    }

    /// Begins with a vector of which some rows count: the others become like the one before them. False if its stretches are too
    /// short to pay.
    ///
    /// # Safety
    /// There are times for each of the rows, and they stay readable until the next vector.
    unsafe fn enter(
        &mut self,
        times: *const i64,
        ids: &[u32],
        selection: &Selection,
        rows: usize,
    ) -> bool {
        self.times = times;
        if !selection.is_full(rows) && !selection.is_empty() {
            let mut counts = selection.next(0).unwrap_or_default();
            for (row, time) in self.own_times.iter_mut().enumerate().take(rows) {
                if selection.contains(row) {
                    counts = row;
                }
                // SAFETY: the caller's promise.
                *time = unsafe { *times.add(counts) };
            }
            self.times = self.own_times.as_ptr();
        }
        self.enter_ids(ids, selection, rows)
    }

    /// The same without times.
    fn enter_ids(&mut self, ids: &[u32], selection: &Selection, rows: usize) -> bool {
        self.next = 0;
        self.stretches.clear();
        if selection.is_full(rows) {
            return self.stretches.cut_ids(&ids[..rows]);
        }
        let Some(mut counts) = selection.next(0) else {
            self.stretches.end(rows);
            return true;
        };
        for (row, id) in self.own_ids.iter_mut().enumerate().take(rows) {
            if selection.contains(row) {
                counts = row;
            }
            *id = ids[counts];
        }
        self.stretches.cut_ids(&self.own_ids[..rows])
    }

    /// The stretch under way.
    fn stretch(&self) -> Option<(u32, std::ops::Range<usize>)> {
        let stretches = self.stretches.stretches();
        let id = *stretches.groups.get(self.next)?;
        let (from, to) = (stretches.starts[self.next], stretches.starts[self.next + 1]);
        Some((id, from as usize..to as usize))
    }

    /// Whether a key may follow the one before.
    fn follows(&self, id: u32, order: &impl Fn(u32, u32) -> Ordering) -> bool {
        let is_later = |latest| latest == id || order(latest, id).is_lt();
        self.latest.is_none_or(is_later)
    }

    /// Goes on to the next stretch.
    fn pass(&mut self, id: u32) {
        self.latest = Some(id);
        self.next += 1;
    }
}

/// Makes sure, before they are read, that the keys of the right side ascend.
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
    /// Of the rows that were gathered: the numbers in 64 bits, and which are not NULL unless all are.
    values: Vec<u64>,
    valid: Option<Vec<bool>>,
}

/// Both sides under way.
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
    /// How many of them the left rows of the key have passed, and the last time of those.
    at: usize,
    left_time: i64,
    passed: Box<[u32; VECTOR_ROWS]>,
    matching: Selection,
    found: Selection,
}

impl ByKey {
    /// Of right rows with columns of these types, those up to a left row's time, or before it.
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

    /// Begins with a vector of the left side, of which some rows look for something. False if it had better be answered
    /// otherwise.
    ///
    /// # Safety
    /// There is a time for each of the rows, and they stay readable until the next vector of this side.
    pub unsafe fn enter_left(
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
        // SAFETY: the caller's promise.
        unsafe { self.left.enter(times, ids, matching, rows) }
    }

    /// Begins with a vector of the right side, which begins at a place of its window; the columns are the window's from its first
    /// row on. False as for the left side.
    ///
    /// # Safety
    /// As there, of the columns too.
    pub unsafe fn enter_right(
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
        // SAFETY: the caller's promise.
        unsafe { self.right.enter(times, ids, selection, rows) }
    }

    /// There are no more right rows.
    pub fn end_right(&mut self) {
        self.right_ended = true;
    }

    /// Gives left rows what they find, until one of the vectors is done. `order` is that of the keys by their ids.
    ///
    /// # Safety
    /// The vectors and the columns that were entered are still readable.
    pub unsafe fn advance(
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
            // What is gathered is all there is of the key once a right stretch of a greater one follows, or none.
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
                    // SAFETY: the caller's promise.
                    if !unsafe { self.gather(right_rows) } {
                        return Step::OutOfOrder;
                    }
                } else if order(right_key, key).is_gt() {
                    break;
                }
                self.right.pass(right_key);
            }
            // SAFETY: the caller's promise.
            if !unsafe { self.answer(rows, joined) } {
                return Step::OutOfOrder;
            }
            self.left.pass(key);
        }
        Step::LeftDone
    }

    /// Which of the left vector's rows found something; all have to be done.
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
    unsafe fn gather(&mut self, rows: std::ops::Range<usize>) -> bool {
        let from = self.times.len();
        let whole = self.right_rows.count_within(rows.clone()) == rows.len();
        let chosen = self.right_rows;
        // SAFETY: the caller's promise.
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

    /// Gives rows of the left vector, all of the key, what they find among those gathered; false if their times decrease.
    ///
    /// # Safety
    /// The vector is readable.
    unsafe fn answer(&mut self, rows: std::ops::Range<usize>, joined: &mut [JoinedColumn]) -> bool {
        let count = rows.len();
        // SAFETY: the caller's promise.
        unsafe {
            let times = self.left.times.add(rows.start);
            let last = *times.add(count - 1);
            if *times < self.left_time || !search::is_sorted_i64(times, count) {
                return false;
            }
            self.left_time = last;
            // No left row goes further than the last one, which is where those that follow begin.
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
        let passed = &self.passed[rows.clone()];
        // Rows are in order: those that find nothing are the first of the key.
        let nothing = if self.at > 0 {
            0
        } else {
            passed.partition_point(|passed| *passed == 0)
        };
        let (from, passed) = (rows.start + nothing, &passed[nothing..]);
        let found = self.matching.within(from, rows.end);
        self.found = self.found.or(&found);
        let first = (self.at + passed.first().map_or(0, |passed| *passed as usize)).max(1) - 1;
        let offset = self.at.wrapping_sub(1);
        for (column, joined) in self.columns.iter().zip(joined) {
            with_number!(column.number, T => {
                let (values, validity) = joined.parts::<T>();
                for (value, passed) in values[from..rows.end].iter_mut().zip(passed) {
                    let place = offset.wrapping_add(*passed as usize);
                    *value = T::of_scalar(Scalar(column.values[place]));
                }
                let words = validity.iter_mut().zip(&found.words);
                words.for_each(|(valid, found)| *valid |= found);
                // What is gathered may be longer than what NULLs were seen in.
                let nulls = column.valid.as_ref().filter(|valid| valid[first..].contains(&false));
                if let Some(valid) = nulls {
                    for (row, passed) in (from..rows.end).zip(passed) {
                        if !valid[offset.wrapping_add(*passed as usize)] {
                            validity[row / 64] &= !(1 << (row % 64));
                        }
                    }
                }
            });
        }
        self.at += passed.last().map_or(0, |passed| *passed as usize);
        true
    }
}
