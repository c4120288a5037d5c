//! The columns that somebody reads. A [finished](crate::nodes::window::finished) plan lists no others.

use crate::pg::exec::node::CustomPlan;
use crate::pg::nodes;
use crate::pg::tree::{Expr, plan_node, walk};

/// Which of so many first columns of a plan's rows are read: those among the entries that another node reads, or those
/// that the plan's own list and conditions mention.
pub fn columns(plan: CustomPlan<'_>, columns: usize, entries: Option<&[usize]>) -> Vec<bool> {
    let mut wanted = vec![false; columns];
    let mut want = |entry: usize| {
        if let Some(wanted) = wanted.get_mut(entry) {
            *wanted = true;
        }
    };
    if let Some(entries) = entries {
        entries.iter().for_each(|entry| want(*entry));
        return wanted;
    }
    let targets = plan.as_plan().targetlist().iter();
    let conditions = nodes::plan_list(plan.quals()).map(plan_node::<Expr<'_>>);
    for expression in targets.map(|target| target.expr()).chain(conditions) {
        walk::expression(expression, &mut |node, _| {
            if let Some(column) = node.as_var() {
                want((column.varattno() as usize).wrapping_sub(1));
            }
            false
        });
    }
    wanted
}
