//! The partitions in the order of their keys.

use std::cmp::Ordering;

use lanes_columnar::aggregate::ema::order_key;
use lanes_columnar::aggregate::{Aggregation, KeyValue};
use lanes_columnar::vector::number::{Number, NumberType};
use lanes_columnar::with_number;
use pgrx::pg_sys;

use crate::expressions::aggregate_call::KeyShape;
use crate::pg::{collation, datum};

/// How the values of a partition key are ordered.
#[derive(Clone, Copy)]
pub struct KeyOrder {
    pub shape: KeyShape,
    pub collation: pg_sys::Oid,
    pub is_descending: bool,
    pub nulls_first: bool,
}

impl KeyOrder {
    fn compare(self, a: KeyValue<'_>, b: KeyValue<'_>) -> Ordering {
        let null_first = match self.nulls_first {
            true => Ordering::Less,
            false => Ordering::Greater,
        };
        let order = match (a, b) {
            (KeyValue::Null, KeyValue::Null) => return Ordering::Equal,
            (KeyValue::Null, _) => return null_first,
            (_, KeyValue::Null) => return null_first.reverse(),
            (KeyValue::Text(a), KeyValue::Text(b)) => {
                let (a, b) = (datum::payload_of_item(a), datum::payload_of_item(b));
                collation::compare(a, b, self.collation)
            }
            (KeyValue::Number(a), KeyValue::Number(b)) => {
                // Numbers of buckets are in the order of the buckets.
                let number = match self.shape {
                    KeyShape::Number(number) => number,
                    _ => NumberType::I64,
                };
                with_number!(number, T => {
                    order_key(T::of_scalar(a)).cmp(&order_key(T::of_scalar(b)))
                })
            }
            (KeyValue::Truth(a), KeyValue::Truth(b)) => a.cmp(&b),
            (KeyValue::Bytes16(a), KeyValue::Bytes16(b)) => a.cmp(b),
            // The values of a key are of one kind.
            _ => Ordering::Equal,
        };
        match self.is_descending {
            true => order.reverse(),
            false => order,
        }
    }
}

/// The place of each group in the order of the keys.
pub fn ranks(groups: &Aggregation, keys: &[KeyOrder]) -> Vec<u32> {
    let values: Vec<Vec<u32>> = keys
        .iter()
        .enumerate()
        .map(|(key, order)| value_ranks(groups, key, *order))
        .collect();
    let count = groups.groups();
    let rank = |group: u32| {
        let keys = values.iter().enumerate();
        keys.map(move |(key, ranks)| ranks[groups.key_number(group as usize, key) as usize])
    };
    let mut sorted: Vec<u32> = (0..count as u32).collect();
    sorted.sort_unstable_by(|a, b| rank(*a).cmp(rank(*b)));
    places(&sorted)
}

/// The place of each value of a key.
pub fn value_ranks(groups: &Aggregation, key: usize, order: KeyOrder) -> Vec<u32> {
    let mut sorted: Vec<u32> = (0..groups.key_values(key) as u32).collect();
    let value = |number: u32| groups.key_value(number, key);
    sorted.sort_unstable_by(|a, b| order.compare(value(*a), value(*b)));
    places(&sorted)
}

/// The place of each number in a list of all numbers.
fn places(sorted: &[u32]) -> Vec<u32> {
    let mut places = vec![0; sorted.len()];
    for (place, number) in sorted.iter().enumerate() {
        places[*number as usize] = place as u32;
    }
    places
}
