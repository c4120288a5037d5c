//! Rows by key, time and arrival.

use proptest::prelude::*;

use super::rows::{RightRow, number, numbers, operand, time, time_type};
use crate::join::series::{Series, SeriesBuilder};
use crate::test_support::cases;
use crate::vector::EvaluationError::DivisionByZero;
use crate::vector::number::{NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::tests::lanes::{Column, Source, TYPES, any_rows};
use crate::vector::tests::number_tree::same;
use crate::vector::value::Operand;

/// A random right side of some vectors: as a series, and as the oracle has it, in the order of
/// arrival.
pub(super) struct Random {
    pub(super) series: Series,
    pub(super) rows: Vec<RightRow>,
    pub(super) types: Vec<NumberType>,
}

impl Random {
    /// Rows of `keys` keys; the last of the columns says how many rows arrived before. `rarity`: of
    /// extreme numbers.
    pub(super) fn new(source: &mut Source, vectors: &[usize], keys: usize, rarity: u64) -> Random {
        let variety = [3, 50, 5000][source.below(3) as usize];
        let time_type = time_type(source);
        let mut types: Vec<_> = (0..source.below(4))
            .map(|_| TYPES[source.below(5) as usize])
            .collect();
        types.push(NumberType::I64);
        let mut builder = SeriesBuilder::new(&types, usize::MAX);
        let mut all = Vec::new();
        for rows in vectors {
            let ids: Vec<_> = (0..*rows)
                .map(|_| source.below(keys as u64) as u32)
                .collect();
            let mut times: Vec<_> = (0..*rows)
                .map(|_| time(source, time_type, variety))
                .collect();
            if source.one_in(2) {
                times.sort_unstable();
            }
            let one_time = source.one_in(10);
            if one_time {
                let first = times[0];
                times.fill(first);
            }
            let scalars: Vec<_> = times.iter().map(|t| Some(Scalar(*t as u64))).collect();
            let time_column = Column::numbers(time_type, &scalars, source);
            let time_operand = match scalars[0] {
                Some(time) if one_time => Operand::Same(time),
                _ => operand(&time_column),
            };
            let arrivals: Vec<_> = (0..*rows)
                .map(|row| Some(Scalar((all.len() + row) as u64)))
                .collect();
            let mut columns: Vec<_> = types[..types.len() - 1]
                .iter()
                .map(|number| numbers(source, *number, *rows, rarity))
                .collect();
            columns.push(Column::numbers(NumberType::I64, &arrivals, source));
            let operands: Vec<_> = columns.iter().map(operand).collect();
            let selection = source.selection(*rows);
            builder
                .add(
                    &ids,
                    (time_type, time_operand),
                    &operands,
                    &selection,
                    *rows,
                )
                .unwrap();
            // Rows that are not selected have a key that no row searches for.
            all.extend((0..*rows).map(|row| RightRow {
                id: if selection.contains(row) {
                    ids[row]
                } else {
                    u32::MAX
                },
                time: times[row],
                values: columns.iter().map(|column| number(column, row)).collect(),
            }));
        }
        Random {
            series: builder.finish(keys),
            rows: all,
            types,
        }
    }

    /// The rows of a key by time, then by arrival.
    pub(super) fn of_key(&self, key: u32) -> Vec<&RightRow> {
        let mut rows: Vec<_> = self.rows.iter().filter(|row| row.id == key).collect();
        rows.sort_by_key(|row| row.time);
        rows
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn rows_are_in_order(seed in any::<u64>(), vectors in prop::collection::vec(any_rows(), 0..4), keys in 1..20_usize) {
        let mut source = Source(seed);
        let random = Random::new(&mut source, &vectors, keys, 5);
        let series = &random.series;
        let taken = random.rows.iter().filter(|row| row.id != u32::MAX).count();
        prop_assert_eq!((series.len(), series.keys(), series.is_empty()), (taken, keys, taken == 0));
        for key in 0..keys as u32 {
            let (expected, range) = (random.of_key(key), series.range(key));
            prop_assert_eq!(expected.len(), range.len());
            for (row, place) in expected.iter().zip(range) {
                let place = place as usize;
                prop_assert_eq!(series.times[place], row.time);
                for (column, value) in series.columns.iter().zip(&row.values) {
                    let valid = column.valid.as_ref().is_none_or(|valid| valid[place]);
                    prop_assert_eq!(valid, value.is_some());
                    prop_assert!(value.is_none_or(|value| same(column.number, Scalar(column.values[place]), value)));
                }
            }
        }
        prop_assert_eq!(series.range(keys as u32), 0..0);
        prop_assert_eq!(series.range(u32::MAX - 1), 0..0);
    }
}

#[test]
fn failures_stay_with_their_rows() {
    let mut source = Source(1);
    let mut builder = SeriesBuilder::new(&[NumberType::I32, NumberType::I32], usize::MAX);
    let mut add = |times: &[i64], selection: &Selection, failures: &[_]| {
        let values: Vec<_> = times.iter().map(|t| Some(Scalar(*t as u64))).collect();
        let column = Column::numbers(NumberType::I64, &values, &mut source);
        let other = Column::numbers(NumberType::I32, &values, &mut source);
        let (times, other) = (operand(&column), operand(&other));
        let ids = vec![0; values.len()];
        let times = (NumberType::I64, times);
        builder
            .add(&ids, times, &[other, other], selection, values.len())
            .unwrap();
        if !failures.is_empty() {
            builder.fail(1, failures, selection);
        }
    };
    add(&[50, 40], &Selection::first(2), &[]);
    let mut middle = Selection::first(4);
    middle.words[0] &= !0b10;
    add(
        &[30, 77, 20, 10],
        &middle,
        &[(2, DivisionByZero), (3, DivisionByZero)],
    );
    add(&[60, 70], &Selection::first(2), &[]);
    let series = builder.finish(1);
    assert_eq!(series.times, [10, 20, 30, 40, 50, 60, 70]);
    assert!(series.columns[0].failed.is_none());
    let failed = series.columns[1].failed.as_ref().unwrap();
    let places: Vec<_> = (0..7).filter(|place| failed[*place].is_some()).collect();
    assert_eq!((places, failed.len()), (vec![0, 1], 7));
}
