//! Each rule of the format, broken once.

mod common;

use common::{RawColumn, RawDictionary, build, ends, raw};
use lanes_wire::{
    BatchError, BatchView, ColumnError, ColumnSource, ColumnType, ValuesSource, encode, limits,
};

fn refuse(rows: u32, columns: &[RawColumn]) -> BatchError {
    let batch = build(rows, columns, 0, "LNB1");
    BatchView::verify(&batch).expect_err("a broken rule")
}

fn refuse_column(rows: u32, column: RawColumn) -> ColumnError {
    match refuse(rows, &[column]) {
        BatchError::Column { name, error } => {
            assert_eq!(name, "c");
            error
        }
        other => panic!("{other}"),
    }
}

fn accept(rows: u32, columns: &[RawColumn]) {
    lanes_wire::exercise(&build(rows, columns, 0, "LNB1")).expect("a batch");
}

fn dictionary(codes: &[u8], code_bytes: u8, item_ends: &[u32], item_bytes: &[u8]) -> RawColumn {
    RawColumn {
        dictionary: Some(RawDictionary {
            code_bytes,
            item_ends: item_ends.to_vec(),
            item_bytes: item_bytes.to_vec(),
        }),
        ..raw("c", ColumnType::Text.code(), codes)
    }
}

fn plain(item_ends: &[u32], bytes: &[u8]) -> RawColumn {
    RawColumn {
        bytes: Some(bytes.to_vec()),
        ..raw("c", ColumnType::Text.code(), &ends(item_ends))
    }
}

#[test]
fn not_a_batch() {
    for bytes in [&b""[..], b"LNB1", b"{\"rows\": 1}", &[0; 64]] {
        assert_eq!(BatchView::verify(bytes).unwrap_err(), BatchError::NotABatch);
    }
    let other = build(0, &[], 0, "LNB2");
    assert_eq!(
        BatchView::verify(&other).unwrap_err(),
        BatchError::NotABatch
    );
}

#[test]
fn root_leaves_the_buffer() {
    for root in [0_u32, 7, 8, 1_000, u32::MAX] {
        let mut bytes = root.to_le_bytes().to_vec();
        bytes.extend(b"LNB1\0\0\0\0");
        assert!(matches!(
            BatchView::verify(&bytes).unwrap_err(),
            BatchError::Malformed { .. }
        ));
    }
}

#[test]
fn unknown_features() {
    let batch = build(0, &[], 4, "LNB1");
    assert_eq!(
        BatchView::verify(&batch).unwrap_err(),
        BatchError::UnknownFeatures { bits: 4 }
    );
}

#[test]
fn rows_and_columns_are_bounded() {
    let rows = limits::ROWS_MAX as u32 + 1;
    assert_eq!(
        refuse(rows, &[raw("c", 1, &[])]),
        BatchError::TooManyRows {
            rows: rows as usize
        }
    );
    let columns: Vec<_> = (0..1_601).map(|i| raw(&format!("c{i}"), 1, &[0])).collect();
    assert_eq!(
        refuse(1, &columns),
        BatchError::TooManyColumns { columns: 1_601 }
    );
    accept(1, &columns[..1_600]);
    assert_eq!(refuse(1, &[]), BatchError::NoColumns { rows: 1 });
    accept(0, &[]);
}

#[test]
fn names() {
    let long = "n".repeat(64);
    let wrong: [(Option<&[u8]>, &str); 5] = [
        (None, "no name"),
        (Some(b""), "empty"),
        (Some(long.as_bytes()), "longer"),
        (Some(b"a\0b"), "NUL"),
        (Some(b"\xff"), "UTF-8"),
    ];
    for (name, reason) in wrong {
        let column = RawColumn {
            name: name.map(<[u8]>::to_vec),
            ..raw("", 1, &[0])
        };
        match refuse(1, &[raw("fine", 1, &[0]), column]) {
            BatchError::ColumnName { index: 1, problem } => assert!(problem.contains(reason)),
            other => panic!("{other}"),
        }
    }
    accept(1, &[raw(&long[1..], 1, &[0])]);
}

#[test]
fn names_are_distinct_in_narrow_and_wide_batches() {
    for columns in [2, 16, 17, 100] {
        let mut columns: Vec<_> = (0..columns)
            .map(|i| raw(&format!("c{i}"), 1, &[0]))
            .collect();
        accept(1, &columns);
        let last = columns.len() - 1;
        columns[last].name = Some(b"c0".to_vec());
        assert_eq!(
            refuse(1, &columns),
            BatchError::DuplicateColumn { name: "c0".into() }
        );
    }
}

#[test]
fn types() {
    for code in [0, 12, 255] {
        assert_eq!(
            refuse_column(1, raw("c", code, &[0])),
            ColumnError::UnknownType { code }
        );
    }
}

#[test]
fn values_fit_the_rows() {
    for (column_type, bytes) in [
        (ColumnType::Bool, 2),
        (ColumnType::Int16, 18),
        (ColumnType::Date, 36),
        (ColumnType::Float64, 72),
        (ColumnType::Uuid, 144),
    ] {
        accept(9, &[raw("c", column_type.code(), &vec![0; bytes])]);
        for found in [0, bytes - 1, bytes + 1] {
            assert_eq!(
                refuse_column(9, raw("c", column_type.code(), &vec![0; found])),
                ColumnError::ValuesLength {
                    bytes: found,
                    expected: bytes
                }
            );
        }
    }
    let mut absent = raw("c", ColumnType::Int16.code(), &[]);
    absent.values = None;
    accept(0, &[absent.clone()]);
    assert_eq!(
        refuse_column(1, absent),
        ColumnError::ValuesLength {
            bytes: 0,
            expected: 2
        }
    );
}

#[test]
fn validity_fits_the_rows() {
    for bytes in [0, 1, 3] {
        let column = RawColumn {
            validity: Some(vec![0xff; bytes]),
            ..raw("c", 1, &[0, 0])
        };
        assert_eq!(
            refuse_column(9, column),
            ColumnError::ValidityLength { bytes, expected: 2 }
        );
    }
}

#[test]
fn a_validity_bitmap_without_nulls_is_none() {
    let column = RawColumn {
        validity: Some(vec![0xff, 1]),
        ..raw("c", 1, &[0, 0])
    };
    let batch = build(9, &[column], 0, "LNB1");
    let view = BatchView::verify(&batch).unwrap();
    assert!(view.columns()[0].validity().is_none());
    assert_eq!(view.columns()[0].null_count(), 0);
}

#[test]
fn dictionaries() {
    accept(2, &[dictionary(&[0, 1], 1, &[1, 2], b"ab")]);
    for code_bytes in [0, 3, 8] {
        assert_eq!(
            refuse_column(2, dictionary(&[0; 16], code_bytes, &[1], b"a")),
            ColumnError::CodeBytes { code_bytes }
        );
    }
    assert_eq!(
        refuse_column(2, dictionary(&[0, 2], 1, &[1, 2], b"ab")),
        ColumnError::CodePastItems { code: 2, items: 2 }
    );
    assert_eq!(
        refuse_column(1, dictionary(&[1, 1], 2, &[1, 2], b"ab")),
        ColumnError::CodePastItems {
            code: 257,
            items: 2
        }
    );
    assert_eq!(
        refuse_column(1, dictionary(&[0, 0, 0, 1], 4, &[1, 2], b"ab")),
        ColumnError::CodePastItems {
            code: 1 << 24,
            items: 2
        }
    );
    assert_eq!(
        refuse_column(3, dictionary(&[0, 1], 1, &[1, 2], b"ab")),
        ColumnError::ValuesLength {
            bytes: 2,
            expected: 3
        }
    );
    let both = RawColumn {
        bytes: Some(vec![]),
        ..dictionary(&[0], 1, &[1], b"a")
    };
    assert_eq!(refuse_column(1, both), ColumnError::UnexpectedBytes);
    let numbers = RawColumn {
        code: ColumnType::Int16.code(),
        ..dictionary(&[0, 0], 1, &[1], b"a")
    };
    assert_eq!(
        refuse_column(1, numbers),
        ColumnError::UnexpectedDictionary {
            column_type: ColumnType::Int16
        }
    );
}

#[test]
fn codes_of_null_rows_need_items_too() {
    let column = RawColumn {
        validity: Some(vec![0]),
        ..dictionary(&[0], 1, &[], b"")
    };
    assert_eq!(
        refuse_column(1, column),
        ColumnError::CodePastItems { code: 0, items: 0 }
    );
}

#[test]
fn a_dictionary_of_empty_items_cannot_outgrow_the_rows() {
    let floor = limits::DICTIONARY_ITEMS_FLOOR;
    accept(1, &[dictionary(&[0], 1, &vec![0; floor], b"")]);
    assert_eq!(
        refuse_column(1, dictionary(&[0], 1, &vec![0; floor + 1], b"")),
        ColumnError::TooManyItems {
            items: floor + 1,
            items_max: floor
        }
    );
    accept(
        floor as u32 + 1,
        &[dictionary(&vec![0; floor + 1], 1, &vec![0; floor + 1], b"")],
    );
}

#[test]
fn ends_ascend_to_the_bytes() {
    accept(3, &[plain(&[0, 2, 2], b"ab")]);
    assert_eq!(
        refuse_column(3, plain(&[2, 1, 2], b"ab")),
        ColumnError::EndsDescend { item: 1 }
    );
    for last in [1, 3, u32::MAX] {
        assert_eq!(
            refuse_column(2, plain(&[0, last], b"ab")),
            ColumnError::EndsMissBytes {
                end: last as usize,
                bytes: 2
            }
        );
    }
    assert_eq!(
        refuse_column(0, plain(&[], b"ab")),
        ColumnError::EndsMissBytes { end: 0, bytes: 2 }
    );
    let absent = raw("c", ColumnType::Text.code(), &ends(&[0, 0]));
    accept(2, &[absent]);
    let fixed = RawColumn {
        bytes: Some(vec![]),
        ..raw("c", ColumnType::Bool.code(), &[0])
    };
    assert_eq!(refuse_column(1, fixed), ColumnError::UnexpectedBytes);
}

#[test]
fn text_is_utf8_item_by_item() {
    accept(2, &[plain(&[2, 3], "\u{e9}a".as_bytes())]);
    assert_eq!(
        refuse_column(1, plain(&[3], b"a\xff\xfe")),
        ColumnError::NotUtf8 { byte: 1 }
    );
    assert_eq!(
        refuse_column(2, plain(&[1, 2], "\u{e9}".as_bytes())),
        ColumnError::SplitCharacter { item: 0 }
    );
    assert_eq!(
        refuse_column(1, plain(&[3], b"a\0b")),
        ColumnError::NulInText
    );
    assert_eq!(
        refuse_column(1, dictionary(&[0], 1, &[1, 2], "\u{e9}".as_bytes())),
        ColumnError::SplitCharacter { item: 0 }
    );
    let bytes = RawColumn {
        code: ColumnType::Bytes.code(),
        ..plain(&[1, 3], b"\xff\0\xc3")
    };
    accept(2, &[bytes]);
}

fn fixed<const N: usize>(column_type: ColumnType, values: &[[u8; N]]) -> RawColumn {
    raw("c", column_type.code(), values.as_flattened())
}

#[test]
fn timestamps_are_ones_that_postgres_can_hold() {
    let column = |values: &[i64]| {
        let values: Vec<_> = values.iter().map(|value| value.to_le_bytes()).collect();
        fixed(ColumnType::Timestamp, &values)
    };
    let least = limits::TIMESTAMP_MICROSECONDS_MIN;
    accept(5, &[column(&[0, least, i64::MIN, i64::MAX, i64::MAX - 1])]);
    for wrong in [least - 1, i64::MIN + 1] {
        assert_eq!(
            refuse_column(2, column(&[0, wrong])),
            ColumnError::TimestampRange { row: 1 }
        );
        let null = RawColumn {
            validity: Some(vec![1]),
            ..column(&[0, wrong])
        };
        accept(2, &[null]);
    }
}

#[test]
fn dates_are_ones_that_postgres_can_hold() {
    let column = |values: &[i32]| {
        let values: Vec<_> = values.iter().map(|value| value.to_le_bytes()).collect();
        fixed(ColumnType::Date, &values)
    };
    let (least, greatest) = (limits::DATE_DAYS_MIN, limits::DATE_DAYS_MAX);
    accept(4, &[column(&[least, greatest, i32::MIN, i32::MAX])]);
    for wrong in [least - 1, greatest + 1, i32::MIN + 1, i32::MAX - 1] {
        assert_eq!(
            refuse_column(2, column(&[0, wrong])),
            ColumnError::DateRange { row: 1 }
        );
    }
}

/// Many columns that refer to one long vector would make a reader do a multiple of the body's work.
#[test]
fn vectors_are_not_shared() {
    let names: Vec<String> = (0..10).map(|index| format!("c{index}")).collect();
    let values = [0x0707_i16; 2_000];
    let columns: Vec<ColumnSource<'_>> = names
        .iter()
        .map(|name| ColumnSource {
            name,
            values: ValuesSource::Int16(&values),
            validity: None,
        })
        .collect();
    let mut batch = Vec::new();
    encode(values.len(), &columns, &mut batch).unwrap();
    // Tables come first and vectors last: point every reference to the first vector and cut the
    // others off.
    let vectors: Vec<usize> = (0..batch.len() - 4_003)
        .filter(|at| batch[*at..*at + 4] == 4_000_u32.to_le_bytes())
        .collect();
    assert_eq!(vectors.len(), 10);
    for hole in (0..vectors[0]).step_by(4) {
        let distance = u32::from_le_bytes(batch[hole..hole + 4].try_into().unwrap()) as usize;
        if vectors.contains(&(hole + distance)) {
            let distance = (vectors[0] - hole) as u32;
            batch[hole..hole + 4].copy_from_slice(&distance.to_le_bytes());
        }
    }
    batch.truncate(vectors[0] + 4_004);
    assert_eq!(
        BatchView::verify(&batch).unwrap_err(),
        BatchError::SharedVectors
    );
}
