//! Makes the plan of an ASOF join from the nested loop below it.

use pgrx::pg_sys;

use super::plan::{AsofPlan, BoundKind, KeyColumn, NOT_KEPT, TieColumn};
use crate::custom_scan::node::Planned;
use crate::pg::{names, ports, tree};
use crate::planner;
use crate::planner::time_match::{Output, Shape};

/// Fills in the plan.
pub fn plan(planned: &Planned) {
    // SAFETY: the planner's structures are live, and the path is one that `offer` made.
    unsafe {
        let scan = planned.scan;
        let below: *mut pg_sys::Plan = ports::list_nth((*scan).custom_plans, 0);
        (*scan).custom_scan_tlist = tree::copy((*below).targetlist);
        let nested: *mut pg_sys::NestPath = ports::list_nth((*planned.path).custom_paths, 0);
        let inner = (*(*(*nested).jpath.innerjoinpath).parent).relid as i32;
        if let Some(plan) = asof_plan(planned.root, inner, below) {
            (*scan).custom_private = plan.encode();
        }
    }
}

/// The plan for a nested loop; `None` if the loop has another form than expected, so that it has to run itself.
unsafe fn asof_plan(
    root: *mut pg_sys::PlannerInfo,
    inner: i32,
    below: *const pg_sys::Plan,
) -> Option<AsofPlan> {
    // SAFETY: the plans are live; casts follow tags.
    unsafe {
        if !tree::is_a(below, pg_sys::NodeTag::T_NestLoop) {
            return None;
        }
        let (outer_plan, inner_plan) = ((*below).lefttree, (*below).righttree);
        if !tree::is_a(inner_plan, pg_sys::NodeTag::T_SubqueryScan) {
            return None;
        }
        let entry = tree::planner_entry(root, inner);
        let shape = planner::time_match::match_shape(
            crate::pg::tree::plan_node(root),
            crate::pg::tree::plan_node((*entry).subquery),
        )
        .ok()?;
        let mut kept = Kept(Vec::new());
        let outputs = outputs(below, inner, &shape, &mut kept)?;
        let outer_targets = (*outer_plan).targetlist;
        let mut list_of = |expressions: Vec<*mut pg_sys::Node>| {
            let mut adapted = Vec::new();
            for expression in expressions {
                adapted.push(adapt(tree::copy(expression), outer_targets, &mut kept)?);
            }
            Some(tree::list(&adapted))
        };
        let key_expressions = list_of(shape.keys.iter().map(|key| key.outer).collect())?;
        let bound_expressions = list_of(shape.bounds.iter().map(|bound| bound.outer).collect())?;
        let residual_quals = list_of(shape.residual_quals.clone())?;
        let chosen_quals = chosen_quals((*inner_plan).qual, inner, &shape, &mut kept)?;
        let table_quals = tree::list(&shape.table_quals);
        pg_sys::fix_opfuncids(table_quals.cast());
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
}

/// The places of the sub-select's columns among the kept ones. `None`: the scan returns something else than columns.
unsafe fn outputs(
    below: *const pg_sys::Plan,
    inner: i32,
    shape: &Shape,
    kept: &mut Kept,
) -> Option<Vec<i32>> {
    let mut outputs = Vec::new();
    // SAFETY: the nested loop is live; casts follow tags.
    unsafe {
        for target in tree::elements::<pg_sys::TargetEntry>((*(*below).righttree).targetlist) {
            if !tree::is_a((*target).expr, pg_sys::NodeTag::T_Var) {
                return None;
            }
            let variable: *const pg_sys::Var = (*target).expr.cast();
            if (*variable).varno != inner || (*variable).varattno <= 0 {
                return None;
            }
            // A scan may return more columns than the loop uses.
            if !uses(below, inner, (*variable).varattno) {
                outputs.push(NOT_KEPT);
                continue;
            }
            match shape.outputs.get((*variable).varattno as usize - 1)? {
                Output::Column(column) => outputs.push(kept.place(*column)),
                Output::Other => return None,
            }
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
unsafe fn chosen_quals(
    quals: *mut pg_sys::List,
    inner: i32,
    shape: &Shape,
    kept: &mut Kept,
) -> Option<*mut pg_sys::List> {
    // SAFETY: the copy is changed before anybody else knows it; casts follow tags.
    unsafe {
        let quals = tree::copy(quals);
        let mut fit = true;
        tree::walk_expression(quals.cast(), &mut |node, _| {
            match (*node).type_ {
                pg_sys::NodeTag::T_Var => {
                    let variable: *mut pg_sys::Var = node.cast();
                    let place = usize::try_from((*variable).varattno - 1).ok();
                    match place.and_then(|place| shape.outputs.get(place)) {
                        Some(&Output::Column(column)) if (*variable).varno == inner => {
                            (*variable).varno = pg_sys::INNER_VAR;
                            (*variable).varattno = kept.place(column) as i16 + 1;
                        }
                        _ => fit = false,
                    }
                }
                pg_sys::NodeTag::T_Param => {
                    let parameter: *const pg_sys::Param = node.cast();
                    fit &= (*parameter).paramkind == pg_sys::ParamKind::PARAM_EXTERN;
                }
                pg_sys::NodeTag::T_SubPlan
                | pg_sys::NodeTag::T_AlternativeSubPlan
                | pg_sys::NodeTag::T_SubLink
                | pg_sys::NodeTag::T_PlaceHolderVar => fit = false,
                _ => {}
            }
            !fit
        });
        pg_sys::fix_opfuncids(quals.cast());
        fit.then_some(quals)
    }
}

/// Whether the conditions on a sub-select's result can be applied to the match.
///
/// # Safety
/// The relation is a live base relation of that shape.
pub unsafe fn can_filter(inner: *const pg_sys::RelOptInfo, shape: &Shape) -> bool {
    // SAFETY: the caller's relation is live.
    unsafe {
        let clauses: Vec<_> = tree::elements::<pg_sys::RestrictInfo>((*inner).baserestrictinfo)
            .into_iter()
            .map(|clause| (*clause).clause)
            .collect();
        let clauses = tree::list(&clauses);
        chosen_quals(clauses, (*inner).relid as i32, shape, &mut Kept(Vec::new())).is_some()
    }
}

/// Whether a nested loop itself uses a column of its right side.
unsafe fn uses(below: *const pg_sys::Plan, inner: i32, column: i16) -> bool {
    // SAFETY: the nested loop is live, and its columns still have the planner's numbers; casts follow tags.
    unsafe {
        [
            (*below).targetlist,
            (*below).qual,
            (*below.cast::<pg_sys::Join>()).joinqual,
        ]
        .into_iter()
        .any(|part| {
            tree::walk_expression(part.cast(), &mut |node, _| {
                (*node).type_ == pg_sys::NodeTag::T_Var && {
                    let variable: *const pg_sys::Var = node.cast();
                    (*variable).varno == inner && (*variable).varattno == column
                }
            })
        })
    }
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

/// Changes an expression of the sub-select into one over a left row and kept columns. `None`: the left side does not
/// return a column that the expression needs.
unsafe fn adapt(
    expression: *mut pg_sys::Node,
    outer: *const pg_sys::List,
    kept: &mut Kept,
) -> Option<*mut pg_sys::Node> {
    let mut complete = true;
    // SAFETY: the caller's expression is a copy that nobody else knows; casts follow tags.
    unsafe {
        let targets = tree::elements::<pg_sys::TargetEntry>(outer);
        tree::walk_expression(expression, &mut |node, _| {
            if (*node).type_ != pg_sys::NodeTag::T_Var {
                return false;
            }
            let variable: *mut pg_sys::Var = node.cast();
            if (*variable).varlevelsup == 0 {
                (*variable).varattno = kept.place((*variable).varattno) as i16 + 1;
                (*variable).varno = pg_sys::INNER_VAR;
                return false;
            }
            let found = targets.iter().find(|&&target| {
                tree::is_a((*target).expr, pg_sys::NodeTag::T_Var) && {
                    let of: *const pg_sys::Var = (*target).expr.cast();
                    (*of).varlevelsup == 0
                        && (*of).varno == (*variable).varno
                        && (*of).varattno == (*variable).varattno
                }
            });
            match found {
                Some(&target) => {
                    (*variable).varlevelsup = 0;
                    (*variable).varno = pg_sys::OUTER_VAR;
                    (*variable).varattno = (*target).resno;
                }
                None => complete = false,
            }
            !complete
        });
        pg_sys::fix_opfuncids(expression);
        complete.then_some(expression)
    }
}

/// The properties of a join for EXPLAIN.
unsafe fn properties(shape: &Shape) -> *mut pg_sys::List {
    let mut properties = std::ptr::null_mut();
    // SAFETY: strings are copied; the table is locked, so its columns have names.
    unsafe {
        let name = |column: i16| names::column_name(shape.table, column);
        let mut property = |label: &str, text: String| {
            for part in [label, &text] {
                let part = std::ffi::CString::new(part).unwrap_or_default();
                let part = pg_sys::makeString(pg_sys::pstrdup(part.as_ptr()));
                properties = pg_sys::lappend(properties, part.cast());
            }
        };
        let direction = if shape.backward {
            "backward"
        } else {
            "forward"
        };
        property("Direction", direction.to_owned());
        property("Time", name(shape.time));
        if !shape.keys.is_empty() {
            let keys: Vec<String> = shape.keys.iter().map(|key| name(key.column)).collect();
            property("Keys", keys.join(", "));
        }
        if let Some(tolerance) = shape.tolerance {
            property("Tolerance", text_of(tolerance));
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
    }
    properties
}

/// A constant in the text form of its type. The value of any other expression is not known before execution.
unsafe fn text_of(expression: *mut pg_sys::Node) -> String {
    // SAFETY: the caller's expression is live; the cast follows the tag.
    unsafe {
        if !tree::is_a(expression, pg_sys::NodeTag::T_Const) {
            return "of each row".to_owned();
        }
        let constant: *const pg_sys::Const = expression.cast();
        let (mut output, mut is_varlena) = (pg_sys::InvalidOid, false);
        pg_sys::getTypeOutputInfo((*constant).consttype, &mut output, &mut is_varlena);
        let text = pg_sys::OidOutputFunctionCall(output, (*constant).constvalue);
        names::text(text).unwrap_or_default()
    }
}
