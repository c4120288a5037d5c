//! Arrays of which the rows of a node show the first element alone: `(array_agg(x ORDER BY t DESC))[1]`.

use crate::pg::exec::node::CustomPlan;
use crate::pg::tree::{Expr, Node, SubscriptingRef, walk};

/// For each column of a node's input, of which there are so many, whether the node reads its first element and nothing
/// else.
pub fn read_alone(plan: CustomPlan<'_>, columns: usize) -> Vec<bool> {
    let (mut uses, mut first) = (vec![0; columns], vec![0; columns]);
    let column = |expr: Expr<'_>| {
        let column = expr.as_var()?.varattno();
        usize::try_from(column - 1)
            .ok()
            .filter(|column| *column < columns)
    };
    let plan = plan.as_plan();
    let parts = [plan.targetlist().as_node(), plan.qual().as_node()];
    for part in parts.into_iter().flatten() {
        walk::expression(part, &mut |node, _| {
            if let Some(column) = column(node) {
                uses[column] += 1;
            }
            if let Some(column) = first_of(node).and_then(column) {
                first[column] += 1;
            }
            false
        });
    }
    let pairs = uses.iter().zip(&first);
    pairs
        .map(|(uses, first)| *uses > 0 && uses == first)
        .collect()
}

/// The array whose element number 1 an expression is.
fn first_of(node: Expr<'_>) -> Option<Expr<'_>> {
    let element = node.downcast::<SubscriptingRef<'_>>()?;
    let is_slice = !element.reflowerindexpr().is_empty();
    let mut subscripts = element.refupperindexpr().iter();
    let (subscript, other) = (subscripts.next()?.as_const()?, subscripts.next());
    let is_one = !subscript.constisnull() && subscript.constvalue().value() as i32 == 1;
    let is_first = is_one && other.is_none() && !is_slice && element.refassgnexpr().is_none();
    element.refexpr().filter(|_| is_first)
}
