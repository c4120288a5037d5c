//! The joined rows that a query's ORDER BY and LIMIT can return.
//!
//! `SELECT … FROM cpu JOIN tags … ORDER BY time DESC LIMIT 10` returns ten of perhaps millions of joined rows. If the
//! first sort key is over the lanes table, the join [needs](crate::nodes::hash_join::row_bound) only the rows whose key
//! is among the first ten, and those that tie with them. The plan's Sort and Limit stay above the node: they order and
//! count the rows that are left.

use crate::expressions::sort_key::{self, OrderedBy};
use crate::expressions::translate::Translator;
use crate::joins::by_key::sides::HashJoin;
use crate::pg::explain::Explain;
use crate::pg::tree::{Expr, List, PlannerInfo};
use crate::planner::first_rows::{constant_limit, needs_first_rows};

/// More rows than this take too much memory on the way, some 100 bytes each.
const ROWS_MAX: usize = 1 << 13;
/// A join that returns fewer than one of so many rows that it reads is read only once: reading is then what takes time.
const READ_PER_ROW_MAX: f64 = 16.0;

/// The first rows of an order.
#[derive(Clone, Copy)]
pub struct RowLimit<'p> {
    rows: usize,
    key: OrderedBy<'p>,
}

impl<'p> RowLimit<'p> {
    /// How many rows the query asks for.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The first sort key.
    pub fn key(&self) -> OrderedBy<'p> {
        self.key
    }

    /// The limit of a query that returns the rows of a join as they are; `None` if it has none, or if the bound is not
    /// worth a pass. `rows_read` is how many rows of the table the join is expected to read.
    pub fn wanted(
        root: PlannerInfo<'p>,
        join: &HashJoin<'p>,
        translator: &mut Translator,
        rows_read: f64,
    ) -> Option<RowLimit<'p>> {
        let query = root.parse().filter(|query| needs_first_rows(*query))?;
        let joined = join.sides.joined;
        let is_last = root.all_baserels().is_subset_of(joined.relids());
        if !is_last || join.plan.keeps_small_rows() {
            return None;
        }
        let rows = constant_limit(query, ROWS_MAX)?;
        let returned = joined.rows();
        if returned <= rows as f64 || returned * READ_PER_ROW_MAX < rows_read {
            return None;
        }
        let first = List::new(root.query_pathkeys().iter().take(1));
        let (keys, _) = sort_key::of_path_keys(translator, join.sides.lanes, first);
        let key = *keys.first().filter(|key| key.items.is_none())?;
        Some(RowLimit { rows, key })
    }

    /// The sort keys that a plan stores as expressions: one, or none without a limit.
    pub fn expressions(limit: Option<RowLimit<'p>>) -> List<'p, Expr<'p>> {
        List::new(limit.map(|limit| limit.key.expression))
    }

    /// The numbers that a plan stores.
    pub fn numbers(limit: Option<RowLimit<'p>>) -> [i32; 2] {
        limit.map_or([0, 0], |limit| {
            [limit.rows as i32, sort_key::to_flags(limit.key.order)]
        })
    }

    /// The limit that a plan stores.
    pub fn of(expression: Option<Expr<'p>>, [rows, flags]: [i32; 2]) -> Option<RowLimit<'p>> {
        Some(RowLimit {
            rows: rows as usize,
            key: OrderedBy {
                expression: expression?,
                order: sort_key::of_flags(flags),
                items: None,
            },
        })
    }

    /// Writes the limit for EXPLAIN.
    pub fn explain(&self, explain: &Explain) {
        let order = sort_key::describe_order(explain, &[self.key]);
        explain.text(c"Row Limit", &format!("{} by {order}", self.rows));
    }
}
