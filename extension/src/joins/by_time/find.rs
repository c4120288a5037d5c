//! Recognises joins by time in the planner: a lanes table joined with a lateral sub-select that
//! finds rows of another table by time.
//!
//! ```text
//! planner:  lanes table and lateral sub-select ── planner/time_match │ window_match ──► TimeJoin ──► JoinPlan
//! executor: JoinPlan ──► stage: finds the right rows of each vector of the left side
//! ```
//! PostgreSQL's own plan for the join stays in the plan as a child that is never executed.
//! Because of it the plan contains the sub-select's tables, with their locks and permissions.

use lanes_simd::Comparison;
use pgrx::pg_sys;

use super::plan::{JoinPlan, Wanted};
use crate::custom_scan::names;
use crate::expressions::joined_columns::Computed;
use crate::expressions::translate::Translation;
use crate::gucs;
use crate::pg::tree::{
    Aggref, Expr, Expression, JoinPath, Kind, List, Node, Path, PlannerInfo, Query, RelOptInfo,
    RestrictInfo, View, make, plan_node, walk,
};
use crate::pg::{outer_joins, ports};
use crate::planner::lanes_table;
use crate::planner::time_match::{Output, Shape, match_shape};
use crate::planner::window_match::match_window;

/// A join by time that the planner has recognised.
pub struct TimeJoin<'p> {
    /// The left side.
    pub left_relation: RelOptInfo<'p>,
    /// The planner's estimate of the rows in the right side's table.
    pub right_rows: f64,
    /// Conditions on the sub-select's columns, which are evaluated after the join.
    pub quals: Vec<Expr<'p>>,
    /// PostgreSQL's own path for the join.
    pub path: Path<'p>,
    /// The part of the plan that describes the join.
    pub plan: JoinPlan,
}

/// The two sides of a join.
#[derive(Clone, Copy)]
pub struct Sides<'p> {
    /// The left side, a table.
    pub outer: RelOptInfo<'p>,
    /// The right side, a sub-select.
    pub inner: RelOptInfo<'p>,
    /// The kind of join: INNER, LEFT and so on.
    pub kind: pg_sys::JoinType::Type,
}

impl<'p> Sides<'p> {
    /// Whether the sides are a lanes table and a sub-select that is lateral to this table alone.
    pub fn are_alike(&self, root: PlannerInfo<'p>) -> bool {
        let (outer, inner) = (self.outer, self.inner);
        outer.reloptkind() == pg_sys::RelOptKind::RELOPT_BASEREL
            && inner.reloptkind() == pg_sys::RelOptKind::RELOPT_BASEREL
            && inner.rtekind() == pg_sys::RTEKind::RTE_SUBQUERY
            && inner.lateral_relids().equals(outer.relids())
            && outer.lateral_relids().is_empty()
            && self.is_left_lanes_table(root)
    }

    /// Whether the left side is a single lanes table.
    pub fn is_left_lanes_table(&self, root: PlannerInfo<'p>) -> bool {
        let outer = self.outer;
        matches!(
            outer.reloptkind(),
            pg_sys::RelOptKind::RELOPT_BASEREL | pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL
        ) && lanes_table::is_lanes_scan(outer, root.entry(outer.relid()))
    }
}

impl<'p> TimeJoin<'p> {
    /// The join that a relation consists of; `None` if it does not have two sides, the second of
    /// which is lateral to the first.
    pub fn of(root: PlannerInfo<'p>, joined: RelOptInfo<'p>) -> Option<Translation<TimeJoin<'p>>> {
        if joined.reloptkind() != pg_sys::RelOptKind::RELOPT_JOINREL
            || !gucs::enable_asof()
            || outer_joins::tables_in(root, joined.relids()).len() != 2
        {
            return None;
        }
        let path = joined.cheapest_total_path()?;
        let nested = nested_loop(path)?;
        let sides = Sides {
            outer: nested.outerjoinpath()?.parent()?,
            inner: nested.innerjoinpath()?.parent()?,
            kind: nested.jointype(),
        };
        let conditions = sides.inner.joininfo();
        sides
            .are_alike(root)
            .then(|| Self::of_sides(root, sides, path, conditions))
    }

    /// The join of two sides that [are alike](Sides::are_alike), with PostgreSQL's own path for it and with the
    /// conditions between them.
    pub fn of_sides(
        root: PlannerInfo<'p>,
        sides: Sides<'p>,
        path: Path<'p>,
        conditions: List<'p, RestrictInfo<'p>>,
    ) -> Translation<TimeJoin<'p>> {
        let (outer, inner) = (sides.outer, sides.inner);
        let is_inner = match sides.kind {
            pg_sys::JoinType::JOIN_INNER => true,
            pg_sys::JoinType::JOIN_LEFT => false,
            _ => return Err("a join of another kind than INNER and LEFT".into()),
        };
        let query = root.entry(inner.relid()).and_then(|entry| entry.subquery());
        let (Some(query), Some(subroot)) = (query, inner.subroot()) else {
            return Err("a sub-select that is not planned".into());
        };
        let (shape, wanted) = wanted(root, query)?;
        let table = subroot.relation(shape.entry as u32);
        let Some(table) = table.filter(|_| lanes_table::is_lanes_table(shape.table)) else {
            return Err("the lateral sub-select does not read a lanes table".into());
        };
        if subroot
            .entry(shape.entry as u32)
            .is_none_or(|entry| entry.inh())
        {
            return Err("the lateral sub-select reads a table with children".into());
        }
        let mut quals = quals_above(inner, conditions, is_inner)?;
        if let Wanted::Aggregates(calls) = &wanted {
            quals.extend(quals_moved(inner, subroot, calls, is_inner)?);
        }
        Ok(TimeJoin {
            left_relation: outer,
            right_rows: table.tuples(),
            quals,
            path,
            plan: JoinPlan::of(&shape, wanted, is_inner)?,
        })
    }
}

/// The shape of a lateral sub-select, and the result that a join needs from its rows.
fn wanted<'p>(root: PlannerInfo<'p>, query: Query<'p>) -> Translation<(Shape, Wanted)> {
    match match_window(root, query) {
        Ok(window) => {
            let calls = window.calls.into_iter();
            let calls = calls.map(|call| plan_node(call.as_ptr()));
            Ok((window.rows, Wanted::Aggregates(calls.collect())))
        }
        Err(no_window) => {
            let shape = match_shape(root, query).map_err(|no_match| {
                let reason = if query.hasAggs() { no_window } else { no_match };
                format!("the lateral sub-select: {reason}")
            })?;
            let (outputs, computed) = outputs(root, query, &shape.outputs);
            let wanted = Wanted::Nearest {
                backward: shape.backward,
                outputs,
                computed,
            };
            Ok((shape, wanted))
        }
    }
}

/// The columns of a sub-select that is not planned, and the columns that are computed from those of its table.
fn outputs(
    root: PlannerInfo<'_>,
    query: Query<'_>,
    outputs: &[Output],
) -> (Vec<i16>, Vec<Computed>) {
    let columns = outputs.iter().map(|output| match output {
        Output::Column(column) => *column,
        Output::Other => 0,
    });
    let (mut columns, mut computed): (Vec<i16>, _) = (columns.collect(), Vec::new());
    for (place, target) in query.targetList().iter().enumerate() {
        if outputs[place] == Output::Other
            && !target.resjunk()
            && let Some(expression) = over_outputs(root, target.expr(), &mut columns)
        {
            computed.push((place, plan_node(expression.as_ptr())));
        }
    }
    (columns, computed)
}

/// Rewrites an expression over a table's columns into one over outputs, and adds the missing
/// columns to the outputs. `None` if the expression has anything else in it, or no column at
/// all: for a left row without a match the result must be NULL, which only expressions over NULL
/// columns ensure.
fn over_outputs<'p>(
    root: PlannerInfo<'p>,
    expression: Expr<'p>,
    columns: &mut Vec<i16>,
) -> Option<Expr<'p>> {
    let (mut fits, mut has_column) = (true, false);
    let copy = expression.folded(Some(root));
    walk::expression(copy, &mut |node, _| {
        match node.kind() {
            Kind::Var(column) => {
                let attribute = column.varattno();
                fits &= column.varlevelsup() == 0 && attribute > 0;
                has_column = true;
                let known = columns.iter().position(|known| *known == attribute);
                let place = known.unwrap_or_else(|| {
                    columns.push(attribute);
                    columns.len() - 1
                });
                column.set_table(pg_sys::INNER_VAR);
                column.set_attribute(place as i16 + 1);
            }
            Kind::Param(parameter) => {
                fits &= parameter.paramkind() == pg_sys::ParamKind::PARAM_EXTERN;
            }
            Kind::SubPlan(_) | Kind::SubLink(_) => fits = false,
            _ => {}
        }
        !fits
    });
    if !fits || !has_column {
        return None;
    }
    copy.fix_operators();
    Some(copy)
}

/// Whether a lateral sub-select, which has not been planned, looks for one row before or after a time of the outer
/// query, or aggregates such rows. Then its author means it as one side of a join by time, of whatever
/// kind.
pub fn seeks_by_time(query: Query<'_>) -> bool {
    if query.limitCount().is_none() && !query.hasAggs() {
        return false;
    }
    let mut comparisons = Vec::new();
    walk::query(query, &mut |node, depth| {
        if let Kind::OpExpr(comparison) = node.kind() {
            comparisons.push((comparison, depth));
        }
        false
    });
    comparisons.into_iter().any(|(comparison, depth)| {
        let found = ports::btree_operator(comparison.opno());
        let bounds = found.is_some_and(|(comparison, ..)| {
            !matches!(comparison, Comparison::Equal | Comparison::NotEqual)
        });
        bounds
            && walk::expression(comparison.as_expr(), &mut |node, below| {
                node.as_var()
                    .is_some_and(|column| column.varlevelsup() > depth + below)
            })
    })
}

/// The nested loop below the projections and nodes of a path.
fn nested_loop(path: Path<'_>) -> Option<JoinPath<'_>> {
    let path = path.below_projections();
    if path.tag() == pg_sys::NodeTag::T_NestPath {
        return path.as_join();
    }
    let mut ours = [names::ASOF_JOIN, names::TIME_JOIN].into_iter();
    let node = ours.find_map(|name| path.as_custom(name))?;
    nested_loop(node.custom_paths().first()?)
}

/// The conditions of a join on the sub-select's result.
fn quals_above<'p>(
    inner: RelOptInfo<'p>,
    conditions: List<'p, RestrictInfo<'p>>,
    is_inner: bool,
) -> Translation<Vec<Expr<'p>>> {
    if inner.has_eclass_joins() {
        return Err("a condition on the sub-select's result that other conditions imply".into());
    }
    let own = inner.baserestrictinfo().iter().map(|qual| (qual, true));
    let both = conditions.iter().map(|qual| (qual, false));
    let mut quals = Vec::new();
    for (qual, is_own) in own.chain(both) {
        // In the ON clause of an outer join a condition decides which rows match, not which
        // rows are returned.
        if !is_inner && (is_own || !qual.is_pushed_down()) {
            return Err("a condition in ON beside the time and the keys".into());
        }
        if qual.security_level() > 0 {
            return Err("a join behind a security barrier".into());
        }
        quals.push(qual.clause());
    }
    Ok(quals)
}

/// The conditions on the result alone of a sub-select with these aggregates, which the planner has
/// moved into it.
fn quals_moved<'p>(
    inner: RelOptInfo<'p>,
    subroot: PlannerInfo<'p>,
    calls: &[Aggref<'p>],
    is_inner: bool,
) -> Translation<Vec<Expr<'p>>> {
    let moved = subroot.parse().and_then(Query::havingQual);
    if moved.is_some() && !is_inner {
        return Err("a condition in ON beside the time and the keys".into());
    }
    let conditions = moved.map_or(Vec::new(), conditions_of).into_iter();
    conditions
        .map(|condition| lifted(condition, calls, inner.relid()))
        .collect()
}

/// The conjuncts of a qualification, before or after the planner has turned it into a list.
fn conditions_of(qual: Expr<'_>) -> Vec<Expr<'_>> {
    match qual.as_nodes() {
        Some(list) => list.iter().collect(),
        None => qual.conjuncts(),
    }
}

/// Rewrites a condition on a sub-select's aggregates into one on its columns.
fn lifted<'p>(condition: Expr<'p>, calls: &[Aggref<'p>], inner: u32) -> Translation<Expr<'p>> {
    let mut columns = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let (type_of, collation) = (call.aggtype(), call.aggcollid());
        let column = make::var(inner as i32, index as i16 + 1, type_of, collation);
        columns.push((call.unnumbered().as_expr(), column.as_expr()));
    }
    let mut lifts = Vec::new();
    for leaf in condition.leaves(pg_sys::PVC_INCLUDE_AGGREGATES) {
        let call = leaf.downcast::<Aggref<'p>>().map(Aggref::unnumbered);
        let column = call.and_then(|call| {
            let mut columns = columns.iter();
            columns.find(|(known, _)| known.equals(call.as_expr()))
        });
        let Some((_, column)) = column else {
            return Err("a condition on more than the sub-select's columns".into());
        };
        lifts.push((leaf, *column));
    }
    Ok(walk::replaced(condition, &mut |node| {
        let lift = lifts.iter().find(|(leaf, _)| *leaf == node);
        lift.map(|(_, column)| *column)
    }))
}
