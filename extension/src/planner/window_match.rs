//! Recognises a lateral sub-select that aggregates the rows within a stretch of time, for each row of the outer query.
//!
//! ```text
//! SELECT aggregates FROM table WHERE [key = outer …] AND time >= outer AND time <= outer [AND anything about the table alone]
//! ```
//! As pure a look as [`match_shape`]'s, and in the same terms.

use pgrx::pg_sys;

use super::time_match::{self, Shape};
use crate::pg::tree;

/// A lateral sub-select of this kind.
pub struct WindowShape {
    /// Table, keys, bounds and conditions; without an order.
    pub rows: Shape,
    /// Its columns.
    pub calls: Vec<*mut pg_sys::Aggref>,
}

/// Looks at a lateral sub-select. `Err`: why it is not of the shape.
///
/// # Safety
/// A live planner and the unplanned query of one of its range-table entries.
pub unsafe fn match_window(
    root: *mut pg_sys::PlannerInfo,
    query: *const pg_sys::Query,
) -> Result<WindowShape, &'static str> {
    // SAFETY: the caller's promise; casts follow tags.
    unsafe {
        let plain = (*query).hasAggs
            && (*query).sortClause.is_null()
            && (*query).limitCount.is_null()
            && time_match::reads_plainly(query)
            && !(*query).hasSubLinks;
        if !plain {
            return Err("it is not a plain SELECT of aggregates");
        }
        let mut calls = Vec::new();
        for target in tree::elements::<pg_sys::TargetEntry>((*query).targetList) {
            if !tree::is_a((*target).expr, pg_sys::NodeTag::T_Aggref) || (*target).resjunk {
                return Err("a column is more than an aggregate");
            }
            let call: *mut pg_sys::Aggref = (*target).expr.cast();
            if time_match::mentions_outer(call) {
                return Err("an aggregate is of the outer query");
            }
            calls.push(call);
        }
        let (entry, table) = time_match::single_table(query)?;
        let conditions = tree::conjuncts((*(*query).jointree).quals);
        let Some((time, time_kind)) = conditions
            .iter()
            .find_map(|condition| time_match::bounded_time(root, *condition))
        else {
            return Err("nothing bounds its time");
        };
        let mut rows = Shape::without_order((*table).relid, entry, time, time_kind);
        for condition in conditions {
            time_match::sort_in(root, &mut rows, condition)?;
        }
        if rows.bounds.is_empty() || !rows.residual_quals.is_empty() {
            return Err("a condition concerns both sides, and is neither an equality nor a bound");
        }
        Ok(WindowShape { rows, calls })
    }
}
