//! Finding times of a key. A cursor for each key remembers where the last search ended: times in
//! order are found in a step or two, other times by doubling steps and bisection.

use super::reading::own_times;
use super::series::Series;
use crate::vector::number::{Number, NumberType};
use crate::vector::value::Operand;
use crate::with_number;

/// A bound of the time, for the rows of a vector.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The numbers' type, an integer's.
    pub number: NumberType,
    /// A time a row.
    pub times: Operand,
    /// Whether a row of this very time is within.
    pub inclusive: bool,
}

impl Bound {
    /// The time of each row of a vector, if each row has its own time of 64 bits.
    pub(super) fn own_times(&self, rows: usize) -> Option<&[i64]> {
        own_times(self.number, &self.times, rows)
    }

    /// The time of a row.
    ///
    /// # Safety
    /// The row is a row of the vector.
    #[inline]
    pub(super) unsafe fn time(&self, row: usize) -> i64 {
        // SAFETY: this function's contract.
        unsafe {
            match (self.number, self.times) {
                (NumberType::I64, Operand::Each { values, .. }) => *values.cast::<i64>().add(row),
                (number, times) => {
                    with_number!(number, T => times.get::<T>(row).to_scalar().0 as i64)
                }
            }
        }
    }
}

/// Where the rows of a key begin and end, and where the last search ended.
#[derive(Clone, Copy)]
struct KeyCursor {
    start: u32,
    end: u32,
    at: u32,
}

/// A cursor for each key of a series.
pub struct Cursors {
    keys: Vec<KeyCursor>,
}

/// Places of a key: its first row, the first row whose time is later than the searched time, and
/// its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: u32,
    pub(super) at: u32,
    pub(super) end: u32,
}

impl Cursors {
    /// All at the beginning.
    pub fn new(series: &Series) -> Cursors {
        let cursor = |key| {
            let range = series.range(key);
            KeyCursor {
                start: range.start,
                end: range.end,
                at: range.start,
            }
        };
        Cursors {
            keys: (0..series.keys() as u32).map(cursor).collect(),
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.keys.capacity() * size_of::<KeyCursor>()
    }

    /// The first row of a key that is later than a time, or, if `included` is false, not earlier.
    #[inline]
    pub(super) fn after(&mut self, times: &[i64], key: u32, time: i64, included: bool) -> Found {
        let Some(cursor) = self.keys.get_mut(key as usize) else {
            return Found {
                start: 0,
                at: 0,
                end: 0,
            };
        };
        let KeyCursor { start, end, mut at } = *cursor;
        // Rows up to the last one whose time is no greater than this are passed.
        let passed = if included {
            Some(time)
        } else {
            time.checked_sub(1)
        };
        match passed {
            None => at = start,
            Some(last) => {
                if at < end && times[at as usize] <= last {
                    at += 1;
                    if at < end && times[at as usize] <= last {
                        at = forward(times, at, end, last);
                    }
                } else if at > start && times[at as usize - 1] > last {
                    at = backward(times, start, at, last);
                }
            }
        }
        cursor.at = at;
        Found { start, at, end }
    }
}

/// The first place in `at..end` whose time is later; that at `at` is not.
#[cold]
fn forward(times: &[i64], at: u32, end: u32, last: i64) -> u32 {
    let (mut low, mut step) = (at as usize, 1);
    let end = end as usize;
    while low + step < end && times[low + step] <= last {
        low += step;
        step *= 2;
    }
    let high = (low + step).min(end);
    (low + times[low..high].partition_point(|time| *time <= last)) as u32
}

/// The first place in `start..at` whose time is later; that before `at` is.
#[cold]
fn backward(times: &[i64], start: u32, at: u32, last: i64) -> u32 {
    let (mut high, mut step) = (at as usize - 1, 1);
    let start = start as usize;
    while high >= start + step && times[high - step] > last {
        high -= step;
        step *= 2;
    }
    let low = high.saturating_sub(step).max(start);
    (low + times[low..high].partition_point(|time| *time <= last)) as u32
}
