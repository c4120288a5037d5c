//! Moving averages of rows that come in order of their times, or not.

use proptest::prelude::*;

use super::wanted::{Kept, Wanted, WantedKey, agree};
use crate::aggregate::Aggregation;
use crate::test_support::cases;
use crate::vector::number::{Number, NumberType};
use crate::vector::tests::lanes::{Column, Source, TestLanes, any_rows};
use crate::vector::tests::number_tree::NumberTree;
use crate::vector::{EvaluationError, Weight};

/// Times, numbers, groups.
const TIME: usize = 0;
const X: usize = 1;
const GROUP: usize = 2;

/// The order of the rows.
#[derive(Clone, Copy, Debug)]
struct Looks {
    time: NumberType,
    /// One time in so many is a step back; 0 = never.
    descents: u64,
    /// One number in so many is NULL; 0 = never.
    nulls: u64,
    grouped: bool,
}

fn any_looks() -> impl Strategy<Value = Looks> {
    let time = prop_oneof![
        3 => Just(NumberType::I64), 1 => Just(NumberType::I32), 1 => Just(NumberType::F32), 1 => Just(NumberType::F64)
    ];
    let descents = prop_oneof![2 => Just(0_u64), 1 => Just(1000), 1 => Just(5)];
    let nulls = prop_oneof![Just(0_u64), Just(7)];
    (time, descents, nulls, any::<bool>()).prop_map(|(time, descents, nulls, grouped)| Looks {
        time,
        descents,
        nulls,
        grouped,
    })
}

/// A window that goes on at `clock`. Whether the rows that count come in order of their times.
fn lanes(
    source: &mut Source,
    looks: Looks,
    rows: usize,
    clock: &mut i64,
    is_last: bool,
) -> (TestLanes, bool) {
    let (mut times, mut numbers, mut in_order) = (Vec::new(), Vec::new(), true);
    let past_nulls = is_last && source.one_in(2);
    for row in 0..rows {
        let x = looks.nulls == 0 || !source.one_in(looks.nulls);
        *clock += source.below(3) as i64;
        let steps_back = looks.descents > 0 && source.one_in(looks.descents);
        let time = if steps_back { *clock - 2 } else { *clock };
        in_order &= !(steps_back && x);
        numbers.push(x.then(|| (source.below(1000) as f64 / 7.0).to_scalar()));
        times.push(if past_nulls && row * 3 > rows * 2 && !steps_back {
            None
        } else {
            Some(match looks.time {
                NumberType::F32 => (time as f32).to_scalar(),
                NumberType::F64 => (time as f64).to_scalar(),
                _ => time.to_scalar(),
            })
        });
    }
    let groups: Vec<_> = (0..rows)
        .map(|_| Some((source.below(3) as i64).to_scalar()))
        .collect();
    let columns = vec![
        Column::numbers(looks.time, &times, source),
        Column::numbers(NumberType::F64, &numbers, source),
        Column::numbers(NumberType::I64, &groups, source),
    ];
    let mut lanes = TestLanes::of(columns);
    lanes.scalars = vec![Some(0.1.to_scalar())];
    (lanes, in_order)
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn times_decide(
        looks in any_looks(), seed in any::<u64>(), by_time in any::<bool>(),
        vectors in prop::collection::vec(any_rows(), 1..4),
    ) {
        let mut source = Source(seed);
        let x = NumberTree::Column(NumberType::F64, X);
        let time = by_time.then_some(NumberTree::Column(looks.time, TIME));
        let wanted = Wanted::Ema(Weight::Alpha, x, NumberTree::Scalar(NumberType::F64, 0), time);
        let key = looks.grouped.then_some(WantedKey::Number(NumberTree::Column(NumberType::I64, GROUP)));
        let build = |sorts| {
            let keys = key.iter().map(WantedKey::build).collect();
            Aggregation::new(keys, vec![wanted.build_for(None, sorts)])
        };
        let (mut clock, mut in_order) = (0, true);
        let last = vectors.len() - 1;
        let windows: Vec<_> = vectors.iter().enumerate().map(|(index, rows)| {
            let (lanes, ordered) = lanes(&mut source, looks, *rows, &mut clock, index == last);
            in_order &= ordered;
            let all = source.one_in(2);
            let selection = source.selection(*rows);
            let full = crate::vector::selection::Selection::first(*rows);
            (lanes, if all { full } else { selection })
        }).collect();
        let run = |aggregation: &mut Aggregation| {
            let mut windows = windows.iter();
            windows.try_for_each(|(lanes, rows)| lanes.with_frame(|f| aggregation.add(f, rows)))
        };
        let mut aggregation = build(false);
        let mut done = run(&mut aggregation);
        if done == Err(EvaluationError::Disordered) {
            prop_assert!(by_time && !in_order, "rows in order");
            aggregation = build(true);
            done = run(&mut aggregation);
        }
        prop_assert_eq!(done, Ok(()));
        aggregation.finish();
        for group in 0..aggregation.groups() {
            let name = key.as_ref().map(|key| key.found(aggregation.key(group, 0)));
            let mut kept = Kept::default();
            for (lanes, rows) in &windows {
                for row in (0..lanes.rows).filter(|row| rows.contains(*row)) {
                    let of_group = key.as_ref().map(|key| key.row(lanes, row).unwrap()) == name;
                    if of_group {
                        kept.add(&wanted, lanes, row).unwrap();
                    }
                }
            }
            let (found, expected) = (aggregation.answer(group, 0), kept.answer(&wanted));
            prop_assert!(agree(&wanted, found, expected), "{name:?}: {found:?}, not {expected:?}");
        }
    }
}
