//! What a plan remembers, in the lists that PostgreSQL copies and adjusts, and how its path hands that over.
//!
//! | list of the plan | what |
//! |---|---|
//! | `custom_private` | the node's numbers; nodes of its own; why something is not vectorised, as strings |
//! | `custom_exprs` | expressions over the scanned table, or the parameters of what stands in the next list |
//! | `custom_scan_tlist` | of a node that stands for more than a scan of a table: expressions, which PostgreSQL adjusts there too |
//!
//! A path holds the three lists and the table's index in its `custom_private`, so its plan takes them as they are.

use pgrx::pg_sys;

use super::node::Planned;
use crate::pg::{nodes, ports, tree};
use crate::planner::reasons::{self, About};

/// The place of the reasons among what is private.
const REASONS: i32 = 2;

/// What a path hands over to its plan.
pub struct Remembered {
    /// The range-table index of the table.
    pub index: u32,
    pub numbers: Vec<i32>,
    pub nodes: *mut pg_sys::List,
    pub expressions: *mut pg_sys::List,
    pub targets: *mut pg_sys::List,
}

impl Remembered {
    /// As what a path remembers.
    ///
    /// # Safety
    /// Live lists, or null.
    pub unsafe fn of_path(&self) -> *mut pg_sys::List {
        // SAFETY: the caller's promise.
        unsafe {
            let index = nodes::integers(&[self.index as i32]);
            tree::list(&[self.private(), self.expressions, self.targets, index])
        }
    }

    /// The plan's own list, still without reasons.
    unsafe fn private(&self) -> *mut pg_sys::List {
        // SAFETY: live lists, or null.
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
    /// Takes over what the path [remembers](Remembered::of_path); gives the index of the table.
    ///
    /// # Safety
    /// A path that remembers.
    pub unsafe fn take_over(&self) -> u32 {
        // SAFETY: the caller's promise.
        unsafe {
            let part = |part| ports::list_nth::<pg_sys::List>((*self.path).custom_private, part);
            (*self.scan).custom_private = part(0);
            (*self.scan).custom_exprs = part(1);
            (*self.scan).custom_scan_tlist = part(2);
            nodes::integers_of(part(3))[0] as u32
        }
    }

    /// Remembers what no path did.
    ///
    /// # Safety
    /// Live lists, or null.
    pub unsafe fn remember(&self, what: &Remembered) {
        // SAFETY: the caller's promise.
        unsafe {
            (*self.scan).custom_private = what.private();
            (*self.scan).custom_exprs = what.expressions;
            (*self.scan).custom_scan_tlist = what.targets;
        }
    }

    /// The quals of a scan of a table: those of these that are vectorised, in their order, and the others, in the order
    /// in which PostgreSQL would evaluate them.
    ///
    /// # Safety
    /// A live list of the planner's quals, or null.
    pub unsafe fn quals(
        &self,
        pushed: *mut pg_sys::List,
    ) -> (*mut pg_sys::List, *mut pg_sys::List) {
        // SAFETY: the planner's live structures.
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

    /// Notes why something is not vectorised.
    ///
    /// # Safety
    /// A plan that has taken over what it remembers.
    pub unsafe fn note_reasons(&self, index: u32, about: Option<About>) {
        // SAFETY: the caller's promise.
        unsafe {
            let reasons = reasons::reason_list(self.root, index, about);
            tree::list_set((*self.scan).custom_private, REASONS, reasons);
        }
    }
}

/// The numbers of a plan.
///
/// # Safety
/// A plan that remembers.
pub unsafe fn numbers(scan: *mut pg_sys::CustomScan) -> Vec<i32> {
    // SAFETY: the caller's promise.
    unsafe { nodes::integers_of(ports::list_nth((*scan).custom_private, 0)) }
}

/// The nodes of a plan.
///
/// # Safety
/// A plan that remembers.
pub unsafe fn nodes(scan: *mut pg_sys::CustomScan) -> *mut pg_sys::List {
    // SAFETY: the caller's promise.
    unsafe { ports::list_nth((*scan).custom_private, 1) }
}

/// Why something of a plan is not vectorised, as strings.
///
/// # Safety
/// A plan that remembers.
pub unsafe fn reasons(scan: *mut pg_sys::CustomScan) -> *mut pg_sys::List {
    // SAFETY: the caller's promise.
    unsafe { ports::list_nth((*scan).custom_private, REASONS) }
}

/// A target list that is being made, with the parameters of its expressions.
pub struct Targets {
    pub entries: *mut pg_sys::List,
    pub parameters: *mut pg_sys::List,
}

impl Targets {
    /// An empty one.
    pub fn new() -> Targets {
        Targets {
            entries: std::ptr::null_mut(),
            parameters: std::ptr::null_mut(),
        }
    }

    /// Adds an expression that the node evaluates and does not return. PostgreSQL takes what stands in this list for
    /// columns of the node's rows: an equal expression of the query's own target list would be read from a column that
    /// is never written. So this one is wrapped into a relabelling to its own type, which no query has; [`hidden`]
    /// takes it out again.
    ///
    /// # Safety
    /// A live expression.
    pub unsafe fn push_hidden(&mut self, expression: *mut pg_sys::Node) {
        // SAFETY: the caller's promise; makes a node.
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
    /// A live expression.
    pub unsafe fn push(&mut self, expression: *mut pg_sys::Node) {
        // SAFETY: the caller's promise.
        unsafe {
            let number = ports::list_length(self.entries) as i16 + 1;
            let name = std::ptr::null_mut();
            let entry = pg_sys::makeTargetEntry(expression.cast(), number, name, false);
            self.entries = pg_sys::lappend(self.entries, entry.cast());
            nodes::parameters(expression, &mut self.parameters);
        }
    }
}

/// The expression of an entry that was [hidden](Targets::push_hidden).
///
/// # Safety
/// The expression of an entry that [`Targets::push_hidden`] added.
pub unsafe fn hidden(entry: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise.
    unsafe { (*entry.cast::<pg_sys::RelabelType>()).arg.cast() }
}

/// A column of a table that says which one it is, also when indexes are adjusted.
pub fn table_column(index: u32) -> *mut pg_sys::Node {
    let (column, none) = (pg_sys::TableOidAttributeNumber as i16, pg_sys::InvalidOid);
    // SAFETY: makes a node.
    unsafe { pg_sys::makeVar(index as i32, column, pg_sys::OIDOID, -1, none, 0).cast() }
}

/// The index of the table that [`table_column`] was made for.
///
/// # Safety
/// Such a column.
pub unsafe fn table_of(column: *mut pg_sys::Node) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { (*column.cast::<pg_sys::Var>()).varno as u32 }
}
