//! Expressions without columns: PostgreSQL evaluates each once a scan.
//!
//! A node *initialises* an expression once, however often it starts again, and never has it compiled: compiling takes
//! milliseconds and saves microseconds. The values live until the node starts again.
//!
//! PostgreSQL itself evaluates an expression for the first row that needs it, so a query over no rows never fails and
//! never runs a subquery. Here, an expression that may fail, or that is the result of a subquery, is evaluated only if
//! the table has a visible row; otherwise it counts as NULL, which no row gets to see. A division may fail for the rows
//! that a condition beside it keeps from it: such an expression [stays with PostgreSQL](may_divide_by_zero).

use pgrx::pg_sys;

use super::value_predicate::Room;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;
use crate::pg::{nodes, tree};
use crate::table::scan;

/// What a node keeps for its expressions; all zero at first.
#[repr(C)]
pub struct Scalars {
    /// Expressions and their states, in turn.
    initialised: *mut pg_sys::List,
    /// What evaluation allocates.
    values: pg_sys::MemoryContext,
    /// The table that the node reads, unless it is the one that PostgreSQL opened for it.
    table: pg_sys::Relation,
    /// Whether the query's snapshot is known to see a row of that table.
    has_row: bool,
    /// Where conditions on one column are evaluated.
    room: Room,
}

/// How every node of ours begins.
#[repr(C)]
pub struct Base {
    pub node: pg_sys::CustomScanState,
    scalars: Scalars,
}

impl Scalars {
    /// # Safety
    /// A node of ours.
    unsafe fn of<'a>(plan: *mut pg_sys::PlanState) -> &'a mut Scalars {
        // SAFETY: every node of ours begins with a `Base`.
        unsafe { &mut (*plan.cast::<Base>()).scalars }
    }

    /// The state of an expression.
    unsafe fn state(
        &mut self,
        expression: *mut pg_sys::Expr,
        plan: *mut pg_sys::PlanState,
    ) -> *mut pg_sys::ExprState {
        // SAFETY: the list holds pairs of live pointers; the switch back happens also when an ERROR passes, as
        // PostgreSQL resets it.
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

/// Says that a node starts: the values of its last start are gone.
///
/// # Safety
/// A node of ours, in execution, that holds no value any more.
pub unsafe fn start(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the caller's promise.
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

/// Memory that lives until a node starts again.
///
/// # Safety
/// A node of ours that has [started](start).
pub unsafe fn memory(plan: *mut pg_sys::PlanState) -> pg_sys::MemoryContext {
    // SAFETY: the caller's promise.
    unsafe { Scalars::of(plan).values }
}

/// Says which table a node reads that has none opened by PostgreSQL.
///
/// # Safety
/// A node of ours; a table that stays open while the node is in execution.
pub unsafe fn reads(plan: *mut pg_sys::PlanState, table: pg_sys::Relation) {
    // SAFETY: the caller's promise.
    unsafe { Scalars::of(plan).table = table }
}

/// The table that a node reads.
///
/// # Safety
/// A node of ours.
pub unsafe fn table(plan: *mut pg_sys::PlanState) -> pg_sys::Relation {
    // SAFETY: the caller's promise: a custom scan's state begins with that of a scan.
    unsafe {
        let opened = (*plan.cast::<pg_sys::ScanState>()).ss_currentRelation;
        if opened.is_null() {
            Scalars::of(plan).table
        } else {
            opened
        }
    }
}

/// Where a node evaluates conditions on one column.
///
/// # Safety
/// A node of ours.
pub unsafe fn room(plan: *mut pg_sys::PlanState) -> *mut Room {
    // SAFETY: the caller's promise.
    unsafe { &raw mut Scalars::of(plan).room }
}

/// The state of an expression of a node's, which is the same whenever the node starts.
///
/// # Safety
/// A node of ours, and a live expression.
pub unsafe fn initialised(
    expression: *mut pg_sys::Expr,
    plan: *mut pg_sys::PlanState,
) -> *mut pg_sys::ExprState {
    // SAFETY: the caller's promise.
    unsafe { Scalars::of(plan).state(expression, plan) }
}

/// The value of an expression without columns; `None` is NULL. A value by reference lives until the node starts again.
///
/// # Safety
/// `expression` is live and without Vars; `plan` is a node of ours that has [started](start).
pub unsafe fn evaluate(
    expression: *mut pg_sys::Expr,
    plan: *mut pg_sys::PlanState,
) -> Option<pg_sys::Datum> {
    // SAFETY: the caller's promise; the switch back happens also when an ERROR passes, as PostgreSQL resets it.
    unsafe {
        let scalars = Scalars::of(plan);
        if !scalars.has_row && is_noticed(expression.cast(), (*plan).state) {
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
        (!is_null).then_some(datum)
    }
}

/// Whether the table that a node reads has a row for its snapshot.
unsafe fn has_row(plan: *mut pg_sys::PlanState) -> bool {
    // SAFETY: the caller's node, in execution.
    unsafe {
        let table = table(plan);
        table.is_null()
            || scan::has_row(
                OpenTable::new(table),
                Snapshot::new((*(*plan).state).es_snapshot),
            )
    }
}

/// Whether evaluating an expression may be noticed otherwise than by its value: it fails, or a subquery is run for it.
/// Times that differ from now by an interval, what dashboards ask for, are taken not to.
unsafe fn is_noticed(expression: *mut pg_sys::Node, estate: *mut pg_sys::EState) -> bool {
    use pg_sys::NodeTag::*;
    // SAFETY: the caller has a live expression; each node is read as what its tag says.
    unsafe {
        tree::walk_expression(expression, &mut |node, _| match (*node).type_ {
            T_Const | T_RelabelType | T_List | T_SQLValueFunction => false,
            T_Param => {
                let parameter = node.cast::<pg_sys::Param>();
                (*parameter).paramkind == pg_sys::ParamKind::PARAM_EXEC && {
                    let values = (*estate).es_param_exec_vals;
                    let value = values.add((*parameter).paramid as usize);
                    !(*value).execPlan.is_null()
                }
            }
            T_OpExpr => !is_shift_of_time((*node.cast::<pg_sys::OpExpr>()).opfuncid),
            T_FuncExpr => !is_shift_of_time((*node.cast::<pg_sys::FuncExpr>()).funcid),
            _ => true,
        })
    }
}

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

/// Whether an expression divides by something else than a constant other than zero, by an operator of PostgreSQL's own.
///
/// # Safety
/// `expression` is live.
pub unsafe fn may_divide_by_zero(expression: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller's promise; each node is read as what its tag says.
    unsafe {
        tree::walk_expression(expression, &mut |node, _| {
            if (*node).type_ != pg_sys::NodeTag::T_OpExpr {
                return false;
            }
            let operation = node.cast::<pg_sys::OpExpr>();
            let function = (*operation).opfuncid.to_u32();
            if !DIVISIONS.contains(&function) {
                return false;
            }
            let Some(divisor) = nodes::list::<pg_sys::Node>((*operation).args).nth(1) else {
                return false;
            };
            if (*divisor).type_ != pg_sys::NodeTag::T_Const {
                return true;
            }
            let divisor = &*divisor.cast::<pg_sys::Const>();
            // Whether a value by reference is zero is not known here.
            divisor.constisnull || !divisor.constbyval || divisor.constvalue.value() == 0
        })
    }
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
