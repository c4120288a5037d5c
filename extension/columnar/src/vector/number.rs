//! The types that are computed on, with PostgreSQL's order and arithmetic.

use std::cmp::Ordering;

use super::{Evaluation, EvaluationError};

/// The type of a number. Dates are `I32`; times and timestamps `I64`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum NumberType {
    /// `smallint`.
    I16,
    /// `integer`, `date`.
    I32,
    /// `bigint`, `timestamp`, `time`.
    I64,
    /// `real`.
    F32,
    /// `double precision`.
    F64,
}

impl NumberType {
    /// Bytes of a value.
    pub const fn width(self) -> usize {
        match self {
            NumberType::I16 => 2,
            NumberType::I32 | NumberType::F32 => 4,
            NumberType::I64 | NumberType::F64 => 8,
        }
    }

    /// Whether it is a float.
    pub const fn is_float(self) -> bool {
        matches!(self, NumberType::F32 | NumberType::F64)
    }
}

/// A number of any of the types, in 64 bits: integers sign-extended, floats by their bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Scalar(pub u64);

/// An operator of arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// a + b
    Add,
    /// a - b
    Subtract,
    /// a * b
    Multiply,
    /// a / b, truncated towards zero for integers
    Divide,
    /// a % b, integers only
    Modulo,
}

/// A Rust type of one of the [`NumberType`]s.
pub trait Number: lanes_simd::Number + Copy + PartialEq + 'static {
    /// The number type.
    const TYPE: NumberType;
    /// Zero.
    const ZERO: Self;
    /// In 64 bits.
    fn to_scalar(self) -> Scalar;
    /// Back.
    fn of_scalar(scalar: Scalar) -> Self;
    /// PostgreSQL's order: NaN is greatest and equals itself, -0 = +0.
    fn order(self, other: Self) -> Ordering;
    /// The operator, with the errors that PostgreSQL raises.
    fn apply(self, operation: Operation, other: Self) -> Evaluation<Self>;
    /// The operator without the errors, and whether there may be one.
    fn apply_fast(self, operation: Operation, other: Self) -> (Self, bool);
    /// The number as a double.
    fn to_f64(self) -> f64;
}

macro_rules! integer {
    ($type:ty, $name:ident) => {
        impl Number for $type {
            const TYPE: NumberType = NumberType::$name;
            const ZERO: Self = 0;
            #[inline]
            fn to_scalar(self) -> Scalar {
                Scalar(self as i64 as u64)
            }
            #[inline]
            fn of_scalar(scalar: Scalar) -> Self {
                scalar.0 as $type
            }
            #[inline]
            fn order(self, other: Self) -> Ordering {
                self.cmp(&other)
            }
            fn apply(self, operation: Operation, other: Self) -> Evaluation<Self> {
                let result = match operation {
                    Operation::Add => self.checked_add(other),
                    Operation::Subtract => self.checked_sub(other),
                    Operation::Multiply => self.checked_mul(other),
                    Operation::Divide | Operation::Modulo if other == 0 => {
                        return Err(EvaluationError::DivisionByZero);
                    }
                    Operation::Divide => self.checked_div(other),
                    Operation::Modulo => Some(self.wrapping_rem(other)),
                };
                result.ok_or(EvaluationError::IntegerOutOfRange(size_of::<$type>() as u8))
            }
            #[inline]
            fn apply_fast(self, operation: Operation, other: Self) -> (Self, bool) {
                match operation {
                    Operation::Add => self.overflowing_add(other),
                    Operation::Subtract => self.overflowing_sub(other),
                    Operation::Multiply => self.overflowing_mul(other),
                    Operation::Divide if other != 0 => self.overflowing_div(other),
                    Operation::Modulo if other != 0 => (self.wrapping_rem(other), false),
                    Operation::Divide | Operation::Modulo => (0, true),
                }
            }
            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    };
}

macro_rules! float {
    ($type:ty, $name:ident, $bits:ty) => {
        impl Number for $type {
            const TYPE: NumberType = NumberType::$name;
            const ZERO: Self = 0.0;
            #[inline]
            fn to_scalar(self) -> Scalar {
                Scalar(u64::from(self.to_bits()))
            }
            #[inline]
            fn of_scalar(scalar: Scalar) -> Self {
                <$type>::from_bits(scalar.0 as $bits)
            }
            #[inline]
            fn order(self, other: Self) -> Ordering {
                match self.partial_cmp(&other) {
                    Some(order) => order,
                    None => self.is_nan().cmp(&other.is_nan()),
                }
            }
            fn apply(self, operation: Operation, other: Self) -> Evaluation<Self> {
                let (a, b) = (self, other);
                let result = match operation {
                    Operation::Add => a + b,
                    Operation::Subtract => a - b,
                    Operation::Multiply => a * b,
                    Operation::Divide | Operation::Modulo => {
                        if b == 0.0 && !a.is_nan() {
                            return Err(EvaluationError::DivisionByZero);
                        }
                        a / b
                    }
                };
                let quotient = matches!(operation, Operation::Divide | Operation::Modulo);
                let product = operation == Operation::Multiply;
                // A quotient by infinity is zero, and no overflow either way.
                let finite = !a.is_infinite() && (quotient || !b.is_infinite());
                if result.is_infinite() && finite {
                    return Err(EvaluationError::FloatOverflow);
                }
                let vanished = result == 0.0 && a != 0.0;
                if vanished && ((product && b != 0.0) || (quotient && !b.is_infinite())) {
                    return Err(EvaluationError::FloatUnderflow);
                }
                Ok(result)
            }
            #[inline]
            fn apply_fast(self, operation: Operation, other: Self) -> (Self, bool) {
                let (a, b) = (self, other);
                match operation {
                    Operation::Add => (a + b, !(a + b).is_finite()),
                    Operation::Subtract => (a - b, !(a - b).is_finite()),
                    Operation::Multiply => {
                        let result = a * b;
                        let vanished = (result == 0.0) & (a != 0.0) & (b != 0.0);
                        (result, !result.is_finite() | vanished)
                    }
                    Operation::Divide | Operation::Modulo => {
                        let result = a / b;
                        let vanished = (result == 0.0) & (a != 0.0);
                        (result, !result.is_finite() | vanished | (b == 0.0))
                    }
                }
            }
            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    };
}

integer!(i16, I16);
integer!(i32, I32);
integer!(i64, I64);
float!(f32, F32, u32);
float!(f64, F64, u64);

/// Calls a generic function with the Rust type of a [`NumberType`].
#[macro_export]
#[doc(hidden)]
macro_rules! with_number {
    ($type:expr, $name:ident => $body:expr) => {
        match $type {
            $crate::vector::number::NumberType::I16 => {
                type $name = i16;
                $body
            }
            $crate::vector::number::NumberType::I32 => {
                type $name = i32;
                $body
            }
            $crate::vector::number::NumberType::I64 => {
                type $name = i64;
                $body
            }
            $crate::vector::number::NumberType::F32 => {
                type $name = f32;
                $body
            }
            $crate::vector::number::NumberType::F64 => {
                type $name = f64;
                $body
            }
        }
    };
}
