//! Conditions on ranks, which are checked before a row is written.
//!
//! PostgreSQL leaves conditions such as `row_number() OVER … <= 3` to the node. They remain conditions of the plan,
//! too: most rows fail them, and here that costs no slot.

use lanes_columnar::over::first_rows::FirstRows;
use lanes_columnar::over::{Call, Function, Output};
use lanes_simd::Comparison;
use pgrx::pg_sys;

use crate::expressions::translate::{number_type, to_scalar};
use crate::pg::exec::node::CustomPlan;
use crate::pg::tree::{Expr, List, Node, WindowFunc, plan_node};
use crate::pg::{nodes, ports};

/// Whether conditions that are being planned leave so few rows of each partition that [most rows are
/// dropped](FirstRows) as they are read.
pub fn keep_few(conditions: List<'_, Expr<'_>>, calls: &[Call]) -> bool {
    let is_few = |condition: Expr<'_>| {
        let Some((left, comparison, value)) = comparison_of(condition) else {
            return false;
        };
        let function = left.downcast::<WindowFunc<'_>>().map(WindowFunc::winfnoid);
        let function = function.map(|function| function.to_u32());
        let is_rank = matches!(function, Some(pg_sys::F_ROW_NUMBER | pg_sys::F_RANK_));
        is_rank && last_rank(comparison, value).is_some_and(FirstRows::pays)
    };
    calls.iter().all(looks_back) && conditions.iter().any(is_few)
}

/// The sides of a comparison of a `bigint` with a constant integer.
fn comparison_of(condition: Expr<'_>) -> Option<(Expr<'_>, Comparison, i64)> {
    let operation = condition.as_op()?;
    let (comparison, _, (left_type, _)) = ports::btree_operator(operation.opno())?;
    let mut sides = operation.args().iter();
    let (left, right) = (sides.next()?, sides.next()?.as_const()?);
    let number = number_type(right.consttype()).filter(|number| !number.is_float())?;
    let value = to_scalar(number, right.value()?.datum());
    (left_type == pg_sys::INT8OID).then_some((left, comparison, value.0 as i64))
}

/// The greatest rank that a condition allows.
fn last_rank(comparison: Comparison, value: i64) -> Option<usize> {
    let last = match comparison {
        Comparison::LessOrEqual | Comparison::Equal => value,
        Comparison::Less => value.saturating_sub(1),
        _ => return None,
    };
    Some(usize::try_from(last).unwrap_or(0))
}

/// Whether the result of a call for a row depends on no row after it and its peers.
fn looks_back(call: &Call) -> bool {
    matches!(
        call.function,
        Function::RowNumber | Function::Rank | Function::DenseRank | Function::Offset(..=0)
    )
}

/// A comparison of a call's result, a `bigint`, with an integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankCondition {
    call: usize,
    comparison: Comparison,
    value: i64,
}

/// First rows of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct First {
    pub rows: usize,
    /// Whether rows that are equal to the last of them belong to them.
    pub with_peers: bool,
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
        let (left, comparison, value) = comparison_of(condition)?;
        let place = usize::try_from(left.as_var()?.varattno() - 1).ok()?;
        Some(RankCondition {
            call: place.checked_sub(columns)?,
            comparison,
            value,
        })
    }

    /// The first rows of each partition that can pass these conditions; `None` if others can, or if the result of a
    /// call for one of them depends on rows after them.
    pub fn first_rows(
        conditions: &[RankCondition],
        calls: &[Call],
        orders: usize,
    ) -> Option<First> {
        if !calls.iter().all(looks_back) {
            return None;
        }
        let last = |function: Function| {
            let is_of = |condition: &&RankCondition| {
                let call = calls.get(condition.call);
                call.is_some_and(|call| call.function == function && call.order_keys == orders)
            };
            let last = conditions.iter().filter(is_of);
            let last = last.filter_map(|one| last_rank(one.comparison, one.value));
            last.min()
        };
        let rows = last(Function::RowNumber).map(|rows| First {
            rows,
            with_peers: false,
        });
        rows.or_else(|| {
            last(Function::Rank).map(|rows| First {
                rows,
                with_peers: true,
            })
        })
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
