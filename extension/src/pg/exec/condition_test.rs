//! A condition on one column that PostgreSQL evaluates value by value instead of row by row.
//!
//! ```text
//! values of a vector that are new ──► a slot with this column alone ──► the condition's state ──► true, false, NULL
//! ```
//! Slot, context and the condition's state belong to the node and live as long as the query. The results belong to the
//! engine's predicate and are dropped when the node starts again. So a condition is initialised once, and a subquery in
//! it that has no parameters is run once.
//!
//! One error boundary surrounds the evaluation of many values, because a boundary costs as much as a simple condition.

use lanes_columnar::vector::external_predicate::{Ternary, ValueTest};
use pgrx::pg_sys;

use super::scalar::{self, RunningNode};
use crate::pg::descriptor::Descriptor;
use crate::pg::explain::Explain;
use crate::pg::tree::{Expr, Kind, View, walk};
use crate::pg::{nodes, ports};

unsafe extern "C-unwind" {
    // Called without the bindings' error boundary: the loop over values has one for all of them.
    #[link_name = "MemoryContextReset"]
    pub(super) fn reset(context: pg_sys::MemoryContext);
}

/// The state of a node's conditions on one column, and of its functions of rows; all zero at first.
#[repr(C)]
pub struct Room {
    pub(super) context: *mut pg_sys::ExprContext,
    /// A row of the table in which the columns of one expression at a time are set.
    pub(super) slot: *mut pg_sys::TupleTableSlot,
    /// The number of values and rows that were evaluated.
    pub(super) evaluated: u64,
}

impl Room {
    /// Creates slot and context, unless they exist.
    ///
    /// # Safety
    /// `plan` is a node in execution whose table is open.
    pub(super) unsafe fn open(&mut self, plan: *mut pg_sys::PlanState) -> Result<(), String> {
        // SAFETY: slot and context are allocated in the query's memory.
        unsafe {
            if !self.context.is_null() {
                return Ok(());
            }
            let table = scalar::table(plan);
            if table.is_null() {
                return Err("a condition on no table".into());
            }
            let estate = (*plan).state;
            let before = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
            // A copy is not registered with a resource owner.
            let descriptor = pg_sys::CreateTupleDescCopy((*table).rd_att);
            let operations = &raw const pg_sys::TTSOpsVirtual;
            let slot = pg_sys::ExecInitExtraTupleSlot(estate, descriptor, operations);
            let columns = (*descriptor).natts as usize;
            std::slice::from_raw_parts_mut((*slot).tts_isnull, columns).fill(true);
            ports::ExecStoreVirtualTuple(slot);
            (*slot).tts_tableOid = (*table).rd_id;
            self.slot = slot;
            self.context = pg_sys::CreateExprContext(estate);
            (*self.context).ecxt_scantuple = slot;
            pg_sys::MemoryContextSwitchTo(before);
            Ok(())
        }
    }
}

/// A condition on one column.
pub struct ConditionTest {
    state: *mut pg_sys::ExprState,
    room: *mut Room,
    attribute: usize,
    /// The size in bytes of values that are passed by value; `None` for values by reference.
    width: Option<u8>,
}

impl ConditionTest {
    /// A test by a condition that has no columns but the attribute.
    ///
    /// # Errors
    /// If the node has no table.
    pub fn new(
        condition: Expr<'_>,
        attribute: usize,
        node: RunningNode,
    ) -> Result<ConditionTest, String> {
        let plan = node.as_ptr();
        // SAFETY: the node has started and its table is open; the condition is part of its plan.
        unsafe {
            let room = scalar::room(plan);
            (*room).open(plan)?;
            let descriptor = Descriptor::at((*(*room).slot).tts_tupleDescriptor);
            let column = descriptor.attribute(attribute);
            let width = column.attbyval.then_some(column.attlen as u8);
            let state = scalar::initialised(condition.as_ptr().cast(), plan);
            Ok(ConditionTest {
                state,
                room,
                attribute,
                width,
            })
        }
    }

    /// Whether the column's values are passed by value.
    pub fn is_by_value(&self) -> bool {
        self.width.is_some()
    }

    /// A value as a datum, extended by its sign as PostgreSQL's macros do.
    fn datum(&self, value: u64) -> pg_sys::Datum {
        match self.width {
            Some(1) => pg_sys::Datum::from(value as i8),
            Some(2) => pg_sys::Datum::from(value as i16),
            Some(4) => pg_sys::Datum::from(value as i32),
            _ => pg_sys::Datum::from(value as usize),
        }
    }

    /// Evaluates the condition for the slot.
    ///
    /// # Safety
    /// An error boundary surrounds the call, and no frame between them has anything to drop.
    unsafe fn evaluate(&self) -> Ternary {
        // SAFETY: state, context and slot live as long as the query.
        unsafe {
            let context = (*self.room).context;
            let memory = (*context).ecxt_per_tuple_memory;
            if !(*memory).isReset || !(*memory).firstchild.is_null() {
                reset(memory);
            }
            let mut is_null = false;
            // The first evaluation replaces the function by a faster one.
            let Some(evaluate) = (*self.state).evalfunc else {
                return Ternary::Null;
            };
            let datum = evaluate(self.state, context, &raw mut is_null);
            match (is_null, datum.value() & 0xff != 0) {
                (true, _) => Ternary::Null,
                (false, true) => Ternary::True,
                (false, false) => Ternary::False,
            }
        }
    }

    /// Evaluates the condition for values until an interrupt is pending, but at least for one. Returns the number of
    /// values that were evaluated.
    ///
    /// # Safety
    /// The values are of the column. An error boundary surrounds the call, and no frame between
    /// them has anything to drop.
    unsafe fn answer(&self, values: &[u64], answers: &mut [Ternary]) -> usize {
        let mut count = 0;
        // SAFETY: slot and context live as long as the query; the boundary restores the context when an ERROR passes.
        unsafe {
            let slot = (*self.room).slot;
            let before = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = (*(*self.room).context).ecxt_per_tuple_memory;
            *(*slot).tts_isnull.add(self.attribute) = false;
            for (value, answer) in values.iter().zip(answers) {
                *(*slot).tts_values.add(self.attribute) = self.datum(*value);
                *answer = self.evaluate();
                count += 1;
                if std::ptr::read_volatile(&raw const pg_sys::InterruptPending) != 0 {
                    break;
                }
            }
            pg_sys::CurrentMemoryContext = before;
        }
        count
    }
}

impl ValueTest for ConditionTest {
    unsafe fn test(&mut self, values: &[u64], answers: &mut [Ternary]) {
        let mut done = 0;
        while done < values.len() {
            ports::CHECK_FOR_INTERRUPTS();
            let (values, answers) = (&values[done..], &mut answers[done..]);
            // SAFETY: the frames within the boundary have nothing to drop, and do not panic.
            done += unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| self.answer(values, answers)) };
        }
        // SAFETY: the node's state lives as long as the query.
        unsafe { (*self.room).evaluated += values.len() as u64 }
    }

    fn test_null(&mut self) -> Ternary {
        // SAFETY: slot and context live as long as the query; the boundary restores the context when an ERROR passes.
        unsafe {
            (*self.room).evaluated += 1;
            *(*(*self.room).slot).tts_isnull.add(self.attribute) = true;
            let memory = (*(*self.room).context).ecxt_per_tuple_memory;
            let before = pg_sys::MemoryContextSwitchTo(memory);
            let answer = pg_sys::ffi::pg_guard_ffi_boundary(|| self.evaluate());
            pg_sys::MemoryContextSwitchTo(before);
            answer
        }
    }
}

/// Initialises the subqueries of a node's expressions. EXPLAIN shows only subqueries that the node has when it begins.
///
/// # Safety
/// `node` is a node of this library that was just initialised.
pub unsafe fn begin_subplans(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a custom scan's state has a custom scan's plan.
    unsafe {
        let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        // Where no table is scanned, `custom_exprs` holds parameters.
        let expressions = match (*scan).scan.scanrelid {
            0 => (*scan).custom_scan_tlist,
            _ => (*scan).custom_exprs,
        };
        let mut found: Vec<*mut pg_sys::SubPlan> = Vec::new();
        if !expressions.is_null() {
            walk::expression(Expr::at(expressions.cast()), &mut |node, _| {
                if let Kind::SubPlan(subplan) = node.kind() {
                    found.push(subplan.as_ptr());
                }
                false
            });
        }
        for subplan in found {
            let known = nodes::list::<pg_sys::SubPlanState>((*node).ss.ps.subPlan);
            let mut known = known.map(|state| (*(*state).subplan).plan_id);
            if !known.any(|plan| plan == (*subplan).plan_id) {
                scalar::initialised(subplan.cast(), &raw mut (*node).ss.ps);
            }
        }
    }
}

/// Adds the number of values for which a node evaluated conditions to EXPLAIN ANALYZE.
///
/// # Safety
/// `node` is a node of this library.
pub unsafe fn explain(node: *mut pg_sys::CustomScanState, explain: &Explain) {
    // SAFETY: a node of this library.
    let evaluated = unsafe { (*scalar::room(&raw mut (*node).ss.ps)).evaluated };
    if explain.is_analyze() && evaluated > 0 {
        explain.integer(c"Values Evaluated", evaluated);
    }
}
