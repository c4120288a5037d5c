//! How many groups there are if some keys are time buckets.
//!
//! PostgreSQL takes an expression of a column for as many groups as the column has values: for a bucket of an hour, as
//! many as there are times. Here a bucket key has at most as many groups as buckets of its width fit between the least
//! and the greatest time that PostgreSQL's statistics know.

use crate::expressions::{bucket_call, epoch_bucket};
use crate::pg::table_catalog;
use crate::pg::tree::{Expr, List, Node, PlannerInfo, RelOptInfo};
use crate::planner::quals::quals;
use crate::planner::selectivity::compares_column;

/// The number of groups that these keys make of a table's rows; at most `otherwise`, PostgreSQL's estimate.
pub fn expected<'p>(
    root: PlannerInfo<'p>,
    relation: RelOptInfo<'p>,
    keys: List<'p, Expr<'p>>,
    otherwise: f64,
) -> f64 {
    let (mut buckets, mut others) = (1.0, List::EMPTY);
    for key in keys {
        match buckets_of(root, relation, key) {
            Some(count) => buckets *= count,
            None => others.push(key),
        }
    }
    if others.len() == keys.len() {
        return otherwise;
    }
    let others = match others.is_empty() {
        true => 1.0,
        false => root.groups_of(others, relation.rows()),
    };
    (others * buckets).clamp(1.0, otherwise.max(1.0))
}

/// The number of buckets that a key has, if it is one and statistics know the times.
fn buckets_of<'p>(root: PlannerInfo<'p>, relation: RelOptInfo<'p>, key: Expr<'p>) -> Option<f64> {
    let bucket = bucket_call::bucket_key(key).or_else(|| epoch_bucket::bucket_key(key))?;
    let column = bucket.time.stripped().as_var()?;
    if u32::try_from(column.varno()) != Ok(relation.relid()) {
        return None;
    }
    let table = root.entry(relation.relid())?.relid();
    let (first, last) = table_catalog::histogram_ends(table, column.varattno())?;
    let attribute = usize::try_from(column.varattno()).ok()?.checked_sub(1)?;
    let restrict = quals(root, relation).into_iter();
    let restrict = List::new(restrict.filter(|qual| compares_column(qual.as_node(), attribute)));
    let share = match restrict.is_empty() {
        true => 1.0,
        false => root.selectivity(restrict, relation),
    };
    // The first and the last bucket may be cut off.
    Some((last - first) * share / bucket.width + 2.0)
}
