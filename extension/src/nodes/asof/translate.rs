//! Makes the plan of an ASOF join from the nested loop below it.

use pgrx::pg_sys::{self, NodeTag};

use super::plan::{AsofPlan, BoundKind, KeyColumn, NOT_KEPT, TieColumn};
use crate::custom_scan::node::Planned;
use crate::pg::names;
use crate::pg::tree::{
    Expr, Join, Kind, List, Node, Path, Plan, PlannerInfo, RelOptInfo, SubqueryScan, TargetEntry,
    make, plan_node, walk,
};
use crate::planner;
use crate::planner::time_match::{Output, Shape};

/// Fills in the plan of a path that `offer` made.
pub fn plan(planned: &Planned) {
    let Some(below) = planned.scan.custom_plans().first() else {
        return;
    };
    planned
        .scan
        .set_entries(make::copy_list(below.targetlist()));
    let nested = planned.path.custom_paths().first().and_then(Path::as_join);
    let inner = nested.and_then(|nested| nested.innerjoinpath()?.parent());
    let plan = inner.and_then(|inner| asof_plan(planned.root, inner.relid(), below));
    if let Some(plan) = plan {
        planned.scan.set_private(plan.encode());
    }
}

/// The plan for a nested loop; `None` if the loop has another form than expected, so that it has to run itself.
fn asof_plan(root: PlannerInfo<'static>, inner: u32, below: Plan<'static>) -> Option<AsofPlan> {
    let nested = below.as_nested_loop()?;
    let (outer_plan, inner_plan) = (below.lefttree()?, below.righttree()?);
    inner_plan.downcast::<SubqueryScan<'_>>()?;
    let query = root.entry(inner)?.subquery()?;
    let shape = planner::time_match::match_shape(root, query).ok()?;
    let mut kept = Kept(Vec::new());
    let outputs = outputs(below, nested, inner as i32, &shape, &mut kept)?;
    let targets = outer_plan.targetlist();
    let mut list_of = |expressions: Vec<*mut pg_sys::Node>| {
        let mut adapted = List::EMPTY;
        for expression in expressions {
            let copy = make::copy(plan_node::<Expr<'_>>(expression));
            adapted.push(adapt(copy, targets, &mut kept)?);
        }
        Some(adapted)
    };
    let key_expressions = list_of(shape.keys.iter().map(|key| key.outer).collect())?;
    let bound_expressions = list_of(shape.bounds.iter().map(|bound| bound.outer).collect())?;
    let residual_quals = list_of(shape.residual_quals.clone())?;
    let chosen_quals = chosen_quals(inner_plan.qual(), inner as i32, &shape, &mut kept)?;
    let table_quals: List<'_, Expr<'_>> =
        List::new(shape.table_quals.iter().map(|qual| plan_node(*qual)));
    table_quals.iter().for_each(Expr::fix_operators);
    Some(AsofPlan {
        table: shape.table,
        time: shape.time,
        time_kind: shape.time_kind,
        backward: shape.backward,
        arrival_inverted: shape
            .arrival
            .is_some_and(|descending| descending != shape.backward),
        keys: key_columns(&shape),
        key_expressions,
        bounds: bound_kinds(&shape),
        bound_expressions,
        ties: tie_columns(&shape),
        kept: kept.0,
        outputs,
        table_quals,
        residual_quals,
        chosen_quals,
        properties: properties(&shape),
    })
}

/// The places of the sub-select's columns among the kept ones. `None`: the scan returns something else than columns.
fn outputs(
    below: Plan<'_>,
    nested: Join<'_>,
    inner: i32,
    shape: &Shape,
    kept: &mut Kept,
) -> Option<Vec<i32>> {
    let mut outputs = Vec::new();
    for target in below.righttree()?.targetlist() {
        let column = target.expr().as_var()?;
        let attribute = column.varattno();
        if column.varno() != inner || attribute <= 0 {
            return None;
        }
        // A scan may return more columns than the loop uses.
        if !uses(below, nested, inner, attribute) {
            outputs.push(NOT_KEPT);
            continue;
        }
        match shape.outputs.get(attribute as usize - 1)? {
            Output::Column(column) => outputs.push(kept.place(*column)),
            Output::Other => return None,
        }
    }
    Some(outputs)
}

/// The key columns of a shape.
fn key_columns(shape: &Shape) -> Vec<KeyColumn> {
    let keys = shape.keys.iter().map(|key| KeyColumn {
        column: key.column,
        kind: key.kind,
        outer_kind: key.outer_kind,
        nulls_match: key.nulls_match,
    });
    keys.collect()
}

/// The kinds of the bounds of a shape.
fn bound_kinds(shape: &Shape) -> Vec<BoundKind> {
    let bounds = shape.bounds.iter().map(|bound| BoundKind {
        upper: bound.upper,
        inclusive: bound.inclusive,
        outer_kind: bound.outer_kind,
    });
    bounds.collect()
}

/// The columns that break ties of time. The query's order has the best match first; a history that is searched backward
/// has it last.
fn tie_columns(shape: &Shape) -> Vec<TieColumn> {
    let ties = shape.ties.iter().map(|tie| TieColumn {
        column: tie.column,
        kind: tie.kind,
        inverted: tie.descending != shape.backward,
        nulls_low: tie.nulls_first != shape.backward,
    });
    ties.collect()
}

/// The conditions on the sub-select's result, which apply to the match alone, as conditions on kept columns.
fn chosen_quals<'p>(
    quals: List<'p, Expr<'p>>,
    inner: i32,
    shape: &Shape,
    kept: &mut Kept,
) -> Option<List<'p, Expr<'p>>> {
    let quals = make::copy_list(quals);
    let mut fit = true;
    for qual in quals {
        walk::expression(qual, &mut |node, _| {
            match node.kind() {
                Kind::Var(column) => {
                    let place = usize::try_from(column.varattno() - 1).ok();
                    match place.and_then(|place| shape.outputs.get(place)) {
                        Some(&Output::Column(wanted)) if column.varno() == inner => {
                            column.set_table(pg_sys::INNER_VAR);
                            column.set_attribute(kept.place(wanted) as i16 + 1);
                        }
                        _ => fit = false,
                    }
                }
                Kind::Param(parameter) => {
                    fit &= parameter.paramkind() == pg_sys::ParamKind::PARAM_EXTERN;
                }
                Kind::SubLink(_)
                | Kind::SubPlan(_)
                | Kind::PlaceHolderVar(_)
                | Kind::Other(NodeTag::T_AlternativeSubPlan) => fit = false,
                _ => {}
            }
            !fit
        });
        if !fit {
            return None;
        }
        qual.fix_operators();
    }
    Some(quals)
}

/// Whether the conditions on the result of a sub-select of that shape can be applied to the match.
pub fn can_filter(inner: RelOptInfo<'_>, shape: &Shape) -> bool {
    let clauses = inner.baserestrictinfo().iter().map(|qual| qual.clause());
    let clauses = List::new(clauses);
    chosen_quals(clauses, inner.relid() as i32, shape, &mut Kept(Vec::new())).is_some()
}

/// Whether a nested loop, whose columns still have the planner's numbers, itself uses a column of its right side.
fn uses(below: Plan<'_>, nested: Join<'_>, inner: i32, column: i16) -> bool {
    let targets = below.targetlist().as_node();
    let parts = [targets, below.qual().as_node(), nested.joinqual().as_node()];
    parts.into_iter().flatten().any(|part| {
        walk::expression(part, &mut |node, _| {
            let found = node.as_var();
            found.is_some_and(|found| found.varno() == inner && found.varattno() == column)
        })
    })
}

/// The kept columns, each once.
struct Kept(Vec<i16>);

impl Kept {
    /// The place of a column, counted from 0. A new column is added.
    fn place(&mut self, column: i16) -> i32 {
        let place = self.0.iter().position(|&kept| kept == column);
        place.unwrap_or_else(|| {
            self.0.push(column);
            self.0.len() - 1
        }) as i32
    }
}

/// Changes an expression of the sub-select, which nobody else knows, into one over a left row and kept columns. `None`:
/// the left side does not return a column that the expression needs.
fn adapt<'p>(
    expression: Expr<'p>,
    outer: List<'_, TargetEntry<'_>>,
    kept: &mut Kept,
) -> Option<Expr<'p>> {
    let mut complete = true;
    walk::expression(expression, &mut |node, _| {
        let Some(column) = node.as_var() else {
            return false;
        };
        if column.varlevelsup() == 0 {
            column.set_attribute(kept.place(column.varattno()) as i16 + 1);
            column.set_table(pg_sys::INNER_VAR);
            return false;
        }
        let is_column = |target: &TargetEntry<'_>| {
            target.expr().as_var().is_some_and(|of| {
                of.varlevelsup() == 0
                    && of.varno() == column.varno()
                    && of.varattno() == column.varattno()
            })
        };
        match outer.iter().find(is_column) {
            Some(target) => {
                column.set_levels_up(0);
                column.set_table(pg_sys::OUTER_VAR);
                column.set_attribute(target.resno());
            }
            None => complete = false,
        }
        !complete
    });
    expression.fix_operators();
    complete.then_some(expression)
}

/// The properties of a join for EXPLAIN.
fn properties(shape: &Shape) -> List<'static, Expr<'static>> {
    let mut properties = List::EMPTY;
    let name = |column: i16| names::column_name(shape.table, column);
    let mut property = |label: &str, text: String| {
        properties.push(make::string(label));
        properties.push(make::string(&text));
    };
    let direction = match shape.backward {
        true => "backward",
        false => "forward",
    };
    property("Direction", direction.to_owned());
    property("Time", name(shape.time));
    if !shape.keys.is_empty() {
        let keys: Vec<String> = shape.keys.iter().map(|key| name(key.column)).collect();
        property("Keys", keys.join(", "));
    }
    if let Some(tolerance) = shape.tolerance {
        property("Tolerance", text_of(plan_node(tolerance)));
    }
    if !shape.ties.is_empty() {
        let ties: Vec<String> = shape.ties.iter().map(|tie| name(tie.column)).collect();
        property("Tie", ties.join(", "));
    }
    for (label, quals) in [
        ("Table Conditions", &shape.table_quals),
        ("Candidate Conditions", &shape.residual_quals),
    ] {
        if !quals.is_empty() {
            property(label, quals.len().to_string());
        }
    }
    property("Algorithm", "hash of keys, search by time".to_owned());
    properties
}

/// A constant in the text form of its type. The value of any other expression is not known before execution.
fn text_of(expression: Expr<'_>) -> String {
    let constant = expression.as_const();
    let Some(value) = constant.and_then(|constant| constant.value()) else {
        return "of each row".to_owned();
    };
    value.to_text()
}
