//! Arithmetic of float8 with PostgreSQL's errors. A result is out of range if it is infinite although no operand is, or
//! zero although it should not be.

use crate::pg::call;

/// `a + b`.
#[inline]
pub fn add(a: f64, b: f64) -> f64 {
    checked(a + b, a.is_infinite() || b.is_infinite(), true)
}

/// `a - b`.
#[inline]
pub fn subtract(a: f64, b: f64) -> f64 {
    checked(a - b, a.is_infinite() || b.is_infinite(), true)
}

/// `a * b`.
#[inline]
pub fn multiply(a: f64, b: f64) -> f64 {
    let zero = a == 0.0 || b == 0.0;
    checked(a * b, a.is_infinite() || b.is_infinite(), zero)
}

/// `a / b`. `b` is not zero.
#[inline]
pub fn divide(a: f64, b: f64) -> f64 {
    let zero = a == 0.0 || b.is_infinite();
    checked(a / b, a.is_infinite(), zero)
}

#[inline]
fn checked(result: f64, infinite_is_legal: bool, zero_is_legal: bool) -> f64 {
    if result.is_infinite() && !infinite_is_legal {
        call::float_overflow()
    }
    if result == 0.0 && !zero_is_legal {
        call::float_underflow()
    }
    result
}
