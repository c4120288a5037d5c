//! PostgreSQL's callbacks of custom scan nodes: one table, generic over the [`Node`].
//!
//! A callback recovers the node's state and delegates to the node's methods. A node in PostgreSQL's memory is an
//! [`Owner`]; the Rust values that belong to it are dropped with the memory context that the node was made in.
//!
//! Invariants:
//! - Slots are cleared before what they may point into is dropped.
//! - What a node owns is borrowed by one callback at a time: a node never executes itself.
//! - A callback table is a `static`, so its address tells which kind of node a plan or path is.

use pgrx::PgMemoryContexts;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::node::{NextRow, Node, ParallelNode, Planned};
use super::stand_in;
use crate::error;
use crate::pg::exec::child::Child;
use crate::pg::exec::condition_test;
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::parallel::SharedState;
use crate::pg::exec::scalar::{self, Base};
use crate::pg::exec::slot::Slot;
use crate::pg::explain::Explain;
use crate::pg::tree::{
    CustomPath, CustomScan, Path, PathTarget, RelOptInfo, View, plan_field, plan_node, tag,
};
use crate::pg::whole_error::whole;
use crate::pg::{outer_joins, ports};

/// The callbacks of a node.
pub struct Callbacks {
    path: pg_sys::CustomPathMethods,
    plan: pg_sys::CustomScanMethods,
    execution: pg_sys::CustomExecMethods,
}
// SAFETY: the tables consist of pointers to static strings and to functions.
unsafe impl Sync for Callbacks {}

impl Callbacks {
    /// The callbacks of a node that one process executes.
    pub const fn of<N: Node>() -> Callbacks {
        Callbacks {
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

    /// The callbacks of a node that workers execute together.
    pub const fn of_parallel<N: ParallelNode>() -> Callbacks {
        let mut callbacks = Callbacks::of::<N>();
        callbacks.execution.EstimateDSMCustomScan = Some(estimate_shared::<N>);
        callbacks.execution.InitializeDSMCustomScan = Some(initialise_shared::<N>);
        callbacks.execution.ReInitializeDSMCustomScan = Some(restart_shared::<N>);
        callbacks.execution.InitializeWorkerCustomScan = Some(attach_worker::<N>);
        callbacks.execution.ShutdownCustomScan = Some(shut_down::<N>);
        callbacks
    }
}

/// Registers a node's plan by its name, so that other processes can read plans with it.
pub fn register<N: Node>() {
    // SAFETY: the table is static.
    unsafe { pg_sys::RegisterCustomScanMethods(&raw const N::CALLBACKS.plan) }
}

/// A path of a node to the rows of a relation. Rows, costs and private data are still missing.
pub fn new_path<'p, N: Node>(
    relation: RelOptInfo<'p>,
    target: Option<PathTarget<'p>>,
) -> CustomPath<'p> {
    let path: CustomPath<'p> = tag::new();
    // SAFETY: a new node, which nobody else knows; relation and target live as long.
    unsafe {
        let path = &mut *path.as_ptr();
        path.path.pathtype = pg_sys::NodeTag::T_CustomScan;
        path.path.parent = relation.as_ptr();
        path.path.pathtarget = target.map_or(std::ptr::null_mut(), View::as_ptr);
        path.path.parallel_safe = relation.consider_parallel();
        path.flags = pg_sys::CUSTOMPATH_SUPPORT_PROJECTION;
        path.methods = &raw const N::CALLBACKS.path;
    }
    path
}

/// The path as one of this node; `None` for any other path.
pub fn path_of<N: Node>(path: Path<'_>) -> Option<CustomPath<'_>> {
    path.as_custom(N::NAME)
}

/// A plan under execution as a node of this kind; `None` for any other plan. The handle is for the current callback.
pub fn node_of<'a, N: Node>(child: Child) -> Option<ExecNode<'a>> {
    let node = child.as_ptr().cast::<pg_sys::CustomScanState>();
    // SAFETY: a child's state is live; the cast follows the tag.
    unsafe {
        let is_ours = child.is_a(pg_sys::NodeTag::T_CustomScanState)
            && std::ptr::eq((*node).methods, &raw const N::CALLBACKS.execution);
        is_ours.then(|| ExecNode::at(node))
    }
}

/// The state of a node of another kind than the one that is executing, and the values that it has from its first row
/// on. They are made now if the node has none.
pub fn running_of<'a, N: Node>(child: Child) -> Option<(&'a mut N, &'a mut N::Running)> {
    let node = node_of::<N>(child)?;
    // SAFETY: the node is of this kind, and its parent, which is executing, is the only one to borrow what it owns.
    unsafe {
        let running = start::<N>(node);
        Some((&mut own::<N>(node).state, running))
    }
}

/// The state of another node, with its counters noted.
pub fn state_of<'a, N: Node>(child: Child) -> Option<&'a mut N> {
    let node = node_of::<N>(child)?;
    // SAFETY: the node is of this kind, and its parent, which is executing, is the only one to borrow what it owns.
    let own = unsafe { own::<N>(node) };
    own.note();
    Some(&mut own.state)
}

/// A node in PostgreSQL's memory, with a pointer to the Rust values that belong to it.
#[repr(C)]
struct Owner<N: Node> {
    base: Base,
    own: *mut Own<N>,
}

/// The Rust values that belong to a node. They are dropped with the memory context that the node was made in.
struct Own<N: Node> {
    state: N,
    running: Option<N::Running>,
}

/// The Rust values that belong to a node.
///
/// # Safety
/// The node is of this kind, and nobody else borrows what it owns.
unsafe fn own<'a, N: Node>(node: ExecNode<'_>) -> &'a mut Own<N> {
    // SAFETY: `create` made the node as an `Owner`.
    unsafe { &mut *(*node.as_raw().cast::<Owner<N>>()).own }
}

impl<N: Node> Own<N> {
    fn note(&mut self) {
        if let Some(running) = &mut self.running {
            self.state.note(running);
        }
    }

    /// Drops what runs. The slots are clear.
    fn stop(&mut self) {
        self.note();
        if let Some(running) = self.running.take() {
            N::end(running);
        }
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
    whole(|| {
        let scan: CustomScan<'static> = tag::new();
        let path: CustomPath<'static> = plan_node(path);
        // SAFETY: a new node, which nobody else knows; the planner's lists live as long.
        unsafe {
            let scan = &mut *scan.as_ptr();
            scan.scan.plan.targetlist = target;
            scan.flags = path.flags();
            scan.custom_plans = children;
            scan.methods = &raw const N::CALLBACKS.plan;
        }
        N::plan(&Planned {
            root: plan_node(root),
            relation: plan_node(relation),
            path,
            clauses: plan_field(clauses),
            scan,
        });
        if scan.scanned_index() == 0 {
            outer_joins::agree(scan);
        }
        scan.as_plan().as_ptr()
    })
}

#[pg_guard]
unsafe extern "C-unwind" fn create<N: Node>(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: the memory has the size of an `Owner`, and zero is a valid state of the node itself.
    unsafe {
        let owner = pg_sys::palloc0(size_of::<Owner<N>>()).cast::<Owner<N>>();
        (*owner).base.node.ss.ps.type_ = pg_sys::NodeTag::T_CustomScanState;
        (*owner).base.node.methods = &raw const N::CALLBACKS.execution;
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
    _estate: *mut pg_sys::EState,
    flags: i32,
) {
    whole(|| {
        // SAFETY: PostgreSQL has just initialised the node, which is one of this kind.
        unsafe {
            let exec = ExecNode::at(node);
            let plan = exec.plan();
            for child in plan.children().take(N::children(plan)) {
                exec.begin_child(child, flags);
            }
            own::<N>(exec).state.begin(exec);
            condition_test::begin_subplans(exec);
        }
    })
}

#[pg_guard]
unsafe extern "C-unwind" fn execute<N: Node>(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    whole(|| {
        // SAFETY: the node is one of this kind, in execution.
        unsafe {
            // Other rows are not rechecked, and need no call of `ExecScan`, which calls back for each row.
            if N::IS_RECHECKED && ExecNode::at(node).estate().is_rechecking() {
                let scan = &raw mut (*node).ss;
                return pg_sys::ExecScan(scan, Some(scan_next::<N>), Some(recheck::<N>));
            }
            match next_result::<N>(ExecNode::at(node)) {
                Some(row) => row.as_raw(),
                None => std::ptr::null_mut(),
            }
        }
    })
}

/// The node's next result row: a row that passes the node's conditions, projected.
///
/// # Safety
/// The node is one of this kind, in execution.
#[inline]
unsafe fn next_result<N: Node>(node: ExecNode<'_>) -> Option<Slot> {
    let context = node.context();
    loop {
        ports::CHECK_FOR_INTERRUPTS();
        context.reset();
        // SAFETY: the caller's node is one of this kind.
        let running = unsafe { start::<N>(node) };
        if let Some(child) = N::stand_in(running) {
            return stand_in::next(node, child);
        }
        // SAFETY: the caller's node is one of this kind.
        let Some(row) = (unsafe { next::<N>(node) }) else {
            // SAFETY: the caller's node is one of this kind.
            if N::stand_in(unsafe { start::<N>(node) }).is_some() {
                // The node has handed over while it looked for the row.
                continue;
            }
            clear_result(node);
            return None;
        };
        context.set_scan_row(row);
        if node.qual().passes(context) {
            return Some(node.projection().project(row));
        }
    }
}

/// The values that a node has from its first row on. They are made now if the node has none.
///
/// # Safety
/// The node is one of this kind, in execution, and nobody else borrows what it owns.
unsafe fn start<'a, N: Node>(node: ExecNode<'_>) -> &'a mut N::Running {
    // SAFETY: the caller's node is one of this kind, and nobody else borrows what it owns.
    let Own { state, running } = unsafe { own::<N>(node) };
    running.get_or_insert_with(|| {
        node.query_memory().enter(|| {
            scalar::start(node);
            let started = state.start(node);
            started.unwrap_or_else(|reason| error::unplanned(&reason))
        })
    })
}

/// The node's next row before conditions and projection.
///
/// # Safety
/// The node is one of this kind, in execution, and nobody else borrows what it owns.
#[inline]
unsafe fn next<N: Node>(node: ExecNode<'_>) -> Option<Slot> {
    let mut row = node.scan_slot().writer();
    // SAFETY: the caller's node is one of this kind; the state and what runs are two values.
    let (running, state) = unsafe { (start::<N>(node), &mut own::<N>(node).state) };
    match state.next(running, node, &mut row) {
        Err(failure) => error::evaluation(failure),
        Ok(NextRow::End) => None,
        Ok(NextRow::Written) => Some(row.store()),
        Ok(NextRow::Other(slot)) => Some(slot),
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn scan_next<N: Node>(
    node: *mut pg_sys::ScanState,
) -> *mut pg_sys::TupleTableSlot {
    whole(|| {
        // SAFETY: `execute` passes a node of this kind.
        let row = unsafe { next::<N>(ExecNode::at(node.cast())) };
        row.map_or(std::ptr::null_mut(), Slot::as_raw)
    })
}

/// Whether a row that PostgreSQL rechecks passes the conditions.
#[pg_guard]
unsafe extern "C-unwind" fn recheck<N: Node>(
    node: *mut pg_sys::ScanState,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    whole(|| {
        // SAFETY: `execute` passes a node of this kind; the slot has a row.
        let (node, row) = unsafe { (ExecNode::at(node.cast()), plan_field::<Slot>(slot)) };
        // The node's expressions expect a slot whose columns are all read.
        row.read_all();
        node.context().set_scan_row(row);
        // SAFETY: the node is one of this kind.
        let qual = unsafe { own::<N>(node).state.recheck() };
        qual.passes(node.context())
    })
}

fn clear_result(node: ExecNode<'_>) {
    if let Some(result) = node.result_slot() {
        result.clear();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan<N: Node>(node: *mut pg_sys::CustomScanState) {
    whole(|| {
        // SAFETY: the node is one of this kind, in execution.
        unsafe {
            let exec = ExecNode::at(node);
            clear_result(exec);
            exec.scan_slot().clear();
            let own = own::<N>(exec);
            let is_rewound = own
                .running
                .as_mut()
                .is_some_and(|running| N::rewind(running, exec));
            if !is_rewound {
                own.stop();
                exec.rescan(own.state.children_begun(exec));
            }
            if N::IS_RECHECKED {
                pg_sys::ExecScanReScan(&raw mut (*node).ss);
            }
        }
    })
}

#[pg_guard]
unsafe extern "C-unwind" fn end<N: Node>(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the node is one of this kind.
    unsafe {
        let exec = ExecNode::at(node);
        clear_result(exec);
        exec.scan_slot().clear();
        let own = own::<N>(exec);
        own.stop();
        own.state
            .children_begun(exec)
            .into_iter()
            .for_each(Child::end);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn explain<N: Node>(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
) {
    // SAFETY: the node is one of this kind, and EXPLAIN's structures are live.
    unsafe {
        let exec = ExecNode::at(node);
        let explain = Explain::of(exec, plan_field(ancestors), plan_node(output));
        let own = own::<N>(exec);
        own.note();
        own.state.explain(&explain);
        condition_test::explain(exec, &explain);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn estimate_shared<N: ParallelNode>(
    _node: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
) -> pg_sys::Size {
    size_of::<N::Shared>()
}

#[pg_guard]
unsafe extern "C-unwind" fn initialise_shared<N: ParallelNode>(
    node: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
    memory: *mut std::ffi::c_void,
) {
    // SAFETY: PostgreSQL allocated as many bytes as `estimate_shared` returned, aligned for any type.
    unsafe {
        memory.cast::<N::Shared>().write(N::Shared::default());
        attach::<N>(node, memory);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn restart_shared<N: ParallelNode>(
    _node: *mut pg_sys::CustomScanState,
    _context: *mut pg_sys::ParallelContext,
    memory: *mut std::ffi::c_void,
) {
    // SAFETY: `initialise_shared` wrote the value.
    unsafe { N::restart(&*memory.cast::<N::Shared>()) }
}

#[pg_guard]
unsafe extern "C-unwind" fn attach_worker<N: ParallelNode>(
    node: *mut pg_sys::CustomScanState,
    _contents: *mut pg_sys::shm_toc,
    memory: *mut std::ffi::c_void,
) {
    // SAFETY: the leader has initialised the value.
    unsafe { attach::<N>(node, memory) }
}

/// # Safety
/// The node is one of this kind; the memory has an initialised value.
unsafe fn attach<N: ParallelNode>(
    node: *mut pg_sys::CustomScanState,
    memory: *mut std::ffi::c_void,
) {
    // SAFETY: the caller's node is one of this kind; `shut_down` detaches the participant before the memory goes.
    unsafe {
        let shared = SharedState::of(&*memory.cast::<N::Shared>());
        own::<N>(ExecNode::at(node)).state.attach(shared);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn shut_down<N: ParallelNode>(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the node is one of this kind, and what is shared is still there.
    unsafe {
        let own = own::<N>(ExecNode::at(node));
        own.note();
        own.state.detach();
    }
}
