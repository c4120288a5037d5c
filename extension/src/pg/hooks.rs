//! The hooks of PostgreSQL that this library is chained into, with typed callbacks. Each hook calls the one before it.
//!
//! An error of a statement itself must reach the client with the position, constraint names and context that PostgreSQL
//! gave it. So the hooks around planning and execution let it jump over their frames, which own nothing that needs
//! dropping, and guard only what runs before and after.

use std::ffi::c_char;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::exec::index_scans;
use super::exec::memory::Memory;
use super::tree::{
    JoinPathExtraData, PlannedStmt, PlannerInfo, Query, QueryDesc, RangeTblEntry, RelOptInfo, View,
    plan_field, plan_node,
};
use super::whole_error::guard;

/// Puts a callback before the one that a hook has.
macro_rules! chain {
    ($hook:ident, $previous:ident, $callback:expr) => {
        // SAFETY: the process has one thread.
        unsafe {
            $previous = pg_sys::$hook;
            pg_sys::$hook = Some($callback);
        }
    };
}

static mut PREVIOUS_RELATION: pg_sys::set_rel_pathlist_hook_type = None;
static mut PREVIOUS_JOIN: pg_sys::set_join_pathlist_hook_type = None;
static mut PREVIOUS_UPPER: pg_sys::create_upper_paths_hook_type = None;
static mut PREVIOUS_COLUMN: pg_sys::get_relation_stats_hook_type = None;
static mut PREVIOUS_PLANNER: pg_sys::planner_hook_type = None;
static mut PREVIOUS_EXECUTOR: pg_sys::ExecutorRun_hook_type = None;
static mut PREVIOUS_UTILITY: pg_sys::ProcessUtility_hook_type = None;

unsafe extern "C-unwind" {
    // Called without the bindings' error boundary, so that an ERROR keeps its position and context.
    #[link_name = "standard_planner"]
    fn standard_planner(
        query: *mut pg_sys::Query,
        text: *const c_char,
        options: i32,
        parameters: pg_sys::ParamListInfo,
    ) -> *mut pg_sys::PlannedStmt;
    #[link_name = "standard_ExecutorRun"]
    fn standard_executor_run(
        query: *mut pg_sys::QueryDesc,
        direction: pg_sys::ScanDirection::Type,
        count: u64,
        #[cfg(not(feature = "pg18"))] execute_once: bool,
    );
    #[link_name = "standard_ProcessUtility"]
    fn standard_process_utility(
        planned: *mut pg_sys::PlannedStmt,
        query: *const c_char,
        read_only: bool,
        context: pg_sys::ProcessUtilityContext::Type,
        parameters: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
        destination: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    );
}

/// Hooks that run when the planner has collected paths. The planner's structures live as long as a call.
pub trait PathHooks {
    /// A table or another entry of FROM has its paths.
    fn relation<'p>(root: PlannerInfo<'p>, relation: RelOptInfo<'p>, entry: RangeTblEntry<'p>);

    /// A join of two relations, the outer and the inner one, has its paths.
    fn join<'p>(
        root: PlannerInfo<'p>,
        joined: RelOptInfo<'p>,
        sides: (RelOptInfo<'p>, RelOptInfo<'p>),
        kind: pg_sys::JoinType::Type,
        extra: JoinPathExtraData<'p>,
    );

    /// A step above the joins, such as grouping, has its paths from `input` to `output`. Not called for set operations.
    fn upper<'p>(
        root: PlannerInfo<'p>,
        stage: pg_sys::UpperRelationKind::Type,
        input: RelOptInfo<'p>,
        output: RelOptInfo<'p>,
    );
}

/// Installs the planner's hooks for paths, once a process.
pub fn chain_paths<H: PathHooks>() {
    chain!(
        set_rel_pathlist_hook,
        PREVIOUS_RELATION,
        relation_paths::<H>
    );
    chain!(set_join_pathlist_hook, PREVIOUS_JOIN, join_paths::<H>);
    chain!(create_upper_paths_hook, PREVIOUS_UPPER, upper_paths::<H>);
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_paths<H: PathHooks>(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    index: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the hook before gets the arguments that we were called with.
    unsafe {
        if let Some(previous) = PREVIOUS_RELATION {
            previous(root, relation, index, entry);
        }
    }
    H::relation(plan_node(root), plan_node(relation), plan_node(entry));
}

#[pg_guard]
unsafe extern "C-unwind" fn join_paths<H: PathHooks>(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    outer: *mut pg_sys::RelOptInfo,
    inner: *mut pg_sys::RelOptInfo,
    kind: pg_sys::JoinType::Type,
    extra: *mut pg_sys::JoinPathExtraData,
) {
    // SAFETY: the hook before gets the arguments that we were called with.
    unsafe {
        if let Some(previous) = PREVIOUS_JOIN {
            previous(root, joined, outer, inner, kind, extra);
        }
    }
    let sides = (plan_node(outer), plan_node(inner));
    H::join(
        plan_node(root),
        plan_node(joined),
        sides,
        kind,
        plan_node(extra),
    );
}

#[pg_guard]
unsafe extern "C-unwind" fn upper_paths<H: PathHooks>(
    root: *mut pg_sys::PlannerInfo,
    stage: pg_sys::UpperRelationKind::Type,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
    extra: *mut std::ffi::c_void,
) {
    // SAFETY: the hook before gets the arguments that we were called with.
    unsafe {
        if let Some(previous) = PREVIOUS_UPPER {
            previous(root, stage, input, output, extra);
        }
    }
    // Set operations have several inputs, of which PostgreSQL names none.
    if let Some(input) = plan_field(input) {
        H::upper(plan_node(root), stage, input, plan_node(output));
    }
}

/// A hook that knows about columns of functions, which have no statistics.
pub trait ColumnHook {
    /// Whether a column, counted from 1, of an entry of functions has no value twice.
    fn is_unique(entry: RangeTblEntry<'_>, column: i16) -> bool;
}

/// Installs the hook of columns' statistics, once a process.
pub fn chain_columns<H: ColumnHook>() {
    chain!(
        get_relation_stats_hook,
        PREVIOUS_COLUMN,
        column_statistics::<H>
    );
}

#[pg_guard]
unsafe extern "C-unwind" fn column_statistics<H: ColumnHook>(
    root: *mut pg_sys::PlannerInfo,
    entry: *mut pg_sys::RangeTblEntry,
    column: pg_sys::AttrNumber,
    variable: *mut pg_sys::VariableStatData,
) -> bool {
    let column_of: RangeTblEntry<'_> = plan_node(entry);
    let is_of_function = column_of.rtekind() == pg_sys::RTEKind::RTE_FUNCTION;
    // SAFETY: PostgreSQL passes what it wants to know, and the hook before gets the arguments that we were called with.
    unsafe {
        if is_of_function && H::is_unique(column_of, column) {
            (*variable).isunique = true;
            return true;
        }
        PREVIOUS_COLUMN.is_some_and(|previous| previous(root, entry, column, variable))
    }
}

/// A query that is planned.
pub struct ToPlan<'p> {
    /// The query.
    pub query: Query<'p>,
    /// Another query with the same rows, whose plan may have a lower cost. The two share nothing.
    pub alternative: Option<Query<'p>>,
}

/// A hook that runs before and after the planning of a query.
pub trait PlannerHook {
    /// Before: returns what to plan, which is the given query or a copy of it, and perhaps an alternative. The options
    /// are those of a cursor, `CURSOR_OPT_…`.
    fn before(query: Query<'_>, options: u32) -> ToPlan<'_>;

    /// Whether the cost of a plan is so low that its alternative is not planned.
    fn has_low_cost(planned: Option<PlannedStmt<'_>>) -> bool;

    /// Whether a plan has a lower cost than another one.
    fn is_cheaper(planned: Option<PlannedStmt<'_>>, than: Option<PlannedStmt<'_>>) -> bool;

    /// After, unless planning failed.
    fn after(planned: Option<PlannedStmt<'_>>);
}

/// Installs the planner's hook, once a process.
pub fn chain_planner<H: PlannerHook>() {
    chain!(planner_hook, PREVIOUS_PLANNER, planner::<H>);
}

unsafe extern "C-unwind" fn planner<H: PlannerHook>(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: i32,
    parameters: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: PostgreSQL calls with live arguments, which are passed on, but for the query: it or copies of it.
    unsafe {
        let (query, alternative) = guard(|| {
            let to_plan = H::before(plan_node(query), options as u32);
            let alternative = to_plan.alternative.map(View::as_ptr);
            (to_plan.query.as_ptr(), alternative)
        });
        let next = PREVIOUS_PLANNER.unwrap_or(standard_planner);
        let mut planned = next(query, text, options, parameters);
        if let Some(alternative) = alternative
            && guard(|| !H::has_low_cost(plan_field(planned)))
        {
            let other = next(alternative, text, options, parameters);
            if guard(|| H::is_cheaper(plan_field(other), plan_field(planned))) {
                planned = other;
            }
        }
        guard(|| H::after(plan_field(planned)));
        planned
    }
}

/// A hook that runs before and after the execution of a query.
pub trait ExecutorHook {
    /// Before, outside of which executions may be under way. The depth that it returns is passed on.
    fn before(query: QueryDesc<'_>) -> usize;

    /// After, unless the execution failed.
    fn after(depth: usize);
}

/// Installs the executor's hook, once a process.
pub fn chain_executor<H: ExecutorHook>() {
    chain!(ExecutorRun_hook, PREVIOUS_EXECUTOR, executor_run::<H>);
}

unsafe extern "C-unwind" fn executor_run<H: ExecutorHook>(
    query: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    #[cfg(not(feature = "pg18"))] execute_once: bool,
) {
    // SAFETY: PostgreSQL calls with live arguments, which are passed on.
    unsafe {
        index_scans::adjust(plan_node(query));
        let depth = guard(|| H::before(plan_node(query)));
        let next = PREVIOUS_EXECUTOR.unwrap_or(standard_executor_run);
        #[cfg(not(feature = "pg18"))]
        next(query, direction, count, execute_once);
        #[cfg(feature = "pg18")]
        next(query, direction, count);
        guard(|| H::after(depth));
    }
}

/// A hook that runs before and after a statement that needs no plan.
pub trait UtilityHook {
    /// The work that remains after the statement. It owns nothing, because an error may jump over it.
    type Plan: Copy;

    /// Before: returns the statement to execute, which is the given one or a copy of it.
    fn before(planned: PlannedStmt<'_>) -> (PlannedStmt<'_>, Self::Plan);

    /// After, unless the statement failed.
    fn after(plan: Self::Plan);
}

/// Installs the hook of utility statements, once a process.
pub fn chain_utility<H: UtilityHook>() {
    chain!(ProcessUtility_hook, PREVIOUS_UTILITY, process_utility::<H>);
}

unsafe extern "C-unwind" fn process_utility<H: UtilityHook>(
    planned: *mut pg_sys::PlannedStmt,
    query: *const c_char,
    read_only: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    parameters: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    destination: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: PostgreSQL calls with live arguments, which are passed on, but for the statement: it or a copy of it.
    unsafe {
        let (planned, plan) = guard(|| {
            let (planned, plan) = H::before(plan_node(planned));
            (planned.as_ptr(), plan)
        });
        let next = PREVIOUS_UTILITY.unwrap_or(standard_process_utility);
        next(
            planned,
            query,
            read_only,
            context,
            parameters,
            environment,
            destination,
            completion,
        );
        guard(|| H::after(plan));
    }
}

/// Has a function called when a transaction aborts, with 0, or a subtransaction, with its nest level. An abort may come
/// at any time, so the function neither raises errors nor allocates. Called once for each function.
pub fn on_abort(aborted: fn(nest_level: i32)) {
    // SAFETY: PostgreSQL keeps the callbacks with the function's address, which it only hands back.
    unsafe {
        let argument = aborted as *mut std::ffi::c_void;
        pg_sys::RegisterXactCallback(Some(transaction_ended), argument);
        pg_sys::RegisterSubXactCallback(Some(subtransaction_ended), argument);
    }
}

unsafe extern "C-unwind" fn transaction_ended(
    event: pg_sys::XactEvent::Type,
    aborted: *mut std::ffi::c_void,
) {
    if matches!(
        event,
        pg_sys::XactEvent::XACT_EVENT_ABORT | pg_sys::XactEvent::XACT_EVENT_PARALLEL_ABORT
    ) {
        // SAFETY: the argument is the function that `on_abort` registered.
        let aborted: fn(i32) = unsafe { std::mem::transmute(aborted) };
        aborted(0);
    }
}

unsafe extern "C-unwind" fn subtransaction_ended(
    event: pg_sys::SubXactEvent::Type,
    _subtransaction: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    aborted: *mut std::ffi::c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // SAFETY: the argument is the function that `on_abort` registered; the aborting subtransaction is still the
        // current one.
        unsafe {
            let aborted: fn(i32) = std::mem::transmute(aborted);
            aborted(pg_sys::GetCurrentTransactionNestLevel());
        }
    }
}

/// Registers a function that is called when a transaction ends, whether it commits, is prepared or aborts, once a
/// process. The function neither raises errors nor allocates.
pub fn on_end(ended: fn()) {
    // SAFETY: PostgreSQL keeps the callback with the function's address, which it only hands back.
    unsafe {
        let argument = ended as *mut std::ffi::c_void;
        pg_sys::RegisterXactCallback(Some(transaction_is_over), argument);
    }
}

unsafe extern "C-unwind" fn transaction_is_over(
    event: pg_sys::XactEvent::Type,
    ended: *mut std::ffi::c_void,
) {
    if matches!(
        event,
        pg_sys::XactEvent::XACT_EVENT_ABORT
            | pg_sys::XactEvent::XACT_EVENT_COMMIT
            | pg_sys::XactEvent::XACT_EVENT_PREPARE
            | pg_sys::XactEvent::XACT_EVENT_PARALLEL_ABORT
            | pg_sys::XactEvent::XACT_EVENT_PARALLEL_COMMIT
    ) {
        // SAFETY: the argument is the function that `on_end` registered.
        let ended: fn() = unsafe { std::mem::transmute(ended) };
        ended();
    }
}

/// Has a function called whenever what a system cache holds changes, which may be at any time: it raises no error. The
/// callback stays for the life of the process.
pub fn on_change(cache: pg_sys::SysCacheIdentifier::Type, changed: fn()) {
    unsafe extern "C-unwind" fn run(changed: pg_sys::Datum, _: i32, _: u32) {
        // SAFETY: the datum is the function that was registered below.
        let changed: fn() =
            unsafe { std::mem::transmute(changed.cast_mut_ptr::<std::ffi::c_void>()) };
        changed();
    }
    // SAFETY: PostgreSQL keeps the function with the datum, which it only hands back.
    unsafe {
        let changed = pg_sys::Datum::from(changed as *mut std::ffi::c_void);
        pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(run), changed);
    }
}

/// Registers a callback that PostgreSQL calls when something about a relation changes, or, with an
/// invalid OID, about any.
pub fn on_relation_change(callback: unsafe extern "C-unwind" fn(pg_sys::Datum, pg_sys::Oid)) {
    // SAFETY: the callback is a function, which stays.
    unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(callback), pg_sys::Datum::null()) }
}

/// Has a function called with a number when a memory context is reset or deleted, also during an abort, so that it
/// raises no error.
pub fn on_reset(memory: Memory, called: fn(usize), number: usize) {
    /// PostgreSQL's record of a callback, and what it calls.
    #[repr(C)]
    struct Callback {
        record: pg_sys::MemoryContextCallback,
        called: fn(usize),
        number: usize,
    }
    unsafe extern "C-unwind" fn run(callback: *mut std::ffi::c_void) {
        // SAFETY: the argument is the record that was registered below, which lies in the context itself.
        let callback = unsafe { &*callback.cast::<Callback>() };
        (callback.called)(callback.number);
    }
    // SAFETY: the record is written before it is registered, and lives as long as the context.
    unsafe {
        let bytes = size_of::<Callback>();
        let callback: *mut Callback = pg_sys::MemoryContextAlloc(memory.as_raw(), bytes).cast();
        let record = pg_sys::MemoryContextCallback {
            func: Some(run),
            arg: callback.cast(),
            ..Default::default()
        };
        callback.write(Callback {
            record,
            called,
            number,
        });
        pg_sys::MemoryContextRegisterResetCallback(memory.as_raw(), &raw mut (*callback).record);
    }
}
