//! The columns that a join adds to those of a lanes table, as a translator of expressions sees them.

use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys;

use crate::pg::tree::Expr;

/// A column of a sub-select that is an expression: its place among the outputs, and the expression, which lives as
/// long as the plan that the translator is made for.
pub type Computed = (usize, Expr<'static>);

/// The columns of a join. Columns of any other range-table entry than the table's are the join's.
pub struct JoinedColumns {
    /// The range-table index of the lanes table.
    pub table: u32,
    /// The types of the columns, where they are numbers.
    pub types: Vec<Option<NumberType>>,
    /// Columns that are computed from others.
    pub computed: Vec<Computed>,
    /// The range-table index and column number of each column; none if all belong to one sub-select.
    pub variables: Option<Vec<(i32, i16)>>,
    /// How many codes a frame has before the joined columns.
    pub codes_before: usize,
}

/// Expressions over the small sides of a hash join that PostgreSQL evaluates once for each small row. A frame has their
/// codes after those of groups: the codes of the conditions, then those of the values.
#[derive(Default)]
pub struct CodedExpressions {
    /// Conditions. Their codes are FALSE, TRUE and NULL of [`condition_code`](super::condition_code).
    pub conditions: Vec<*mut pg_sys::Node>,
    /// Values of any type that has a hash. Equal ones have the same code, and NULL has
    /// [`NULL_VALUE`](super::condition_code::NULL_VALUE).
    pub values: Vec<*mut pg_sys::Node>,
}

impl CodedExpressions {
    /// The number of expressions.
    pub fn len(&self) -> usize {
        self.conditions.len() + self.values.len()
    }
}
