//! The latest row within bounds, found while both sides are read once, side by side, in the order
//! of their times.
//!
//! ```text
//! right rows up to the left row's time: cells[key] = place of the row       then the left row: place = cells[key]
//! ```
//! The number of right rows before each left row is found first, a vector at a time. An ignored
//! right row writes to a cell that is never read (`IGNORED`). A left row without a key reads a
//! cell that is never written (`NOTHING`).
//!
//! The order of left and right rows cannot be predicted. Rows are therefore not processed one by
//! one, but in blocks of right rows. All rows of a block write their cells, and each stores the
//! place that it replaced, before the left rows among them read the cells. A left row that finds a
//! row later than its own time goes back to the replaced place, and so on. With many keys this is
//! rare. A vector in which it is not (`STEPS_BACK_MAX`) has the rows of its window processed in
//! turns from then on, which costs the same for all keys.
//!
//! Places refer to the current window of the right side. When the window ends, the rows that cells
//! refer to are copied ([`Merge::leave_window`]), and the cells refer to the copies. This takes
//! time in proportion to the keys or to the rows of the window, whichever are fewer.

use std::hint::select_unpredictable;

use lanes_simd::search;

use super::joined_column::JoinedColumn;
use super::side_by_side::{IGNORED, LeftTimes, NOTHING, Side, SideBySide};
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;
use crate::with_number;

/// Cells before that of the id 0.
const CELLS_BEFORE: usize = 2;
/// In a cell: no row yet.
const NONE: u32 = u32::MAX;
/// In a cell: the rest is a key whose row was copied.
const COPIED: u32 = 1 << 31;

/// Right rows of a block.
const BLOCK_ROWS: usize = 32;
/// Steps back that pay, for the rows of a vector. Tests have small vectors.
const STEPS_BACK_MAX: usize = if cfg!(test) { 8 } else { VECTOR_ROWS / 8 };

/// A column of the right side.
struct Column {
    number: NumberType,
    /// The window's numbers.
    window: Operand,
    /// The copied row of each key: the number in 64 bits, and whether it is not NULL.
    copies: Vec<(u64, bool)>,
}

/// Bytes that come from memory at a time.
const CACHE_LINE: usize = 64;

impl Column {
    /// Reads the numbers of a vector in order. Left rows read them in an order that defeats the
    /// CPU's prefetching.
    fn read_ahead(&self, place: usize, rows: usize) {
        if let Operand::Each { values, .. } = self.window {
            let width = self.number.width();
            for byte in (place * width..(place + rows) * width).step_by(CACHE_LINE) {
                // SAFETY: the column covers the vector.
                std::hint::black_box(unsafe { *values.add(byte) });
            }
        }
    }
}

/// The merge with the current vectors of both sides.
pub struct Merge {
    inclusive: bool,
    cells: Vec<u32>,
    left: Side,
    left_times: *const i64,
    right: Side,
    right_times: *const i64,
    /// The place of the right vector in its window.
    base: u32,
    columns: Vec<Column>,
    /// The ids of the window's rows.
    window_ids: Vec<i32>,
    /// The number of rows of the right vector that each left row has passed.
    passed: Box<[u32; VECTOR_ROWS]>,
    /// The place that each right row replaced in its cell.
    replaced: Box<[u32; VECTOR_ROWS]>,
    /// Whether rows of the window are taken in turns.
    in_turns: bool,
    /// The rows of both vectors in the order of their times: 1 for a left row.
    is_left: Box<[u8; 2 * VECTOR_ROWS]>,
    /// The places that the left vector's rows have found, and one more element.
    places: Box<[u32; VECTOR_ROWS + 1]>,
}

impl Merge {
    /// A join with right rows of these columns, up to a left row's time or before it.
    pub fn new(inclusive: bool, columns: &[NumberType]) -> Merge {
        Merge {
            inclusive,
            cells: vec![NONE; CELLS_BEFORE],
            left: Side::new(),
            left_times: std::ptr::null(),
            right: Side::new(),
            right_times: std::ptr::null(),
            base: 0,
            columns: columns
                .iter()
                .map(|number| Column {
                    number: *number,
                    window: Operand::Null,
                    copies: Vec::new(),
                })
                .collect(),
            window_ids: Vec::new(),
            passed: Box::new([0; VECTOR_ROWS]),
            replaced: Box::new([0; VECTOR_ROWS]),
            in_turns: false,
            is_left: Box::new([0; 2 * VECTOR_ROWS]),
            places: Box::new([NONE; VECTOR_ROWS + 1]),
        }
    }

    /// Copies the row that the cell of a key refers to, if it is in the window.
    fn copy(&mut self, key: usize) {
        let cell = &mut self.cells[key + CELLS_BEFORE];
        let place = *cell as usize;
        if *cell & COPIED != 0 {
            return;
        }
        *cell = COPIED | key as u32;
        for column in &mut self.columns {
            if column.copies.len() <= key {
                column.copies.resize(key + 1, (0, false));
            }
            // SAFETY: the place is in the current window, which the columns cover.
            column.copies[key] = unsafe {
                let value = with_number!(column.number, T => {
                    column.window.get::<T>(place).to_scalar().0
                });
                (value, column.window.is_valid(place))
            };
        }
    }

    /// Takes rows until one of the vectors is done.
    ///
    /// # Safety
    /// The vectors are readable, and there are cells for their ids.
    unsafe fn take_rows(&mut self) {
        let (left_next, right_next) = (self.left.next, self.right.next);
        let (left_rows, right_rows) = (self.left.rows - left_next, self.right.rows - right_next);
        if left_rows == 0 || right_rows == 0 {
            return;
        }
        // SAFETY: this function's contract.
        unsafe {
            let left = self.left_times.add(left_next);
            let right = self.right_times.add(right_next);
            // Left rows that come before the last right row see no right row after it.
            let last = *right.add(right_rows - 1);
            let done = if self.inclusive {
                search::lower_bound_i64(left, left_rows, last)
            } else {
                search::upper_bound_i64(left, left_rows, last)
            };
            let passed = self.passed.as_mut_ptr();
            search::merge_positions_i64(left, done, right, right_rows, self.inclusive, passed);
            let taken = match done {
                _ if done < left_rows => right_rows,
                done => *passed.add(done - 1) as usize,
            };
            if self.in_turns {
                self.take_turns(done, taken);
            } else {
                self.in_turns = self.take_blocks(done, taken) > STEPS_BACK_MAX;
            }
            (self.left.next, self.right.next) = (left_next + done, right_next + taken);
        }
    }

    /// Processes the next `done` left and `taken` right rows, a block of right rows at a time.
    /// Returns the number of steps back.
    ///
    /// # Safety
    /// The rows exist, `passed` has the number of right rows that each left row has passed, and
    /// there are cells for their ids.
    unsafe fn take_blocks(&mut self, done: usize, taken: usize) -> usize {
        let base = self.base + self.right.next as u32;
        let (cells, passed) = (self.cells.as_mut_ptr(), self.passed.as_ptr());
        let replaced = self.replaced.as_mut_ptr();
        let (mut left_row, mut right_row, mut steps_back) = (0, 0, 0);
        // SAFETY: this function's contract; a place past the rows that a left row has passed is a
        // row of this call.
        unsafe {
            let left_ids = self.left.ids.as_ptr().add(self.left.next);
            let right_ids = self.right.ids.as_ptr().add(self.right.next);
            let places = self.places.as_mut_ptr().add(self.left.next);
            loop {
                let end = (right_row + BLOCK_ROWS).min(taken);
                while right_row < end {
                    let cell = cells.add(cell_of(*right_ids.add(right_row)));
                    *replaced.add(right_row) = *cell;
                    *cell = base + right_row as u32;
                    right_row += 1;
                }
                let is_last = end == taken;
                while left_row < done && (is_last || *passed.add(left_row) < end as u32) {
                    let mut place = *cells.add(cell_of(*left_ids.add(left_row)));
                    let limit = base + *passed.add(left_row);
                    // Places outside of the window are negative.
                    while place as i32 >= limit as i32 {
                        place = *replaced.add((place - base) as usize);
                        steps_back += 1;
                    }
                    *places.add(left_row) = place;
                    left_row += 1;
                }
                if is_last {
                    return steps_back;
                }
            }
        }
    }

    /// Processes rows like [`Merge::take_blocks`], but one at a time.
    ///
    /// # Safety
    /// As for [`Merge::take_blocks`].
    unsafe fn take_turns(&mut self, done: usize, taken: usize) {
        // SAFETY: this function's contract.
        unsafe {
            let (passed, is_left) = (self.passed.as_ptr(), self.is_left.as_mut_ptr());
            is_left.write_bytes(0, done + taken);
            for row in 0..done {
                *is_left.add(row + *passed.add(row) as usize) = 1;
            }
            let left_ids = self.left.ids.as_ptr().add(self.left.next);
            let right_ids = self.right.ids.as_ptr().add(self.right.next);
            let places = self.places.as_mut_ptr().add(self.left.next);
            let (cells, base) = (self.cells.as_mut_ptr(), self.base + self.right.next as u32);
            // The side of the next row is not predictable, so both sides do the same: a right row
            // writes its place into its cell, a left row writes the place that it found there. A
            // row that a right row stored is overwritten by the next left row.
            let mut left_row = 0;
            for turn in 0..done + taken {
                let right_row = turn - left_row;
                let is_left = *is_left.add(turn);
                let (left_id, right_id) = (*left_ids.add(left_row), *right_ids.add(right_row));
                let cell = cells.add(cell_of(select_unpredictable(
                    is_left != 0,
                    left_id,
                    right_id,
                )));
                let place = select_unpredictable(is_left != 0, *cell, base + right_row as u32);
                *cell = place;
                *places.add(left_row) = place;
                left_row += usize::from(is_left);
            }
        }
    }

    /// Writes the matches of the left rows from `from` to the current one.
    fn give(&mut self, from: usize, joined: &mut [JoinedColumn]) {
        assert_eq!(joined.len(), self.columns.len());
        let rows = from..self.left.next;
        for (column, joined) in self.columns.iter().zip(joined) {
            if from == 0 {
                joined.clear();
            }
            with_number!(column.number, T => {
                give::<T>(column, &self.places[..], rows.clone(), joined);
            });
        }
    }
}

impl SideBySide for Merge {
    unsafe fn enter_left(
        &mut self,
        times: LeftTimes,
        ids: &[u32],
        _selection: &Selection,
        matching: &Selection,
        rows: usize,
    ) {
        self.left.enter(ids, matching, rows, NOTHING);
        self.left_times = times.upper;
    }

    unsafe fn enter_right(
        &mut self,
        times: *const i64,
        ids: &[u32],
        selection: &Selection,
        rows: usize,
        place: usize,
    ) {
        self.right.enter(ids, selection, rows, IGNORED);
        self.right_times = times;
        self.base = place as u32;
        self.window_ids.extend_from_slice(&self.right.ids[..rows]);
        for column in &self.columns {
            column.read_ahead(place, rows);
        }
    }

    fn make_room(&mut self, keys: usize) {
        if self.cells.len() < keys + CELLS_BEFORE {
            self.cells.resize(keys + CELLS_BEFORE, NONE);
        }
    }

    fn enter_window(&mut self, columns: Vec<Operand>) {
        for (column, window) in self.columns.iter_mut().zip(columns) {
            column.window = window;
        }
    }

    /// Copies what cells refer to.
    fn leave_window(&mut self) {
        let ids = std::mem::take(&mut self.window_ids);
        let keys = self.cells.len() - CELLS_BEFORE;
        if ids.len() < keys {
            ids.iter()
                .filter(|id| **id >= 0)
                .for_each(|id| self.copy(*id as usize));
        } else {
            (0..keys).for_each(|key| self.copy(key));
        }
        self.window_ids = ids;
        self.window_ids.clear();
        for column in &mut self.columns {
            column.window = Operand::Null;
        }
        self.in_turns = false;
    }

    fn is_left_done(&self) -> bool {
        self.left.is_done()
    }

    unsafe fn advance(&mut self, joined: &mut [JoinedColumn]) -> Evaluation<()> {
        let from = self.left.next;
        // SAFETY: this function's contract.
        unsafe { self.take_rows() };
        self.give(from, joined);
        Ok(())
    }

    unsafe fn finish_left(&mut self, joined: &mut [JoinedColumn]) -> Evaluation<()> {
        let from = self.left.next;
        for row in from..self.left.rows {
            self.places[row] = self.cells[cell_of(self.left.ids[row])];
        }
        self.left.next = self.left.rows;
        self.give(from, joined);
        Ok(())
    }

    fn found(&self) -> Option<Selection> {
        let mut found = Selection::NONE;
        for (row, place) in self.places[..self.left.rows].iter().enumerate() {
            found.words[row / 64] |= u64::from(*place != NONE) << (row % 64);
        }
        Some(found)
    }

    fn bytes(&self) -> usize {
        let copies = self
            .columns
            .iter()
            .map(|column| column.copies.capacity() * 16);
        let ids = self.cells.capacity() + self.window_ids.capacity() + 4 * VECTOR_ROWS;
        ids * 4 + copies.sum::<usize>()
    }
}

/// Where the cell of an id is.
#[inline(always)]
fn cell_of(id: i32) -> usize {
    (id as isize + CELLS_BEFORE as isize) as usize
}

/// Writes a column of the matches of left rows.
fn give<T: Number>(
    column: &Column,
    places: &[u32],
    rows: std::ops::Range<usize>,
    joined: &mut JoinedColumn,
) {
    let (values, validity) = joined.parts::<T>();
    let window = match column.window {
        Operand::Each { values, validity } if validity.is_null() => values.cast::<T>(),
        _ => std::ptr::null(),
    };
    let mut next = rows.start;
    while next < rows.end {
        // A word of validity at a time: it is kept in a register.
        let word = next / 64;
        let end = rows.end.min((word + 1) * 64);
        let found = &places[next..end];
        if !window.is_null() && found.iter().fold(0, |all, place| all | place) & COPIED == 0 {
            for (value, place) in values[next..end].iter_mut().zip(found) {
                // SAFETY: the place is in the current window, which the column covers.
                *value = unsafe { *window.add(*place as usize) };
            }
            validity[word] |= (u64::MAX >> (64 - found.len())) << (next % 64);
            next = end;
            continue;
        }
        let mut valid_rows = 0;
        for row in next..end {
            let place = places[row];
            let lies_in_window = place & COPIED == 0;
            let (value, valid) = if place != NONE && !lies_in_window {
                let (bits, valid) = column.copies[(place & !COPIED) as usize];
                (T::of_scalar(Scalar(bits)), valid)
            } else if !window.is_null() {
                // Whether there is a match is not predictable; the window has a first row.
                let at = select_unpredictable(lies_in_window, place as usize, 0);
                // SAFETY: the place is in the current window, which the column covers.
                (unsafe { *window.add(at) }, lies_in_window)
            } else if lies_in_window {
                // SAFETY: as above.
                unsafe {
                    let place = place as usize;
                    (column.window.get::<T>(place), column.window.is_valid(place))
                }
            } else {
                (T::ZERO, false)
            };
            values[row] = value;
            valid_rows |= u64::from(valid) << (row % 64);
        }
        validity[word] |= valid_rows;
        next = end;
    }
}
