//! A key over the columns of an earlier small side instead of over the lanes table.
//!
//! ```text
//! row of the earlier side ── expression ──► value ── codes of this side's key values ──► code, once a row
//! rows of the vector      ── rows that they found on the earlier side ──► a code each ── EqualJoin
//! ```
//! PostgreSQL evaluates the expression when a row of the earlier side is first found.

use lanes_columnar::join::joined_column::JoinedColumn;
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
use crate::pg::columns::type_of;
use crate::pg::exec::node::ExecNode;

/// Marks a row whose code has not been looked up yet.
const UNASKED: u64 = u64::MAX;
/// Marks a value that equals no key value of this side. No value has this code.
const NO_CODE: u64 = UNASKED - 1;

/// A key over an earlier side, under execution.
pub struct GivenKey {
    /// The index of the earlier side.
    of: usize,
    /// The index of the key among the keys of its side.
    key: usize,
    expression: SmallExpression,
    column: Column,
    /// The code of each row in the earlier side's batch.
    codes: SeriesColumn,
    joined: JoinedColumn,
    item: Vec<u8>,
}

impl GivenKey {
    /// Prepares the key at index `key` of a side. The earlier sides are `before`.
    ///
    /// # Errors
    /// If the columns of the expression belong to several sides, or to none of the earlier ones.
    pub fn of(
        expression: *mut pg_sys::Node,
        key: usize,
        plan: &HashJoinPlan,
        before: &[JoinedSide],
        node: ExecNode<'_>,
    ) -> Translation<GivenKey> {
        let of = plan.dimension_of(expression)?;
        if of >= before.len() {
            return Err("a key over a side that is joined later".into());
        }
        Ok(GivenKey {
            of,
            key,
            expression: SmallExpression::of(expression, plan, node),
            column: Column::of(type_of(expression)),
            codes: SeriesColumn::new(NumberType::I64),
            joined: JoinedColumn::new(NumberType::I64),
            item: Vec::new(),
        })
    }

    /// The operand of the frame that holds the codes of the vector's rows.
    pub fn operand(&self) -> Operand {
        self.joined.operand()
    }

    /// Starts a batch of an earlier side, which may have other rows, or of the key's own side,
    /// which may have other codes.
    pub fn begin(&mut self, before: &[JoinedSide]) {
        self.codes.values.clear();
        // The row past the last one stands for NULL.
        let rows = before[self.of].join.rows() + 1;
        self.codes.values.resize(rows, UNASKED);
    }

    /// Looks up the codes of the selected rows of the vector.
    pub fn gather(&mut self, before: &[JoinedSide], own: &mut SmallSide, selection: &Selection) {
        let side = &before[self.of];
        let found = side.join.found();
        found.each(selection, |small_row| self.ask(small_row, &side.small, own));
        self.joined.gather_found(&self.codes, found, selection);
    }

    /// Looks up the code of a row of the earlier side, once a batch.
    fn ask(&mut self, row: u32, before: &SmallSide, own: &mut SmallSide) {
        let code = &mut self.codes.values[row as usize];
        if *code != UNASKED {
            return;
        }
        let value = self.expression.value(row, before);
        let value = self.column.key(value, &mut self.item);
        *code = own.code(self.key, value).map_or(NO_CODE, u64::from);
        self.expression.reset();
    }

    /// Bytes of memory that the codes take.
    pub fn bytes(&self) -> usize {
        self.codes.values.capacity() * 8
    }
}
