//! What the plan of `LanesWindow` stores.
//!
//! - numbers: the [kind](BY_TIME) of the plan; counts of columns, functions, conditions and partition keys; whether
//!   peers have one average
//! - nodes: none, or the functions [set aside](super::finished)
//! - `custom_exprs`: parameters of all expressions
//! - `custom_scan_tlist`: columns, functions, a row of conditions, partition keys, the time and a column of the table
//!
//! Expressions that the node never returns are in one row expression. So PostgreSQL takes no expression of the query's
//! target list for one of them. The column at the end, which no accepted target list contains, identifies the table.

use pgrx::pg_sys;

use crate::custom_scan::private_data::{self, table_of};
use crate::expressions::lanes_aggregate::is_ours;
use crate::pg::exec::node::CustomPlan;
use crate::pg::names::function_name;
use crate::pg::{nodes, windows};

/// The first number of a plan in the order of time.
pub const BY_TIME: i32 = 0;

/// A window function of this extension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowFunction {
    Ema,
    Delta,
    Rate,
}

impl WindowFunction {
    /// The function that is called; `None` for a function of another schema.
    pub fn of(call: &pg_sys::WindowFunc) -> Option<WindowFunction> {
        // SAFETY: plans are made and executed inside a transaction.
        if !is_ours(call.winfnoid) {
            return None;
        }
        match function_name(call.winfnoid.to_u32()).as_str() {
            "ema" => Some(WindowFunction::Ema),
            "delta" => Some(WindowFunction::Delta),
            "rate" => Some(WindowFunction::Rate),
            _ => None,
        }
    }
}

/// The plan.
pub struct WindowPlan {
    /// The columns that are returned.
    pub columns: Vec<*mut pg_sys::Node>,
    /// The calls of window functions.
    pub calls: Vec<*mut pg_sys::Node>,
    /// The conditions that the engine evaluates.
    pub quals: Vec<*mut pg_sys::Node>,
    /// The partition keys.
    pub keys: Vec<*mut pg_sys::Node>,
    /// The expression that rows are ordered by.
    pub time: *mut pg_sys::Node,
    /// Whether rows of one time and partition have one average.
    pub has_peers: bool,
    /// The range-table index of the table.
    pub index: u32,
}

impl WindowPlan {
    /// All expressions that the engine evaluates.
    pub fn expressions(&self) -> impl Iterator<Item = *mut pg_sys::Node> {
        let parts = [&self.calls, &self.quals, &self.keys];
        parts.into_iter().flatten().copied().chain([self.time])
    }

    /// The plan that a node stores.
    pub fn of(plan: CustomPlan<'_>) -> WindowPlan {
        let numbers = private_data::numbers(plan);
        let count = |part: usize| numbers[1 + part] as usize;
        let mut entries = plan.entries();
        // SAFETY: the last entry is a row expression.
        unsafe {
            let columns = entries.by_ref().take(count(0)).collect();
            let calls = calls_of(plan, entries.by_ref().take(count(1)));
            let hidden = entries.next().expect("the row is last");
            let mut hidden = nodes::list((*hidden.cast::<pg_sys::RowExpr>()).args);
            let quals = hidden.by_ref().take(count(2)).collect();
            let keys = hidden.by_ref().take(count(3)).collect();
            let time = hidden.next().expect("the time is behind the keys");
            let table = hidden.next().expect("the table's column is last");
            WindowPlan {
                columns,
                calls,
                quals,
                keys,
                time,
                has_peers: count(4) != 0,
                index: table_of(table),
            }
        }
    }

    /// The attributes of the columns that are returned.
    pub fn attributes(&self) -> Vec<usize> {
        let columns = self.columns.iter();
        // SAFETY: `offer` accepts only Vars as columns.
        let attribute = |column: &*mut pg_sys::Node| unsafe {
            (*column.cast::<pg_sys::Var>()).varattno as usize - 1
        };
        columns.map(attribute).collect()
    }

    /// The types and type modifiers of the columns that are returned.
    pub fn column_types(&self) -> Vec<(pg_sys::Oid, i32)> {
        // SAFETY: the plan's expressions are live.
        let column = |column: &*mut pg_sys::Node| unsafe {
            (pg_sys::exprType(*column), pg_sys::exprTypmod(*column))
        };
        self.columns.iter().map(column).collect()
    }
}

/// The calls of a plan. In a plan that [`super::finished`] has changed, the entries only show them.
pub fn calls_of(
    plan: CustomPlan<'_>,
    entries: impl Iterator<Item = *mut pg_sys::Node>,
) -> Vec<*mut pg_sys::Node> {
    let entries = entries.collect();
    let aside: Vec<_> = nodes::plan_list(private_data::nodes(plan)).collect();
    match aside.is_empty() {
        true => entries,
        false => aside,
    }
}

/// Calls as EXPLAIN shows them.
pub fn shown_calls(calls: &[*mut pg_sys::Node]) -> Vec<*mut pg_sys::Node> {
    calls.iter().copied().map(windows::without_window).collect()
}
