//! Behaviours of segments and relations, one at a time.

use super::*;
use crate::lane::LaneData;
use crate::limits::{SEGMENT_ROWS, SMALL_SEGMENTS};

fn numbers(range: std::ops::Range<u32>) -> Vec<Value> {
    range.map(|number| value(INT8, number)).collect()
}

fn texts(range: std::ops::Range<u32>) -> Vec<Value> {
    range.map(|number| value(TEXT, number)).collect()
}

/// A segment of so many rows of one column.
fn load(relation: &Relation<MutexLocks>, segment: u32, kind: LaneKind, values: &[Value]) -> bool {
    relation.extend_segment(segment, &[kind], 0, &[build(kind, values)], 0, values.len())
}

#[test]
fn only_the_next_rows_are_taken() {
    with_arena(1 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let columns = [build(INT8, &numbers(0..100))];
        let extend =
            |from, first, rows| relation.extend_segment(0, &[INT8], from, &columns, first, rows);
        assert!(!extend(5, 5, 5), "the segment does not exist");
        assert!(extend(0, 0, 10));
        assert!(!extend(0, 0, 10), "already there");
        assert!(!extend(11, 11, 5), "a gap");
        assert!(!extend(10, 95, 6), "the columns end");
        assert!(!extend(10, usize::MAX, 2), "the columns end");
        assert!(extend(10, 10, 20));
        let segment = relation.pin_segment(0).unwrap();
        assert_segment(&segment, 0, &[INT8], &[numbers(0..30)], 30);
        assert!(relation.pin_segment(1).is_none());
        assert!(!relation.extend_segment(u32::MAX, &[INT8], 0, &columns, 0, 1));
        assert!(!relation.extend_segment(1, &[TEXT], 0, &columns, 0, 1));
        assert!(!relation.extend_segment(1, &[], 0, &columns, 0, 1));
    });
}

#[test]
fn a_segment_takes_no_more_rows_than_it_has() {
    with_arena(1 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let values = numbers(0..VECTOR_ROWS as u32 + 1);
        assert!(!load(&relation, 0, INT8, &values));
        assert!(load(&relation, 0, INT8, &values[1..]));
        assert!(!relation.extend_segment(
            0,
            &[INT8],
            VECTOR_ROWS as u32,
            &[build(INT8, &values)],
            0,
            1
        ));
    });
}

#[test]
fn a_gap_may_be_skipped_on_request() {
    with_arena(1 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let kinds = [INT8, LaneKind::Bool, TEXT, NUMERIC];
        let values = kinds.map(|kind| {
            (0..70)
                .map(|number| value(kind, number))
                .collect::<Vec<_>>()
        });
        let columns = build_all(&kinds, &values, 0..70);
        let extend = |from| relation.extend_segment_past_gap(0, &kinds, from, &columns, 0, 70);
        assert!(extend(100));
        assert!(extend(301));
        assert!(!extend(370), "the past stays");
        let segment = relation.pin_segment(0).unwrap();
        assert_eq!(segment.rows_resident(), 371);
        for (column, values) in values.iter().enumerate() {
            let lane = segment.lane(column);
            // SAFETY: the segment is pinned and has 371 rows.
            unsafe {
                assert_lane(lane, kinds[column], 100, values);
                assert_lane(lane, kinds[column], 301, values);
                // Reading the gap stays within bounds.
                assert!(!lane.bool(0) && !lane.bool(300));
                match lane.data {
                    LaneData::Codes { codes, .. } => assert_eq!((*codes, *codes.add(300)), (0, 0)),
                    LaneData::Offsets { slots, .. } => assert_eq!(*slots.add(300), 0),
                    _ => {}
                }
            }
        }
    });
}

#[test]
fn null_marks_come_with_the_first_null() {
    with_arena(1 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let values = [numbers(0..70), vec![None], numbers(0..5)].concat();
        let column = [build(INT8, &values)];
        let extend =
            |from, rows| relation.extend_segment(0, &[INT8], from, &column, from as usize, rows);
        assert!(extend(0, 70));
        let segment = relation.pin_segment(0).unwrap();
        assert!(segment.lane(0).validity.is_null());
        assert!(extend(70, 6));
        assert!(!segment.lane(0).validity.is_null());
        assert_segment(&segment, 0, &[INT8], &[values], 76);
    });
}

#[test]
fn a_dictionary_grows_under_its_readers() {
    with_arena(1 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let values = [texts(0..200), texts(0..200), texts(0..400)].concat();
        let column = [build(TEXT, &values)];
        assert!(relation.extend_segment(0, &[TEXT], 0, &column, 0, 10));
        let segment = relation.pin_segment(0).unwrap();
        let early = segment.lane(0);
        assert!(matches!(early.data, LaneData::Codes { .. }));
        assert!(relation.extend_segment(0, &[TEXT], 10, &column, 10, values.len() - 10));
        // SAFETY: the segment is pinned and had 10 rows when the lane was created.
        unsafe { assert_lane(early, TEXT, 0, &values[..10]) };
        let LaneData::Codes { codes, .. } = segment.lane(0).data else {
            panic!("not coded");
        };
        // SAFETY: as above, for all rows; equal items have equal codes.
        unsafe { assert_eq!(*codes, *codes.add(200)) };
        assert_segment(
            &segment,
            0,
            &[TEXT],
            std::slice::from_ref(&values),
            values.len(),
        );
    });
}

#[test]
fn a_segment_is_coded_only_where_a_dictionary_pays() {
    with_arena(4 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let is_coded = |segment| {
            let pinned = relation.pin_segment(segment).unwrap();
            matches!(pinned.lane(0).data, LaneData::Codes { .. })
        };
        // Small runs are coded each, though together they do not repeat.
        for run in 0..10_u32 {
            let values = texts(run * 200..run * 200 + 200);
            let column = [build(TEXT, &values)];
            assert!(relation.extend_segment(0, &[TEXT], run * 200, &column, 0, 200));
        }
        assert!(is_coded(0));
        assert!(load(&relation, 1, TEXT, &texts(0..100)));
        assert!(!is_coded(1), "the one before did not pay");
        assert!(load(&relation, 2, TEXT, &texts(0..1)));
        assert!(!is_coded(2), "a row is no good reason to return");
        let repeated = (0..2_000).map(|n| value(TEXT, n % 50)).collect::<Vec<_>>();
        assert!(load(&relation, 3, TEXT, &repeated));
        assert!(is_coded(3));
        assert!(load(&relation, 4, TEXT, &texts(0..2_000)));
        assert!(!is_coded(4), "the rows are plain themselves");
        assert!(load(&relation, 15, TEXT, &texts(0..2_000)));
        assert!(load(&relation, 16, TEXT, &texts(0..1)));
        assert!(is_coded(16), "a fresh trial");
        // A coded segment takes plain rows, and a plain one coded rows.
        let pinned = relation.pin_segment(3).unwrap();
        assert!(relation.extend_segment(3, &[TEXT], 2_000, &[build(TEXT, &texts(0..300))], 0, 48));
        let all = [repeated, texts(0..48)].concat();
        // SAFETY: the segment is pinned and has so many rows.
        unsafe { assert_lane(pinned.lane(0), TEXT, 0, &all) };
        assert!(relation.extend_segment(4, &[TEXT], 2_000, &[build(TEXT, &texts(0..9))], 0, 9));
        let pinned = relation.pin_segment(4).unwrap();
        let all = [texts(0..2_000), texts(0..9)].concat();
        // SAFETY: as above.
        unsafe { assert_lane(pinned.lane(0), TEXT, 0, &all) };
    });
}

#[test]
fn an_item_that_repeats_is_stored_once() {
    with_arena(1 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let mut column = Column::new(NUMERIC);
        column.push_repeated(Some(&[7; 100_000]), 2_000);
        assert!(relation.extend_segment(0, &[NUMERIC], 0, &[column], 0, 2_000));
        assert!(arena.stats().bytes_used < 200_000);
    });
}

#[test]
fn other_columns_retire_a_segment_and_its_readers_keep_it() {
    with_arena(1 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let values = [numbers(0..50), texts(0..50)];
        assert!(load(&relation, 0, INT8, &values[0]));
        let old = relation.pin_segment(0).unwrap();
        let kinds = [INT8, TEXT];
        let columns = build_all(&kinds, &values, 0..50);
        assert!(!relation.extend_segment(0, &kinds, 50, &columns, 0, 0));
        assert!(relation.pin_segment(0).is_none());
        assert!(relation.extend_segment(0, &kinds, 0, &columns, 0, 50));
        let new = relation.pin_segment(0).unwrap();
        // Whatever could be reclaimed is, and used for something else.
        arena.purge((9, 9, 9));
        for segment in 1..8 {
            assert!(load(&relation, segment, INT8, &numbers(1_000..2_000)));
        }
        assert_segment(&old, 0, &[INT8], &values[..1], 50);
        assert_segment(&new, 0, &kinds, &values, 50);
        assert_eq!(arena.stats().segments, 8);
        drop((old, new, relation));
        assert_all_comes_back(arena, &[key(1)]);
    });
}

#[test]
fn what_is_pinned_stays_and_the_coldest_goes() {
    with_arena(256 << 10, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let values = numbers(0..VECTOR_ROWS as u32);
        assert!(load(&relation, 0, INT8, &values));
        let pinned = relation.pin_segment(0).unwrap();
        for segment in 1..SMALL_SEGMENTS {
            // Segment 3 is looked at all the time. (The oldest may go while all are equally warm.)
            drop(relation.pin_segment(3));
            assert!(load(&relation, segment, INT8, &values));
        }
        assert!(arena.stats().segment_evictions > 10);
        assert!(relation.pin_segment(3).is_some(), "warm");
        assert!(relation.pin_segment(2).is_none(), "cold");
        assert_segment(&pinned, 0, &[INT8], &[values], VECTOR_ROWS);
    });
}

#[test]
fn an_arena_full_of_pins_refuses_and_recovers() {
    with_arena(256 << 10, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let values = numbers(0..VECTOR_ROWS as u32);
        let mut pins = Vec::new();
        let mut segment = 0;
        while load(&relation, segment, INT8, &values) {
            pins.push(relation.pin_segment(segment).unwrap());
            segment += 1;
        }
        assert!(segment > 5 && arena.stats().refusals > 0);
        let other = arena.open(key(2), 0).unwrap();
        assert!(!load(&other, 0, INT8, &values));
        assert!(other.pin_segment(0).is_none());
        for (number, pin) in (0..).zip(&pins) {
            // All segments were given the same rows.
            // SAFETY: the segment is pinned and full.
            unsafe { assert_lane(pin.lane(0), INT8, 0, &values) };
            assert_eq!(pin.rows_resident(), VECTOR_ROWS as u32, "segment {number}");
        }
        pins.truncate(2);
        assert!(load(&other, 0, INT8, &values));
        drop((pins, relation, other));
        assert_all_comes_back(arena, &[key(1), key(2)]);
    });
}

#[test]
fn refused_attempts_leak_nothing() {
    with_arena(256 << 10, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let kinds = [NUMERIC, TEXT, NUMERIC];
        let small = kinds.map(|kind| build(kind, &[value(kind, 1)]));
        assert!(relation.extend_segment(0, &kinds, 0, &small, 0, 1));
        let pin = relation.pin_segment(0).unwrap();
        let mut huge = Column::new(NUMERIC);
        huge.push_item(&vec![1; 1 << 20]);
        let columns = [
            build(NUMERIC, &[value(NUMERIC, 2)]),
            build(TEXT, &[value(TEXT, 2)]),
            huge,
        ];
        let extend = || relation.extend_segment(0, &kinds, 1, &columns, 0, 1);
        assert!(!extend());
        let used = arena.stats().bytes_used;
        for _ in 0..100 {
            assert!(!extend());
        }
        assert_eq!(arena.stats().bytes_used, used);
        assert_eq!(pin.rows_resident(), 1);
    });
}

#[test]
fn a_segment_larger_than_the_arena_is_refused() {
    with_arena(256 << 10, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        assert!(!load(&relation, SMALL_SEGMENTS, INT8, &numbers(0..10)));
        assert!(relation.pin_segment(SMALL_SEGMENTS).is_none());
        assert_eq!(arena.stats().segments, 0);
        assert!(load(&relation, 0, INT8, &numbers(0..10)));
    });
}

#[test]
fn a_full_segment_of_full_size_is_read_back() {
    let rows = if cfg!(miri) { 100 } else { SEGMENT_ROWS };
    with_arena(8 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let values = (0..rows)
            .map(|n| value(TEXT, n % 1_000))
            .collect::<Vec<_>>();
        let segment = SMALL_SEGMENTS + 3;
        assert!(load(&relation, segment, TEXT, &values));
        let pinned = relation.pin_segment(segment).unwrap();
        // SAFETY: the segment is pinned and has so many rows.
        unsafe { assert_lane(pinned.lane(0), TEXT, 0, &values) };
    });
}

#[test]
fn a_generation_replaces_another_and_its_users_keep_it() {
    with_arena(1 << 20, 8, |arena| {
        let old = arena.open(key(1), 1).unwrap();
        let run = RunEntry {
            rows: 10,
            ..RunEntry::default()
        };
        assert!(old.publish(0, &[run], Position { block: 1, index: 1 }));
        assert!(load(&old, 0, INT8, &numbers(0..10)));
        assert_eq!(arena.open(key(1), 1).unwrap().runs(), 1);
        let new = arena.open(key(1), 2).unwrap();
        assert_eq!((new.runs(), new.position()), (0, Position::default()));
        assert!(new.pin_segment(0).is_none());
        let segment = old.pin_segment(0).unwrap();
        assert_segment(&segment, 0, &[INT8], &[numbers(0..10)], 10);
        assert_eq!(old.runs(), 1);
        assert!(new.advance_generation(2, 3));
        assert!(!new.advance_generation(2, 4));
        assert!(new.publish(0, &[], Position { block: 9, index: 0 }));
        assert_eq!(arena.open(key(1), 3).unwrap().position().block, 9);
        drop((old, new, segment));
        let again = arena.open(key(1), 1).unwrap();
        assert_eq!(again.runs(), 0, "a retired generation does not return");
        drop(again);
        assert_all_comes_back(arena, &[key(1)]);
    });
}

#[test]
fn a_generation_takes_over_segments_that_others_have_pinned() {
    with_arena(1 << 20, 8, |arena| {
        let old = arena.open(key(1), 1).unwrap();
        for segment in 0..3 {
            assert!(load(&old, segment, INT8, &numbers(0..10)));
        }
        let held = old.pin_segment(0).unwrap();
        let new = arena.open(key(1), 2).unwrap();
        assert!(load(&new, 2, INT8, &numbers(5..7)));
        // Segment 1 has changed, and segment 2 is there already.
        new.adopt_segments(&old, [0, 2, 99].into_iter());
        assert!(old.pin_segment(0).is_none() && new.pin_segment(1).is_none());
        assert_segment(
            &old.pin_segment(1).unwrap(),
            0,
            &[INT8],
            &[numbers(0..10)],
            10,
        );
        assert_segment(
            &new.pin_segment(0).unwrap(),
            0,
            &[INT8],
            &[numbers(0..10)],
            10,
        );
        assert_segment(
            &new.pin_segment(2).unwrap(),
            0,
            &[INT8],
            &[numbers(5..7)],
            2,
        );
        // It grows where it is now, and goes neither by eviction nor with its relation while it is
        // held.
        assert!(new.extend_segment(0, &[INT8], 10, &[build(INT8, &numbers(10..12))], 0, 2));
        drop((old, new));
        arena.purge((key(1).space, key(1).database, key(1).file));
        fill_up(arena, key(2));
        assert_segment(&held, 0, &[INT8], &[numbers(0..12)], 12);
        drop(held);
        assert_all_comes_back(arena, &[key(1), key(2)]);
    });
}

/// Loads segments until others are evicted for them.
fn fill_up(arena: &TestArena, key: RelationKey) {
    let relation = arena.open(key, 1).unwrap();
    let before = arena.stats().segment_evictions;
    let mut segment = 0;
    while arena.stats().segment_evictions == before {
        assert!(load(&relation, segment, INT8, &numbers(0..2_000)));
        segment += 1;
    }
}

#[test]
fn what_moved_while_pinned_is_not_evicted() {
    with_arena(1 << 20, 8, |arena| {
        let old = arena.open(key(1), 1).unwrap();
        assert!(load(&old, 0, INT8, &numbers(0..10)));
        let held = old.pin_segment(0).unwrap();
        let new = arena.open(key(1), 2).unwrap();
        new.adopt_segments(&old, std::iter::once(0));
        fill_up(arena, key(2));
        fill_up(arena, key(3));
        assert_segment(&held, 0, &[INT8], &[numbers(0..10)], 10);
        assert!(new.pin_segment(0).is_some());
        drop((held, old, new));
        assert_all_comes_back(arena, &[key(1), key(2), key(3)]);
    });
}

#[test]
fn each_shape_of_a_file_is_a_relation_of_its_own() {
    with_arena(1 << 20, 8, |arena| {
        let run = RunEntry {
            rows: 1,
            ..RunEntry::default()
        };
        let altered = RelationKey {
            shape: key(1).shape + 1,
            ..key(1)
        };
        let table = arena.open(key(1), 0).unwrap();
        assert!(table.publish(0, &[run], Position::default()));
        assert_eq!(arena.open(altered, 0).unwrap().runs(), 0);
        assert_eq!(arena.open(key(1), 0).unwrap().runs(), 1);
        drop(table);
        arena.purge((1, 2, 1));
        assert_eq!(arena.open(altered, 0).unwrap().runs(), 0);
        assert_eq!(arena.open(key(1), 0).unwrap().runs(), 0);
    });
}

#[test]
fn purging_is_by_file_or_by_database() {
    with_arena(1 << 20, 8, |arena| {
        let published = |key| arena.open(key, 0).unwrap().runs();
        let keys = [1, 2, 3].map(|file| RelationKey {
            database: file,
            ..key(file)
        });
        let run = RunEntry {
            rows: 1,
            ..RunEntry::default()
        };
        for key in keys {
            let relation = arena.open(key, 0).unwrap();
            assert!(relation.publish(0, &[run], Position::default()));
        }
        arena.purge((1, 1, 1));
        assert_eq!(keys.map(published), [0, 1, 1]);
        arena.purge_database(3);
        assert_eq!(keys.map(published), [0, 1, 0]);
        arena.purge((2, 2, 2));
        assert_eq!(published(keys[1]), 1, "another tablespace");
    });
}

#[test]
fn unused_relations_make_room_for_new_ones() {
    with_arena(1 << 20, 4, |arena| {
        let pinned = (0..3)
            .map(|file| arena.open(key(file), 0).unwrap())
            .collect::<Vec<_>>();
        for file in 10..40 {
            assert!(arena.open(key(file), 0).is_some());
        }
        assert!(arena.stats().relation_evictions >= 29);
        let fourth = arena.open(key(99), 0);
        assert!(fourth.is_some());
        assert!(arena.open(key(98), 0).is_none(), "all are pinned");
        drop((pinned, fourth));
        assert!(arena.open(key(98), 0).is_some());
    });
}

#[test]
fn runs_must_ascend_and_flags_are_set_for_all() {
    with_arena(1 << 20, 4, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let run = |first_row, rows| RunEntry {
            first_row,
            rows,
            ..RunEntry::default()
        };
        let position = Position { block: 1, index: 2 };
        assert!(!relation.publish(0, &[run(10, 5), run(14, 1)], position));
        assert!(!relation.publish(0, &[run(u64::MAX, 5)], position));
        assert!(relation.publish(0, &[run(10, 5), run(20, 5)], position));
        assert!(!relation.publish(0, &[run(30, 5)], position), "too late");
        assert!(!relation.publish(2, &[run(24, 5)], position));
        // Holes are in no run.
        assert_eq!(
            [9, 10, 14, 15, 19, 20, 24, 25].map(|row| relation.find_run(row)),
            [None, Some(0), Some(0), None, None, Some(1), Some(1), None]
        );
        relation.set_flags(1, 0b100);
        relation.clone().set_flags(1, 0b001);
        relation.set_flags(2, 1);
        let flags = [0, 1, 2].map(|index| arena.open(key(1), 0).unwrap().run(index).flags);
        assert_eq!(flags, [0, 0b101, 0]);
    });
}

#[test]
fn many_runs_are_found() {
    let runs = if cfg!(miri) { 300 } else { 50_000_u64 };
    with_arena(8 << 20, 4, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let entries = (0..runs)
            .map(|index| RunEntry {
                first_row: index * 10,
                rows: 9,
                ..RunEntry::default()
            })
            .collect::<Vec<_>>();
        let (before, after) = entries.split_at(entries.len() / 3);
        assert!(relation.publish(0, before, Position::default()));
        assert!(relation.publish(before.len() as u32, after, Position::default()));
        for index in (0..runs).step_by(97) {
            assert_eq!(relation.find_run(index * 10 + 8), Some(index as u32));
            assert_eq!(relation.find_run(index * 10 + 9), None);
        }
        drop(relation);
        assert_all_comes_back(arena, &[key(1)]);
    });
}

#[test]
#[should_panic(expected = "too few for an arena")]
fn too_small_an_area_is_refused() {
    with_arena(TestArena::bytes_min() - 8, 4, |_| ());
}

#[test]
fn pins_on_a_stack_that_nobody_unwinds_are_given_back() {
    with_arena(1 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        assert!(load(&relation, 0, INT8, &numbers(0..100)));
        let again = relation.clone();
        // A process that ends in the middle of a wait drops none of its pins.
        std::mem::forget(relation.pin_segment(0));
        std::mem::forget(again);
        std::mem::forget(relation);
        arena.purge((key(1).space, key(1).database, key(1).file));
        arena.core.assert_invariants();
        assert!(arena.stats().bytes_used > 0, "all is pinned");
        // SAFETY: what was pinned is forgotten.
        let pins = unsafe { arena.release_all() };
        // The segment; the relation, its clone, and the one in the pinned segment.
        assert_eq!(pins, 4);
        // Memory that was retired while it was pinned is freed when room is next needed.
        drop(arena.open(key(2), 0));
        assert_all_comes_back(arena, &[key(1), key(2)]);
        // SAFETY: there is nothing.
        assert_eq!(unsafe { arena.release_all() }, 0);
    });
}
