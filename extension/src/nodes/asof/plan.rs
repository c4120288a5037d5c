//! From the chosen path to the plan node: what execution needs, in the terms of the nested loop below.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::private_data::{BoundKind, KeyColumn, NOT_KEPT, Node, TieColumn};
use super::state;
use crate::pg::{names, ports, tree};
use crate::planner;
use crate::planner::time_match::{Output, Shape};

/// The node's name in EXPLAIN.
pub const NAME: &std::ffi::CStr = crate::custom_scan::names::ASOF_JOIN;

struct PathMethods(pg_sys::CustomPathMethods);
// SAFETY: constant, and Postgres is single-threaded.
unsafe impl Sync for PathMethods {}
static PATH_METHODS: PathMethods = PathMethods(pg_sys::CustomPathMethods {
    CustomName: NAME.as_ptr(),
    PlanCustomPath: Some(plan_path),
    ReparameterizeCustomPathByChild: None,
});

struct ScanMethods(pg_sys::CustomScanMethods);
// SAFETY: as above.
unsafe impl Sync for ScanMethods {}
static SCAN_METHODS: ScanMethods = ScanMethods(pg_sys::CustomScanMethods {
    CustomName: NAME.as_ptr(),
    CreateCustomScanState: Some(state::create_state),
});

/// The path's callbacks.
pub fn path_methods() -> *const pg_sys::CustomPathMethods {
    &PATH_METHODS.0
}

/// Makes the node known by its name, so that parallel workers find it. Called from `_PG_init`.
pub fn register() {
    // SAFETY: once a process; the table lives for ever.
    unsafe { pg_sys::RegisterCustomScanMethods(&SCAN_METHODS.0) };
}

#[pg_guard]
unsafe extern "C-unwind" fn plan_path(
    root: *mut pg_sys::PlannerInfo,
    _joined: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    targets: *mut pg_sys::List,
    _clauses: *mut pg_sys::List,
    plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: what the planner hands over is live; the path is one of ours.
    unsafe {
        let below: *mut pg_sys::Plan = ports::list_nth(plans, 0);
        let scan: *mut pg_sys::CustomScan = tree::make(pg_sys::NodeTag::T_CustomScan);
        (*scan).scan.plan.targetlist = targets;
        (*scan).custom_plans = plans;
        (*scan).custom_scan_tlist = tree::copy((*below).targetlist);
        (*scan).methods = &SCAN_METHODS.0;
        let nested: *mut pg_sys::NestPath = ports::list_nth((*path).custom_paths, 0);
        let inner = (*(*(*nested).jpath.innerjoinpath).parent).relid as i32;
        if let Some(node) = node(root, inner, below) {
            (*scan).custom_private = node.encode();
        }
        scan.cast()
    }
}

/// What the plan must remember; none where the nested loop is not as expected, and then runs itself.
unsafe fn node(
    root: *mut pg_sys::PlannerInfo,
    inner: i32,
    below: *const pg_sys::Plan,
) -> Option<Node> {
    // SAFETY: live plans; casts follow tags.
    unsafe {
        if !tree::is_a(below, pg_sys::NodeTag::T_NestLoop) {
            return None;
        }
        let (outer_plan, inner_plan) = ((*below).lefttree, (*below).righttree);
        if !tree::is_a(inner_plan, pg_sys::NodeTag::T_SubqueryScan) {
            return None;
        }
        let entry = tree::planner_entry(root, inner);
        let shape = planner::time_match::match_shape(root, (*entry).subquery).ok()?;
        let mut kept = Kept(Vec::new());
        let mut outputs = Vec::new();
        for target in tree::elements::<pg_sys::TargetEntry>((*inner_plan).targetlist) {
            if !tree::is_a((*target).expr, pg_sys::NodeTag::T_Var) {
                return None;
            }
            let variable: *const pg_sys::Var = (*target).expr.cast();
            if (*variable).varno != inner || (*variable).varattno <= 0 {
                return None;
            }
            // A scan may hand up more columns than the loop uses.
            if !uses(below, inner, (*variable).varattno) {
                outputs.push(NOT_KEPT);
                continue;
            }
            match shape.outputs.get((*variable).varattno as usize - 1)? {
                Output::Column(column) => outputs.push(kept.place(*column)),
                Output::Other => return None,
            }
        }
        let outer_targets = (*outer_plan).targetlist;
        let mut to_plan =
            |expression: *mut pg_sys::Node| adapt(tree::copy(expression), outer_targets, &mut kept);
        let mut list_of = |expressions: Vec<*mut pg_sys::Node>| {
            let mut adapted = Vec::new();
            for expression in expressions {
                adapted.push(to_plan(expression)?);
            }
            Some(tree::list(&adapted))
        };
        let key_expressions = list_of(shape.keys.iter().map(|key| key.outer).collect())?;
        let bound_expressions = list_of(shape.bounds.iter().map(|bound| bound.outer).collect())?;
        let residual_quals = list_of(shape.residual_quals.clone())?;
        let chosen_quals = chosen_quals((*inner_plan).qual, inner, &shape, &mut kept)?;
        let table_quals = tree::list(&shape.table_quals);
        pg_sys::fix_opfuncids(table_quals.cast());
        let lines = lines(&shape);
        Some(Node {
            table: shape.table,
            time: shape.time,
            time_kind: shape.time_kind,
            backward: shape.backward,
            arrival_inverted: shape
                .arrival
                .is_some_and(|descending| descending != shape.backward),
            keys: shape
                .keys
                .iter()
                .map(|key| KeyColumn {
                    column: key.column,
                    kind: key.kind,
                    outer_kind: key.outer_kind,
                    nulls_match: key.nulls_match,
                })
                .collect(),
            key_expressions,
            bounds: shape
                .bounds
                .iter()
                .map(|bound| BoundKind {
                    upper: bound.upper,
                    inclusive: bound.inclusive,
                    outer_kind: bound.outer_kind,
                })
                .collect(),
            bound_expressions,
            // The order as written has the best first; a history has it last when it looks back.
            ties: shape
                .ties
                .iter()
                .map(|tie| TieColumn {
                    column: tie.column,
                    kind: tie.kind,
                    inverted: tie.descending != shape.backward,
                    nulls_low: tie.nulls_first != shape.backward,
                })
                .collect(),
            kept: kept.0,
            outputs,
            table_quals,
            residual_quals,
            chosen_quals,
            lines,
        })
    }
}

/// The conditions on the sub-select's result, which apply to the chosen row alone, over kept columns.
unsafe fn chosen_quals(
    quals: *mut pg_sys::List,
    inner: i32,
    shape: &Shape,
    kept: &mut Kept,
) -> Option<*mut pg_sys::List> {
    // SAFETY: the copy is ours to change; the cast follows the tag.
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

/// Whether the conditions on a sub-select's result can be applied to the chosen row.
///
/// # Safety
/// A live base relation of that shape.
pub unsafe fn can_filter(inner: *const pg_sys::RelOptInfo, shape: &Shape) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let clauses: Vec<_> = tree::elements::<pg_sys::RestrictInfo>((*inner).baserestrictinfo)
            .into_iter()
            .map(|clause| (*clause).clause)
            .collect();
        let clauses = tree::list(&clauses);
        chosen_quals(clauses, (*inner).relid as i32, shape, &mut Kept(Vec::new())).is_some()
    }
}

/// Whether a nested loop itself refers to a column of its right side.
unsafe fn uses(below: *const pg_sys::Plan, inner: i32, column: i16) -> bool {
    // SAFETY: a live nested loop, not yet fitted to its inputs; the cast follows the tag.
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

/// The columns to keep, each once.
struct Kept(Vec<i16>);

impl Kept {
    /// A column's place, counted from 0.
    fn place(&mut self, column: i16) -> i32 {
        let place = self.0.iter().position(|&kept| kept == column);
        place.unwrap_or_else(|| {
            self.0.push(column);
            self.0.len() - 1
        }) as i32
    }
}

/// Makes an expression of the sub-select one over a left row and kept columns; none if the left side does not hand over what
/// it needs.
unsafe fn adapt(
    expression: *mut pg_sys::Node,
    outer: *const pg_sys::List,
    kept: &mut Kept,
) -> Option<*mut pg_sys::Node> {
    let mut complete = true;
    // SAFETY: the copy is ours to change; casts follow tags.
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

unsafe fn lines(shape: &Shape) -> *mut pg_sys::List {
    let mut lines = std::ptr::null_mut();
    // SAFETY: strings are copied; the table is locked.
    unsafe {
        let name = |column: i16| names::column_name(shape.table, column);
        let mut line = |label: &str, text: String| {
            for part in [label, &text] {
                let part = std::ffi::CString::new(part).unwrap_or_default();
                let part = pg_sys::makeString(pg_sys::pstrdup(part.as_ptr()));
                lines = pg_sys::lappend(lines, part.cast());
            }
        };
        let direction = if shape.backward {
            "backward"
        } else {
            "forward"
        };
        line("Direction", direction.to_owned());
        line("Time", name(shape.time));
        if !shape.keys.is_empty() {
            let keys: Vec<String> = shape.keys.iter().map(|key| name(key.column)).collect();
            line("Keys", keys.join(", "));
        }
        if let Some(tolerance) = shape.tolerance {
            line("Tolerance", text_of(tolerance));
        }
        if !shape.ties.is_empty() {
            let ties: Vec<String> = shape.ties.iter().map(|tie| name(tie.column)).collect();
            line("Tie", ties.join(", "));
        }
        for (label, quals) in [
            ("Table Conditions", &shape.table_quals),
            ("Candidate Conditions", &shape.residual_quals),
        ] {
            if !quals.is_empty() {
                line(label, quals.len().to_string());
            }
        }
        line("Algorithm", "hash of keys, search by time".to_owned());
    }
    lines
}

/// A constant as its type writes it; anything else is not known before execution.
unsafe fn text_of(expression: *mut pg_sys::Node) -> String {
    // SAFETY: a live expression; the cast follows the tag.
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
