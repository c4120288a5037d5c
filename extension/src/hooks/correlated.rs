//! Makes aggregates that depend on the row around them joins with groups, before planning.
//!
//! ```text
//! SELECT … FROM t WHERE t.price < (SELECT avg(q.price) FROM q WHERE q.sym = t.sym AND q.size > 1)
//! SELECT … FROM t LEFT JOIN (SELECT avg(q.price), q.sym FROM q WHERE q.size > 1 GROUP BY q.sym) g ON g.sym = t.sym
//!  WHERE t.price < g.avg
//! ```
//! PostgreSQL executes such a sub-select once for each row, and has no other plan for it: hours where each execution
//! reads a table. Whether the groups of all keys cost less depends on how many rows ask. So the query is planned in
//! both ways, and the plan of lower cost is executed.
//!
//! Invariants:
//! - The sub-select aggregates without GROUP BY, so it has one row, and a group is unique by its keys. The left join
//!   adds and removes no row.
//! - Each condition of the sub-select that refers to the query around it compares an expression of the sub-select with
//!   `=`, and groups are made by the same equality. A key that is NULL has no group, as it fulfils no condition.
//! - Where there is no group, the sub-select would aggregate no rows. The result is NULL then, or 0 for a bare `count`.
//! - The sub-select is not volatile, and takes no sample of a table.
//! - Groups for which no row asks raise no error: the sub-select reads tables, not functions or other sub-selects, and
//!   keys, arguments and conditions, also those of joins, consist of functions that cannot fail. The exception is
//!   arithmetic, and sums, beyond the range of `float8` and `numeric`, which the documents name.
//!
//! A query for a cursor stays as it is: few of its rows may be fetched.

use pgrx::pg_sys;

use crate::asof_rewrite::added_joins::{AddedJoins, AddedSide};
use crate::asof_rewrite::lateral;
use crate::pg::tree::{
    Aggref, CoalesceExpr, Expr, Expression, FromExpr, Kind, List, Node, OpExpr, Query,
    RangeTblEntry, SortGroupClause, SubLink, TargetEntry, make, tag, walk,
};
use crate::pg::{catalog, names};
use crate::planner::{lanes_table, time_match};
use crate::vectorize::{self, Vectorize};

/// A query that costs less is not planned twice. It takes some 1 to 2 ms, several times as long as the planning.
pub const COST_MIN: f64 = 5_000.0;

/// Aggregates of PostgreSQL that are NULL where there are no rows.
const NULL_OF_NOTHING: [&str; 13] = [
    "sum",
    "avg",
    "min",
    "max",
    "stddev",
    "stddev_samp",
    "stddev_pop",
    "variance",
    "var_samp",
    "var_pop",
    "bool_and",
    "bool_or",
    "every",
];

/// Functions behind operators that fail only beyond the range of their type, or never, though PostgreSQL does not call
/// them leakproof.
const HARMLESS: [&str; 12] = [
    "numeric_add",
    "numeric_sub",
    "numeric_mul",
    "numeric_eq",
    "numeric_ne",
    "numeric_lt",
    "numeric_le",
    "numeric_gt",
    "numeric_ge",
    "float8pl",
    "float8mi",
    "float8mul",
];

/// Integers whose equality across types is that of each type.
const INTEGERS: [pg_sys::Oid; 3] = [pg_sys::INT2OID, pg_sys::INT4OID, pg_sys::INT8OID];

/// A copy of a query in which such sub-selects are joins; `None` if there are none. The options are those of a cursor,
/// `CURSOR_OPT_…`.
pub fn joined<'p>(query: Query<'p>, options: u32) -> Option<Query<'p>> {
    let is_cursor = options & pg_sys::CURSOR_OPT_FAST_PLAN != 0;
    if is_cursor || vectorize::vectorize() == Vectorize::Off || !has_sub_select(query) {
        return None;
    }
    let copy = make::copy(query);
    rewrite(copy).then_some(copy)
}

/// Whether the query or one in it has a sub-select that depends on its rows and reads a lanes table.
fn has_sub_select(query: Query<'_>) -> bool {
    let is_found = |node: Expr<'_>| match node.kind() {
        Kind::SubLink(link) => grouped_query(link).map(|_| ()),
        _ => None,
    };
    let commands = [pg_sys::CmdType::CMD_SELECT, pg_sys::CmdType::CMD_INSERT];
    commands.contains(&query.commandType()) && walk::found(query, is_found).is_some()
}

/// Rewrites the queries in a query, then the query itself. Returns whether that changed anything.
fn rewrite(query: Query<'_>) -> bool {
    let mut has_changed = false;
    for inner in walk::inner_queries(query) {
        has_changed |= rewrite(inner);
    }
    has_changed | join_all(query)
}

/// Joins the sub-selects of WHERE, and of a select list that is evaluated row by row.
fn join_all(query: Query<'_>) -> bool {
    let Some((from, joins)) = AddedJoins::of(query) else {
        return false;
    };
    let mut joins = Joins {
        joins,
        found: Vec::new(),
    };
    let quals = from.quals().map(|quals| joins.replaced(quals));
    let is_grouped =
        query.hasAggs() || !query.groupClause().is_empty() || !query.groupingSets().is_empty();
    if !is_grouped {
        for target in query.targetList() {
            target.set_expr(joins.replaced(target.expr()));
        }
    }
    joins.joins.finish(quals)
}

/// The joins that are added to a query.
struct Joins<'p> {
    joins: AddedJoins<'p>,
    /// The sub-selects that were joined, and what stands for them.
    found: Vec<(SubLink<'p>, Expr<'p>)>,
}

impl<'p> Joins<'p> {
    /// A copy of an expression in which sub-selects are joined.
    fn replaced(&mut self, expr: Expr<'p>) -> Expr<'p> {
        walk::replaced(expr, &mut |node| match node.kind() {
            Kind::SubLink(link) => Some(self.join(link).unwrap_or(node)),
            _ => None,
        })
    }

    /// Joins a sub-select, and returns what has its values; `None` if it is not to be joined.
    fn join(&mut self, link: SubLink<'p>) -> Option<Expr<'p>> {
        let known = self.found.iter();
        let mut known = known.filter(|(known, _)| known.as_node().equals(link.as_node()));
        if let Some((_, found)) = known.next() {
            return Some(make::copy(*found));
        }
        if !self.joins.has_room() {
            return None;
        }
        let grouped = grouped_query(link)?;
        // The sub-select becomes a part of the range table, which later changes: the link keeps a copy.
        let link = make::copy(link);
        let query = grouped.query;
        let keys = grouped.group();
        let side = lateral::sub_select_entry(query, c"grouped", lateral::output_names(query));
        let side = self.joins.enter(side);
        let conditions: Vec<Expr<'p>> = grouped
            .keys
            .iter()
            .zip(&keys)
            .map(|(key, target)| key.condition(side, *target))
            .collect();
        self.joins.join(side, make::all_of(&conditions));
        let value = self.joins.column(side, grouped.value).as_expr();
        let found = match grouped.is_count {
            true => zero_for_null(value),
            false => value,
        };
        self.found.push((link, found));
        Some(found)
    }
}

/// A sub-select that can be computed for all keys at once.
struct Grouped<'p> {
    query: Query<'p>,
    value: TargetEntry<'p>,
    /// Whether the value is a bare `count`.
    is_count: bool,
    keys: Vec<Key<'p>>,
    /// The conditions that do not refer to the query around it.
    rest: Vec<Expr<'p>>,
}

/// A condition `inner = outer`.
struct Key<'p> {
    comparison: OpExpr<'p>,
    /// The operand of the sub-select.
    inner: Expr<'p>,
}

impl<'p> Grouped<'p> {
    /// Groups the sub-select by its keys, and returns the targets that are the keys.
    fn group(&self) -> Vec<TargetEntry<'p>> {
        let mut targets = List::new([self.value]);
        let mut clauses = List::EMPTY;
        let mut keys = Vec::new();
        for (reference, key) in (1..).zip(&self.keys) {
            let target = make::target(key.inner, reference as usize + 1, Some(c"key"), false);
            target.set_sort_group_ref(reference);
            let type_of = key.inner.type_of();
            let (less, equal, _) = catalog::sort_operators(type_of);
            let clause: SortGroupClause<'p> = tag::new();
            clause.set_reference(reference);
            clause.set_equality(equal);
            clause.set_order(less);
            clause.set_hashable(catalog::is_hashable(equal, type_of));
            clauses.push(clause);
            targets.push(target);
            keys.push(target);
        }
        self.query.set_targets(targets);
        self.query.set_group_clause(clauses);
        let tables = self.query.jointree().map(FromExpr::fromlist);
        let tables: Vec<_> = tables.into_iter().flat_map(List::iter).collect();
        let rest = (!self.rest.is_empty()).then(|| make::all_of(&self.rest));
        self.query.set_jointree(Some(make::from(&tables, rest)));
        keys
    }
}

impl<'p> Key<'p> {
    /// The condition of the join: the key's target in place of the sub-select's operand, and the other operand in the
    /// terms of the query around it.
    fn condition(&self, side: AddedSide, target: TargetEntry<'p>) -> Expr<'p> {
        walk::replaced(self.comparison.as_expr(), &mut |node| {
            if node == self.inner {
                return Some(make::var_of_target(side.entry, target).as_expr());
            }
            let outer = node.as_var().map(make::copy)?;
            outer.set_levels_up(outer.varlevelsup() - 1);
            Some(outer.as_expr())
        })
    }
}

/// `COALESCE(value, 0)` of a bigint.
fn zero_for_null(value: Expr<'_>) -> Expr<'_> {
    let coalesce: CoalesceExpr<'_> = tag::new();
    coalesce.set_type(pg_sys::INT8OID);
    coalesce.set_operands(List::new([value, make::bigint(0)]));
    coalesce.set_location(-1);
    coalesce.as_expr()
}

/// A sub-select as one that can be computed for all keys at once, if it is one.
fn grouped_query(link: SubLink<'_>) -> Option<Grouped<'_>> {
    let query = link.subselect()?;
    let is_plain = link.subLinkType() == pg_sys::SubLinkType::EXPR_SUBLINK
        && time_match::reads_plainly(query)
        && query.hasAggs()
        && !query.hasSubLinks()
        && query.sortClause().is_empty()
        && query.limitCount().is_none()
        && query.targetList().len() == 1
        && query.rtable().iter().any(is_lanes_table)
        && reads_harmlessly(query)
        && !query.as_node().is_volatile();
    let value = query.targetList().first().filter(|_| is_plain)?;
    let is_count = is_bare_count(value.expr());
    if !is_count && !is_null_of_nothing(value.expr()) {
        return None;
    }
    let (mut keys, mut rest) = (Vec::new(), Vec::new());
    for conjunct in query.conjuncts() {
        match outer_columns(conjunct)? {
            0 if is_harmless(conjunct) => rest.push(conjunct),
            0 => return None,
            _ => keys.push(key(conjunct)?),
        }
    }
    // Nothing else refers to the query around the sub-select.
    let of_keys = keys
        .iter()
        .map(|key| outer_columns(key.comparison.as_expr()));
    let of_keys: usize = of_keys.sum::<Option<usize>>()?;
    (!keys.is_empty() && outer_columns_of(query)? == of_keys).then_some(Grouped {
        query,
        value,
        is_count,
        keys,
        rest,
    })
}

/// Whether FROM consists of tables and their joins, whose conditions and policies cannot fail, without samples.
fn reads_harmlessly(query: Query<'_>) -> bool {
    let are_tables = query.rtable().iter().all(|entry| {
        let is_join = entry.rtekind() == pg_sys::RTEKind::RTE_JOIN;
        (entry.is_relation() || is_join)
            && entry.tablesample().is_none()
            && entry.securityQuals().iter().all(is_harmless)
    });
    let fails = |node: Expr<'_>| match node.kind() {
        Kind::JoinExpr(join) => join.quals().filter(|quals| !is_harmless(*quals)).map(drop),
        _ => None,
    };
    are_tables && walk::found(query, fails).is_none()
}

fn is_lanes_table(entry: RangeTblEntry<'_>) -> bool {
    entry.is_relation() && lanes_table::is_lanes_table(entry.relid())
}

/// How many columns of the query around it an expression of a sub-select contains. `None`: it depends on something else
/// outside of the sub-select too.
fn outer_columns(expr: Expr<'_>) -> Option<usize> {
    let mut count = Some(0);
    walk::expression(expr, &mut |node, depth| {
        count_outer(node, depth, &mut count)
    });
    count
}

/// How many columns of the query around it a whole sub-select contains. `None`: it depends on something else outside of
/// itself too.
fn outer_columns_of(query: Query<'_>) -> Option<usize> {
    let mut count = Some(0);
    walk::query(query, &mut |node, depth| {
        count_outer(node, depth, &mut count)
    });
    count
}

/// Counts a node; the walk ends at one that cannot be counted.
fn count_outer(node: Expr<'_>, depth: u32, count: &mut Option<usize>) -> bool {
    let levels_up = match node.kind() {
        Kind::Var(var) => var.varlevelsup(),
        Kind::Aggref(call) => call.agglevelsup(),
        Kind::GroupingFunc(call) => call.agglevelsup(),
        Kind::RangeTblEntry(entry) if entry.common_table().is_some() => entry.ctelevelsup(),
        _ => return false,
    };
    if levels_up <= depth {
        return false;
    }
    let is_column = matches!(node.kind(), Kind::Var(_)) && levels_up == depth + 1;
    *count = count.filter(|_| is_column).map(|count| count + 1);
    count.is_none()
}

/// Reads a condition `inner = outer`, in either order.
fn key(condition: Expr<'_>) -> Option<Key<'_>> {
    let comparison = condition.as_op()?;
    let mut operands = comparison.args().iter();
    let (Some(left), Some(right), None) = (operands.next(), operands.next(), operands.next())
    else {
        return None;
    };
    let (inner, outer) = match (outer_columns(left)?, outer_columns(right)?) {
        (0, 1..) => (left, right),
        (1.., 0) => (right, left),
        _ => return None,
    };
    let is_equality = {
        let (inner_type, outer_type) = (inner.type_of(), outer.type_of());
        let (_, equal, _) = catalog::sort_operators(inner_type);
        let are_integers = INTEGERS.contains(&inner_type) && INTEGERS.contains(&outer_type);
        let is_built_in = comparison.opno().to_u32() < pg_sys::FirstNormalObjectId;
        comparison.opno() == equal
            || are_integers && is_built_in && names::operator_name(comparison.opno()) == "="
    };
    let is_same_collation =
        !catalog::is_collatable(inner.type_of()) || comparison.inputcollid() == inner.collation();
    (is_equality
        && is_same_collation
        && inner.has_vars()
        && !outer.has_vars()
        && is_harmless(inner)
        && is_harmless(outer))
    .then_some(Key { comparison, inner })
}

/// Whether an expression is a bare `count`.
fn is_bare_count(expr: Expr<'_>) -> bool {
    match expr.kind() {
        Kind::Aggref(call) => is_named(call.aggfnoid(), &["count"]) && is_harmless_call(call),
        _ => false,
    }
}

/// Whether an expression over aggregates is NULL if there are no rows, and cannot fail.
fn is_null_of_nothing(expr: Expr<'_>) -> bool {
    let is_null = match expr.kind() {
        Kind::Aggref(call) => {
            return is_named(call.aggfnoid(), &NULL_OF_NOTHING) && is_harmless_call(call);
        }
        Kind::OpExpr(operation) => {
            catalog::is_strict(operation.opfuncid())
                && operation.args().iter().any(is_null_of_nothing)
        }
        Kind::FuncExpr(call) => {
            catalog::is_strict(call.funcid()) && call.args().iter().any(is_null_of_nothing)
        }
        Kind::RelabelType(relabel) => relabel.arg().is_some_and(is_null_of_nothing),
        _ => false,
    };
    is_null && is_harmless(expr)
}

/// Whether an aggregate of the sub-select itself reads only what cannot fail.
fn is_harmless_call(call: Aggref<'_>) -> bool {
    call.agglevelsup() == 0
        && call.aggdirectargs().is_empty()
        && call.aggfilter().is_none_or(is_harmless)
        && call.args().iter().all(|target| is_harmless(target.expr()))
}

/// Whether an expression cannot fail, but for numbers beyond the range of their type. Its constant parts are evaluated
/// while it is planned, in any case.
fn is_harmless(expr: Expr<'_>) -> bool {
    !walk::expression(expr.folded(None), &mut |node, _| match node.kind() {
        Kind::OpExpr(operation) => !cannot_fail(operation.opfuncid()),
        Kind::ScalarArrayOpExpr(operation) => !cannot_fail(operation.opfuncid()),
        Kind::FuncExpr(call) => !cannot_fail(call.funcid()) && !is_widening(node),
        Kind::Var(_)
        | Kind::Const(_)
        | Kind::Param(_)
        | Kind::Aggref(_)
        | Kind::BoolExpr(_)
        | Kind::RelabelType(_)
        | Kind::NullTest(_)
        | Kind::BooleanTest(_)
        | Kind::ArrayExpr(_) => false,
        Kind::Other(tag) => !matches!(
            tag,
            pg_sys::NodeTag::T_List | pg_sys::NodeTag::T_TargetEntry
        ),
        _ => true,
    })
}

fn cannot_fail(function: pg_sys::Oid) -> bool {
    is_named(function, &HARMLESS) || catalog::is_leakproof(function)
}

/// Whether a call converts an integer to `numeric` or `float8`, which have all integers.
fn is_widening(expr: Expr<'_>) -> bool {
    let Kind::FuncExpr(call) = expr.kind() else {
        return false;
    };
    let from = call.args().first().map(Expr::type_of);
    let to = expr.type_of();
    is_named(call.funcid(), &["numeric", "float8"])
        && from.is_some_and(|from| INTEGERS.contains(&from))
        && [pg_sys::NUMERICOID, pg_sys::FLOAT8OID].contains(&to)
}

/// Whether a function is one of PostgreSQL's own with one of these names.
fn is_named(function: pg_sys::Oid, known: &[&str]) -> bool {
    let is_built_in = function.to_u32() < pg_sys::FirstNormalObjectId;
    is_built_in && known.contains(&names::function_name(function.to_u32()).as_str())
}
