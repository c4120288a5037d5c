//! Conditions between the lanes table and small sides that are no keys, such as `t.price > m.mean`.
//!
//! ```text
//! rows and their current small rows ── columns that the condition reads ──► operands ──► engine's predicate
//!                                   └─ columns of both rows, one by one ──► slots ─────► PostgreSQL's expression
//! ```
//! A condition is the engine's if its parts are numbers and times, or conditions on one small side alone, which
//! PostgreSQL evaluates once for each small row ([`coded`]). PostgreSQL evaluates any other condition for each pair of
//! rows with equal keys.
//!
//! The conditions of a side are evaluated in PostgreSQL's order, and each for those pairs only that meet the ones
//! before it, because it may fail.

use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::selection::Selection;
use pgrx::pg_sys;

use super::coded;
use super::joined_side::JoinedSide;
use super::plan::HashJoinPlan;
use super::small_columns::SmallColumns;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::pg::columns;
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::pair_evaluator::PairEvaluator;
use crate::pg::exec::scalar::RunningNode;
use crate::pg::tree::{Expr, View, plan_node};

/// A condition, ready to be evaluated.
pub struct MatchCondition {
    way: Way,
}

/// How a condition is evaluated.
enum Way {
    /// By the engine, which reads the columns with these indexes among the [`SmallColumns`].
    Vectors(Predicate, Vec<usize>),
    /// By PostgreSQL, for each row with the row of this side that it has found.
    Pairs(PairEvaluator, usize),
}

/// Checks that all conditions of a join can be evaluated. The plan has their columns among its outputs.
///
/// # Errors
/// Why one cannot.
pub fn check(plan: &HashJoinPlan) -> Translation<()> {
    let columns = plan.joined_columns(0);
    let coded = coded::of_conditions(plan);
    let mut translator = Translator::of_joined(Scalars::Unknown, columns).with_coded(coded);
    for condition in plan.conditions() {
        if columns::is_volatile_or_subquery(condition) {
            return Err("a condition of the join that is volatile or a subquery".into());
        }
        let condition: Expr<'_> = plan_node(condition);
        if let Err(reason) = translator.predicate(condition) {
            let (lanes, side) = pair(plan, condition).ok_or(reason)?;
            let is_system = |column: &columns::Column| column.number <= 0;
            if side.is_none() || lanes.iter().any(is_system) {
                return Err("a condition over several joined tables".into());
            }
        }
    }
    Ok(())
}

/// The columns of the lanes table in a condition, and the only small side that it is over; `None` in its place:
/// several.
type PairOf = (Vec<columns::Column>, Option<usize>);

/// What PostgreSQL reads to evaluate a condition for a pair of rows; `None` if it is over no small side.
fn pair(plan: &HashJoinPlan, condition: Expr<'_>) -> Option<PairOf> {
    let mut sides: Vec<usize> = plan
        .places(condition.as_ptr())
        .map(|place| plan.outputs[place].dimension)
        .collect();
    sides.sort_unstable();
    sides.dedup();
    let lanes = columns::columns(condition.as_ptr()).into_iter();
    let lanes = lanes.filter(|column| column.table as u32 == plan.table);
    let side = match sides[..] {
        [] => return None,
        [side] => Some(side),
        _ => None,
    };
    Some((lanes.collect(), side))
}

impl MatchCondition {
    /// Prepares a condition of the node's plan.
    ///
    /// # Errors
    /// Why it cannot be evaluated.
    pub fn of(
        condition: *mut pg_sys::Node,
        plan: &HashJoinPlan,
        node: ExecNode<'_>,
        translator: &mut Translator,
    ) -> Translation<MatchCondition> {
        let expression: Expr<'_> = plan_node(condition);
        let reason = match translator.predicate_if_any(expression) {
            Ok(predicate) => {
                let read = SmallColumns::read_by(expression, plan, translator);
                let way = Way::Vectors(predicate, read);
                return Ok(MatchCondition { way });
            }
            Err(reason) => reason,
        };
        let Some((lanes, Some(side))) = pair(plan, expression) else {
            return Err(reason);
        };
        let attributes: Vec<usize> = lanes
            .into_iter()
            .map(|column| translator.numbered_attribute(column.number))
            .collect::<Translation<_>>()?;
        let of_slots = plan.over_slots(condition);
        let memory = node.lasting_memory();
        let state = memory.enter(|| node.initialise_uncompiled(of_slots));
        let evaluator = PairEvaluator::new(state, &attributes, RunningNode::of(node))?;
        let way = Way::Pairs(evaluator, side);
        Ok(MatchCondition { way })
    }

    /// Whether it reads columns of a side before this one.
    pub fn reads_before(&self, side: usize, columns: &SmallColumns) -> bool {
        match &self.way {
            Way::Vectors(_, read) => read.iter().any(|index| columns.side_of(*index) < side),
            Way::Pairs(_, of) => *of < side,
        }
    }

    /// Deselects rows that, with the small rows that they have found, do not meet the condition.
    ///
    /// # Errors
    /// The error that it raises for a selected row.
    pub fn narrow<'s>(
        &mut self,
        side: impl Fn(usize) -> &'s JoinedSide,
        frame: &Frame<'_>,
        columns: &mut SmallColumns,
        selection: &mut Selection,
    ) -> Evaluation<()> {
        match &mut self.way {
            Way::Vectors(predicate, read) => {
                for index in read {
                    columns.gather(*index, side(columns.side_of(*index)), selection);
                }
                let frame = Frame {
                    joined: columns.operands(),
                    ..*frame
                };
                predicate.narrow(&frame, selection)
            }
            Way::Pairs(evaluator, of) => {
                let side = side(*of);
                let found = side.join.found().rows();
                let small_row = |row: usize| side.small.slot(found[row]);
                *selection = evaluator.passing(frame, selection, small_row);
                Ok(())
            }
        }
    }
}
