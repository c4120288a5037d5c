//! A key over the columns of a side joined before, instead of over the lanes table.
//!
//! ```text
//! row of the side before ── expression ──► value ── codes of the small side's values ──► code, once a row
//! rows of the vector     ── what they found on the side before ──► a code each ── EqualJoin
//! ```
//! PostgreSQL evaluates the expression when a row of the side before has first been found.

use lanes_columnar::join::given::Given;
use lanes_columnar::join::series::SeriesColumn;
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::Operand;
use pgrx::pg_sys;

use super::joined_side::JoinedSide;
use super::plan::HashJoinPlan;
use super::small_column::Column;
use super::small_expression::SmallExpression;
use super::small_side::SmallSide;
use crate::expressions::translate::Translation;

/// Stands for a row that was not asked yet.
const UNASKED: u64 = u64::MAX;
/// Stands for a value that equals none of the small side's. No value has this code.
const NO_CODE: u64 = UNASKED - 1;

/// The key under execution.
pub struct GivenKey {
    /// The side whose columns it looks at.
    of: usize,
    /// Its place among the keys.
    key: usize,
    expression: SmallExpression,
    column: Column,
    /// The code of each row of that side's batch.
    codes: SeriesColumn,
    given: Given,
    item: Vec<u8>,
}

impl GivenKey {
    /// The key at a place among those of a side. Sides before it return so many keys each.
    ///
    /// # Errors
    /// If its columns are of several sides, or of none before this one.
    ///
    /// # Safety
    /// A node in execution, for as long as there is this key; an expression of its plan over small sides alone.
    pub unsafe fn of(
        expression: *mut pg_sys::Node,
        key: usize,
        plan: &HashJoinPlan,
        before: &[JoinedSide],
        node: *mut pg_sys::PlanState,
    ) -> Translation<GivenKey> {
        // SAFETY: the caller's promise.
        unsafe {
            let of = plan.dimension_of(expression)?;
            if of >= before.len() {
                return Err("a key over a side that is joined later".into());
            }
            let keys = plan.dimensions[of].left_keys.len();
            Ok(GivenKey {
                of,
                key,
                expression: SmallExpression::of(expression, plan, keys, node),
                column: Column::of(pg_sys::exprType(expression)),
                codes: SeriesColumn::new(NumberType::I64),
                given: Given::new(NumberType::I64),
                item: Vec::new(),
            })
        }
    }

    /// What the rows of the vector are given.
    pub fn operand(&self) -> Operand {
        self.given.operand()
    }

    /// Begins a batch: of the sides before, whose rows may be others, or of the key's own, which may have other codes.
    pub fn begin(&mut self, before: &[JoinedSide]) {
        self.codes.values.clear();
        // Past the last row comes the one that is NULL.
        let rows = before[self.of].join.rows() + 1;
        self.codes.values.resize(rows, UNASKED);
    }

    /// Gives the selected rows of the vector the codes of the rows that they have found before.
    pub fn gather(&mut self, before: &[JoinedSide], own: &mut SmallSide, selection: &Selection) {
        let side = &before[self.of];
        let found = side.join.found();
        found.each(selection, |small_row| self.ask(small_row, &side.small, own));
        self.given.gather_found(&self.codes, found, selection);
    }

    /// Asks a row of the side before, unless it was asked already.
    fn ask(&mut self, row: u32, before: &SmallSide, own: &mut SmallSide) {
        let code = &mut self.codes.values[row as usize];
        if *code != UNASKED {
            return;
        }
        // SAFETY: the node is in execution as long as there is this key; the value is of the column's type.
        unsafe {
            let value = self.expression.value(row, before);
            let value = self.column.key(value, &mut self.item);
            *code = own.code(self.key, value).map_or(NO_CODE, u64::from);
            self.expression.reset();
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.codes.values.capacity() * 8
    }
}
