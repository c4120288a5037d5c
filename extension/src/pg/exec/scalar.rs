//! The expressions of a node that PostgreSQL evaluates: their states, and their values until the node starts again.
//!
//! A node *initialises* an expression once, however often it starts again, and never compiles it: compiling takes
//! milliseconds and saves microseconds.

use pgrx::pg_sys;

use super::condition_test::Room;
use super::memory::Memory;
use super::node::ExecNode;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;
use crate::pg::tree::{Expr, View};
use crate::pg::typed_datum::TypedDatum;
use crate::pg::{nodes, ports};

/// The state of a node's expressions; all zero at first.
#[repr(C)]
pub struct Scalars {
    /// Expressions and their states, alternating.
    initialised: *mut pg_sys::List,
    /// The memory of the values.
    values: pg_sys::MemoryContext,
    /// The table that the node reads, if PostgreSQL opened none for it.
    table: pg_sys::Relation,
    /// Whether the query's snapshot is known to see a row of the table.
    has_row: bool,
    /// The state of conditions on one column.
    room: Room,
}

/// The beginning of every node of this library.
#[repr(C)]
pub struct Base {
    pub node: pg_sys::CustomScanState,
    scalars: Scalars,
}

impl Scalars {
    /// The state of a node's expressions.
    ///
    /// # Safety
    /// `plan` is a node of this library.
    unsafe fn of<'a>(plan: *mut pg_sys::PlanState) -> &'a mut Scalars {
        // SAFETY: every node of this library begins with a `Base`.
        unsafe { &mut (*plan.cast::<Base>()).scalars }
    }

    /// The state of an expression, initialised at its first use.
    ///
    /// # Safety
    /// The expression is part of the node's plan.
    unsafe fn state(
        &mut self,
        expression: *mut pg_sys::Expr,
        plan: *mut pg_sys::PlanState,
    ) -> *mut pg_sys::ExprState {
        // SAFETY: the list holds pairs of live pointers; the switch back also happens when an ERROR passes,
        // because PostgreSQL resets the current context.
        unsafe {
            let mut pairs = nodes::list::<std::ffi::c_void>(self.initialised);
            while let Some(known) = pairs.next() {
                let state = pairs.next();
                if known == expression.cast()
                    && let Some(state) = state
                {
                    return state.cast();
                }
            }
            let estate = (*plan).state;
            let before = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
            let jit = (*estate).es_jit_flags;
            (*estate).es_jit_flags = jit & !(pg_sys::PGJIT_EXPR as i32);
            let state = pg_sys::ExecInitExpr(expression, plan);
            (*estate).es_jit_flags = jit;
            self.initialised = pg_sys::lappend(self.initialised, expression.cast());
            self.initialised = pg_sys::lappend(self.initialised, state.cast());
            pg_sys::MemoryContextSwitchTo(before);
            state
        }
    }
}

/// Starts a node: frees the values of its last start.
///
/// # Safety
/// `node` is a node of this library in execution that uses no such value any more.
pub unsafe fn start(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a node of this library, see above.
    unsafe {
        let scalars = Scalars::of(node.cast());
        if scalars.values.is_null() {
            scalars.values = pg_sys::AllocSetContextCreateInternal(
                (*(*node).ss.ps.state).es_query_cxt,
                c"lanes scalars".as_ptr(),
                pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
                pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
                pg_sys::ALLOCSET_SMALL_MAXSIZE as usize,
            );
        }
        pg_sys::MemoryContextReset(scalars.values);
    }
}

/// The memory that lives until a node starts again.
///
/// # Safety
/// `plan` is a node of this library that has [started](start).
pub unsafe fn memory(plan: *mut pg_sys::PlanState) -> pg_sys::MemoryContext {
    // SAFETY: a node of this library, see above.
    unsafe { Scalars::of(plan).values }
}

/// Sets the table that a node reads, where PostgreSQL opened none for it.
///
/// # Safety
/// `plan` is a node of this library, and the table stays open while the node is in execution.
pub unsafe fn reads(plan: *mut pg_sys::PlanState, table: pg_sys::Relation) {
    // SAFETY: a node of this library, see above.
    unsafe { Scalars::of(plan).table = table }
}

/// The table that a node reads.
///
/// # Safety
/// `plan` is a node of this library.
pub unsafe fn table(plan: *mut pg_sys::PlanState) -> pg_sys::Relation {
    // SAFETY: a custom scan's state begins with a scan's state.
    unsafe {
        let opened = (*plan.cast::<pg_sys::ScanState>()).ss_currentRelation;
        if opened.is_null() {
            Scalars::of(plan).table
        } else {
            opened
        }
    }
}

/// The state of a node's conditions on one column.
///
/// # Safety
/// `plan` is a node of this library.
pub unsafe fn room(plan: *mut pg_sys::PlanState) -> *mut Room {
    // SAFETY: a node of this library, see above.
    unsafe { &raw mut Scalars::of(plan).room }
}

/// The state of an expression of a node, which stays the same when the node starts again.
///
/// # Safety
/// `plan` is a node of this library, and the expression is part of its plan.
pub unsafe fn initialised(
    expression: *mut pg_sys::Expr,
    plan: *mut pg_sys::PlanState,
) -> *mut pg_sys::ExprState {
    // SAFETY: a node of this library, see above.
    unsafe { Scalars::of(plan).state(expression, plan) }
}

/// A node of this library that has [started](start).
#[derive(Clone, Copy, Debug)]
pub struct RunningNode(*mut pg_sys::PlanState);

impl RunningNode {
    /// A node of this library that has started. The result, and all that is translated with it, is used
    /// until the node starts again at most.
    pub fn of(node: ExecNode<'_>) -> RunningNode {
        RunningNode(node.plan_state())
    }

    /// The node's state.
    pub fn as_ptr(self) -> *mut pg_sys::PlanState {
        self.0
    }

    /// The memory that lives until the node starts again.
    pub fn memory(self) -> Memory {
        // SAFETY: a node of this library that has started.
        unsafe { Memory::of(memory(self.0)) }
    }

    /// The table that the node reads, and the query's snapshot; `None` if it reads none.
    pub fn table<'a>(self) -> Option<(OpenTable<'a>, Option<Snapshot<'a>>)> {
        // SAFETY: a node of this library in execution, whose table is open and whose query has its snapshot.
        unsafe {
            let relation = table(self.0);
            let snapshot = || Snapshot::new((*(*self.0).state).es_snapshot);
            (!relation.is_null()).then(|| (OpenTable::new(relation), snapshot()))
        }
    }

    /// Whether the query's snapshot is known to see a row of the table.
    pub fn has_row(self) -> bool {
        // SAFETY: a node of this library.
        unsafe { Scalars::of(self.0).has_row }
    }

    /// Notes that the query's snapshot sees a row of the table.
    pub fn note_row(self) {
        // SAFETY: a node of this library.
        unsafe { Scalars::of(self.0).has_row = true }
    }

    /// Whether a parameter, of those that the executor sets, is the result of a subquery that has not run yet.
    pub fn awaits_subquery(self, parameter: i32) -> bool {
        // SAFETY: the query's array has an element for each of its parameters, among which this one is.
        unsafe {
            let planned = (*(*self.0).state).es_plannedstmt;
            let count = ports::list_length((*planned).paramExecTypes);
            assert!(
                (0..count).contains(&parameter),
                "the query has {count} parameters"
            );
            let values = (*(*self.0).state).es_param_exec_vals;
            !(*values.add(parameter as usize)).execPlan.is_null()
        }
    }

    /// The value of an expression of the node's plan that has no columns; `None` is NULL. A value by reference lives
    /// until the node starts again.
    pub fn evaluate(self, expr: Expr<'_>) -> Option<TypedDatum> {
        let plan = self.0;
        // SAFETY: a node in execution; the expression is part of its plan and lives as long. The switch back also
        // happens when an ERROR passes, because PostgreSQL resets the current context.
        unsafe {
            let scalars = Scalars::of(plan);
            let state = scalars.state(expr.as_ptr().cast(), plan);
            let before = pg_sys::MemoryContextSwitchTo(scalars.values);
            let mut is_null = false;
            let evaluate = (*state).evalfunc.expect("an initialised expression");
            let datum = evaluate(state, (*plan).ps_ExprContext, &raw mut is_null);
            pg_sys::MemoryContextSwitchTo(before);
            (!is_null).then(|| TypedDatum::new(datum, expr.type_of()))
        }
    }
}
