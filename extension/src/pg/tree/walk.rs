//! Visiting every node of a tree.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::expression::Expr;
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
