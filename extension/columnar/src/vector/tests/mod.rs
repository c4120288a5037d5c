//! Expressions against a twin that computes as PostgreSQL does, a row at a time.
//!
//! - [`lanes`]: random lanes, beside the plain list of their values.
//! - [`bytes16_column`]: columns of 16 bytes.
//! - [`arithmetic`], [`conversion`]: single operators, at their limits.
//! - [`number_tree`], [`truth_tree`]: random expressions over random lanes. [`choices`]: `CASE` and `COALESCE` of them.
//! - [`dictionaries`]: tests of text from segment to segment.
//! - [`external_values`]: external tests, and functions of rows that are computed elsewhere.
//! - [`shift`]: times plus intervals.
//! - [`selections`]: the methods of a selection.

mod arithmetic;
pub(crate) mod bytes16_column;
mod choices;
mod conversion;
pub(crate) mod dictionaries;
pub(crate) mod external_values;
mod keyed_functions;
pub(crate) mod lanes;
pub(crate) mod number_tree;
mod selections;
mod shift;
pub(crate) mod truth_tree;
