//! Batches are read as they were built, and no byte of a buffer can make reading panic.

use lanes_wire::{
    BatchBuilder, BatchView, BuildError, ColumnSource, ColumnType, ItemsSource, Values,
    ValuesSource, encode, exercise, limits,
};
use proptest::prelude::*;

/// One value as the little-endian bytes or the item it is.
type Value = Option<Vec<u8>>;

#[derive(Clone, Debug)]
struct Model {
    column_type: ColumnType,
    values: Vec<Value>,
}

fn value(column_type: ColumnType) -> BoxedStrategy<Vec<u8>> {
    match column_type {
        ColumnType::Bool => prop::sample::select(vec![vec![0], vec![1]]).boxed(),
        ColumnType::Timestamp => prop_oneof![
            limits::TIMESTAMP_MICROSECONDS_MIN..=i64::MAX,
            Just(i64::MIN)
        ]
        .prop_map(|value| value.to_le_bytes().to_vec())
        .boxed(),
        ColumnType::Date => prop_oneof![
            limits::DATE_DAYS_MIN..=limits::DATE_DAYS_MAX,
            Just(i32::MIN),
            Just(i32::MAX)
        ]
        .prop_map(|value| value.to_le_bytes().to_vec())
        .boxed(),
        // Few distinct items or many, so that both forms are met.
        ColumnType::Text => prop_oneof!["[ab\u{e9}]{0,2}", "[^\0]{0,12}"]
            .prop_map(String::into_bytes)
            .boxed(),
        ColumnType::Bytes => prop_oneof![
            prop::collection::vec(0_u8..2, 0..2),
            prop::collection::vec(any::<u8>(), 0..12)
        ]
        .boxed(),
        fixed => prop::collection::vec(any::<u8>(), fixed.width().unwrap()).boxed(),
    }
}

fn model() -> impl Strategy<Value = Vec<Model>> {
    (0..200_usize, 1..8_usize).prop_flat_map(|(rows, columns)| {
        let column =
            (0..ColumnType::ALL.len(), any::<bool>()).prop_flat_map(move |(index, nulls)| {
                let column_type = ColumnType::ALL[index];
                let probability = if nulls { 0.7 } else { 0.999_999 };
                prop::collection::vec(
                    prop::option::weighted(probability, value(column_type)),
                    rows,
                )
                .prop_map(move |values| Model {
                    column_type,
                    values,
                })
            });
        prop::collection::vec(column, columns)
    })
}

fn build_into(builder: &mut BatchBuilder, columns: &[Model]) -> Vec<u8> {
    for (index, column) in columns.iter().enumerate() {
        let buffer = builder.column(index);
        for value in &column.values {
            let Some(value) = value else {
                buffer.push_null();
                continue;
            };
            let bytes = value.as_slice();
            match column.column_type {
                ColumnType::Bool => buffer.push_bool(bytes[0] == 1),
                ColumnType::Int16 => buffer.push_i16(i16::from_le_bytes(bytes.try_into().unwrap())),
                ColumnType::Int32 | ColumnType::Date => {
                    buffer.push_i32(i32::from_le_bytes(bytes.try_into().unwrap()))
                }
                ColumnType::Int64 | ColumnType::Timestamp => {
                    buffer.push_i64(i64::from_le_bytes(bytes.try_into().unwrap()))
                }
                ColumnType::Float32 => {
                    buffer.push_f32(f32::from_le_bytes(bytes.try_into().unwrap()))
                }
                ColumnType::Float64 => {
                    buffer.push_f64(f64::from_le_bytes(bytes.try_into().unwrap()))
                }
                ColumnType::Uuid => buffer.push_uuid(bytes.try_into().unwrap()),
                ColumnType::Text => buffer.push_text(std::str::from_utf8(bytes).unwrap()),
                ColumnType::Bytes => buffer.push_bytes(bytes),
            }
            .unwrap();
        }
    }
    let mut batch = Vec::new();
    builder.finish(&mut batch).unwrap();
    batch
}

fn build(columns: &[Model]) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for (index, column) in columns.iter().enumerate() {
        builder
            .add_column(&format!("column {index}"), column.column_type)
            .unwrap();
    }
    build_into(&mut builder, columns)
}

fn compare(batch: &[u8], columns: &[Model]) {
    let view = BatchView::verify(batch).unwrap();
    assert_eq!(view.columns().len(), columns.len());
    for (index, model) in columns.iter().enumerate() {
        let column = view.column(&format!("column {index}")).unwrap();
        assert_eq!(column.column_type(), model.column_type);
        assert_eq!(view.rows(), model.values.len());
        for (row, value) in model.values.iter().enumerate() {
            assert_eq!(column.is_null(row), value.is_none());
            let Some(value) = value else { continue };
            match column.values() {
                Values::Bool(bits) => assert_eq!(vec![u8::from(bits.get(row))], *value),
                Values::Fixed { width, bytes } => {
                    assert_eq!(&bytes[row * width..][..*width], value)
                }
                _ => assert_eq!(column.item(row), Some(value.as_slice())),
            }
        }
    }
    exercise(batch).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn built_is_read_at_any_alignment(columns in model(), offset in 0..8_usize) {
        let batch = build(&columns);
        let mut moved = vec![0xaa; offset];
        moved.extend_from_slice(&batch);
        compare(&moved[offset..], &columns);
    }

    /// A builder's second batch owes nothing to its first.
    #[test]
    fn builders_are_reused(first in model(), rows in 0..50_usize) {
        let mut builder = BatchBuilder::new();
        for (index, column) in first.iter().enumerate() {
            builder.add_column(&format!("column {index}"), column.column_type).unwrap();
        }
        compare(&build_into(&mut builder, &first), &first);
        builder.clear();
        let second: Vec<Model> = first
            .iter()
            .map(|column| Model {
                column_type: column.column_type,
                values: column.values.iter().rev().take(rows).cloned().collect(),
            })
            .collect();
        compare(&build_into(&mut builder, &second), &second);
    }

    /// A damaged batch is an error, or a batch that keeps every invariant.
    #[test]
    fn damage_never_panics(
        columns in model(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        keep in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut batch = build(&columns);
        for (place, byte) in damage {
            let place = place.index(batch.len());
            batch[place] = byte;
        }
        if cut {
            batch.truncate(keep.index(batch.len()));
        }
        let _ = exercise(&batch);
    }

    #[test]
    fn noise_never_panics(mut noise in prop::collection::vec(0_u8..16, 8..200)) {
        noise[4..8].copy_from_slice(b"LNB1");
        let _ = exercise(&noise);
    }
}

/// Structure is a small part of a batch's bytes, so its every byte is tried with every kind of
/// wrong value.
#[test]
fn every_byte_damaged() {
    let columns: Vec<Model> = [
        (ColumnType::Timestamp, vec![Some(vec![1; 8]), None]),
        (
            ColumnType::Text,
            vec![Some(b"api".to_vec()), Some(b"web".to_vec())],
        ),
        (ColumnType::Bool, vec![Some(vec![1]), None]),
    ]
    .into_iter()
    .map(|(column_type, values)| Model {
        column_type,
        values,
    })
    .collect();
    let batch = build(&columns);
    let mut refused = 0;
    for place in 0..batch.len() {
        for bit in 0..8 {
            let mut damaged = batch.clone();
            damaged[place] ^= 1 << bit;
            refused += usize::from(exercise(&damaged).is_err());
        }
        for byte in [0, 1, 4, 0x7f, 0x80, 0xff] {
            let mut damaged = batch.clone();
            damaged[place] = byte;
            let _ = exercise(&damaged);
        }
    }
    assert!(refused > batch.len());
    for length in 0..batch.len() {
        assert!(exercise(&batch[..length]).is_err(), "{length}");
    }
}

#[test]
fn bulk_adders_and_slices_give_the_same_batch() {
    let (ts, series, value) = ([1_i64, 2, 3], [7_i32, 8, 9], [0.5_f64, f64::NAN, -0.0]);
    let mut builder = BatchBuilder::new();
    builder.add_column("ts", ColumnType::Timestamp).unwrap();
    builder.add_column("series", ColumnType::Int32).unwrap();
    builder.add_column("value", ColumnType::Float64).unwrap();
    builder.column(0).extend_i64(&ts).unwrap();
    builder.column(1).extend_i32(&series).unwrap();
    builder.column(2).extend_f64(&value).unwrap();
    let mut built = Vec::new();
    builder.finish(&mut built).unwrap();

    let columns = [
        ("ts", ValuesSource::Timestamp(&ts)),
        ("series", ValuesSource::Int32(&series)),
        ("value", ValuesSource::Float64(&value)),
    ]
    .map(|(name, values)| ColumnSource {
        name,
        values,
        validity: None,
    });
    let mut encoded = vec![9; 100];
    encode(3, &columns, &mut encoded).unwrap();
    assert_eq!(built, encoded);
    let view = BatchView::verify(&encoded).unwrap();
    let values = view.column("value").unwrap().values().arrays().unwrap();
    assert_eq!(f64::from_le_bytes(values[1]).to_bits(), f64::NAN.to_bits());
    assert!(f64::from_le_bytes(values[2]).is_sign_negative());
}

#[test]
fn bulk_after_null_keeps_validity() {
    let mut builder = BatchBuilder::new();
    let column = builder.add_column("c", ColumnType::Int16).unwrap();
    builder.column(column).extend_i16(&[1; 9]).unwrap();
    builder.column(column).push_null();
    builder.column(column).extend_i16(&[2; 9]).unwrap();
    let mut batch = Vec::new();
    builder.finish(&mut batch).unwrap();
    let view = BatchView::verify(&batch).unwrap();
    let nulls: Vec<usize> = (0..19)
        .filter(|row| view.columns()[0].is_null(*row))
        .collect();
    assert_eq!(nulls, [9]);
}

/// The vectors of a gateway's batch lie where a copy is fastest.
#[test]
fn vectors_lie_at_multiples_of_eight() {
    let columns: Vec<Model> = [ColumnType::Int16, ColumnType::Float64, ColumnType::Bytes]
        .map(|column_type| Model {
            column_type,
            values: vec![Some(vec![1; column_type.width().unwrap_or(11)]), None, None],
        })
        .to_vec();
    let batch = build(&columns);
    let view = BatchView::verify(&batch).unwrap();
    for column in view.columns() {
        if let Values::Fixed { bytes, .. } = column.values() {
            assert_eq!((bytes.as_ptr().addr() - batch.as_ptr().addr()) % 8, 0);
        }
    }
}

#[test]
fn a_hundred_events_fit_in_1720_bytes() {
    let mut builder = BatchBuilder::new();
    builder.add_column("ts", ColumnType::Timestamp).unwrap();
    builder.add_column("service", ColumnType::Text).unwrap();
    builder.add_column("duration", ColumnType::Float32).unwrap();
    builder.add_column("is_error", ColumnType::Bool).unwrap();
    for event in 0..100 {
        builder
            .column(0)
            .push_i64(1_700_000_000_000_000 + event)
            .unwrap();
        builder
            .column(1)
            .push_text(&format!("service-{}", event % 10))
            .unwrap();
        builder.column(2).push_f32(event as f32).unwrap();
        builder.column(3).push_bool(event % 7 == 0).unwrap();
    }
    let mut batch = Vec::new();
    builder.finish(&mut batch).unwrap();
    exercise(&batch).unwrap();
    assert!(batch.len() <= 1_720, "{} bytes", batch.len());
}

#[test]
fn text_that_repeats_is_a_dictionary_and_other_text_is_plain() {
    let mut builder = BatchBuilder::new();
    builder.add_column("repeats", ColumnType::Text).unwrap();
    builder.add_column("differs", ColumnType::Text).unwrap();
    builder.add_column("outgrows", ColumnType::Text).unwrap();
    let rows = limits::DICTIONARY_ITEMS_FLOOR + 1_000;
    for row in 0..rows {
        builder
            .column(0)
            .push_text(["api", "web"][row % 2])
            .unwrap();
        builder
            .column(1)
            .push_text(&format!("{}", row % 60_000))
            .unwrap();
        builder
            .column(2)
            .push_text(&format!("request {row}"))
            .unwrap();
    }
    let mut batch = Vec::new();
    builder.finish(&mut batch).unwrap();
    let view = BatchView::verify(&batch).unwrap();
    let [repeats, differs, outgrows] = view.columns() else {
        panic!("three columns")
    };
    assert!(matches!(repeats.values(), Values::Codes { .. }));
    assert!(matches!(differs.values(), Values::Items(_)));
    assert!(matches!(outgrows.values(), Values::Items(_)));
    for row in [0, 1, 59_999, 60_000, 65_536, rows - 1] {
        assert_eq!(repeats.item(row), Some(["api", "web"][row % 2].as_bytes()));
        assert_eq!(
            differs.item(row),
            Some(format!("{}", row % 60_000).as_bytes())
        );
        assert_eq!(
            outgrows.item(row),
            Some(format!("request {row}").as_bytes())
        );
    }
}

#[test]
fn codes_are_as_wide_as_the_items_need() {
    for (items, code_bytes) in [(1, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 4)] {
        let codes: Vec<u32> = (0..items).rev().collect();
        let item_ends: Vec<u32> = (1..=items).map(|item| item * 8).collect();
        let item_bytes = vec![b'x'; items as usize * 8];
        let column = ColumnSource {
            name: "c",
            values: ValuesSource::Text(ItemsSource::Dictionary {
                codes: &codes,
                item_ends: &item_ends,
                item_bytes: &item_bytes,
            }),
            validity: None,
        };
        let mut batch = Vec::new();
        encode(codes.len(), &[column], &mut batch).unwrap();
        let view = BatchView::verify(&batch).unwrap();
        let Values::Codes { codes: read, .. } = view.columns()[0].values() else {
            panic!("codes")
        };
        let found = match read {
            lanes_wire::Codes::U8(_) => 1,
            lanes_wire::Codes::U16(_) => 2,
            lanes_wire::Codes::U32(_) => 4,
        };
        assert_eq!(found, code_bytes);
        let mut wide = Vec::new();
        read.widen_into(&mut wide);
        assert_eq!(wide, codes);
    }
}

#[test]
fn builders_refuse_what_readers_would() {
    let mut out = b"before".to_vec();
    let source = |name, values| ColumnSource {
        name,
        values,
        validity: None,
    };
    let numbers = source("c", ValuesSource::Int16(&[1, 2]));
    let cases: Vec<(usize, Vec<ColumnSource<'_>>)> = vec![
        (limits::ROWS_MAX + 1, vec![numbers]),
        (1, vec![]),
        (1, vec![numbers]),
        (2, vec![numbers, numbers]),
        (2, vec![source("", ValuesSource::Int16(&[1, 2]))]),
        (2, vec![source("a\0", ValuesSource::Int16(&[1, 2]))]),
        (
            2,
            vec![ColumnSource {
                validity: Some(&[1, 1]),
                ..numbers
            }],
        ),
        (
            1,
            vec![source(
                "c",
                ValuesSource::Text(ItemsSource::Dictionary {
                    codes: &[1],
                    item_ends: &[1],
                    item_bytes: b"a",
                }),
            )],
        ),
        (
            2,
            vec![source(
                "c",
                ValuesSource::Bytes(ItemsSource::Plain {
                    ends: &[2, 1],
                    bytes: b"a",
                }),
            )],
        ),
        (
            1,
            vec![source(
                "c",
                ValuesSource::Bytes(ItemsSource::Plain {
                    ends: &[2],
                    bytes: b"a",
                }),
            )],
        ),
    ];
    for (case, (rows, columns)) in cases.iter().enumerate() {
        assert!(encode(*rows, columns, &mut out).is_err(), "case {case}");
        assert_eq!(out, b"before");
    }

    let mut builder = BatchBuilder::new();
    let c = builder.add_column("c", ColumnType::Text).unwrap();
    assert!(builder.add_column("c", ColumnType::Bool).is_err());
    assert!(builder.add_column("", ColumnType::Bool).is_err());
    assert_eq!(
        builder.column(c).push_text("a\0"),
        Err(BuildError::NulInText)
    );
    assert!(builder.column(c).push_bytes(b"a").is_err());
    assert!(builder.column(c).push_i16(1).is_err());
    builder.column(c).push_text("a").unwrap();
    builder.add_column("d", ColumnType::Bool).unwrap();
    assert_eq!(
        builder.finish(&mut out),
        Err(BuildError::ColumnRows {
            name: "d".into(),
            rows: 0,
            expected: 1
        })
    );
}
