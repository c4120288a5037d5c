//! `lanes.vectorize = require`. With that setting, a query fails unless its finished plan reads each lanes table by
//! nodes of this library that have no reasons.

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::custom_scan::private_data;

use crate::custom_scan::node::Node;
use crate::error;
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
use crate::pg::explain::texts_of;
use crate::pg::names;
use crate::pg::tree::{CustomScan, Node as _, Plan, PlannedStmt};
use crate::planner::lanes_table::is_lanes_table;
use crate::planner::reasons::all_reasons;
use crate::vectorize::{self, Vectorize};

/// Raises an error if the setting demands it of a finished plan.
pub fn check(planned: PlannedStmt<'_>) {
    if vectorize::vectorize() != Vectorize::Require {
        return;
    }
    // The planner leaves null in place of a subplan that it did without.
    let subplans = planned.subplans().present();
    for plan in planned.planTree().into_iter().chain(subplans) {
        check_plan(plan, planned);
    }
}

/// Raises an error if a lanes table is read by a node of PostgreSQL's, or by a node with reasons.
fn check_plan<'p>(plan: Plan<'p>, planned: PlannedStmt<'p>) {
    let table = |index: u32| {
        let entry = planned.rtable().get(index as usize - 1);
        entry.map_or(pg_sys::InvalidOid, |entry| entry.relid())
    };
    if let Some(index) = plan.table_scanned() {
        let relid = table(index);
        if is_lanes_table(relid) {
            fail(relid, all_reasons("read by a scan of PostgreSQL's own"));
        }
    }
    let mut below = plan.inputs();
    if let Some(scan) = plan.downcast::<CustomScan<'p>>() {
        let (index, reasons, children) = reasons_of(scan);
        if !reasons.is_empty() {
            fail(table(index), reasons.join("; "));
        }
        below.extend(scan.custom_plans().iter().take(children));
    }
    for plan in below {
        check_plan(plan, planned);
    }
}

/// The range-table index of the table that a custom node reads, the reasons that its plan stores, and how many of its
/// children are executed. Others are not, or only when memory is not enough.
fn reasons_of(scan: CustomScan<'_>) -> (u32, Vec<String>, usize) {
    let (plan, name) = (scan, scan.name());
    let reasons = || texts_of(private_data::reasons(plan));
    if [AggregateState::NAME, JoinState::NAME, HashJoinState::NAME].contains(&name) {
        let engine = EnginePlan::of(plan);
        (engine.index, reasons(), engine.hash_join.is_some().into())
    } else if name == LatestJoinState::NAME {
        (LatestJoinPlan::of(plan).join.table, reasons(), 1)
    } else if name == NestedState::NAME {
        (0, Vec::new(), 1)
    } else if [ScanState::NAME, TopNState::NAME, LatestState::NAME].contains(&name) {
        (scan.scanned_index(), reasons(), usize::MAX)
    } else {
        (0, Vec::new(), usize::MAX)
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
