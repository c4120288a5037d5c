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

use super::calls;
use crate::custom_scan::private_data::{self, table_of};
use crate::expressions::translate::Translation;
use crate::nodes::nested_aggregate::outputs::is_text;
use crate::nodes::window::plan::{calls_of, hidden_of};
use crate::pg::catalog;
use crate::pg::exec::node::CustomPlan;
use crate::pg::tree::{Expr, Node, View, WindowFunc, plan_node};

/// The first number of such a plan.
pub const PARTITIONED: i32 = 1;

/// A key with its direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectedKey<'p> {
    pub expression: Expr<'p>,
    pub is_descending: bool,
    pub nulls_first: bool,
}

impl DirectedKey<'_> {
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
pub struct PartitionedPlan<'p> {
    /// The columns that are returned, [texts](text_columns) first.
    pub columns: Vec<Expr<'p>>,
    /// The calls of window functions.
    pub calls: Vec<WindowFunc<'p>>,
    /// The conditions that the engine evaluates.
    pub quals: Vec<Expr<'p>>,
    /// The partition keys, in the order in which partitions are returned.
    pub keys: Vec<DirectedKey<'p>>,
    /// The keys that the rows of a partition are ordered by.
    pub orders: Vec<DirectedKey<'p>>,
    call_numbers: Vec<i32>,
    /// The range-table index of the table.
    pub index: u32,
}

/// Whether a plan of the node is one of partitions.
pub fn is_partitioned(plan: CustomPlan<'_>) -> bool {
    private_data::numbers(plan)[0] == PARTITIONED
}

/// The numbers of a plan with these calls.
pub fn numbers(counts: [usize; 5], keys: &[DirectedKey<'_>], calls: &[Call]) -> Vec<i32> {
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
pub fn is_text_column(column: Expr<'_>) -> bool {
    is_text(column.type_of()) && catalog::is_deterministic(column.collation())
}

/// How many of the columns are texts: they are first. A nested aggregation above takes them for keys.
pub fn text_columns<'p>(columns: impl Iterator<Item = Expr<'p>>) -> usize {
    columns.take_while(|column| is_text_column(*column)).count()
}

impl<'p> PartitionedPlan<'p> {
    /// The plan that a node stores.
    pub fn of(plan: CustomPlan<'p>) -> PartitionedPlan<'p> {
        let numbers = private_data::numbers(plan);
        let count = |part: usize| numbers[1 + part] as usize;
        let mut entries = plan.entries().map(plan_node::<Expr<'p>>);
        let columns = entries.by_ref().take(count(0)).collect();
        let calls = calls_of(plan, entries.by_ref().take(count(1)));
        let mut hidden = hidden_of(entries.next());
        let quals = hidden.by_ref().take(count(2)).collect();
        let directions = &numbers[6..];
        let keys = hidden.by_ref().take(count(3) + count(4)).enumerate();
        let mut keys: Vec<DirectedKey<'p>> = keys
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
            index: table_of(table.as_ptr()),
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
    pub fn call(&self, index: usize) -> Translation<(WindowFunc<'p>, Call)> {
        let call = self.calls[index];
        let numbers = &self.call_numbers[calls::NUMBERS * index..];
        Ok((call, calls::of_numbers(calls::function_of(call)?, numbers)))
    }

    /// All expressions that the engine evaluates.
    pub fn expressions(&self) -> impl Iterator<Item = Expr<'p>> {
        let calls = self.calls.iter().map(|call| call.as_node());
        let keys = [&self.keys, &self.orders].into_iter().flatten();
        let keys = keys.map(|key| key.expression);
        calls.chain(self.quals.iter().copied()).chain(keys)
    }
}
