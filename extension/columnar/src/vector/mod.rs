//! Vectors: what a scan computes on, [`VECTOR_ROWS`] rows of a window at a time.
//!
//! A window is a set of lanes (of a segment in the arena, or of rows decoded from pages). A vector is the part of it
//! that begins at a multiple of [`VECTOR_ROWS`], so that a vector of a bitmap begins with a word. Nothing is copied: a
//! vector of a column is a pointer into its lane. What is computed lies in buffers that the expressions own.
//!
//! The cast, in the order in which data flow:
//! - [`selection`]: which rows of a vector count. Every evaluation is given one and never looks at other rows, except
//!   to compute values that nobody asks for; so an error arises only where row-by-row evaluation meets it too.
//! - [`number`]: the types that are computed on, their order and arithmetic as PostgreSQL defines them.
//! - [`frame`]: the vector under way: lanes, place, rows, and the values that hold for the whole scan.
//! - [`value`]: expressions that give a number a row: columns, constants, arithmetic, conversions.
//! - `conversion`: numbers of one type as numbers of another.
//! - [`predicate`]: expressions that give a truth a row, in three-valued logic.
//! - `text_predicate`: those that test a text. `bytes16_predicate`: those that test a uuid.
//! - [`external_predicate`]: those that somebody else tells, asked once a value; `truth_memo`: the answers.
//! - [`item_list`]: a list of items that is the dictionary of lanes made by hand.
//! - [`text`]: dictionary codes: items, what is remembered of them from segment to segment, tests on them.
//!
//! Invariants: bits of a [`selection::Selection`] past the vector's rows are zero; operands are valid for the rows of
//! their frame; the buffers of an expression are overwritten by its next evaluation.
//!
//! Failures are those of SQL ([`EvaluationError`]): out of range, division by zero. They are raised only for rows that
//! are selected and whose operands are not NULL.

mod bytes16_predicate;
mod conversion;
pub mod external_predicate;
pub mod frame;
pub mod item_list;
pub mod members;
pub mod number;
pub mod predicate;
pub mod selection;
pub mod text;
mod text_predicate;
mod truth_memo;
pub mod value;

#[cfg(test)]
pub(crate) mod tests;

use crate::limits::VECTOR_ROWS;

/// Words of a bitmap over one vector.
pub const VECTOR_WORDS: usize = VECTOR_ROWS / 64;

/// What goes wrong where PostgreSQL's operators go wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EvaluationError {
    /// SQLSTATE 22003, an integer type of so many bytes.
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
    /// SQLSTATE 22023: an argument that must not be what it is.
    #[error("{0}")]
    Argument(&'static str),
    /// Of `lanes.ema`: a weight that is none.
    #[error("{0:?} of lanes.ema: {1:?}")]
    Weight(Weight, WeightFault),
    /// Rows did not come in the order in which they were expected. Not SQL's: see [`crate::aggregate::ema`].
    #[error("rows came out of order")]
    Disordered,
    /// What has to be kept would take more memory than it may. Not SQL's: see [`crate::join`].
    #[error("too much memory")]
    TooMuchMemory,
}

/// How the weight of a moving average is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    /// As alpha itself, in (0, 1].
    Alpha,
    /// As a number of rows, at least 1.
    Span,
}

/// What is wrong with it.
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

/// Leaves out the rows for which one of the quals does not hold. Each sees only rows that those before it passed.
///
/// # Errors
/// Those of the quals.
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
