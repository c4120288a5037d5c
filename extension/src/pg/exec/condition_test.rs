//! A condition on one column that PostgreSQL evaluates value by value instead of row by row.
//!
//! ```text
//! values of a vector that are new ──► a slot with this column alone ──► the condition's state ──► true, false, NULL
//! ```
//! Slot, context and the condition's state belong to the node and live as long as the query. The results belong to the
//! engine's predicate and are dropped when the node starts again. So a condition is initialised once, and a subquery in
//! it that has no parameters is run once.
//!
//! One error boundary surrounds the evaluation of many values, because a boundary costs as much as a simple condition.

use lanes_columnar::vector::external_predicate::{ColumnValue, Ternary, ValueTest};
use pgrx::pg_sys;

use super::expression::RowExpression;
use super::node::ExecNode;
use super::scalar::{self, RunningNode, TableRow};
use crate::pg::explain::Explain;
use crate::pg::tree::{Expr, Expression, Kind, SubPlan, walk};
use crate::pg::{executor, ports};

/// A condition on one column.
pub struct ConditionTest {
    state: RowExpression,
    row: TableRow,
    attribute: usize,
    /// The size in bytes of values that are passed by value; `None` for values by reference.
    width: Option<u8>,
}

impl ConditionTest {
    /// A test by a condition that has no columns but the attribute.
    ///
    /// # Errors
    /// If the node has no table.
    pub fn new(
        condition: Expr<'_>,
        attribute: usize,
        node: RunningNode,
    ) -> Result<ConditionTest, String> {
        let row = node.table_row()?;
        let descriptor = row.slot.descriptor();
        let column = descriptor.attribute(attribute);
        Ok(ConditionTest {
            state: node.initialised(condition),
            row,
            attribute,
            width: column.attbyval.then_some(column.attlen as u8),
        })
    }

    /// Whether the column's values are passed by value.
    pub fn is_by_value(&self) -> bool {
        self.width.is_some()
    }

    /// A value as a datum, extended by its sign as PostgreSQL's macros do.
    fn datum(&self, value: ColumnValue<'_>) -> pg_sys::Datum {
        let value = value.bits();
        match self.width {
            Some(1) => pg_sys::Datum::from(value as i8),
            Some(2) => pg_sys::Datum::from(value as i16),
            Some(4) => pg_sys::Datum::from(value as i32),
            _ => pg_sys::Datum::from(value as usize),
        }
    }

    /// Evaluates the condition for the slot, within a boundary.
    fn evaluate(&self) -> Ternary {
        let context = self.row.context;
        executor::reset_here(context.memory());
        let (value, is_null) = executor::evaluate_here(self.state, context);
        match (is_null, value.value() & 0xff != 0) {
            (true, _) => Ternary::Null,
            (false, true) => Ternary::True,
            (false, false) => Ternary::False,
        }
    }

    /// Evaluates the condition for values of the column until an interrupt is pending, but at least for one. Returns
    /// the number of values that were evaluated.
    fn answer(&self, values: &[ColumnValue<'_>], answers: &mut [Ternary]) -> usize {
        executor::in_batch(self.row.context, || {
            let mut count = 0;
            for (value, answer) in values.iter().zip(answers) {
                self.row
                    .slot
                    .set(self.attribute, (self.datum(*value), false));
                *answer = self.evaluate();
                count += 1;
                if executor::is_interrupted() {
                    break;
                }
            }
            count
        })
    }
}

impl ValueTest for ConditionTest {
    fn test(&mut self, values: &[ColumnValue<'_>], answers: &mut [Ternary]) {
        let mut done = 0;
        while done < values.len() {
            ports::CHECK_FOR_INTERRUPTS();
            done += self.answer(&values[done..], &mut answers[done..]);
        }
        self.row.count(values.len());
    }

    fn test_null(&mut self) -> Ternary {
        self.row.count(1);
        self.row
            .slot
            .set(self.attribute, (pg_sys::Datum::null(), true));
        executor::in_batch(self.row.context, || self.evaluate())
    }
}

/// Initialises the subqueries of the expressions of a node that was just initialised. EXPLAIN shows only subqueries
/// that the node has when it begins.
pub fn begin_subplans(node: ExecNode<'_>) {
    let plan = node.plan();
    // Where no table is scanned, `custom_exprs` holds parameters.
    let expressions = match plan.scanned_index() {
        0 => plan.custom_scan_tlist().as_node(),
        _ => plan.custom_exprs().as_node(),
    };
    let mut found: Vec<SubPlan<'_>> = Vec::new();
    if let Some(expressions) = expressions {
        walk::expression(expressions, &mut |node, _| {
            if let Kind::SubPlan(subplan) = node.kind() {
                found.push(subplan);
            }
            false
        });
    }
    for subplan in found {
        let mut known = node.subplans().iter();
        if !known.any(|known| known.subplan().plan_id() == subplan.plan_id()) {
            scalar::initialised(node.as_child(), subplan.as_expr());
        }
    }
}

/// Adds the number of values for which a node evaluated conditions to EXPLAIN ANALYZE.
pub fn explain(node: ExecNode<'_>, explain: &Explain<'_>) {
    let evaluated = scalar::evaluated(node);
    if explain.is_analyze() && evaluated > 0 {
        explain.integer(c"Values Evaluated", evaluated);
    }
}
