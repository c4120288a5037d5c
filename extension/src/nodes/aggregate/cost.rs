//! The estimated rows and costs of an aggregation.

use pgrx::pg_sys;

use crate::joins::by_key::sides::{HashJoin, Sides, sides_of_path};
use crate::joins::by_time::find::TimeJoin;
use crate::nodes::engine::group_limit::GroupLimit;
use crate::nodes::hash_join;
use crate::nodes::time_join::offer::JOIN_SHARE;
use crate::pg::exec::memory::hash_memory_limit;
use crate::pg::tree::{CustomPath, Expr, List, PathTarget, PlannerInfo, RelOptInfo};
use crate::pg::{catalog, server};
use crate::planner;
use crate::planner::bucket_groups;
use crate::planner::quals::VECTOR_SHARE;

/// Grouping joined rows by vectors costs at most this share of returning them. Where few rows are
/// expected, the costs are too close to distinguish plans, and usually many more rows come.
const LESS_THAN_ROWS: f64 = 0.95;

/// The cost of an expression that PostgreSQL evaluates for a row of a vector, as a share of an operator's: nothing
/// is paid for forming the row. Measured with lengths of texts, sums of numerics and fields of times.
const ROW_SHARE: f64 = 0.5;

/// Bytes of a group besides its keys and results, roughly.
const GROUP_BYTES: f64 = 32.0;

/// The cost of rows in temporary files, which are written and read once, if so many bytes of groups do not fit into
/// memory.
fn waiting_cost(groups: f64, rows: f64) -> f64 {
    let share = (1.0 - hash_memory_limit() as f64 / groups.max(1.0)).max(0.0);
    2.0 * share * rows / f64::from(pg_sys::BLCKSZ) * server::seq_page_cost()
}

/// If a table has so few pages, it does not matter which columns of it are read.
const FEW_PAGES: u32 = 64;

/// The share of a table's bytes that the columns have that these expressions read.
fn share_of_columns<'p>(
    root: PlannerInfo<'p>,
    table: RelOptInfo<'p>,
    expressions: impl Iterator<Item = Expr<'p>>,
) -> f64 {
    let entry = root.entry(table.relid());
    let Some(entry) = entry.filter(|_| table.pages() > FEW_PAGES) else {
        return 1.0;
    };
    let mut read: Vec<i16> = expressions
        .flat_map(|expression| expression.attributes(table.relid()))
        .collect();
    read.sort_unstable();
    read.dedup();
    let (read, all) = (
        catalog::columns_width(entry.relid(), &read),
        catalog::row_width(entry.relid()),
    );
    (f64::from(read) / f64::from(all.max(1))).min(1.0)
}

/// The cost of evaluating so many expressions for a row of a vector.
fn row_cost(expressions: usize) -> f64 {
    expressions.max(1) as f64 * server::cpu_operator_cost() * VECTOR_SHARE
}

/// The cost of the rows of a hash join, if `LanesHashJoin` is the cheapest way to return them.
fn rows_cost(sides: &Sides<'_>) -> Option<f64> {
    let path = sides.joined.cheapest_total_path()?;
    sides_of_path(path.below_projections()).map(|_| path.total_cost())
}

/// The costs before there are groups.
#[derive(Clone, Copy)]
pub(super) struct Work {
    /// Of the paths to the small sides of a hash join.
    pub children: f64,
    /// Of keeping the rows of the small sides.
    pub build: f64,
    /// Of reading the table and adding its rows to groups, which several processes divide.
    pub rows: f64,
}

impl Work {
    fn total(self) -> f64 {
        self.children + self.build + self.rows
    }
}

/// The input of an aggregation, with the expressions of its groups and aggregates.
pub(super) struct Aggregated<'a, 'p> {
    pub root: PlannerInfo<'p>,
    pub relation: RelOptInfo<'p>,
    pub join: Option<&'a TimeJoin<'p>>,
    pub hash_join: Option<&'a HashJoin<'p>>,
}

impl<'p> Aggregated<'_, 'p> {
    /// Whether it can be divided if its groups are too large for the memory limit. A join by time cannot.
    pub fn is_divisible(&self) -> bool {
        self.join.is_none() && self.hash_join.is_none_or(|join| join.plan.is_divisible())
    }

    /// Estimates the rows and the cost of a path, and returns the costs before there are groups. The
    /// path's children are the small sides of a hash join, if there is one. Each row costs the evaluation of the
    /// keys, of so many calls of aggregates, and of so many expressions by PostgreSQL.
    pub fn estimate(
        &self,
        path: CustomPath<'p>,
        output: RelOptInfo<'p>,
        filters: List<'p, Expr<'p>>,
        (keys, calls, by_row): (List<'p, Expr<'p>>, usize, usize),
        limit: Option<&GroupLimit>,
    ) -> Work {
        let operator = server::cpu_operator_cost();
        let base = path.as_path();
        base.set_parallel_safe(
            self.join.is_none() && self.hash_join.is_none() && output.consider_parallel(),
        );
        let expected = output.expected_rows();
        let rows = bucket_groups::expected(self.root, self.relation, keys, expected);
        let returned = limit.map_or(rows, |limit| rows.min(limit.limit() as f64));
        base.set_rows(returned);
        let target = base.pathtarget();
        let grouping = row_cost(keys.len() + calls) + by_row as f64 * operator * ROW_SHARE;
        let work = match self.hash_join {
            Some(join) => self.work_of_join(join, path, filters, grouping),
            None => self.work_of_table(target, (keys, filters), grouping, rows),
        };
        let cost = target.map(|target| target.cost()).unwrap_or_default();
        let mut startup = work.total() + cost.startup;
        let comparing = limit.map_or(0.0, |_| rows * operator * VECTOR_SHARE);
        startup += comparing;
        let returning = server::cpu_tuple_cost() * 0.5 + cost.per_tuple;
        let mut total = startup + returned * returning;
        if let Some(join) = self.hash_join
            && let Some(handed_over) = rows_cost(&join.sides)
        {
            let less = handed_over * LESS_THAN_ROWS;
            (startup, total) = (startup.min(less), total.min(less));
        }
        base.set_startup_cost(startup);
        base.set_total_cost(total);
        work
    }

    /// The costs of a hash join's rows, if adding a row to its group costs `grouping`.
    fn work_of_join(
        &self,
        join: &HashJoin<'p>,
        path: CustomPath<'p>,
        filters: List<'p, Expr<'p>>,
        grouping: f64,
    ) -> Work {
        let rows = join.sides.joined.rows();
        let cost = hash_join::offer::Cost::of(self.root, join, rows, filters.len());
        Work {
            children: hash_join::offer::total_cost(path.custom_paths()),
            build: cost.build,
            rows: cost.reading + rows * grouping,
        }
    }

    /// The costs of a table's rows, also if they are joined by time. Adding a row to one of so many
    /// groups costs `grouping`.
    fn work_of_table(
        &self,
        target: Option<PathTarget<'p>>,
        (keys, filters): (List<'p, Expr<'p>>, List<'p, Expr<'p>>),
        grouping: f64,
        groups: f64,
    ) -> Work {
        let (root, input) = (self.root, self.relation);
        // Keys and aggregates see only rows that pass the conditions.
        let share = planner::selectivity::of(root, input, filters);
        let filtering = input.tuples() * share * row_cost(filters.len());
        let exprs = target.map_or(List::EMPTY, |target| target.exprs());
        let read = exprs.iter().chain(keys).chain(filters);
        let pages = f64::from(input.pages()) * share * share_of_columns(root, input, read);
        let reading = pages * server::seq_page_cost() * 0.1 + filtering;
        let by_time = self.join.map_or(0.0, |join| {
            (join.right_rows + input.tuples()) * server::cpu_operator_cost() * JOIN_SHARE
        });
        let width = |target: Option<PathTarget<'_>>| target.map_or(0, |target| target.width());
        let group = f64::from(width(target)) + GROUP_BYTES;
        let row = f64::from(width(input.reltarget()));
        let waiting = waiting_cost(groups * group, input.rows() * row);
        Work {
            children: 0.0,
            build: 0.0,
            rows: reading + by_time + input.rows() * grouping + waiting,
        }
    }
}
