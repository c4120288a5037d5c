//! Segments that are kept as images: read as they were put, evicted and given up like others, and
//! never taken for lanes.

use super::*;
use crate::arena::{Images, NewImage};
use crate::limits::{SEGMENT_ROWS, SMALL_SEGMENTS};
use crate::zone_map::{Bound, Zone};

const FIRST: u32 = SMALL_SEGMENTS;

fn image(byte: u8) -> Vec<u8> {
    vec![byte; 10_000 + usize::from(byte)]
}

fn new(first_row: u64, bytes: &[u8]) -> NewImage<'_> {
    NewImage {
        first_row,
        bytes,
        columns: 2,
        vectors: 3,
    }
}

fn bytes_of(images: &Images<MutexLocks>, first_row: u64) -> Option<&[u8]> {
    images.of_run(first_row).map(|kept| kept.bytes())
}

fn put(relation: &Relation<MutexLocks>, segment: u32, byte: u8) -> bool {
    let (first, second) = (image(byte), image(byte + 1));
    relation.put_images(segment, &[new(70_000, &first), new(80_000, &second)])
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
        assert_eq!(bytes_of(&images, 70_000), Some(&*image(7)));
        assert_eq!(bytes_of(&images, 80_000), Some(&*image(8)));
        assert_eq!(bytes_of(&images, 70_001), None);
        let segment = relation.pin_segment(FIRST).unwrap();
        assert_eq!((segment.columns(), segment.rows_resident()), (0, 0));
        assert!(segment.zone(0, 0).is_none());
        assert_eq!(images.looks(), 0);
        images.note_look();
        assert_eq!(relation.pin_images(FIRST).unwrap().looks(), 1);
        assert_eq!(images.opens(), 0);
        images.note_open();
        assert_eq!((images.looks(), images.opens()), (1, 1));
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
        assert_eq!(bytes_of(&images, 80_000), Some(&*image(8)));
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
        assert_eq!(bytes_of(&pinned, 70_000), Some(&*image(7)));
        let large = vec![1; 2 << 20];
        assert!(!relation.put_images(FIRST + 300, &[new(0, &large)]));
        // An adopted segment is pinned in both generations.
        let later = arena.open(key(1), 1).unwrap();
        later.adopt_segments(&relation, FIRST..FIRST + 1);
        assert_eq!(
            bytes_of(&later.pin_images(FIRST).unwrap(), 70_000),
            Some(&*image(7))
        );
        relation.set_budget(1);
        assert!(!put(&relation, FIRST + 2, 7), "beyond the budget");
        drop((pinned, relation, later));
        assert_all_comes_back(arena, &[key(1)]);
    });
}

#[test]
fn looks_age_as_the_hand_goes_round() {
    with_arena(1 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        assert!(put(&relation, FIRST, 7));
        let images = relation.pin_images(FIRST).unwrap();
        for _ in 0..1_000 {
            images.note_look();
            images.note_open();
        }
        // While there is memory, the hand does not move.
        assert!(put(&relation, FIRST + 1, 8));
        assert_eq!(images.looks(), 1_000);
        let mut last = 1_000;
        for segment in FIRST + 2..FIRST + 1_000 {
            assert!(put(&relation, segment, (segment % 100) as u8));
            let looks = images.looks();
            assert!(
                [last, last / 2, last / 4].contains(&looks),
                "{last}, {looks}"
            );
            assert_eq!(images.opens(), looks);
            last = looks;
        }
        assert_eq!(last, 0);
        images.note_look();
        assert_eq!(images.looks(), 1);
        drop((images, relation));
        assert_all_comes_back(arena, &[key(1)]);
    });
}

#[test]
fn a_zone_is_worked_out_once_and_then_known_to_all() {
    with_arena(64 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        assert!(put(&relation, FIRST, 7));
        let zone = |least, greatest| Zone {
            minimum: Bound::Signed(least),
            maximum: Bound::Signed(greatest),
            non_null: 5,
            sorted: false,
            has_sum: false,
            exact: false,
            ..Zone::empty(INT8)
        };
        let seen = |run, column, vector, find: &mut dyn FnMut() -> Option<Zone>| {
            let images = relation.pin_images(FIRST).unwrap();
            let found = images.of_run(run).unwrap().zone(column, vector, INT8, find);
            found.map(|zone| {
                assert!(!zone.sorted && !zone.has_sum && !zone.exact && zone.sum == 0);
                (zone.minimum.signed(), zone.maximum.signed(), zone.non_null)
            })
        };
        let expected = |least, greatest| Some((Some(least), Some(greatest), 5));
        let mut never = || panic!("it is known");
        for (number, (column, vector)) in [(0, 0), (0, 2), (1, 0), (1, 2)].into_iter().enumerate() {
            for run in [70_000, 80_000] {
                let least = (number as i64 - 2) * 1_000_000 + run as i64;
                let mut find = || Some(zone(least, least + 9));
                assert_eq!(
                    seen(run, column, vector, &mut find),
                    expected(least, least + 9)
                );
            }
        }
        assert_eq!(
            seen(80_000, 1, 2, &mut never),
            expected(1_080_000, 1_080_009)
        );
        assert_eq!(
            seen(70_000, 0, 0, &mut never),
            expected(-1_930_000, -1_929_991)
        );
        // The absence of a zone is stored too.
        assert_eq!(seen(70_000, 1, 1, &mut || None), None);
        assert_eq!(seen(70_000, 1, 1, &mut never), None);
        // Nothing is stored for columns and vectors that the image was not made for.
        for (column, vector) in [(2, 0), (0, 3)] {
            for least in [1, 2] {
                let mut find = || Some(zone(least, 9));
                assert_eq!(seen(70_000, column, vector, &mut find), expected(least, 9));
            }
        }
        assert_eq!(
            bytes_of(&relation.pin_images(FIRST).unwrap(), 70_000),
            Some(&*image(7))
        );
        drop(relation);
        assert_all_comes_back(arena, &[key(1)]);
    });
}
