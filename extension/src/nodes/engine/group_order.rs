//! Groups in the order of one of their keys.
//!
//! Dashboards order the groups of an aggregation by time. A time has few distinct values, so one pass distributes the
//! groups by them. PostgreSQL's sort would form a tuple of each group, and compare `numeric` values where
//! [buckets of seconds](crate::expressions::epoch_bucket) are ordered.

use lanes_columnar::aggregate::{Aggregation, KeyValue};
use pgrx::pg_sys;

use crate::expressions::aggregate_call::KeyShape;
use crate::pg::{nodes, ports, tree};

/// The key that orders the groups, and its direction. NULL is greater than all values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupOrder {
    /// The place of the key among the keys.
    pub key: usize,
    is_descending: bool,
}

impl GroupOrder {
    /// The first sort key of the query, and its path key, if it orders by one of the grouping expressions. Expressions that
    /// are no lanes have no shape.
    ///
    /// # Safety
    /// The planner's structures and expressions are live.
    pub unsafe fn wanted(
        root: *mut pg_sys::PlannerInfo,
        grouped: &[*mut pg_sys::Node],
        shapes: &[Option<KeyShape>],
    ) -> Option<(GroupOrder, *mut pg_sys::List)> {
        // SAFETY: the planner's structures are live.
        unsafe {
            let wanted = nodes::list::<pg_sys::PathKey>((*root).sort_pathkeys).next()?;
            let is_descending = ports::is_descending(wanted);
            if (*wanted).pk_nulls_first != is_descending {
                return None;
            }
            let key = grouped.iter().position(|key| is_of(wanted, *key))?;
            let kind = pg_sys::lookup_type_cache(
                pg_sys::exprType(grouped[key]),
                pg_sys::TYPECACHE_BTREE_OPFAMILY as i32,
            );
            if (*kind).btree_opf != (*wanted).pk_opfamily || !is_ordered(shapes[key]) {
                return None;
            }
            let order = GroupOrder { key, is_descending };
            Some((order, tree::list(&[wanted])))
        }
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
unsafe fn is_of(key: *mut pg_sys::PathKey, expression: *mut pg_sys::Node) -> bool {
    // SAFETY: the planner's structures are live.
    unsafe {
        let members = (*(*key).pk_eclass).ec_members;
        let mut members = nodes::list::<pg_sys::EquivalenceMember>(members);
        members.any(|member| {
            !(*member).em_is_child && pg_sys::equal((*member).em_expr.cast(), expression.cast())
        })
    }
}

/// Whether the engine's values of a key are in PostgreSQL's order: integers, times, and the numbers of buckets, which are
/// multiplied by a positive width.
fn is_ordered(shape: Option<KeyShape>) -> bool {
    match shape {
        Some(KeyShape::Number(number)) => !number.is_float(),
        Some(KeyShape::Epoch(_)) => true,
        _ => false,
    }
}

/// A path that returns the rows of another path in the order of path keys.
///
/// # Safety
/// The planner's structures are live.
pub unsafe fn in_order(
    root: *mut pg_sys::PlannerInfo,
    path: *mut pg_sys::Path,
    order: *mut pg_sys::List,
) -> *mut pg_sys::Path {
    // SAFETY: the planner's structures are live.
    unsafe {
        let is_sorted = pg_sys::pathkeys_contained_in(order, (*path).pathkeys);
        match ports::list_length(order) == 0 || is_sorted {
            true => path,
            false => pg_sys::create_sort_path(root, (*path).parent, path, order, -1.0).cast(),
        }
    }
}
