//! The plan of `LanesWindow` for SQL's own window functions, as lists of numbers and expressions.
//!
//! - numbers: the [kind](PARTITIONED) of the plan; counts of columns, functions, conditions, partition keys and order
//!   keys; for each key whether it descends and whether NULL is first; the [numbers](calls::numbers) of each call
//! - nodes: none, or the functions [set aside](crate::nodes::window::finished)
//! - `custom_exprs`: parameters of all expressions
//! - `custom_scan_tlist`: columns, functions, a row of conditions, partition keys, order keys and a column of the table
//!
//! The last child is PostgreSQL's own plan.

use lanes_columnar::over::Call;
use pgrx::pg_sys;

use super::calls;
use crate::custom_scan::private_data::{self, table_of};
use crate::expressions::translate::Translation;
use crate::nodes::nested_aggregate::outputs::is_text;
use crate::nodes::window::plan::calls_of;
use crate::pg::exec::node::CustomPlan;
use crate::pg::{catalog, nodes};

/// The first number of such a plan.
pub const PARTITIONED: i32 = 1;
/// Numbers of a call.
const CALL_NUMBERS: usize = 5;

/// A key with its direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectedKey {
    pub expression: *mut pg_sys::Node,
    pub is_descending: bool,
    pub nulls_first: bool,
}

impl DirectedKey {
    /// The direction as SQL spells it.
    pub fn direction(&self) -> &'static str {
        match (self.is_descending, self.nulls_first) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
        }
    }
}

/// The plan.
pub struct PartitionedPlan {
    /// The columns that are returned, [texts](text_columns) first.
    pub columns: Vec<*mut pg_sys::Node>,
    /// The calls of window functions.
    pub calls: Vec<*mut pg_sys::Node>,
    /// The conditions that the engine evaluates.
    pub quals: Vec<*mut pg_sys::Node>,
    /// The partition keys, in the order in which partitions are returned.
    pub keys: Vec<DirectedKey>,
    /// The keys that the rows of a partition are ordered by.
    pub orders: Vec<DirectedKey>,
    call_numbers: Vec<i32>,
    /// The range-table index of the table.
    pub index: u32,
}

/// Whether a plan of the node is one of partitions.
pub fn is_partitioned(plan: CustomPlan<'_>) -> bool {
    private_data::numbers(plan)[0] == PARTITIONED
}

/// The numbers of a plan with these calls.
pub fn numbers(counts: [usize; 5], keys: &[DirectedKey], calls: &[Call]) -> Vec<i32> {
    let mut numbers = vec![PARTITIONED];
    numbers.extend(counts.iter().map(|count| *count as i32));
    for key in keys {
        numbers.push(i32::from(key.is_descending));
        numbers.push(i32::from(key.nulls_first));
    }
    calls
        .iter()
        .for_each(|call| numbers.extend(calls::numbers(call)));
    numbers
}

/// How many columns and functions a plan with these numbers returns.
pub fn entries(numbers: &[i32]) -> usize {
    (numbers[1] + numbers[2]) as usize
}

/// How many columns a plan with these numbers returns.
pub fn columns(numbers: &[i32]) -> usize {
    numbers[1] as usize
}

/// Whether a column is a text that equals another one if its bytes do.
pub fn is_text_column(column: *mut pg_sys::Node) -> bool {
    // SAFETY: the planner's and the plan's expressions are live.
    let (type_of, collation) = unsafe { (pg_sys::exprType(column), pg_sys::exprCollation(column)) };
    is_text(type_of) && catalog::is_deterministic(collation)
}

/// How many of the columns are texts: they are first. A nested aggregation above takes them for keys.
pub fn text_columns(columns: impl Iterator<Item = *mut pg_sys::Node>) -> usize {
    columns.take_while(|column| is_text_column(*column)).count()
}

impl PartitionedPlan {
    /// The plan that a node stores.
    pub fn of(plan: CustomPlan<'_>) -> PartitionedPlan {
        let numbers = private_data::numbers(plan);
        let count = |part: usize| numbers[1 + part] as usize;
        let mut entries = plan.entries();
        let columns = entries.by_ref().take(count(0)).collect();
        let calls = calls_of(plan, entries.by_ref().take(count(1)));
        let hidden = entries.next().expect("the row is last");
        // SAFETY: the last entry is a row expression.
        let mut hidden = unsafe { nodes::list((*hidden.cast::<pg_sys::RowExpr>()).args) };
        let quals = hidden.by_ref().take(count(2)).collect();
        let directions = &numbers[6..];
        let keys = hidden.by_ref().take(count(3) + count(4)).enumerate();
        let mut keys: Vec<DirectedKey> = keys
            .map(|(index, expression)| DirectedKey {
                expression,
                is_descending: directions[2 * index] != 0,
                nulls_first: directions[2 * index + 1] != 0,
            })
            .collect();
        let orders = keys.split_off(count(3));
        let table = hidden.next().expect("the table's column is last");
        PartitionedPlan {
            columns,
            calls,
            quals,
            call_numbers: directions[2 * (keys.len() + orders.len())..].to_vec(),
            keys,
            orders,
            index: table_of(table),
        }
    }

    /// How many of the columns are texts: they are first.
    pub fn text_columns(&self) -> usize {
        text_columns(self.columns.iter().copied())
    }

    /// A call: its expression, and what is computed.
    ///
    /// # Errors
    /// The function is not covered any more.
    pub fn call(&self, index: usize) -> Translation<(&pg_sys::WindowFunc, Call)> {
        // SAFETY: `offer` accepts only window functions as calls.
        let call = unsafe { &*self.calls[index].cast::<pg_sys::WindowFunc>() };
        let numbers = &self.call_numbers[CALL_NUMBERS * index..];
        Ok((call, calls::of_numbers(calls::function_of(call)?, numbers)))
    }

    /// All expressions that the engine evaluates.
    pub fn expressions(&self) -> impl Iterator<Item = *mut pg_sys::Node> {
        let parts = [&self.calls, &self.quals].into_iter().flatten().copied();
        let keys = [&self.keys, &self.orders].into_iter().flatten();
        parts.chain(keys.map(|key| key.expression))
    }
}
