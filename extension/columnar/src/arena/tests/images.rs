//! Segments that are kept as images: read as they were put, evicted and given up like others, and never taken for lanes.

use super::*;
use crate::limits::{SEGMENT_ROWS, SMALL_SEGMENTS};

const FIRST: u32 = SMALL_SEGMENTS;

fn image(byte: u8) -> Vec<u8> {
    vec![byte; 10_000 + usize::from(byte)]
}

fn put(relation: &Relation<MutexLocks>, segment: u32, byte: u8) -> bool {
    let (first, second) = (image(byte), image(byte + 1));
    relation.put_images(segment, &[(70_000, &first), (80_000, &second)])
}

fn load(relation: &Relation<MutexLocks>, segment: u32) -> bool {
    let values: Vec<Value> = (0..SEGMENT_ROWS).map(|row| value(INT8, row)).collect();
    let columns = [build(INT8, &values)];
    relation.extend_segment(segment, &[INT8], 0, &columns, 0, values.len())
}

#[test]
fn images_are_what_was_put_and_no_lanes() {
    with_arena(64 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        assert!(relation.pin_images(FIRST).is_none());
        assert!(put(&relation, FIRST, 7));
        assert!(!put(&relation, FIRST, 9), "there are some");
        let images = relation.pin_images(FIRST).unwrap();
        assert_eq!(images.of_run(70_000), Some(&*image(7)));
        assert_eq!(images.of_run(80_000), Some(&*image(8)));
        assert_eq!(images.of_run(70_001), None);
        let segment = relation.pin_segment(FIRST).unwrap();
        assert_eq!((segment.columns(), segment.rows_resident()), (0, 0));
        assert!(segment.zone(0, 0).is_none());
        assert_eq!(images.looks(), 0);
        images.note_look();
        assert_eq!(relation.pin_images(FIRST).unwrap().looks(), 1);
        assert!(relation.stats().bytes_used > 20_000);
        drop((images, segment, relation));
        assert_all_comes_back(arena, &[key(1)]);
    });
}

#[test]
fn lanes_take_the_place_of_images_that_stay_for_those_who_read_them() {
    with_arena(64 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        assert!(put(&relation, FIRST, 7));
        let images = relation.pin_images(FIRST).unwrap();
        assert!(!load(&relation, FIRST), "the images are retired first");
        assert!(load(&relation, FIRST));
        assert!(put(&relation, FIRST + 3, 7));
        relation.give_up_images(FIRST + 3);
        assert!(relation.pin_segment(FIRST + 3).is_none() && load(&relation, FIRST + 3));
        relation.give_up_images(FIRST + 3);
        assert_eq!(
            relation.pin_segment(FIRST + 3).unwrap().rows_resident(),
            SEGMENT_ROWS
        );
        assert!(relation.pin_images(FIRST).is_none());
        assert!(!put(&relation, FIRST, 9), "there are lanes");
        assert_eq!(images.of_run(80_000), Some(&*image(8)));
        // The next segment looks at the one before for a dictionary to take over.
        assert!(put(&relation, FIRST + 1, 7) && load(&relation, FIRST + 2));
        drop((images, relation));
        assert_all_comes_back(arena, &[key(1)]);
    });
}

#[test]
fn images_make_room_unless_they_are_pinned() {
    with_arena(1 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        assert!(put(&relation, FIRST, 7));
        let pinned = relation.pin_images(FIRST).unwrap();
        for segment in FIRST + 1..FIRST + 200 {
            assert!(put(&relation, segment, (segment % 100) as u8));
        }
        assert!(arena.stats().segment_evictions > 100);
        assert!(relation.pin_images(FIRST + 1).is_none());
        assert_eq!(pinned.of_run(70_000), Some(&*image(7)));
        let large = vec![1; 2 << 20];
        assert!(!relation.put_images(FIRST + 300, &[(0, &large)]));
        // What another generation takes over is pinned in both.
        let later = arena.open(key(1), 1).unwrap();
        later.adopt_segments(&relation, FIRST..FIRST + 1);
        assert_eq!(
            later.pin_images(FIRST).unwrap().of_run(70_000),
            Some(&*image(7))
        );
        relation.set_budget(1);
        assert!(!put(&relation, FIRST + 2, 7), "beyond the budget");
        drop((pinned, relation, later));
        assert_all_comes_back(arena, &[key(1)]);
    });
}
