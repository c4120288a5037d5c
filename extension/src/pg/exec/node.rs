//! A custom scan node, and its plan.

use std::marker::PhantomData;
use std::ptr::NonNull;

use pgrx::pg_sys;

use super::child::Child;
use super::expression::{Projection, RowContext, RowExpression, RowQual};
use super::memory::Memory;
use super::slot::Slot;
use super::table::QueryTable;
use crate::pg::tree::{CustomScan, View};
use crate::pg::{nodes, ports};

/// A custom scan node during one callback.
#[derive(Clone, Copy)]
pub struct ExecNode<'a> {
    node: NonNull<pg_sys::CustomScanState>,
    callback: PhantomData<&'a ()>,
}

impl<'a> ExecNode<'a> {
    /// # Safety
    /// PostgreSQL has initialised the node, and it lives as long as `'a`.
    #[inline]
    pub unsafe fn of(node: *mut pg_sys::CustomScanState) -> ExecNode<'a> {
        ExecNode {
            // SAFETY: the caller's node is live, so the pointer is not null.
            node: unsafe { NonNull::new_unchecked(node) },
            callback: PhantomData,
        }
    }

    /// The node as PostgreSQL's functions take it.
    #[inline]
    pub fn as_raw(self) -> *mut pg_sys::CustomScanState {
        self.node.as_ptr()
    }

    /// The node as a plan's state.
    #[inline]
    pub fn plan_state(self) -> *mut pg_sys::PlanState {
        self.as_raw().cast()
    }

    fn estate(self) -> *mut pg_sys::EState {
        // SAFETY: `of` was promised a live node.
        unsafe { (*self.as_raw()).ss.ps.state }
    }

    /// The node's plan.
    pub fn plan(self) -> CustomPlan<'a> {
        // SAFETY: a custom scan node's plan is a CustomScan, which outlives the node.
        unsafe { CustomPlan::of((*self.as_raw()).ss.ps.plan.cast()) }
    }

    /// The query's snapshot.
    pub fn snapshot(self) -> pg_sys::Snapshot {
        // SAFETY: a live node has an executor state.
        unsafe { (*self.estate()).es_snapshot }
    }

    /// The table that PostgreSQL opened for a node that scans one table.
    pub fn scanned_table(self) -> QueryTable {
        // SAFETY: PostgreSQL closes the table after the node has ended.
        unsafe { QueryTable::of((*self.as_raw()).ss.ss_currentRelation, self.snapshot()) }
    }

    /// A table of the query's range table, which was locked when the plan was made ready.
    pub fn range_table(self, index: u32) -> QueryTable {
        // SAFETY: the index is the plan's own; PostgreSQL closes the table after the node has ended.
        unsafe {
            let relation = pg_sys::ExecGetRangeTableRelation(
                self.estate(),
                index,
                #[cfg(feature = "pg18")]
                false,
            );
            QueryTable::of(relation, self.snapshot())
        }
    }

    /// The object id of a table of the query's range table, which need not be open.
    pub fn range_table_oid(self, index: u32) -> pg_sys::Oid {
        // SAFETY: the index is the plan's own.
        unsafe {
            let tables = (*self.estate()).es_range_table;
            let entry: *mut pg_sys::RangeTblEntry = ports::list_nth(tables, index as i32 - 1);
            (*entry).relid
        }
    }

    /// Memory that lives as long as the query.
    pub fn query_memory(self) -> Memory {
        // SAFETY: the query's memory outlives its nodes.
        unsafe { Memory::of((*self.estate()).es_query_cxt) }
    }

    /// Where the node evaluates its expressions.
    #[inline]
    pub fn context(self) -> RowContext {
        // SAFETY: the node's context outlives the node.
        unsafe { RowContext::of((*self.as_raw()).ss.ps.ps_ExprContext) }
    }

    /// The slot in which the node forms its rows.
    #[inline]
    pub fn scan_slot(self) -> Slot {
        // SAFETY: the node's slot outlives the node.
        unsafe { Slot::of((*self.as_raw()).ss.ss_ScanTupleSlot) }
    }

    /// The slot of the node's result, if the node computes one.
    #[inline]
    pub fn result_slot(self) -> Option<Slot> {
        // SAFETY: the node's slot outlives the node.
        unsafe {
            let slot = (*self.as_raw()).ss.ps.ps_ResultTupleSlot;
            (!slot.is_null()).then(|| Slot::of(slot))
        }
    }

    /// The conditions on the node's rows.
    #[inline]
    pub fn qual(self) -> RowQual {
        // SAFETY: the node's state outlives the node.
        unsafe { RowQual::of((*self.as_raw()).ss.ps.qual) }
    }

    /// The computation of the node's result.
    #[inline]
    pub fn projection(self) -> Projection {
        // SAFETY: the node's state outlives the node.
        unsafe { Projection::of((*self.as_raw()).ss.ps.ps_ProjInfo) }
    }

    /// Initialises an expression of the node's plan without compiling it, in the current memory context. Compilation
    /// takes milliseconds and saves microseconds.
    pub fn initialise_uncompiled(self, expression: *mut pg_sys::Node) -> RowExpression {
        // SAFETY: the expression is live, and its state is allocated in memory that outlives the node's execution.
        unsafe {
            let estate = self.estate();
            let jit = (*estate).es_jit_flags;
            (*estate).es_jit_flags = jit & !(pg_sys::PGJIT_EXPR as i32);
            let state = pg_sys::ExecInitExpr(expression.cast(), self.plan_state());
            (*estate).es_jit_flags = jit;
            RowExpression::of(state)
        }
    }

    /// Initialises a list of conditions over the node's rows.
    pub fn initialise_qual(self, conditions: *mut pg_sys::List) -> RowQual {
        // SAFETY: the conditions are the plan's; their state is allocated in the query's memory.
        unsafe {
            let state = pg_sys::ExecInitQual(conditions, self.plan_state());
            RowQual::of(state)
        }
    }

    /// Whether a row is checked once more that was changed concurrently (`EvalPlanQual`).
    pub fn is_rechecking(self) -> bool {
        // SAFETY: a live node has an executor state.
        unsafe { !(*self.estate()).es_epq_active.is_null() }
    }

    /// The parameters that have changed since the last scan; null for none.
    pub fn changed_parameters(self) -> *mut pg_sys::Bitmapset {
        // SAFETY: `of` was promised a live node.
        unsafe { (*self.as_raw()).ss.ps.chgParam }
    }

    /// Initialises a plan as the node's last child.
    pub fn begin_child(self, plan: *mut pg_sys::Plan, flags: i32) -> Child {
        // SAFETY: the plan is one of the node's own; the list grows in the query's memory.
        self.query_memory().enter(|| unsafe {
            let child = pg_sys::ExecInitNode(plan, self.estate(), flags);
            let node = self.as_raw();
            (*node).custom_ps = pg_sys::lappend((*node).custom_ps, child.cast());
            Child::of(child)
        })
    }

    /// The flags with which the query was started.
    pub fn flags(self) -> i32 {
        // SAFETY: a live node has an executor state.
        unsafe { (*self.estate()).es_top_eflags }
    }

    /// The children that EXPLAIN shows: those that execution has begun, unless one is [replaced](Self::show_child).
    pub fn children(self) -> Vec<Child> {
        // SAFETY: the list has states that `begin_child` or `show_child` stored.
        unsafe {
            let children = nodes::list::<pg_sys::PlanState>((*self.as_raw()).custom_ps);
            children.map(|child| Child::of(child)).collect()
        }
    }

    /// How many children execution has begun.
    pub fn child_count(self) -> usize {
        // SAFETY: `of` was promised a live node.
        unsafe { ports::list_length((*self.as_raw()).custom_ps) as usize }
    }

    /// Shows another plan in place of a child in EXPLAIN.
    pub fn show_child(self, index: usize, shown: Child) {
        assert!(index < self.child_count(), "no such child");
        // SAFETY: the list has such an element, and only this node changes it.
        unsafe {
            let children = (*self.as_raw()).custom_ps;
            (*(*children).elements.add(index)).ptr_value = shown.as_raw().cast();
        }
    }
}

/// The plan of a custom scan node.
#[derive(Clone, Copy)]
pub struct CustomPlan<'a> {
    scan: NonNull<pg_sys::CustomScan>,
    plan: PhantomData<&'a ()>,
}

impl<'a> CustomPlan<'a> {
    /// # Safety
    /// The plan is one that a node of this extension made, and lives as long as `'a`.
    pub unsafe fn of(scan: *mut pg_sys::CustomScan) -> CustomPlan<'a> {
        CustomPlan {
            // SAFETY: the caller's plan is live, so the pointer is not null.
            scan: unsafe { NonNull::new_unchecked(scan) },
            plan: PhantomData,
        }
    }

    /// Whether several processes execute the plan, each of which returns a part of the rows.
    pub fn is_parallel_aware(self) -> bool {
        // SAFETY: `of` was promised a live plan.
        unsafe { self.scan.as_ref().scan.plan.parallel_aware }
    }

    /// A plan that is being made.
    pub fn of_view(scan: CustomScan<'a>) -> CustomPlan<'a> {
        // SAFETY: a view's structure is live.
        unsafe { CustomPlan::of(scan.as_ptr()) }
    }

    /// The plan as PostgreSQL's functions take it.
    pub fn as_raw(self) -> *mut pg_sys::CustomScan {
        self.scan.as_ptr()
    }

    /// The range-table index of the table that is scanned; 0 if the node stands for more than a scan.
    pub fn scanned_index(self) -> u32 {
        // SAFETY: `of` was promised a live plan.
        unsafe { (*self.as_raw()).scan.scanrelid }
    }

    /// What the node computes as its result.
    pub fn target_list(self) -> *mut pg_sys::List {
        // SAFETY: `of` was promised a live plan.
        unsafe { (*self.as_raw()).scan.plan.targetlist }
    }

    /// The conditions on the node's rows.
    pub fn quals(self) -> *mut pg_sys::List {
        // SAFETY: `of` was promised a live plan.
        unsafe { (*self.as_raw()).scan.plan.qual }
    }

    /// `custom_exprs`
    pub fn expressions(self) -> *mut pg_sys::List {
        // SAFETY: `of` was promised a live plan.
        unsafe { (*self.as_raw()).custom_exprs }
    }

    /// The expressions of `custom_scan_tlist`.
    pub fn entries(self) -> impl Iterator<Item = *mut pg_sys::Node> {
        // SAFETY: `of` was promised a live plan, whose list has target entries.
        unsafe {
            nodes::list::<pg_sys::TargetEntry>((*self.as_raw()).custom_scan_tlist)
                .map(|entry| (*entry).expr.cast())
        }
    }

    /// `custom_private`
    pub fn private(self) -> *mut pg_sys::List {
        // SAFETY: `of` was promised a live plan.
        unsafe { (*self.as_raw()).custom_private }
    }

    /// The plans of the node's children.
    pub fn children(self) -> impl Iterator<Item = *mut pg_sys::Plan> {
        // SAFETY: `of` was promised a live plan, whose list has plans.
        unsafe { nodes::list((*self.as_raw()).custom_plans) }
    }

    /// The expected bytes of a result row.
    pub fn width(self) -> usize {
        // SAFETY: `of` was promised a live plan.
        unsafe { (*self.as_raw()).scan.plan.plan_width.max(0) as usize }
    }
}

/// Initialises an expression that belongs to no node, in the current memory context.
pub fn initialise(expression: *mut pg_sys::Expr) -> RowExpression {
    // SAFETY: the expression is of a live plan.
    unsafe { RowExpression::of(pg_sys::ExecInitExpr(expression, std::ptr::null_mut())) }
}

/// Initialises a list of conditions that belong to no node, in the current memory context.
pub fn initialise_qual(conditions: *mut pg_sys::List) -> RowQual {
    // SAFETY: the conditions are of a live plan.
    unsafe { RowQual::of(pg_sys::ExecInitQual(conditions, std::ptr::null_mut())) }
}

/// A new context for expressions, which lives as long as the query.
pub fn new_context(node: ExecNode<'_>) -> RowContext {
    // SAFETY: the executor's state is live, and frees the context with the query.
    unsafe { RowContext::of(pg_sys::CreateExprContext(node.estate())) }
}
