//! Visiting every node of a tree.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pgrx::pg_sys;

use super::expression::{Expr, Expression};
use super::list::List;
use super::query::Query;
use super::tag::Kind;
use super::view::View;

/// What a walk calls for each node, before what lies below it; `true` ends the walk. The depth counts the queries
/// between the start and the node: a column with `varlevelsup == depth` belongs to the start's own level.
pub type Visitor<'a, 'p> = dyn FnMut(Expr<'p>, u32) -> bool + 'a;

/// Visits an expression and all below it, at depth 0. Returns whether the visitor ended the walk.
pub fn expression<'p>(expr: Expr<'p>, visitor: &mut Visitor<'_, 'p>) -> bool {
    // SAFETY: the tree lives for 'p, and the guarded visitor never unwinds.
    guarded(visitor, |visitor| unsafe {
        walk_expression(expr.as_ptr(), visitor)
    })
}

/// Visits all in a query but the query itself, at depth 0. Returns whether the visitor ended the walk.
pub fn query<'p>(query: Query<'p>, visitor: &mut Visitor<'_, 'p>) -> bool {
    // SAFETY: the tree lives for 'p, and the guarded visitor never unwinds.
    guarded(visitor, |visitor| unsafe {
        walk_query(query.as_ptr(), visitor)
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
        replace_parts(expr.as_ptr(), &mut |node| {
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
    walk: impl FnOnce(&mut RawVisitor<'_>) -> bool,
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

unsafe extern "C-unwind" {
    // Called without the bindings' error boundary, which would be paid at each node; `walk` has one for all.
    #[cfg_attr(feature = "pg15", link_name = "expression_tree_walker")]
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_walker_impl")]
    fn expression_walker(node: *mut pg_sys::Node, walker: Callback, context: *mut c_void) -> bool;
    #[cfg_attr(feature = "pg15", link_name = "expression_tree_mutator")]
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_mutator_impl")]
    fn expression_mutator(
        node: *mut pg_sys::Node,
        mutator: MutatorCallback,
        context: *mut c_void,
    ) -> *mut pg_sys::Node;
    #[cfg_attr(feature = "pg15", link_name = "query_tree_walker")]
    #[cfg_attr(not(feature = "pg15"), link_name = "query_tree_walker_impl")]
    fn query_walker(
        query: *mut pg_sys::Query,
        walker: Callback,
        context: *mut c_void,
        flags: i32,
    ) -> bool;
}

type MutatorCallback =
    unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> *mut pg_sys::Node;

type Callback = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

/// What a walk does at each node that it meets, before what lies below it; `true` ends the walk. The depth counts the
/// queries between the start and the node: a `Var` there with `varlevelsup == depth` belongs to the start's own level.
///
/// A visitor must not raise an ERROR, panic or hold anything that needs dropping: C frames lie between it and `walk`.
type RawVisitor<'a> = dyn FnMut(*mut pg_sys::Node, u32) -> bool + 'a;

struct Walk<'v, 'a> {
    visitor: &'v mut RawVisitor<'a>,
    depth: u32,
}

unsafe extern "C-unwind" fn step(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    let walk: *mut Walk<'_, '_> = context.cast();
    // SAFETY: `walk` lives in the frame of `walk_…` below; the node is live.
    unsafe {
        let depth = (*walk).depth;
        if ((*walk).visitor)(node, depth) {
            return true;
        }
        match (*node).type_ {
            pg_sys::NodeTag::T_Query => {
                (*walk).depth = depth + 1;
                let ended = query_walker(node.cast(), step, context, FLAGS);
                (*walk).depth = depth;
                ended
            }
            // The query's walker goes on to what is in the entry.
            pg_sys::NodeTag::T_RangeTblEntry => false,
            _ => expression_walker(node, step, context),
        }
    }
}

const FLAGS: i32 = pg_sys::QTW_EXAMINE_RTES_BEFORE as i32;

/// Walks everything in a query, at depth 0; the query itself is not visited. Whether the visitor ended the walk.
///
/// # Safety
/// A live tree.
unsafe fn walk_query(query: *mut pg_sys::Query, visitor: &mut RawVisitor<'_>) -> bool {
    let mut walk = Walk { visitor, depth: 0 };
    let context: *mut c_void = (&raw mut walk).cast();
    // SAFETY: the caller's promise; the boundary turns an ERROR (too deep a tree) into a panic.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| query_walker(query, step, context, FLAGS)) }
}

/// Walks an expression, at depth 0, itself included. Whether the visitor ended the walk.
///
/// # Safety
/// A live tree or null.
unsafe fn walk_expression(node: *mut pg_sys::Node, visitor: &mut RawVisitor<'_>) -> bool {
    let mut walk = Walk { visitor, depth: 0 };
    let context: *mut c_void = (&raw mut walk).cast();
    // SAFETY: as above.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| step(node, context)) }
}

/// The replacement of a node in a copy; `None`: a copy of the node, with its parts replaced.
///
/// As a [`Visitor`], it must not raise an ERROR, panic or hold anything that needs dropping.
type RawReplacer<'a> = dyn FnMut(*mut pg_sys::Node) -> Option<*mut pg_sys::Node> + 'a;

unsafe extern "C-unwind" fn replace_step(
    node: *mut pg_sys::Node,
    context: *mut c_void,
) -> *mut pg_sys::Node {
    if node.is_null() {
        return node;
    }
    let replacer: *mut &mut RawReplacer<'_> = context.cast();
    // SAFETY: the replacer lives in the frame of `replaced`; the node is live.
    unsafe {
        match (*replacer)(node) {
            Some(other) => other,
            None => expression_mutator(node, replace_step, context),
        }
    }
}

/// A copy of an expression in which some parts are replaced.
///
/// # Safety
/// A live expression.
unsafe fn replace_parts(
    node: *mut pg_sys::Node,
    mut replacer: &mut RawReplacer<'_>,
) -> *mut pg_sys::Node {
    let context: *mut c_void = (&raw mut replacer).cast();
    // SAFETY: as for `walk_expression`.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| replace_step(node, context)) }
}
