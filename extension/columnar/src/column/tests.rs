//! Columns against their model, a list of optional values.

use proptest::prelude::*;

use super::*;
use crate::dictionary::JUDGED_ITEMS_MIN;
use crate::kind::Number;
use crate::test_support::{
    TEXT, Value, any_kind, any_value, assert_column, build, cases, push, value,
};

#[derive(Clone, Debug)]
enum Step {
    Push(Value),
    Repeat(Value, usize),
    Bulk(Vec<Value>),
    Truncate(usize),
    Clear,
}

fn any_steps() -> impl Strategy<Value = (LaneKind, Vec<Step>)> {
    (any_kind(), prop_oneof![Just(3_u32), Just(5_000)]).prop_flat_map(|(kind, variety)| {
        let any_value = move || any_value(kind, variety);
        let step = prop_oneof![
            6 => any_value().prop_map(Step::Push),
            2 => (any_value(), 0..100_usize).prop_map(|(value, rows)| Step::Repeat(value, rows)),
            6 => prop::collection::vec(any_value(), 0..200).prop_map(Step::Bulk),
            1 => (0..300_usize).prop_map(Step::Truncate),
            1 => Just(Step::Clear),
        ];
        (Just(kind), prop::collection::vec(step, 0..12))
    })
}

/// Bits past the last row are set, because they must not matter.
fn pack(bits: impl Iterator<Item = bool>) -> Vec<u64> {
    let bits = bits.collect::<Vec<_>>();
    let mut words = vec![u64::MAX; bits::words(bits.len())];
    for (row, bit) in bits.into_iter().enumerate() {
        if !bit {
            words[row / 64] &= !(1 << (row % 64));
        }
    }
    words
}

fn bulk(column: &mut Column, values: &[Value]) {
    let rows = values.len();
    let validity = values
        .iter()
        .any(Option::is_none)
        .then(|| pack(values.iter().map(Option::is_some)));
    let validity = validity.as_deref();
    match column.kind() {
        LaneKind::Absent => column.push_repeated(None, rows),
        LaneKind::Bool => {
            let bits = pack(values.iter().map(|value| *value == Some(vec![1])));
            column.extend_bools(&bits, validity, rows);
        }
        LaneKind::Fixed { width, .. } => {
            // Under a NULL lies anything.
            let nothing = vec![0xee; width.into()];
            let bytes = values
                .iter()
                .flat_map(|value| value.as_ref().unwrap_or(&nothing))
                .copied()
                .collect::<Vec<_>>();
            column.extend_fixed(&bytes, validity, rows);
        }
        LaneKind::Varlena { .. } => {
            // Repeated items on purpose: the caller's dictionary need not be distinct.
            let items = values
                .iter()
                .flatten()
                .map(Vec::as_slice)
                .collect::<Vec<_>>();
            let mut next = 0;
            let codes = values
                .iter()
                .map(|value| match value {
                    Some(_) => {
                        next += 1;
                        next - 1
                    }
                    None => u32::MAX,
                })
                .collect::<Vec<_>>();
            column.extend_codes(&codes, &items, validity).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn agrees_with_its_model((kind, steps) in any_steps()) {
        let (mut column, mut model) = (Column::new(kind), Vec::<Value>::new());
        for step in steps {
            match step {
                Step::Push(value) => {
                    push(&mut column, &value);
                    model.push(value);
                }
                Step::Repeat(value, rows) => {
                    column.push_repeated(value.as_deref(), rows);
                    model.extend(std::iter::repeat_n(value, rows));
                }
                Step::Bulk(values) => {
                    bulk(&mut column, &values);
                    model.extend(values);
                }
                Step::Truncate(rows) => {
                    column.truncate(rows);
                    model.truncate(rows);
                }
                Step::Clear => {
                    column.clear();
                    model.clear();
                }
            }
            assert_column(&column, &model);
        }
    }
}

fn numbered(range: std::ops::Range<u32>) -> Vec<Value> {
    range.map(|number| value(TEXT, number)).collect()
}

#[test]
fn a_dictionary_that_does_not_pay_is_given_up_and_tried_again() {
    let distinct = JUDGED_ITEMS_MIN as u32;
    let mut values = numbered(0..distinct - 1);
    let mut column = build(TEXT, &values);
    assert_eq!(column.dictionary_items(), Some(JUDGED_ITEMS_MIN - 1));
    push(&mut column, &value(TEXT, distinct));
    values.push(value(TEXT, distinct));
    assert_eq!(column.dictionary_items(), None);
    assert!(matches!(column.lane().data, LaneData::Offsets { .. }));
    push(&mut column, &None);
    values.push(None);
    assert_column(&column, &values);
    column.clear();
    push(&mut column, &value(TEXT, 1));
    assert_eq!(column.dictionary_items(), Some(1));
}

#[test]
fn a_dictionary_that_pays_is_kept() {
    let values = [numbered(0..200), numbered(0..200), numbered(0..400)].concat();
    let column = build(TEXT, &values);
    assert_eq!(column.dictionary_items(), Some(400));
    assert!(matches!(column.lane().data, LaneData::Codes { .. }));
    assert_column(&column, &values);
}

#[test]
fn nulls_do_not_make_a_dictionary_pay() {
    let mut values = vec![None; 1_000];
    values.extend(numbered(0..JUDGED_ITEMS_MIN as u32));
    let column = build(TEXT, &values);
    assert_eq!(column.dictionary_items(), None);
    assert_column(&column, &values);
}

#[test]
fn a_repeated_item_is_stored_once() {
    for dictionary in [true, false] {
        let mut column = Column::new(LaneKind::Varlena {
            dictionary,
            packed: false,
        });
        column.push_repeated(Some(&[7; 100_000]), 1_000);
        assert!(column.byte_len() < 120_000);
    }
}

#[test]
fn bad_codes_leave_the_column_unchanged() {
    let mut column = build(TEXT, &numbered(0..3));
    let outside = Error::CodeOutside { code: 1, items: 1 };
    assert_eq!(column.extend_codes(&[0, 1], &[b"a"], None), Err(outside));
    let short = Error::ValidityTooShort { words: 1, rows: 65 };
    assert_eq!(
        column.extend_codes(&[0; 65], &[b"a"], Some(&[1])),
        Err(short)
    );
    assert_column(&column, &numbered(0..3));
    let mut numbers = Column::new(LaneKind::Fixed {
        width: 4,
        stride: 4,
        number: Number::Opaque,
    });
    let refused = numbers.extend_codes(&[0], &[b"abcd"], None);
    assert!(matches!(refused, Err(Error::KindDiffers { .. })));
    assert_eq!(numbers.rows(), 0);
}

#[test]
#[should_panic(expected = "bytes of a value of fixed width")]
fn a_value_of_another_width_is_refused() {
    let mut column = Column::new(LaneKind::Fixed {
        width: 4,
        stride: 4,
        number: Number::Opaque,
    });
    column.push_fixed(&[0; 3]);
}

#[test]
fn values_are_filled_in_place_or_not_at_all() {
    let mut column = Column::new(LaneKind::Fixed {
        width: 4,
        stride: 4,
        number: Number::Signed,
    });
    column.push_fixed(&7_i32.to_le_bytes());
    let fill = |out: &mut [u8]| {
        assert_eq!(out, [0; 8]);
        out[4..].copy_from_slice(&9_i32.to_le_bytes());
        Ok::<_, ()>(())
    };
    column.extend_fixed_with(Some(&[0b10]), 2, fill).unwrap();
    let before = column.byte_len();
    let refused = column.extend_fixed_with(None, 100, |out| {
        out[0] = 1;
        Err("no")
    });
    assert_eq!(refused, Err("no"));
    assert_eq!((column.rows(), column.byte_len()), (3, before));
    let value = |value: i32| Some(value.to_le_bytes().to_vec());
    assert_column(&column, &[value(7), None, value(9)]);
}

#[test]
fn short_items_are_appended_together() {
    let kind = |dictionary, packed| LaneKind::Varlena { dictionary, packed };
    let items: [&[u8]; 5] = [b"one", b"", b"three", &[7; 127], b"x"];
    let lengths = items.map(|item| item.len() as u64);
    let bytes = items.concat();
    // The second row is NULL.
    let validity = [0b11101];
    let mut column = Column::new(kind(false, true));
    column.push_item(b"before");
    assert!(column.extend_short_items(&lengths, &bytes, Some(&validity)));
    assert!(column.extend_short_items(&lengths[2..], &bytes[3..], None));
    assert_eq!((column.rows(), column.null_count()), (9, 1));
    let Body::Plain(found) = column.body() else {
        panic!("a column without a dictionary");
    };
    let found: Vec<&[u8]> = (0..9).map(|row| found.item(row)).collect();
    assert_eq!(found[0], b"before");
    assert_eq!(found[1..6], items);
    assert_eq!(found[6..], items[2..]);
    // A dictionary, items with alignment, and an item that needs some.
    for kind in [kind(true, true), kind(false, false)] {
        assert!(!Column::new(kind).extend_short_items(&lengths, &bytes, None));
    }
    column.clear();
    assert!(!column.extend_short_items(&[128], &[0; 128], None));
    assert_eq!(column.rows(), 0);
}
