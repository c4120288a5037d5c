//! Expressions without columns, which PostgreSQL evaluates once a scan.
//!
//! A node *initialises* an expression once, however often it starts again, and never compiles it: compiling takes
//! milliseconds and saves microseconds. The values live until the node starts again.
//!
//! PostgreSQL evaluates an expression for the first row that needs it, so a query over no rows never fails and never runs
//! a subquery. Here, an expression that may fail, or that is the result of a subquery, is evaluated only if the table has
//! a visible row. Without one it counts as NULL, which no row uses. A condition may keep rows from a division beside it
//! that would fail for them, so a division [stays with PostgreSQL](may_divide_by_zero).

use pgrx::pg_sys::{self, NodeTag};

use super::value_predicate::Room;
use crate::pg::nodes;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;
use crate::pg::tree::{Expr, Kind, View, walk};
use crate::pg::typed_datum::TypedDatum;
use crate::table::scan;

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
    /// A node of this library that has started, by its state. The result, and all that is translated with it, is used
    /// until the node starts again at most.
    pub fn at(plan: *mut pg_sys::PlanState) -> RunningNode {
        assert!(!plan.is_null());
        RunningNode(plan)
    }

    /// The node's state.
    pub fn as_ptr(self) -> *mut pg_sys::PlanState {
        self.0
    }
}

/// The value of an expression without columns; `None` is NULL. A value by reference lives until the node starts again.
pub fn evaluate(expr: Expr<'_>, node: RunningNode) -> Option<TypedDatum> {
    let (expression, plan) = (expr.as_ptr().cast::<pg_sys::Expr>(), node.0);
    // SAFETY: a node in execution; the expression is part of its plan and lives as long. The switch back also happens
    // when an ERROR passes, because PostgreSQL resets the current context.
    unsafe {
        let scalars = Scalars::of(plan);
        if !scalars.has_row && has_side_effects(expr, (*plan).state) {
            scalars.has_row = has_row(plan);
            if !scalars.has_row {
                return None;
            }
        }
        let state = scalars.state(expression, plan);
        let before = pg_sys::MemoryContextSwitchTo(scalars.values);
        let mut is_null = false;
        let evaluate = (*state).evalfunc.expect("an initialised expression");
        let datum = evaluate(state, (*plan).ps_ExprContext, &raw mut is_null);
        pg_sys::MemoryContextSwitchTo(before);
        (!is_null).then(|| TypedDatum::new(datum, expr.type_of()))
    }
}

/// Whether the snapshot of a node's query sees a row of the node's table.
///
/// # Safety
/// `plan` is a node of this library in execution.
unsafe fn has_row(plan: *mut pg_sys::PlanState) -> bool {
    // SAFETY: the node's query has a snapshot, and the table is open.
    unsafe {
        let table = table(plan);
        table.is_null()
            || scan::has_row(
                OpenTable::new(table),
                Snapshot::new((*(*plan).state).es_snapshot),
            )
    }
}

/// Whether evaluating an expression may do more than return a value: raise an error, or run a subquery. Adding an
/// interval to `now()`, as dashboards do, counts as harmless.
///
/// # Safety
/// `estate` is the state of the query that the expression is part of.
unsafe fn has_side_effects(expr: Expr<'_>, estate: *mut pg_sys::EState) -> bool {
    walk::expression(expr, &mut |node, _| match node.kind() {
        Kind::Const(_) | Kind::RelabelType(_) => false,
        Kind::Other(NodeTag::T_List | NodeTag::T_SQLValueFunction) => false,
        Kind::Param(parameter) => {
            parameter.paramkind() == pg_sys::ParamKind::PARAM_EXEC && {
                // SAFETY: the query's array has an element for each of its parameters.
                unsafe {
                    let values = (*estate).es_param_exec_vals;
                    !(*values.add(parameter.paramid() as usize))
                        .execPlan
                        .is_null()
                }
            }
        }
        Kind::OpExpr(operation) => !is_shift_of_time(operation.opfuncid()),
        Kind::FuncExpr(call) => !is_shift_of_time(call.funcid()),
        _ => true,
    })
}

/// Whether a function returns the current time, or adds an interval to a time.
fn is_shift_of_time(function: pg_sys::Oid) -> bool {
    matches!(
        function.to_u32(),
        pg_sys::F_NOW
            | pg_sys::F_TIMESTAMPTZ_MI_INTERVAL
            | pg_sys::F_TIMESTAMPTZ_PL_INTERVAL
            | pg_sys::F_TIMESTAMP_MI_INTERVAL
            | pg_sys::F_TIMESTAMP_PL_INTERVAL
    )
}

/// Whether an expression divides, by an operator of PostgreSQL's own, by anything but a constant other than zero.
pub fn may_divide_by_zero(expr: Expr<'_>) -> bool {
    walk::expression(expr, &mut |node, _| {
        let Some(operation) = node.as_op() else {
            return false;
        };
        if !DIVISIONS.contains(&operation.opfuncid().to_u32()) {
            return false;
        }
        let Some(divisor) = operation.args().get(1) else {
            return false;
        };
        // A constant by reference may be zero.
        !divisor.as_const().is_some_and(|divisor| {
            divisor.constbyval()
                && divisor
                    .value()
                    .is_some_and(|value| value.datum().value() != 0)
        })
    })
}

/// The functions of PostgreSQL's own `/` and `%`.
const DIVISIONS: [u32; 17] = [
    pg_sys::F_INT2DIV,
    pg_sys::F_INT4DIV,
    pg_sys::F_INT8DIV,
    pg_sys::F_INT24DIV,
    pg_sys::F_INT42DIV,
    pg_sys::F_INT48DIV,
    pg_sys::F_INT84DIV,
    pg_sys::F_INT28DIV,
    pg_sys::F_INT82DIV,
    pg_sys::F_INT2MOD,
    pg_sys::F_INT4MOD,
    pg_sys::F_INT8MOD,
    pg_sys::F_FLOAT4DIV,
    pg_sys::F_FLOAT8DIV,
    pg_sys::F_NUMERIC_DIV,
    pg_sys::F_NUMERIC_MOD,
    pg_sys::F_INTERVAL_DIV,
];
