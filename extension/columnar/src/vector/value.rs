//! Expressions with a number for each row.

use super::absolute::absolute;
use super::choice::Choice;
use super::conversion::convert;
use super::divisor::Divisor;
use super::external_value::ExternalValue;
use super::frame::Frame;
use super::number::{Number, NumberType, Operation, Scalar};
use super::selection::Selection;
use super::text::load_word;
use super::{Evaluation, EvaluationError, VECTOR_WORDS};
use crate::lane::LaneData;
use crate::limits::VECTOR_ROWS;
use crate::with_number;

/// Room for the results of one node: the numbers of a vector and which are not NULL.
pub struct Buffer {
    pub(super) values: [u64; VECTOR_ROWS],
    validity: [u64; VECTOR_WORDS],
}

impl Buffer {
    fn new() -> Box<Buffer> {
        Box::new(Buffer {
            values: [0; VECTOR_ROWS],
            validity: [0; VECTOR_WORDS],
        })
    }
}

/// The direction of rounding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// The greatest that is no greater.
    Floor,
    /// The least that is no less.
    Ceiling,
}

/// A number a row.
pub enum Value {
    /// A column.
    Column(NumberType, usize),
    /// A number that holds for the whole scan, by its place in [`Frame::scalars`].
    Scalar(NumberType, usize),
    /// Two numbers of one type.
    Arithmetic(NumberType, Operation, Box<(Value, Value)>, Box<Buffer>),
    /// A number of another type; the first type is the result's.
    Convert(NumberType, Box<Value>, Box<Buffer>),
    /// A timestamp plus a number of microseconds, which is a scalar.
    Shift(Box<Value>, usize, Box<Buffer>),
    /// A double without its fraction.
    Round(Rounding, Box<Value>, Box<Buffer>),
    /// A number without its sign.
    Absolute(Box<Value>, Box<Buffer>),
    /// A joined column, by its index in [`Frame::joined`].
    Joined(NumberType, usize),
    /// The first of several values whose condition holds.
    Choice(Box<Choice>),
    /// A function that is computed outside of this crate.
    External(Box<ExternalValue>),
}

/// The numbers of a vector.
#[derive(Clone, Copy, Debug)]
pub enum Operand {
    /// Each row has its own.
    Each {
        /// Values of the expression's type, one a row.
        values: *const u8,
        /// The bitmap of the rows that are not NULL; a null pointer stands for all rows.
        validity: *const u64,
    },
    /// All rows have this one.
    Same(Scalar),
    /// All rows are NULL.
    Null,
}

impl Operand {
    /// The rows of a selection that are not NULL here.
    pub fn valid(&self, selection: &Selection) -> Selection {
        match self {
            // SAFETY: an operand's bitmap covers its vector.
            Operand::Each { validity, .. } => unsafe { selection.and_bitmap(*validity) },
            Operand::Same(_) => *selection,
            Operand::Null => Selection::NONE,
        }
    }

    /// The rows of a selection that are not NULL, like [`Self::valid`], without a copy if none is
    /// NULL.
    pub fn valid_in<'a>(
        &self,
        selection: &'a Selection,
        room: &'a mut Option<Selection>,
    ) -> &'a Selection {
        match self {
            Operand::Each { validity, .. } if validity.is_null() => selection,
            Operand::Same(_) => selection,
            _ => room.insert(self.valid(selection)),
        }
    }

    /// Whether the number of a row is not NULL.
    ///
    /// # Safety
    /// The row is a row of the operand's vector.
    #[inline]
    pub unsafe fn is_valid(&self, row: usize) -> bool {
        match self {
            Operand::Each { validity, .. } if validity.is_null() => true,
            // SAFETY: this function's contract.
            Operand::Each { validity, .. } => unsafe {
                load_word(*validity, row / 64) >> (row % 64) & 1 == 1
            },
            Operand::Same(_) => true,
            Operand::Null => false,
        }
    }

    /// The number of a row that is not NULL.
    ///
    /// # Safety
    /// The operand is of type `T`, and the row is a row of its vector.
    #[inline]
    pub unsafe fn get<T: Number>(&self, row: usize) -> T {
        match self {
            // SAFETY: this function's contract.
            Operand::Each { values, .. } => unsafe { *values.cast::<T>().add(row) },
            Operand::Same(scalar) => T::of_scalar(*scalar),
            Operand::Null => T::ZERO,
        }
    }
}

impl Value {
    /// The result of an operator.
    pub fn arithmetic(number: NumberType, operation: Operation, a: Value, b: Value) -> Value {
        Value::Arithmetic(number, operation, Box::new((a, b)), Buffer::new())
    }

    /// A conversion.
    pub fn convert(to: NumberType, value: Value) -> Value {
        Value::Convert(to, Box::new(value), Buffer::new())
    }

    /// A timestamp plus a scalar of microseconds.
    pub fn shift(value: Value, microseconds: usize) -> Value {
        Value::Shift(Box::new(value), microseconds, Buffer::new())
    }

    /// A double without its fraction.
    pub fn round(rounding: Rounding, value: Value) -> Value {
        Value::Round(rounding, Box::new(value), Buffer::new())
    }

    /// A number without its sign.
    pub fn absolute(value: Value) -> Value {
        Value::Absolute(Box::new(value), Buffer::new())
    }

    /// The type of the result.
    pub fn number(&self) -> NumberType {
        match self {
            Value::Shift(..) => NumberType::I64,
            Value::Round(..) => NumberType::F64,
            Value::Absolute(value, _) => value.number(),
            Value::Choice(choice) => choice.number(),
            Value::External(value) => value.number(),
            Value::Column(number, _)
            | Value::Scalar(number, _)
            | Value::Arithmetic(number, ..)
            | Value::Convert(number, ..)
            | Value::Joined(number, _) => *number,
        }
    }

    /// The attribute, of a plain column.
    pub fn column(&self) -> Option<usize> {
        match self {
            Value::Column(_, attribute) => Some(*attribute),
            _ => None,
        }
    }

    /// The numbers of the frame's vector.
    ///
    /// # Errors
    /// The errors of the operators, for selected rows.
    pub fn evaluate(&mut self, frame: &Frame<'_>, selection: &Selection) -> Evaluation<Operand> {
        match self {
            Value::Column(number, attribute) => Ok(column(frame, *number, *attribute)),
            Value::Scalar(_, index) => Ok(match frame.scalars[*index] {
                Some(scalar) => Operand::Same(scalar),
                None => Operand::Null,
            }),
            Value::Arithmetic(number, operation, sides, buffer) => {
                let left = sides.0.evaluate(frame, selection)?;
                let right = sides.1.evaluate(frame, selection)?;
                with_number!(*number, T => {
                    arithmetic::<T>(*operation, left, right, frame.rows, selection, buffer)
                })
            }
            Value::Convert(to, value, buffer) => {
                let from = value.number();
                let operand = value.evaluate(frame, selection)?;
                with_number!(from, A => with_number!(*to, B => {
                    convert::<A, B>(operand, frame.rows, selection, buffer)
                }))
            }
            Value::Shift(value, microseconds, buffer) => {
                let operand = value.evaluate(frame, selection)?;
                let Some(by) = frame.scalars[*microseconds] else {
                    return Ok(Operand::Null);
                };
                shift(operand, by.0 as i64, frame.rows, selection, buffer)
            }
            Value::Round(rounding, value, buffer) => {
                let operand = value.evaluate(frame, selection)?;
                Ok(match rounding {
                    Rounding::Floor => round(operand, f64::floor, frame.rows, buffer),
                    Rounding::Ceiling => round(operand, f64::ceil, frame.rows, buffer),
                })
            }
            Value::Absolute(value, buffer) => {
                let operand = value.evaluate(frame, selection)?;
                with_number!(value.number(), T => absolute::<T>(operand, frame.rows, selection, buffer))
            }
            Value::Joined(_, index) => Ok(frame.joined[*index]),
            Value::Choice(choice) => choice.evaluate(frame, selection),
            Value::External(value) => Ok(value.evaluate(frame, selection)),
        }
    }
}

fn column(frame: &Frame<'_>, number: NumberType, attribute: usize) -> Operand {
    match frame.lane(attribute).data {
        LaneData::Fixed { values, stride } => {
            debug_assert_eq!(stride as usize, number.width());
            // SAFETY: the lane covers the vector.
            let values = unsafe { values.add(frame.place * number.width()) };
            Operand::Each {
                values,
                validity: frame.validity(attribute),
            }
        }
        _ => Operand::Null,
    }
}

/// Stores which rows are valid on both sides; null if all are.
fn both_valid(a: Operand, b: Operand, rows: usize, out: &mut [u64; VECTOR_WORDS]) -> *const u64 {
    let pointer = |operand| match operand {
        Operand::Each { validity, .. } => validity,
        _ => std::ptr::null(),
    };
    match (pointer(a), pointer(b)) {
        (a, b) if a.is_null() => b,
        (a, b) if b.is_null() => a,
        (a, b) => {
            // SAFETY: both bitmaps cover the vector.
            unsafe { lanes_simd::combine::and(a, b, rows, out.as_mut_ptr()) };
            out.as_ptr()
        }
    }
}

fn arithmetic<T: Number>(
    operation: Operation,
    left: Operand,
    right: Operand,
    rows: usize,
    selection: &Selection,
    buffer: &mut Buffer,
) -> Evaluation<Operand> {
    if matches!(left, Operand::Null) || matches!(right, Operand::Null) {
        return Ok(Operand::Null);
    }
    let out = buffer.values.as_mut_ptr().cast::<T>();
    // SAFETY: operands hold `T`s for all rows of the vector, and so does the buffer.
    let doubtful = unsafe {
        match operation {
            Operation::Add => fill(left, right, rows, out, |a: T, b| {
                a.apply_fast(Operation::Add, b)
            }),
            Operation::Subtract => fill(left, right, rows, out, |a: T, b| {
                a.apply_fast(Operation::Subtract, b)
            }),
            Operation::Multiply => fill(left, right, rows, out, |a: T, b| {
                a.apply_fast(Operation::Multiply, b)
            }),
            Operation::Divide => fill(left, right, rows, out, |a: T, b| {
                a.apply_fast(Operation::Divide, b)
            }),
            Operation::Modulo
                if let (NumberType::I32, Operand::Same(Scalar(bits))) = (T::TYPE, right)
                    && let Some(divisor) = Divisor::new(bits as i32) =>
            {
                fill(left, right, rows, out, |a: T, _| {
                    let rest = divisor.remainder(a.to_scalar().0 as i32);
                    (T::of_scalar(rest.to_scalar()), false)
                })
            }
            Operation::Modulo => fill(left, right, rows, out, |a: T, b| {
                a.apply_fast(Operation::Modulo, b)
            }),
        }
    };
    let validity = both_valid(left, right, rows, &mut buffer.validity);
    if doubtful {
        // Perhaps only in rows that do not count: row by row, as PostgreSQL does it.
        let counted = right.valid(&left.valid(selection));
        counted.try_for_each(|row| {
            // SAFETY: as above; the row is one of the vector.
            unsafe { *out.add(row) = left.get::<T>(row).apply(operation, right.get::<T>(row))? };
            Ok::<(), EvaluationError>(())
        })?;
    }
    Ok(Operand::Each {
        values: out.cast_const().cast(),
        validity,
    })
}

/// Applies an operator to all rows, including rows that are not selected. Returns whether any
/// result is doubtful.
///
/// # Safety
/// The operands are of type `T` and have `rows` rows, for which `out` has memory.
#[inline(always)]
unsafe fn fill<T: Number>(
    left: Operand,
    right: Operand,
    rows: usize,
    out: *mut T,
    apply: impl Fn(T, T) -> (T, bool),
) -> bool {
    let mut doubtful = false;
    // SAFETY: this function's contract.
    unsafe {
        match (left, right) {
            (Operand::Each { values: a, .. }, Operand::Each { values: b, .. }) => {
                let (a, b) = (a.cast::<T>(), b.cast::<T>());
                for row in 0..rows {
                    let (value, doubt) = apply(*a.add(row), *b.add(row));
                    *out.add(row) = value;
                    doubtful |= doubt;
                }
            }
            (Operand::Each { values: a, .. }, b) => {
                let (a, b) = (a.cast::<T>(), b.get::<T>(0));
                for row in 0..rows {
                    let (value, doubt) = apply(*a.add(row), b);
                    *out.add(row) = value;
                    doubtful |= doubt;
                }
            }
            (a, Operand::Each { values: b, .. }) => {
                let (a, b) = (a.get::<T>(0), b.cast::<T>());
                for row in 0..rows {
                    let (value, doubt) = apply(a, *b.add(row));
                    *out.add(row) = value;
                    doubtful |= doubt;
                }
            }
            (a, b) => {
                let (value, doubt) = apply(a.get::<T>(0), b.get::<T>(0));
                for row in 0..rows {
                    *out.add(row) = value;
                }
                doubtful = doubt;
            }
        }
    }
    doubtful
}

/// The first timestamp that PostgreSQL's is valid, and the first after the last; the greatest and
/// the least 64-bit numbers stand for the infinities, which no interval moves.
const TIMESTAMPS: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

/// `timestamp + interval` of nothing but microseconds.
fn shift_one(time: i64, by: i64) -> Evaluation<i64> {
    if time == i64::MAX || time == i64::MIN {
        return Ok(time);
    }
    let shifted = time.checked_add(by);
    let valid = shifted.filter(|shifted| TIMESTAMPS.contains(shifted));
    valid.ok_or(EvaluationError::TimestampOutOfRange)
}

fn round(
    operand: Operand,
    apply: impl Fn(f64) -> f64,
    rows: usize,
    buffer: &mut Buffer,
) -> Operand {
    let (numbers, validity) = match operand {
        Operand::Each { values, validity } => (values.cast::<f64>(), validity),
        Operand::Same(number) => {
            return Operand::Same(apply(f64::of_scalar(number)).to_scalar());
        }
        Operand::Null => return Operand::Null,
    };
    let out = buffer.values.as_mut_ptr().cast::<f64>();
    for row in 0..rows {
        // SAFETY: the operand has a double for each row of the vector, the buffer room for as many.
        unsafe { *out.add(row) = apply(*numbers.add(row)) };
    }
    Operand::Each {
        values: out.cast_const().cast(),
        validity,
    }
}

/// Timestamps later by so many microseconds.
///
/// # Errors
/// One of the selected timestamps would be out of range.
fn shift(
    operand: Operand,
    by: i64,
    rows: usize,
    selection: &Selection,
    buffer: &mut Buffer,
) -> Evaluation<Operand> {
    let fast = |time: i64| {
        let (shifted, overflows) = time.overflowing_add(by);
        let is_infinite = time == i64::MAX || time == i64::MIN;
        (
            shifted,
            overflows || is_infinite || !TIMESTAMPS.contains(&shifted),
        )
    };
    map(operand, (rows, selection), buffer, fast, |time| {
        shift_one(time, by)
    })
}

/// Computes a number for each row, including rows that are not selected. `fast` also says whether its result is
/// doubtful. If one is, `checked` computes those of the selected rows once more.
///
/// # Errors
/// The errors of `checked` for a selected row.
#[inline(always)]
pub(super) fn map<T: Number>(
    operand: Operand,
    (rows, selection): (usize, &Selection),
    buffer: &mut Buffer,
    fast: impl Fn(T) -> (T, bool),
    checked: impl Fn(T) -> Evaluation<T>,
) -> Evaluation<Operand> {
    let (numbers, validity) = match operand {
        Operand::Each { values, validity } => (values.cast::<T>(), validity),
        Operand::Same(number) if !selection.is_empty() => {
            return Ok(Operand::Same(checked(T::of_scalar(number))?.to_scalar()));
        }
        other => return Ok(other),
    };
    let out = buffer.values.as_mut_ptr().cast::<T>();
    let mut doubtful = false;
    // SAFETY: the operand has a `T` for each row of the vector, the buffer room for as many.
    unsafe {
        for row in 0..rows {
            let (value, doubt) = fast(*numbers.add(row));
            *out.add(row) = value;
            doubtful |= doubt;
        }
        if doubtful {
            // Perhaps only in rows that do not count.
            operand.valid(selection).try_for_each(|row| {
                *out.add(row) = checked(*numbers.add(row))?;
                Ok::<(), EvaluationError>(())
            })?;
        }
    }
    Ok(Operand::Each {
        values: out.cast_const().cast(),
        validity,
    })
}
