//! Recognises a lateral sub-select that aggregates, for each row of the outer query, the rows within a span of time.
//!
//! ```text
//! SELECT aggregates FROM table WHERE [key = outer …] AND time >= outer AND time <= outer [AND anything about the table alone]
//! ```
//! Matching changes nothing, and its result is in the terms of [`time_match`].

use super::time_condition::{self, Bounds};
use super::time_match::{self, Shape};
use crate::pg::tree::{Aggref, Kind, PlannerInfo, Query};

/// A lateral sub-select of this kind.
pub struct WindowShape<'p> {
    /// The table, keys, bounds and conditions. There is no order.
    pub rows: Shape,
    /// The aggregates that are the sub-select's columns.
    pub calls: Vec<Aggref<'p>>,
}

/// The shape of a lateral sub-select.
///
/// # Errors
/// Why the sub-select does not have this shape.
pub fn match_window<'p>(
    root: PlannerInfo<'p>,
    query: Query<'p>,
) -> Result<WindowShape<'p>, &'static str> {
    let is_plain = query.hasAggs()
        && query.sortClause().is_empty()
        && query.limitCount().is_none()
        && time_match::reads_plainly(query)
        && !query.hasSubLinks();
    if !is_plain {
        return Err("it is not a plain SELECT of aggregates");
    }
    let mut calls = Vec::new();
    for target in query.targetList() {
        match target.expr().kind() {
            Kind::Aggref(call) if !target.resjunk() => {
                if time_match::mentions_outer(call) {
                    return Err("an aggregate is of the outer query");
                }
                calls.push(call);
            }
            _ => return Err("a column is more than an aggregate"),
        }
    }
    let (entry, table) = time_match::single_table(query)?;
    let conditions = query.conjuncts();
    let mut times = conditions.iter();
    let (time, kind) = times
        .find_map(|condition| time_condition::bounded_time(root, *condition))
        .ok_or("nothing bounds its time")?;
    let mut rows = Shape::without_order(table.relid(), entry, time, kind);
    for condition in conditions {
        time_condition::add(root, &mut rows, &mut Bounds::default(), condition)?;
    }
    if rows.bounds.is_empty() || !rows.residual_quals.is_empty() {
        return Err("a condition concerns both sides, and is neither an equality nor a bound");
    }
    Ok(WindowShape { rows, calls })
}
