//! The first rows of random columns, against a stable sort of all of them.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::{BestOfGroup, BestRows, Order, SortBy, SortKey};
use crate::aggregate::{Aggregation, Key};
use crate::kind::{LaneKind, Number as Sort};
use crate::limits::VECTOR_ROWS;
use crate::test_support::cases;
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::tests::lanes::{Column, Source, TYPES, TestLanes};
use crate::vector::value::Value;
use crate::with_number;
use crate::zone_map::{self, Zone};

const VECTORS: usize = 3;

/// Some columns of numbers over several vectors, and the rows of each vector that are visible.
struct Table {
    lanes: TestLanes,
    types: Vec<NumberType>,
    selections: Vec<Selection>,
}

impl Table {
    fn random(seed: u64, types: &[NumberType]) -> Table {
        let mut source = Source(seed);
        let rows = VECTORS * VECTOR_ROWS - source.below(100) as usize;
        let columns = types.iter().map(|&number| {
            let mut values: Vec<_> = (0..rows).map(|_| source.number(number, 6).0).collect();
            let (sorts, has_nulls) = (source.one_in(2), source.one_in(2));
            let with_nulls = |value, source: &mut Source| {
                let is_null = has_nulls && source.one_in(5);
                (!is_null).then_some(Scalar(value))
            };
            if sorts {
                values.sort_by(|a, b| order_of(number, Scalar(*a), Scalar(*b)));
            }
            let values: Vec<_> = values
                .into_iter()
                .map(|value| with_nulls(value, &mut source))
                .collect();
            Column::numbers(number, &values, &mut source)
        });
        let columns = columns.collect();
        let mut source = Source(seed ^ 1);
        let selections = (0..VECTORS).map(|vector| {
            let rows = (rows - vector * VECTOR_ROWS).min(VECTOR_ROWS);
            source.selection(rows)
        });
        Table {
            lanes: TestLanes::of(columns),
            types: types.to_vec(),
            selections: selections.collect(),
        }
    }

    fn keys(&self, orders: &[Order]) -> Vec<SortKey> {
        let key = |(attribute, (number, order)): (usize, (&NumberType, &Order))| SortKey {
            by: SortBy::Number(Value::Column(*number, attribute)),
            order: *order,
        };
        self.types.iter().zip(orders).enumerate().map(key).collect()
    }

    /// The rows that count, sorted.
    fn sorted(&self, orders: &[Order]) -> Vec<u64> {
        let mut rows: Vec<usize> = (0..VECTORS * VECTOR_ROWS)
            .filter(|row| self.selections[row / VECTOR_ROWS].contains(row % VECTOR_ROWS))
            .filter(|row| accepts(*row as u64))
            .collect();
        if orders[0].descending {
            rows.reverse();
        }
        rows.sort_by(|&a, &b| self.order(orders, a, b));
        rows.into_iter().map(|row| row as u64).collect()
    }

    fn order(&self, orders: &[Order], a: usize, b: usize) -> Ordering {
        for (attribute, order) in orders.iter().enumerate() {
            let values = (
                self.lanes.number(attribute, a),
                self.lanes.number(attribute, b),
            );
            let found = match values {
                (None, None) => Ordering::Equal,
                (None, Some(_)) if order.nulls_first => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) if order.nulls_first => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some(a), Some(b)) if order.descending => order_of(self.types[attribute], b, a),
                (Some(a), Some(b)) => order_of(self.types[attribute], a, b),
            };
            if found != Ordering::Equal {
                return found;
            }
        }
        Ordering::Equal
    }

    /// The zone of a vector of a column.
    fn zone(&self, attribute: usize, vector: usize) -> Zone {
        let number = self.types[attribute];
        let width = number.width() as u16;
        let kind = LaneKind::Fixed {
            width,
            stride: width,
            number: if number.is_float() {
                Sort::Float
            } else {
                Sort::Signed
            },
        };
        let first = vector * VECTOR_ROWS;
        let end = (first + VECTOR_ROWS).min(self.lanes.columns[attribute].cells.len());
        // SAFETY: the column has these rows.
        unsafe { zone_map::compute(&self.lanes.columns[attribute].lane(), kind, first..end) }
    }

    /// Offers all vectors once, as a scan does, and returns how many were skipped.
    fn offer(&mut self, best: &mut BestRows) -> usize {
        let mut skipped = 0;
        let mut vectors: Vec<usize> = (0..VECTORS).collect();
        if best.is_backward() {
            vectors.reverse();
        }
        let all = self.lanes.rows;
        for vector in vectors {
            let selection = self.selections[vector];
            if selection.is_empty() {
                continue;
            }
            let zone = self.zone(0, vector);
            self.lanes.place = vector * VECTOR_ROWS;
            self.lanes.rows = (all - self.lanes.place).min(VECTOR_ROWS);
            let first_row = self.lanes.place as u64;
            self.lanes.with_frame(|frame| {
                if best.can_take(frame, &selection, &zone) {
                    let accept = |row: usize| accepts(first_row + row as u64);
                    best.offer(frame, first_row, &selection, accept).unwrap();
                } else {
                    skipped += 1;
                }
            });
        }
        (self.lanes.place, self.lanes.rows) = (0, all);
        skipped
    }
}

/// A qual that the scan leaves to someone else.
fn accepts(row: u64) -> bool {
    !row.is_multiple_of(7)
}

fn order_of(number: NumberType, a: Scalar, b: Scalar) -> Ordering {
    with_number!(number, T => T::of_scalar(a).order(T::of_scalar(b)))
}

fn any_order() -> impl Strategy<Value = Order> {
    any::<(bool, bool)>().prop_map(|(descending, nulls_first)| Order {
        descending,
        nulls_first,
    })
}

fn any_keys() -> impl Strategy<Value = Vec<(NumberType, Order)>> {
    let number = prop::sample::select(&TYPES[..]);
    prop::collection::vec((number, any_order()), 1..=3)
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn passes_give_all_rows_in_order(seed in any::<u64>(), keys in any_keys(), max in 1usize..700) {
        let (types, orders): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        let mut table = Table::random(seed, &types);
        let mut best = BestRows::new(table.keys(&orders));
        let (mut found, mut more) = (Vec::new(), true);
        while more {
            best.begin(max, usize::MAX);
            table.offer(&mut best);
            let ordered = best.take();
            prop_assert!(ordered.rows.len() == max || !ordered.more);
            found.extend(ordered.rows);
            more = ordered.more;
        }
        prop_assert_eq!(found, table.sorted(&orders));
    }

    #[test]
    fn each_group_has_its_first_row(seed in any::<u64>(), keys in any_keys()) {
        let (types, orders): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        let mut all_types = types.clone();
        all_types.push(NumberType::I16);
        let mut table = Table::random(seed, &all_types);
        let group = types.len();
        let mut best = BestOfGroup::new(table.keys(&orders));
        let key = Key::Number(Value::Column(NumberType::I16, group));
        let mut groups = Aggregation::new(vec![key], Vec::new());
        let all = table.lanes.rows;
        for vector in 0..VECTORS {
            let selection = table.selections[vector];
            table.lanes.place = vector * VECTOR_ROWS;
            table.lanes.rows = (all - table.lanes.place).min(VECTOR_ROWS);
            let first_row = table.lanes.place as u64;
            table.lanes.with_frame(|frame| {
                let (grouping, count) = groups.grouping(frame, &selection).unwrap();
                let accept = |row: usize| {
                    let number = first_row + row as u64;
                    accepts(number).then_some(number as u32 + 1)
                };
                best.offer(frame, first_row, &selection, &grouping, count, accept).unwrap();
            });
        }
        (table.lanes.place, table.lanes.rows) = (0, all);
        let mut wanted: Vec<(Option<Scalar>, u64)> = Vec::new();
        for row in table.sorted(&orders) {
            let key = table.lanes.number(group, row as usize);
            if !wanted.iter().any(|(known, _)| *known == key) {
                wanted.push((key, row));
            }
        }
        let mut wanted: Vec<(u64, u32)> =
            wanted.into_iter().map(|(_, row)| (row, row as u32 + 1)).collect();
        wanted.sort_unstable();
        prop_assert_eq!(best.rows(), wanted);
    }
}

#[test]
fn a_late_vector_matters_to_groups_that_it_begins_and_to_early_rows() {
    let mut source = Source(1);
    let rows = (VECTORS * VECTOR_ROWS) as i64;
    // The last rows have a group of their own. One row of the last vector may come before all others.
    let group = |row: i64| if row < rows - 10 { row % 3 } else { 7 };
    let early = rows - 101;
    for has_early in [false, true] {
        let time = |row: i64| if has_early && row == early { -1 } else { row };
        let values = |of: &dyn Fn(i64) -> i64| -> Vec<_> {
            (0..rows).map(|row| Some(Scalar(of(row) as u64))).collect()
        };
        let mut lanes = TestLanes::of(vec![
            Column::numbers(NumberType::I64, &values(&time), &mut source),
            Column::numbers(NumberType::I16, &values(&group), &mut source),
        ]);
        let order = Order {
            descending: false,
            nulls_first: false,
        };
        let by = SortBy::Number(Value::Column(NumberType::I64, 0));
        let mut best = BestOfGroup::new(vec![SortKey { by, order }]);
        let key = Key::Number(Value::Column(NumberType::I16, 1));
        let mut groups = Aggregation::new(vec![key], Vec::new());
        let selection = Selection::first(VECTOR_ROWS);
        for vector in 0..VECTORS {
            (lanes.place, lanes.rows) = (vector * VECTOR_ROWS, VECTOR_ROWS);
            let first = lanes.place as u64;
            lanes.with_frame(|frame| {
                let (grouping, count) = groups.grouping(frame, &selection).unwrap();
                best.offer(frame, first, &selection, &grouping, count, |_| Some(0))
                    .unwrap();
            });
        }
        let of_old = (0..3).map(|row| match has_early && group(row) == group(early) {
            true => early,
            false => row,
        });
        let mut wanted: Vec<u64> = of_old.chain([rows - 10]).map(|row| row as u64).collect();
        wanted.sort_unstable();
        let found: Vec<u64> = best.rows().into_iter().map(|(row, _)| row).collect();
        assert_eq!(found, wanted);
    }
}

#[test]
fn vectors_that_cannot_matter_are_skipped() {
    let mut source = Source(1);
    let values = |nulls: bool| -> Vec<Option<Scalar>> {
        let value = |row: i64| (!nulls || row % 3 != 0).then_some(Scalar(row as u64));
        (0..(VECTORS * VECTOR_ROWS) as i64).map(value).collect()
    };
    for (nulls, descending, nulls_first, wanted) in [
        (false, true, true, VECTORS - 1),
        (false, false, false, VECTORS - 1),
        (true, true, false, VECTORS - 1),
        // Ten NULLs are found in the first vector, and later ones only tie with them.
        (true, true, true, VECTORS - 1),
    ] {
        let mut table = Table {
            lanes: TestLanes::of(vec![Column::numbers(
                NumberType::I64,
                &values(nulls),
                &mut source,
            )]),
            types: vec![NumberType::I64],
            selections: vec![Selection::first(VECTOR_ROWS); VECTORS],
        };
        let order = Order {
            descending,
            nulls_first,
        };
        let mut best = BestRows::new(table.keys(&[order]));
        best.begin(10, usize::MAX);
        assert_eq!(table.offer(&mut best), wanted, "{nulls} {order:?}");
        assert_eq!(best.take().rows, table.sorted(&[order])[..10]);
    }
}
