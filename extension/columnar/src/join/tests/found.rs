//! The matches of rows, with keys in stretches and without.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::rows::joined;
use crate::aggregate::Key;
use crate::join::equal::{EqualJoin, SmallKey};
use crate::join::joined_column::JoinedColumn;
use crate::join::series::SeriesColumn;
use crate::test_support::cases;
use crate::vector::number::{Number, NumberType};
use crate::vector::tests::lanes::{Column, Source, TestLanes};
use crate::vector::value::Value;

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn runs_of_keys_find_what_their_rows_find(
        seed in any::<u64>(),
        number in prop_oneof![Just(NumberType::I16), Just(NumberType::I32), Just(NumberType::I64)],
        // Integers that lie close together are looked up in an array, others are not.
        step in prop_oneof![Just(1_i64), Just(400)],
        small_rows in 1..60_usize,
        run_rows in prop_oneof![1..20_u64, 20..500_u64],
        vectors in prop::collection::vec(1..2048_usize, 1..4),
    ) {
        let mut source = Source(seed);
        let mut join = EqualJoin::new(vec![Key::Number(Value::Column(number, 0))]);
        let several = source.one_in(3);
        let small: Vec<i64> = (0..small_rows as i64)
            .map(|row| if several { source.below(20) as i64 * step } else { row * step })
            .collect();
        for key in &small {
            join.push(&[SmallKey::Integer(*key)]);
        }
        join.finish(usize::MAX);
        let column = SeriesColumn {
            number: NumberType::I64,
            values: (0..=small_rows).map(|_| source.below(1000)).collect(),
            valid: source.one_in(2).then(|| (0..=small_rows).map(|_| !source.one_in(4)).collect()),
            failed: None,
        };
        for rows in vectors {
            let mut key = 0;
            let keys: Vec<_> = (0..rows)
                .map(|_| {
                    if source.one_in(run_rows) {
                        key = source.below(70) as i64 * step;
                    }
                    Some(key.to_scalar())
                })
                .collect();
            let mut column_of_keys = Column::numbers(number, &keys, &mut source);
            if !source.one_in(4) {
                column_of_keys = column_of_keys.without_bitmap();
            }
            let lanes = TestLanes::of(vec![column_of_keys]);
            let selection = source.selection(rows);
            let mut left = selection;
            lanes.with_frame(|frame| join.find(frame, &mut left)).unwrap();
            let is_of = |place: u32, row: usize| Some(small[place as usize].to_scalar()) == keys[row];
            let mut round = 0;
            while !left.is_empty() || round == 0 {
                let found = join.found();
                let mut expected = BTreeSet::new();
                for row in 0..rows {
                    let nth = (0..small_rows as u32).filter(|small| is_of(*small, row)).nth(round);
                    let nth = nth.filter(|_| selection.contains(row));
                    prop_assert_eq!(left.contains(row).then(|| found.rows()[row]), nth, "row {} of {}", row, rows);
                    expected.extend(nth);
                }
                let mut each = BTreeSet::new();
                found.each(&left, |small| {
                    each.insert(small);
                });
                prop_assert_eq!(each, expected);
                let (mut by_rows, mut by_runs) = (JoinedColumn::new(NumberType::I64), JoinedColumn::new(NumberType::I64));
                by_rows.gather(&column, found.rows(), &left);
                by_runs.gather_found(&column, found, &left);
                for row in 0..rows {
                    let value = |column: &JoinedColumn| joined(NumberType::I64, &column.operand(), row);
                    prop_assert_eq!(value(&by_rows), value(&by_runs), "row {} of {}", row, rows);
                }
                join.find_next(&mut left);
                round += 1;
            }
        }
    }
}
