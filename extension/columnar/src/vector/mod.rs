//! Vectors: the unit of computation of a scan, [`VECTOR_ROWS`] rows of a segment.
//!
//! A segment is read through a set of lanes, from the arena or from rows decoded from pages. A
//! vector is the part of the lanes that begins at a multiple of [`VECTOR_ROWS`], so the vector of a
//! bitmap begins with a word. Nothing is copied: a vector of a column is a pointer into its lane.
//! Results are in buffers that the expressions own.
//!
//! The cast, in the direction of the data:
//! - [`selection`]: the rows of a vector to which an evaluation applies. Other rows are read only
//!   to compute values that are not used, so an error is raised only where row-by-row evaluation
//!   raises it too.
//! - [`number`]: the number types, with PostgreSQL's order and arithmetic.
//! - [`frame`]: the vector with its lanes, place, rows, and the values that hold for the whole
//!   scan.
//! - [`value`]: expressions with a number for each row: columns, constants, arithmetic,
//!   conversions.
//! - `absolute`: numbers without signs. `conversion`: conversions between number types. `divisor`: remainders by one
//!   divisor. [`choice`]: `CASE` and `COALESCE`. `row_numbers`: results that are written row by row.
//! - [`operands`]: numbers of operands, row by row.
//! - [`predicate`]: expressions with a truth value for each row, in three-valued logic.
//! - [`decimal`]: expressions of `numeric`, computed with integers.
//! - `text_predicate`: tests of text. [`text_search`], [`regex_test`]: tests that call no function
//!   for most texts. `bytes16_predicate`: tests of UUIDs.
//! - [`external_predicate`]: tests that are evaluated outside of this crate, once for each value;
//!   `truth_memo`: their results. [`external_value`]: functions of several columns that are computed outside of this
//!   crate. [`text_length`]: one that is computed here. [`keyed_function`]: functions whose results are kept by a
//!   number.
//! - [`item_list`]: a list of items that serves as the dictionary of computed lanes.
//!   [`lane_buffer`]: the memory of computed lanes.
//! - [`text`]: dictionary codes: items, results that are kept from segment to segment, tests of
//!   items.
//!
//! Invariants: bits of a [`selection::Selection`] past the vector's rows are zero; operands are
//! valid for the rows of their frame; the buffers of an expression are overwritten by its next
//! evaluation.
//!
//! The failures are SQL's ([`EvaluationError`]), for instance out of range or division by zero.
//! They are raised only for selected rows whose operands are not NULL.

mod absolute;
mod bytes16_predicate;
pub mod choice;
mod conversion;
pub mod decimal;
mod divisor;
pub mod external_predicate;
pub mod external_value;
pub mod frame;
pub mod item_list;
pub mod keyed_function;
pub mod lane_buffer;
pub mod members;
pub mod number;
pub mod operands;
pub mod predicate;
pub mod regex_test;
mod row_numbers;
pub mod selection;
pub mod text;
pub mod text_length;
mod text_predicate;
pub mod text_search;
mod truth_memo;
pub mod value;

#[cfg(test)]
pub(crate) mod tests;

use crate::limits::VECTOR_ROWS;

/// Words of a bitmap over one vector.
pub const VECTOR_WORDS: usize = VECTOR_ROWS / 64;

/// The errors of PostgreSQL's operators, and of evaluation itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EvaluationError {
    /// SQLSTATE 22003, for an integer type of so many bytes.
    #[error("integer of {0} bytes out of range")]
    IntegerOutOfRange(u8),
    /// SQLSTATE 22003.
    #[error("value out of range: overflow")]
    FloatOverflow,
    /// SQLSTATE 22003.
    #[error("value out of range: underflow")]
    FloatUnderflow,
    /// SQLSTATE 22008.
    #[error("timestamp out of range")]
    TimestampOutOfRange,
    /// SQLSTATE 22012.
    #[error("division by zero")]
    DivisionByZero,
    /// SQLSTATE 22023: an invalid argument.
    #[error("{0}")]
    Argument(&'static str),
    /// An invalid weight of `lanes.ema`.
    #[error("{0:?} of lanes.ema: {1:?}")]
    Weight(Weight, WeightFault),
    /// The rows did not have the expected order. It is not an SQL error: see
    /// [`crate::aggregate::ema`].
    #[error("rows came out of order")]
    Disordered,
    /// The state would exceed its limit of memory. It is not an SQL error: see [`crate::join`].
    #[error("too much memory")]
    TooMuchMemory,
}

/// The form of the weight of a moving average.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    /// The weight is alpha itself, in (0, 1].
    Alpha,
    /// The weight is a number of rows, at least 1.
    Span,
}

/// The fault of a weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WeightFault {
    /// It is NULL.
    Null,
    /// It is out of its range: a double.
    Illegal(number::Scalar),
    /// It is another than that of a row before of the same group.
    Changed,
}

/// The result of an evaluation.
pub type Evaluation<T> = std::result::Result<T, EvaluationError>;

/// Removes the rows for which a qual does not hold. Each qual is evaluated only for rows that
/// passed the quals before it.
///
/// # Errors
/// The errors of the quals.
pub fn narrow(
    quals: &mut [predicate::Predicate],
    frame: &frame::Frame<'_>,
    selection: &mut selection::Selection,
) -> Evaluation<()> {
    for qual in quals {
        if selection.is_empty() {
            break;
        }
        *selection = qual.evaluate(frame, selection)?.yes;
    }
    Ok(())
}
