//! Dictionaries that go from one segment to the next.

use std::collections::HashMap;

use super::*;
use crate::lane::{DictionaryView, LaneData};
use crate::limits::{SEGMENT_ROWS, SMALL_SEGMENTS};

/// Every dictionary met so far, by its number. Whatever was once seen of it must stay so, and the
/// items that it inherited must be those of its parent.
#[derive(Default)]
pub(super) struct Dictionaries {
    items: HashMap<u64, Vec<Vec<u8>>>,
}

/// An item of the model, which its first two bytes determine.
unsafe fn read_item(kind: LaneKind, item: *const u8) -> Vec<u8> {
    // SAFETY: the caller has a pointer to an item, which has two bytes at least.
    let number = u16::from_le_bytes(unsafe { [*item, *item.add(1)] });
    let expected = value(kind, number.into()).unwrap();
    // SAFETY: the item of this number has so many bytes.
    let found = unsafe { std::slice::from_raw_parts(item, expected.len()) };
    assert_eq!(found, expected);
    expected
}

impl Dictionaries {
    /// Checks the dictionaries of a segment.
    pub(super) fn check(&mut self, segment: &Segment<MutexLocks>, kinds: &[LaneKind]) {
        for (column, &kind) in kinds.iter().enumerate() {
            let rows = segment.rows_resident() as usize;
            let view = segment.dictionary(column);
            let LaneData::Codes { codes, slots, heap } = segment.lane(column).data else {
                assert!(view.is_none());
                continue;
            };
            let view = view.expect("the lane is coded");
            assert!(view.instance > 0 && view.parent < view.instance);
            assert!(view.inherited <= view.items);
            // SAFETY: the segment is pinned, has these rows, and its dictionary these items.
            let items = unsafe {
                assert!((0..rows).all(|row| *codes.add(row) < view.items.max(1)));
                (0..view.items as usize)
                    .map(|code| read_item(kind, heap.add(*slots.add(code) as usize)))
                    .collect::<Vec<_>>()
            };
            if let Some(parent) = self.items.get(&view.parent) {
                let inherited = (view.inherited as usize).min(parent.len());
                assert_eq!(parent[..inherited], items[..inherited]);
            }
            let known = self.items.entry(view.instance).or_default();
            let both = known.len().min(items.len());
            assert_eq!(known[..both], items[..both], "a code changed its meaning");
            if items.len() > both {
                *known = items;
            }
        }
    }
}

/// Loads a segment and answers what is known of its dictionary.
fn load(
    relation: &Relation<MutexLocks>,
    all: &mut Dictionaries,
    segment: u32,
    numbers: impl Iterator<Item = u32>,
) -> Option<DictionaryView> {
    let values = numbers.map(|n| value(TEXT, n)).collect::<Vec<_>>();
    let rows = values.len();
    assert!(relation.extend_segment(segment, &[TEXT], 0, &[build(TEXT, &values)], 0, rows));
    let pinned = relation.pin_segment(segment).unwrap();
    // SAFETY: the segment is pinned and has so many rows.
    unsafe { assert_lane(pinned.lane(0), TEXT, 0, &values) };
    all.check(&pinned, &[TEXT]);
    pinned.dictionary(0)
}

#[test]
fn codes_agree_from_segment_to_segment() {
    with_arena(4 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let mut all = Dictionaries::default();
        let first = load(&relation, &mut all, 0, 0..100).unwrap();
        assert_eq!((first.parent, first.inherited, first.items), (0, 0, 100));
        // In another order, and with new ones among them.
        let second = load(&relation, &mut all, 1, (50..150).rev()).unwrap();
        assert_ne!(second.instance, first.instance);
        assert_eq!(second.parent, first.instance);
        assert_eq!((second.inherited, second.items), (100, 150));
        let pinned = relation.pin_segment(1).unwrap();
        let LaneData::Codes { codes, .. } = pinned.lane(0).data else {
            panic!("not coded");
        };
        // SAFETY: the segment is pinned and has 100 rows.
        unsafe { assert_eq!((*codes, *codes.add(99)), (100, 50)) };
        // The parent goes on by itself, and may go altogether.
        let more = (200..230).map(|n| value(TEXT, n)).collect::<Vec<_>>();
        assert!(relation.extend_segment(0, &[TEXT], 100, &[build(TEXT, &more)], 0, 30));
        all.check(&relation.pin_segment(0).unwrap(), &[TEXT]);
        all.check(&pinned, &[TEXT]);
        assert_eq!(pinned.dictionary(0), Some(second));
        // A segment after one that is not resident knows nothing.
        let third = load(&relation, &mut all, 3, 0..100).unwrap();
        assert_eq!((third.parent, third.items), (0, 100));
        drop((pinned, relation));
        assert_all_comes_back(arena, &[key(1)]);
    });
}

#[test]
fn every_sixteenth_segment_starts_afresh() {
    with_arena(4 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let mut all = Dictionaries::default();
        for segment in 14..19 {
            let view = load(&relation, &mut all, segment, 0..50).unwrap();
            let fresh = segment == 14 || segment == 16;
            assert_eq!(view.parent == 0, fresh, "segment {segment}");
            assert_eq!(
                (view.inherited, view.items),
                (if fresh { 0 } else { 50 }, 50)
            );
        }
    });
}

#[test]
fn items_that_nobody_uses_neither_count_nor_stay() {
    with_arena(4 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let mut all = Dictionaries::default();
        let repeated = |items: u32, rows: u32| (0..rows).map(move |row| row * items / rows);
        assert!(load(&relation, &mut all, 0, repeated(900, 2_048)).is_some());
        let second = load(&relation, &mut all, 1, repeated(300, 680)).unwrap();
        assert_eq!((second.inherited, second.items), (900, 900));
        // 300 items in use for 680 rows pay, though all 900 would not.
        let third = load(&relation, &mut all, 2, repeated(300, 680)).unwrap();
        assert_eq!((third.parent, third.inherited, third.items), (0, 0, 300));
        let fourth = load(&relation, &mut all, 3, repeated(300, 680)).unwrap();
        assert_eq!((fourth.parent, fourth.items), (third.instance, 300));
    });
}

#[test]
fn large_dictionaries_are_not_handed_on() {
    if cfg!(miri) {
        return;
    }
    with_arena(32 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        let mut all = Dictionaries::default();
        let (full, rows) = (SMALL_SEGMENTS, SEGMENT_ROWS);
        for (segment, items, inherits) in [(full, 8_192, true), (full + 4, 8_193, false)] {
            let numbers = || {
                (0..rows)
                    .map(move |row| (u64::from(row) * u64::from(items) / u64::from(rows)) as u32)
            };
            let first = load(&relation, &mut all, segment, numbers()).unwrap();
            let second = load(&relation, &mut all, segment + 1, numbers()).unwrap();
            assert_eq!(first.items, items);
            assert_eq!(second.parent == first.instance, inherits, "{items} items");
        }
        // Few items, but of more than 32 bytes a row.
        let long = |number: u8| Some(vec![number; 2_000]);
        for (items, inherits) in [(32, true), (33, false)] {
            let values = (0..items).map(long).collect::<Vec<_>>();
            let file = u32::from(items);
            let relation = arena.open(key(file), 0).unwrap();
            for segment in 0..2 {
                let column = [build(TEXT, &values)];
                assert!(relation.extend_segment(segment, &[TEXT], 0, &column, 0, values.len()));
            }
            let second = relation.pin_segment(1).unwrap().dictionary(0).unwrap();
            assert_eq!(second.parent != 0, inherits);
        }
    });
}

#[test]
fn without_room_for_a_copy_a_dictionary_begins_empty() {
    // Items of 2,000 bytes, 60 KB together, in an arena in which they fit, but not twice.
    let values = (0..30_u8).map(|n| Some(vec![n; 2_000])).collect::<Vec<_>>();
    let few = [Some(vec![9; 2_000])];
    let load = |relation: &Relation<MutexLocks>, segment, values: &[Value]| {
        relation.extend_segment(segment, &[TEXT], 0, &[build(TEXT, values)], 0, values.len())
    };
    with_arena(256 << 10, 1, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        assert!(load(&relation, 0, &values));
        let first = relation.pin_segment(0).unwrap();
        let mut pins = Vec::new();
        let filler = [build(INT8, &[value(INT8, 1)])];
        for segment in 2.. {
            if arena.stats().bytes_largest_free < 50_000 {
                break;
            }
            assert!(relation.extend_segment(segment, &[INT8], 0, &filler, 0, 1));
            pins.push(relation.pin_segment(segment).unwrap());
        }
        assert!(load(&relation, 1, &few));
        let view = relation.pin_segment(1).unwrap().dictionary(0).unwrap();
        assert_eq!((view.parent, view.items), (0, 1));
        drop((first, pins, relation));
        assert_all_comes_back(arena, &[key(1)]);
    });
}

#[test]
fn a_column_tells_its_dictionary() {
    let mut column = build(
        TEXT,
        &[value(TEXT, 1), None, value(TEXT, 2), value(TEXT, 1)],
    );
    let view = column.dictionary().unwrap();
    assert_eq!((view.items, view.parent, view.inherited), (2, 0, 0));
    column.push_item(b"new");
    let grown = column.dictionary().unwrap();
    assert_eq!((grown.instance, grown.items), (view.instance, 3));
    let other = Column::new(TEXT).dictionary().unwrap();
    column.clear();
    let cleared = column.dictionary().unwrap();
    assert!(other.instance != view.instance && cleared.instance != view.instance);
    assert_eq!(cleared.items, 0);
    assert!(Column::new(NUMERIC).dictionary().is_none());
}
