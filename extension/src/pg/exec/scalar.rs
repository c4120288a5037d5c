//! The expressions of a node that PostgreSQL evaluates: their states, and their values until the node starts again.
//!
//! A node *initialises* an expression once, however often it starts again, and never compiles it: compiling takes
//! milliseconds and saves microseconds.

use pgrx::pg_sys;

use super::child::Child;
use super::expression::{RowContext, RowExpression};
use super::memory::Memory;
use super::node::{Estate, ExecNode};
use super::slot::Slot;
use crate::pg::executor;
use crate::pg::functions::executor as functions;
use crate::pg::snapshot::Snapshot;
use crate::pg::table::OpenTable;
use crate::pg::tree::view::Field;
use crate::pg::tree::{Expr, List, View, plan_field, plan_node};
use crate::pg::typed_datum::TypedDatum;

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
    /// Where expressions over the table's columns are evaluated.
    context: *mut pg_sys::ExprContext,
    /// A row of the table in which the columns of one expression at a time are set.
    slot: *mut pg_sys::TupleTableSlot,
    /// The number of values and rows for which such expressions were evaluated.
    evaluated: u64,
}

/// The beginning of every node of this library.
#[repr(C)]
pub struct Base {
    pub node: pg_sys::CustomScanState,
    scalars: Scalars,
}

/// The state of a node's expressions. The borrow ends before anything else borrows it.
fn scalars<'a>(node: Child) -> &'a mut Scalars {
    // Handles are made of nodes of this library alone.
    let base: &'a mut Base = executor::of_node(node);
    &mut base.scalars
}

/// Starts a node, which uses no value of its last start any more: frees those values.
pub fn start(node: ExecNode<'_>) {
    let scalars = scalars(node.as_child());
    if scalars.values.is_null() {
        let memory = functions::AllocSetContextCreateInternal(
            node.query_memory(),
            c"lanes scalars",
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_SMALL_MAXSIZE as usize,
        );
        scalars.values = memory.as_ptr();
    }
    let values: Option<Memory> = plan_field(scalars.values);
    values.into_iter().for_each(Memory::reset);
}

/// Sets the table that a node reads, where PostgreSQL opened none for it. The table stays open while the node is in
/// execution.
pub fn reads(node: ExecNode<'_>, table: OpenTable<'static>) {
    scalars(node.as_child()).table = table.as_ptr();
}

/// The number of values and rows for which a node has evaluated expressions over its table's columns.
pub fn evaluated(node: ExecNode<'_>) -> u64 {
    scalars(node.as_child()).evaluated
}

/// The state of an expression of a node's plan, initialised at its first use. It stays the same when the node starts
/// again.
pub(super) fn initialised(node: Child, expr: Expr<'_>) -> RowExpression {
    let scalars = scalars(node);
    let pairs: List<'_, Expr<'_>> = plan_field(scalars.initialised);
    let mut places = (0..pairs.len()).step_by(2);
    let known = places.find(|&place| {
        pairs
            .get(place)
            .is_some_and(|known| known.is_at(expr.as_ptr()))
    });
    if let Some(state) = known.and_then(|place| pairs.get(place + 1)) {
        // The second of a pair is a state.
        return plan_node(state.as_ptr().cast());
    }
    let estate = node.estate();
    estate.memory().enter(|| {
        let jit = estate.es_jit_flags();
        estate.set_jit_flags(jit & !(pg_sys::PGJIT_EXPR as i32));
        let state = functions::ExecInitExpr(expr, Some(node));
        estate.set_jit_flags(jit);
        let mut pairs = pairs;
        pairs.push(expr);
        pairs.push(plan_node(state.as_ptr().cast()));
        scalars.initialised = pairs.as_ptr();
        state
    })
}

/// A row of the node's table, in which expressions over its columns look for their values.
#[derive(Clone, Copy)]
pub struct TableRow {
    node: Child,
    /// Where the expressions are evaluated.
    pub context: RowContext,
    /// The row.
    pub slot: Slot,
}

impl TableRow {
    /// Counts values or rows for which an expression was evaluated.
    pub fn count(self, evaluated: usize) {
        scalars(self.node).evaluated += evaluated as u64;
    }
}

/// A node of this library that has [started](start).
#[derive(Clone, Copy, Debug)]
pub struct RunningNode(Child);

impl RunningNode {
    /// A node of this library that has started. The result, and all that is translated with it, is used
    /// until the node starts again at most.
    pub fn of(node: ExecNode<'_>) -> RunningNode {
        RunningNode(node.as_child())
    }

    /// The state of the query's execution.
    pub fn estate(self) -> Estate {
        self.0.estate()
    }

    /// The memory that lives until the node starts again.
    pub fn memory(self) -> Memory {
        plan_node(scalars(self.0).values)
    }

    /// The state of an expression of the node's plan.
    pub fn initialised(self, expr: Expr<'_>) -> RowExpression {
        initialised(self.0, expr)
    }

    /// The table that the node reads, and the query's snapshot; `None` if it reads none.
    pub fn table<'a>(self) -> Option<(OpenTable<'a>, Option<Snapshot<'a>>)> {
        let opened = self.0.opened_table();
        let relation = match opened.is_null() {
            true => scalars(self.0).table,
            false => opened,
        };
        let table = (!relation.is_null()).then(|| plan_field::<OpenTable<'a>>(relation))?;
        Some((table, self.estate().snapshot()))
    }

    /// The row of the node's table in which expressions look for their values, made at its first use.
    ///
    /// # Errors
    /// If the node has no table.
    pub fn table_row(self) -> Result<TableRow, String> {
        if scalars(self.0).context.is_null() {
            let Some((table, _)) = self.table() else {
                return Err("a condition on no table".into());
            };
            let (slot, context) = self.estate().memory().enter(|| {
                // A copy is not registered with a resource owner.
                let descriptor = functions::CreateTupleDescCopy(table.descriptor());
                let slot = functions::ExecInitExtraTupleSlot(self.estate(), descriptor);
                (slot, functions::CreateExprContext(self.estate()))
            });
            let mut row = slot.writer();
            row.clear_from(0);
            row.set_table(table.oid());
            row.store();
            context.set_scan_row(slot);
            let scalars = scalars(self.0);
            (scalars.slot, scalars.context) = (slot.raw(), context.as_ptr());
        }
        let scalars = scalars(self.0);
        Ok(TableRow {
            node: self.0,
            context: plan_node(scalars.context),
            slot: plan_field(scalars.slot),
        })
    }

    /// Whether the query's snapshot is known to see a row of the table.
    pub fn has_row(self) -> bool {
        scalars(self.0).has_row
    }

    /// Notes that the query's snapshot sees a row of the table.
    pub fn note_row(self) {
        scalars(self.0).has_row = true;
    }

    /// Whether a parameter, of those that the executor sets, is the result of a subquery that has not run yet.
    pub fn awaits_subquery(self, parameter: i32) -> bool {
        let statement = self.estate().statement();
        let count = statement.map_or(0, |statement| statement.paramExecTypes().iter().count());
        assert!(
            (0..count as i32).contains(&parameter),
            "the query has {count} parameters"
        );
        executor::awaits_plan(self.estate(), parameter as usize)
    }

    /// The value of an expression of the node's plan that has no columns; `None` is NULL. A value by reference lives
    /// until the node starts again.
    pub fn evaluate(self, expr: Expr<'_>) -> Option<TypedDatum> {
        let state = self.initialised(expr);
        let context = self.0.context();
        let memory = self.memory();
        let (datum, is_null) =
            executor::guarded(|| memory.enter(|| executor::evaluate_here(state, context)));
        (!is_null).then(|| TypedDatum::new(datum, expr.type_of()))
    }
}
