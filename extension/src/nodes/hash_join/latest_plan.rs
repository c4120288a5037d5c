//! `LanesHashLatest`: the first joined row of each group, for `SELECT DISTINCT ON (k) … ORDER BY k,
//! ts DESC` over a lanes table joined by equality with something smaller. Its path and its plan.
//!
//! | numbers | custom_exprs | custom_scan_tlist |
//! |---|---|---|
//! | counts of the six parts; flags of each sort key; the numbers of the join | parameters of all expressions | columns that the node returns, conditions, grouping expressions, sort keys, the join's keys and conditions, its outputs; a column of the table |
//!
//! The last child is PostgreSQL's own plan, which [takes over](stand_in) if the small side or the groups exceed their
//! memory limit.

use pgrx::pg_sys;

use super::latest_state::LatestJoinState;
use super::offer::{Cost, check_group, filters, small_paths, total_cost};
use crate::custom_scan::node::Planned;
use crate::custom_scan::private_data::{
    self, PrivateData, Targets, hidden, table_column, table_of,
};
use crate::custom_scan::{callbacks, stand_in};
use crate::expressions::aggregate_call;
use crate::expressions::sort_key::{self, OrderedBy};
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::joins::by_key::plan::{HashJoinPlan, JoinKind};
use crate::joins::by_key::sides::{HashJoin, Sides};
use crate::nodes::latest;
use crate::pg::exec::node::CustomPlan;
use crate::pg::explain::Explain;
use crate::pg::server;
use crate::pg::tree::{
    Expr, List, Path, PlannerInfo, Query, RelOptInfo, TargetEntry, View, plan_field, plan_node,
};
use crate::planner::quals::VECTOR_SHARE;
use crate::planner::reasons::About;

/// Offers the rows of a DISTINCT ON over the join of these sides.
///
/// # Errors
/// The reason why the node cannot return them.
pub fn offer<'p>(
    root: PlannerInfo<'p>,
    query: Query<'p>,
    sides: Sides<'p>,
    output: RelOptInfo<'p>,
) -> Translation<()> {
    latest::offer::check(query)?;
    let mut join = sides.join(root)?;
    if join.plan.dimensions.len() > 1 {
        return Err("several joined tables".into());
    }
    if join.plan.keeps_small_rows() {
        return Err("the lanes table on the null side of an outer join".into());
    }
    let targets = root.processed_tlist();
    let (groups, codes) = groups(&mut join, query, targets)?;
    let target = root.upper_target(pg_sys::UpperRelationKind::UPPERREL_DISTINCT);
    let exprs = target.map_or(List::EMPTY, |target| target.exprs());
    let columns = columns(&mut join, exprs)?;
    let mut translator = Translator::of_joined(Scalars::Unknown, join.plan.joined_columns(codes));
    let quals = filters(root, &join);
    check_lanes_side(&join, columns, &groups, &mut translator)?;
    let (order, distinct) = (query.sortClause(), query.distinctClause());
    let keys = sort_key::of_clauses(&mut translator, targets, order, distinct)?;
    let estimated = output.expected_rows();
    let rows = match is_bounded(&join, &groups) {
        true => estimated.min(join.sides.dimensions[0].small.rows().max(1.0)),
        false => estimated,
    };
    let stand_in = stand_in::path(output).ok_or("no other plan")?;

    let path = callbacks::new_path::<LatestJoinState>(output, target);
    let joined_rows = join.sides.joined.rows();
    let cost = Cost::of(root, &join, joined_rows, quals.len());
    let mut children = small_paths(root, &join);
    path.as_path().set_parallel_safe(false);
    path.as_path().set_rows(rows);
    // Each joined row costs a look-up and a comparison.
    let each = (groups.len() + keys.len()) as f64 * VECTOR_SHARE * server::cpu_operator_cost();
    let work = [
        total_cost(children),
        cost.build,
        cost.reading,
        joined_rows * each,
    ];
    set_costs(path.as_path(), work);
    let plan = LatestJoinPlan {
        columns: columns.iter().map(View::as_ptr).collect(),
        quals: quals.iter().map(View::as_ptr).collect(),
        groups: groups.into_iter().map(View::as_ptr).collect(),
        keys,
        join: join.plan,
        reasons: std::ptr::null_mut(),
    };
    path.set_private(plan_field(plan.private_data().to_path_list()));
    children.push(stand_in);
    path.set_children(children);
    output.add_path(path);
    Ok(())
}

/// The grouping expressions, and how many of them are of the small side.
fn groups<'p>(
    join: &mut HashJoin<'p>,
    query: Query<'p>,
    targets: List<'p, TargetEntry<'p>>,
) -> Translation<(Vec<Expr<'p>>, usize)> {
    let (mut groups, mut codes) = (Vec::new(), 0);
    for clause in query.distinctClause() {
        let expression = clause.expr(targets);
        join.want(expression.as_ptr())?;
        if join.plan.is_small(expression.as_ptr()) {
            check_group(clause, expression)?;
            codes += 1;
        }
        groups.push(expression);
    }
    Ok((groups, codes))
}

/// Refuses columns and grouping expressions of the lanes table that the engine cannot evaluate.
fn check_lanes_side<'p>(
    join: &HashJoin<'p>,
    columns: List<'p, Expr<'p>>,
    groups: &[Expr<'p>],
    translator: &mut Translator,
) -> Translation<()> {
    for column in columns {
        if !join.plan.is_small(column.as_ptr()) {
            let column = column.as_var().ok_or("a column that is an expression")?;
            translator.attribute(column)?;
        }
    }
    for group in groups {
        if !join.plan.is_small(group.as_ptr()) {
            aggregate_call::key(translator, *group)?;
        }
    }
    Ok(())
}

/// Sets the costs of a path that has its rows already. All of the work is done before the first
/// row.
fn set_costs(base: Path<'_>, work: [f64; 4]) {
    let target = base.pathtarget();
    let of_target = target.map(|target| target.cost()).unwrap_or_default();
    let startup = work
        .into_iter()
        .fold(of_target.startup, |sum, cost| sum + cost);
    let per_row = server::cpu_tuple_cost() * 0.5 + of_target.per_tuple;
    base.set_startup_cost(startup);
    base.set_total_cost(startup + base.rows() * per_row);
}

/// The columns that the node returns, each once.
fn columns<'p>(
    join: &mut HashJoin<'p>,
    targets: List<'p, Expr<'p>>,
) -> Translation<List<'p, Expr<'p>>> {
    let mut columns = List::EMPTY;
    let leaves = targets.as_node().into_iter();
    for leaf in leaves.flat_map(|targets| targets.leaves(pg_sys::PVC_INCLUDE_PLACEHOLDERS)) {
        join.want(leaf.as_ptr())?;
        columns.push_new(leaf);
    }
    Ok(columns)
}

/// Whether there is at most one group for each small row: the grouping expressions are keys of the
/// join or over its small side. PostgreSQL's estimate uses all values of the table.
fn is_bounded(join: &HashJoin<'_>, groups: &[Expr<'_>]) -> bool {
    let of_small_row = |group: &Expr<'_>| {
        let is_key = |key: &*mut pg_sys::Node| plan_node::<Expr<'_>>(*key).equals(*group);
        join.plan.is_small(group.as_ptr()) || join.plan.left_keys().iter().any(is_key)
    };
    join.plan.dimensions[0].kind == JoinKind::Inner && groups.iter().all(of_small_row)
}

/// Fills in the plan of a path that [`offer`] made.
pub fn plan(planned: &Planned) {
    let index = planned.take_path();
    planned.store_reasons(index, Some(About::Use));
}

/// The plan.
pub struct LatestJoinPlan<'p> {
    /// The columns that the node returns, of either side.
    pub columns: Vec<*mut pg_sys::Node>,
    /// The conditions on the lanes table.
    pub quals: Vec<*mut pg_sys::Node>,
    /// The grouping expressions.
    pub groups: Vec<*mut pg_sys::Node>,
    /// The sort keys of the rows of a group.
    pub keys: Vec<OrderedBy<'p>>,
    /// The join.
    pub join: HashJoinPlan,
    /// The reasons for what is not vectorised, as strings.
    pub reasons: *mut pg_sys::List,
}

impl<'p> LatestJoinPlan<'p> {
    /// All expressions that the engine evaluates.
    pub fn expressions(&self) -> impl Iterator<Item = *mut pg_sys::Node> {
        let keys = self.keys.iter().map(|key| key.expression.as_ptr());
        let others = [&self.quals, &self.groups].into_iter().flatten().copied();
        others.chain(self.join.expressions()).chain(keys)
    }

    /// The data that a path stores.
    fn private_data(&self) -> PrivateData {
        let keys: Vec<_> = self
            .keys
            .iter()
            .map(|key| key.expression.as_ptr())
            .collect();
        let (compared, outputs) = (self.join.expressions(), self.join.columns());
        let parts: [&[*mut pg_sys::Node]; 6] = [
            &self.columns,
            &self.quals,
            &self.groups,
            &keys,
            &compared,
            &outputs,
        ];
        let (mut numbers, mut targets) = (Vec::new(), Targets::new());
        for (number, part) in parts.into_iter().enumerate() {
            numbers.push(part.len() as i32);
            for expression in part {
                match number {
                    0 => targets.push(*expression),
                    _ => targets.push_hidden(*expression),
                }
            }
        }
        targets.push(table_column(self.join.table));
        numbers.extend(self.keys.iter().map(|key| sort_key::to_flags(key.order)));
        numbers.extend(self.join.numbers());
        PrivateData {
            index: self.join.table,
            numbers,
            nodes: std::ptr::null_mut(),
            expressions: targets.parameters,
            targets: targets.entries,
        }
    }

    /// The plan that a node stores.
    pub fn of(plan: CustomPlan<'p>) -> LatestJoinPlan<'p> {
        let numbers = private_data::numbers(plan);
        let mut expressions = plan.entries();
        let columns = expressions.by_ref().take(numbers[0] as usize).collect();
        let mut hidden = |part: usize| -> Vec<*mut pg_sys::Node> {
            let entries = expressions.by_ref().take(numbers[part] as usize);
            entries.map(hidden).collect()
        };
        let (quals, groups, ordered_by) = (hidden(1), hidden(2), hidden(3));
        let (compared, outputs) = (hidden(4), hidden(5));
        let table = expressions.next().expect("the table's column is last");
        let (orders, of_join) = numbers[6..].split_at(ordered_by.len());
        let key = |(expression, flags): (*mut pg_sys::Node, &i32)| OrderedBy {
            expression: plan_node(expression),
            order: sort_key::of_flags(*flags),
            items: None,
        };
        LatestJoinPlan {
            columns,
            quals,
            groups,
            keys: ordered_by.into_iter().zip(orders).map(key).collect(),
            join: HashJoinPlan::of_numbers(table_of(table), compared, outputs, of_join)
                .expect("the plan of a join stores it"),
            reasons: private_data::reasons(plan),
        }
    }

    /// Writes the plan's properties for EXPLAIN.
    pub fn explain(&self, explain: &Explain) {
        explain.table(self.join.table);
        explain.expressions(c"Group Key", &self.groups);
        sort_key::explain_order(explain, &self.keys);
        self.join.explain(explain);
        explain.quals(&self.quals);
        explain.reasons(self.reasons);
    }
}
