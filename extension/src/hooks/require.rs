//! The planner's hook that collects reasons, and `lanes.vectorize = require`. With that setting, a query fails unless its
//! finished plan reads each lanes table by nodes of this library that have no reasons.

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::custom_scan::node::Node;
use crate::nodes::aggregate::state::AggregateState;
use crate::nodes::engine::plan::EnginePlan;
use crate::nodes::hash_join::latest_plan::LatestJoinPlan;
use crate::nodes::hash_join::latest_state::LatestJoinState;
use crate::nodes::hash_join::state::HashJoinState;
use crate::nodes::latest::state::LatestState;
use crate::nodes::nested_aggregate::state::NestedState;
use crate::nodes::scan::state::ScanState;
use crate::nodes::time_join::state::JoinState;
use crate::nodes::top_n::state::TopNState;
use crate::pg::exec::node::CustomPlan;
use crate::pg::{names, nodes, ports};
use crate::planner::lanes_table::is_lanes_table;
use crate::planner::reasons::{self, all_reasons};
use crate::vectorize::{self, Vectorize};
use crate::{custom_scan, error};

static mut PREVIOUS: pg_sys::planner_hook_type = None;

unsafe extern "C-unwind" {
    // Called without the bindings' error boundary, so that errors keep their position.
    #[link_name = "standard_planner"]
    fn standard_planner(
        query: *mut pg_sys::Query,
        text: *const std::ffi::c_char,
        options: i32,
        parameters: pg_sys::ParamListInfo,
    ) -> *mut pg_sys::PlannedStmt;
}

/// The hook. Errors of planning jump over this frame, so nothing here needs dropping.
unsafe extern "C-unwind" fn planner(
    query: *mut pg_sys::Query,
    text: *const std::ffi::c_char,
    options: i32,
    parameters: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the arguments are the ones we were called with.
    unsafe {
        begin(options);
        let next = PREVIOUS.unwrap_or(standard_planner);
        let planned = next(query, text, options, parameters);
        end(planned);
        planned
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin(options: i32) {
    // SAFETY: runs inside a transaction.
    reasons::begin(options as u32, unsafe {
        pg_sys::GetCurrentTransactionNestLevel()
    });
}

/// Drops the reasons of plannings that failed with their transaction.
#[pg_guard]
unsafe extern "C-unwind" fn transaction_ended(
    event: pg_sys::XactEvent::Type,
    _argument: *mut std::ffi::c_void,
) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT {
        reasons::abandon(0);
    }
}

/// Drops the reasons of plannings that failed with their subtransaction.
#[pg_guard]
unsafe extern "C-unwind" fn subtransaction_ended(
    event: pg_sys::SubXactEvent::Type,
    _this: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _argument: *mut std::ffi::c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // SAFETY: the aborted subtransaction is still the current one.
        reasons::abandon(unsafe { pg_sys::GetCurrentTransactionNestLevel() });
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end(planned: *mut pg_sys::PlannedStmt) {
    if vectorize::vectorize() == Vectorize::Require && !planned.is_null() {
        // SAFETY: a finished plan.
        unsafe {
            check((*planned).planTree, planned);
            for subplan in nodes::list::<pg_sys::Plan>((*planned).subplans) {
                check(subplan, planned);
            }
        }
    }
    reasons::end();
}

/// Raises an error if a lanes table is read by a node of PostgreSQL's, or by a node with reasons.
unsafe fn check(plan: *mut pg_sys::Plan, planned: *mut pg_sys::PlannedStmt) {
    // SAFETY: a live plan; each node is read as what its tag says.
    unsafe {
        if plan.is_null() {
            return;
        }
        let table = |index: u32| {
            let entry: *mut pg_sys::RangeTblEntry =
                ports::list_nth((*planned).rtable, index as i32 - 1);
            (*entry).relid
        };
        match (*plan).type_ {
            pg_sys::NodeTag::T_SeqScan
            | pg_sys::NodeTag::T_SampleScan
            | pg_sys::NodeTag::T_TidScan
            | pg_sys::NodeTag::T_TidRangeScan => {
                let relid = table((*plan.cast::<pg_sys::Scan>()).scanrelid);
                if is_lanes_table(relid) {
                    fail(relid, all_reasons("read by a scan of PostgreSQL's own"));
                }
            }
            pg_sys::NodeTag::T_CustomScan => {
                let scan = plan.cast::<pg_sys::CustomScan>();
                let plan = CustomPlan::of(scan);
                let name = std::ffi::CStr::from_ptr((*(*scan).methods).CustomName);
                let is_whole =
                    [AggregateState::NAME, JoinState::NAME, HashJoinState::NAME].contains(&name);
                let is_scan = [ScanState::NAME, TopNState::NAME, LatestState::NAME].contains(&name);
                let mut children = usize::MAX;
                let (index, reasons) = if is_whole {
                    let engine = EnginePlan::of(plan);
                    // Others are not executed, or only when memory is not enough.
                    children = engine.hash_join.is_some().into();
                    (engine.index, custom_scan::private_data::reasons(plan))
                } else if name == LatestJoinState::NAME {
                    children = 1;
                    let table = LatestJoinPlan::of(plan).join.table;
                    (table, custom_scan::private_data::reasons(plan))
                } else if name == NestedState::NAME {
                    children = 1;
                    (0, std::ptr::null_mut())
                } else if is_scan {
                    (
                        (*scan).scan.scanrelid,
                        custom_scan::private_data::reasons(plan),
                    )
                } else {
                    (0, std::ptr::null_mut())
                };
                if !reasons.is_null() {
                    let reasons: Vec<String> = nodes::list(reasons)
                        .map(|node| nodes::text_of(node))
                        .collect();
                    fail(table(index), reasons.join("; "));
                }
                for child in nodes::list::<pg_sys::Plan>((*scan).custom_plans).take(children) {
                    check(child, planned);
                }
            }
            pg_sys::NodeTag::T_Append => {
                let append = plan.cast::<pg_sys::Append>();
                for child in nodes::list::<pg_sys::Plan>((*append).appendplans) {
                    check(child, planned);
                }
            }
            pg_sys::NodeTag::T_MergeAppend => {
                let append = plan.cast::<pg_sys::MergeAppend>();
                for child in nodes::list::<pg_sys::Plan>((*append).mergeplans) {
                    check(child, planned);
                }
            }
            pg_sys::NodeTag::T_SubqueryScan => {
                check((*plan.cast::<pg_sys::SubqueryScan>()).subplan, planned);
            }
            _ => {}
        }
        check((*plan).lefttree, planned);
        check((*plan).righttree, planned);
    }
}

fn fail(table: pg_sys::Oid, reason: String) -> ! {
    let name = names::table_name(table);
    error::raise(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("query on lanes table \"{name}\" is not vectorised: {reason}"),
        "Set lanes.vectorize to on to run it all the same.",
    )
}

/// Installs the hook and the callbacks of transactions.
pub fn register() {
    // SAFETY: single-threaded, once a process.
    unsafe {
        PREVIOUS = pg_sys::planner_hook;
        pg_sys::planner_hook = Some(planner);
        pg_sys::RegisterXactCallback(Some(transaction_ended), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(subtransaction_ended), std::ptr::null_mut());
    }
}
