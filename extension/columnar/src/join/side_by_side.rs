//! Reading both sides once, side by side, in the order of their times.
//!
//! The caller enters a vector of either side when the one before is done, and advances until the
//! left vector is done:
//! ```text
//! enter_left ─► advance ─► left done? ─yes─► the matches of its rows are complete
//!                 ▲           │no: the right vector is done
//!                 │           ├─ another right vector (perhaps of another window: leave_window before, enter_window after) ─► enter_right
//!                 └───────────┴─ none left: finish_left
//! ```
//! The caller ensures that times never decrease on either side. Where they do, a series is searched
//! instead, which finds the same rows.

use super::joined_column::JoinedColumn;
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::selection::Selection;
use crate::vector::value::Operand;

/// The id of left rows that have no key: nothing has it.
pub(super) const NOTHING: i32 = -1;
/// The id of ignored right rows, which no left row has.
pub(super) const IGNORED: i32 = -2;

/// The bounds of a vector of the left side: 64-bit times.
#[derive(Clone, Copy)]
pub struct LeftTimes {
    /// The lower bound of each row; null if there is none.
    pub lower: *const i64,
    /// The upper bound of each row.
    pub upper: *const i64,
}

/// A join that reads both sides side by side.
pub trait SideBySide {
    /// Begins with a vector of the left side, of which only matching rows look for something.
    ///
    /// # Safety
    /// There are bounds for each of the `rows` rows, which do not decrease, nor from the vector
    /// before. All stay readable until the next vector of this side is entered.
    unsafe fn enter_left(
        &mut self,
        times: LeftTimes,
        ids: &[u32],
        selection: &Selection,
        matching: &Selection,
        rows: usize,
    );

    /// Begins with a vector of the right side, which begins at a place of its window.
    ///
    /// # Safety
    /// As for [`SideBySide::enter_left`].
    unsafe fn enter_right(
        &mut self,
        times: *const i64,
        ids: &[u32],
        selection: &Selection,
        rows: usize,
        place: usize,
    );

    /// Reserves memory for so many keys. The ids of both vectors must be less when rows are
    /// processed.
    fn make_room(&mut self, keys: usize);

    /// Begins with a window of the right side. The columns begin with its first row.
    fn enter_window(&mut self, columns: Vec<Operand>);

    /// The window is about to go.
    fn leave_window(&mut self);

    /// Whether all rows of the left vector are complete.
    fn is_left_done(&self) -> bool;

    /// Processes rows of either side until one of the vectors is done, and writes the matches of
    /// the left rows.
    ///
    /// # Safety
    /// The vectors and the window that were entered are still readable, and there is memory for
    /// their ids.
    ///
    /// # Errors
    /// The errors of aggregates.
    unsafe fn advance(&mut self, joined: &mut [JoinedColumn]) -> Evaluation<()>;

    /// Completes the rest of the left rows after the last right row.
    ///
    /// # Safety
    /// As for [`SideBySide::advance`].
    ///
    /// # Errors
    /// The errors of aggregates.
    unsafe fn finish_left(&mut self, joined: &mut [JoinedColumn]) -> Evaluation<()>;

    /// The left vector's rows that found a match, if only some rows do. All rows must be done.
    fn found(&self) -> Option<Selection>;

    /// Bytes of memory.
    fn bytes(&self) -> usize;
}

/// The ids of a vector of one side, and how far it has been taken.
pub(super) struct Side {
    /// One a row, and room to look past the last.
    pub(super) ids: Box<[i32; VECTOR_ROWS + 2]>,
    pub(super) rows: usize,
    pub(super) next: usize,
}

impl Side {
    pub(super) fn new() -> Side {
        Side {
            ids: Box::new([IGNORED; VECTOR_ROWS + 2]),
            rows: 0,
            next: 0,
        }
    }

    /// Begins with a vector; rows that are not selected get an id of their own.
    pub(super) fn enter(
        &mut self,
        ids: &[u32],
        selection: &Selection,
        rows: usize,
        otherwise: i32,
    ) {
        (self.rows, self.next) = (rows, 0);
        let all = self.ids.iter_mut().zip(ids).take(rows);
        if selection.is_full(rows) {
            all.for_each(|(own, id)| *own = *id as i32);
        } else {
            all.enumerate().for_each(|(row, (own, id))| {
                *own = if selection.contains(row) {
                    *id as i32
                } else {
                    otherwise
                };
            });
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.next == self.rows
    }
}
