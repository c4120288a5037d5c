//! Whole vectors, and whole runs, whose zones may answer all aggregates: the answers are those of
//! their rows, and the zones are used wherever they are enough.

use proptest::prelude::*;

use super::queries::{any_wanted, zones};
use super::wanted::{Wanted, agree};
use crate::aggregate::Aggregation;
use crate::aggregate::extreme::End;
use crate::aggregate::sum::IntegerResult;
use crate::limits::VECTOR_ROWS;
use crate::test_support::cases;
use crate::vector::number::{Number, NumberType};
use crate::vector::selection::Selection;
use crate::vector::tests::lanes::{ATTRIBUTES, BOOL, Column, Source, TYPES, TestLanes};
use crate::vector::tests::number_tree::{NumberTree, any_rarity};
use crate::vector::tests::truth_tree::TruthTree;
use crate::zone_map::Zone;

/// Aggregates of plain columns, which zones know something of, among others.
fn any_of_columns() -> impl Strategy<Value = (Option<TruthTree>, Wanted)> {
    let flag = || (BOOL..BOOL + 2).prop_map(TruthTree::Bool);
    let column = |types: std::ops::Range<usize>| {
        (types, 0..2_usize).prop_map(|(t, k)| NumberTree::Column(TYPES[t], t * 2 + k))
    };
    let end = prop_oneof![Just(End::Minimum), Just(End::Maximum)];
    let shape = prop_oneof![
        Just(IntegerResult::Sum),
        Just(IntegerResult::Average),
        Just(IntegerResult::Moments)
    ];
    let unfiltered = prop_oneof![
        Just(Wanted::Rows),
        (0..ATTRIBUTES).prop_map(Wanted::Presence),
        (shape, column(0..2)).prop_map(|(shape, tree)| Wanted::Integers(shape, tree)),
        (end, column(0..5)).prop_map(|(end, tree)| Wanted::Extreme(end, tree)),
        (any::<bool>(), flag()).prop_map(|(all, tree)| Wanted::Logic(all, tree)),
    ];
    prop_oneof![
        6 => unfiltered.prop_map(|wanted| (None, wanted)),
        1 => flag().prop_map(|flag| (Some(flag), Wanted::Rows)),
        1 => (flag(), any_wanted(false)).prop_map(|(flag, wanted)| (Some(flag), wanted)),
    ]
}

/// Puts zeros of both signs, and little else, into the columns of floats without NULLs.
fn put_zeros(lanes: &mut TestLanes, source: &mut Source) {
    let other = [0.0, 1.0, -1.0, f64::NAN][source.below(4) as usize];
    for (t, number) in TYPES.into_iter().enumerate().skip(3) {
        let values = (0..lanes.place + VECTOR_ROWS).map(|_| {
            let value = match source.below(500) {
                0 => other,
                row => [0.0, -0.0][row as usize % 2],
            };
            Some(match number {
                NumberType::F32 => (value as f32).to_scalar(),
                _ => value.to_scalar(),
            })
        });
        lanes.columns[t * 2] = Column::numbers(number, &values.collect::<Vec<_>>(), source);
    }
}

/// Full vectors, of which all rows are selected but in some.
fn whole_vectors(source: &mut Source, vectors: usize, rarity: u64) -> Vec<(TestLanes, Selection)> {
    let vector = |_| {
        let mut lanes = TestLanes::random(source.next(), VECTOR_ROWS, rarity);
        if source.one_in(2) {
            put_zeros(&mut lanes, source);
        }
        let mut rows = Selection::first(VECTOR_ROWS);
        if source.one_in(5) {
            rows.words[3] = 7;
        }
        (lanes, rows)
    };
    (0..vectors).map(vector).collect()
}

fn run(
    wanted: &(Option<TruthTree>, Wanted),
    windows: &[(TestLanes, Selection)],
) -> Option<Aggregation> {
    let built = wanted.1.build(wanted.0.as_ref());
    let mut aggregation = Aggregation::new(Vec::new(), vec![built]);
    for (lanes, rows) in windows {
        lanes
            .with_frame(|frame| aggregation.add(frame, rows))
            .ok()?;
    }
    Some(aggregation)
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn zones_and_rows_agree(
        wanted in any_of_columns(), seed in any::<u64>(), rarity in any_rarity(), vectors in 1..4_usize,
    ) {
        let mut source = Source(seed);
        let mut windows = whole_vectors(&mut source, vectors, rarity);
        let by_rows = run(&wanted, &windows);
        for (lanes, _) in &mut windows {
            lanes.zones = zones(lanes, &mut source);
        }
        let by_zones = run(&wanted, &windows);
        prop_assert_eq!(by_rows.is_some(), by_zones.is_some(), "one of them failed");
        if let (Some(rows), Some(zones)) = (by_rows, by_zones) {
            let (found, expected) = (zones.answer(0, 0), rows.answer(0, 0));
            prop_assert!(agree(&wanted.1, found, expected), "{wanted:?}: {found:?}, not {expected:?}");
        }
    }
}

/// The zones of lanes as they are stored with sealed rows. Zones of early versions have no sums.
fn stored(lanes: &TestLanes, attribute: usize, with_sums: bool) -> Option<Zone> {
    let zone = lanes.zone(attribute);
    let has_sum = with_sums && zone.has_sum;
    Some(Zone {
        exact: false,
        sum: if has_sum { zone.sum } else { 0 },
        has_sum,
        ..zone
    })
}

/// Adds lanes by their stored zones where possible, otherwise by their rows, and returns how many
/// were added by zones. The zones of some lanes have sums.
fn run_stored(
    wanted: &[(Option<TruthTree>, Wanted)],
    windows: &[(TestLanes, Selection)],
    with_sums: impl Fn(usize) -> bool,
) -> (Option<Aggregation>, usize) {
    let built = wanted
        .iter()
        .map(|(filter, wanted)| wanted.build(filter.as_ref()));
    let mut aggregation = Aggregation::new(Vec::new(), built.collect());
    let mut taken = 0;
    for (number, (lanes, rows)) in windows.iter().enumerate() {
        let is_whole = rows.count() == VECTOR_ROWS;
        let zone = |attribute: usize| stored(lanes, attribute, with_sums(number));
        if is_whole && aggregation.add_stored_zones(VECTOR_ROWS as u32, &zone) {
            taken += 1;
        } else if lanes
            .with_frame(|frame| aggregation.add(frame, rows))
            .is_err()
        {
            return (None, taken);
        }
    }
    (Some(aggregation), taken)
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn stored_zones_and_rows_agree(
        wanted in prop::collection::vec(any_of_columns(), 1..4), seed in any::<u64>(), rarity in any_rarity(),
        vectors in 1..4_usize, with_sums in any::<u8>(),
    ) {
        let mut source = Source(seed);
        let windows = whole_vectors(&mut source, vectors, rarity);
        let (by_zones, _) = run_stored(&wanted, &windows, |number| with_sums >> number & 1 == 1);
        let by_rows: Option<Vec<_>> = wanted.iter().map(|wanted| run(wanted, &windows)).collect();
        prop_assert_eq!(by_rows.is_some(), by_zones.is_some(), "one of them failed");
        if let (Some(rows), Some(zones)) = (by_rows, by_zones) {
            for (number, rows) in rows.iter().enumerate() {
                let (found, expected) = (zones.answer(0, number), rows.answer(0, 0));
                prop_assert!(agree(&wanted[number].1, found, expected), "{wanted:?}: {found:?}, not {expected:?}");
            }
        }
    }
}

#[test]
fn stored_zones_tell_all_or_nothing() {
    let windows = [(
        TestLanes::random(7, VECTOR_ROWS, 0),
        Selection::first(VECTOR_ROWS),
    )];
    let column = |t: usize| NumberTree::Column(TYPES[t], t * 2);
    let counts = [Wanted::Rows, Wanted::Presence(1)];
    let ends = [
        Wanted::Extreme(End::Maximum, column(1)),
        Wanted::Extreme(End::Minimum, column(4)),
    ];
    let is_taken = |wanted: &[(Option<TruthTree>, Wanted)], with_sums: bool| {
        run_stored(wanted, &windows, |_| with_sums).1 == 1
    };
    let taken = |wanted: &[Wanted], with_sums: bool| {
        let wanted: Vec<_> = wanted.iter().map(|wanted| (None, wanted.clone())).collect();
        is_taken(&wanted, with_sums)
    };
    assert!(taken(&counts, false) && taken(&ends, false));
    assert!(taken(&[counts, ends].concat(), false));
    for summed in [
        Wanted::Integers(IntegerResult::Sum, column(0)),
        Wanted::Integers(IntegerResult::Average, column(2)),
        Wanted::Logic(true, TruthTree::Bool(BOOL)),
    ] {
        assert!(taken(&[Wanted::Rows, summed.clone()], true), "{summed:?}");
        assert!(!taken(&[Wanted::Rows, summed.clone()], false), "{summed:?}");
    }
    for other in [
        Wanted::FloatSum(column(4)),
        Wanted::Integers(IntegerResult::Moments, column(0)),
    ] {
        assert!(!taken(&[Wanted::Rows, other.clone()], true), "{other:?}");
    }
    let trues = [(Some(TruthTree::Bool(BOOL)), Wanted::Rows)];
    assert!(is_taken(&trues, true) && !is_taken(&trues, false));
    let of_trues = [(Some(TruthTree::Bool(BOOL)), Wanted::Presence(1))];
    assert!(!is_taken(&of_trues, true), "its rows decide");
}

#[test]
fn told_where_nothing_is_in_doubt() {
    let mut lanes = TestLanes::random(7, VECTOR_ROWS, 0);
    lanes.zones = (0..ATTRIBUTES)
        .map(|attribute| Some(lanes.zone(attribute)))
        .collect();
    let column = |t: usize| NumberTree::Column(TYPES[t], t * 2);
    let told = |filter: Option<TruthTree>, wanted: Wanted, rows: Selection| {
        let aggregation = run(&(filter, wanted), &[(window_of(&lanes), rows)]);
        aggregation.is_some_and(|aggregation| aggregation.vectors_answered_by_zones() == 1)
    };
    let all = Selection::first(VECTOR_ROWS);
    for t in 0..3 {
        assert!(told(
            None,
            Wanted::Integers(IntegerResult::Sum, column(t)),
            all
        ));
        assert!(told(None, Wanted::Extreme(End::Maximum, column(t)), all));
        assert!(!told(
            None,
            Wanted::Integers(IntegerResult::Moments, column(t)),
            all
        ));
    }
    assert!(
        told(None, Wanted::Extreme(End::Minimum, column(4)), all),
        "-2 is no zero"
    );
    assert!(told(None, Wanted::Presence(1), all));
    assert!(told(None, Wanted::Logic(true, TruthTree::Bool(BOOL)), all));
    assert!(told(Some(TruthTree::Bool(BOOL)), Wanted::Rows, all));
    assert!(!told(
        None,
        Wanted::FloatSum(NumberTree::Column(NumberType::F64, 8)),
        all
    ));
    assert!(
        !told(None, Wanted::Rows, all.within(1, VECTOR_ROWS)),
        "not all of its rows"
    );
}

/// A copy of the lanes, whose columns are random by their seed.
fn window_of(lanes: &TestLanes) -> TestLanes {
    let mut again = TestLanes::random(7, VECTOR_ROWS, 0);
    again.zones = lanes.zones.clone();
    again
}
