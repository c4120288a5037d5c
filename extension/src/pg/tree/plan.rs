//! Finished plans.

use std::ffi::CStr;

use pgrx::pg_sys::{self, NodeTag};

use super::expression::Expr;
use super::list::{List, Oids};
use super::operands::TargetEntry;
use super::query::RangeTblEntry;
use super::tag::Node;
use super::view::views;
use crate::pg::exec::child::Child;
use crate::pg::exec::node::Estate;

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
        paramExecTypes: Oids<'p>;
    } {}

    /// A query in execution.
    QueryDesc of QueryDesc {
        /// Whether the query was run before, and is run again.
        already_executed: bool;
        operation: pg_sys::CmdType::Type;
    } {
        planstate: Option<Child>;
        estate: Option<Estate>;
        plannedstmt: Option<PlannedStmt<'p>>;
        dest: Option<DestReceiver<'p>>;
    } {}

    /// Who receives a query's rows.
    DestReceiver of DestReceiver {
        mydest: pg_sys::CommandDest::Type;
    } {} {}

    /// A node of a plan.
    Plan of Plan {
        /// The expected bytes of a result row.
        plan_width: i32;
        /// The expected cost of all rows.
        total_cost: f64;
    } {
        targetlist: List<'p, TargetEntry<'p>>;
        qual: List<'p, Expr<'p>>;
        lefttree: Option<Plan<'p>>;
        righttree: Option<Plan<'p>>;
    } {}

    /// A scan of a table.
    TableScan of Scan {
        scanrelid: u32;
    } {} {}

    /// A join.
    Join of Join {} {
        joinqual: List<'p, Expr<'p>>;
    } {}

    /// A node of this library.
    CustomScan of CustomScan {
        flags: u32;
        /// The range-table index of the table that is scanned; 0 if the node stands for more than a scan.
        scanned_index = scan.scanrelid: u32;
        /// How many rows the planner expects.
        expected_rows = scan.plan.plan_rows: f64;
        /// Whether several processes execute the plan, each of which returns a part of the rows.
        is_parallel_aware = scan.plan.parallel_aware: bool;
    } {
        methods: Option<CustomScanMethods<'p>>;
        custom_plans: List<'p, Plan<'p>>;
        custom_private: List<'p, Expr<'p>>;
        custom_exprs: List<'p, Expr<'p>>;
        custom_scan_tlist: List<'p, TargetEntry<'p>>;
    } {
        set_flags = flags: u32;
        set_scanned_index = scan.scanrelid: u32;
    } {
        // The conditions that PostgreSQL evaluates for the node's rows.
        set_quals = scan.plan.qual: List<'p, Expr<'p>>;
        set_children = custom_plans: List<'p, Plan<'p>>;
        set_expressions = custom_exprs: List<'p, Expr<'p>>;
        set_private = custom_private: List<'p, Expr<'p>>;
        set_entries = custom_scan_tlist: List<'p, TargetEntry<'p>>;
    }

    /// What PostgreSQL calls for such a node.
    CustomScanMethods of CustomScanMethods {} {
        CustomName: Option<&'p CStr>;
    } {}

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
        self.dest().map(DestReceiver::mydest)
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
        self.downcast::<TableScan<'p>>().map(TableScan::scanrelid)
    }

    /// The nested loop that the node is, if it is one.
    pub fn as_nested_loop(self) -> Option<Join<'p>> {
        let join = self.downcast::<Join<'p>>();
        join.filter(|join| join.tag() == NodeTag::T_NestLoop)
    }
}

impl<'p> CustomScan<'p> {
    /// The name of the node that executes the plan.
    pub fn name(self) -> &'p CStr {
        let name = self.methods().and_then(CustomScanMethods::CustomName);
        name.unwrap_or_default()
    }
}
