//! Zones of segments, as rows arrive in batches of any size.

use proptest::prelude::*;

use super::*;
use crate::limits::{SEGMENT_ROWS, SMALL_SEGMENTS};
use crate::test_support::{any_kind, cases};
use crate::zone_map::tests::sort;

/// Appends rows in batches of these sizes, over and over, up to the last, and checks the zones
/// after each.
fn append_in_batches(segment: u32, kinds: &[LaneKind], values: &[Vec<Value>], sizes: &[usize]) {
    with_arena(16 << 20, 4, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let rows = values[0].len();
        let columns = build_all(kinds, values, 0..rows);
        let mut from = 0;
        for size in sizes.iter().cycle() {
            let count = (*size).min(rows - from);
            assert!(relation.extend_segment(segment, kinds, from as u32, &columns, from, count));
            from += count;
            let pinned = relation.pin_segment(segment).unwrap();
            for (index, (&kind, values)) in kinds.iter().zip(values).enumerate() {
                assert_zones(&pinned, index, kind, &values[..from]);
                assert!(pinned.zone(index, from.div_ceil(VECTOR_ROWS)).is_none());
            }
            assert!(pinned.zone(kinds.len(), 0).is_none());
            if from == rows {
                break;
            }
        }
        drop(relation);
        assert_all_comes_back(arena, &[key(1)]);
    });
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn zones_follow_appends(
        kinds in prop::collection::vec(any_kind(), 1..4),
        sizes in prop::collection::vec(1..VECTOR_ROWS, 1..6),
        variety in prop_oneof![Just(5_u32), Just(9_000)],
        (nulls, sorted) in any::<(bool, bool)>(),
        mut seed in any::<u64>(),
    ) {
        let rows = if cfg!(miri) { 100 } else { 2 * VECTOR_ROWS + 900 };
        let values = kinds
            .iter()
            .map(|&kind| {
                let mut values = generate(kind, rows, variety, nulls, &mut seed);
                if sorted {
                    sort(kind, &mut values);
                }
                values
            })
            .collect::<Vec<_>>();
        append_in_batches(SMALL_SEGMENTS, &kinds, &values, &sizes);
    }
}

#[test]
fn a_zone_is_exact_once_its_vector_is_full() {
    with_arena(1 << 20, 4, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let values = generate(INT8, VECTOR_ROWS, 1_000, false, &mut 7);
        let column = [build(INT8, &values)];
        let last = VECTOR_ROWS - 1;
        assert!(relation.extend_segment(0, &[INT8], 0, &column, 0, last));
        let segment = relation.pin_segment(0).unwrap();
        let partial = segment.zone(0, 0).unwrap();
        assert!(!partial.exact);
        assert_eq!(partial.non_null as usize, last);
        assert!(relation.extend_segment(0, &[INT8], last as u32, &column, last, 1));
        assert_zone(&segment.zone(0, 0).unwrap(), &naive(INT8, &values));
        assert!(segment.zone(0, 1).is_none() && segment.zone(1, 0).is_none());
    });
}

#[test]
fn rows_of_a_gap_count_as_null() {
    with_arena(1 << 20, 4, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let kinds = [INT8, LaneKind::Bool, TEXT];
        let values = kinds.map(|kind| vec![value(kind, 41); 10]);
        let columns = build_all(&kinds, &values, 0..10);
        assert!(relation.extend_segment(0, &kinds, 0, &columns, 0, 10));
        let segment = relation.pin_segment(0).unwrap();
        assert!(segment.zone(0, 0).unwrap().sorted);
        let from = VECTOR_ROWS as u32 - 10;
        assert!(relation.extend_segment_past_gap(0, &kinds, from, &columns, 0, 10));
        for (column, &kind) in kinds.iter().enumerate() {
            let mut all = values[column].clone();
            all.resize(VECTOR_ROWS - 10, None);
            all.extend_from_slice(&values[column]);
            let zone = segment.zone(column, 0).unwrap();
            assert_zone(&zone, &naive(kind, &all));
            assert_eq!((zone.non_null, zone.sorted), (20, false));
        }
    });
}

#[test]
fn zones_take_few_bytes() {
    with_arena(8 << 20, 4, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let columns = [build(INT8, &[value(INT8, 1)])];
        let used = || arena.stats().bytes_used;
        let before = used();
        assert!(relation.extend_segment(0, &[INT8], 0, &columns, 0, 1));
        let small = used() - before;
        // The table's leaf and tops are there now.
        assert!(relation.extend_segment(1, &[INT8], 0, &columns, 0, 1));
        assert!(used() - before - small <= 8 * VECTOR_ROWS as u64 + 512);
        let before = used();
        assert!(relation.extend_segment(SMALL_SEGMENTS, &[INT8], 0, &columns, 0, 1));
        let vectors = u64::from(SEGMENT_ROWS) / VECTOR_ROWS as u64;
        let lane = 8 * u64::from(SEGMENT_ROWS);
        assert!(used() - before <= lane + vectors * 64 + 512);
    });
}
