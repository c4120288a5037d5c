//! The latest row within bounds, found while both sides are read once, side by side, in the order of their times.
//!
//! ```text
//! right rows up to the left row's time: cells[key] = place of the row       then the left row: place = cells[key]
//! ```
//! A step takes either a right row or a left row; which one is data, not a branch, since the sides interleave at random. A row
//! that does not count goes to a cell that nobody reads ([`IGNORED`]), a left row without a key reads one that nobody writes
//! ([`NOTHING`]).
//!
//! Places are of the right side's window under way. When it goes, what cells found in it is copied ([`Merge::leave_window`]): each
//! cell then refers to the copy. That takes time in proportion to the keys or to the rows of the window, whichever are fewer.

use super::given::Given;
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

/// A column of the right side.
struct Column {
    number: NumberType,
    /// The window's numbers.
    window: Operand,
    /// Of each key whose row was copied: the number in 64 bits, and whether it is not NULL.
    copies: Vec<(u64, bool)>,
}

/// Both sides under way.
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
    /// What the left vector's rows have found.
    places: Box<[u32; VECTOR_ROWS]>,
}

impl Merge {
    /// Of right rows with columns of these types, those up to a left row's time, or before it.
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
            places: Box::new([NONE; VECTOR_ROWS]),
        }
    }

    /// Copies the row that the cell of a key refers to, if it lies in the window.
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
            // SAFETY: the place is one of the window under way, which the columns cover.
            column.copies[key] = unsafe {
                let value = with_number!(column.number, T => {
                    column.window.get::<T>(place).to_scalar().0
                });
                (value, column.window.is_valid(place))
            };
        }
    }

    #[inline(always)]
    unsafe fn steps(&mut self, comes_first: impl Fn(i64, i64) -> bool) {
        let (left, right) = (&mut self.left, &mut self.right);
        let (mut at_left, mut at_right) = (left.next, right.next);
        let (left_times, right_times) = (self.left_times, self.right_times);
        let (left_ids, right_ids) = (left.ids.as_ptr(), right.ids.as_ptr());
        let places = self.places.as_mut_ptr();
        // SAFETY: the caller's promise.
        unsafe {
            let cells = self.cells.as_mut_ptr().add(CELLS_BEFORE);
            while at_left < left.rows && at_right < right.rows {
                let takes_right = comes_first(*right_times.add(at_right), *left_times.add(at_left));
                let id =
                    std::hint::select_unpredictable(takes_right, *right_ids.add(at_right), IGNORED);
                *cells.offset(id as isize) = self.base + at_right as u32;
                *places.add(at_left) = *cells.offset(*left_ids.add(at_left) as isize);
                at_right += usize::from(takes_right);
                at_left += usize::from(!takes_right);
            }
        }
        (left.next, right.next) = (at_left, at_right);
    }

    /// Gives left rows from one on to the one under way what they found.
    fn give(&mut self, from: usize, given: &mut [Given]) {
        assert_eq!(given.len(), self.columns.len());
        let rows = from..self.left.next;
        for (column, given) in self.columns.iter().zip(given) {
            if from == 0 {
                given.clear();
            }
            with_number!(column.number, T => {
                give::<T>(column, &self.places, rows.clone(), given);
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
    }

    fn is_left_done(&self) -> bool {
        self.left.is_done()
    }

    unsafe fn advance(&mut self, given: &mut [Given]) -> Evaluation<()> {
        let from = self.left.next;
        // SAFETY: ids are below the number of cells; the vectors have their rows.
        unsafe {
            if self.inclusive {
                self.steps(|right, left| right <= left);
            } else {
                self.steps(|right, left| right < left);
            }
        }
        self.give(from, given);
        Ok(())
    }

    unsafe fn finish_left(&mut self, given: &mut [Given]) -> Evaluation<()> {
        let from = self.left.next;
        for row in from..self.left.rows {
            let id = self.left.ids[row] as isize;
            self.places[row] = self.cells[(id + CELLS_BEFORE as isize) as usize];
        }
        self.left.next = self.left.rows;
        self.give(from, given);
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
        let ids = self.cells.capacity() + self.window_ids.capacity() + 3 * VECTOR_ROWS;
        ids * 4 + copies.sum::<usize>()
    }
}

/// Gives left rows a column of what they found.
fn give<T: Number>(
    column: &Column,
    places: &[u32; VECTOR_ROWS],
    rows: std::ops::Range<usize>,
    given: &mut Given,
) {
    let (values, validity) = given.parts::<T>();
    for row in rows {
        let place = places[row];
        let (value, valid) = if place & COPIED == 0 {
            // SAFETY: the place is one of the window under way, which the column covers.
            unsafe {
                let place = place as usize;
                (column.window.get::<T>(place), column.window.is_valid(place))
            }
        } else if place != NONE {
            let (bits, valid) = column.copies[(place & !COPIED) as usize];
            (T::of_scalar(Scalar(bits)), valid)
        } else {
            (T::ZERO, false)
        };
        values[row] = value;
        validity[row / 64] |= u64::from(valid) << (row % 64);
    }
}
