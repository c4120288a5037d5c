//! What a plan that returns whole rows stores: [`LanesTopN`](super), [`LanesLatest`](crate::nodes::latest).
//!
//! - Numbers: the rows of the first pass; the counts of pushed conditions, kept conditions and groups;
//!   three for each key. These are its flags, and the two that say how its items are compared.
//! - `custom_exprs`: the pushed conditions, the kept conditions, the groups and the keys.

use pgrx::pg_sys;

use crate::custom_scan::private_data::{self, PrivateData};
use crate::expressions::sort_key::{self, OrderedBy};
use crate::pg::exec::node::CustomPlan;
use crate::pg::explain::Explain;
use crate::pg::tree::{Expr, List, View, plan_field, plan_node};

/// The plan.
pub struct RowPlan<'p> {
    /// How many rows the first pass keeps, where there are passes.
    pub first_pass: i32,
    /// The conditions that the engine evaluates.
    pub pushed: List<'p, Expr<'p>>,
    /// The conditions that PostgreSQL evaluates for each row.
    pub kept: List<'p, Expr<'p>>,
    /// The grouping expressions.
    pub groups: Vec<*mut pg_sys::Node>,
    /// The sort keys.
    pub keys: Vec<OrderedBy<'p>>,
    /// The reasons for what is not vectorised, as strings.
    pub reasons: *mut pg_sys::List,
}

impl<'p> RowPlan<'p> {
    /// The data that a path stores. The plan adds the reasons.
    pub fn private_data(&self, index: u32) -> PrivateData {
        let mut expressions = self.all_quals();
        expressions.extend(self.groups.iter().map(|group| plan_node(*group)));
        expressions.extend(self.keys.iter().map(|key| key.expression));
        let counts = [self.pushed.len(), self.kept.len(), self.groups.len()];
        let mut numbers = vec![self.first_pass];
        numbers.extend(counts.map(|count| count as i32));
        for key in &self.keys {
            numbers.push(sort_key::to_flags(key.order));
            numbers.extend(sort_key::to_numbers(key.items));
        }
        PrivateData {
            index,
            numbers,
            nodes: std::ptr::null_mut(),
            expressions: expressions.as_ptr(),
            targets: std::ptr::null_mut(),
        }
    }

    /// The plan that a node stores. Its lists are made in the current memory context.
    pub fn of(plan: CustomPlan<'p>) -> RowPlan<'p> {
        let numbers = private_data::numbers(plan);
        let stored: List<'p, Expr<'p>> = plan_field(plan.expressions());
        let mut expressions = stored.iter();
        let mut part = |count: i32| List::new(expressions.by_ref().take(count as usize));
        let (pushed, kept) = (part(numbers[1]), part(numbers[2]));
        let groups = part(numbers[3]).iter().map(View::as_ptr).collect();
        let key = |(expression, [flags, items @ ..]): (Expr<'p>, &[i32; 3])| OrderedBy {
            expression,
            order: sort_key::of_flags(*flags),
            items: sort_key::of_numbers(*items),
        };
        RowPlan {
            first_pass: numbers[0],
            pushed,
            kept,
            groups,
            keys: expressions
                .zip(numbers[4..].as_chunks().0)
                .map(key)
                .collect(),
            reasons: private_data::reasons(plan),
        }
    }

    /// All conditions, in a new list.
    pub fn all_quals(&self) -> List<'p, Expr<'p>> {
        List::new(self.pushed.iter().chain(self.kept))
    }

    /// Writes the plan's properties for EXPLAIN.
    pub fn explain(&self, explain: &Explain) {
        let pointers = |list: List<'p, Expr<'p>>| list.iter().map(View::as_ptr).collect::<Vec<_>>();
        explain.expressions(c"Group Key", &self.groups);
        sort_key::explain_order(explain, &self.keys);
        explain.quals(&pointers(self.pushed));
        explain.filter(&pointers(self.kept));
        explain.reasons(self.reasons);
    }
}
