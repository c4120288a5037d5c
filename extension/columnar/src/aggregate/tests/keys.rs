//! Keys whose ids are remembered: text from segment to segment, buckets of sorted times.

use std::collections::BTreeMap;
use std::ops::Range;

use proptest::prelude::*;

use super::wanted::{Cut, Wanted, WantedKey};
use crate::aggregate::{Aggregation, Answer, Numbers};
use crate::test_support::cases;
use crate::vector::frame::{Frame, Substitute, SubstituteColumn};
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::tests::dictionaries::{Walk, any_steps};
use crate::vector::tests::lanes::{Cell, Column, Source, TestLanes};
use crate::vector::tests::number_tree::NumberTree;
use crate::zone_map::{Bound, Zone};

/// Counts rows by some keys, and by the twin.
struct Counts {
    keys: Vec<WantedKey>,
    aggregation: Aggregation,
    expected: BTreeMap<String, u64>,
    /// Whether keys are given as runs of equal values, where they have any.
    by_runs: bool,
    /// Vectors whose times were not to be read.
    unread: u32,
}

impl Counts {
    fn new(keys: Vec<WantedKey>) -> Counts {
        let built = keys.iter().map(WantedKey::build).collect();
        Counts {
            keys,
            aggregation: Aggregation::new(built, vec![Wanted::Rows.build(None)]),
            expected: BTreeMap::new(),
            by_runs: false,
            unread: 0,
        }
    }

    fn by_runs(self) -> Counts {
        Counts {
            by_runs: true,
            ..self
        }
    }

    /// The keys of which there are runs, which alone may be read then.
    fn runs(&self, lanes: &TestLanes) -> Vec<SubstituteColumn> {
        let keys = self.keys.iter().filter(|_| self.by_runs);
        let attributes = keys.filter_map(|key| match key {
            WantedKey::Text(attribute) | WantedKey::Number(NumberTree::Column(_, attribute)) => {
                Some(*attribute)
            }
            _ => None,
        });
        attributes
            .filter_map(|attribute| {
                Some(SubstituteColumn {
                    attribute,
                    substitute: Substitute::Repeats,
                    repeats: lanes.value_repeats(attribute)?,
                })
            })
            .collect()
    }

    fn add(&mut self, lanes: &TestLanes, selection: Selection) {
        let buckets = self.keys.iter().enumerate();
        let buckets = buckets.filter(|(_, key)| matches!(key, WantedKey::Bucket(..)));
        let buckets: Vec<usize> = buckets.map(|(key, _)| key).collect();
        lanes
            .with_frame(|frame| {
                // The attribute of a key that its zone answers may not be read.
                let is_answered_by_zone =
                    |&key: &usize| self.aggregation.is_key_answered_by_zone(key, frame);
                let is_unread = buckets.len() == 1 && buckets.iter().any(is_answered_by_zone);
                self.unread += u32::from(is_unread);
                let mut sparable = self.runs(lanes);
                sparable.extend(is_unread.then(|| SubstituteColumn {
                    substitute: Substitute::Zone,
                    ..SubstituteColumn::default()
                }));
                let frame = Frame {
                    substitutes: &sparable,
                    ..*frame
                };
                self.aggregation.add(&frame, &selection)
            })
            .unwrap();
        selection.for_each(|row| {
            let key: Vec<Cell> = self
                .keys
                .iter()
                .map(|k| k.row(lanes, row).unwrap())
                .collect();
            *self.expected.entry(format!("{key:?}")).or_default() += 1;
        });
    }

    /// Checks that the key numbers of a range of groups are those of each group.
    fn check_columns(&self, groups: Range<usize>) {
        for key in 0..self.keys.len() {
            let mut numbers = vec![u32::MAX; groups.len()];
            self.aggregation
                .key_numbers(key, groups.clone(), &mut numbers);
            let expected = groups.clone();
            let expected = expected.map(|group| self.aggregation.key_number(group, key));
            assert_eq!(numbers, expected.collect::<Vec<_>>());
        }
        let (mut values, mut validity) = (vec![0; groups.len()], vec![0; groups.len() / 64 + 1]);
        let mut out = Numbers {
            values: &mut values,
            validity: &mut validity,
        };
        assert!(self.aggregation.numbers(0, groups.clone(), &mut out));
        for (place, group) in groups.enumerate() {
            let count = self.aggregation.answer(group, 0);
            assert_eq!(count, Answer::Count(values[place]));
            assert_eq!(validity[place / 64] >> (place % 64) & 1, 1);
        }
    }

    /// The engine's groups with their counts.
    fn found(&self) -> BTreeMap<String, u64> {
        let groups = 0..self.aggregation.groups();
        let found: BTreeMap<_, _> = groups
            .clone()
            .map(|group| {
                let keys = self.keys.iter().enumerate();
                let key: Vec<_> = keys
                    .map(|(k, key)| key.found(self.aggregation.key(group, k)))
                    .collect();
                match self.aggregation.answer(group, 0) {
                    Answer::Count(count) => (format!("{key:?}"), count),
                    other => panic!("{other:?}"),
                }
            })
            .collect();
        assert_eq!(found.len(), groups.len(), "a key has one group");
        self.check_columns(groups.start.min(1)..groups.end);
        self.check_columns(groups.end / 2..groups.end);
        found
    }
}

/// Times that grow, with stretches of equal ones; from series to series they begin anew.
fn times(source: &mut Source, start: i64, rows: usize, series_rows: u64) -> Vec<Option<Scalar>> {
    let step = [1, 3, 40][source.below(3) as usize];
    let mut time = start;
    (0..rows)
        .map(|_| {
            time += source.below(step) as i64;
            if source.one_in(series_rows) {
                time = start;
            }
            Some(time.to_scalar())
        })
        .collect()
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn text_has_one_group_in_all_segments(steps in any_steps(), seed in any::<u64>(), rows in 1..300_usize) {
        let mut source = Source(seed);
        let (mut walk, mut other) = (Walk::new(), Walk::new());
        let mut single = Counts::new(vec![WantedKey::Text(0)]);
        let mut pairs = Counts::new(vec![WantedKey::Text(0), WantedKey::Text(1)]);
        let mut single_runs = Counts::new(vec![WantedKey::Text(0)]).by_runs();
        let mut pairs_of_runs = Counts::new(vec![WantedKey::Text(0), WantedKey::Text(1)]).by_runs();
        for step in steps {
            let columns = vec![walk.column(step, rows, &mut source), other.column(step, rows, &mut source)];
            let lanes = TestLanes::of(columns);
            single.add(&lanes, source.selection(rows));
            pairs.add(&lanes, source.selection(rows));
            single_runs.add(&lanes, source.selection(rows));
            pairs_of_runs.add(&lanes, source.selection(rows));
        }
        for counts in [single, pairs, single_runs, pairs_of_runs] {
            prop_assert_eq!(counts.found(), counts.expected);
        }
    }

    #[test]
    fn times_fall_into_their_buckets(
        series_rows in prop_oneof![Just(u64::MAX), 2..500_u64],
        seed in any::<u64>(), vectors in prop::collection::vec(1..600_usize, 1..5),
        start in prop_oneof![-500..500_i64, Just(i64::MIN), Just(i64::MAX - 100_000)],
        width in prop_oneof![1..50_i64, Just(10_000)], names in prop_oneof![Just(1_i64 << 40), Just(3)], knows_ends in any::<bool>(),
    ) {
        let mut source = Source(seed);
        let tree = || NumberTree::Column(NumberType::I64, 0);
        let cut = Cut { width, names, knows_ends };
        let bucket = || WantedKey::Bucket(tree(), cut);
        let other = || WantedKey::Number(NumberTree::Column(NumberType::I16, 1));
        let mut queries = [
            Counts::new(vec![bucket()]),
            Counts::new(vec![bucket(), other()]),
            Counts::new(vec![other(), bucket()]),
            Counts::new(vec![other(), bucket(), bucket()]),
            Counts::new(vec![other()]).by_runs(),
            Counts::new(vec![bucket(), other()]).by_runs(),
        ];
        for rows in vectors {
            let times = times(&mut source, start, rows, series_rows);
            let few: Vec<_> = (0..rows).map(|_| Some(Scalar(source.below(3)))).collect();
            let mut lanes = TestLanes::of(vec![
                Column::numbers(NumberType::I64, &times, &mut source),
                Column::numbers(NumberType::I16, &few, &mut source),
            ]);
            let all = || times.iter().map(|time| time.map_or(0, |scalar| scalar.0 as i64));
            let ends = all().min().zip(all().max()).unwrap_or_default();
            lanes.zones = vec![(!source.one_in(4)).then(|| Zone {
                // Bounds may be wider than the numbers.
                minimum: Bound::Signed(ends.0.saturating_sub(source.below(2) as i64)),
                maximum: Bound::Signed(ends.1.saturating_add(source.below(2) as i64)),
                sorted: all().is_sorted() && !source.one_in(4),
                exact: false,
                ..lanes.zone(0)
            })];
            for query in &mut queries {
                query.add(&lanes, source.selection(rows));
            }
        }
        for query in queries {
            prop_assert_eq!(query.found(), query.expected);
        }
    }
}

#[test]
fn times_of_a_bucket_that_was_met_are_not_read_again() {
    let cut = Cut {
        width: 1000,
        names: 3,
        knows_ends: true,
    };
    let bucket = WantedKey::Bucket(NumberTree::Column(NumberType::I64, 0), cut);
    let mut counts = Counts::new(vec![bucket]);
    let mut source = Source(5);
    // The first of a bucket is read, and the one that is not within one.
    for (first, unread) in [
        (0, 0),
        (100, 1),
        (300, 2),
        (950, 2),
        (1500, 3),
        (20, 4),
        (2500, 4),
        (2600, 5),
    ] {
        let times: Vec<_> = (0..100)
            .map(|row| Some((first + row).to_scalar()))
            .collect();
        let times = Column::numbers(NumberType::I64, &times, &mut source).without_bitmap();
        let mut lanes = TestLanes::of(vec![times]);
        lanes.zones = vec![Some(lanes.zone(0))];
        counts.add(&lanes, Selection::first(100));
        assert_eq!(counts.unread, unread, "from {first}");
    }
    assert_eq!(counts.found(), counts.expected);
}
