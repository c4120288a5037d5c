//! The smallest and the greatest texts, in segments with and without dictionaries.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::aggregate::extreme::End;
use crate::aggregate::item_extreme::ItemExtreme;
use crate::aggregate::{Aggregate, Aggregation, Answer, Argument, Key, KeyValue};
use crate::column::Column;
use crate::kind::LaneKind;
use crate::limits::VECTOR_ROWS;
use crate::order::{ItemOrder, ItemSort};
use crate::test_support::{INT8, cases};
use crate::vector::frame::Frame;
use crate::vector::number::NumberType;
use crate::vector::selection::Selection;
use crate::vector::text::{Item, item_payload};
use crate::vector::value::Value;

/// Compares as a collation does that tells small letters from capital ones last.
fn collate(a: &[u8], b: &[u8], collation: u32) -> Ordering {
    assert_eq!(collation, 7);
    let folded = |text: &[u8]| text.to_ascii_lowercase();
    folded(a).cmp(&folded(b)).then_with(|| b.cmp(a))
}

fn item(payload: &str) -> Vec<u8> {
    match payload.len() {
        ..=126 => [&[(payload.len() as u8 + 1) << 1 | 1], payload.as_bytes()].concat(),
        length => [
            &((length as u32 + 4) << 2).to_le_bytes()[..],
            payload.as_bytes(),
        ]
        .concat(),
    }
}

/// The text of a number: one of many, whose order is not that of the numbers.
fn text(number: u32, is_padded: bool) -> String {
    let letter = if number.is_multiple_of(2) { 'x' } else { 'X' };
    let long = if number.is_multiple_of(97) { 130 } else { 0 };
    let text = format!("{letter}{}{}", number % 7, "y".repeat(long)) + &number.to_string();
    match is_padded {
        true => format!("{text:150}"),
        false => text,
    }
}

/// The text that an answer leads to.
fn found(answer: Answer) -> Option<String> {
    match answer {
        // SAFETY: the address of an item that lives as long as the groups.
        Answer::Bits(address) => Some(unsafe {
            let item = Item::new(address as *const u8);
            String::from_utf8_lossy(item_payload(item.as_ptr())).into_owned()
        }),
        _ => None,
    }
}

/// The texts of a segment's rows, each with its group, and whether the segment has a dictionary.
type Segment = (bool, Vec<(Option<u32>, i64)>);

fn add(
    aggregation: &mut Aggregation,
    (dictionary, rows): &Segment,
    is_padded: bool,
    skipped: usize,
) {
    let kind = LaneKind::Varlena {
        dictionary: *dictionary,
        packed: true,
    };
    let (mut items, mut groups) = (Column::new(kind), Column::new(INT8));
    for (number, group) in rows {
        match number {
            Some(number) => items.push_item(&item(&text(*number, is_padded))),
            None => items.push_null(),
        }
        groups.push_fixed(&group.to_ne_bytes());
    }
    let lanes = [items.lane(), groups.lane()];
    let dictionaries = [items.dictionary().unwrap_or_default(), Default::default()];
    for place in (0..rows.len()).step_by(VECTOR_ROWS) {
        let frame = Frame {
            lanes: &lanes,
            dictionaries: &dictionaries,
            place,
            ..Frame::of_nulls(VECTOR_ROWS.min(rows.len() - place), &[])
        };
        let mut selection = Selection::first(frame.rows);
        (0..frame.rows)
            .filter(|row| row % 7 == skipped)
            .for_each(|row| selection.remove(row));
        aggregation.add(&frame, &selection).unwrap();
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn each_group_has_its_extremes(
        shapes in prop::collection::vec((any::<bool>(), 1..3 * VECTOR_ROWS, prop::sample::select(vec![3_u32, 40, 300, 3_000, 100_000])), 1..5),
        groups in prop::sample::select(vec![0_i64, 1, 5, 3_000]), is_collated: bool, is_padded: bool, seed: u32, skipped in 0..9_usize,
    ) {
        let mut number = seed;
        let mut random = || {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            number >> 8
        };
        let order = if is_collated { ItemOrder::Collated(collate, 7) } else { ItemOrder::Bytes };
        let sort = ItemSort { order, is_padded };
        let aggregate = |end| Aggregate {
            filter: None,
            argument: Argument::Rows,
            accumulator: Box::new(ItemExtreme::new(0, sort, end)),
        };
        let keys = if groups == 0 { vec![] } else { vec![Key::Number(Value::Column(NumberType::I64, 1))] };
        let mut aggregation = Aggregation::new(keys, vec![aggregate(End::Minimum), aggregate(End::Maximum)]);
        let mut expected: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for (segment, (dictionary, rows, variety)) in shapes.into_iter().enumerate() {
            // Each segment has texts of its own between those of the others.
            let first = segment as u32 * 29;
            let group = |random: u32| if groups == 0 { 0 } else { i64::from(random) % groups };
            let rows: Vec<_> = (0..rows)
                .map(|row| ((row % 11 != 3).then(|| first + random() % variety), group(random())))
                .collect();
            for (row, (number, group)) in rows.iter().enumerate() {
                if row % VECTOR_ROWS % 7 != skipped {
                    expected.entry(*group).or_default().extend(number.map(|number| text(number, is_padded)));
                }
            }
            add(&mut aggregation, &(dictionary, rows), is_padded, skipped);
        }
        aggregation.finish();
        let compare = |a: &String, b: &String| match is_collated {
            true => collate(a.trim_end().as_bytes(), b.trim_end().as_bytes(), 7),
            false => a.trim_end().cmp(b.trim_end()),
        };
        for (group, texts) in &expected {
            let place = (0..aggregation.groups()).find(|place| {
                groups == 0 || matches!(aggregation.key(*place, 0), KeyValue::Number(scalar) if scalar.0 as i64 == *group)
            });
            let place = place.unwrap();
            prop_assert_eq!(found(aggregation.answer(place, 0)), texts.iter().min_by(|a, b| compare(a, b)).cloned());
            prop_assert_eq!(found(aggregation.answer(place, 1)), texts.iter().max_by(|a, b| compare(a, b)).cloned());
        }
        prop_assert!(aggregation.bytes() > 0);
    }
}
