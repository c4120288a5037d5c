//! Integers of numerics that are kept beside their items.

use super::*;
use crate::limits::SMALL_SEGMENTS;
use crate::vector::decimal::test_items::short_item;
use crate::vector::decimal::{Decimal, DecimalValue};
use crate::vector::frame::Frame;
use crate::vector::selection::Selection;

/// Vectors of the segments of these tests, and rows of them.
const VECTORS: usize = 3;
const ROWS: usize = VECTORS * VECTOR_ROWS;

/// A segment of full size.
const SEGMENT: u32 = SMALL_SEGMENTS;

type Cells = Vec<Option<Decimal>>;

fn cells(rows: usize, scale: u8) -> Cells {
    let cell = |row: usize| {
        let value = (row as i64 * 7_919 + 13) % 1_000_003 - 500_000;
        (row % 10 != 3).then_some(Decimal { value, scale })
    };
    (0..rows).map(cell).collect()
}

fn column(cells: &[Option<Decimal>]) -> Column {
    let item = |cell: &Option<Decimal>| cell.map(|cell| short_item(cell.value, cell.scale.into()));
    let items: Vec<Value> = cells.iter().map(item).collect();
    build(NUMERIC, &items)
}

fn load(relation: &Relation<MutexLocks>, from: usize, cells: &[Option<Decimal>]) {
    let rows = cells.len();
    assert!(relation.extend_segment(SEGMENT, &[NUMERIC], from as u32, &[column(cells)], 0, rows));
}

/// Reads the vectors of the segment as a scan does, and checks what it finds. Returns how many vectors have known
/// integers afterwards.
fn read(relation: &Relation<MutexLocks>, cells: &[Option<Decimal>]) -> usize {
    let segment = relation.pin_segment(SEGMENT).unwrap();
    segment.make_wanted_room();
    let lanes = [segment.lane(0)];
    let mut value = DecimalValue::column(0);
    for (vector, wanted) in cells.chunks(VECTOR_ROWS).enumerate() {
        let frame = Frame {
            lanes: &lanes,
            dictionaries: &[Default::default()],
            place: vector * VECTOR_ROWS,
            ..Frame::of_nulls(wanted.len(), &[])
        };
        let found = value.evaluate(&frame, &Selection::first(wanted.len()));
        let found = found.unwrap().expect("the numbers fit");
        for (row, wanted) in wanted.iter().enumerate() {
            let scale = found.scale_of(row);
            let value = found.values()[row] / 10_i64.pow((found.scale() - scale).into());
            let cell = found
                .valid()
                .contains(row)
                .then_some(Decimal { value, scale });
            assert_eq!(cell, *wanted, "row {row} of vector {vector}");
        }
    }
    let vectors = 0..cells.len() / VECTOR_ROWS;
    vectors
        .filter(|&vector| lanes[0].decimals.known(vector).is_some())
        .count()
}

#[test]
fn whole_vectors_are_kept_once_they_were_wanted() {
    with_arena(8 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let all = cells(ROWS + 100, 2);
        load(&relation, 0, &all[..ROWS - 1]);
        let before = relation.stats().bytes_used;
        assert_eq!(read(&relation, &all[..ROWS - 1]), 0, "there is no room yet");
        assert_eq!(relation.stats().bytes_used, before);
        // The last vector misses a row.
        assert_eq!(read(&relation, &all[..ROWS - 1]), VECTORS - 1);
        assert!(relation.stats().bytes_used > before);
        load(&relation, ROWS - 1, &all[ROWS - 1..]);
        assert_eq!(read(&relation, &all), VECTORS);
        assert_eq!(read(&relation, &all), VECTORS);
        drop(relation);
        assert_all_comes_back(arena, &[key(1)]);
    });
}

#[test]
fn a_vector_of_several_scales_is_read_from_its_items() {
    with_arena(8 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let mut all = cells(ROWS, 2);
        all[VECTOR_ROWS + 77] = Some(Decimal { value: 5, scale: 1 });
        load(&relation, 0, &all);
        for known in [0, VECTORS - 1, VECTORS - 1] {
            assert_eq!(read(&relation, &all), known);
        }
    });
}

#[test]
fn rows_that_no_run_has_are_not_read() {
    with_arena(8 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let (first, second) = (cells(100, 2), cells(ROWS - 500, 2));
        load(&relation, 0, &first);
        let added = [column(&second)];
        let rows = second.len();
        assert!(relation.extend_segment_past_gap(SEGMENT, &[NUMERIC], 500, &added, 0, rows));
        let segment = relation.pin_segment(SEGMENT).unwrap();
        let mut value = DecimalValue::column(0);
        for known in [false, true] {
            segment.make_wanted_room();
            let lanes = [segment.lane(0)];
            let frame = Frame {
                lanes: &lanes,
                dictionaries: &[Default::default()],
                ..Frame::of_nulls(VECTOR_ROWS, &[])
            };
            let mut rows = Selection::first(100);
            rows.insert(500, VECTOR_ROWS);
            let found = value.evaluate(&frame, &rows).unwrap().unwrap();
            let cell = |row| found.valid().contains(row).then(|| found.values()[row]);
            let wanted = |cell: Option<Decimal>| cell.map(|cell| cell.value);
            assert!((0..100).all(|row| cell(row) == wanted(first[row])));
            assert!((500..VECTOR_ROWS).all(|row| cell(row) == wanted(second[row - 500])));
            assert_eq!(lanes[0].decimals.known(0).is_some(), known);
        }
    });
}

#[test]
fn a_vector_that_begins_later_has_the_rest_of_the_rows() {
    with_arena(8 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let all = cells(ROWS, 2);
        load(&relation, 0, &all);
        read(&relation, &all);
        assert_eq!(read(&relation, &all), VECTORS);
        let segment = relation.pin_segment(SEGMENT).unwrap();
        let (first, rows) = (2 * VECTOR_ROWS + 128, VECTOR_ROWS - 128);
        let frame = Frame {
            lanes: &[segment.lane(0)],
            dictionaries: &[Default::default()],
            place: first,
            ..Frame::of_nulls(rows, &[])
        };
        let mut value = DecimalValue::column(0);
        let found = value
            .evaluate(&frame, &Selection::first(rows))
            .unwrap()
            .unwrap();
        for row in 0..rows {
            let cell = found.valid().contains(row).then(|| found.values()[row]);
            assert_eq!(cell, all[first + row].map(|cell| cell.value));
        }
    });
}

#[test]
fn room_is_made_only_where_it_is_to_spare() {
    with_arena(8 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let all = cells(ROWS, 2);
        load(&relation, 0, &all);
        let used = relation.stats().bytes_used;
        relation.set_budget(used + 1_000);
        for _ in 0..3 {
            assert_eq!(read(&relation, &all), 0);
        }
        assert_eq!(relation.stats().bytes_used, used);
        // Other segments take the arena but for a little, which stays for the next.
        relation.set_budget(0);
        let other = arena.open(key(2), 0).unwrap();
        for segment in SEGMENT.. {
            let stats = arena.stats();
            if stats.bytes_used + 600_000 > stats.bytes_usable {
                break;
            }
            assert!(other.extend_segment(
                segment,
                &[INT8],
                0,
                &[build(INT8, &[value(INT8, 1)])],
                0,
                1
            ));
        }
        for _ in 0..3 {
            assert_eq!(read(&relation, &all), 0);
        }
        assert_eq!(arena.stats().segment_evictions, 0);
        drop(other);
        arena.purge((1, 2, 2));
        read(&relation, &all);
        assert_eq!(read(&relation, &all), VECTORS);
    });
}

#[test]
fn readers_at_once_find_the_same_numbers() {
    let rounds = if cfg!(miri) { 1 } else { 20 };
    let all = cells(ROWS, 2);
    for _ in 0..rounds {
        with_arena(8 << 20, 8, |arena| {
            let relation = arena.open(key(1), 0).unwrap();
            load(&relation, 0, &all);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for _ in 0..4 {
                            read(&relation, &all);
                        }
                    });
                }
            });
            assert_eq!(read(&relation, &all), VECTORS);
        });
    }
}
