//! Visiting every node of a tree.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pgrx::pg_sys;

use super::expression::{Expr, Expression, Kind};
use super::list::List;
use super::query::Query;
use super::raw;
use super::view::View;

/// What a walk calls for each node, before what lies below it; `true` ends the walk. The depth counts the queries
/// between the start and the node: a column with `varlevelsup == depth` belongs to the start's own level.
pub type Visitor<'a, 'p> = dyn FnMut(Expr<'p>, u32) -> bool + 'a;

/// Visits an expression and all below it, at depth 0. Returns whether the visitor ended the walk.
pub fn expression<'p>(expr: Expr<'p>, visitor: &mut Visitor<'_, 'p>) -> bool {
    // SAFETY: the tree lives for 'p, and the guarded visitor never unwinds.
    guarded(visitor, |visitor| unsafe {
        raw::walk_expression(expr.as_ptr(), visitor)
    })
}

/// Visits all in a query but the query itself, at depth 0. Returns whether the visitor ended the walk.
pub fn query<'p>(query: Query<'p>, visitor: &mut Visitor<'_, 'p>) -> bool {
    // SAFETY: the tree lives for 'p, and the guarded visitor never unwinds.
    guarded(visitor, |visitor| unsafe {
        raw::walk_query(query.as_ptr(), visitor)
    })
}

/// The first result that `find` gives for a node of a query, at any depth.
pub fn found<'p, T>(tree: Query<'p>, mut find: impl FnMut(Expr<'p>) -> Option<T>) -> Option<T> {
    let mut found = None;
    query(tree, &mut |node, _| {
        found = find(node);
        found.is_some()
    });
    found
}

/// The queries in a query, without those in them.
pub fn inner_queries(tree: Query<'_>) -> Vec<Query<'_>> {
    let mut inner = Vec::new();
    query(tree, &mut |node, depth| {
        if depth == 0
            && let Kind::Query(query) = node.kind()
        {
            inner.push(query);
        }
        false
    });
    inner
}

/// The replacement of a node in a copy; `None`: a copy of the node, with its parts replaced.
pub type Replacer<'a, 'p> = dyn FnMut(Expr<'p>) -> Option<Expr<'p>> + 'a;

/// A copy of an expression in which some parts are replaced.
pub fn replaced<'p>(expr: Expr<'p>, replacer: &mut Replacer<'_, 'p>) -> Expr<'p> {
    let mut panic: Option<Box<dyn Any + Send>> = None;
    // SAFETY: the tree lives for 'p. No panic crosses the C frames: it ends the copying, and is raised again
    // afterwards.
    let copy = unsafe {
        raw::replaced(expr.as_ptr(), &mut |node| {
            if panic.is_some() {
                return Some(node);
            }
            let by = catch_unwind(AssertUnwindSafe(|| replacer(Expr::at(node))));
            let by = by.unwrap_or_else(|payload| {
                panic = Some(payload);
                None
            });
            by.map(View::as_ptr)
        })
    };
    if let Some(payload) = panic {
        resume_unwind(payload);
    }
    // SAFETY: the copy of a node is a node.
    unsafe { Expr::at(copy) }
}

/// The parameters of an expression, appended to a list. Those that a subquery's condition is evaluated with are its
/// own; for what the subquery itself depends on stands a node of it without a condition, of which nothing can be
/// evaluated.
pub fn parameters<'p>(expr: Expr<'p>, found: &mut List<'p, Expr<'p>>) {
    let (mut met, mut subplans) = (Vec::new(), Vec::new());
    expression(expr, &mut |node, _| {
        match node.kind() {
            Kind::Param(parameter) => met.push(parameter),
            Kind::SubPlan(subplan) => subplans.push(subplan),
            _ => {}
        }
        false
    });
    for parameter in met {
        let is_executed = parameter.paramkind() == pg_sys::ParamKind::PARAM_EXEC;
        let mut own = subplans
            .iter()
            .flat_map(|subplan| subplan.paramIds().iter());
        if !is_executed || !own.any(|id| id == parameter.paramid()) {
            found.push(parameter.as_expr());
        }
    }
    found.extend(
        subplans
            .into_iter()
            .map(|subplan| subplan.without_condition().as_expr()),
    );
}

/// Runs a walk whose C frames no panic of the visitor crosses: it ends the walk and is raised again afterwards.
fn guarded<'p>(
    visitor: &mut Visitor<'_, 'p>,
    walk: impl FnOnce(&mut raw::Visitor<'_>) -> bool,
) -> bool {
    let mut panic: Option<Box<dyn Any + Send>> = None;
    let ended = walk(&mut |node, depth| {
        // SAFETY: the walker passes nodes of the tree, which lives for 'p.
        let node = unsafe { Expr::at(node) };
        catch_unwind(AssertUnwindSafe(|| visitor(node, depth))).unwrap_or_else(|payload| {
            panic = Some(payload);
            true
        })
    });
    if let Some(payload) = panic {
        resume_unwind(payload);
    }
    ended
}
