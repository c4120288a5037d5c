//! Sorts the conditions of a lateral sub-select: keys, bounds of the time, conditions on the table alone, and others.

use pgrx::pg_sys::{self, NodeTag};

use super::time_match::{Bound, Key, Shape, column};
use crate::pg::catalog;
use crate::pg::kind::Kind;
use crate::pg::tree::{Expr, Kind as ExprKind, OpExpr, PlannerInfo, View, walk};

const LESS_EQUAL: i32 = pg_sys::BTLessEqualStrategyNumber as i32;
const EQUAL: i32 = pg_sys::BTEqualStrategyNumber as i32;
const GREATER_EQUAL: i32 = pg_sys::BTGreaterEqualStrategyNumber as i32;

/// What an expression refers to.
#[derive(Clone, Copy, Default)]
pub struct References {
    /// Columns of the sub-select.
    pub inner: bool,
    /// Columns of the outer query.
    pub outer: bool,
    /// Something that cannot be evaluated by itself: a sub-select, an aggregate, a column from further out, a whole row
    /// or a system column.
    pub unfit: bool,
}

impl References {
    /// What an expression refers to.
    pub fn of(expr: Expr<'_>) -> References {
        let mut found = References::default();
        walk::expression(expr, &mut |node, _| {
            match node.kind() {
                ExprKind::Var(column) => match column.varlevelsup() {
                    0 => {
                        found.inner = true;
                        found.unfit |= column.varattno() <= 0;
                    }
                    1 => found.outer = true,
                    _ => found.unfit = true,
                },
                ExprKind::Param(parameter) => {
                    found.unfit |= parameter.paramkind() != pg_sys::ParamKind::PARAM_EXTERN;
                }
                ExprKind::SubLink(_)
                | ExprKind::SubPlan(_)
                | ExprKind::Query(_)
                | ExprKind::Aggref(_)
                | ExprKind::GroupingFunc(_)
                | ExprKind::WindowFunc(_)
                | ExprKind::PlaceHolderVar(_)
                | ExprKind::Other(NodeTag::T_AlternativeSubPlan | NodeTag::T_CurrentOfExpr) => {
                    found.unfit = true
                }
                _ => {}
            }
            found.unfit
        });
        found
    }
}

/// A comparison `column operator outer`, whichever way it is written.
struct Comparison<'p> {
    column: i16,
    kind: Kind,
    outer: Expr<'p>,
    outer_kind: Kind,
    /// The strategy number of the operator with the column on the left.
    strategy: i32,
}

impl<'p> Comparison<'p> {
    fn of(operation: OpExpr<'p>) -> Option<Comparison<'p>> {
        let operands = operation.args();
        let (first, second) = (operands.get(0)?, operands.get(1)?);
        let types = catalog::operand_types(operation.opno());
        let kinds = (Kind::of_type(types.0)?, Kind::of_type(types.1)?);
        let strategy = catalog::strategy(operation.opno(), catalog::btree_family(types.0));
        if strategy == 0 || !kinds.0.compares_with(kinds.1) {
            return None;
        }
        if kinds.0 == Kind::Text && !catalog::is_deterministic(operation.inputcollid()) {
            return None;
        }
        let is_outer = |side| !References::of(side).inner;
        match (column(first), column(second)) {
            (Some(column), _) if is_outer(second) => Some(Comparison {
                column,
                kind: kinds.0,
                outer: second,
                outer_kind: kinds.1,
                strategy,
            }),
            (_, Some(column)) if is_outer(first) => Some(Comparison {
                column,
                kind: kinds.1,
                outer: first,
                outer_kind: kinds.0,
                // Commuting the operator exchanges < and >, and <= and >=.
                strategy: 6 - strategy,
            }),
            _ => None,
        }
    }
}

/// The column that a condition bounds by an expression of the outer query, and how it is read.
pub fn bounded_time<'p>(root: PlannerInfo<'p>, condition: Expr<'p>) -> Option<(i16, Kind)> {
    let condition = condition.folded(Some(root));
    let operation = condition.as_op()?;
    if !References::of(condition).outer {
        return None;
    }
    let found = Comparison::of(operation)?;
    (found.strategy != EQUAL && found.kind.is_ordered()).then_some((found.column, found.kind))
}

/// The bounds of a shape's time.
#[derive(Default)]
pub struct Bounds<'p>(Vec<(bool, Expr<'p>)>);

impl<'p> Bounds<'p> {
    /// The `i` of `time >= x - i` beside `time <= x`, or of `time <= x + i` beside `time >= x`. Whether the latest row
    /// is requested decides which of the bounds is near.
    pub fn tolerance(&self, backward: bool) -> Option<Expr<'p>> {
        let (_, near) = self.0.iter().find(|(is_upper, _)| *is_upper == backward)?;
        let (_, far) = self.0.iter().find(|(is_upper, _)| *is_upper != backward)?;
        let operands = far.as_op()?.args();
        match (operands.get(0), operands.get(1), operands.len()) {
            (Some(from), Some(by), 2) if from.equals(*near) => Some(by),
            _ => None,
        }
    }
}

/// Adds a condition to a shape.
///
/// # Errors
/// If the condition cannot be evaluated for a pair of rows.
pub fn add<'p>(
    root: PlannerInfo<'p>,
    shape: &mut Shape,
    bounds: &mut Bounds<'p>,
    condition: Expr<'p>,
) -> Result<(), &'static str> {
    let condition = condition.folded(Some(root));
    let about = References::of(condition);
    if about.unfit {
        return Err(
            "a condition holds a sub-select, a whole row, a system column, or a value from further out",
        );
    }
    if condition.is_volatile() {
        return Err("a condition is volatile");
    }
    if about.inner && !about.outer && !compares_time_with_constant(shape, condition) {
        shape.table_quals.push(condition.as_ptr());
        return Ok(());
    }
    let (compared, nulls_match) = match (condition.kind(), not_distinct(condition)) {
        (_, Some(inside)) => (Comparison::of(inside), true),
        (ExprKind::OpExpr(operation), None) => (Comparison::of(operation), false),
        _ => (None, false),
    };
    match compared {
        Some(found) if found.strategy == EQUAL => shape.keys.push(Key {
            column: found.column,
            kind: found.kind,
            outer: found.outer.as_ptr(),
            outer_kind: found.outer_kind,
            nulls_match,
        }),
        Some(found) if !nulls_match && is_time(shape, &found) => {
            let upper = found.strategy < EQUAL;
            bounds.0.push((upper, found.outer));
            shape.bounds.push(Bound {
                upper,
                inclusive: matches!(found.strategy, LESS_EQUAL | GREATER_EQUAL),
                outer: found.outer.as_ptr(),
                outer_kind: found.outer_kind,
            });
        }
        _ => shape.residual_quals.push(condition.as_ptr()),
    }
    Ok(())
}

fn is_time(shape: &Shape, found: &Comparison<'_>) -> bool {
    found.column == shape.time && found.kind == shape.time_kind
}

/// Whether a condition is like `time <= constant`, which bounds the search. Any other condition on the table alone
/// filters its rows once.
fn compares_time_with_constant(shape: &Shape, condition: Expr<'_>) -> bool {
    condition
        .as_op()
        .and_then(Comparison::of)
        .is_some_and(|found| is_time(shape, &found) && found.strategy != EQUAL)
}

/// The comparison inside `NOT (a IS DISTINCT FROM b)`.
fn not_distinct(condition: Expr<'_>) -> Option<OpExpr<'_>> {
    match condition.kind() {
        ExprKind::BoolExpr(not) if not.boolop() == pg_sys::BoolExprType::NOT_EXPR => {
            match not.args().first()?.kind() {
                ExprKind::DistinctExpr(inside) => Some(inside),
                _ => None,
            }
        }
        _ => None,
    }
}
