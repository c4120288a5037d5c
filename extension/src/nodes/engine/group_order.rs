//! Groups in the order of one of their keys.
//!
//! Dashboards order the groups of an aggregation by time. A time has few distinct values, so one pass distributes the
//! groups by them. PostgreSQL's sort would form a tuple of each group, and compare `numeric` values where
//! [buckets of seconds](crate::expressions::epoch_bucket) are ordered.

use lanes_columnar::aggregate::{Aggregation, KeyValue};

use crate::expressions::aggregate_call::KeyShape;
use crate::pg::catalog;
use crate::pg::tree::{Expr, List, PathKey, PlannerInfo};

/// The key that orders the groups, and its direction. NULL is greater than all values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupOrder {
    /// The place of the key among the keys.
    pub key: usize,
    is_descending: bool,
}

impl GroupOrder {
    /// The first sort key of the query, and its path key, if it orders by one of the grouping
    /// expressions. Expressions that are no lanes have no shape.
    pub fn wanted<'p>(
        root: PlannerInfo<'p>,
        grouped: List<'p, Expr<'p>>,
        shapes: &[Option<KeyShape>],
    ) -> Option<(GroupOrder, List<'p, PathKey<'p>>)> {
        let wanted = root.sort_pathkeys().first()?;
        let is_descending = wanted.is_descending();
        if wanted.pk_nulls_first() != is_descending {
            return None;
        }
        let key = grouped.iter().position(|key| is_of(wanted, key))?;
        let family = catalog::btree_family(grouped.get(key)?.type_of());
        if family != wanted.pk_opfamily() || !is_ordered(shapes[key]) {
            return None;
        }
        Some((GroupOrder { key, is_descending }, List::new([wanted])))
    }

    /// The number that a plan stores for an order.
    pub fn number(order: Option<GroupOrder>) -> i32 {
        order.map_or(0, |order| {
            2 * (order.key as i32 + 1) + i32::from(order.is_descending)
        })
    }

    /// The order for a number that a plan stores.
    pub fn from_number(number: i32) -> Option<GroupOrder> {
        let key = usize::try_from(number / 2 - 1).ok()?;
        Some(GroupOrder {
            key,
            is_descending: number % 2 == 1,
        })
    }

    /// The order as EXPLAIN shows it.
    pub fn describe(self) -> String {
        let direction = if self.is_descending { " DESC" } else { "" };
        format!("key {}{direction}", self.key + 1)
    }

    /// The groups in this order. Groups with equal values stay in the order of their numbers.
    pub fn sorted(self, aggregation: &Aggregation) -> Vec<u32> {
        let values = aggregation.key_values(self.key);
        let value = |number: u32| match aggregation.key_value(number, self.key) {
            KeyValue::Number(scalar) => (false, scalar.0 as i64),
            _ => (true, 0),
        };
        let mut numbers: Vec<u32> = (0..values as u32).collect();
        numbers.sort_unstable_by(|a, b| match self.is_descending {
            true => value(*b).cmp(&value(*a)),
            false => value(*a).cmp(&value(*b)),
        });
        let mut ranks = vec![0_u32; values];
        for (rank, number) in numbers.iter().enumerate() {
            ranks[*number as usize] = rank as u32;
        }
        let groups = aggregation.groups();
        let rank = |group: usize| ranks[aggregation.key_number(group, self.key) as usize] as usize;
        let mut starts = vec![0_u32; values + 1];
        for group in 0..groups {
            starts[rank(group) + 1] += 1;
        }
        for rank in 0..values {
            starts[rank + 1] += starts[rank];
        }
        let mut sorted = vec![0; groups];
        for group in 0..groups {
            let place = &mut starts[rank(group)];
            sorted[*place as usize] = group as u32;
            *place += 1;
        }
        sorted
    }
}

/// Whether a path key orders by an expression.
pub(super) fn is_of(key: PathKey<'_>, expression: Expr<'_>) -> bool {
    let members = key
        .pk_eclass()
        .into_iter()
        .flat_map(|class| class.ec_members());
    let mut members = members.filter(|member| !member.em_is_child());
    members.any(|member| member.expr().equals(expression))
}

/// Whether the engine's values of a key are in PostgreSQL's order: integers, times, and the numbers
/// of buckets, which are multiplied by a positive width.
fn is_ordered(shape: Option<KeyShape>) -> bool {
    match shape {
        Some(KeyShape::Number(number)) => !number.is_float(),
        Some(KeyShape::Epoch(_)) => true,
        _ => false,
    }
}
