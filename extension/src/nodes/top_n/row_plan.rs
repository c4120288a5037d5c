//! What a plan that gives whole rows remembers: [`LanesTopN`](super::plan), [`LanesLatest`](crate::nodes::latest::plan).
//!
//! | numbers | custom_exprs |
//! |---|---|
//! | rows of a first pass, how many pushed quals, kept quals, groups, then flags a key | pushed quals, kept quals, groups, keys |

use pgrx::pg_sys;

use crate::custom_scan;
use crate::custom_scan::private_data::Remembered;
use crate::expressions::sort_key::{self, OrderedBy};
use crate::pg::explain::Explain;
use crate::pg::{nodes, ports, tree};

/// The plan, taken apart.
pub struct RowPlan {
    /// Rows that the first pass should keep, where there are passes.
    pub first_pass: i32,
    /// Vectorised quals.
    pub pushed: *mut pg_sys::List,
    /// Quals that are evaluated a row at a time.
    pub kept: *mut pg_sys::List,
    /// What rows are grouped by.
    pub groups: Vec<*mut pg_sys::Node>,
    /// What they are ordered by.
    pub keys: Vec<OrderedBy>,
    /// Why something is not vectorised, as strings.
    pub reasons: *mut pg_sys::List,
}

impl RowPlan {
    /// What a path remembers of it; the reasons come with the plan.
    ///
    /// # Safety
    /// Lists and expressions are live.
    pub unsafe fn remembered(&self, index: u32) -> Remembered {
        // SAFETY: the caller's promise.
        unsafe {
            let keys: Vec<_> = self.keys.iter().map(|key| key.expression).collect();
            let mut expressions = pg_sys::list_concat_copy(self.pushed, self.kept);
            expressions = pg_sys::list_concat(expressions, tree::list(&self.groups));
            let mut numbers = vec![
                self.first_pass,
                ports::list_length(self.pushed),
                ports::list_length(self.kept),
                self.groups.len() as i32,
            ];
            numbers.extend(self.keys.iter().map(|key| sort_key::to_flags(key.order)));
            Remembered {
                index,
                numbers,
                nodes: std::ptr::null_mut(),
                expressions: pg_sys::list_concat(expressions, tree::list(&keys)),
                targets: std::ptr::null_mut(),
            }
        }
    }

    /// Reads it back. Lists are made in the current memory context.
    ///
    /// # Safety
    /// A plan that remembers it.
    pub unsafe fn of(scan: *mut pg_sys::CustomScan) -> RowPlan {
        // SAFETY: the caller's promise.
        unsafe {
            let numbers = custom_scan::private_data::numbers(scan);
            let (pushed, kept, groups) = (numbers[1], numbers[2], numbers[3]);
            let part = |from: i32, count: i32| {
                let rest = pg_sys::list_copy_tail((*scan).custom_exprs, from);
                pg_sys::list_truncate(rest, count)
            };
            let mut expressions =
                nodes::list::<pg_sys::Node>((*scan).custom_exprs).skip((pushed + kept) as usize);
            let found = expressions.by_ref().take(groups as usize).collect();
            let key = |(expression, flags): (_, &i32)| OrderedBy {
                expression,
                order: sort_key::of_flags(*flags),
            };
            RowPlan {
                first_pass: numbers[0],
                pushed: part(0, pushed),
                kept: part(pushed, kept),
                groups: found,
                keys: expressions.zip(&numbers[4..]).map(key).collect(),
                reasons: custom_scan::private_data::reasons(scan),
            }
        }
    }

    /// What EXPLAIN says of it.
    ///
    /// # Safety
    /// The plan of the node that is explained.
    pub unsafe fn explain(&self, explain: &Explain) {
        // SAFETY: the caller's promise.
        unsafe {
            explain.expressions(c"Group Key", &self.groups);
            sort_key::explain_order(explain, &self.keys);
            explain.quals(&tree::elements(self.pushed));
            explain.filter(&tree::elements(self.kept));
            explain.reasons(self.reasons);
        }
    }
}
