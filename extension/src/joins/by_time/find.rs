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
use crate::pg::{nodes, outer_joins, ports, tree};
use crate::planner::lanes_table;
use crate::planner::time_match::{Output, match_shape};
use crate::planner::window_match::match_window;

/// A join by time that the planner has recognised.
pub struct TimeJoin {
    /// The left side.
    pub left_relation: *mut pg_sys::RelOptInfo,
    /// The planner's estimate of the rows in the right side's table.
    pub right_rows: f64,
    /// Conditions on the sub-select's columns, which are evaluated after the join.
    pub quals: Vec<*mut pg_sys::Node>,
    /// PostgreSQL's own path for the join.
    pub path: *mut pg_sys::Path,
    /// The part of the plan that describes the join.
    pub plan: JoinPlan,
}

/// The two sides of a join.
pub struct Sides {
    /// The left side, a table.
    pub outer: *mut pg_sys::RelOptInfo,
    /// The right side, a sub-select.
    pub inner: *mut pg_sys::RelOptInfo,
    /// The kind of join: INNER, LEFT and so on.
    pub kind: pg_sys::JoinType::Type,
    /// PostgreSQL's own path for the join.
    pub path: *mut pg_sys::Path,
}

impl Sides {
    /// Whether the sides are a lanes table and a sub-select that is lateral to this table alone.
    ///
    /// # Safety
    /// The planner's live structures.
    pub unsafe fn are_alike(&self, root: *mut pg_sys::PlannerInfo) -> bool {
        let (outer, inner) = (self.outer, self.inner);
        // SAFETY: the caller's promise.
        unsafe {
            (*outer).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
                && (*inner).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
                && (*inner).rtekind == pg_sys::RTEKind::RTE_SUBQUERY
                && pg_sys::bms_equal((*inner).lateral_relids, (*outer).relids)
                && (*outer).lateral_relids.is_null()
                && self.is_left_lanes_table(root)
        }
    }

    /// Whether the left side is a single lanes table.
    ///
    /// # Safety
    /// The planner's live structures.
    pub unsafe fn is_left_lanes_table(&self, root: *mut pg_sys::PlannerInfo) -> bool {
        let outer = self.outer;
        // SAFETY: the caller's promise.
        unsafe {
            matches!(
                (*outer).reloptkind,
                pg_sys::RelOptKind::RELOPT_BASEREL | pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL
            ) && lanes_table::is_lanes_scan(
                crate::pg::tree::plan_node(outer),
                crate::pg::tree::plan_field(tree::planner_entry(root, (*outer).relid as i32)),
            )
        }
    }
}

impl TimeJoin {
    /// The join that a relation consists of; `None` if it does not have two sides, the second of
    /// which is lateral to the first.
    ///
    /// # Safety
    /// The planner's live structures.
    pub unsafe fn of(
        root: *mut pg_sys::PlannerInfo,
        joined: *mut pg_sys::RelOptInfo,
    ) -> Option<Translation<TimeJoin>> {
        // SAFETY: the caller's promise; casts follow tags.
        unsafe {
            if (*joined).reloptkind != pg_sys::RelOptKind::RELOPT_JOINREL
                || !gucs::enable_asof()
                || outer_joins::table_count(root, joined) != 2
            {
                return None;
            }
            let nested = nested_loop((*joined).cheapest_total_path)?;
            let sides = Sides {
                outer: (*(*nested).jpath.outerjoinpath).parent,
                inner: (*(*nested).jpath.innerjoinpath).parent,
                kind: (*nested).jpath.jointype,
                path: (*joined).cheapest_total_path,
            };
            let conditions = (*sides.inner).joininfo;
            sides
                .are_alike(root)
                .then(|| Self::of_sides(root, &sides, conditions))
        }
    }

    /// The join of two sides, with the conditions between them.
    ///
    /// # Safety
    /// The planner's live structures, and sides that [are alike](Sides::are_alike).
    pub unsafe fn of_sides(
        root: *mut pg_sys::PlannerInfo,
        sides: &Sides,
        conditions: *mut pg_sys::List,
    ) -> Translation<TimeJoin> {
        let (outer, inner) = (sides.outer, sides.inner);
        // SAFETY: as for `of`.
        unsafe {
            let is_inner = match sides.kind {
                pg_sys::JoinType::JOIN_INNER => true,
                pg_sys::JoinType::JOIN_LEFT => false,
                _ => return Err("a join of another kind than INNER and LEFT".into()),
            };
            let query = (*tree::planner_entry(root, (*inner).relid as i32)).subquery;
            let subroot = (*inner).subroot;
            if query.is_null() || subroot.is_null() {
                return Err("a sub-select that is not planned".into());
            }
            let (shape, wanted) = match match_window(
                crate::pg::tree::plan_node(root),
                crate::pg::tree::plan_node(query),
            ) {
                Ok(window) => (
                    window.rows,
                    Wanted::Aggregates(
                        window
                            .calls
                            .into_iter()
                            .map(crate::pg::tree::View::as_ptr)
                            .collect(),
                    ),
                ),
                Err(no_window) => {
                    let shape = match_shape(
                        crate::pg::tree::plan_node(root),
                        crate::pg::tree::plan_node(query),
                    )
                    .map_err(|no_match| {
                        let aggregates = (*query).hasAggs;
                        format!(
                            "the lateral sub-select: {}",
                            if aggregates { no_window } else { no_match }
                        )
                    })?;
                    let (outputs, computed) = outputs(root, query, &shape.outputs);
                    let wanted = Wanted::Nearest {
                        backward: shape.backward,
                        outputs,
                        computed,
                    };
                    (shape, wanted)
                }
            };
            let table = *(*subroot).simple_rel_array.add(shape.entry as usize);
            if table.is_null() || !lanes_table::is_lanes_table(shape.table) {
                return Err("the lateral sub-select does not read a lanes table".into());
            }
            let table_entry = tree::planner_entry(subroot, shape.entry);
            if (*table_entry).inh {
                return Err("the lateral sub-select reads a table with children".into());
            }
            let mut quals = quals_above(inner, conditions, is_inner)?;
            if let Wanted::Aggregates(calls) = &wanted {
                // The planner has moved conditions on the result alone into the sub-select.
                let moved = (*(*subroot).parse).havingQual;
                if !moved.is_null() && !is_inner {
                    return Err("a condition in ON beside the time and the keys".into());
                }
                for condition in conditions_of(moved) {
                    quals.push(lifted(condition, calls, (*inner).relid)?);
                }
            }
            Ok(TimeJoin {
                left_relation: outer,
                right_rows: (*table).tuples,
                quals,
                path: sides.path,
                plan: JoinPlan::of(&shape, wanted, is_inner)?,
            })
        }
    }
}

/// The columns of a sub-select, and the columns that are computed from those of its table.
unsafe fn outputs(
    root: *mut pg_sys::PlannerInfo,
    query: *mut pg_sys::Query,
    outputs: &[Output],
) -> (Vec<i16>, Vec<Computed>) {
    let columns = outputs.iter().map(|output| match output {
        Output::Column(column) => *column,
        Output::Other => 0,
    });
    let (mut columns, mut computed): (Vec<i16>, _) = (columns.collect(), Vec::new());
    // SAFETY: a live query that is not planned.
    unsafe {
        let targets = nodes::list::<pg_sys::TargetEntry>((*query).targetList);
        for (place, target) in targets.enumerate() {
            if outputs[place] == Output::Other
                && !(*target).resjunk
                && let Some(expression) = over_outputs(root, (*target).expr.cast(), &mut columns)
            {
                computed.push((place, crate::pg::tree::plan_node(expression)));
            }
        }
    }
    (columns, computed)
}

/// Rewrites an expression over a table's columns into one over outputs, and adds the missing
/// columns to the outputs. `None` if the expression has anything else in it, or no column at
/// all: for a left row without a match the result must be NULL, which only expressions over NULL
/// columns ensure.
unsafe fn over_outputs(
    root: *mut pg_sys::PlannerInfo,
    expression: *mut pg_sys::Node,
    columns: &mut Vec<i16>,
) -> Option<*mut pg_sys::Node> {
    let (mut fits, mut has_column) = (true, false);
    // SAFETY: a live expression; the copy is ours to change; casts follow tags.
    unsafe {
        let copy = pg_sys::eval_const_expressions(root, tree::copy(expression));
        tree::walk_expression(copy, &mut |node, _| {
            match (*node).type_ {
                pg_sys::NodeTag::T_Var => {
                    let variable = &mut *node.cast::<pg_sys::Var>();
                    fits &= variable.varlevelsup == 0 && variable.varattno > 0;
                    has_column = true;
                    let known = columns.iter().position(|known| *known == variable.varattno);
                    let place = known.unwrap_or_else(|| {
                        columns.push(variable.varattno);
                        columns.len() - 1
                    });
                    variable.varno = pg_sys::INNER_VAR;
                    variable.varattno = place as i16 + 1;
                }
                pg_sys::NodeTag::T_Param => {
                    let parameter = node.cast::<pg_sys::Param>();
                    fits &= (*parameter).paramkind == pg_sys::ParamKind::PARAM_EXTERN;
                }
                pg_sys::NodeTag::T_SubLink | pg_sys::NodeTag::T_SubPlan => fits = false,
                _ => {}
            }
            !fits
        });
        if !fits || !has_column {
            return None;
        }
        pg_sys::fix_opfuncids(copy);
        Some(copy)
    }
}

/// Whether a lateral sub-select looks for one row before or after a time of the outer query, or
/// aggregates such rows. Then its author means it as one side of a join by time, of whatever
/// kind.
///
/// # Safety
/// A live query that has not been planned.
pub unsafe fn seeks_by_time(query: *mut pg_sys::Query) -> bool {
    // SAFETY: the caller's promise; the cast follows the tag.
    unsafe {
        if (*query).limitCount.is_null() && !(*query).hasAggs {
            return false;
        }
        let mut comparisons = Vec::new();
        tree::walk_query(query, &mut |node, depth| {
            if (*node).type_ == pg_sys::NodeTag::T_OpExpr {
                comparisons.push((node.cast::<pg_sys::OpExpr>(), depth));
            }
            false
        });
        comparisons.into_iter().any(|(comparison, depth)| {
            let found = ports::btree_operator((*comparison).opno);
            let bounds = found.is_some_and(|(comparison, ..)| {
                !matches!(comparison, Comparison::Equal | Comparison::NotEqual)
            });
            bounds
                && tree::walk_expression(comparison.cast(), &mut |node, below| {
                    tree::is_a(node, pg_sys::NodeTag::T_Var)
                        && (*node.cast::<pg_sys::Var>()).varlevelsup > depth + below
                })
        })
    }
}

/// The nested loop below the projections and nodes of a path.
unsafe fn nested_loop(mut path: *mut pg_sys::Path) -> Option<*mut pg_sys::NestPath> {
    // SAFETY: the caller has a live path or null; casts follow tags.
    unsafe {
        loop {
            if path.is_null() {
                return None;
            }
            match (*path).type_ {
                pg_sys::NodeTag::T_NestPath => return Some(path.cast()),
                pg_sys::NodeTag::T_ProjectionPath => {
                    path = (*path.cast::<pg_sys::ProjectionPath>()).subpath;
                }
                pg_sys::NodeTag::T_CustomPath => {
                    let custom = path.cast::<pg_sys::CustomPath>();
                    let ours = [names::ASOF_JOIN, names::TIME_JOIN];
                    if !ours.iter().any(|name| names::is_path_of(custom, name)) {
                        return None;
                    }
                    path = ports::list_nth((*custom).custom_paths, 0);
                }
                _ => return None,
            }
        }
    }
}

/// The conditions of a join on the sub-select's result.
unsafe fn quals_above(
    inner: *mut pg_sys::RelOptInfo,
    conditions: *mut pg_sys::List,
    is_inner: bool,
) -> Translation<Vec<*mut pg_sys::Node>> {
    // SAFETY: the planner's live structures.
    unsafe {
        if (*inner).has_eclass_joins {
            return Err(
                "a condition on the sub-select's result that other conditions imply".into(),
            );
        }
        let own = nodes::list::<pg_sys::RestrictInfo>((*inner).baserestrictinfo);
        let both = nodes::list::<pg_sys::RestrictInfo>(conditions);
        let mut quals = Vec::new();
        for (qual, is_own) in own.map(|qual| (qual, true)).chain(both.map(|q| (q, false))) {
            // In the ON clause of an outer join a condition decides which rows match, not which
            // rows are returned.
            if !is_inner && (is_own || !(*qual).is_pushed_down) {
                return Err("a condition in ON beside the time and the keys".into());
            }
            if (*qual).security_level > 0 {
                return Err("a join behind a security barrier".into());
            }
            quals.push((*qual).clause.cast());
        }
        Ok(quals)
    }
}

/// The conjuncts of a qualification, before or after the planner has turned it into a list.
unsafe fn conditions_of(qual: *mut pg_sys::Node) -> Vec<*mut pg_sys::Node> {
    // SAFETY: a live qualification or null; the cast follows the tag.
    unsafe {
        if !qual.is_null() && tree::is_a(qual, pg_sys::NodeTag::T_List) {
            return nodes::list(qual.cast()).collect();
        }
        tree::conjuncts(qual)
    }
}

/// Rewrites a condition on a sub-select's aggregates into one on its columns.
unsafe fn lifted(
    condition: *mut pg_sys::Node,
    calls: &[*mut pg_sys::Aggref],
    inner: u32,
) -> Translation<*mut pg_sys::Node> {
    // SAFETY: live expressions; casts follow tags, and copies are ours to change.
    unsafe {
        let mut columns = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            let call = unnumbered(*call);
            let column = pg_sys::makeVar(
                inner as i32,
                index as i16 + 1,
                (*call).aggtype,
                -1,
                (*call).aggcollid,
                0,
            );
            columns.push((call, column));
        }
        let mut lifts = Vec::new();
        let leaves = pg_sys::pull_var_clause(condition, pg_sys::PVC_INCLUDE_AGGREGATES as i32);
        for leaf in nodes::list::<pg_sys::Node>(leaves) {
            let column = tree::is_a(leaf, pg_sys::NodeTag::T_Aggref).then(|| {
                let call = unnumbered(leaf.cast());
                columns
                    .iter()
                    .find(|(known, _)| pg_sys::equal((*known).cast(), call.cast()))
            });
            let Some(Some((_, column))) = column else {
                return Err("a condition on more than the sub-select's columns".into());
            };
            lifts.push((leaf, column.cast()));
        }
        let lifted = tree::replaced(condition, &mut |node| {
            let lift = lifts.iter().find(|(leaf, _)| *leaf == node);
            lift.map(|(_, column)| *column)
        });
        Ok(lifted)
    }
}

/// A copy of an aggregate without the numbers that planning assigns.
unsafe fn unnumbered(call: *mut pg_sys::Aggref) -> *mut pg_sys::Aggref {
    // SAFETY: the copy belongs to this function.
    unsafe {
        let copy = tree::copy(call);
        ((*copy).aggno, (*copy).aggtransno) = (-1, -1);
        (*copy).aggsplit = pg_sys::AggSplit::AGGSPLIT_SIMPLE;
        copy
    }
}
