//! What a plan stores for its execution, in lists that PostgreSQL copies and adjusts.
//!
//! | list of the plan | content |
//! |---|---|
//! | `custom_private` | the node's numbers; nodes of its own; the reasons for what is not vectorised, as strings |
//! | `custom_exprs` | expressions over the scanned table, or the parameters of the expressions in `custom_scan_tlist` |
//! | `custom_scan_tlist` | for a node that stands for more than a scan of a table: the node's expressions |
//!
//! A path holds the three lists and the table's range-table index in its `custom_private`, so its plan takes them over
//! without change.

use pgrx::pg_sys;

use super::node::Planned;
use crate::pg::exec::node::CustomPlan;
use crate::pg::{nodes, ports, tree};
use crate::planner::reasons::{self, About};

/// The place of the reasons in `custom_private`.
const REASONS: i32 = 2;

/// The data that a path or plan stores.
pub struct PrivateData {
    /// The range-table index of the table.
    pub index: u32,
    pub numbers: Vec<i32>,
    pub nodes: *mut pg_sys::List,
    pub expressions: *mut pg_sys::List,
    pub targets: *mut pg_sys::List,
}

impl PrivateData {
    /// The list that a path stores.
    ///
    /// # Safety
    /// The lists are live or null.
    pub unsafe fn to_path_list(&self) -> *mut pg_sys::List {
        // SAFETY: the caller's lists are live or null.
        unsafe {
            let index = nodes::integers(&[self.index as i32]);
            tree::list(&[self.to_plan_list(), self.expressions, self.targets, index])
        }
    }

    /// The plan's `custom_private`, without reasons.
    unsafe fn to_plan_list(&self) -> *mut pg_sys::List {
        // SAFETY: the caller's lists are live or null.
        unsafe {
            tree::list(&[
                nodes::integers(&self.numbers),
                self.nodes,
                std::ptr::null_mut(),
            ])
        }
    }
}

impl Planned {
    /// The plan, as far as it is filled in.
    pub fn plan(&self) -> CustomPlan<'_> {
        // SAFETY: the callback made the plan, which is live.
        unsafe { CustomPlan::of(self.scan) }
    }

    /// Moves the lists of the [path](PrivateData::to_path_list) into the plan, and returns the index of the table.
    ///
    /// # Safety
    /// The path stores such a list.
    pub unsafe fn take_path_lists(&self) -> u32 {
        // SAFETY: the caller's path has four lists.
        unsafe {
            let part = |part| ports::list_nth::<pg_sys::List>((*self.path).custom_private, part);
            (*self.scan).custom_private = part(0);
            (*self.scan).custom_exprs = part(1);
            (*self.scan).custom_scan_tlist = part(2);
            nodes::integers_of(part(3))[0] as u32
        }
    }

    /// Stores data in the plan that no path has stored.
    ///
    /// # Safety
    /// The lists are live or null.
    pub unsafe fn store(&self, data: &PrivateData) {
        // SAFETY: the caller's lists are live or null.
        unsafe {
            (*self.scan).custom_private = data.to_plan_list();
            (*self.scan).custom_exprs = data.expressions;
            (*self.scan).custom_scan_tlist = data.targets;
        }
    }

    /// Splits the conditions of a scan: those of `pushed` that the plan has to evaluate, in their order, and all others,
    /// in the order in which PostgreSQL would evaluate them.
    ///
    /// # Safety
    /// `pushed` is a live list of the planner's `RestrictInfo`, or null.
    pub unsafe fn split_quals(
        &self,
        pushed: *mut pg_sys::List,
    ) -> (*mut pg_sys::List, *mut pg_sys::List) {
        // SAFETY: the planner's lists are live.
        unsafe {
            let (mut kept, mut vectorised) = (std::ptr::null_mut(), std::ptr::null_mut());
            for clause in nodes::list::<pg_sys::RestrictInfo>(pushed) {
                if pg_sys::list_member_ptr(self.clauses, clause.cast()) {
                    vectorised = pg_sys::lappend(vectorised, (*clause).clause.cast());
                }
            }
            for clause in nodes::list::<pg_sys::RestrictInfo>(self.clauses) {
                if !pg_sys::list_member_ptr(pushed, clause.cast()) {
                    kept = pg_sys::lappend(kept, clause.cast());
                }
            }
            (vectorised, pg_sys::extract_actual_clauses(kept, false))
        }
    }

    /// Stores the reasons for what is not vectorised.
    ///
    /// # Safety
    /// The plan has its [lists](Self::take_path_lists).
    pub unsafe fn store_reasons(&self, index: u32, about: Option<About>) {
        // SAFETY: the caller's plan has a list with a place for the reasons.
        unsafe {
            let reasons = reasons::reason_list(crate::pg::tree::plan_node(self.root), index, about);
            tree::list_set((*self.scan).custom_private, REASONS, reasons);
        }
    }
}

/// The numbers that a plan stores.
pub fn numbers(plan: CustomPlan<'_>) -> Vec<i32> {
    // SAFETY: a plan of this extension stores its numbers first.
    unsafe { nodes::integers_of(ports::list_nth(plan.private(), 0)) }
}

/// The nodes that a plan stores.
pub fn nodes(plan: CustomPlan<'_>) -> *mut pg_sys::List {
    // SAFETY: a plan of this extension stores its nodes second.
    unsafe { ports::list_nth(plan.private(), 1) }
}

/// The reasons that a plan stores, as strings.
pub fn reasons(plan: CustomPlan<'_>) -> *mut pg_sys::List {
    // SAFETY: a plan of this extension stores its reasons third.
    unsafe { ports::list_nth(plan.private(), REASONS) }
}

/// A target list that is being made, with the parameters of its expressions.
pub struct Targets {
    pub entries: *mut pg_sys::List,
    pub parameters: *mut pg_sys::List,
}

impl Targets {
    /// An empty target list.
    pub fn new() -> Targets {
        Targets {
            entries: std::ptr::null_mut(),
            parameters: std::ptr::null_mut(),
        }
    }

    /// Adds an expression that the node evaluates and does not return. PostgreSQL takes the entries of this list for
    /// columns of the node's rows: it would read an equal expression of the query's own target list from a column that
    /// is never written. So the expression is wrapped into a relabelling to its own type, which no query contains;
    /// [`hidden`] unwraps it.
    ///
    /// # Safety
    /// The expression is live.
    pub unsafe fn push_hidden(&mut self, expression: *mut pg_sys::Node) {
        // SAFETY: the caller's expression is live.
        unsafe {
            let relabelled = pg_sys::makeRelabelType(
                expression.cast(),
                pg_sys::exprType(expression),
                pg_sys::exprTypmod(expression),
                pg_sys::exprCollation(expression),
                pg_sys::CoercionForm::COERCE_IMPLICIT_CAST,
            );
            self.push(relabelled.cast());
        }
    }

    /// Adds an expression whose value the node returns.
    ///
    /// # Safety
    /// The expression is live.
    pub unsafe fn push(&mut self, expression: *mut pg_sys::Node) {
        // SAFETY: the caller's expression is live.
        unsafe {
            let number = ports::list_length(self.entries) as i16 + 1;
            let name = std::ptr::null_mut();
            let entry = pg_sys::makeTargetEntry(expression.cast(), number, name, false);
            self.entries = pg_sys::lappend(self.entries, entry.cast());
            nodes::parameters(expression, &mut self.parameters);
        }
    }
}

/// The expression of an entry that [`Targets::push_hidden`] added.
pub fn hidden(entry: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: `push_hidden` made the entry as a relabelling.
    unsafe { (*entry.cast::<pg_sys::RelabelType>()).arg.cast() }
}

/// A column that identifies a table, also after PostgreSQL has renumbered the range table.
pub fn table_column(index: u32) -> *mut pg_sys::Node {
    let (column, none) = (pg_sys::TableOidAttributeNumber as i16, pg_sys::InvalidOid);
    // SAFETY: makes a node in the current memory context.
    unsafe { pg_sys::makeVar(index as i32, column, pg_sys::OIDOID, -1, none, 0).cast() }
}

/// The range-table index of a [`table_column`].
pub fn table_of(column: *mut pg_sys::Node) -> u32 {
    // SAFETY: `table_column` made the node as a Var.
    unsafe { (*column.cast::<pg_sys::Var>()).varno as u32 }
}
