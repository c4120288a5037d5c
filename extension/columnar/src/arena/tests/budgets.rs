//! Budgets of relations are kept, but not at the cost of other relations or of pinned segments.

use super::*;
use crate::limits::{SEGMENT_ROWS, SMALL_SEGMENTS};

/// Bytes of a segment of full size of one column of 8 bytes, and some.
const SEGMENT_BYTES: u64 = SEGMENT_ROWS as u64 * 8 + (16 << 10);

/// Loads a segment of full size.
fn load(relation: &Relation<MutexLocks>, segment: u32) -> bool {
    let values: Vec<Value> = (0..SEGMENT_ROWS).map(|row| value(INT8, row)).collect();
    relation.extend_segment(
        segment,
        &[INT8],
        0,
        &[build(INT8, &values)],
        0,
        values.len(),
    )
}

fn resident(relation: &Relation<MutexLocks>) -> Vec<u32> {
    let first = SMALL_SEGMENTS;
    (first..first + 20)
        .filter(|&segment| relation.pin_segment(segment).is_some())
        .collect()
}

#[test]
fn the_coldest_segments_of_a_relation_leave_for_its_own() {
    with_arena(64 << 20, 8, |arena| {
        let (bounded, other) = (
            arena.open(key(1), 0).unwrap(),
            arena.open(key(2), 0).unwrap(),
        );
        bounded.set_budget(3 * SEGMENT_BYTES);
        for segment in SMALL_SEGMENTS..SMALL_SEGMENTS + 10 {
            assert!(load(&bounded, segment) && load(&other, segment));
            assert!(bounded.stats().bytes_used <= 3 * SEGMENT_BYTES);
        }
        assert_eq!(resident(&other).len(), 10);
        let kept = resident(&bounded);
        assert_eq!(kept.len(), 3);
        assert!(kept.contains(&(SMALL_SEGMENTS + 9)), "{kept:?}");
        assert_eq!(bounded.stats().segment_evictions, 7);
        assert_eq!(arena.stats().segment_evictions, 7);
        // A bound that is lowered holds at once; one that is gone holds no more.
        bounded.set_budget(SEGMENT_BYTES);
        assert_eq!(resident(&bounded).len(), 1);
        bounded.set_budget(0);
        for segment in SMALL_SEGMENTS..SMALL_SEGMENTS + 5 {
            load(&bounded, segment);
        }
        assert!(resident(&bounded).len() >= 5);
        drop((bounded, other));
        assert_all_comes_back(arena, &[key(1), key(2)]);
    });
}

#[test]
fn what_is_pinned_stays_and_no_more_is_given() {
    with_arena(64 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        relation.set_budget(2 * SEGMENT_BYTES);
        assert!(load(&relation, SMALL_SEGMENTS) && load(&relation, SMALL_SEGMENTS + 1));
        let pinned = [0, 1].map(|place| relation.pin_segment(SMALL_SEGMENTS + place).unwrap());
        assert!(!load(&relation, SMALL_SEGMENTS + 2));
        assert!(relation.stats().bytes_used <= 2 * SEGMENT_BYTES);
        relation.set_budget(SEGMENT_BYTES / 2);
        assert!(
            pinned
                .iter()
                .all(|pinned| pinned.rows_resident() == SEGMENT_ROWS)
        );
        drop(pinned);
        assert!(
            !load(&relation, SMALL_SEGMENTS + 2),
            "one alone is too much"
        );
        relation.set_budget(SEGMENT_BYTES);
        assert!(load(&relation, SMALL_SEGMENTS + 2));
        assert_eq!(resident(&relation), [SMALL_SEGMENTS + 2]);
    });
}

#[test]
fn segments_that_a_later_generation_keeps_count_there() {
    with_arena(64 << 20, 8, |arena| {
        let earlier = arena.open(key(1), 0).unwrap();
        assert!(load(&earlier, SMALL_SEGMENTS));
        let used = earlier.stats().bytes_used;
        assert!(used > 0 && used <= SEGMENT_BYTES);
        let later = arena.open(key(1), 1).unwrap();
        later.adopt_segments(&earlier, SMALL_SEGMENTS..SMALL_SEGMENTS + 1);
        assert_eq!(
            (earlier.stats().bytes_used, later.stats().bytes_used),
            (0, used)
        );
        arena.purge((key(1).space, key(1).database, key(1).file));
        drop((earlier, later));
        assert_all_comes_back(arena, &[key(1)]);
    });
}
