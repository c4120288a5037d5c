//! Comparisons of a lane to a selection bitmap.

use crate::bridge;
use crate::number::Number;

/// A comparison operator.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

// SAFETY: `enum class Comparison : uint8_t` of select.h has the same size and the same values in
// the same order.
unsafe impl cxx::ExternType for Comparison {
    type Id = cxx::type_id!("lanes::simd::Comparison");
    type Kind = cxx::kind::Trivial;
}

impl Comparison {
    /// All of them.
    pub const ALL: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ];

    /// The operator with its operands exchanged.
    pub fn commuted(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            same => same,
        }
    }

    /// The operator that is true where this one is false.
    pub fn negated(self) -> Comparison {
        match self {
            Comparison::Equal => Comparison::NotEqual,
            Comparison::NotEqual => Comparison::Equal,
            Comparison::Less => Comparison::GreaterOrEqual,
            Comparison::LessOrEqual => Comparison::Greater,
            Comparison::Greater => Comparison::LessOrEqual,
            Comparison::GreaterOrEqual => Comparison::Less,
        }
    }
}

/// Row `i` qualifies if `values[i] operator constant`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn compare<T: Number>(
    values: *const T,
    rows: usize,
    operator: Comparison,
    constant: T,
    out: *mut u64,
) {
    // SAFETY: this function's contract.
    unsafe { T::compare(values, rows, operator, constant, out) }
}

/// Row `i` qualifies if `low <= values[i] <= high`.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn between<T: Number>(values: *const T, rows: usize, low: T, high: T, out: *mut u64) {
    // SAFETY: this function's contract.
    unsafe { T::between(values, rows, low, high, out) }
}

/// Row `i` qualifies if `left[i] operator right[i]`. The two may be the same lane.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn compare_pairs<T: Number>(
    left: *const T,
    right: *const T,
    rows: usize,
    operator: Comparison,
    out: *mut u64,
) {
    // SAFETY: this function's contract.
    unsafe { T::compare_pairs(left, right, rows, operator, out) }
}

/// Selects row `i` if `codes[i]` is in the set, a bitmap by code.
///
/// # Safety
/// As for the [crate](crate#safety); the set has a bit for every code in the rows, including rows
/// that do not count.
pub unsafe fn member(codes: *const u32, rows: usize, set: *const u64, out: *mut u64) {
    // SAFETY: this function's contract.
    unsafe { bridge::member(codes, rows, set, out) }
}
