//! From path to plan, and what a plan remembers.
//!
//! | node | custom_private | custom_exprs | custom_scan_tlist |
//! |---|---|---|---|
//! | LanesScan | reasons why quals or an aggregation above were not vectorised | pushed quals | |
//! | LanesTimeJoin | as LanesAggregate | as LanesAggregate | the same, with the columns that it returns for keys |
//! | LanesAggregate | how many of each of the five, reasons why what is done with its rows is not vectorised, the join by time | parameters of all expressions | keys, aggregates, quals, quals above the join, the join's expressions; a column of the table |
//!
//! The quals of an aggregation stand in its target list, where PostgreSQL adjusts their columns when plans are put
//! together; the node never returns them. The column at the end says which table it is. Parameters stand in
//! `custom_exprs` because only there PostgreSQL looks for what makes a node run again.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::join_plan::{JoinPlan, Wanted};
use super::require::About;
use super::state::Static;
use super::time_join::TimeJoin;
use super::{aggregate_state, require, scan_state, time_join_state};
use crate::pg::{nodes, ports, tree};

/// The name of the node that scans.
pub const SCAN_NAME: &std::ffi::CStr = c"LanesScan";
/// The name of the node that aggregates.
pub const AGGREGATE_NAME: &std::ffi::CStr = c"LanesAggregate";

/// The name of the node that joins by time.
pub const TIME_JOIN_NAME: &std::ffi::CStr = c"LanesTimeJoin";

static SCAN_PATH: Static<pg_sys::CustomPathMethods> = Static(pg_sys::CustomPathMethods {
    CustomName: SCAN_NAME.as_ptr(),
    PlanCustomPath: Some(plan_scan),
    ReparameterizeCustomPathByChild: None,
});

static AGGREGATE_PATH: Static<pg_sys::CustomPathMethods> = Static(pg_sys::CustomPathMethods {
    CustomName: AGGREGATE_NAME.as_ptr(),
    PlanCustomPath: Some(plan_aggregate),
    ReparameterizeCustomPathByChild: None,
});

static TIME_JOIN_PATH: Static<pg_sys::CustomPathMethods> = Static(pg_sys::CustomPathMethods {
    CustomName: TIME_JOIN_NAME.as_ptr(),
    PlanCustomPath: Some(plan_time_join),
    ReparameterizeCustomPathByChild: None,
});

static TIME_JOIN_PLAN: Static<pg_sys::CustomScanMethods> = Static(pg_sys::CustomScanMethods {
    CustomName: TIME_JOIN_NAME.as_ptr(),
    CreateCustomScanState: Some(time_join_state::create),
});

static SCAN_PLAN: Static<pg_sys::CustomScanMethods> = Static(pg_sys::CustomScanMethods {
    CustomName: SCAN_NAME.as_ptr(),
    CreateCustomScanState: Some(scan_state::create),
});

static AGGREGATE_PLAN: Static<pg_sys::CustomScanMethods> = Static(pg_sys::CustomScanMethods {
    CustomName: AGGREGATE_NAME.as_ptr(),
    CreateCustomScanState: Some(aggregate_state::create),
});

/// Makes the nodes known by name, so that plans can be read back.
pub fn register() {
    // SAFETY: static tables.
    unsafe {
        pg_sys::RegisterCustomScanMethods(&raw const SCAN_PLAN.0);
        pg_sys::RegisterCustomScanMethods(&raw const AGGREGATE_PLAN.0);
        pg_sys::RegisterCustomScanMethods(&raw const TIME_JOIN_PLAN.0);
    }
}

/// The routines of a path that scans.
pub fn scan_path_methods() -> *const pg_sys::CustomPathMethods {
    &raw const SCAN_PATH.0
}

/// The routines of a path that aggregates.
pub fn aggregate_path_methods() -> *const pg_sys::CustomPathMethods {
    &raw const AGGREGATE_PATH.0
}

/// The routines of a path that joins by time.
pub fn time_join_path_methods() -> *const pg_sys::CustomPathMethods {
    &raw const TIME_JOIN_PATH.0
}

/// What a path of `LanesAggregate` or `LanesTimeJoin` remembers until it is planned.
///
/// # Safety
/// The lists are null or live.
pub unsafe fn engine_private(
    index: u32,
    keys: *mut pg_sys::List,
    calls: *mut pg_sys::List,
    quals: *mut pg_sys::List,
    join: Option<&TimeJoin>,
) -> *mut pg_sys::List {
    // SAFETY: makes lists of the caller's.
    unsafe {
        let mut private = std::ptr::null_mut();
        private = pg_sys::lappend(private, pg_sys::makeInteger(index as i32).cast());
        let above = join.map_or(std::ptr::null_mut(), |join| tree::list(&join.quals));
        let expressions = join.map_or(std::ptr::null_mut(), |join| {
            tree::list(&join.plan.left_expressions())
        });
        for part in [keys, calls, quals, above, expressions] {
            private = pg_sys::lappend(private, part.cast());
        }
        if let Some(join) = join {
            private = pg_sys::lappend(private, join.plan.encode().cast());
        }
        private
    }
}

/// Parts of an aggregation's expressions.
const PARTS: i32 = 5;

/// An integer node's value.
unsafe fn integer(node: *mut pg_sys::Integer) -> i32 {
    // SAFETY: the caller has such a node.
    unsafe { (*node).ival }
}

#[pg_guard]
unsafe extern "C-unwind" fn plan_scan(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    target: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    _children: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: the planner's live structures.
    unsafe {
        let pushed = (*path).custom_private;
        let (mut kept, mut vectorised) = (std::ptr::null_mut(), std::ptr::null_mut());
        // They come in the order in which PostgreSQL would evaluate them.
        for clause in nodes::list::<pg_sys::RestrictInfo>(clauses) {
            if pg_sys::list_member_ptr(pushed, clause.cast()) {
                vectorised = pg_sys::lappend(vectorised, (*clause).clause.cast());
            } else {
                kept = pg_sys::lappend(kept, clause.cast());
            }
        }
        let scan = nodes::make::<pg_sys::CustomScan>(pg_sys::NodeTag::T_CustomScan);
        (*scan).scan.plan.targetlist = target;
        (*scan).scan.plan.qual = pg_sys::extract_actual_clauses(kept, false);
        (*scan).scan.scanrelid = (*relation).relid;
        (*scan).flags = (*path).flags;
        (*scan).custom_exprs = vectorised;
        (*scan).methods = &raw const SCAN_PLAN.0;
        (*scan).custom_private = require::reason_list(root, (*relation).relid, None);
        scan.cast()
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn plan_aggregate(
    root: *mut pg_sys::PlannerInfo,
    _relation: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    target: *mut pg_sys::List,
    _clauses: *mut pg_sys::List,
    children: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: the planner's live structures.
    unsafe {
        let scan = plan_of_parts(root, path, target, children);
        (*scan).scan.plan.qual = (*(*root).parse).havingQual.cast();
        (*scan).methods = &raw const AGGREGATE_PLAN.0;
        scan.cast()
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn plan_time_join(
    root: *mut pg_sys::PlannerInfo,
    _relation: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    target: *mut pg_sys::List,
    _clauses: *mut pg_sys::List,
    children: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: the planner's live structures. The clauses are among the path's own.
    unsafe {
        let scan = plan_of_parts(root, path, target, children);
        (*scan).methods = &raw const TIME_JOIN_PLAN.0;
        scan.cast()
    }
}

/// A plan that has the parts of its path.
unsafe fn plan_of_parts(
    root: *mut pg_sys::PlannerInfo,
    path: *mut pg_sys::CustomPath,
    target: *mut pg_sys::List,
    children: *mut pg_sys::List,
) -> *mut pg_sys::CustomScan {
    // SAFETY: the planner's live structures; the path's list is that of `engine_private`.
    unsafe {
        let private = (*path).custom_private;
        let index = integer(ports::list_nth(private, 0));
        let scan = nodes::make::<pg_sys::CustomScan>(pg_sys::NodeTag::T_CustomScan);
        let mut entries = std::ptr::null_mut();
        let mut counts = std::ptr::null_mut();
        let mut parameters = std::ptr::null_mut();
        let mut append = |expression: *mut pg_sys::Node| {
            let number = ports::list_length(entries) as i16 + 1;
            let entry =
                pg_sys::makeTargetEntry(expression.cast(), number, std::ptr::null_mut(), false);
            entries = pg_sys::lappend(entries, entry.cast());
        };
        for part in 1..=PARTS {
            let list: *mut pg_sys::List = ports::list_nth(private, part);
            let count = pg_sys::makeInteger(ports::list_length(list));
            counts = pg_sys::lappend(counts, count.cast());
            for expression in nodes::list::<pg_sys::Node>(list) {
                append(expression);
                nodes::parameters(expression, &mut parameters);
            }
        }
        let table = pg_sys::makeVar(
            index,
            pg_sys::TableOidAttributeNumber as i16,
            pg_sys::OIDOID,
            -1,
            pg_sys::InvalidOid,
            0,
        );
        append(table.cast());
        let reasons = require::reason_list(root, index as u32, Some(About::Use));
        counts = pg_sys::lappend(counts, reasons.cast());
        if ports::list_length(private) > PARTS + 1 {
            let join: *mut pg_sys::List = ports::list_nth(private, PARTS + 1);
            for part in nodes::list::<pg_sys::Node>(join).skip(1) {
                nodes::parameters(part, &mut parameters);
            }
            counts = pg_sys::lappend(counts, join.cast());
        }
        (*scan).scan.plan.targetlist = target;
        (*scan).flags = (*path).flags;
        (*scan).custom_scan_tlist = entries;
        (*scan).custom_exprs = parameters;
        (*scan).custom_private = counts;
        (*scan).custom_plans = children;
        scan
    }
}

/// A plan that the engine carries out alone, taken apart: that of `LanesAggregate` or `LanesTimeJoin`.
pub struct EnginePlan {
    /// What is grouped by; of a join, what it returns.
    pub keys: Vec<*mut pg_sys::Node>,
    pub calls: Vec<*mut pg_sys::Aggref>,
    pub quals: Vec<*mut pg_sys::Node>,
    /// Quals on what the join gives.
    pub quals_above: Vec<*mut pg_sys::Node>,
    pub join: Option<JoinPlan>,
    /// Why what is done with the rows is not vectorised, as strings.
    pub reasons: *mut pg_sys::List,
    /// The range-table index of the table.
    pub index: u32,
}

impl EnginePlan {
    /// All expressions that the engine evaluates.
    pub fn expressions(&self) -> Vec<*mut pg_sys::Node> {
        let parts = [&self.keys, &self.quals, &self.quals_above];
        let mut all: Vec<*mut pg_sys::Node> = parts.into_iter().flatten().copied().collect();
        all.extend(self.calls.iter().map(|call| call.cast::<pg_sys::Node>()));
        if let Some(join) = &self.join {
            all.extend(join.left_expressions());
            all.push(join.table_quals.cast());
            all.extend(join.computed().iter().map(|(_, expression)| *expression));
            if let Wanted::Aggregates(calls) = &join.wanted {
                all.extend(calls.iter().map(|call| call.cast::<pg_sys::Node>()));
            }
        }
        all
    }

    /// # Safety
    /// `scan` was made by `plan_of_parts`.
    pub unsafe fn of(scan: *mut pg_sys::CustomScan) -> EnginePlan {
        // SAFETY: the caller's promise.
        unsafe {
            let count = |part| integer(ports::list_nth((*scan).custom_private, part)) as usize;
            let mut expressions = nodes::list::<pg_sys::TargetEntry>((*scan).custom_scan_tlist)
                .map(|entry| (*entry).expr.cast::<pg_sys::Node>());
            let keys = expressions.by_ref().take(count(0)).collect();
            let calls = expressions.by_ref().take(count(1));
            let calls = calls.map(|node| node.cast()).collect();
            let quals = expressions.by_ref().take(count(2)).collect();
            let quals_above = expressions.by_ref().take(count(3)).collect();
            let of_join: Vec<_> = expressions.by_ref().take(count(4)).collect();
            let private = (*scan).custom_private;
            let join = (ports::list_length(private) > PARTS + 1)
                .then(|| JoinPlan::decode(ports::list_nth(private, PARTS + 1), &of_join));
            let table = expressions.next().expect("the table's column is last");
            EnginePlan {
                keys,
                calls,
                quals,
                quals_above,
                join,
                reasons: ports::list_nth(private, PARTS),
                index: (*table.cast::<pg_sys::Var>()).varno as u32,
            }
        }
    }
}
