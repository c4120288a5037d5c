//! The nearest row within bounds, by search.

use proptest::prelude::*;

use super::rows::{Bounds, joined};
use super::series::Random;
use crate::join::asof::Asof;
use crate::join::cursor::Cursors;
use crate::join::joined_column::JoinedColumn;
use crate::join::series::SeriesBuilder;
use crate::test_support::cases;
use crate::vector::number::{NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::tests::lanes::{Source, any_rows};
use crate::vector::tests::number_tree::same;
use crate::vector::value::Operand;

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn it_is_the_oracles(
        seed in any::<u64>(),
        right in prop::collection::vec(any_rows(), 0..3),
        left in prop::collection::vec(1..150_usize, 1..4),
        keys in prop_oneof![Just(1_usize), 1..8_usize],
        backward in any::<bool>(),
    ) {
        let mut source = Source(seed);
        let random = Random::new(&mut source, &right, keys, 5);
        let mut asof = Asof::new(&random.series, backward);
        let mut found_columns: Vec<_> = random.types.iter().map(|number| JoinedColumn::new(*number)).collect();
        for rows in left {
            let variety = [3, 60, 6000][source.below(3) as usize];
            let near = Bounds::random(&mut source, rows, variety);
            let far = (!source.one_in(3)).then(|| Bounds::random(&mut source, rows, variety));
            // Some ids that the series does not have.
            let ids: Vec<_> = (0..rows).map(|_| source.below(keys as u64 + 2) as u32).collect();
            let selection = source.selection(rows);
            let far_bound = far.as_ref().map(Bounds::bound);
            let found = asof.find(&random.series, (&ids, rows), &near.bound(), far_bound.as_ref(), &selection);
            for (column, series_column) in found_columns.iter_mut().zip(&random.series.columns) {
                column.gather(series_column, asof.places(), &found);
            }
            for (row, id) in ids.iter().enumerate() {
                let within = |time| {
                    let (upper, lower) = if backward { (Some(&near), far.as_ref()) } else { (far.as_ref(), Some(&near)) };
                    upper.is_none_or(|upper| upper.above(row, time)) && lower.is_none_or(|lower| lower.below(row, time))
                };
                let candidates = random.rows.iter().filter(|right| right.id == *id && within(right.time));
                // Of rows with equal times, `max_by_key` returns the last and `min_by_key` the
                // first.
                let nearest = if backward { candidates.max_by_key(|r| r.time) } else { candidates.min_by_key(|r| r.time) };
                let nearest = nearest.filter(|_| selection.contains(row));
                prop_assert_eq!(found.contains(row), nearest.is_some(), "row {}", row);
                for (index, column) in found_columns.iter().enumerate() {
                    let value = joined(column.number(), &column.operand(), row);
                    let expected = nearest.and_then(|nearest| nearest.values[index]);
                    let agrees = match (value, expected) {
                        (Some(a), Some(b)) => same(column.number(), a, b),
                        (a, b) => a == b,
                    };
                    prop_assert!(agrees, "row {} column {}: {:?}, not {:?}", row, index, value, expected);
                }
            }
        }
    }

    #[test]
    fn cursors_find_times_in_any_order(
        mut times in prop::collection::vec(prop_oneof![any::<i64>(), -20..20_i64, Just(i64::MIN), Just(i64::MAX)], 0..300),
        looked_for in prop::collection::vec((prop_oneof![any::<i64>(), -25..25_i64, Just(i64::MIN), Just(i64::MAX)], any::<bool>()), 1..100),
    ) {
        times.sort_unstable();
        // Keys before and after must not be touched.
        let mut builder = SeriesBuilder::new(&[], usize::MAX);
        for (id, times) in [(0, &[i64::MIN, i64::MAX][..]), (1, &times), (2, &[i64::MIN, i64::MAX])] {
            for time in times {
                let operand = (NumberType::I64, Operand::Same(Scalar(*time as u64)));
                builder.add(&[id], operand, &[], &Selection::first(1), 1).unwrap();
            }
        }
        let series = builder.finish(3);
        let mut cursors = Cursors::new(&series);
        for (time, included) in looked_for {
            let found = cursors.after(&series.times, 1, time, included);
            let at = times.iter().filter(|t| if included { **t <= time } else { **t < time }).count();
            prop_assert_eq!((found.start, found.at, found.end), (2, 2 + at as u32, 2 + times.len() as u32));
        }
    }
}
