//! A custom scan node: what PostgreSQL calls, for all nodes alike, and what each of them does.
//!
//! ```text
//! path ── plan: the node's part of a plan ──► create: an empty state ── begin ──► start, next, next, … ──► end
//!                                                                           ▲        rescan: start anew, or the same rows again
//!                                                                           └────────┘
//! ```
//! A node is a [`Node`]: its methods, on a state that lives from the beginning to the end and on what is *running* from the
//! first row on. PostgreSQL's callbacks are here, once, generic over it. Each node has one `static` table of them, as
//! PostgreSQL refers to it for as long as the process lives.
//!
//! *Whose memory.* The state is dropped with the memory context that the node was made in; what runs, when the node ends or
//! starts anew, or with the state if an ERROR comes before. Slots are emptied before what they may point into is.

use std::ffi::CStr;

use lanes_columnar::vector::Evaluation;
use pgrx::PgMemoryContexts;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::stand_in;
use crate::error;
use crate::expressions::scalar::{self, Base};
use crate::expressions::translate::Translation;
use crate::expressions::{self};
use crate::pg::explain::Explain;
use crate::pg::{nodes, ports, tree};

/// What a node does. Methods are called with a live node of this kind.
pub trait Node: Default + 'static {
    /// What it is called in plans.
    const NAME: &'static CStr;
    /// Its callbacks, in a `static`.
    const ROUTINES: &'static Routines;
    /// Whether its rows are those of a table, each of which may be asked about again ([`Node::recheck`]).
    const IS_RECHECKED: bool = false;
    /// What exists from the first row on.
    type Running;

    /// How many of the first children of its plan the node executes from the beginning. The others are there for their
    /// tables' locks and permissions, or [stand in](super::stand_in).
    ///
    /// # Safety
    /// A plan of this node's.
    unsafe fn children(_scan: *mut pg_sys::CustomScan) -> usize {
        0
    }

    /// The child whose rows the node returns instead of its own.
    fn stand_in(_running: &Self::Running) -> Option<*mut pg_sys::PlanState> {
        None
    }

    /// Fills in a plan that has its target list and its children.
    ///
    /// # Safety
    /// The planner's live structures.
    unsafe fn plan(planned: &Planned);

    /// Makes the state ready.
    ///
    /// # Safety
    /// A node freshly initialised by PostgreSQL.
    unsafe fn begin(&mut self, node: *mut pg_sys::CustomScanState);

    /// Before the first row; parameters have their values, and memory that is allocated lives as long as the query.
    ///
    /// # Errors
    /// What cannot be executed.
    ///
    /// # Safety
    /// A node in execution.
    unsafe fn start(&mut self, node: *mut pg_sys::CustomScanState) -> Translation<Self::Running>;

    /// Writes the values of the next row; false at the end.
    ///
    /// # Errors
    /// Those of the expressions.
    ///
    /// # Safety
    /// A node in execution, with its scan slot, which is empty.
    unsafe fn next(
        &mut self,
        running: &mut Self::Running,
        node: *mut pg_sys::CustomScanState,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> Evaluation<bool>;

    /// The quals for a row that comes from elsewhere (`EvalPlanQual`).
    fn recheck(&self) -> *mut pg_sys::ExprState {
        std::ptr::null_mut()
    }

    /// Takes down what was done so far, for EXPLAIN.
    fn note(&mut self, _running: &mut Self::Running) {}

    /// Goes back to the first row, of the same rows as before; false: it has to start anew.
    fn rewind(_running: &mut Self::Running) -> bool {
        false
    }

    /// Ends what runs.
    ///
    /// # Safety
    /// No slot holds a row.
    unsafe fn end(running: Self::Running);

    /// What EXPLAIN says of it.
    ///
    /// # Safety
    /// EXPLAIN's live structures.
    unsafe fn explain(&self, explain: &Explain);
}

/// A plan that is being made of a path.
pub struct Planned {
    pub root: *mut pg_sys::PlannerInfo,
    pub relation: *mut pg_sys::RelOptInfo,
    pub path: *mut pg_sys::CustomPath,
    /// The quals that PostgreSQL wants to see evaluated.
    pub clauses: *mut pg_sys::List,
    /// The plan.
    pub scan: *mut pg_sys::CustomScan,
}

/// The callbacks of a node.
pub struct Routines {
    pub path: pg_sys::CustomPathMethods,
    pub plan: pg_sys::CustomScanMethods,
    pub execution: pg_sys::CustomExecMethods,
}
// SAFETY: pointers to static strings and functions only.
unsafe impl Sync for Routines {}

impl Routines {
    /// Those that all nodes have.
    pub const fn of<N: Node>() -> Routines {
        Routines {
            path: pg_sys::CustomPathMethods {
                CustomName: N::NAME.as_ptr(),
                PlanCustomPath: Some(plan::<N>),
                ReparameterizeCustomPathByChild: None,
            },
            plan: pg_sys::CustomScanMethods {
                CustomName: N::NAME.as_ptr(),
                CreateCustomScanState: Some(create::<N>),
            },
            execution: pg_sys::CustomExecMethods {
                CustomName: N::NAME.as_ptr(),
                BeginCustomScan: Some(begin::<N>),
                ExecCustomScan: Some(execute::<N>),
                EndCustomScan: Some(end::<N>),
                ReScanCustomScan: Some(rescan::<N>),
                MarkPosCustomScan: None,
                RestrPosCustomScan: None,
                EstimateDSMCustomScan: None,
                InitializeDSMCustomScan: None,
                ReInitializeDSMCustomScan: None,
                InitializeWorkerCustomScan: None,
                ShutdownCustomScan: None,
                ExplainCustomScan: Some(explain::<N>),
            },
        }
    }
}

/// Makes a node known by name, so that plans can be read back.
pub fn register<N: Node>() {
    // SAFETY: a static table.
    unsafe { pg_sys::RegisterCustomScanMethods(&raw const N::ROUTINES.plan) }
}

/// A path of a node's to the rows of a relation, still without rows, costs and what it remembers.
///
/// # Safety
/// The planner's live structures.
pub unsafe fn path<N: Node>(
    relation: *mut pg_sys::RelOptInfo,
    target: *mut pg_sys::PathTarget,
) -> *mut pg_sys::CustomPath {
    // SAFETY: a fresh node.
    unsafe {
        let path = tree::make::<pg_sys::CustomPath>(pg_sys::NodeTag::T_CustomPath);
        let base = &mut (*path).path;
        base.pathtype = pg_sys::NodeTag::T_CustomScan;
        base.parent = relation;
        base.pathtarget = target;
        base.parallel_safe = (*relation).consider_parallel;
        (*path).flags = pg_sys::CUSTOMPATH_SUPPORT_PROJECTION;
        (*path).methods = &raw const N::ROUTINES.path;
        path
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn plan<N: Node>(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    target: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    children: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: the planner's live structures; a path of this node's.
    unsafe {
        let scan = tree::make::<pg_sys::CustomScan>(pg_sys::NodeTag::T_CustomScan);
        (*scan).scan.plan.targetlist = target;
        (*scan).flags = (*path).flags;
        (*scan).custom_plans = children;
        (*scan).methods = &raw const N::ROUTINES.plan;
        N::plan(&Planned {
            root,
            relation,
            path,
            clauses,
            scan,
        });
        scan.cast()
    }
}

/// A node with what it owns behind it.
#[repr(C)]
struct Owner<N: Node> {
    base: Base,
    own: *mut Own<N>,
}

/// What a node owns.
struct Own<N: Node> {
    state: N,
    running: Option<N::Running>,
}

/// What a node owns.
///
/// # Safety
/// A node of this kind, and no other borrow of what it owns is in use.
unsafe fn own<'a, N: Node>(node: *mut pg_sys::CustomScanState) -> &'a mut Own<N> {
    // SAFETY: the caller's promise.
    unsafe { &mut *(*node.cast::<Owner<N>>()).own }
}

impl<N: Node> Own<N> {
    fn note(&mut self) {
        if let Some(running) = &mut self.running {
            self.state.note(running);
        }
    }

    unsafe fn stop(&mut self) {
        self.note();
        if let Some(running) = self.running.take() {
            // SAFETY: the caller has emptied the slots.
            unsafe { N::end(running) }
        }
    }
}

/// The state of a node, which has taken down what was done so far.
///
/// # Safety
/// A node of this kind, and no other borrow of its state is in use.
pub unsafe fn state<'a, N: Node>(node: *mut pg_sys::CustomScanState) -> &'a mut N {
    // SAFETY: the caller's promise.
    let own = unsafe { own::<N>(node) };
    own.note();
    &mut own.state
}

#[pg_guard]
unsafe extern "C-unwind" fn create<N: Node>(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: palloc'd memory of that size; zero is a valid state of the node itself.
    unsafe {
        let owner = pg_sys::palloc0(size_of::<Owner<N>>()).cast::<Owner<N>>();
        (*owner).base.node.ss.ps.type_ = pg_sys::NodeTag::T_CustomScanState;
        (*owner).base.node.methods = &raw const N::ROUTINES.execution;
        (*owner).own = PgMemoryContexts::CurrentMemoryContext.leak_and_drop_on_delete(Own::<N> {
            state: N::default(),
            running: None,
        });
        owner.cast()
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin<N: Node>(
    node: *mut pg_sys::CustomScanState,
    estate: *mut pg_sys::EState,
    flags: i32,
) {
    // SAFETY: a node of ours, freshly initialised by PostgreSQL.
    unsafe {
        let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        for plan in nodes::list::<pg_sys::Plan>((*scan).custom_plans).take(N::children(scan)) {
            let child = pg_sys::ExecInitNode(plan, estate, flags);
            (*node).custom_ps = pg_sys::lappend((*node).custom_ps, child.cast());
        }
        own::<N>(node).state.begin(node);
        expressions::value_predicate::begin_subplans(node);
    }
}

/// How many children of a node are executed.
///
/// # Safety
/// A node of ours.
pub unsafe fn running_children(node: *mut pg_sys::CustomScanState) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { ports::list_length((*node).custom_ps) }
}

/// Starts the children of a node anew.
///
/// # Safety
/// A node of ours, in execution.
pub unsafe fn rescan_children(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the caller's promise.
    unsafe {
        let changed = (*node).ss.ps.chgParam;
        for child in nodes::list::<pg_sys::PlanState>((*node).custom_ps) {
            if !changed.is_null() {
                pg_sys::UpdateChangedParamSet(child, changed);
            }
            // With changed parameters it starts anew by itself.
            if (*child).chgParam.is_null() {
                pg_sys::ExecReScan(child);
            }
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn execute<N: Node>(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node of ours, in execution.
    unsafe {
        if N::IS_RECHECKED {
            return pg_sys::ExecScan(
                &raw mut (*node).ss,
                Some(scan_next::<N>),
                Some(recheck::<N>),
            );
        }
        let context = (*node).ss.ps.ps_ExprContext;
        loop {
            ports::CHECK_FOR_INTERRUPTS();
            ports::MemoryContextReset((*context).ecxt_per_tuple_memory);
            if let Some(child) = N::stand_in(start::<N>(node)) {
                return stand_in::next(node, child);
            }
            let slot = next::<N>(node);
            if slot.is_null() {
                if N::stand_in(start::<N>(node)).is_some() {
                    // It has handed over just now.
                    continue;
                }
                clear_result(node);
                return slot;
            }
            (*context).ecxt_scantuple = slot;
            if nodes::exec_qual((*node).ss.ps.qual, context) {
                return nodes::exec_project((*node).ss.ps.ps_ProjInfo, slot);
            }
        }
    }
}

/// Whether a node in execution is of this kind.
///
/// # Safety
/// A live node.
pub unsafe fn is<N: Node>(state: *mut pg_sys::PlanState) -> bool {
    // SAFETY: the caller's promise; the cast follows the tag.
    unsafe {
        let node = state.cast::<pg_sys::CustomScanState>();
        tree::is_a(state, pg_sys::NodeTag::T_CustomScanState)
            && std::ptr::eq((*node).methods, &raw const N::ROUTINES.execution)
    }
}

/// A node's state, and what runs, which starts now if it does not yet.
///
/// # Safety
/// A node of this kind in execution, and no other borrow of what it owns is in use.
pub unsafe fn running<'a, N: Node>(
    node: *mut pg_sys::CustomScanState,
) -> (&'a mut N, &'a mut N::Running) {
    // SAFETY: the caller's promise.
    unsafe {
        let running = start::<N>(node);
        (&mut own::<N>(node).state, running)
    }
}

/// What runs, which starts now if it does not yet.
unsafe fn start<'a, N: Node>(node: *mut pg_sys::CustomScanState) -> &'a mut N::Running {
    // SAFETY: a node of ours, in execution.
    unsafe {
        let Own { state, running } = own::<N>(node);
        if running.is_none() {
            let query = (*(*node).ss.ps.state).es_query_cxt;
            let before = pg_sys::MemoryContextSwitchTo(query);
            scalar::start(node);
            let started = state.start(node);
            pg_sys::MemoryContextSwitchTo(before);
            *running = Some(started.unwrap_or_else(|reason| error::unplanned(&reason)));
        }
        running.as_mut().expect("what has started runs")
    }
}

/// The scan slot with the next row; null at the end.
unsafe fn next<N: Node>(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node of ours, in execution.
    unsafe {
        let slot = (*node).ss.ss_ScanTupleSlot;
        ports::ExecClearTuple(slot);
        let running = start::<N>(node);
        let state = &mut own::<N>(node).state;
        match state.next(running, node, slot) {
            Err(failure) => error::evaluation(failure),
            Ok(false) => std::ptr::null_mut(),
            Ok(true) => ports::ExecStoreVirtualTuple(slot),
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn scan_next<N: Node>(
    node: *mut pg_sys::ScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: `execute` hands over a node of ours.
    unsafe { next::<N>(node.cast()) }
}

/// Whether a row that came from elsewhere passes the quals.
#[pg_guard]
unsafe extern "C-unwind" fn recheck<N: Node>(
    node: *mut pg_sys::ScanState,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: `execute` hands over a node of ours; the slot is filled.
    unsafe {
        // Expressions of this node expect a slot whose values are all there.
        ports::slot_getallattrs(slot);
        let context = (*node).ps.ps_ExprContext;
        (*context).ecxt_scantuple = slot;
        nodes::exec_qual(own::<N>(node.cast()).state.recheck(), context)
    }
}

unsafe fn clear_result(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of ours.
    unsafe {
        let result = (*node).ss.ps.ps_ResultTupleSlot;
        if !result.is_null() {
            ports::ExecClearTuple(result);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan<N: Node>(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of ours; the slots let go of rows before those go.
    unsafe {
        clear_result(node);
        ports::ExecClearTuple((*node).ss.ss_ScanTupleSlot);
        let own = own::<N>(node);
        let same = (*node).ss.ps.chgParam.is_null();
        if !(same && own.running.as_mut().is_some_and(N::rewind)) {
            own.stop();
            rescan_children(node);
        }
        if N::IS_RECHECKED {
            pg_sys::ExecScanReScan(&raw mut (*node).ss);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end<N: Node>(node: *mut pg_sys::CustomScanState) {
    // SAFETY: as above.
    unsafe {
        clear_result(node);
        ports::ExecClearTuple((*node).ss.ss_ScanTupleSlot);
        own::<N>(node).stop();
        for child in nodes::list::<pg_sys::PlanState>((*node).custom_ps) {
            pg_sys::ExecEndNode(child);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn explain<N: Node>(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
) {
    // SAFETY: a node of ours, and EXPLAIN's live structures.
    unsafe {
        let explain = Explain::of(node, ancestors, output);
        state::<N>(node).explain(&explain);
        expressions::value_predicate::explain(node, &explain);
    }
}
