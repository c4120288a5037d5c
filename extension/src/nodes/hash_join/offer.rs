//! Offers hash joins to the planner: for joined rows, and below aggregations.
//!
//! The costs are PostgreSQL's own for the small side, and a probe for each row that the small
//! side's keys do not rule out. If the lanes table is sorted by the key, these are about the
//! matching rows and a few vectors around them.

use lanes_columnar::limits::VECTOR_ROWS;
use pgrx::pg_sys;

use super::state::HashJoinState;
use crate::custom_scan::callbacks;
use crate::custom_scan::stand_in;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::joins::by_key::equal_columns;
use crate::joins::by_key::plan::{Dimension, JoinKind};
use crate::joins::by_key::sides::{HashJoin, Sides, sides_of_path};
use crate::joins::by_time::nested_loop::Joining;
use crate::nodes::engine::plan::{Engine, Joined};
use crate::nodes::engine::row_limit::RowLimit;
use crate::pg::tree::{
    Expr, List, Path, PlannerInfo, RelOptInfo, SortGroupClause, View, plan_node,
};
use crate::pg::{catalog, outer_joins, server};
use crate::planner::quals::{VECTOR_SHARE, quals};
use crate::planner::reasons::{self, About};
use crate::table_options;
use crate::vectorize::{self, Vectorize};

/// The cost of looking up a row's key, in units of `cpu_operator_cost`.
const PROBE_SHARE: f64 = 0.2;
/// The share of a pass that a second one costs, which reads only rows that the query can return.
const SECOND_PASS_SHARE: f64 = 0.25;
/// The cost of adding a row of the small side, in units of `cpu_operator_cost`.
const BUILD_SHARE: f64 = 2.0;
/// The cost of taking in a small row that is returned later, in the same unit as [`BUILD_SHARE`]. The columns of such a
/// row are kept, and read one by one.
const RETURNED_SHARE: f64 = 16.0;

/// Offers the rows of a join of a lanes table with something smaller.
pub fn offer(join: &Joining<'_>) {
    if vectorize::vectorize() == Vectorize::Off || !server::enable_hashjoin() {
        return;
    }
    let Some(kind) = JoinKind::of(join.kind) else {
        return;
    };
    let (root, joined, outer, inner) = (join.root, join.joined, join.outer, join.inner);
    let conditions = join.extra.restrictlist();
    if let Some(sides) = Sides::of(root, joined, outer, inner, kind, conditions) {
        offer_sides(root, sides);
    }
    // The planner has no kind of join for the other order of these.
    if kind.wants_keys_alone()
        && let Some(sides) = Sides::of(root, joined, inner, outer, kind.exchanged(), conditions)
    {
        offer_sides(root, sides);
    }
}

fn offer_sides<'p>(root: PlannerInfo<'p>, sides: Sides<'p>) {
    // The planner finds a star in each order of its joins. Once it was offered, it has replaced the plans that could
    // stand in for it.
    let is_star = sides.dimensions.len() > 1;
    let mut paths = sides.joined.pathlist().iter();
    if is_star && paths.any(|path| sides_of_path(path).is_some()) {
        return;
    }
    // `require` accepts PostgreSQL's joins above vectorised scans, so no reason is needed. Another order of joins that
    // form no star may still be vectorised.
    let is_noted = vectorize::vectorize() != Vectorize::Require && !is_star;
    let index = sides.lanes.relid();
    if let Err(reason) = offer_rows(root, sides)
        && is_noted
    {
        reasons::note(root, index, About::Use, format!("hash join: {reason}"));
    }
}

fn offer_rows<'p>(root: PlannerInfo<'p>, sides: Sides<'p>) -> Translation<()> {
    check_command(root)?;
    let joined = sides.joined;
    let remembered_sides = sides.remember();
    let mut join = sides.join(root)?;
    let target = joined.reltarget();
    let outputs = target.map_or(List::EMPTY, |target| target.exprs());
    for output in outputs {
        if output.as_var().is_none() {
            return Err("the join gives more than columns".into());
        }
        join.want(output.as_ptr())?;
        if join.plan.dimensions[0].kind == JoinKind::RightSemi
            && !join.plan.is_small(output.as_ptr())
        {
            let small = equal_columns::small_column(&join, output.as_ptr())?;
            join.want(small)?;
        }
    }
    let mut translator = Translator::of_joined(Scalars::Unknown, join.plan.joined_columns(0));
    let filters = filters(root, &join);
    for column in outputs.iter().filter_map(Expr::as_var) {
        if !translator.is_given(column) {
            translator.attribute(column)?;
        }
    }
    let path = callbacks::new_path::<HashJoinState>(joined, target);
    // A query that needs more than columns computes it above the join.
    path.set_flags(0);
    let mut children = small_paths(root, &join);
    let cost = Cost::of(root, &join, joined.rows(), filters.len());
    let row_limit = RowLimit::wanted(root, &join, &mut translator, cost.rows_read);
    estimate(path.as_path(), &join, children, &cost, row_limit.as_ref());
    // A join that may exceed its memory limit is offered only with a plan that can take over.
    let stand_in = match join.plan.is_divisible() {
        true => None,
        false => Some(stand_in::path(joined).ok_or("no other plan")?),
    };
    let mut stored = Engine {
        index: join.plan.table,
        keys: outputs,
        calls: List::EMPTY,
        absent: Vec::new(),
        quals: filters,
        join: Joined::ByHash(&join.plan, List::EMPTY),
        has_stand_in: stand_in.is_some(),
        is_partial: false,
        order: None,
        limit: None,
        row_limit,
    }
    .stored();
    stored.extend(remembered_sides.as_node());
    path.set_private(stored);
    children.extend(stand_in);
    path.set_children(children);
    joined.add_path(path);
    Ok(())
}

/// Refuses a query that locks or changes rows.
fn check_command(root: PlannerInfo<'_>) -> Translation<()> {
    let command = root.parse().map(|query| query.commandType());
    // Locked rows are joined once more, one at a time, if they have changed.
    let is_plain = matches!(
        command,
        Some(pg_sys::CmdType::CMD_SELECT | pg_sys::CmdType::CMD_INSERT)
    );
    match root.locks_rows() || !is_plain {
        true => Err("rows are locked or changed".into()),
        false => Ok(()),
    }
}

/// Estimates the rows and the costs of a path to joined rows. `children` are the small sides.
fn estimate<'p>(
    base: Path<'p>,
    join: &HashJoin<'p>,
    children: List<'p, Path<'p>>,
    cost: &Cost,
    row_limit: Option<&RowLimit<'p>>,
) {
    base.set_parallel_safe(false);
    let startup = total_cost(children) + cost.build;
    let per_row = server::cpu_tuple_cost() * 0.5;
    let joined = join.sides.joined;
    let (rows, startup, reading) = match row_limit {
        // Only the end of the table tells.
        None if join.sides.dimensions[0].kind.wants_small_rows_alone() => {
            (joined.rows(), startup + cost.reading, 0.0)
        }
        None => (joined.rows(), startup, cost.reading),
        // The first pass ends before the first row is returned.
        Some(limit) => (
            limit.rows() as f64,
            startup + cost.reading,
            cost.reading * SECOND_PASS_SHARE,
        ),
    };
    base.set_rows(rows);
    base.set_startup_cost(startup);
    base.set_total_cost(startup + reading + rows * per_row);
}

/// The conditions on the lanes table as a list of expressions. The engine can evaluate all of them, as
/// [`Sides::of`] has checked.
pub fn filters<'p>(root: PlannerInfo<'p>, join: &HashJoin<'p>) -> List<'p, Expr<'p>> {
    let quals = quals(root, join.sides.lanes).into_iter();
    List::new(quals.map(|qual| qual.clause()))
}

/// The costs of a join in addition to its small side's plan and its result.
pub struct Cost {
    /// The cost of keeping the small side's rows.
    pub build: f64,
    /// The cost of reading the lanes table and looking up keys.
    pub reading: f64,
    /// How many rows of the lanes table are read.
    pub rows_read: f64,
}

impl Cost {
    /// The costs with so many conditions on the lanes table.
    pub fn of<'p>(
        root: PlannerInfo<'p>,
        join: &HashJoin<'p>,
        joined_rows: f64,
        filters: usize,
    ) -> Cost {
        let lanes = join.sides.lanes;
        let leading = leading_column(root, lanes);
        let tuples = lanes.tuples().max(1.0);
        let (mut share, mut small_work): (f64, f64) = (1.0, 0.0);
        for (side, dimension) in join.sides.dimensions.iter().zip(&join.plan.dimensions) {
            let rows = side.small.rows();
            small_work += match dimension.kind.wants_small_rows_alone() {
                true => rows * RETURNED_SHARE,
                false => rows * BUILD_SHARE,
            };
            let rules_out = is_by_column(dimension, leading) && dimension.kind.needs_match();
            if rules_out {
                // The matching rows, and a vector of other rows around the rows of each key.
                let around = rows * VECTOR_ROWS as f64;
                share = share.min((joined_rows + around) / tuples);
            }
        }
        let probes = PROBE_SHARE * join.plan.dimensions.len() as f64;
        let operator = server::cpu_operator_cost();
        let per_row = operator * (probes + VECTOR_SHARE * filters as f64);
        let pages = f64::from(lanes.pages()) * server::seq_page_cost() * 0.1;
        Cost {
            build: small_work * operator,
            reading: join.sides.expected_passes() * share * (pages + tuples * per_row),
            rows_read: share * tuples,
        }
    }
}

/// The leading column of the order in which a table's sealed rows are stored, counted from 0.
fn leading_column(root: PlannerInfo<'_>, lanes: RelOptInfo<'_>) -> Option<usize> {
    let table = root.entry(lanes.relid())?.relid();
    table_options::of(table).keys(table)?.first().copied()
}

/// Whether the first key of a join is this column of the lanes table.
fn is_by_column(dimension: &Dimension, column: Option<usize>) -> bool {
    let key = dimension.left_keys.first();
    let key = key.and_then(|key| plan_node::<Expr<'_>>(*key).as_var());
    key.is_some_and(|key| column == Some(key.varattno() as usize - 1))
}

/// Whether a table is joined to each small side by the leading column of its order, so that equal keys follow each other.
pub fn is_by_leading_column<'p>(root: PlannerInfo<'p>, join: &HashJoin<'p>) -> bool {
    let leading = leading_column(root, join.sides.lanes);
    let mut dimensions = join.plan.dimensions.iter();
    dimensions.all(|dimension| is_by_column(dimension, leading))
}

/// The paths to the rows of each small side: its keys, then its outputs.
pub fn small_paths<'p>(root: PlannerInfo<'p>, join: &HashJoin<'p>) -> List<'p, Path<'p>> {
    small_paths_by(root, join, RelOptInfo::cheapest_total_path)
}

/// As [`small_paths`], by paths that each worker may execute.
///
/// # Errors
/// If a side has no such path.
pub fn small_paths_of_worker<'p>(
    root: PlannerInfo<'p>,
    join: &HashJoin<'p>,
) -> Translation<List<'p, Path<'p>>> {
    let choose = |small: RelOptInfo<'p>| {
        let paths = small.pathlist().iter();
        let safe = paths.filter(|path| path.parallel_safe() && path.param_info().is_none());
        safe.min_by(|a, b| a.total_cost().total_cmp(&b.total_cost()))
    };
    let paths = small_paths_by(root, join, choose);
    let mut are_safe = paths.iter().map(Path::parallel_safe);
    match paths.len() == join.plan.dimensions.len() && are_safe.all(|is_safe| is_safe) {
        true => Ok(paths),
        false => Err("a small side that workers may not read".into()),
    }
}

fn small_paths_by<'p>(
    root: PlannerInfo<'p>,
    join: &HashJoin<'p>,
    choose: impl Fn(RelOptInfo<'p>) -> Option<Path<'p>>,
) -> List<'p, Path<'p>> {
    let sides = join.sides.dimensions.iter().zip(&join.small_keys);
    let paths = sides.enumerate().filter_map(|(dimension, (side, keys))| {
        let outputs = join.plan.outputs.iter();
        let outputs = outputs.filter(|output| output.dimension == dimension);
        let columns = keys
            .iter()
            .copied()
            .chain(outputs.map(|output| output.column));
        let within = |column| outer_joins::within(side.small, plan_node(column));
        let target = root.target_of(columns.map(within));
        let below = choose(side.small)?;
        Some(root.projection(side.small, below, target))
    });
    List::new(paths)
}

/// The total cost of these paths.
pub fn total_cost<'p>(paths: List<'p, Path<'p>>) -> f64 {
    paths.iter().map(Path::total_cost).sum()
}

/// Refuses a grouping expression over the small side whose values have no hash.
///
/// # Errors
/// The reason why the engine cannot group by the expression.
pub fn check_group(clause: SortGroupClause<'_>, expression: Expr<'_>) -> Translation<()> {
    if expression.is_volatile() || expression.has_subplan() {
        return Err("GROUP BY a joined value that is volatile or a subquery".into());
    }
    match clause.hashable() && catalog::hashes_for(expression.type_of(), clause.eqop()) {
        true => Ok(()),
        false => Err("GROUP BY a joined value without a hash".into()),
    }
}
