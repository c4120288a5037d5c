//! Of equal floats that differ in their bits, the extreme is the last one.

use proptest::prelude::*;

use super::wanted::{Kept, Wanted, agree};
use crate::aggregate::extreme::End;
use crate::aggregate::{Aggregation, Key};
use crate::test_support::cases;
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::tests::lanes::{Column, Source, TestLanes, any_rows};
use crate::vector::tests::number_tree::NumberTree;
use crate::vector::value::Value;

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn the_last_zero_wins(
        seed in any::<u64>(), vectors in prop::collection::vec(any_rows(), 1..4), minimum in any::<bool>(), others in 0..3_usize,
    ) {
        let mut source = Source(seed);
        let (end, worse) = if minimum {
            (End::Minimum, [1.0, f64::NAN])
        } else {
            (End::Maximum, [-1.0, f64::NEG_INFINITY])
        };
        let pool: Vec<f64> = [0.0, -0.0].into_iter().chain(worse.into_iter().take(others)).collect();
        let types = [NumberType::F32, NumberType::F64];
        let wanted = types.iter().enumerate().map(|(attribute, number)| {
            Wanted::Extreme(end, NumberTree::Column(*number, attribute))
        });
        let wanted: Vec<_> = wanted.collect();
        let aggregates = || wanted.iter().map(|w| w.build(None)).collect();
        let key = Key::Number(Value::Column(NumberType::I64, 2));
        let mut queries = [Aggregation::new(Vec::new(), aggregates()), Aggregation::new(vec![key], aggregates())];
        let mut kept = [Kept::default(), Kept::default()];
        for rows in vectors {
            let values: Vec<f64> = (0..rows).map(|_| pool[source.below(pool.len() as u64) as usize]).collect();
            let reals: Vec<_> = values.iter().map(|v| Some((*v as f32).to_scalar())).collect();
            let doubles: Vec<_> = values.iter().map(|v| Some(v.to_scalar())).collect();
            let mut lanes = TestLanes::of(vec![
                Column::numbers(NumberType::F32, &reals, &mut source),
                Column::numbers(NumberType::F64, &doubles, &mut source),
                Column::numbers(NumberType::I64, &vec![Some(Scalar(1)); rows], &mut source),
            ]);
            lanes.zones = vec![Some(lanes.zone(0)), Some(lanes.zone(1))];
            let selection = source.selection(rows);
            for query in &mut queries {
                lanes.with_frame(|frame| query.add(frame, &selection)).unwrap();
            }
            selection.for_each(|row| {
                for (kept, wanted) in kept.iter_mut().zip(&wanted) {
                    kept.add(wanted, &lanes, row).unwrap();
                }
            });
        }
        for query in queries.iter().filter(|query| query.groups() == 1) {
            for (index, (kept, wanted)) in kept.iter().zip(&wanted).enumerate() {
                let (found, expected) = (query.answer(0, index), kept.answer(wanted));
                prop_assert!(agree(wanted, found, expected), "{found:?}, not {expected:?}");
            }
        }
    }
}
