//! Reading both sides of a join in the order of their times, without unsafe code of the caller.
//!
//! [`Reading`] drives a join of [`side_by_side`](super::side_by_side) with what scans return:
//! frames, bounds and operands. It checks once a vector what can be checked: that the times do not
//! decrease, that there is an id for each row, and that no row past the vector is selected. Ids
//! come from [`JoinKeys`], so there is memory for each of them.
//!
//! What remains is a condition of every evaluation: operands are read before their vector is left.
//! A vector of either side stays entered until the next one of its side is entered. The columns of
//! a window are read until [`Reading::leave_window`].

use lanes_simd::search::is_sorted;

use super::cursor::Bound;
use super::joined_column::JoinedColumn;
use super::keys::{JoinKeys, KeyIds, Side};
use super::merge::Merge;
use super::side_by_side::{LeftTimes, SideBySide};
use super::sliding::Sliding;
use super::window::WindowCall;
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::number::NumberType;
use crate::vector::selection::Selection;
use crate::vector::value::Operand;

/// A vector of the right side.
pub struct RightVector<'a> {
    /// The ids of the keys in each row.
    pub ids: KeyIds<'a>,
    /// The type of the times.
    pub number: NumberType,
    /// The times.
    pub times: Operand,
    /// The rows that pass the conditions.
    pub selection: Selection,
    /// The number of rows in the vector.
    pub rows: usize,
    /// The place of the vector in its window.
    pub place: usize,
}

impl RightVector<'_> {
    /// The time of each row, if each row has its own time of 64 bits.
    ///
    /// # Panics
    /// If the vector's parts are not of as many rows.
    pub(super) fn own_times(&self) -> Option<&[i64]> {
        check(&self.ids, &self.selection, self.rows);
        own_times(self.number, &self.times, self.rows)
    }
}

/// The time of each row of a vector, if each row has its own time of 64 bits.
pub(super) fn own_times(number: NumberType, times: &Operand, rows: usize) -> Option<&[i64]> {
    match (number, times) {
        (NumberType::I64, Operand::Each { values, .. }) => {
            // SAFETY: an operand has a number of its type for each row of its vector, which its
            // reader has not left.
            Some(unsafe { std::slice::from_raw_parts(values.cast(), rows) })
        }
        _ => None,
    }
}

/// Checks that a vector has an id for each row, and that no row past it is selected.
///
/// # Panics
/// If that is not so.
pub(super) fn check(ids: &[u32], selection: &Selection, rows: usize) {
    assert!(rows <= VECTOR_ROWS, "more rows than a vector has");
    assert!(ids.len() >= rows, "a row without an id");
    check_rows(selection, rows);
}

/// Checks that no row past a vector is selected.
///
/// # Panics
/// If one is.
pub(super) fn check_rows(selection: &Selection, rows: usize) {
    let is_within = selection.last().is_none_or(|last| last < rows);
    assert!(is_within, "a row past the vector");
}

/// Whether the times neither decrease nor begin before `latest`, which becomes the last of them.
pub fn goes_on(times: &[i64], latest: &mut i64) -> bool {
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return true;
    };
    let sorted = *latest <= *first && is_sorted(times);
    *latest = *last;
    sorted
}

/// The latest times so far of both sides.
struct Latest {
    lower: i64,
    upper: i64,
    right: i64,
}

/// A join that reads both sides side by side, with the current vectors of both.
pub struct Reading {
    join: Box<dyn SideBySide>,
    /// Whether left rows have a lower bound.
    has_lower: bool,
    latest: Latest,
    /// Whether the window was left, and the next one has not been entered.
    has_left_window: bool,
}

impl Reading {
    /// The latest right row up to a left row's time or before it, with these columns.
    pub fn latest(inclusive: bool, columns: &[NumberType]) -> Reading {
        Reading::of(Box::new(Merge::new(inclusive, columns)), false)
    }

    /// Aggregates of all right rows within two bounds, which may be inclusive. There are at most
    /// [`COLUMNS_MAX`](super::sliding::COLUMNS_MAX) columns.
    pub fn windows(
        (lower_inclusive, upper_inclusive): (bool, bool),
        calls: Vec<WindowCall>,
        columns: Vec<NumberType>,
    ) -> Reading {
        let join = Sliding::new(lower_inclusive, upper_inclusive, calls, columns);
        Reading::of(Box::new(join), true)
    }

    fn of(join: Box<dyn SideBySide>, has_lower: bool) -> Reading {
        Reading {
            join,
            has_lower,
            latest: Latest {
                lower: i64::MIN,
                upper: i64::MIN,
                right: i64::MIN,
            },
            has_left_window: false,
        }
    }

    /// Begins with a vector of the left side. `matching` are the selected rows whose bounds are not
    /// NULL; those without a key are taken out. Returns false if the times are not in order.
    ///
    /// # Errors
    /// The errors of the keys.
    pub fn enter_left(
        &mut self,
        frame: &Frame<'_>,
        (lower, upper): (Option<&Bound>, Option<&Bound>),
        keys: &mut JoinKeys,
        selection: &Selection,
        matching: &mut Selection,
    ) -> Evaluation<bool> {
        let Some(upper) = upper.and_then(|bound| bound.own_times(frame.rows)) else {
            return Ok(false);
        };
        let lower = match lower {
            Some(bound) => bound.own_times(frame.rows),
            None if self.has_lower => None,
            None => Some(&[][..]),
        };
        let Some(lower) = lower else {
            return Ok(false);
        };
        let in_order =
            goes_on(lower, &mut self.latest.lower) && goes_on(upper, &mut self.latest.upper);
        if !in_order {
            return Ok(false);
        }
        let ids = keys.assign(Side::Left, frame, matching)?;
        check(&ids, matching, frame.rows);
        check_rows(selection, frame.rows);
        let times = LeftTimes {
            lower: lower.as_ptr(),
            upper: upper.as_ptr(),
        };
        // SAFETY: the bounds were checked, and are read before the left side goes on.
        unsafe {
            self.join
                .enter_left(times, &ids, selection, matching, frame.rows);
        }
        self.join.make_room(ids.keys());
        Ok(true)
    }

    /// Begins with a vector of the right side. The first vector of a window comes with the window's
    /// columns, from its first row on. Returns false if the times are not in order.
    ///
    /// # Panics
    /// If the vector's parts are not of as many rows, or the columns of the window are missing.
    pub fn enter_right(&mut self, vector: &RightVector<'_>, window: Option<Vec<Operand>>) -> bool {
        let Some(times) = vector.own_times() else {
            return false;
        };
        // The times are in order already. Reading them once more brings them into the cache for
        // the merge, which jumps.
        if !goes_on(times, &mut self.latest.right) {
            return false;
        }
        if let Some(columns) = window {
            self.join.enter_window(columns);
            self.has_left_window = false;
        }
        assert!(!self.has_left_window, "a window without columns");
        let (ids, selection) = (&vector.ids[..], &vector.selection);
        // SAFETY: the times were checked, and are read before the right side goes on.
        unsafe {
            self.join
                .enter_right(times.as_ptr(), ids, selection, vector.rows, vector.place);
        }
        self.join.make_room(vector.ids.keys());
        true
    }

    /// The window is about to go: its columns are not read from here on.
    pub fn leave_window(&mut self) {
        self.has_left_window = true;
        self.join.leave_window();
    }

    /// Whether the window was left, so that the next vector of the right side needs its columns.
    pub fn has_left_window(&self) -> bool {
        self.has_left_window
    }

    /// Whether all rows of the left vector are complete.
    pub fn is_left_done(&self) -> bool {
        self.join.is_left_done()
    }

    /// Processes rows of either side until one of the vectors is done, and writes the matches of
    /// the left rows.
    ///
    /// # Errors
    /// The errors of aggregates.
    pub fn advance(&mut self, joined: &mut [JoinedColumn]) -> Evaluation<()> {
        // SAFETY: the vectors and the window that were entered have not been left, and there is
        // memory for their ids.
        unsafe { self.join.advance(joined) }
    }

    /// Completes the rest of the left rows after the last right row.
    ///
    /// # Errors
    /// The errors of aggregates.
    pub fn finish_left(&mut self, joined: &mut [JoinedColumn]) -> Evaluation<()> {
        // SAFETY: as for `advance`.
        unsafe { self.join.finish_left(joined) }
    }

    /// The left vector's rows that found a match, if only some rows do. All rows must be done.
    pub fn found(&self) -> Option<Selection> {
        self.join.found()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.join.bytes()
    }
}
