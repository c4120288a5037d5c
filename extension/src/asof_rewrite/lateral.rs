//! Builds the sub-select that a join with a marker becomes.
//!
//! ```text
//! one search:  SELECT <the right side's columns> FROM <right side> WHERE <conditions>
//!              ORDER BY time DESC | ASC [, tie] [, tableoid], ctid LIMIT 1
//! the nearest: SELECT <columns> FROM (<backward, time> UNION ALL <forward, time>)
//!              ORDER BY lanes.asof_distance(time, left), time LIMIT 1
//! ```
//! Among equal times the order of arrival decides, which is the order of `ctid`: in a lanes table the row number, in
//! a heap table the row's position. The rows of other sides have no order of arrival.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::condition::{Asof, Direction, Look, Operators, SortKey};
use super::descend::{self, Moved};
use super::tolerance;
use crate::pg::tree::{
    Expr, Expression, Integers, List, Name, Oids, Query, RangeTblEntry, SetOperationStmt,
    SortGroupClause, TargetEntry, Var, make, tag,
};
use crate::pg::{catalog, permission};

/// The right side of a join, by its range-table entry.
#[derive(Clone, Copy)]
pub struct RightSide<'p> {
    /// The query that contains the join.
    pub parent: Query<'p>,
    /// The entry's index.
    pub index: i32,
}

impl<'p> RightSide<'p> {
    fn entry(self) -> RangeTblEntry<'p> {
        let entry = self.parent.entry(self.index);
        entry.expect("a join refers to entries of its query")
    }
}

/// The sub-select that returns the match for a row of the left side: the right-hand side of `JOIN LATERAL … ON true`.
/// Its columns are the columns of the right side's entry in their places, so references to them need no change. The
/// right side's entry is not used otherwise afterwards.
pub fn sub_select<'p>(side: RightSide<'p>, asof: &Asof<'p>, residual: &[Expr<'p>]) -> Query<'p> {
    match &asof.looks[..] {
        [look] => candidates(side, asof, look, residual, false),
        looks => nearest(side, asof, looks, residual),
    }
}

/// The candidate of one search, one level below the parent, optionally with its time as the last column. Every
/// expression is copied, so that nothing is shared.
fn candidates<'p>(
    side: RightSide<'p>,
    asof: &Asof<'p>,
    look: &Look<'p>,
    residual: &[Expr<'p>],
    with_time: bool,
) -> Query<'p> {
    let entry = make::copy(side.entry());
    let query = select_like(side.parent);
    let mut targets = columns(entry, side.index);
    if with_time {
        let time = make::copy(asof.time.expression);
        targets.push(make::target(time, targets.len() + 1, Some(c"time"), false));
    }
    let mut order = Order::new(&mut targets);
    let direction = look.direction;
    order.by(asof.time.expression, asof.time.operators, direction);
    if let Some(SortKey {
        expression,
        operators,
    }) = asof.tie
    {
        // A row whose tie is NULL comes after every row whose tie is not.
        order.by_with_nulls(expression, operators, direction, false);
    }
    for (column, kind) in arrival(entry, side.index) {
        order.by(column.as_expr(), Operators::of_type(kind), direction);
    }
    query.set_sort_clause(order.clause);
    query.set_targets(List::new(targets));
    let conditions = residual.iter().chain(&look.conditions);
    let conditions: Vec<_> = conditions.copied().map(make::copy).collect();
    query.set_rtable(List::new([entry]));
    let from = make::reference(side.index).as_join_tree();
    query.set_jointree(Some(make::from(&[from], Some(make::all_of(&conditions)))));
    // The entry is alone in its query, so it has no other entry to refer to.
    entry.set_lateral(false);
    permission::adopt(side.parent, query);
    descend::descend(query, &Moved(vec![side.index]));
    limit_one(query);
    query
}

/// The nearer one of two candidates. Every expression is copied.
fn nearest<'p>(
    side: RightSide<'p>,
    asof: &Asof<'p>,
    looks: &[Look<'p>],
    residual: &[Expr<'p>],
) -> Query<'p> {
    let mut arms = Vec::new();
    for look in looks {
        let arm = candidates(side, asof, look, residual, true);
        // Made for the level below the parent; two more lie between.
        arm.raise_levels(2, 1);
        arms.push(arm);
    }
    let names = output_names(arms[0]);
    let both = union_all(side.parent, &arms, names);
    let query = select_like(side.parent);
    query.set_rtable(List::new([sub_select_entry(both, c"candidate", names)]));
    let places = variables_of(both, 1);
    let Some((&time, places)) = places.split_last() else {
        unreachable!("the time is the last column")
    };
    let mut targets: Vec<_> = places
        .iter()
        .zip(arms[0].targetList())
        .enumerate()
        .map(|(index, (place, of))| make::target(place.as_expr(), index + 1, of.resname(), false))
        .collect();
    let left = make::copy(asof.left);
    descend::descend_expression(left, &Moved::default());
    let function = tolerance::distance_function(left.type_of());
    let kind = catalog::function_result(function);
    let distance = make::call(function, kind, &[time.as_expr(), left]);
    let mut order = Order::new(&mut targets);
    order.by(distance, Operators::of_type(kind), Direction::Forward);
    order.by(time.as_expr(), asof.time.operators, Direction::Forward);
    query.set_sort_clause(order.clause);
    query.set_targets(List::new(targets));
    let from = make::reference(1).as_join_tree();
    query.set_jointree(Some(make::from(&[from], None)));
    limit_one(query);
    query
}

/// `first UNION ALL second`, of queries of equal columns.
fn union_all<'p>(parent: Query<'p>, arms: &[Query<'p>], names: List<'p, Name<'p>>) -> Query<'p> {
    let query = select_like(parent);
    let entries = arms
        .iter()
        .map(|&arm| sub_select_entry(arm, c"candidate", names));
    query.set_rtable(List::new(entries));
    query.set_jointree(Some(make::from(&[], None)));
    let columns = variables_of(arms[0], 1);
    let union: SetOperationStmt<'p> = tag::new();
    union.set_operation(pg_sys::SetOperation::SETOP_UNION);
    union.set_is_all(true);
    union.set_left(Some(make::reference(1)));
    union.set_right(Some(make::reference(2)));
    union.set_types(Oids::new(columns.iter().map(|column| column.vartype())));
    union.set_type_modifiers(Integers::new(
        columns.iter().map(|column| column.vartypmod()),
    ));
    union.set_collations(Oids::new(columns.iter().map(|column| column.varcollid())));
    query.set_set_operations(Some(union));
    let targets = columns.iter().zip(names).enumerate();
    let targets = targets.map(|(index, (column, name))| {
        make::target(column.as_expr(), index + 1, name.sval(), false)
    });
    query.set_targets(List::new(targets));
    query
}

/// A `SELECT` without clauses. It inherits the flags that say what the query may contain.
pub fn select_like<'p>(parent: Query<'p>) -> Query<'p> {
    let query: Query<'p> = tag::new();
    query.set_command(pg_sys::CmdType::CMD_SELECT);
    query.set_is_tagged(true);
    query.set_has_sublinks(parent.hasSubLinks());
    query.set_has_row_security(parent.hasRowSecurity());
    query.set_location(-1);
    query
}

fn limit_one(query: Query<'_>) {
    query.set_limit_count(Some(make::bigint(1)));
    query.set_limit_option(pg_sys::LimitOption::LIMIT_OPTION_COUNT);
}

/// The ORDER BY of a target list that is being built.
struct Order<'a, 'p> {
    targets: &'a mut Vec<TargetEntry<'p>>,
    clause: List<'p, SortGroupClause<'p>>,
}

impl<'a, 'p> Order<'a, 'p> {
    fn new(targets: &'a mut Vec<TargetEntry<'p>>) -> Order<'a, 'p> {
        Order {
            targets,
            clause: List::EMPTY,
        }
    }

    /// Adds a key, with NULLs where an index of the type has them when it is scanned in this direction.
    fn by(&mut self, expression: Expr<'p>, operators: Operators, direction: Direction) {
        let nulls_first = direction == Direction::Backward;
        self.by_with_nulls(expression, operators, direction, nulls_first);
    }

    fn by_with_nulls(
        &mut self,
        expression: Expr<'p>,
        operators: Operators,
        direction: Direction,
        nulls_first: bool,
    ) {
        let known = self.targets.iter().copied();
        let mut known = known.filter(|target| target.expr().equals(expression));
        let target = known.next().unwrap_or_else(|| {
            let copy = make::copy(expression);
            let target = make::target(copy, self.targets.len() + 1, None, true);
            self.targets.push(target);
            target
        });
        if target.ressortgroupref() > 0 {
            return;
        }
        let reference = self.clause.len() as u32 + 1;
        target.set_sort_group_ref(reference);
        let key: SortGroupClause<'p> = tag::new();
        key.set_reference(reference);
        key.set_equality(operators.equal);
        key.set_order(match direction {
            Direction::Backward => operators.greater,
            Direction::Forward => operators.less,
        });
        key.set_descending(direction == Direction::Backward);
        key.set_nulls_first(nulls_first);
        self.clause.push(key);
    }
}

/// All columns of an entry in their places. Dropped columns are NULL.
fn columns<'p>(entry: RangeTblEntry<'p>, index: i32) -> Vec<TargetEntry<'p>> {
    let columns = entry.columns(index).enumerate();
    columns
        .map(|(place, (name, value))| make::target(value, place + 1, name, false))
        .collect()
}

/// The keys of the order in which the rows of a table arrived.
fn arrival<'p>(entry: RangeTblEntry<'p>, index: i32) -> Vec<(Var<'p>, pg_sys::Oid)> {
    let system = |attribute: i32, kind| {
        let column = make::var(index, attribute as i16, kind, pg_sys::InvalidOid);
        (column, kind)
    };
    let tid = || system(pg_sys::SelfItemPointerAttributeNumber, pg_sys::TIDOID);
    let table = || system(pg_sys::TableOidAttributeNumber, pg_sys::OIDOID);
    if !entry.is_relation() {
        return Vec::new();
    }
    match entry.relkind() {
        // Rows of several tables have no common order of arrival, but their order is always the same.
        pg_sys::RELKIND_PARTITIONED_TABLE => vec![table(), tid()],
        pg_sys::RELKIND_RELATION if entry.inh() && catalog::has_children(entry.relid()) => {
            vec![table(), tid()]
        }
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW => vec![tid()],
        _ => Vec::new(),
    }
}

/// The names of a query's columns.
pub fn output_names<'p>(query: Query<'p>) -> List<'p, Name<'p>> {
    let outputs = query.outputs();
    List::new(outputs.map(|target| make::name(target.resname().unwrap_or_default())))
}

/// References to a query's columns, as entry `index` of another.
fn variables_of<'p>(query: Query<'p>, index: i32) -> Vec<Var<'p>> {
    let outputs = query.outputs();
    outputs
        .map(|target| make::var_of_target(index, target))
        .collect()
}

/// A range-table entry for a sub-select.
pub fn sub_select_entry<'p>(
    query: Query<'p>,
    name: &CStr,
    columns: List<'p, Name<'p>>,
) -> RangeTblEntry<'p> {
    let entry: RangeTblEntry<'p> = tag::new();
    let names = make::alias(name, columns);
    entry.set_kind(pg_sys::RTEKind::RTE_SUBQUERY);
    entry.set_subquery(Some(query));
    entry.set_in_from(true);
    entry.set_names(Some(names));
    entry.set_alias(Some(make::copy(names)));
    entry
}

/// Replaces the right side's entry, which went into `query` as a copy, by a lateral sub-select with the same names.
pub fn replace_entry<'p>(side: RightSide<'p>, query: Query<'p>) {
    let old = side.entry();
    let new: RangeTblEntry<'p> = tag::new();
    new.set_kind(pg_sys::RTEKind::RTE_SUBQUERY);
    new.set_subquery(Some(query));
    new.set_lateral(true);
    new.set_in_from(old.inFromCl());
    new.set_alias(old.alias());
    new.set_names(old.eref());
    side.parent.rtable().set(side.index as usize - 1, new);
}
