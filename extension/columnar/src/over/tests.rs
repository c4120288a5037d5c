//! Window functions against a naive twin, which finds each frame by looking at all rows.

use proptest::prelude::*;

use super::arrange::{Arrangement, SortKey};
use super::distance::{Distance, Measure};
use super::frames::{Bound, Frame};
use super::numbers::NumberColumn;
use super::*;
use crate::test_support::cases;
use crate::vector::EvaluationError;
use crate::vector::number::{Number, Scalar};

/// A row: its partition, two order keys and a value.
type Row = (u32, Option<u64>, Option<u64>, Option<i64>);

const PARTITIONS: usize = 3;

fn column(values: impl Iterator<Item = Option<u64>>) -> NumberColumn {
    let mut column = NumberColumn::default();
    values.for_each(|value| column.push(value.map(Scalar)));
    column
}

fn keys(rows: &[Row], nulls_first: bool) -> Vec<SortKey> {
    let first = column(rows.iter().map(|row| row.1));
    let second = column(rows.iter().map(|row| row.2));
    let key = |keys| SortKey {
        keys,
        nulls_first,
        is_descending: false,
    };
    vec![key(first), key(second)]
}

/// The rows of each partition in order, as numbers of rows.
fn naive_order(rows: &[Row], ranks: &[u32], nulls_first: bool) -> Vec<Vec<usize>> {
    let key = |value: Option<u64>| (value.is_none() != nulls_first, value);
    let mut partitions = vec![Vec::new(); PARTITIONS];
    for (row, (partition, ..)) in rows.iter().enumerate() {
        partitions[ranks[*partition as usize] as usize].push(row);
    }
    for partition in &mut partitions {
        partition.sort_by_key(|row| (key(rows[*row].1), key(rows[*row].2)));
    }
    partitions
}

/// The frame of a position in a partition, as positions.
fn naive_frame(rows: &[Row], partition: &[usize], at: usize, call: &Call) -> Vec<usize> {
    let key = |position: usize| {
        let (_, first, second, _) = rows[partition[position]];
        [first, second][..call.order_keys].to_vec()
    };
    let is_peer = |position: &usize| key(*position) == key(at);
    let all = 0..partition.len();
    let peers: Vec<usize> = all.clone().filter(is_peer).collect();
    let first_key = |position: usize| rows[partition[position]].1.map(i128::from);
    let known: Vec<usize> = all.clone().filter(|at| first_key(*at).is_some()).collect();
    let bound = |distance: Distance| first_key(at).map(|key| key + i128::from(distance.by));
    let from = match call.frame.start {
        Bound::Unbounded => 0,
        Bound::Peers => peers[0] as i64,
        Bound::Row(offset) => at as i64 + offset,
        Bound::Distance(distance) => match bound(distance) {
            None => peers[0] as i64,
            Some(bound) => {
                let mut before = known
                    .iter()
                    .filter(|known| first_key(**known) < Some(bound));
                before
                    .next_back()
                    .map_or(known[0] as i64, |last| *last as i64 + 1)
            }
        },
    };
    let to = match call.frame.end {
        Bound::Unbounded => partition.len() as i64,
        Bound::Peers => peers[peers.len() - 1] as i64,
        Bound::Row(offset) => at as i64 + offset,
        Bound::Distance(distance) => match bound(distance) {
            None => peers[peers.len() - 1] as i64,
            Some(bound) => {
                let mut within = known
                    .iter()
                    .filter(|known| first_key(**known) <= Some(bound));
                within
                    .next_back()
                    .map_or(known[0] as i64 - 1, |last| *last as i64)
            }
        },
    };
    all.filter(|position| (from..=to).contains(&(*position as i64)))
        .collect()
}

/// A result, comparable: numbers by their bits.
#[derive(Debug, PartialEq)]
enum Result {
    Number(Option<u64>),
    Row(Option<usize>),
    Sum(i128, u64),
}

fn float(value: i64) -> f64 {
    // Sums of such numbers depend on the order in which they are added.
    match value % 17 {
        0 => -0.0,
        1 => 0.0,
        2 => f64::NAN,
        3 => f64::INFINITY,
        _ => value as f64 * 0.1 + 1e9 / (value % 5 + 1) as f64,
    }
}

/// The result of an aggregate over the values of a frame, in order.
fn naive_aggregate(function: Function, values: &[i64], is_float: bool) -> Result {
    let floats: Vec<f64> = values.iter().map(|value| float(*value)).collect();
    let sum: i128 = values.iter().map(|value| i128::from(*value)).sum();
    let bits = |value: f64| value.to_bits();
    let best = |wanted: std::cmp::Ordering| {
        let of_floats = floats.iter().copied().reduce(|best, value| {
            if best.order(value) == wanted {
                best
            } else {
                value
            }
        });
        let of_integers = values.iter().copied();
        let of_integers = of_integers.reduce(|best, value| match best.cmp(&value) == wanted {
            true => best,
            false => value,
        });
        match is_float {
            true => of_floats.map(bits),
            false => of_integers.map(|value| value as u64),
        }
    };
    Result::Number(match (function, is_float) {
        (Function::Count, _) => Some(values.len() as u64),
        (Function::Sum | Function::Average, false) => {
            return Result::Sum(sum, values.len() as u64);
        }
        (Function::Sum, true) => floats.iter().copied().reduce(|a, b| a + b).map(bits),
        (Function::Average, true) => {
            let sum = floats.iter().fold(0.0, |a, b| a + b);
            (!floats.is_empty()).then(|| bits(sum / floats.len() as f64))
        }
        (Function::Minimum, _) => best(std::cmp::Ordering::Less),
        _ => best(std::cmp::Ordering::Greater),
    })
}

/// The result of any function for a position of a partition.
fn naive(rows: &[Row], partition: &[usize], at: usize, call: &Call, is_float: bool) -> Result {
    let frame = naive_frame(rows, partition, at, call);
    let whole = Call {
        frame: Frame {
            start: Bound::Peers,
            end: Bound::Peers,
        },
        ..*call
    };
    let peers = naive_frame(rows, partition, at, &whole);
    let (first, end, count) = (peers[0], peers[peers.len() - 1] + 1, partition.len());
    let number = |value: u64| Result::Number(Some(value));
    let row = |position: Option<&usize>| Result::Row(position.copied());
    match call.function {
        Function::RowNumber => number(at as u64 + 1),
        Function::Rank => number(first as u64 + 1),
        Function::DenseRank => {
            let starts = (0..=first).filter(|position| {
                let peers = naive_frame(rows, partition, *position, &whole);
                peers[0] == *position
            });
            number(starts.count() as u64)
        }
        Function::PercentRank if count == 1 => number(0.0_f64.to_bits()),
        Function::PercentRank => number((first as f64 / (count - 1) as f64).to_bits()),
        Function::CumeDist => number((end as f64 / count as f64).to_bits()),
        Function::Ntile(buckets) => {
            let (buckets, at) = (buckets as usize, at + 1);
            let (least, larger) = (count / buckets, count % buckets);
            let of = |bucket: usize| bucket * least + bucket.min(larger);
            let bucket = (1..=buckets).find(|bucket| at <= of(*bucket));
            number(bucket.expect("a bucket for each row") as u64)
        }
        Function::Offset(offset) => {
            let other = usize::try_from(at as i64 + offset).ok();
            row(other.and_then(|other| partition.get(other)))
        }
        Function::First => row(frame.first().map(|position| &partition[*position])),
        Function::Last => row(frame.last().map(|position| &partition[*position])),
        Function::Nth(nth) => {
            let position = frame.get(nth as usize - 1);
            row(position.map(|position| &partition[*position]))
        }
        function => {
            let values = frame.iter().filter_map(|place| rows[partition[*place]].3);
            naive_aggregate(function, &values.collect::<Vec<_>>(), is_float)
        }
    }
}

fn result(order: &Arrangement, output: &Output, position: usize) -> Result {
    match output {
        Output::Numbers(numbers) => Result::Number(numbers.get(position).map(|value| value.0)),
        Output::Positions(positions) => {
            let found = positions[position];
            Result::Row((found != NO_ROW).then(|| order.rows[found as usize] as usize))
        }
        Output::Sums(sums) => Result::Sum(sums[position].0, sums[position].1),
    }
}

fn any_row() -> impl Strategy<Value = Row> {
    let key = || prop::option::weighted(0.8, 0..4_u64);
    let value = prop::option::weighted(0.8, 0..1000_i64);
    (0..PARTITIONS as u32, key(), key(), value)
}

fn any_function() -> impl Strategy<Value = Function> {
    use Function::*;
    prop_oneof![
        prop::sample::select(vec![
            RowNumber,
            Rank,
            DenseRank,
            PercentRank,
            CumeDist,
            First,
            Last,
            Count,
            Sum,
            Average,
            Minimum,
            Maximum,
        ]),
        (1..6_i64).prop_map(Ntile),
        (-4..4_i64).prop_map(Offset),
        (1..4_i64).prop_map(Nth),
    ]
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let bound = || {
        prop_oneof![
            Just(Bound::Unbounded),
            Just(Bound::Peers),
            (-4..5_i64).prop_map(Bound::Row),
            Just(Bound::Row(i64::from(i32::MAX))),
            Just(Bound::Row(-i64::from(i32::MAX))),
            prop_oneof![-3..4_i64, Just(i64::MAX), Just(-i64::MAX)].prop_map(|by| {
                Bound::Distance(Distance {
                    by,
                    of: Measure::Integers,
                })
            }),
        ]
    };
    (bound(), bound()).prop_map(|(start, end)| Frame { start, end })
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn each_function_is_that_of_the_naive_twin(
        rows in prop::collection::vec(any_row(), 0..40),
        (function, frame, order_keys) in (any_function(), any_frame(), 0..3_usize)
            .prop_map(|(function, frame, order_keys)| {
                // A distance needs one key.
                let has_distance = |bound| matches!(bound, Bound::Distance(_));
                match has_distance(frame.start) || has_distance(frame.end) {
                    true => (function, frame, 1),
                    false => (function, frame, order_keys),
                }
            }),
        nulls_first: bool,
        is_float: bool,
        ranks in Just(vec![0_u32, 1, 2]).prop_shuffle(),
    ) {
        let keys = keys(&rows, nulls_first);
        let partitions: Vec<u32> = rows.iter().map(|row| row.0).collect();
        let order = Arrangement::new(&partitions, &ranks, &keys);
        let expected = naive_order(&rows, &ranks, nulls_first);
        let all: Vec<u32> = expected.iter().flatten().map(|row| *row as u32).collect();
        prop_assert_eq!(&order.rows, &all);

        let value = |value: i64| match is_float {
            true => float(value).to_bits(),
            false => value as u64,
        };
        let argument = column(rows.iter().map(|row| row.3.map(value)));
        let number = if is_float { NumberType::F64 } else { NumberType::I64 };
        let call = Call { function, frame, order_keys };
        let output = compute(&call, &order, &keys, Some((&argument, number))).expect("in range");
        let mut position = 0;
        for partition in &expected {
            for at in 0..partition.len() {
                let wanted = naive(&rows, partition, at, &call, is_float);
                prop_assert_eq!(result(&order, &output, position), wanted, "position {}", position);
                position += 1;
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn the_first_rows_are_those_of_the_whole_arrangement(
        rows in prop::collection::vec(any_row(), 0..60),
        (first, order_keys) in (0..12_usize, 0..3_usize),
        (nulls_first, has_nulls) in any::<(bool, bool)>(),
        ranks in Just(vec![0_u32, 1, 2]).prop_shuffle(),
    ) {
        let rows: Vec<Row> = rows
            .into_iter()
            .map(|(partition, a, b, value)| match has_nulls {
                true => (partition, a, b, value),
                false => (partition, a.or(Some(7)), b.or(Some(0)), value),
            })
            .collect();
        let keys = &keys(&rows, nulls_first)[..order_keys];
        let partitions: Vec<u32> = rows.iter().map(|row| row.0).collect();
        let whole = Arrangement::new(&partitions, &ranks, keys);
        let found = Arrangement::first_of_each(&partitions, &ranks, keys, first);
        let wanted: Vec<&[u32]> = whole
            .partitions()
            .map(|positions| &whole.rows[positions.start..positions.end.min(positions.start + first)])
            .collect();
        let kept: Vec<&[u32]> = found.partitions().map(|rows| &found.rows[rows]).collect();
        prop_assert_eq!(kept, wanted);
    }
}

/// All rows of one partition, in the order in which they come.
fn one_partition(rows: usize) -> Arrangement {
    Arrangement::new(&vec![0; rows], &[0], &[])
}

fn over(function: Function, start: Bound, values: &[f64]) -> Evaluation<Vec<Option<f64>>> {
    let argument = column(values.iter().map(|value| Some(value.to_bits())));
    let call = Call {
        function,
        frame: Frame {
            start,
            end: Bound::Row(0),
        },
        order_keys: 0,
    };
    let argument = Some((&argument, NumberType::F64));
    let output = compute(&call, &one_partition(values.len()), &[], argument)?;
    let Output::Numbers(numbers) = output else {
        panic!("numbers");
    };
    let number = |row| numbers.get(row).map(f64::of_scalar);
    Ok((0..values.len()).map(number).collect())
}

#[test]
fn sums_overflow_as_in_postgresql() {
    use crate::vector::EvaluationError::FloatOverflow;
    let large = [1e308, 1e308];
    let whole = Bound::Unbounded;
    assert_eq!(over(Function::Sum, whole, &large), Err(FloatOverflow));
    assert_eq!(over(Function::Average, whole, &large), Err(FloatOverflow));
    let one_by_one = over(Function::Average, Bound::Row(0), &large);
    assert_eq!(one_by_one, Ok(vec![Some(1e308), Some(1e308)]));
    // The squares overflow, although the sum does not.
    let opposite = [1e200, -1e200];
    let sums = over(Function::Sum, whole, &opposite);
    assert_eq!(sums, Ok(vec![Some(1e200), Some(0.0)]));
    assert_eq!(
        over(Function::Average, whole, &opposite),
        Err(FloatOverflow)
    );
    let infinite = over(Function::Average, whole, &[f64::INFINITY, 1e200, 1.0]);
    assert_eq!(infinite, Ok(vec![Some(f64::INFINITY); 3]));
}

#[test]
fn removing_a_float_leaves_no_trace() {
    let sums = over(Function::Sum, Bound::Row(-1), &[1e20, 1.0, 1.0, 1.0]);
    assert_eq!(sums, Ok(vec![Some(1e20), Some(1e20), Some(2.0), Some(2.0)]));
}

#[test]
fn long_partitions_can_be_cancelled() {
    let order = one_partition(100_000);
    let call = Call {
        function: Function::Sum,
        frame: Frame {
            start: Bound::Row(-50),
            end: Bound::Row(0),
        },
        order_keys: 0,
    };
    let argument = column((0..100_000).map(|value: u32| Some(f64::from(value).to_bits())));
    let looks = crate::interrupt::looks_of(|| {
        let argument = Some((&argument, NumberType::F64));
        compute(&call, &order, &[], argument).expect("in range");
    });
    // Sixteen sums are added side by side in a step.
    assert!(looks > 50, "{looks} looks");
}

#[test]
fn distances_of_times_end_where_times_do() {
    let hour = 3_600_000_000;
    let moved = |values: &[i64], by: i64, of: Measure, is_descending: bool| {
        let mut key = SortKey::new(false, is_descending);
        for value in values {
            key.keys.push_value(key.key(*value));
        }
        let order = Arrangement::new(&vec![0; values.len()], &[0], std::slice::from_ref(&key));
        let call = Call {
            function: Function::Count,
            frame: Frame {
                start: Bound::Distance(Distance { by, of }),
                end: Bound::Row(0),
            },
            order_keys: 1,
        };
        let Output::Numbers(counts) = compute(&call, &order, &[key], None)? else {
            panic!("counts");
        };
        let counts = (0..values.len()).filter_map(|row| counts.get(row));
        Ok(counts.map(|count| count.0).collect::<Vec<_>>())
    };
    let times = [i64::MIN, -hour, 0, 1, hour, i64::MAX];
    assert_eq!(
        moved(&times, -hour, Measure::Timestamps, false),
        Ok(vec![1, 1, 2, 2, 3, 1])
    );
    let falling = [i64::MAX, hour, 1, 0, -hour, i64::MIN];
    assert_eq!(
        moved(&falling, -hour, Measure::Timestamps, true),
        Ok(vec![1, 1, 2, 3, 2, 1])
    );
    let first = -211_813_488_000_000_000;
    let failure = Err(EvaluationError::TimestampOutOfRange);
    assert_eq!(
        moved(&[first, first + hour], 0, Measure::Timestamps, false),
        Ok(vec![1, 1])
    );
    assert_eq!(
        moved(&[first, first + hour], -1, Measure::Timestamps, false),
        failure
    );
    assert_eq!(moved(&[-2_451_545], -1, Measure::Dates, false), failure);
    assert_eq!(
        moved(&[i32::MIN.into(), 5], -7, Measure::Dates, false),
        Ok(vec![1, 1])
    );
    assert_eq!(
        moved(&[i64::MIN, i64::MIN + 1], -5, Measure::Integers, false),
        Ok(vec![1, 2])
    );
}
