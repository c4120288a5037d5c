//! Random keys and aggregates over random windows.

use proptest::prelude::*;

use super::wanted::{Cut, Kept, Wanted, WantedKey, agree};
use crate::aggregate::Aggregation;
use crate::aggregate::extreme::End;
use crate::aggregate::sum::IntegerResult;
use crate::test_support::cases;
use crate::vector::number::NumberType;
use crate::vector::tests::lanes::{
    ABSENT, ALPHA, ATTRIBUTES, BYTES16, CODED, Cell, PLAIN, SPAN, Source, TYPES, TestLanes,
    any_rows,
};
use crate::vector::tests::number_tree::{NumberTree, any_number, any_rarity};
use crate::vector::tests::truth_tree::{TruthTree, any_truth};
use crate::vector::{Evaluation, EvaluationError, Weight};
use crate::zone_map::Zone;

/// The groups of the twin: their keys, and what is kept for each aggregate.
struct Twin<'a> {
    keys: &'a [WantedKey],
    aggregates: &'a [(Option<TruthTree>, Wanted)],
    groups: Vec<(Vec<Cell>, Vec<Kept>)>,
}

impl Twin<'_> {
    fn group(&mut self, key: Vec<Cell>) -> &mut Vec<Kept> {
        let known = self.groups.iter().position(|(k, _)| *k == key);
        let index = known.unwrap_or_else(|| {
            let empty = vec![Kept::default(); self.aggregates.len()];
            self.groups.push((key, empty));
            self.groups.len() - 1
        });
        &mut self.groups[index].1
    }

    fn add(&mut self, lanes: &TestLanes, row: usize, errors: &mut Vec<EvaluationError>) {
        let keys: Evaluation<Vec<_>> = self.keys.iter().map(|k| k.row(lanes, row)).collect();
        let key = match keys {
            Ok(key) => key,
            Err(error) => return errors.push(error),
        };
        let aggregates = self.aggregates;
        let kept = self.group(key);
        for ((filter, wanted), kept) in aggregates.iter().zip(kept) {
            let passes = match filter {
                None => Ok(true),
                Some(filter) => filter.row(lanes, row).map(|truth| truth == Some(true)),
            };
            let added = passes.and_then(|passes| {
                if passes {
                    kept.add(wanted, lanes, row)
                } else {
                    Ok(())
                }
            });
            errors.extend(added.err());
        }
    }
}

/// Integers of a type that varies, small enough for few groups if `depth` is 0.
fn any_integer(depth: u32) -> impl Strategy<Value = NumberTree> {
    (0..3_usize).prop_flat_map(move |t| any_number(TYPES[t], depth))
}

fn any_tree() -> impl Strategy<Value = NumberTree> {
    (0..5_usize, 0..2_u32).prop_flat_map(|(t, depth)| any_number(TYPES[t], depth))
}

fn any_end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Minimum), Just(End::Maximum)]
}

/// Floats that add up exactly in windows without extremes.
fn any_exact(number: NumberType) -> impl Strategy<Value = NumberTree> {
    any_number(number, 0)
}

/// A moving average, mostly with a weight that is legal and the same in all rows.
fn any_ema() -> impl Strategy<Value = Wanted> {
    let legal = prop_oneof![Just((Weight::Alpha, ALPHA)), Just((Weight::Span, SPAN))]
        .prop_map(|(weight, index)| (weight, NumberTree::Scalar(NumberType::F64, index)));
    let weight = prop_oneof![Just(Weight::Alpha), Just(Weight::Span)];
    let any = (weight, any_number(NumberType::F64, 0));
    let weight = prop_oneof![9 => legal, 1 => any];
    let x = (0..2_u32).prop_flat_map(|depth| any_number(NumberType::F64, depth));
    let time = prop::option::weighted(0.6, any_tree());
    (weight, x, time).prop_map(|((weight, given), x, time)| Wanted::Ema(weight, x, given, time))
}

pub(super) fn any_wanted(exact: bool) -> BoxedStrategy<Wanted> {
    let shape = || prop_oneof![Just(IntegerResult::Sum), Just(IntegerResult::Average)];
    let moments = (0..2_usize).prop_flat_map(|t| any_number(TYPES[t], 0));
    let float = || (3..5_usize).prop_flat_map(|t| any_number(TYPES[t], 1));
    let any = prop_oneof![
        1 => Just(Wanted::Rows),
        1 => (0..ATTRIBUTES).prop_map(Wanted::Presence),
        2 => (shape(), any_integer(1)).prop_map(|(shape, tree)| Wanted::Integers(shape, tree)),
        1 => moments.prop_map(|tree| Wanted::Integers(IntegerResult::Moments, tree)),
        1 => float().prop_map(|tree| Wanted::Moments(true, tree)),
        3 => (any_end(), any_tree()).prop_map(|(end, tree)| Wanted::Extreme(end, tree)),
        2 => (any::<bool>(), any_truth()).prop_map(|(all, tree)| Wanted::Logic(all, tree)),
        2 => (any_end(), any_tree(), any_tree()).prop_map(|(end, v, t)| Wanted::Edge(end, v, t)),
        3 => any_ema(),
    ];
    if !exact {
        return any.boxed();
    }
    let float = || (3..5_usize).prop_flat_map(|t| any_exact(TYPES[t]));
    let double = || any_exact(NumberType::F64);
    prop_oneof![
        2 => any,
        1 => float().prop_map(Wanted::FloatSum),
        1 => float().prop_map(|tree| Wanted::Moments(false, tree)),
        1 => (double(), double()).prop_map(|(p, v)| Wanted::Weighted(p, v)),
    ]
    .boxed()
}

fn any_key() -> impl Strategy<Value = WantedKey> {
    let time = prop_oneof![Just(1_usize), Just(2)].prop_flat_map(|t| any_number(TYPES[t], 0));
    let cut = (
        1..6_i64,
        prop_oneof![Just(1_i64 << 40), Just(2)],
        any::<bool>(),
    );
    let cut = cut.prop_map(|(width, names, knows_ends)| Cut {
        width,
        names,
        knows_ends,
    });
    prop_oneof![
        2 => prop_oneof![3 => Just(CODED), 3 => Just(PLAIN), 1 => Just(ABSENT)].prop_map(WantedKey::Text),
        2 => prop_oneof![3 => Just(BYTES16), 3 => Just(BYTES16 + 1), 1 => Just(ABSENT)].prop_map(WantedKey::Bytes16),
        2 => any_tree().prop_map(WantedKey::Number),
        1 => any_truth().prop_map(WantedKey::Truth),
        2 => (time, cut).prop_map(|(time, cut)| WantedKey::Bucket(time, cut)),
    ]
}

/// The zones of a window, where there are any.
pub(super) fn zones(lanes: &TestLanes, source: &mut Source) -> Vec<Option<Zone>> {
    (0..ATTRIBUTES)
        .map(|attribute| {
            let zone = (!source.one_in(3)).then(|| lanes.zone(attribute))?;
            if !source.one_in(3) {
                return Some(zone);
            }
            // The zone of a superset of these rows: only its bounds are reliable.
            Some(Zone {
                exact: false,
                sum: zone.sum + 1,
                non_null: zone.non_null + 1,
                ..zone
            })
        })
        .collect()
}

fn any_query(
    exact: bool,
) -> impl Strategy<Value = (Vec<WantedKey>, Vec<(Option<TruthTree>, Wanted)>)> {
    let aggregate = (prop::option::weighted(0.3, any_truth()), any_wanted(exact));
    (
        prop::collection::vec(any_key(), 0..4),
        prop::collection::vec(aggregate, 0..5),
    )
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn queries_agree_with_the_twin(
        (rarity, (keys, aggregates)) in
            any_rarity().prop_flat_map(|rarity| (Just(rarity), any_query(rarity == 0))),
        seed in any::<u64>(), vectors in prop::collection::vec(any_rows(), 1..4),
        wide_from in prop::option::of(0..30_usize),
    ) {
        let mut source = Source(seed);
        let build = |sorts| {
            let built = aggregates.iter().map(|(filter, wanted)| wanted.build_for(filter.as_ref(), sorts));
            let keys = keys.iter().map(WantedKey::build);
            let mut aggregation = Aggregation::new(keys.collect(), built.collect());
            aggregation.widen_from(wide_from);
            aggregation
        };
        let mut aggregation = build(false);
        let mut before = Vec::new();
        let mut twin = Twin { keys: &keys, aggregates: &aggregates, groups: Vec::new() };
        if keys.is_empty() {
            twin.group(Vec::new());
        }
        for rows in vectors {
            let mut lanes = TestLanes::random(source.next(), rows, rarity);
            lanes.zones = zones(&lanes, &mut source);
            if let Some((first, _)) = before.first() {
                // Scalars hold for the whole scan: lists of them are prepared once.
                let first: &TestLanes = first;
                lanes.scalars.clone_from(&first.scalars);
            }
            let selection = source.selection(rows);
            let mut errors = Vec::new();
            selection.for_each(|row| twin.add(&lanes, row, &mut errors));
            let mut added = lanes.with_frame(|frame| aggregation.add(frame, &selection));
            before.push((lanes, selection));
            if added == Err(EvaluationError::Disordered) {
                aggregation = build(true);
                added = before.iter().try_for_each(|(lanes, selection)| {
                    lanes.with_frame(|frame| aggregation.add(frame, selection))
                });
            }
            if let Err(error) = added {
                prop_assert!(errors.contains(&error), "{error} not in {errors:?}");
                return Ok(());
            }
            prop_assert!(errors.is_empty(), "missed {:?}", errors[0]);
        }
        aggregation.finish();
        prop_assert_eq!(aggregation.groups(), twin.groups.len());
        for group in 0..aggregation.groups() {
            let found = |(k, key): (usize, &WantedKey)| key.found(aggregation.key(group, k));
            let key: Vec<_> = keys.iter().enumerate().map(found).collect();
            let Some((_, kept)) = twin.groups.iter().find(|(k, _)| *k == key) else {
                panic!("a group of nobody: {key:?}");
            };
            for (index, ((_, wanted), kept)) in aggregates.iter().zip(kept).enumerate() {
                let (found, expected) = (aggregation.answer(group, index), kept.answer(wanted));
                prop_assert!(agree(wanted, found, expected), "{wanted:?} of {key:?}: {found:?}, not {expected:?}");
            }
        }
    }
}
