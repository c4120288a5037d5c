//! Makes sub-selects of the select list joins, which a join by time can often execute.
//!
//! ```text
//! SELECT t.ts, (SELECT q.bid FROM q WHERE q.sym = t.sym AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) FROM t
//! SELECT t.ts, f.bid FROM t LEFT JOIN LATERAL (SELECT q.bid FROM q WHERE … ORDER BY q.ts DESC LIMIT 1) f ON true
//! ```
//! PostgreSQL executes such a sub-select once for each row, and has no other plan for it. Of a join it has several.
//!
//! Invariants:
//! - The sub-select returns one row at most, by its form: it ends with `LIMIT 1`, or aggregates without GROUP BY. So a
//!   left join adds and removes no row, and gives NULL where the sub-select would.
//! - As written, the sub-select is evaluated for each row of its query's FROM and WHERE. So it is an argument of an
//!   aggregate, or only operators and built-in functions stand around it: neither CASE nor FILTER, for example. Unless
//!   an aggregate reads it, neither its query nor one around it has a LIMIT or window functions, which may end before
//!   all rows were read. A query around it uses its column in the same way, and joins nothing to its query.
//! - References need no change: the sub-select stays one level below its query.
//! - No query gets so many relations that PostgreSQL would no longer look for the best order of its joins.
//!
//! A query for a cursor stays as it is: its rows may be named by WHERE CURRENT OF, and few of them may be fetched.

use std::ffi::CStr;

use pgrx::pg_sys::{self, NodeTag};

use super::added_joins::AddedJoins;
use super::lateral;
use crate::gucs;
use crate::pg::table::OpenedTable;
use crate::pg::tree::{
    Aggref, Expr, Expression, JoinKind, JoinTree, Kind, Node, Query, RangeTblEntry, SubLink,
    TargetEntry, make, walk,
};
use crate::planner::{lanes_table, time_match};

/// A query in which such sub-selects are joins. It is a copy if there are any. The options are those of a cursor,
/// `CURSOR_OPT_…`.
pub fn rewritten(query: Query<'_>, options: u32) -> Query<'_> {
    let is_cursor = options & pg_sys::CURSOR_OPT_FAST_PLAN != 0;
    if is_cursor || !has_sub_select(query) || !gucs::enable_asof() {
        return query;
    }
    let copy = make::copy(query);
    match rewrite(copy, &Use::All, true) {
        true => copy,
        false => query,
    }
}

/// Whether a select list of the query, or of one in its FROM or WITH, contains a sub-select.
fn has_sub_select(query: Query<'_>) -> bool {
    let is_own = query.hasSubLinks() && query.targetList().iter().any(|t| t.expr().has_subplan());
    is_own
        || query
            .rtable()
            .iter()
            .filter_map(RangeTblEntry::subquery)
            .any(has_sub_select)
        || query
            .common_tables()
            .any(|(_, common)| has_sub_select(common))
}

/// The columns of a query whose values are computed for each of its rows.
enum Use {
    All,
    /// Columns counted from 1.
    Columns(Vec<i16>),
}

impl Use {
    /// Whether a target of the query is computed. One that sorts or groups is, also if nobody reads it.
    fn reads(&self, target: TargetEntry<'_>) -> bool {
        let is_column = match self {
            Use::All => true,
            Use::Columns(columns) => columns.contains(&target.resno()),
        };
        is_column || target.ressortgroupref() > 0
    }

    /// The use of an entry's columns in the select list of a query of whose own columns these are used.
    fn of_entry(&self, query: Query<'_>, index: i32) -> Use {
        let mut columns = Vec::new();
        let targets = query.targetList().iter();
        for target in targets.filter(|target| self.reads(*target)) {
            // This walk can leave out parts of the expression; its copy is not used.
            walk::replaced(target.expr(), &mut |node| {
                if let Some(var) = node.as_var()
                    && (var.varlevelsup(), var.varno()) == (0, index)
                {
                    columns.push(var.varattno());
                }
                let is_entered = match node.kind() {
                    Kind::Aggref(call) => is_plain(call),
                    _ => evaluates_all(node),
                };
                (!is_entered).then_some(node)
            });
        }
        match columns.contains(&0) {
            true => Use::All,
            false => Use::Columns(columns),
        }
    }
}

/// Rewrites the queries in FROM and WITH, then the query itself. `is_whole` says that all rows of the query are read.
/// Returns whether that changed anything.
fn rewrite(query: Query<'_>, used: &Use, is_whole: bool) -> bool {
    let is_grouped =
        query.hasAggs() || !query.groupClause().is_empty() || !query.groupingSets().is_empty();
    let ends_early = query.limitCount().is_some() || query.hasWindowFuncs();
    let reads_all = is_grouped || is_whole && !ends_early;
    let is_alone = query.jointree().is_some_and(|from| {
        let mut parts = from.fromlist().iter().map(JoinTree::kind);
        matches!(
            (parts.next(), parts.next()),
            (Some(JoinKind::Entry(_)), None)
        )
    });
    let is_union = query.setOperations().is_some();
    let is_whole = reads_all && (is_union || is_alone);
    let use_of = |index: i32| match is_union {
        true => Use::All,
        false => used.of_entry(query, index),
    };
    let mut has_changed = false;
    for (index, entry) in (1..).zip(query.rtable()) {
        if let Some(inner) = entry.subquery().filter(|inner| has_sub_select(*inner)) {
            has_changed |= rewrite(inner, &use_of(index), is_whole);
        }
    }
    for (name, inner) in query.common_tables() {
        let mut entries = (1..).zip(query.rtable());
        let reader = entries.find(|(_, entry)| entry.common_table() == Some((name, 0)));
        // Queries of WITH that are read twice are left alone.
        if let Some((index, _)) = reader.filter(|_| readers(query, name) == 1) {
            has_changed |= rewrite(inner, &use_of(index), is_whole);
        }
    }
    has_changed | Joins::add(query, used, reads_all && !is_grouped)
}

/// How many entries read queries of WITH of this name, also in the queries of a query.
fn readers(query: Query<'_>, name: &CStr) -> usize {
    let mut count = 0;
    walk::query(query, &mut |node, _| {
        if let Kind::RangeTblEntry(entry) = node.kind() {
            count += usize::from(entry.common_table().is_some_and(|(it, _)| it == name));
        }
        false
    });
    count
}

/// The joins that are added to a query.
struct Joins<'p> {
    joins: AddedJoins<'p>,
    /// The sub-selects that were joined, and the columns that have their values.
    found: Vec<(SubLink<'p>, Expr<'p>)>,
}

impl<'p> Joins<'p> {
    /// Rewrites the sub-selects of a query's own select list: those that are arguments of aggregates, and others if
    /// `is_evaluated` says that the select list is evaluated for each row of FROM and WHERE. Returns whether there were
    /// any.
    fn add(query: Query<'p>, used: &Use, is_evaluated: bool) -> bool {
        let Some((from, joins)) = AddedJoins::of(query) else {
            return false;
        };
        let mut joins = Joins {
            joins,
            found: Vec::new(),
        };
        for target in query.targetList() {
            if used.reads(target) {
                target.set_expr(joins.joined(target.expr(), is_evaluated));
            }
        }
        if let Some(having) = query.havingQual() {
            query.set_having(Some(joins.joined(having, false)));
        }
        joins.joins.finish(from.quals())
    }

    /// A copy of an expression in which sub-selects are joined. `is_evaluated` says that the expression is evaluated
    /// for each row of FROM and WHERE.
    fn joined(&mut self, expr: Expr<'p>, is_evaluated: bool) -> Expr<'p> {
        walk::replaced(expr, &mut |node| self.replacement(node, is_evaluated))
    }

    fn replacement(&mut self, node: Expr<'p>, is_evaluated: bool) -> Option<Expr<'p>> {
        match node.kind() {
            Kind::SubLink(link) if is_evaluated => Some(self.join(link).unwrap_or(node)),
            Kind::Aggref(call) => Some(match is_plain(call) {
                true => walk::replaced(node, &mut |part| match part == node {
                    true => None,
                    false => self.replacement(part, true),
                }),
                false => node,
            }),
            _ => (!evaluates_all(node)).then_some(node),
        }
    }

    /// Joins a sub-select, and returns the column that has its values; `None` if it is not to be joined.
    fn join(&mut self, link: SubLink<'p>) -> Option<Expr<'p>> {
        let known = self.found.iter();
        let mut known = known.filter(|(known, _)| known.as_node().equals(link.as_node()));
        if let Some((_, found)) = known.next() {
            return Some(make::copy(*found));
        }
        let is_scalar = link.subLinkType() == pg_sys::SubLinkType::EXPR_SUBLINK;
        let query = link.subselect()?;
        if !is_scalar || !self.joins.has_room() || !returns_one_row(query) {
            return None;
        }
        // The sub-select becomes a part of the range table, which later changes: the link keeps a copy.
        let link = make::copy(link);
        let target = query.outputs().next()?;
        let side = lateral::sub_select_entry(query, c"found", lateral::output_names(query));
        side.set_lateral(true);
        let side = self.joins.enter(side);
        self.joins.join(side, make::boolean(true));
        let found = self.joins.column(side, target).as_expr();
        self.found.push((link, found));
        Some(found)
    }
}

/// Whether a node evaluates all its parts whenever it is evaluated. Lists and targets are parts of aggregates. A user's
/// function may not: PostgreSQL may put the body of one in SQL in place of the call.
fn evaluates_all(node: Expr<'_>) -> bool {
    let is_built_in = |function: pg_sys::Oid| function.to_u32() < pg_sys::FirstNormalObjectId;
    match node.kind() {
        Kind::OpExpr(operation) => is_built_in(operation.opfuncid()),
        Kind::FuncExpr(call) => is_built_in(call.funcid()),
        Kind::RelabelType(_) => true,
        Kind::Other(tag) => matches!(
            tag,
            NodeTag::T_List | NodeTag::T_TargetEntry | NodeTag::T_CoerceViaIO
        ),
        _ => false,
    }
}

/// Whether an aggregate of its own query evaluates its arguments for each row.
fn is_plain(call: Aggref<'_>) -> bool {
    call.agglevelsup() == 0 && call.aggfilter().is_none() && call.aggdirectargs().is_empty()
}

/// Whether a sub-select reads a lanes table, and returns one row at most, by its form.
fn returns_one_row(query: Query<'_>) -> bool {
    let is_first = || {
        !query.hasAggs()
            && !query.sortClause().is_empty()
            && query.limitOption() == pg_sys::LimitOption::LIMIT_OPTION_COUNT
            && query
                .limitCount()
                .is_some_and(|limit| time_match::is_one(None, limit))
    };
    let is_aggregate =
        || query.hasAggs() && query.sortClause().is_empty() && query.limitCount().is_none();
    time_match::reads_plainly(query)
        && !query.hasSubLinks()
        && query.outputs().count() == 1
        && (is_first() || is_aggregate())
        && time_match::single_table(query).is_ok_and(|(_, table)| {
            let table = table.relid();
            lanes_table::is_lanes_table(table) && !is_one_look(query, table)
        })
        && !query.conjuncts().into_iter().any(Expr::is_volatile)
        && depends_on_rows(query)
}

/// Whether a sub-select may be one look into an index, such as `(SELECT min(x) FROM q WHERE x > t.x)`. PostgreSQL does
/// that well.
fn is_one_look(query: Query<'_>, table: pg_sys::Oid) -> bool {
    query.hasAggs()
        && query.conjuncts().len() == 1
        && OpenedTable::find_locked(table).is_some_and(|table| table.get().has_indexes())
}

/// Whether a sub-select refers to columns of the query around it, of which it aggregates none.
fn depends_on_rows(query: Query<'_>) -> bool {
    let (mut refers, mut aggregates) = (false, false);
    walk::query(query, &mut |node, depth| {
        match node.kind() {
            Kind::Var(var) => refers |= var.varlevelsup() == depth + 1,
            Kind::Aggref(call) => aggregates |= call.agglevelsup() > depth,
            Kind::GroupingFunc(call) => aggregates |= call.agglevelsup() > depth,
            _ => {}
        }
        false
    });
    refers && !aggregates
}
