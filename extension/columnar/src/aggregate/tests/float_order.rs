//! In which order floats are added: the one that the parent of the aggregates documents, on every instruction set.

use proptest::prelude::*;

use crate::aggregate::accumulator::{Accumulator, Added, Answer, Count, Grouping, Input, Numbers};
use crate::aggregate::extreme::{End, Extreme};
use crate::aggregate::moments::Moments;
use crate::aggregate::stretches::Stretches;
use crate::aggregate::sum::{FloatSum, IntegerResult, IntegerSums};
use crate::test_support::cases;
use crate::vector::number::{Number, Scalar};
use crate::vector::selection::Selection;
use crate::vector::tests::lanes::{Column, Source, TestLanes, any_rows};
use crate::vector::value::Value;

/// Sixteen stripes, halved until one is left.
fn striped<T>(values: &[T], selected: impl Fn(usize) -> bool) -> T
where
    T: Number + std::ops::Add<Output = T> + std::ops::Neg<Output = T>,
{
    let mut stripes = [-T::ZERO; 16];
    for (row, value) in values.iter().enumerate() {
        if selected(row) {
            stripes[row % 16] = stripes[row % 16] + *value;
        }
    }
    for half in [8, 4, 2, 1] {
        for stripe in 0..half {
            stripes[stripe] = stripes[stripe] + stripes[stripe + half];
        }
    }
    stripes[0]
}

/// Numbers whose sum depends on the order of addition.
fn values<T>(source: &mut Source, rows: usize, of: fn(f64) -> T) -> Vec<T> {
    let mut value = || {
        let scale = [1e-9, 1.0, 1e9][source.below(3) as usize];
        of((source.next() as i64) as f64 / i64::MAX as f64 * scale)
    };
    (0..rows).map(|_| value()).collect()
}

/// Adds runs to an accumulator; whether it took them.
fn add_stretches<T: Number>(
    accumulator: &mut dyn Accumulator,
    runs: Stretches<'_>,
    values: &[T],
    selection: &Selection,
) -> bool {
    with_added(values, selection, |added| {
        accumulator.add_stretches(runs, added).unwrap()
    })
}

/// Adds a vector to an accumulator.
fn add<T: Number>(
    accumulator: &mut dyn Accumulator,
    grouping: &Grouping<'_>,
    values: &[T],
    selection: &Selection,
) {
    if !selection.is_empty() {
        with_added(values, selection, |added| {
            accumulator.add(grouping, added).unwrap();
        });
    }
}

/// Calls `take` with the selected values of a vector.
fn with_added<T: Number, R>(
    values: &[T],
    selection: &Selection,
    take: impl FnOnce(Added<'_>) -> R,
) -> R {
    let scalars: Vec<_> = values.iter().map(|v| Some(v.to_scalar())).collect();
    let lanes = TestLanes::of(vec![Column::numbers(T::TYPE, &scalars, &mut Source(5))]);
    lanes.with_frame(|frame| {
        let operand = Value::Column(T::TYPE, 0)
            .evaluate(frame, selection)
            .unwrap();
        take(Added {
            input: &Input::Number(operand),
            selection,
            rows: values.len(),
        })
    })
}

fn sum(answer: Answer) -> f64 {
    match answer {
        Answer::Moments { sum, .. } => sum,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn rows_of_one_group_are_added_in_stripes(seed in any::<u64>(), vectors in prop::collection::vec(any_rows(), 1..4)) {
        let mut source = Source(seed);
        let (mut doubles, mut reals) = (FloatSum::<f64>::default(), FloatSum::<f32>::default());
        let (mut double_average, mut real_average) = (Moments::<f64>::new(false), Moments::<f32>::new(false));
        for accumulator in [&mut doubles as &mut dyn Accumulator, &mut reals, &mut double_average, &mut real_average] {
            accumulator.resize(1);
        }
        let (mut double, mut real, mut wide, mut wide_real) = (-0f64, -0f32, 0f64, 0f64);
        let mut rows_met = 0;
        for rows in vectors {
            let (d, r) = (values(&mut source, rows, |v| v), values(&mut source, rows, |v| v as f32));
            let selection = source.selection(rows);
            let one = Grouping::One(0);
            add(&mut doubles, &one, &d, &selection);
            add(&mut double_average, &one, &d, &selection);
            add(&mut reals, &one, &r, &selection);
            add(&mut real_average, &one, &r, &selection);
            if selection.is_empty() {
                continue;
            }
            rows_met += selection.count();
            let selected = |row| selection.contains(row);
            double += striped(&d, selected);
            real += striped(&r, selected);
            wide += striped(&d, selected);
            let widened: Vec<f64> = r.iter().map(|v| f64::from(*v)).collect();
            wide_real += striped(&widened, selected);
        }
        if rows_met == 0 {
            prop_assert_eq!(doubles.answer(0), Answer::Null);
            return Ok(());
        }
        prop_assert_eq!(doubles.answer(0), Answer::Number(double.to_scalar()));
        prop_assert_eq!(reals.answer(0), Answer::Number(real.to_scalar()));
        prop_assert_eq!(sum(double_average.answer(0)).to_bits(), wide.to_bits());
        prop_assert_eq!(sum(real_average.answer(0)).to_bits(), wide_real.to_bits());
    }

    #[test]
    fn runs_are_added_in_stripes_of_the_vector(
        seed in any::<u64>(), rows in any_rows(), lengths in prop::collection::vec(1..200_usize, 1..100),
    ) {
        let mut source = Source(seed);
        let (d, r) = (values(&mut source, rows, |v| v), values(&mut source, rows, |v| v as f32));
        let mut starts = vec![0];
        let mut groups = Vec::new();
        for length in lengths {
            let last = *starts.last().unwrap();
            if last < rows as u32 {
                starts.push((last + length as u32).min(rows as u32));
                groups.push(source.below(4) as u32);
            }
        }
        starts[groups.len()] = rows as u32;
        let runs = Stretches { starts: &starts, groups: &groups, are_short: false };
        let selection = source.selection(rows);
        let (mut doubles, mut reals) = (FloatSum::<f64>::default(), FloatSum::<f32>::default());
        let (mut average, mut real_average) = (Moments::<f64>::new(false), Moments::<f32>::new(false));
        for accumulator in [&mut doubles as &mut dyn Accumulator, &mut reals, &mut average, &mut real_average] {
            accumulator.resize(4);
        }
        prop_assert!(add_stretches(&mut doubles, runs, &d, &selection));
        prop_assert!(add_stretches(&mut average, runs, &d, &selection));
        prop_assert!(add_stretches(&mut reals, runs, &r, &selection));
        prop_assert!(add_stretches(&mut real_average, runs, &r, &selection));
        for group in 0..4 {
            let (mut double, mut real, mut total, mut wide, mut count) = (-0_f64, -0_f32, 0_f64, 0_f64, 0);
            for (_, rows) in runs.iter().filter(|(own, _)| *own == group) {
                let chosen = |row: usize| rows.contains(&row) && selection.contains(row);
                let widened: Vec<f64> = r.iter().map(|v| f64::from(*v)).collect();
                double += striped(&d, chosen);
                total += striped(&d, chosen);
                real += striped(&r, chosen);
                wide += striped(&widened, chosen);
                count += rows.clone().filter(|row| chosen(*row)).count();
            }
            let index = group as usize;
            if count == 0 {
                prop_assert_eq!(doubles.answer(index), Answer::Null);
                prop_assert_eq!(average.answer(index), Answer::Null);
                continue;
            }
            prop_assert_eq!(doubles.answer(index), Answer::Number(double.to_scalar()));
            prop_assert_eq!(reals.answer(index), Answer::Number(real.to_scalar()));
            prop_assert_eq!(sum(average.answer(index)).to_bits(), total.to_bits());
            prop_assert_eq!(sum(real_average.answer(index)).to_bits(), wide.to_bits());
        }
    }

    #[test]
    fn rows_of_short_runs_are_added_as_rows_with_ids(
        seed in any::<u64>(), vectors in prop::collection::vec(any_rows(), 1..3), longest in prop_oneof![1..12_usize, Just(200)],
    ) {
        const GROUPS: usize = 4;
        let mut source = Source(seed);
        let new = || -> [Box<dyn Accumulator>; 6] {
            [
                Box::new(FloatSum::<f64>::default()),
                Box::new(Moments::<f64>::new(false)),
                Box::new(Extreme::<f64>::new(End::Minimum)),
                Box::new(Extreme::<f64>::new(End::Maximum)),
                Box::new(Moments::<f64>::new(true)),
                Box::new(Count::default()),
            ]
        };
        let (mut by_runs, mut by_ids) = (new(), new());
        let (mut integers, mut integers_by_ids) =
            (IntegerSums::<i64>::new(IntegerResult::Sum), IntegerSums::<i64>::new(IntegerResult::Sum));
        by_runs.iter_mut().chain(&mut by_ids).for_each(|accumulator| accumulator.resize(GROUPS));
        integers.resize(GROUPS);
        integers_by_ids.resize(GROUPS);
        for rows in vectors {
            let (mut starts, mut groups, mut ids) = (Vec::new(), Vec::new(), Vec::new());
            while ids.len() < rows {
                starts.push(ids.len() as u32);
                // Runs that follow each other are of different groups.
                let other = 1 + source.below(GROUPS as u64 - 1) as u32;
                groups.push(groups.last().map_or(0, |last| (last + other) % GROUPS as u32));
                let end = ids.len() + 1 + source.below(longest as u64) as usize;
                ids.resize(end.min(rows), groups[groups.len() - 1]);
            }
            starts.push(rows as u32);
            let runs = Stretches { starts: &starts, groups: &groups, are_short: true };
            let selection = match source.one_in(3) {
                true => source.selection(rows),
                false => Selection::first(rows),
            };
            let d = values(&mut source, rows, |v| v);
            let i: Vec<i64> = d.iter().map(|value| value.to_bits() as i64).collect();
            let each = Grouping::Each(&ids);
            for (index, (run, id)) in by_runs.iter_mut().zip(&mut by_ids).enumerate() {
                let is_taken = add_stretches(&mut **run, runs, &d, &selection);
                // Sums of squares are not taken by runs.
                prop_assert!(is_taken || index == 4 || !selection.is_full(rows));
                if !is_taken {
                    add(&mut **run, &each, &d, &selection);
                }
                add(&mut **id, &each, &d, &selection);
            }
            if !add_stretches(&mut integers, runs, &i, &selection) {
                prop_assert!(!selection.is_full(rows));
                add(&mut integers, &each, &i, &selection);
            }
            add(&mut integers_by_ids, &each, &i, &selection);
        }
        for group in 0..GROUPS {
            prop_assert_eq!(integers.answer(group), integers_by_ids.answer(group));
        }
        for (run, id) in by_runs.iter().zip(&by_ids) {
            let (mut numbers, mut validity) = ([0; GROUPS], [0]);
            let mut out = Numbers { values: &mut numbers, validity: &mut validity };
            let has_numbers = run.numbers(0..GROUPS, &mut out);
            for (group, number) in numbers.into_iter().enumerate() {
                let answer = id.answer(group);
                prop_assert_eq!(run.answer(group), answer);
                let number = Scalar(number);
                match (answer, validity[0] >> group & 1) {
                    (Answer::Number(scalar), 1) => prop_assert_eq!(scalar, number),
                    (Answer::Count(count), 1) => prop_assert_eq!(count, number.0),
                    (Answer::Null, 0) => {}
                    _ => prop_assert!(!has_numbers),
                }
            }
        }
    }

    #[test]
    fn rows_with_ids_are_added_one_by_one(seed in any::<u64>(), rows in any_rows(), run in 1..200_u64) {
        let mut source = Source(seed);
        let (d, r) = (values(&mut source, rows, |v| v), values(&mut source, rows, |v| v as f32));
        let mut id = 0;
        let ids: Vec<u32> = (0..rows)
            .map(|_| {
                if source.one_in(run) {
                    id = source.below(4) as u32;
                }
                id
            })
            .collect();
        let selection = source.selection(rows);
        let (mut doubles, mut reals) = (FloatSum::<f64>::default(), FloatSum::<f32>::default());
        let mut average = Moments::<f64>::new(false);
        for accumulator in [&mut doubles as &mut dyn Accumulator, &mut reals, &mut average] {
            accumulator.resize(4);
        }
        let each = Grouping::Each(&ids);
        add(&mut doubles, &each, &d, &selection);
        add(&mut reals, &each, &r, &selection);
        add(&mut average, &each, &d, &selection);
        for group in 0..4 {
            let of_group = |row: usize| selection.contains(row) && ids[row] == group;
            let chosen: Vec<_> = (0..rows).filter(|row| of_group(*row)).collect();
            let index = group as usize;
            if chosen.is_empty() {
                prop_assert_eq!(doubles.answer(index), Answer::Null);
                continue;
            }
            // Doubles: a block of 64 rows of one group, all selected, is added as a whole.
            let mut double = -0f64;
            for first in (0..rows).step_by(64) {
                let block = first..(first + 64).min(rows);
                if block.len() == 64 && block.clone().all(of_group) {
                    double += striped(&d[block], |_| true);
                } else {
                    block.filter(|row| of_group(*row)).for_each(|row| double += d[row]);
                }
            }
            prop_assert_eq!(doubles.answer(index), Answer::Number(double.to_scalar()));
            let real = chosen.iter().fold(-0f32, |sum, row| sum + r[*row]);
            prop_assert_eq!(reals.answer(index), Answer::Number(real.to_scalar()));
            let total = chosen.iter().fold(0f64, |sum, row| sum + d[*row]);
            prop_assert_eq!(sum(average.answer(index)).to_bits(), total.to_bits());
        }
    }
}

#[test]
fn every_instruction_set_adds_in_the_same_order() {
    use lanes_simd::target::Target;
    let mut source = Source(11);
    let d = values(&mut source, 2000, |v| v);
    let selection = source.selection(2000);
    let expected = striped(&d, |row| selection.contains(row));
    for target in Target::supported() {
        target.use_only();
        let mut doubles = FloatSum::<f64>::default();
        doubles.resize(1);
        add(&mut doubles, &Grouping::One(0), &d, &selection);
        let found = doubles.answer(0);
        Target::use_best();
        assert_eq!(
            found,
            Answer::Number(expected.to_scalar()),
            "{}",
            target.name()
        );
    }
}
