//! Expressions against a twin that does what PostgreSQL does, a row at a time.
//!
//! - [`window`]: random lanes, with the plain list of what each row has beside them.
//! - [`bytes16_column`]: those of 16 bytes.
//! - [`arithmetic`], [`conversion`]: single operators, at their limits.
//! - [`number_tree`], [`truth_tree`]: random expressions over random windows.
//! - [`dictionaries`]: tests on text from segment to segment.
//! - [`external_values`]: tests that somebody else carries out.
//! - [`shift`]: times plus intervals.
//! - [`selections`]: the functions of a selection.

mod arithmetic;
pub(crate) mod bytes16_column;
mod conversion;
pub(crate) mod dictionaries;
pub(crate) mod external_values;
pub(crate) mod lanes;
pub(crate) mod number_tree;
mod selections;
mod shift;
pub(crate) mod truth_tree;
