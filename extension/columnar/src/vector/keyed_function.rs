//! Functions of rows whose results are kept by a number, so that they are computed once for each number.
//!
//! ```text
//! row ── decimal, or rounded double ──► known ────► the result
//!                                   └─► new ──────► computed for the first row that has it
//! row that no number stands for ──────────────────► computed
//! ```
//! Rows with equal numbers always have equal results. So `numeric` columns and what is computed from one of them become
//! keys of groups without a call for each row.

use super::decimal::{DecimalValue, round_double};
use super::external_value::RowFunction;
use super::frame::Frame;
use super::number::{NumberType, Scalar};
use super::selection::Selection;
use super::value::{Operand, Value};
use crate::limits::VECTOR_ROWS;

/// The most numbers whose results are kept, in 24 bytes each. When there are more, all are dropped.
const NUMBERS_MAX: usize = 128 << 10;

/// The fewest places of a table, which have room for a vector of new numbers.
const PLACES_MIN: usize = 4 * VECTOR_ROWS;

/// Bits of a number that are its scale. With all of them set, it is no number.
const SCALE_BITS: u32 = 5;
const NOTHING: u64 = u64::MAX;

/// The number by which a row's result is kept.
pub enum ResultKey {
    /// A decimal with its scale, and NULL. The function reads nothing else.
    Decimal(DecimalValue),
    /// A double, converted to `numeric` and rounded to so many places. The function has no other result for another
    /// double that is rounded alike.
    Rounded(Value, u8),
}

/// The result of a number.
#[derive(Clone, Copy)]
struct Known {
    number: u64,
    result: Option<Scalar>,
}

/// A function, and its results so far.
pub struct KeyedFunction {
    key: ResultKey,
    function: Box<dyn RowFunction>,
    /// Results by number. Its length is a power of two, and at most half of it is in use.
    known: Vec<Known>,
    count: usize,
    /// The result for NULL.
    null: Option<Option<Scalar>>,
    /// The number of each row, and then its place among the known ones.
    numbers: Box<[u64; VECTOR_ROWS]>,
    /// Results of rows without a number, in the order of the rows.
    others: Vec<Option<Scalar>>,
}

impl KeyedFunction {
    /// A function whose results depend on a number alone.
    pub fn new(key: ResultKey, function: Box<dyn RowFunction>) -> KeyedFunction {
        KeyedFunction {
            key,
            function,
            known: Vec::new(),
            count: 0,
            null: None,
            numbers: Box::new([0; VECTOR_ROWS]),
            others: Vec::new(),
        }
    }

    /// Reads the numbers of the rows: which rows have one, and which are NULL. `None`: they cannot be read.
    fn read(&mut self, frame: &Frame<'_>, rows: &Selection) -> Option<(Selection, Selection)> {
        let numbers = &mut self.numbers;
        let mut without = Selection::NONE;
        let mut set = |row: usize, number: Option<(i64, u8)>| match number {
            Some((value, scale)) if value << SCALE_BITS >> SCALE_BITS == value => {
                numbers[row] = (value << SCALE_BITS) as u64 | u64::from(scale);
            }
            _ => without.words[row / 64] |= 1 << (row % 64),
        };
        let present = match &mut self.key {
            ResultKey::Decimal(value) => {
                value.forget();
                let decimals = value.evaluate(frame, rows).ok()??;
                decimals.valid().for_each(|row| {
                    let decimal = decimals.decimal(row);
                    set(row, Some((decimal.value, decimal.scale)));
                });
                *decimals.valid()
            }
            ResultKey::Rounded(value, places) => {
                debug_assert_eq!(value.number(), NumberType::F64);
                let operand: Operand = value.evaluate(frame, rows).ok()?;
                let present = operand.valid(rows);
                present.for_each(|row| {
                    // SAFETY: the operand has a double for each row of the vector.
                    let double = unsafe { operand.get::<f64>(row) };
                    set(
                        row,
                        round_double(double, *places).map(|value| (value, *places)),
                    );
                });
                present
            }
        };
        Some((present.and_not(&without), rows.and_not(&present)))
    }

    /// Makes room for the new numbers of a vector.
    fn make_room(&mut self) {
        if self.count + VECTOR_ROWS <= self.known.len() / 2 {
            return;
        }
        let nothing = Known {
            number: NOTHING,
            result: None,
        };
        let places = (2 * self.known.len()).max(PLACES_MIN);
        let known = std::mem::take(&mut self.known);
        self.known = vec![nothing; places.min(2 * NUMBERS_MAX)];
        if self.count + VECTOR_ROWS > NUMBERS_MAX {
            self.count = 0;
            return;
        }
        for entry in known.iter().filter(|entry| entry.number != NOTHING) {
            let place = place(&self.known, entry.number);
            self.known[place] = *entry;
        }
    }

    /// Turns the numbers of rows into their places. Returns the first row of each new one.
    fn find(&mut self, rows: &Selection) -> Selection {
        let mut new = Selection::NONE;
        let (known, numbers, count) = (&mut self.known, &mut self.numbers, &mut self.count);
        rows.for_each(|row| {
            let number = numbers[row];
            let place = place(known, number);
            if known[place].number == NOTHING {
                known[place].number = number;
                *count += 1;
                new.words[row / 64] |= 1 << (row % 64);
            }
            numbers[row] = place as u64;
        });
        new
    }
}

/// The place of a number, or a free one for it.
#[inline(always)]
fn place(known: &[Known], number: u64) -> usize {
    /// An odd number without pattern.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let last = known.len() - 1;
    let hash = number.wrapping_mul(FACTOR);
    let mut place = (hash >> 32) as usize & last;
    while known[place].number != number && known[place].number != NOTHING {
        place = (place + 1) & last;
    }
    place
}

impl RowFunction for KeyedFunction {
    fn compute(
        &mut self,
        frame: &Frame<'_>,
        rows: &Selection,
        take: &mut dyn FnMut(usize, Option<Scalar>),
    ) {
        let Some((with_number, nulls)) = self.read(frame, rows) else {
            return self.function.compute(frame, rows, take);
        };
        self.make_room();
        let new = self.find(&with_number);
        let mut wanted = rows.and_not(&with_number).and_not(&nulls).or(&new);
        let first_null = nulls.next(0).filter(|_| self.null.is_none());
        if let Some(row) = first_null {
            wanted.insert(row, row + 1);
        }
        self.others.clear();
        if !wanted.is_empty() {
            let (known, numbers) = (&mut self.known, &self.numbers);
            let (null, others) = (&mut self.null, &mut self.others);
            self.function.compute(frame, &wanted, &mut |row, result| {
                if new.contains(row) {
                    known[numbers[row] as usize].result = result;
                } else if first_null == Some(row) {
                    *null = Some(result);
                } else {
                    others.push(result);
                }
            });
        }
        let mut others = self.others.iter();
        let null = self.null.flatten();
        rows.for_each(|row| {
            let result = match () {
                () if with_number.contains(row) => self.known[self.numbers[row] as usize].result,
                () if nulls.contains(row) => null,
                () => others.next().copied().flatten(),
            };
            take(row, result);
        });
    }

    fn forget(&mut self) {
        (self.known, self.count, self.null) = (Vec::new(), 0, None);
        self.function.forget();
    }
}
