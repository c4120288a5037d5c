//! What the plans of aggregations and joins store.
//!
//! | list | content |
//! |---|---|
//! | numbers | counts of the ten parts of `custom_scan_tlist`; flags; the [order](GroupOrder) of groups; the [limit](RowLimit) of joined rows; two numbers for each absent column; the [limit](GroupLimit) of groups; the [numbers](HashJoinPlan::numbers) of a hash join |
//! | nodes | the join by time |
//! | `custom_exprs` | parameters of all expressions, as PostgreSQL looks only there for what makes a node run again |
//! | `custom_scan_tlist` | keys, or the columns that a join returns; aggregates; [absent](Absent) columns; conditions; conditions above a join by time; its expressions; a hash join's keys and conditions; its outputs; grouping expressions that replace keys; the sort key of a limit of joined rows; a column of the table |
//!
//! Conditions are in the target list, [hidden](Targets::push_hidden), because PostgreSQL adjusts
//! their columns there when it combines plans. The node never returns them. The column at the end
//! identifies the table.

use pgrx::pg_sys;

use super::group_limit::GroupLimit;
use super::group_order::GroupOrder;
use super::row_limit::RowLimit;
use crate::custom_scan::node::Planned;
use crate::custom_scan::private_data::{
    self, PrivateData, Targets, hidden, table_column, table_of,
};
use crate::joins::by_key::plan::HashJoinPlan;
use crate::joins::by_time::find::TimeJoin;
use crate::joins::by_time::plan::{JoinPlan, Wanted};
use crate::pg::exec::node::CustomPlan;
use crate::pg::explain::Explain;
use crate::pg::tree::{Aggref, Expr, Expression, List, Query, View, plan_field, plan_node};
use crate::planner::reasons::About;

/// The place of the flags among the numbers of a plan, and the flags.
const FLAGS: usize = 10;
const STANDS_IN: i32 = 1;
const IS_PARTIAL: i32 = 2;

/// Fills in the plan of a path that stores what an [`Engine`] made.
pub fn plan_engine(planned: &Planned) {
    let index = planned.take_path();
    planned.store_reasons(index, Some(About::Use));
}

/// As [`plan_engine`], for an aggregation: the node evaluates HAVING.
pub fn plan_aggregation(planned: &Planned) {
    plan_engine(planned);
    if private_data::numbers(planned.plan())[FLAGS] & IS_PARTIAL != 0 {
        // The node that combines the transition states of groups evaluates HAVING.
        return;
    }
    let having = planned.root.parse().and_then(Query::havingQual);
    // The planner has turned it into a list.
    let having = having.and_then(Expr::as_nodes);
    planned.scan.set_quals(having.unwrap_or(List::EMPTY));
}

/// The join whose rows a node aggregates or returns.
#[derive(Clone, Copy)]
pub enum Joined<'a, 'p> {
    /// No join: the rows are the table's.
    No,
    /// A join by time.
    ByTime(&'a TimeJoin<'p>),
    /// A hash join, and for each key the expression that the engine groups by: one with the same values, over other
    /// columns. Empty if it groups by the keys themselves.
    ByHash(&'a HashJoinPlan, List<'p, Expr<'p>>),
}

/// The parts of a join in a stored plan.
struct JoinParts<'p> {
    /// Conditions above a join by time; its expressions; a hash join's keys and conditions; its outputs; grouping
    /// expressions that replace keys.
    hidden: [List<'p, Expr<'p>>; 5],
    /// The join by time.
    nodes: List<'p, Expr<'p>>,
    /// The numbers of a hash join.
    numbers: Vec<i32>,
}

impl<'p> Joined<'_, 'p> {
    fn parts(self) -> JoinParts<'p> {
        let views = |nodes: Vec<*mut pg_sys::Node>| List::new(nodes.into_iter().map(plan_node));
        let none = List::EMPTY;
        match self {
            Joined::No => JoinParts {
                hidden: [none; 5],
                nodes: none,
                numbers: vec![0],
            },
            Joined::ByTime(join) => {
                let above = List::new(join.quals.iter().copied());
                let expressions = views(join.plan.left_expressions());
                JoinParts {
                    hidden: [above, expressions, none, none, none],
                    nodes: plan_field(join.plan.encode()),
                    numbers: vec![0],
                }
            }
            Joined::ByHash(plan, grouped) => {
                let (compared, outputs) = (views(plan.expressions()), views(plan.columns()));
                JoinParts {
                    hidden: [none, none, compared, outputs, grouped],
                    nodes: none,
                    numbers: plan.numbers(),
                }
            }
        }
    }
}

/// A column that has one value in all groups of a node: a key that is not in its grouping set, or `GROUPING(…)`.
#[derive(Clone, Copy)]
pub struct Absent<'p> {
    expression: Expr<'p>,
    /// `None` is NULL.
    value: Option<i32>,
}

impl<'p> Absent<'p> {
    /// A column that is NULL.
    pub fn null(expression: Expr<'p>) -> Absent<'p> {
        Absent {
            expression,
            value: None,
        }
    }

    /// The column.
    pub fn expression(&self) -> Expr<'p> {
        self.expression
    }

    /// A column of type `integer`.
    pub fn constant(expression: Expr<'p>, value: i32) -> Absent<'p> {
        Absent {
            expression,
            value: Some(value),
        }
    }
}

/// An aggregation or a join, as the planner finds it.
pub struct Engine<'a, 'p> {
    /// The range-table index of the table.
    pub index: u32,
    /// The grouping expressions; for a join, the columns that it returns.
    pub keys: List<'p, Expr<'p>>,
    /// The calls of aggregates.
    pub calls: List<'p, Expr<'p>>,
    /// Columns with one value.
    pub absent: Vec<Absent<'p>>,
    /// The conditions on the table.
    pub quals: List<'p, Expr<'p>>,
    /// The join.
    pub join: Joined<'a, 'p>,
    /// Whether PostgreSQL's own plan is the last child.
    pub has_stand_in: bool,
    /// Whether the node returns transition states. It may return a group several times.
    pub is_partial: bool,
    /// The order of the groups.
    pub order: Option<GroupOrder>,
    /// The groups that the query can return.
    pub limit: Option<GroupLimit>,
    /// The joined rows that the query can return.
    pub row_limit: Option<RowLimit<'p>>,
}

impl<'p> Engine<'_, 'p> {
    /// The list that a path of the node stores.
    pub fn stored(&self) -> List<'p, Expr<'p>> {
        let JoinParts {
            hidden: [above, expressions, compared, outputs, grouped],
            nodes,
            numbers: of_join,
        } = self.join.parts();
        let (mut numbers, mut targets) = (Vec::new(), Targets::new());
        let absent = List::new(self.absent.iter().map(|absent| absent.expression));
        for part in [self.keys, self.calls, absent] {
            numbers.push(part.len() as i32);
            for expression in part {
                targets.push(expression.as_ptr());
            }
        }
        let sorted = RowLimit::expressions(self.row_limit);
        for part in [
            self.quals,
            above,
            expressions,
            compared,
            outputs,
            grouped,
            sorted,
        ] {
            numbers.push(part.len() as i32);
            for expression in part {
                targets.push_hidden(expression.as_ptr());
            }
        }
        targets.push(table_column(self.index));
        let stands_in = if self.has_stand_in { STANDS_IN } else { 0 };
        let is_partial = if self.is_partial { IS_PARTIAL } else { 0 };
        numbers.push(stands_in | is_partial);
        numbers.push(GroupOrder::number(self.order));
        numbers.extend(RowLimit::numbers(self.row_limit));
        for Absent { value, .. } in &self.absent {
            numbers.extend([i32::from(value.is_some()), value.unwrap_or(0)]);
        }
        numbers.extend(GroupLimit::numbers(self.limit.as_ref()));
        numbers.extend(of_join);
        // The numbers of a join have no parameters.
        for part in (1..nodes.len()).filter_map(|part| nodes.get(part)) {
            targets.want_parameters(part);
        }
        let data = PrivateData {
            index: self.index,
            numbers,
            nodes: nodes.as_ptr(),
            expressions: targets.parameters,
            targets: targets.entries,
        };
        plan_field(data.to_path_list())
    }
}

/// The plan of an aggregation or a join.
pub struct EnginePlan {
    /// The grouping expressions; for a join, the columns that it returns.
    pub keys: Vec<*mut pg_sys::Node>,
    /// The calls of aggregates.
    pub calls: Vec<Aggref<'static>>,
    /// The values of [absent](Absent) columns, which follow the aggregates.
    pub absent: Vec<Option<i32>>,
    /// The conditions on the table.
    pub quals: Vec<*mut pg_sys::Node>,
    /// The conditions on the rows of a join by time.
    pub quals_above: Vec<*mut pg_sys::Node>,
    /// The join by time.
    pub join: Option<JoinPlan>,
    pub hash_join: Option<HashJoinPlan>,
    /// Whether the last child is a plan that [stands in](crate::custom_scan::stand_in).
    pub has_stand_in: bool,
    /// Whether the node returns transition states. It may return a group several times.
    pub is_partial: bool,
    /// The order in which groups are returned, if the query wants one.
    pub order: Option<GroupOrder>,
    /// The groups that the query can return, if not all.
    pub limit: Option<GroupLimit>,
    /// The joined rows that the query can return, if not all.
    pub row_limit: Option<RowLimit<'static>>,
    /// The reasons for what is not vectorised, as strings.
    pub reasons: *mut pg_sys::List,
    /// The range-table index of the table.
    pub index: u32,
}

impl EnginePlan {
    /// How many small sides the hash join has: their plans are the first children. 0 without a hash join.
    pub fn small_sides(&self) -> usize {
        self.hash_join
            .as_ref()
            .map_or(0, |join| join.dimensions.len())
    }

    /// Whether an expression is over small sides of the hash join alone.
    pub fn is_small(&self, expression: *mut pg_sys::Node) -> bool {
        let join = self.hash_join.as_ref();
        join.is_some_and(|join| join.is_small(expression))
    }

    /// The grouping expressions over small sides of the hash join.
    pub fn small_keys(&self) -> Vec<*mut pg_sys::Node> {
        let keys = self.keys.iter().copied();
        keys.filter(|key| self.is_small(*key)).collect()
    }

    /// All expressions that the engine evaluates.
    pub fn expressions(&self) -> Vec<*mut pg_sys::Node> {
        let parts = [&self.keys, &self.quals, &self.quals_above];
        let mut all: Vec<*mut pg_sys::Node> = parts.into_iter().flatten().copied().collect();
        all.extend(self.calls.iter().map(|call| call.as_expr().as_ptr()));
        if let Some(join) = &self.hash_join {
            all.extend(join.expressions());
        }
        if let Some(join) = &self.join {
            all.extend(join.left_expressions());
            all.extend(join.table_quals.iter().map(View::as_ptr));
            all.extend(
                join.computed()
                    .iter()
                    .map(|(_, expression)| expression.as_ptr()),
            );
            if let Wanted::Aggregates(calls) = &join.wanted {
                all.extend(calls.iter().map(|call| call.as_expr().as_ptr()));
            }
        }
        all
    }

    /// The plan that a node stores.
    pub fn of(plan: CustomPlan<'_>) -> EnginePlan {
        let numbers = private_data::numbers(plan);
        let count = |part: usize| numbers[part] as usize;
        let mut expressions = plan.entries();
        let keys: Vec<_> = expressions.by_ref().take(count(0)).collect();
        let calls = expressions.by_ref().take(count(1));
        let calls = calls.map(|node| plan_node(node.cast())).collect();
        let of_absent = 14..14 + 2 * count(2);
        let absent = numbers[of_absent.clone()].chunks(2);
        let absent = absent
            .map(|pair| (pair[0] != 0).then_some(pair[1]))
            .collect();
        expressions.by_ref().take(count(2)).for_each(drop);
        let mut hidden = |part: usize| -> Vec<*mut pg_sys::Node> {
            let entries = expressions.by_ref().take(count(part));
            entries.map(hidden).collect()
        };
        let (quals, quals_above, of_join) = (hidden(3), hidden(4), hidden(5));
        let join = private_data::nodes(plan);
        let join = (!join.is_null()).then(|| JoinPlan::decode(join, &of_join));
        let (compared, outputs, grouped) = (hidden(6), hidden(7), hidden(8));
        let sorted = hidden(9).first().map(|key| plan_node((*key).cast()));
        let table = expressions.next().expect("the table's column is last");
        let index = table_of(table);
        let after = &numbers[of_absent.end..];
        let (limit, of_limit) = GroupLimit::of_numbers(after);
        let of_join = &after[of_limit..];
        let hash_join = HashJoinPlan::of_numbers(index, compared, outputs, of_join);
        EnginePlan {
            keys: if grouped.is_empty() { keys } else { grouped },
            calls,
            absent,
            quals,
            quals_above,
            join,
            hash_join,
            has_stand_in: numbers[FLAGS] & STANDS_IN != 0,
            is_partial: numbers[FLAGS] & IS_PARTIAL != 0,
            order: GroupOrder::from_number(numbers[11]),
            limit,
            row_limit: RowLimit::of(sorted, [numbers[12], numbers[13]]),
            reasons: private_data::reasons(plan),
            index,
        }
    }

    /// Writes the properties that all these nodes have for EXPLAIN.
    pub fn explain(&self, explain: &Explain) {
        if let Some(join) = &self.join {
            explain.text(c"Time Join", &join.describe());
        }
        if let Some(join) = &self.hash_join {
            join.explain(explain);
        }
        if let Some(limit) = &self.row_limit {
            limit.explain(explain);
        }
        explain.quals(&self.quals);
        explain.expressions(c"Join Filter", &self.quals_above);
        explain.reasons(self.reasons);
    }
}
