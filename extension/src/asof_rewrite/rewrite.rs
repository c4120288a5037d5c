//! Finds the joins that have a marker, and makes each one a join with a lateral sub-select.

use pgrx::{PgSqlErrorCode, pg_sys};

use super::descend::Moved;
use super::lateral::{self, RightSide};
use super::marker::{self, Functions, Marker};
use super::{condition, join_tree};
use crate::error;
use crate::pg::tree::{Expr, JoinExpr, JoinKind, JoinTree, Query, make, walk};

/// Whether a query contains a marker.
pub fn has_marker(functions: &Functions, query: Query<'_>) -> bool {
    walk::found(query, |node| functions.marker(node)).is_some()
}

/// A copy of a query in which joins with markers are rewritten. A marker in any other place is an error.
pub fn rewritten<'p>(functions: &Functions, query: Query<'p>) -> Query<'p> {
    // The copy shares nothing, neither with the caller nor within itself.
    let query = make::copy(query);
    rewrite(functions, query);
    if let Some(marker) = walk::found(query, |node| functions.marker(node)) {
        misplaced(marker);
    }
    query
}

fn misplaced(marker: Marker) -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
        format!(
            "{} must be one of the ANDed conditions in the ON of a join",
            marker.name()
        ),
        marker::PLACE,
    )
}

/// Rewrites a query's joins from the outermost to the innermost, then the queries in it, including new sub-selects.
fn rewrite(functions: &Functions, query: Query<'_>) {
    if let Some(from) = query.jointree() {
        rewrite_joins(functions, query, from.as_join_tree());
    }
    for query in walk::inner_queries(query) {
        rewrite(functions, query);
    }
}

fn rewrite_joins<'p>(functions: &Functions, query: Query<'p>, node: JoinTree<'p>) {
    match node.kind() {
        JoinKind::From(from) => {
            for part in from.fromlist() {
                rewrite_joins(functions, query, part);
            }
        }
        JoinKind::Join(join) => {
            rewrite_join(functions, query, join);
            for side in [join.larg(), join.rarg()].into_iter().flatten() {
                rewrite_joins(functions, query, side);
            }
        }
        _ => {}
    }
}

fn rewrite_join<'p>(functions: &Functions, query: Query<'p>, join: JoinExpr<'p>) {
    let is_marked = |condition: &Expr<'_>| functions.marker(*condition).is_some();
    let conditions = || join.quals().map_or(Vec::new(), Expr::conjuncts);
    let marked = conditions().iter().filter(|one| is_marked(one)).count();
    if marked == 0 {
        return;
    }
    if marked > 1 {
        error::raise(
            PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
            "a join can have only one ASOF marker",
            "Keep one time comparison in the marker and write the others as plain conditions beside it: they apply to each candidate.",
        );
    }
    if !matches!(
        join.jointype(),
        pg_sys::JoinType::JOIN_INNER | pg_sys::JoinType::JOIN_LEFT
    ) {
        error::refuse(
            "an ASOF join must be an INNER or a LEFT JOIN",
            "A match is looked for from each row of the left side; swap the sides, or use UNION ALL with the rows that no match took.",
        );
    }
    let right = match join.rarg().map(JoinTree::kind) {
        Some(JoinKind::Entry(reference)) => reference.rtindex(),
        _ => join_tree::gather(query, join),
    };
    join_tree::refuse_locks(query, &Moved(vec![right]));
    // `gather` changes the conditions, so they are read after it.
    let (marked, residual): (Vec<_>, Vec<_>) = conditions().into_iter().partition(is_marked);
    let &[condition] = marked.as_slice() else {
        return;
    };
    let (Some(marker), Some(call)) = (functions.marker(condition), condition.as_func()) else {
        return;
    };
    let side = RightSide {
        parent: query,
        index: right,
    };
    let asof = condition::understand(functions, marker, call, right);
    let sub_select = lateral::sub_select(side, &asof, &residual);
    join.set_quals(Some(make::boolean(true)));
    lateral::replace_entry(side, sub_select);
    if refers_to_system_column(query, right) {
        join_tree::refuse_system_column();
    }
}

fn refers_to_system_column(query: Query<'_>, entry: i32) -> bool {
    walk::query(query, &mut |node, depth| {
        node.as_var().is_some_and(|var| {
            var.varlevelsup() == depth && var.varno() == entry && var.varattno() < 0
        })
    })
}
