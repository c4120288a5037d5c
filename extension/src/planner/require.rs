//! Why something was not vectorised, and `lanes.vectorize = require`.
//!
//! Reasons are noted while a query is planned. A scan of ours takes those that concern its table into its plan, for
//! EXPLAIN; under `require` the finished plan is looked through, and a lanes table that is read in any other way than by
//! nodes of ours without reasons fails the query with them.

use std::cell::{Cell, RefCell};

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::offer::is_lanes_table;
use crate::custom_scan::node::Node;
use crate::nodes::aggregate::plan::EnginePlan;
use crate::nodes::aggregate::state::AggregateState;
use crate::nodes::hash_join::latest_plan::LatestJoinPlan;
use crate::nodes::hash_join::latest_state::LatestJoinState;
use crate::nodes::hash_join::state::HashJoinState;
use crate::nodes::latest::state::LatestState;
use crate::nodes::nested_aggregate::state::NestedState;
use crate::nodes::scan::state::ScanState;
use crate::nodes::time_join::state::JoinState;
use crate::nodes::top_n::state::TopNState;
use crate::pg::{names, nodes, ports};
use crate::vectorize::{self, Vectorize};
use crate::{custom_scan, error};

static mut PREVIOUS: pg_sys::planner_hook_type = None;

/// What a reason is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// How a table is read.
    Reading,
    /// What is done with its rows: they are joined, grouped.
    Use,
}

/// A reason, with the planning, the planner's state and the table that it concerns.
struct Noted {
    planning: u64,
    root: usize,
    index: u32,
    about: About,
    reason: String,
}

thread_local! {
    static NOTED: RefCell<Vec<Noted>> = const { RefCell::new(Vec::new()) };
    /// The plannings under way, the innermost last.
    static UNDER_WAY: RefCell<Vec<Planning>> = const { RefCell::new(Vec::new()) };
    static PLANNINGS: Cell<u64> = const { Cell::new(0) };
}

/// A planning under way. They nest: a function that is folded may plan queries of its own.
///
/// One that fails never ends: its error jumps over it. Whoever catches the error has aborted the subtransaction in which
/// it was raised, and with it go the plannings that began there.
#[derive(Clone, Copy)]
struct Planning {
    /// Never given again.
    number: u64,
    /// Of transactions, as it began.
    nest_level: i32,
    /// See [`may_scroll`].
    may_scroll: bool,
}

/// The number of the planning under way; 0 if there is none.
fn planning() -> u64 {
    UNDER_WAY.with_borrow(|under_way| under_way.last().map_or(0, |planning| planning.number))
}

/// Forgets plannings that began at this nest level of transactions or deeper, with their reasons.
fn abandon(nest_level: i32) {
    let outlives = |planning: &Planning| planning.nest_level < nest_level;
    UNDER_WAY.with_borrow_mut(|under_way| {
        while under_way.last().is_some_and(|planning| !outlives(planning)) {
            under_way.pop();
        }
    });
    let outer = planning();
    NOTED.with_borrow_mut(|noted| noted.retain(|n| n.planning <= outer));
}

#[pg_guard]
unsafe extern "C-unwind" fn transaction_ended(
    event: pg_sys::XactEvent::Type,
    _argument: *mut std::ffi::c_void,
) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT {
        abandon(0);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn subtransaction_ended(
    event: pg_sys::SubXactEvent::Type,
    _this: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _argument: *mut std::ffi::c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // SAFETY: it is still the one that is aborted.
        abandon(unsafe { pg_sys::GetCurrentTransactionNestLevel() });
    }
}

/// Notes why something about a table is not vectorised.
pub fn note(root: *mut pg_sys::PlannerInfo, index: u32, about: About, reason: String) {
    NOTED.with_borrow_mut(|noted| {
        let (planning, root) = (planning(), root as usize);
        let known = noted.iter().any(|n| {
            n.planning == planning && n.root == root && n.index == index && n.reason == reason
        });
        if !known {
            noted.push(Noted {
                planning,
                root,
                index,
                about,
                reason,
            });
        }
    });
}

/// The reasons that concern a table; `only` those about one thing, if it is given.
fn reasons(root: *mut pg_sys::PlannerInfo, index: u32, only: Option<About>) -> Vec<String> {
    NOTED.with_borrow(|noted| {
        let planning = planning();
        let concerns = |n: &&Noted| {
            n.planning == planning
                && n.root == root as usize
                && n.index == index
                && only.is_none_or(|about| n.about == about)
        };
        noted
            .iter()
            .filter(concerns)
            .map(|n| n.reason.clone())
            .collect()
    })
}

/// The same, as a list of nodes for a plan.
///
/// # Safety
/// Makes nodes in the current memory context.
pub unsafe fn reason_list(
    root: *mut pg_sys::PlannerInfo,
    index: u32,
    only: Option<About>,
) -> *mut pg_sys::List {
    let mut list = std::ptr::null_mut();
    for reason in reasons(root, index, only) {
        // SAFETY: a list of nodes.
        list = unsafe { pg_sys::lappend(list, nodes::string(&reason).cast()) };
    }
    list
}

/// Installs the hook.
pub fn register() {
    // SAFETY: single-threaded, once a process.
    unsafe {
        PREVIOUS = pg_sys::planner_hook;
        pg_sys::planner_hook = Some(planner);
        pg_sys::RegisterXactCallback(Some(transaction_ended), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(subtransaction_ended), std::ptr::null_mut());
    }
}

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

/// The hook. Errors of planning pass through this frame as core's own jump: nothing here needs dropping.
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

/// Whether what is planned is a cursor that can be read backwards if its plan can, as one that is declared neither
/// SCROLL (which stores what it has read) nor NO SCROLL.
pub fn may_scroll() -> bool {
    UNDER_WAY.with_borrow(|under_way| under_way.last().is_some_and(|planning| planning.may_scroll))
}

#[pg_guard]
unsafe extern "C-unwind" fn begin(options: i32) {
    let options = options as u32;
    let decided = pg_sys::CURSOR_OPT_SCROLL | pg_sys::CURSOR_OPT_NO_SCROLL;
    let may_scroll = options & pg_sys::CURSOR_OPT_FAST_PLAN != 0 && options & decided == 0;
    PLANNINGS.set(PLANNINGS.get() + 1);
    let planning = Planning {
        number: PLANNINGS.get(),
        // SAFETY: runs inside a transaction.
        nest_level: unsafe { pg_sys::GetCurrentTransactionNestLevel() },
        may_scroll,
    };
    UNDER_WAY.with_borrow_mut(|under_way| under_way.push(planning));
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
    let ended = UNDER_WAY.with_borrow_mut(Vec::pop);
    let planning = ended.map_or(0, |planning| planning.number);
    NOTED.with_borrow_mut(|noted| noted.retain(|n| n.planning != planning));
}

/// Fails if a lanes table is read by a node that is not ours, or by one that could not do all.
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
                let name = std::ffi::CStr::from_ptr((*(*scan).methods).CustomName);
                let is_whole =
                    [AggregateState::NAME, JoinState::NAME, HashJoinState::NAME].contains(&name);
                let is_scan = [ScanState::NAME, TopNState::NAME, LatestState::NAME].contains(&name);
                let mut children = usize::MAX;
                let (index, reasons) = if is_whole {
                    let plan = EnginePlan::of(scan);
                    // Others are not executed, or only when memory is not enough.
                    children = plan.hash_join.is_some().into();
                    (plan.index, custom_scan::private_data::reasons(scan))
                } else if name == LatestJoinState::NAME {
                    children = 1;
                    let table = LatestJoinPlan::of(scan).join.table;
                    (table, custom_scan::private_data::reasons(scan))
                } else if name == NestedState::NAME {
                    children = 1;
                    (0, std::ptr::null_mut())
                } else if is_scan {
                    (
                        (*scan).scan.scanrelid,
                        custom_scan::private_data::reasons(scan),
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

fn all_reasons(otherwise: &str) -> String {
    NOTED.with_borrow(|noted| {
        let planning = planning();
        let reasons: Vec<&str> = noted
            .iter()
            .filter(|n| n.planning == planning)
            .map(|n| n.reason.as_str())
            .collect();
        if reasons.is_empty() {
            return otherwise.to_string();
        }
        reasons.join("; ")
    })
}

fn fail(table: pg_sys::Oid, reason: String) -> ! {
    let name = names::table_name(table);
    error::raise(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("query on lanes table \"{name}\" is not vectorised: {reason}"),
        "Set lanes.vectorize to on to run it all the same.",
    )
}
