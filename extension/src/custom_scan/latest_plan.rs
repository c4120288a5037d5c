//! `LanesLatest`: the first row of each group, for `SELECT DISTINCT ON (k) … ORDER BY k, ts DESC`; path and plan.
//!
//! The path gives the groups' rows in no order; a stock Sort above it, if one is asked for, has a row a group to sort.
//! Of rows of a group that tie, which one wins is not defined in SQL. Here it is the last one in row order if the first
//! key of the order is descending, the first one otherwise.

use std::ffi::CStr;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::offer::{self, Quals};
use super::row_plan::RowPlan;
use super::sort_key::{self, OrderedBy};
use super::state::Static;
use super::translate::{Scalars, Translation, Translator};
use super::{aggregate_call, latest_state, require};
use crate::pg::{nodes, ports};

/// The name of the node.
pub const NAME: &CStr = c"LanesLatest";

static PATH: Static<pg_sys::CustomPathMethods> = Static(pg_sys::CustomPathMethods {
    CustomName: NAME.as_ptr(),
    PlanCustomPath: Some(plan),
    ReparameterizeCustomPathByChild: None,
});

static PLAN: Static<pg_sys::CustomScanMethods> = Static(pg_sys::CustomScanMethods {
    CustomName: NAME.as_ptr(),
    CreateCustomScanState: Some(latest_state::create),
});

/// Makes the node known by name.
pub fn register() {
    // SAFETY: a static table.
    unsafe { pg_sys::RegisterCustomScanMethods(&raw const PLAN.0) };
}

/// Bytes that a group takes, about.
const GROUP_BYTES: f64 = 150.0;

/// Offers to find the rows of a DISTINCT ON.
///
/// # Errors
/// Why it cannot be done.
///
/// # Safety
/// The planner's live structures; `input` is a lanes table, of which the query asks for rows that are distinct.
pub unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
) -> Translation<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let query = &*(*root).parse;
        if query.hasTargetSRFs {
            return Err("a set-returning function".into());
        }
        if !query.rowMarks.is_null() {
            return Err("rows to be locked".into());
        }
        if !(*input).lateral_relids.is_null() {
            return Err("a lateral reference".into());
        }
        if require::may_scroll() {
            return Err("a cursor without NO SCROLL".into());
        }
        if offer::asks_for_transaction_ids(input) {
            return Err("a system column other than ctid".into());
        }
        for qual in nodes::list::<pg_sys::RestrictInfo>((*input).baserestrictinfo) {
            if (*qual).pseudoconstant {
                return Err("a qual without columns".into());
            }
        }
        let mut translator = Translator::new(Scalars::Unknown);
        let targets = (*root).processed_tlist;
        let mut groups: Vec<*mut pg_sys::Node> = Vec::new();
        for clause in nodes::list::<pg_sys::SortGroupClause>(query.distinctClause) {
            let expression = pg_sys::get_sortgroupclause_expr(clause, targets);
            aggregate_call::key(&mut translator, expression)?;
            groups.push(expression);
        }
        let (order, distinct) = (query.sortClause, query.distinctClause);
        let keys = sort_key::of_clauses(&mut translator, targets, order, distinct)?;
        let Quals { pushed, kept } = offer::split_quals(root, input, &mut translator);
        let is_column = |group: &*mut pg_sys::Node| {
            (*super::translate::strip(*group)).type_ == pg_sys::NodeTag::T_Var
        };
        let plain = groups.iter().all(is_column) && sort_key::leading_columns(&keys) == keys.len();
        if !kept.is_null() && !plain {
            return Err("an expression before a qual".into());
        }
        let target = (*root).upper_targets[pg_sys::UpperRelationKind::UPPERREL_DISTINCT as usize];
        let rows = nodes::list::<pg_sys::Path>((*output).pathlist)
            .next()
            .map_or(1.0, |path| (*path).rows);
        let bytes = rows * (GROUP_BYTES + f64::from((*target).width));
        if bytes > pg_sys::get_hash_memory_limit() as f64 {
            return Err("its groups would not fit in memory (see work_mem)".into());
        }

        let path = nodes::make::<pg_sys::CustomPath>(pg_sys::NodeTag::T_CustomPath);
        let base = &mut (*path).path;
        base.pathtype = pg_sys::NodeTag::T_CustomScan;
        base.parent = output;
        base.pathtarget = target;
        base.parallel_safe = (*output).consider_parallel;
        base.rows = rows;
        let operator = pg_sys::cpu_operator_cost;
        let work = f64::from(ports::list_length(pushed)) * offer::VECTOR_SHARE;
        // A look-up and a comparison for each row that passes.
        let each = (groups.len() + keys.len()) as f64 * offer::VECTOR_SHARE;
        base.startup_cost = (*target).cost.startup
            + f64::from((*input).pages) * pg_sys::seq_page_cost * 0.1
            + (*input).tuples * work * operator
            + (*input).rows * each * operator
            + rows * f64::from(ports::list_length(kept)) * operator;
        base.total_cost =
            base.startup_cost + rows * (pg_sys::cpu_tuple_cost * 0.5 + (*target).cost.per_tuple);
        let mut private = std::ptr::null_mut();
        private = pg_sys::lappend(private, pg_sys::makeInteger((*input).relid as i32).cast());
        for quals in [pushed, kept] {
            private = pg_sys::lappend(private, pg_sys::extract_actual_clauses(quals, false).cast());
        }
        let (mut group_list, mut key_list, mut flags) = Default::default();
        let append = |list: &mut *mut pg_sys::List, node: *mut pg_sys::Node| {
            *list = pg_sys::lappend(*list, node.cast());
        };
        groups
            .iter()
            .for_each(|group| append(&mut group_list, *group));
        for key in &keys {
            append(&mut key_list, key.expression);
            append(
                &mut flags,
                pg_sys::makeInteger(sort_key::to_flags(key.order)).cast(),
            );
        }
        for list in [group_list, key_list, flags] {
            private = pg_sys::lappend(private, list.cast());
        }
        (*path).flags = pg_sys::CUSTOMPATH_SUPPORT_PROJECTION;
        (*path).custom_private = private;
        (*path).methods = &raw const PATH.0;
        pg_sys::add_path(output, path.cast());
        Ok(())
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn plan(
    root: *mut pg_sys::PlannerInfo,
    _relation: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    target: *mut pg_sys::List,
    _clauses: *mut pg_sys::List,
    _children: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: the planner's live structures; the path's list is that of `offer`.
    unsafe {
        let private = (*path).custom_private;
        let list = |part| ports::list_nth::<pg_sys::List>(private, part);
        let index = (*ports::list_nth::<pg_sys::Integer>(private, 0)).ival as u32;
        let flags = nodes::list::<pg_sys::Integer>(list(5));
        let keys = nodes::list::<pg_sys::Node>(list(4)).zip(flags);
        let key = |(expression, flags): (_, *mut pg_sys::Integer)| OrderedBy {
            expression,
            order: sort_key::of_flags((*flags).ival),
        };
        let scan = nodes::make::<pg_sys::CustomScan>(pg_sys::NodeTag::T_CustomScan);
        (*scan).scan.plan.targetlist = target;
        (*scan).scan.scanrelid = index;
        (*scan).flags = (*path).flags;
        (*scan).methods = &raw const PLAN.0;
        let remembered = RowPlan {
            first_pass: 0,
            pushed: list(1),
            kept: list(2),
            groups: nodes::list(list(3)).collect(),
            keys: keys.map(key).collect(),
            reasons: require::reason_list(root, index, None),
        };
        remembered.write(scan);
        scan.cast()
    }
}
