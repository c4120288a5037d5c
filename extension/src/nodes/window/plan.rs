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
use crate::expressions::translate::Translation;
use crate::pg::exec::node::CustomPlan;
use crate::pg::names::function_name;
use crate::pg::tree::{Expr, List, Node, RowExpr, Var, View, WindowFunc, plan_field, plan_node};
use crate::pg::windows;

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
    pub fn of(call: WindowFunc<'_>) -> Option<WindowFunction> {
        if !is_ours(call.winfnoid()) {
            return None;
        }
        match function_name(call.winfnoid().to_u32()).as_str() {
            "ema" => Some(WindowFunction::Ema),
            "delta" => Some(WindowFunction::Delta),
            "rate" => Some(WindowFunction::Rate),
            _ => None,
        }
    }
}

/// An argument of a call.
///
/// # Errors
/// The call has no such argument.
pub fn argument(call: WindowFunc<'_>, index: usize) -> Translation<Expr<'_>> {
    let argument = call.args().get(index);
    argument.ok_or_else(|| "a call without that argument".into())
}

/// The plan.
pub struct WindowPlan<'p> {
    /// The columns that are returned.
    pub columns: Vec<Expr<'p>>,
    /// The calls of window functions.
    pub calls: Vec<WindowFunc<'p>>,
    /// The conditions that the engine evaluates.
    pub quals: Vec<Expr<'p>>,
    /// The partition keys.
    pub keys: Vec<Expr<'p>>,
    /// The expression that rows are ordered by.
    pub time: Expr<'p>,
    /// Whether rows of one time and partition have one average.
    pub has_peers: bool,
    /// The range-table index of the table.
    pub index: u32,
}

impl<'p> WindowPlan<'p> {
    /// All expressions that the engine evaluates.
    pub fn expressions(&self) -> impl Iterator<Item = Expr<'p>> {
        let calls = self.calls.iter().map(|call| call.as_node());
        let parts = [&self.quals, &self.keys].into_iter().flatten().copied();
        calls.chain(parts).chain([self.time])
    }

    /// The plan that a node stores.
    pub fn of(plan: CustomPlan<'p>) -> WindowPlan<'p> {
        let numbers = private_data::numbers(plan);
        let count = |part: usize| numbers[1 + part] as usize;
        let mut entries = plan.entries().map(plan_node::<Expr<'p>>);
        let columns = entries.by_ref().take(count(0)).collect();
        let calls = calls_of(plan, entries.by_ref().take(count(1)));
        let mut hidden = hidden_of(entries.next());
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
            index: table_of(table.as_ptr()),
        }
    }

    /// The attributes of the columns that are returned.
    pub fn attributes(&self) -> Vec<usize> {
        self.columns.iter().copied().map(attribute).collect()
    }

    /// The types and type modifiers of the columns that are returned.
    pub fn column_types(&self) -> Vec<(pg_sys::Oid, i32)> {
        let columns = self.columns.iter();
        columns
            .map(|column| (column.type_of(), column.type_modifier()))
            .collect()
    }
}

/// The attribute of a column that is returned, counted from 0. `offer` accepts no other expressions as columns.
pub fn attribute(column: Expr<'_>) -> usize {
    let number = column.as_var().map(Var::varattno);
    number.expect("a column of the plan is one of the table") as usize - 1
}

/// The expressions in the row at the end of a plan's entries.
pub fn hidden_of<'p>(row: Option<Expr<'p>>) -> impl Iterator<Item = Expr<'p>> {
    let row = row.and_then(Expr::downcast::<RowExpr<'p>>);
    row.expect("the row is last").args().iter()
}

/// The calls of a plan. In a plan that [`super::finished`] has changed, the entries only show them.
pub fn calls_of<'p>(
    plan: CustomPlan<'p>,
    entries: impl Iterator<Item = Expr<'p>>,
) -> Vec<WindowFunc<'p>> {
    let entries: Vec<Expr<'p>> = entries.collect();
    let aside: List<'p, Expr<'p>> = plan_field(private_data::nodes(plan));
    let calls = match aside.is_empty() {
        true => entries,
        false => aside.iter().collect(),
    };
    let calls = calls.into_iter().map(Expr::downcast::<WindowFunc<'p>>);
    calls
        .map(|call| call.expect("the calls are of window functions"))
        .collect()
}

/// Calls as EXPLAIN shows them.
pub fn shown_calls(calls: &[WindowFunc<'_>]) -> Vec<*mut pg_sys::Node> {
    let shown = calls.iter().copied().map(windows::without_window);
    shown.map(View::as_ptr).collect()
}
