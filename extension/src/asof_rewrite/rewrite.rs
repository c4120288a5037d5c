//! Finds the joins that have a marker, and makes each one a join with a lateral sub-select.

use pgrx::{PgSqlErrorCode, pg_sys};

use super::descend::Moved;
use super::lateral::{self, RightSide};
use super::marker::{self, Functions, Marker};
use super::{condition, join_tree};
use crate::error;
use crate::pg::tree;

/// Whether a query contains a marker.
///
/// # Safety
/// A live query.
pub unsafe fn has_marker(functions: &Functions, query: *mut pg_sys::Query) -> bool {
    // SAFETY: the caller's promise.
    unsafe { tree::walk_query(query, &mut |node, _| functions.marker(node).is_some()) }
}

/// A copy of a query in which joins with markers are rewritten. A marker in any other place is an error.
///
/// # Safety
/// A live query.
pub unsafe fn rewritten(functions: &Functions, query: *mut pg_sys::Query) -> *mut pg_sys::Query {
    // SAFETY: the caller's promise. The copy shares nothing, neither with the caller nor within itself.
    unsafe {
        let query = tree::copy(query);
        rewrite(functions, query);
        let mut left_over = None;
        tree::walk_query(query, &mut |node, _| {
            left_over = functions.marker(node);
            left_over.is_some()
        });
        if let Some(marker) = left_over {
            misplaced(marker);
        }
        query
    }
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
unsafe fn rewrite(functions: &Functions, query: *mut pg_sys::Query) {
    // SAFETY: a live query.
    unsafe {
        if !(*query).jointree.is_null() {
            rewrite_joins(functions, query, (*query).jointree.cast());
        }
        let mut inner: Vec<*mut pg_sys::Query> = Vec::new();
        tree::walk_query(query, &mut |node, depth| {
            if depth == 0 && (*node).type_ == pg_sys::NodeTag::T_Query {
                inner.push(node.cast());
            }
            false
        });
        for query in inner {
            rewrite(functions, query);
        }
    }
}

unsafe fn rewrite_joins(functions: &Functions, query: *mut pg_sys::Query, node: *mut pg_sys::Node) {
    // SAFETY: a live join tree; the casts follow the tags.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_FromExpr => {
                for part in tree::elements((*node.cast::<pg_sys::FromExpr>()).fromlist) {
                    rewrite_joins(functions, query, part);
                }
            }
            pg_sys::NodeTag::T_JoinExpr => {
                let join: *mut pg_sys::JoinExpr = node.cast();
                rewrite_join(functions, query, join);
                rewrite_joins(functions, query, (*join).larg);
                rewrite_joins(functions, query, (*join).rarg);
            }
            _ => {}
        }
    }
}

unsafe fn rewrite_join(
    functions: &Functions,
    query: *mut pg_sys::Query,
    join: *mut pg_sys::JoinExpr,
) {
    // SAFETY: live trees; the casts follow the tags.
    unsafe {
        let marked = tree::conjuncts((*join).quals)
            .into_iter()
            .filter_map(|condition| functions.marker(condition))
            .count();
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
            (*join).jointype,
            pg_sys::JoinType::JOIN_INNER | pg_sys::JoinType::JOIN_LEFT
        ) {
            error::refuse(
                "an ASOF join must be an INNER or a LEFT JOIN",
                "A match is looked for from each row of the left side; swap the sides, or use UNION ALL with the rows that no match took.",
            );
        }
        let right = if tree::is_a((*join).rarg, pg_sys::NodeTag::T_RangeTblRef) {
            (*(*join).rarg.cast::<pg_sys::RangeTblRef>()).rtindex
        } else {
            join_tree::gather(query, join)
        };
        join_tree::refuse_locks(query, &Moved(vec![right]));
        // `gather` changes the conditions, so they are read after it.
        let (marked, residual): (Vec<_>, Vec<_>) = tree::conjuncts((*join).quals)
            .into_iter()
            .partition(|&condition| functions.marker(condition).is_some());
        let [call] = marked[..] else { return };
        let Some(marker) = functions.marker(call) else {
            return;
        };
        let side = RightSide {
            parent: query,
            index: right,
        };
        let asof = condition::understand(functions, marker, call.cast(), right);
        let sub_select = lateral::sub_select(side, &asof, &residual);
        (*join).quals = pg_sys::makeBoolConst(true, false);
        lateral::replace_entry(side, sub_select);
        if refers_to_system_column(query, right) {
            join_tree::refuse_system_column();
        }
    }
}

unsafe fn refers_to_system_column(query: *mut pg_sys::Query, entry: i32) -> bool {
    // SAFETY: live nodes; the cast follows the tag.
    unsafe {
        tree::walk_query(query, &mut |node, depth| {
            if (*node).type_ != pg_sys::NodeTag::T_Var {
                return false;
            }
            let variable: *const pg_sys::Var = node.cast();
            (*variable).varlevelsup == depth
                && (*variable).varno == entry
                && (*variable).varattno < 0
        })
    }
}
