//! How many groups there are if some keys are time buckets, parts of times, or `CASE` with constant results.
//!
//! PostgreSQL takes an expression of a column for as many groups as the column has values: for a bucket of an hour, as
//! many as there are times. Here a bucket key has at most as many groups as buckets of its width fit between the least
//! and the greatest time that PostgreSQL's statistics know.

use crate::expressions::{bucket_call, constant_case, date_parts, epoch_bucket};
use crate::pg::table_catalog;
use crate::pg::tree::{Expr, List, Node, PlannerInfo, RelOptInfo, Var};
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
    // Of grouping sets, PostgreSQL's estimate is the sum over all of them, and the keys are those of one.
    let has_sets = root
        .parse()
        .is_some_and(|query| !query.groupingSets().is_empty());
    if others.len() == keys.len() && !has_sets {
        return otherwise;
    }
    let others = match others.is_empty() {
        true => 1.0,
        false => root.groups_of(others, relation.rows()),
    };
    (others * buckets).clamp(1.0, otherwise.max(1.0))
}

/// The number of buckets that a key has, or of the values that it takes, if the key's form or statistics tell it.
fn buckets_of<'p>(root: PlannerInfo<'p>, relation: RelOptInfo<'p>, key: Expr<'p>) -> Option<f64> {
    if let Some(values) = constant_case::values_of(key) {
        return Some(values as f64);
    }
    let Some(bucket) = bucket_call::bucket_key(key).or_else(|| epoch_bucket::bucket_key(key))
    else {
        return date_parts::values_within(key, |column| span(root, relation, column));
    };
    let column = bucket.time.stripped().as_var()?;
    // The first and the last bucket may be cut off.
    Some(span(root, relation, column)? / bucket.width + 2.0)
}

/// How far the least and the greatest value of a column are apart, of the rows that pass the conditions on it.
fn span<'p>(root: PlannerInfo<'p>, relation: RelOptInfo<'p>, column: Var<'p>) -> Option<f64> {
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
    Some((last - first) * share)
}
