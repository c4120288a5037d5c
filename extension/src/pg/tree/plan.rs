//! Finished plans.

use std::ffi::CStr;

use pgrx::pg_sys::{self, NodeTag};

use super::expression::Expr;
use super::list::List;
use super::operands::TargetEntry;
use super::query::RangeTblEntry;
use super::tag::Node;
use super::view::{View, views};

views! {
    /// A statement that is planned, or that needs no plan.
    PlannedStmt of PlannedStmt {
        commandType: pg_sys::CmdType::Type;
        hasReturning: bool;
        hasModifyingCTE: bool;
    } {
        planTree: Option<Plan<'p>>;
        subplans: List<'p, Plan<'p>>;
        rtable: List<'p, RangeTblEntry<'p>>;
        utilityStmt: Option<Expr<'p>>;
    } {}

    /// A query in execution.
    QueryDesc of QueryDesc {} {
        plannedstmt: Option<PlannedStmt<'p>>;
    } {}

    /// A node of a plan.
    Plan of Plan {} {
        targetlist: List<'p, TargetEntry<'p>>;
        qual: List<'p, Expr<'p>>;
        lefttree: Option<Plan<'p>>;
        righttree: Option<Plan<'p>>;
    } {}

    /// A join.
    Join of Join {} {
        joinqual: List<'p, Expr<'p>>;
    } {}

    /// A node of this library.
    CustomScan of CustomScan {
        flags: u32;
    } {
        custom_plans: List<'p, Plan<'p>>;
        custom_private: List<'p, Expr<'p>>;
        custom_scan_tlist: List<'p, TargetEntry<'p>>;
    } {
        set_flags = flags: u32;
    } {
        set_children = custom_plans: List<'p, Plan<'p>>;
        set_expressions = custom_exprs: List<'p, Expr<'p>>;
        set_private = custom_private: List<'p, Expr<'p>>;
        set_entries = custom_scan_tlist: List<'p, TargetEntry<'p>>;
    }

    /// Several plans, one after the other.
    Append of Append {} {
        appendplans: List<'p, Plan<'p>>;
    } {}

    /// Several sorted plans, merged.
    MergeAppend of MergeAppend {} {
        mergeplans: List<'p, Plan<'p>>;
    } {}

    /// The rows of a sub-select.
    SubqueryScan of SubqueryScan {} {
        subplan: Option<Plan<'p>>;
    } {}
}

impl QueryDesc<'_> {
    /// Where the rows go; `None` if nowhere.
    pub fn destination(self) -> Option<pg_sys::CommandDest::Type> {
        // SAFETY: a live query, whose receiver is null or live.
        unsafe { (*self.as_ptr()).dest.as_ref() }.map(|receiver| receiver.mydest)
    }
}

impl<'p> Plan<'p> {
    /// The plans whose rows the node reads, without those of a node of this library.
    pub fn inputs(self) -> Vec<Plan<'p>> {
        let children = [self.lefttree(), self.righttree()];
        let mut inputs: Vec<Plan<'p>> = children.into_iter().flatten().collect();
        if let Some(append) = self.downcast::<Append<'p>>() {
            inputs.extend(append.appendplans());
        } else if let Some(append) = self.downcast::<MergeAppend<'p>>() {
            inputs.extend(append.mergeplans());
        } else if let Some(scan) = self.downcast::<SubqueryScan<'p>>() {
            inputs.extend(scan.subplan());
        }
        inputs
    }

    /// The range-table index of the table, if the node is one of PostgreSQL's own that read a table from its first
    /// row to its last, or by the places of rows.
    pub fn table_scanned(self) -> Option<u32> {
        let is_scan = matches!(
            self.tag(),
            NodeTag::T_SeqScan
                | NodeTag::T_SampleScan
                | NodeTag::T_TidScan
                | NodeTag::T_TidRangeScan
        );
        // SAFETY: a live plan; those of scans begin with this structure.
        is_scan.then(|| unsafe { (*self.as_ptr().cast::<pg_sys::Scan>()).scanrelid })
    }

    /// The nested loop that the node is, if it is one.
    pub fn as_nested_loop(self) -> Option<Join<'p>> {
        // SAFETY: a live plan; a nested loop begins with the structure of a join.
        (self.tag() == NodeTag::T_NestLoop).then(|| unsafe { Join::at(self.as_ptr().cast()) })
    }
}

impl<'p> CustomScan<'p> {
    /// The name of the node that executes the plan.
    pub fn name(self) -> &'p CStr {
        // SAFETY: every such plan has methods with a name, which are static.
        unsafe { CStr::from_ptr((*(*self.as_ptr()).methods).CustomName) }
    }

    /// The node as any plan.
    pub fn as_plan(self) -> Plan<'p> {
        // SAFETY: a live plan, which begins with this structure.
        unsafe { Plan::at(self.as_ptr().cast()) }
    }

    /// The range-table index of the table that is scanned; 0 if the node stands for more than a scan.
    pub fn scanned_index(self) -> u32 {
        // SAFETY: a live plan.
        unsafe { (*self.as_ptr()).scan.scanrelid }
    }

    /// Sets the range-table index of the table that is scanned.
    pub fn set_scanned_index(self, index: u32) {
        // SAFETY: a live plan, of which no view lends a reference.
        unsafe { (*self.as_ptr()).scan.scanrelid = index }
    }

    /// Sets the conditions that PostgreSQL evaluates for the node's rows.
    pub fn set_quals(self, quals: List<'p, Expr<'p>>) {
        // SAFETY: a live plan, of which no view lends a reference; the conditions live as long.
        unsafe { (*self.as_ptr()).scan.plan.qual = quals.as_ptr() }
    }
}
