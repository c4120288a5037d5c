//! Expressions of float lanes: plain IEEE, element by element. The caller looks for overflow, underflow and division by zero.
//! `out` may be an input.

use crate::number::Float;

/// An arithmetic operator.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

// SAFETY: `enum class Arithmetic : uint8_t` of arithmetic.h has the same size and the same values in the same order.
unsafe impl cxx::ExternType for Arithmetic {
    type Id = cxx::type_id!("lanes::simd::Arithmetic");
    type Kind = cxx::kind::Trivial;
}

impl Arithmetic {
    /// All of them.
    pub const ALL: [Arithmetic; 4] = [
        Arithmetic::Add,
        Arithmetic::Subtract,
        Arithmetic::Multiply,
        Arithmetic::Divide,
    ];
}

/// `out[i] = left[i] operator right[i]`
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn arithmetic<T: Float>(
    left: *const T,
    right: *const T,
    rows: usize,
    operator: Arithmetic,
    out: *mut T,
) {
    // SAFETY: the caller's promise.
    unsafe { T::arithmetic(left, right, rows, operator, out) }
}

/// `out[i] = values[i] operator constant`
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn arithmetic_constant<T: Float>(
    values: *const T,
    constant: T,
    rows: usize,
    operator: Arithmetic,
    out: *mut T,
) {
    // SAFETY: the caller's promise.
    unsafe { T::arithmetic_constant(values, constant, rows, operator, out) }
}

/// `out[i] = constant operator values[i]`
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn constant_arithmetic<T: Float>(
    constant: T,
    values: *const T,
    rows: usize,
    operator: Arithmetic,
    out: *mut T,
) {
    // SAFETY: the caller's promise.
    unsafe { T::constant_arithmetic(constant, values, rows, operator, out) }
}
