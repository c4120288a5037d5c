//! Conditions on ranks, which are checked before a row is written.
//!
//! PostgreSQL leaves conditions such as `row_number() OVER … <= 3` to the node. They remain conditions of the plan,
//! too: most rows fail them, and here that costs no slot.

use lanes_columnar::over::{Function, Output};
use lanes_simd::Comparison;
use pgrx::pg_sys;

use crate::expressions::translate::{number_type, to_scalar};
use crate::pg::exec::node::CustomPlan;
use crate::pg::tree::{Expr, plan_node};
use crate::pg::{nodes, ports};

/// A comparison of a call's result, a `bigint`, with an integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankCondition {
    call: usize,
    comparison: Comparison,
    value: i64,
}

impl RankCondition {
    /// The conditions of a plan that are such comparisons. The first columns of its rows are no calls.
    pub fn of_plan(plan: CustomPlan<'_>, columns: usize) -> Vec<RankCondition> {
        let conditions = nodes::plan_list(plan.quals());
        conditions
            .filter_map(|condition| RankCondition::of(plan_node(condition), columns))
            .collect()
    }

    fn of(condition: Expr<'_>, columns: usize) -> Option<RankCondition> {
        let operation = condition.as_op()?;
        let (comparison, _, (left_type, _)) = ports::btree_operator(operation.opno())?;
        let mut sides = operation.args().iter();
        let (left, right) = (sides.next()?.as_var()?, sides.next()?.as_const()?);
        let number = number_type(right.consttype()).filter(|number| !number.is_float())?;
        let value = to_scalar(number, right.value()?.datum());
        let place = usize::try_from(left.varattno() - 1).ok()?;
        (left_type == pg_sys::INT8OID).then_some(RankCondition {
            call: place.checked_sub(columns)?,
            comparison,
            value: value.0 as i64,
        })
    }

    /// How many first rows of each partition can pass these conditions; `None` if others can, or if the result of a call
    /// for one of them depends on rows after them.
    pub fn first_rows(conditions: &[RankCondition], calls: &[Function]) -> Option<usize> {
        let looks_back = |call: &Function| {
            matches!(
                call,
                Function::RowNumber | Function::Rank | Function::DenseRank | Function::Offset(..=0)
            )
        };
        if !calls.iter().all(looks_back) {
            return None;
        }
        let of_rows = conditions
            .iter()
            .filter(|condition| calls.get(condition.call) == Some(&Function::RowNumber));
        let last = of_rows.filter_map(|condition| match condition.comparison {
            Comparison::LessOrEqual | Comparison::Equal => Some(condition.value),
            Comparison::Less => Some(condition.value.saturating_sub(1)),
            _ => None,
        });
        last.min().map(|last| usize::try_from(last).unwrap_or(0))
    }

    /// Whether the row at a position may pass.
    #[inline]
    pub fn may_pass(self, outputs: &[Output], position: usize) -> bool {
        let Some(Output::Numbers(numbers)) = outputs.get(self.call) else {
            return true;
        };
        let Some(value) = numbers.get(position) else {
            return false;
        };
        let value = value.0 as i64;
        match self.comparison {
            Comparison::Less => value < self.value,
            Comparison::LessOrEqual => value <= self.value,
            Comparison::Equal => value == self.value,
            Comparison::NotEqual => value != self.value,
            Comparison::Greater => value > self.value,
            Comparison::GreaterOrEqual => value >= self.value,
        }
    }
}
