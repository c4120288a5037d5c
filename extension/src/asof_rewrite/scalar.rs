//! Makes sub-selects of the select list joins, where a join by time can execute them.
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
//! - The sub-select is evaluated for each row in the query as written, too. So it does not stand in CASE, COALESCE,
//!   AND, OR or FILTER, the query has no LIMIT, and some query around it reads the column. An argument of an aggregate
//!   is always evaluated.
//! - References need no change: the sub-select stays one level below its query.

use pgrx::pg_sys::{self, NodeTag};

use super::lateral;
use crate::gucs;
use crate::pg::outer_joins;
use crate::pg::tree::{
    Aggref, Expr, Expression, FromExpr, JoinExpr, JoinTree, Kind, List, Node, Query, RangeTblEntry,
    SubLink, TargetEntry, make, tag, walk,
};
use crate::planner::{lanes_table, time_match};

/// A query in which such sub-selects are joins. It is a copy if there are any.
pub fn rewritten(query: Query<'_>) -> Query<'_> {
    if !has_sub_select(query) || !gucs::enable_asof() {
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
    /// Whether a target of the query is computed.
    fn reads(&self, target: TargetEntry<'_>) -> bool {
        let is_column = match self {
            Use::All => true,
            Use::Columns(columns) => columns.contains(&target.resno()),
        };
        is_column || target.ressortgroupref() > 0
    }

    /// The use of an entry's columns in a query of whose own columns these are used.
    fn of_entry(&self, query: Query<'_>, index: i32) -> Use {
        let mut columns = Vec::new();
        let mut visit = |node: Expr<'_>, levels: u32| {
            if let Some(var) = node.as_var()
                && (var.varlevelsup(), var.varno()) == (levels, index)
            {
                columns.push(var.varattno());
            }
            false
        };
        let targets = query
            .targetList()
            .iter()
            .filter(|target| self.reads(*target));
        let from = query.jointree().map(FromExpr::as_node);
        for part in targets
            .map(TargetEntry::expr)
            .chain(from)
            .chain(query.havingQual())
        {
            walk::expression(part, &mut visit);
        }
        for lateral in query.rtable().iter().filter_map(RangeTblEntry::subquery) {
            walk::query(lateral, &mut |node, depth| visit(node, depth + 1));
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
    let reads_all = is_grouped || is_whole && query.limitCount().is_none();
    let use_of = |index: i32| match query.setOperations() {
        Some(_) => Use::All,
        None => used.of_entry(query, index),
    };
    let mut has_changed = false;
    for (index, entry) in (1..).zip(query.rtable()) {
        if let Some(inner) = entry.subquery().filter(|inner| has_sub_select(*inner)) {
            has_changed |= rewrite(inner, &use_of(index), reads_all);
        }
    }
    for (name, inner) in query.common_tables() {
        let is_it = |entry: &RangeTblEntry<'_>| entry.common_table() == Some((name, 0));
        let mut readers = (1..).zip(query.rtable()).filter(|(_, entry)| is_it(entry));
        // Queries of WITH that are read twice, or by other queries, are left alone.
        if let (Some((index, _)), None) = (readers.next(), readers.next()) {
            has_changed |= rewrite(inner, &use_of(index), reads_all);
        }
    }
    has_changed | Joins::add(query, used, reads_all && !is_grouped)
}

/// The joins that are added to a query.
struct Joins<'p> {
    query: Query<'p>,
    /// FROM with the joins so far.
    from: JoinTree<'p>,
    has_any: bool,
}

impl<'p> Joins<'p> {
    /// Rewrites the sub-selects of a query's own select list: those that are arguments of aggregates, and others if
    /// `is_evaluated` says that the select list is evaluated for each row of FROM and WHERE. Returns whether there were
    /// any.
    fn add(query: Query<'p>, used: &Use, is_evaluated: bool) -> bool {
        let is_plain = query.hasSubLinks()
            && query.commandType() == pg_sys::CmdType::CMD_SELECT
            && query.setOperations().is_none()
            && query.rowMarks().is_empty()
            && !query.hasTargetSRFs();
        let Some(from) = query
            .jointree()
            .filter(|from| is_plain && !from.fromlist().is_empty())
        else {
            return false;
        };
        let tables: Vec<_> = from.fromlist().iter().collect();
        let mut joins = Joins {
            query,
            from: match tables[..] {
                [only] => only,
                _ => make::from(&tables, None).as_join_tree(),
            },
            has_any: false,
        };
        for target in query.targetList() {
            if used.reads(target) {
                target.set_expr(joins.joined(target.expr(), is_evaluated));
            }
        }
        if joins.has_any {
            query.set_jointree(Some(make::from(&[joins.from], from.quals())));
        }
        joins.has_any
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
            // What evaluates all its arguments.
            Kind::OpExpr(_)
            | Kind::FuncExpr(_)
            | Kind::RelabelType(_)
            | Kind::Other(NodeTag::T_List | NodeTag::T_TargetEntry | NodeTag::T_CoerceViaIO) => {
                None
            }
            _ => Some(node),
        }
    }

    /// Joins a sub-select, and returns the column that has its values; `None` if it is not to be joined.
    fn join(&mut self, link: SubLink<'p>) -> Option<Expr<'p>> {
        let query = link.subselect().filter(|query| {
            link.subLinkType() == pg_sys::SubLinkType::EXPR_SUBLINK && finds_by_time(*query)
        })?;
        let target = query.outputs().next()?;
        let side = lateral::sub_select_entry(query, c"found", lateral::output_names(query));
        side.set_lateral(true);
        let side = self.enter(side);
        let names = make::alias(c"unnamed_join", List::EMPTY);
        let entry: RangeTblEntry<'p> = tag::new();
        entry.set_kind(pg_sys::RTEKind::RTE_JOIN);
        entry.set_join_kind(pg_sys::JoinType::JOIN_LEFT);
        entry.set_names(Some(names));
        entry.set_in_from(true);
        let join: JoinExpr<'p> = tag::new();
        join.set_kind(pg_sys::JoinType::JOIN_LEFT);
        join.set_left(Some(self.from));
        join.set_right(Some(make::reference(side)));
        join.set_quals(Some(make::boolean(true)));
        join.set_index(self.enter(entry));
        let found = make::var_of_target(side, target);
        outer_joins::add(found, join.rtindex());
        self.from = join.as_join_tree();
        self.has_any = true;
        Some(found.as_expr())
    }

    /// Adds an entry to the query's range table, and returns its index.
    fn enter(&self, entry: RangeTblEntry<'p>) -> i32 {
        let mut entries = self.query.rtable();
        entries.push(entry);
        self.query.set_rtable(entries);
        entries.len() as i32
    }
}

/// Whether an aggregate of its own query evaluates its arguments for each row.
fn is_plain(call: Aggref<'_>) -> bool {
    call.agglevelsup() == 0 && call.aggfilter().is_none() && call.aggdirectargs().is_empty()
}

/// Whether a sub-select reads a lanes table, and returns one row at most, by its form.
fn finds_by_time(query: Query<'_>) -> bool {
    let is_first = || {
        !query.hasAggs()
            && !query.sortClause().is_empty()
            && query.limitOption() == pg_sys::LimitOption::LIMIT_OPTION_COUNT
            && query.limitCount().is_some_and(time_match::is_one)
    };
    let is_aggregate =
        || query.hasAggs() && query.sortClause().is_empty() && query.limitCount().is_none();
    time_match::reads_plainly(query)
        && !query.hasSubLinks()
        && query.outputs().count() == 1
        && (is_first() || is_aggregate())
        && time_match::single_table(query)
            .is_ok_and(|(_, table)| lanes_table::is_lanes_table(table.relid()))
        && !query.conjuncts().into_iter().any(Expr::is_volatile)
        && depends_on_rows(query)
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
