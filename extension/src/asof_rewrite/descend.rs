//! Adapts a tree that moves one query level down.
//!
//! A part of a query that becomes a sub-select of the query is first built in the query's own
//! terms. [`descend`] then adapts it: references to entries that move along keep their level and
//! get new indexes, and all other references go one level further up. Trees that are adapted share
//! no node with anything else.

use pgrx::pg_sys;

use crate::pg::outer_joins;
use crate::pg::tree::{Expr, Kind, Query, Var, walk};

/// The old range-table indexes of the entries that move. The new index of an entry is its position
/// here, counted from 1.
#[derive(Clone, Debug, Default)]
pub struct Moved(pub Vec<i32>);

impl Moved {
    /// The new index of an entry; `None` if it does not move.
    pub fn renumber(&self, old: i32) -> Option<i32> {
        let place = self.0.iter().position(|&member| member == old)?;
        Some(place as i32 + 1)
    }

    /// Whether an entry moves.
    pub fn contains(&self, old: i32) -> bool {
        self.0.contains(&old)
    }
}

/// Adapts a query that is in the terms of its future parent.
pub fn descend(query: Query<'_>, moved: &Moved) {
    walk::query(query, &mut |node, depth| adapt(node, depth, moved));
}

/// Adapts an expression that is in the terms of its query's future parent.
pub fn descend_expression(expression: Expr<'_>, moved: &Moved) {
    walk::expression(expression, &mut |node, depth| adapt(node, depth, moved));
}

/// Adapts one node; the walk goes on.
fn adapt(node: Expr<'_>, depth: u32, moved: &Moved) -> bool {
    match node.kind() {
        Kind::Var(var) => adapt_var(var, depth, moved),
        Kind::Aggref(aggregate) if aggregate.agglevelsup() >= depth => {
            aggregate.set_levels_up(aggregate.agglevelsup() + 1);
        }
        Kind::GroupingFunc(grouping) if grouping.agglevelsup() >= depth => {
            grouping.set_levels_up(grouping.agglevelsup() + 1);
        }
        Kind::RangeTblEntry(entry)
            if entry.rtekind() == pg_sys::RTEKind::RTE_CTE && entry.ctelevelsup() >= depth =>
        {
            entry.set_cte_levels_up(entry.ctelevelsup() + 1);
        }
        Kind::RangeTblRef(reference) if depth == 0 => {
            if let Some(new) = moved.renumber(reference.rtindex()) {
                reference.set_index(new);
            }
        }
        Kind::JoinExpr(join) if depth == 0 => {
            if let Some(new) = moved.renumber(join.rtindex()) {
                join.set_index(new);
            }
        }
        _ => {}
    }
    false
}

fn adapt_var(var: Var<'_>, depth: u32, moved: &Moved) {
    if var.varlevelsup() < depth {
        return;
    }
    if var.varlevelsup() == depth
        && let Some(new) = moved.renumber(var.varno())
    {
        var.refer_to(new, var.varattno());
        // Joins that do not move along do not belong to the new level.
        outer_joins::renumber(var, |join| moved.renumber(join));
    } else {
        var.set_levels_up(var.varlevelsup() + 1);
    }
}
