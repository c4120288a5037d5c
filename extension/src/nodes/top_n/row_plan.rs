//! What a plan that returns whole rows stores: [`LanesTopN`](super), [`LanesLatest`](crate::nodes::latest).
//!
//! | numbers | custom_exprs |
//! |---|---|
//! | rows of the first pass; counts of pushed conditions, kept conditions and groups; flags of each key | pushed conditions, kept conditions, groups, keys |

use pgrx::pg_sys;

use crate::custom_scan::private_data::{self, PrivateData};
use crate::expressions::sort_key::{self, OrderedBy};
use crate::pg::exec::node::CustomPlan;
use crate::pg::explain::Explain;
use crate::pg::{nodes, ports, tree};

/// The plan.
pub struct RowPlan {
    /// How many rows the first pass keeps, where there are passes.
    pub first_pass: i32,
    /// The conditions that the engine evaluates.
    pub pushed: *mut pg_sys::List,
    /// The conditions that PostgreSQL evaluates for each row.
    pub kept: *mut pg_sys::List,
    /// The grouping expressions.
    pub groups: Vec<*mut pg_sys::Node>,
    /// The sort keys.
    pub keys: Vec<OrderedBy<'static>>,
    /// The reasons for what is not vectorised, as strings.
    pub reasons: *mut pg_sys::List,
}

impl RowPlan {
    /// The data that a path stores. The plan adds the reasons.
    pub fn private_data(&self, index: u32) -> PrivateData {
        // SAFETY: the planner's lists and expressions are live.
        unsafe {
            let keys: Vec<_> = self
                .keys
                .iter()
                .map(|key| crate::pg::tree::View::as_ptr(key.expression))
                .collect();
            let mut expressions = pg_sys::list_concat_copy(self.pushed, self.kept);
            expressions = pg_sys::list_concat(expressions, tree::list(&self.groups));
            let mut numbers = vec![
                self.first_pass,
                ports::list_length(self.pushed),
                ports::list_length(self.kept),
                self.groups.len() as i32,
            ];
            numbers.extend(self.keys.iter().map(|key| sort_key::to_flags(key.order)));
            PrivateData {
                index,
                numbers,
                nodes: std::ptr::null_mut(),
                expressions: pg_sys::list_concat(expressions, tree::list(&keys)),
                targets: std::ptr::null_mut(),
            }
        }
    }

    /// The plan that a node stores. Its lists are made in the current memory context.
    pub fn of(plan: CustomPlan<'_>) -> RowPlan {
        let numbers = private_data::numbers(plan);
        // SAFETY: the plan's lists are live.
        unsafe {
            let (pushed, kept, groups) = (numbers[1], numbers[2], numbers[3]);
            let part = |from: i32, count: i32| {
                let rest = pg_sys::list_copy_tail(plan.expressions(), from);
                pg_sys::list_truncate(rest, count)
            };
            let mut expressions =
                nodes::list::<pg_sys::Node>(plan.expressions()).skip((pushed + kept) as usize);
            let found = expressions.by_ref().take(groups as usize).collect();
            let key = |(expression, flags): (*mut pg_sys::Node, &i32)| OrderedBy {
                expression: crate::pg::tree::plan_node(expression),
                order: sort_key::of_flags(*flags),
            };
            RowPlan {
                first_pass: numbers[0],
                pushed: part(0, pushed),
                kept: part(pushed, kept),
                groups: found,
                keys: expressions.zip(&numbers[4..]).map(key).collect(),
                reasons: private_data::reasons(plan),
            }
        }
    }

    /// All conditions, in a new list.
    pub fn all_quals(&self) -> *mut pg_sys::List {
        // SAFETY: the plan's lists are live.
        unsafe { pg_sys::list_concat_copy(self.pushed, self.kept) }
    }

    /// Writes the plan's properties for EXPLAIN.
    pub fn explain(&self, explain: &Explain) {
        // SAFETY: the plan's lists and expressions are live.
        unsafe {
            explain.expressions(c"Group Key", &self.groups);
            sort_key::explain_order(explain, &self.keys);
            explain.quals(&tree::elements(self.pushed));
            explain.filter(&tree::elements(self.kept));
            explain.reasons(self.reasons);
        }
    }
}
