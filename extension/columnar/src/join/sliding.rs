//! Aggregates of all rows within bounds, while both sides are read once, side by side. Each key has
//! a queue of the rows that are within the bounds of its latest left row.
//!
//! ```text
//! right rows up to the left row's upper bound ──► the back of their keys' queues
//! left row: rows before its lower bound leave the front of its key's queue; the rest is aggregated
//! ```
//! Bounds never decrease, so a row that has left is never needed again. The memory is that of the
//! queues: the rows of one window for each key, because rows also leave when other rows of their
//! key arrive.
//!
//! The order of left and right rows cannot be predicted. Right rows are therefore queued a block at
//! a time, before the left rows among them: rows past the upper bound of a left row are ignored at
//! the back of its queue. If windows are short, most queues are empty. The time of each key's
//! latest row is stored separately, so that an outdated queue need not be read.

use super::joined_column::JoinedColumn;
use super::side_by_side::{IGNORED, LeftTimes, NOTHING, Side, SideBySide};
use super::window::{WindowCall, WindowRows, answer};
use crate::vector::Evaluation;
use crate::vector::number::{Number, NumberType};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;
use crate::with_number;

/// Words of a queue's row before its columns: the time, and a bit for each column that is not NULL.
const TIME: usize = 0;
const VALID: usize = 1;
const COLUMNS: usize = 2;

/// Columns that a row can have.
pub const COLUMNS_MAX: usize = 64;

/// Right rows that are queued at a time.
const BLOCK_ROWS: usize = 32;

/// Rows of one key in the order of their times.
#[derive(Default)]
struct Queue {
    words: Vec<u64>,
    /// The first word of the first row that has not left; 0 of an empty queue.
    head: usize,
}

impl Queue {
    /// Removes the rows before a lower bound, which are never needed again.
    #[inline]
    fn leave(&mut self, lower: i64, inclusive: bool, stride: usize) {
        let all = self.words.len();
        if self.head == all {
            return;
        }
        while self.head < all {
            if !is_before(self.words[self.head + TIME] as i64, lower, inclusive) {
                break;
            }
            self.head += stride;
        }
        self.tidy();
    }

    /// All rows leave.
    #[inline]
    fn clear(&mut self) {
        self.words.clear();
        self.head = 0;
    }

    /// The rows that have not left and are not past an upper bound.
    #[inline]
    fn up_to(&self, upper: i64, inclusive: bool, stride: usize) -> &[u64] {
        let mut end = self.words.len();
        while end > self.head && is_after(self.words[end - stride + TIME] as i64, upper, inclusive)
        {
            end -= stride;
        }
        &self.words[self.head..end]
    }

    /// Frees the memory of removed rows: at once if all are removed, so that short queues stay in a
    /// few cache lines; otherwise when they are the greater part, so that each row is moved at most
    /// once.
    fn tidy(&mut self) {
        if self.head == self.words.len() {
            self.clear();
        } else if self.head > 64 && self.head * 2 > self.words.len() {
            self.words.drain(..self.head);
            self.head = 0;
        }
    }
}

/// Whether a time is before a lower bound, of which rows of this very time are `inclusive`.
#[inline]
fn is_before(time: i64, lower: i64, inclusive: bool) -> bool {
    (time < lower) | ((time == lower) & !inclusive)
}

/// Whether a time is past an upper bound, of which rows of this very time are `inclusive`.
#[inline]
fn is_after(time: i64, upper: i64, inclusive: bool) -> bool {
    (time > upper) | ((time == upper) & !inclusive)
}

/// The join with the current vectors of both sides.
pub struct Sliding {
    lower_inclusive: bool,
    upper_inclusive: bool,
    calls: Vec<WindowCall>,
    numbers: Vec<NumberType>,
    columns: Vec<Operand>,
    queues: Vec<Queue>,
    /// The time of the row of each key that was queued last; the least time if there was none.
    latest: Vec<i64>,
    left: Side,
    selection: Selection,
    left_times: LeftTimes,
    right: Side,
    right_times: *const i64,
    base: usize,
    /// Words that all queues have room for.
    words: usize,
}

/// The rows in a queue.
struct Queued<'a> {
    words: &'a [u64],
    stride: usize,
    numbers: &'a [NumberType],
}

impl WindowRows for Queued<'_> {
    fn len(&self) -> usize {
        if self.words.is_empty() {
            return 0;
        }
        self.words.len() / self.stride
    }

    fn number(&self, column: usize) -> NumberType {
        self.numbers[column]
    }

    fn each(&self, column: usize, mut take: impl FnMut(u64) -> Evaluation<()>) -> Evaluation<()> {
        for row in self.words.chunks_exact(self.stride) {
            if row[VALID] >> column & 1 == 1 {
                take(row[COLUMNS + column])?;
            }
        }
        Ok(())
    }
}

impl Sliding {
    /// Aggregates of right rows with at most [`COLUMNS_MAX`] columns of these types, within bounds
    /// that may include equal times.
    pub fn new(
        lower_inclusive: bool,
        upper_inclusive: bool,
        calls: Vec<WindowCall>,
        numbers: Vec<NumberType>,
    ) -> Sliding {
        Sliding {
            lower_inclusive,
            upper_inclusive,
            calls,
            columns: Vec::new(),
            queues: Vec::new(),
            latest: Vec::new(),
            left: Side::new(),
            selection: Selection::NONE,
            left_times: LeftTimes {
                lower: std::ptr::null(),
                upper: std::ptr::null(),
            },
            right: Side::new(),
            right_times: std::ptr::null(),
            base: 0,
            words: 0,
            numbers,
        }
    }

    fn stride(&self) -> usize {
        COLUMNS + self.numbers.len()
    }

    /// Appends the right vector's row to its key's queue, from which rows before the current lower
    /// bound are removed.
    ///
    /// # Safety
    /// The row is a row of the vector, and the window is readable.
    #[inline]
    unsafe fn push(&mut self, row: usize, time: i64, lower: i64) {
        let id = self.right.ids[row];
        if id == IGNORED {
            return;
        }
        let stride = self.stride();
        let queue = &mut self.queues[id as usize];
        let latest = std::mem::replace(&mut self.latest[id as usize], time);
        if is_before(latest, lower, self.lower_inclusive) {
            queue.clear();
        } else {
            queue.leave(lower, self.lower_inclusive, stride);
        }
        if queue.words.capacity() - queue.words.len() < stride {
            let before = queue.words.capacity();
            queue.words.reserve(stride);
            self.words += queue.words.capacity() - before;
        }
        let (at, place) = (queue.words.len(), self.base + row);
        let mut valid_columns = 0;
        // SAFETY: there is room for a row; the columns cover the window, as the caller promised.
        unsafe {
            let words = queue.words.as_mut_ptr().add(at);
            for (index, (column, number)) in self.columns.iter().zip(&self.numbers).enumerate() {
                let bits = with_number!(*number, T => column.get::<T>(place).to_scalar().0);
                *words.add(COLUMNS + index) = bits;
                valid_columns |= u64::from(column.is_valid(place)) << index;
            }
            *words.add(TIME) = time as u64;
            *words.add(VALID) = valid_columns;
            queue.words.set_len(at + stride);
        }
    }

    /// Puts the next rows of the right vector into their queues.
    ///
    /// # Safety
    /// As for [`Sliding::push`].
    unsafe fn push_block(&mut self, lower: i64) {
        let end = (self.right.next + BLOCK_ROWS).min(self.right.rows);
        for row in self.right.next..end {
            // SAFETY: this function's contract.
            unsafe { self.push(row, *self.right_times.add(row), lower) };
        }
        self.right.next = end;
    }

    /// Aggregates for a row of the left vector.
    ///
    /// # Safety
    /// The row is a row of the vector.
    #[inline]
    unsafe fn answer(&mut self, row: usize, joined: &mut [JoinedColumn]) -> Evaluation<()> {
        let stride = self.stride();
        let mut words: &[u64] = &[];
        let id = self.left.ids[row];
        if id != NOTHING {
            // SAFETY: this function's contract.
            let (lower, upper) = unsafe {
                let times = self.left_times;
                (*times.lower.add(row), *times.upper.add(row))
            };
            if !is_before(self.latest[id as usize], lower, self.lower_inclusive) {
                let queue = &mut self.queues[id as usize];
                queue.leave(lower, self.lower_inclusive, stride);
                words = queue.up_to(upper, self.upper_inclusive, stride);
            }
        }
        let rows = Queued {
            words,
            stride,
            numbers: &self.numbers,
        };
        for (call, joined) in self.calls.iter().zip(joined) {
            answer(*call, &rows, row, joined)?;
        }
        Ok(())
    }
}

impl SideBySide for Sliding {
    unsafe fn enter_left(
        &mut self,
        times: LeftTimes,
        ids: &[u32],
        selection: &Selection,
        matching: &Selection,
        rows: usize,
    ) {
        self.left.enter(ids, matching, rows, NOTHING);
        self.left_times = times;
        self.selection = *selection;
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
        self.base = place;
    }

    fn make_room(&mut self, keys: usize) {
        if self.queues.len() < keys {
            self.queues.resize_with(keys, Queue::default);
            self.latest.resize(keys, i64::MIN);
        }
    }

    fn enter_window(&mut self, columns: Vec<Operand>) {
        self.columns = columns;
    }

    fn leave_window(&mut self) {}

    fn is_left_done(&self) -> bool {
        self.left.is_done()
    }

    unsafe fn advance(&mut self, joined: &mut [JoinedColumn]) -> Evaluation<()> {
        if self.left.next == 0 {
            joined.iter_mut().for_each(JoinedColumn::clear);
        }
        // SAFETY: this function's contract, for rows of both vectors.
        unsafe {
            while let Some(row) = self.selection.next(self.left.next) {
                self.left.next = row;
                let upper = *self.left_times.upper.add(row);
                while !self.right.is_done() {
                    let time = *self.right_times.add(self.right.next);
                    if is_after(time, upper, self.upper_inclusive) {
                        break;
                    }
                    self.push_block(*self.left_times.lower.add(row));
                }
                if self.right.is_done() {
                    return Ok(());
                }
                self.answer(row, joined)?;
                self.left.next = row + 1;
            }
        }
        self.left.next = self.left.rows;
        Ok(())
    }

    unsafe fn finish_left(&mut self, joined: &mut [JoinedColumn]) -> Evaluation<()> {
        while let Some(row) = self.selection.next(self.left.next) {
            // SAFETY: this function's contract.
            unsafe { self.answer(row, joined)? };
            self.left.next = row + 1;
        }
        self.left.next = self.left.rows;
        Ok(())
    }

    fn found(&self) -> Option<Selection> {
        None
    }

    fn bytes(&self) -> usize {
        let keys = self.queues.capacity() * size_of::<Queue>() + self.latest.capacity() * 8;
        keys + self.words * 8
    }
}
