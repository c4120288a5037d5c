//! The join of left rows with a [`History`], as PostgreSQL's nested loop does it with at most one right row.

use pgrx::pg_sys;

use super::history::{Column, History};
use super::plan::AsofPlan;
use super::state::AsofCounters;
use crate::pg::exec::child::NestedLoop;
use crate::pg::exec::expression::{Projection, RowContext, RowExpression, RowQual};
use crate::pg::exec::node::{self, ExecNode};
use crate::pg::exec::slot::Slot;
use crate::pg::exec::table::OwnTable;
use crate::pg::ports;
use crate::pg::tree::{Expr, List, View};

/// The plan of a join, with its expressions initialised.
pub struct JoinExpressions {
    pub plan: AsofPlan,
    /// Where keys, bounds and conditions are evaluated.
    pub context: RowContext,
    keys: Vec<RowExpression>,
    bounds: Vec<RowExpression>,
    /// Conditions on the right table alone.
    pub table_qual: RowQual,
    residual_qual: RowQual,
    chosen_qual: RowQual,
    /// A row of kept columns, for the conditions.
    candidate: Slot,
    /// A row as the loop's right side would return it.
    matched: Slot,
    nested: NestedLoop,
}

impl JoinExpressions {
    /// Initialises the expressions, in the query's memory.
    pub fn begin(plan: AsofPlan, nested: NestedLoop, node: ExecNode<'_>) -> JoinExpressions {
        let initialise = |list: List<'_, Expr<'_>>| {
            let expressions = list.iter();
            let expressions = expressions.map(|expr| node::initialise(expr.as_ptr().cast()));
            expressions.collect()
        };
        let table = OwnTable::open(plan.table, node.snapshot());
        let candidate = table.table().new_slot_of(&plan.kept);
        table.close();
        let matched = nested.inner().new_slot();
        JoinExpressions {
            context: node::new_context(node),
            keys: initialise(plan.key_expressions),
            bounds: initialise(plan.bound_expressions),
            table_qual: node::initialise_qual(plan.table_quals.as_ptr()),
            residual_qual: node::initialise_qual(plan.residual_quals.as_ptr()),
            chosen_qual: node::initialise_qual(plan.chosen_quals.as_ptr()),
            candidate,
            matched,
            nested,
            plan,
        }
    }

    /// Frees the slots.
    pub fn free(self) {
        self.candidate.free();
        self.matched.free();
    }
}

/// The join under execution. Its methods own nothing that needs dropping: an ERROR of an expression jumps over them.
pub struct Join {
    expressions: JoinExpressions,
    history: History,
    /// The parts of the nested loop that form the result.
    context: RowContext,
    join_qual: RowQual,
    qual: RowQual,
    projection: Projection,
    /// For a LEFT JOIN, the right row of NULLs.
    null_row: Option<Slot>,
    searches: u64,
    /// The key that is being looked up.
    key: Vec<u8>,
}

impl Join {
    /// A join before its first left row.
    pub fn new(expressions: JoinExpressions, history: History) -> Join {
        let nested = expressions.nested;
        Join {
            context: nested.child().context(),
            join_qual: nested.join_qual(),
            qual: nested.child().qual(),
            projection: nested.child().projection(),
            null_row: nested.null_row(),
            expressions,
            history,
            searches: 0,
            key: Vec::new(),
        }
    }

    /// The join's next row; `None` at the end.
    pub fn next_row(&mut self) -> Option<Slot> {
        let context = self.context;
        loop {
            ports::CHECK_FOR_INTERRUPTS();
            let outer = self.expressions.nested.outer().next_row_guarded();
            if outer.is_empty() {
                return None;
            }
            context.reset();
            context.set_outer_row(outer);
            if !self.has_match(outer) {
                let Some(nulls) = self.null_row else {
                    continue;
                };
                context.set_inner_row(nulls);
            }
            if self.qual.passes(context) {
                return Some(self.projection.project(outer));
            }
        }
    }

    /// Whether a left row has a match that passes the join's conditions. The match is then the context's right row.
    fn has_match(&mut self, outer: Slot) -> bool {
        let Some(row) = self.find(outer) else {
            return false;
        };
        let JoinExpressions { plan, matched, .. } = &self.expressions;
        fill(
            *matched,
            &self.history.columns,
            row,
            plan.outputs.iter().copied(),
        );
        self.context.set_inner_row(*matched);
        self.join_qual.passes(self.context)
    }

    /// The row of the history that is the match of a left row.
    fn find(&mut self, outer: Slot) -> Option<usize> {
        let context = self.expressions.context;
        context.reset();
        context.set_outer_row(outer);
        self.searches += 1;
        self.evaluate_key()?;
        let (lower, upper) = self.bounds()?;
        let (residual, candidate) = (self.expressions.residual_qual, self.expressions.candidate);
        let backward = self.expressions.plan.backward;
        let passes = |columns: &[Column], row: usize| {
            if residual.is_empty() {
                return true;
            }
            // There may be as many candidates as the right side has rows. The values of keys and
            // bounds have been copied.
            ports::CHECK_FOR_INTERRUPTS();
            context.reset();
            fill(candidate, columns, row, 0..columns.len() as i32);
            context.set_inner_row(candidate);
            residual.passes(context)
        };
        let found = self
            .history
            .find(&self.key, lower, upper, backward, passes)?;
        if !self.expressions.chosen_qual.is_empty() {
            let columns = &self.history.columns;
            fill(candidate, columns, found, 0..columns.len() as i32);
            context.set_inner_row(candidate);
            if !self.expressions.chosen_qual.passes(context) {
                return None;
            }
        }
        Some(found)
    }

    /// Evaluates the key of the left row; `None` if it cannot match.
    fn evaluate_key(&mut self) -> Option<()> {
        let context = self.expressions.context;
        self.key.clear();
        for (key, expression) in self
            .expressions
            .plan
            .keys
            .iter()
            .zip(&self.expressions.keys)
        {
            match expression.evaluate(context) {
                Some(value) => {
                    self.key.push(1);
                    let memory = context.memory();
                    memory.enter(|| key.outer_kind.append_key(value, &mut self.key));
                }
                None if key.nulls_match => self.key.push(0),
                None => return None,
            }
        }
        Some(())
    }

    /// The least and the greatest time that match the left row; `None` if no time does.
    fn bounds(&self) -> Option<(i64, i64)> {
        let JoinExpressions {
            plan,
            bounds,
            context,
            ..
        } = &self.expressions;
        let (mut lower, mut upper) = (i64::MIN, i64::MAX);
        for (bound, expression) in plan.bounds.iter().zip(bounds) {
            let limit = bound.outer_kind.ordered(expression.evaluate(*context)?);
            match (bound.upper, bound.inclusive) {
                (true, true) => upper = upper.min(limit),
                (true, false) => upper = upper.min(limit.checked_sub(1)?),
                (false, true) => lower = lower.max(limit),
                (false, false) => lower = lower.max(limit.checked_add(1)?),
            }
        }
        Some((lower, upper))
    }

    /// The counters for EXPLAIN.
    pub fn counters(&self) -> AsofCounters {
        AsofCounters {
            rows: self.history.rows(),
            keys: self.history.keys(),
            keys_sorted: self.history.groups_sorted,
            searches: self.searches,
            bytes: self.history.bytes(),
        }
    }

    /// Frees the slots.
    pub fn free(self) {
        self.expressions.free();
    }
}

/// Fills a slot with a row of the history: a column for each place, NULL for a place without a kept column. The values
/// outlive the slot's row.
#[inline]
fn fill(slot: Slot, columns: &[Column], row: usize, places: impl Iterator<Item = i32>) {
    let mut target = slot.writer();
    for (index, place) in places.enumerate() {
        let column = columns
            .get(place as usize)
            .filter(|column| !column.nulls[row]);
        target.set(
            index,
            column.map(|column| pg_sys::Datum::from(column.values[row])),
        );
    }
    target.store();
}
