//! Images: what is written is read again, small ones are small, and damaged ones do no harm.

use proptest::prelude::*;

use super::*;
use crate::kind::Number;
use crate::limits::IMAGE_BYTES_MAX;
use crate::test_support::{
    INT4, INT8, NUMERIC, TEXT, Value, any_kind, any_value, assert_column, build, cases, value,
};

/// Enough for a dictionary to be given up.
const ROWS_MAX: usize = if cfg!(miri) { 300 } else { 700 };

fn image_of(columns: &[Column]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let rows = columns.first().map_or(0, Column::rows);
    encode(columns, rows, &mut bytes).unwrap();
    bytes
}

fn sealed_image_of(columns: &[Column]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let rows = columns.first().map_or(0, Column::rows);
    let starts = (1..rows as u32).filter(|row| row % 5 == 0);
    encode_sealed(columns, rows, &starts.collect::<Vec<_>>(), &mut bytes).unwrap();
    bytes
}

/// Makes bytes pass the checksum, so that tests reach what lies behind it.
pub(crate) fn vouch_for(bytes: &mut [u8]) {
    if bytes.len() >= CHECKED_OFFSET {
        let sum = checksum(&bytes[CHECKED_OFFSET..]);
        bytes[CHECKSUM_OFFSET..CHECKED_OFFSET].copy_from_slice(&sum.to_le_bytes());
    }
}

fn any_columns() -> impl Strategy<Value = Vec<(LaneKind, Vec<Value>)>> {
    let rows = prop_oneof![Just(0_usize), Just(1), 0..10_usize, 200..ROWS_MAX];
    rows.prop_flat_map(|rows| {
        let column = (any_kind(), prop_oneof![Just(1_u32), Just(4), Just(3_000)]).prop_flat_map(
            move |(kind, variety)| {
                let values = prop::collection::vec(any_value(kind, variety), rows);
                (Just(kind), values)
            },
        );
        prop::collection::vec(column, 0..6)
    })
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn what_is_written_is_read_again(columns in any_columns(), sealed in any::<bool>()) {
        let built = columns
            .iter()
            .map(|(kind, values)| build(*kind, values))
            .collect::<Vec<_>>();
        let mut bytes = b"before".to_vec();
        bytes.extend(if sealed { sealed_image_of(&built) } else { image_of(&built) });
        let image = Image::parse(&bytes[6..]).unwrap();
        prop_assert_eq!(image.columns(), columns.len());
        for (index, (kind, values)) in columns.iter().enumerate() {
            prop_assert_eq!(image.rows(), values.len());
            // Twice: decoding appends.
            let mut column = Column::new(*kind);
            image.decode(index, *kind, None, &mut column).unwrap();
            assert_column(&column, values);
            image.decode(index, *kind, None, &mut column).unwrap();
            assert_column(&column, &[values.as_slice(), values].concat());
        }
    }

    #[test]
    fn what_is_fetched_for_some_rows_is_enough_to_decode_them(
        columns in any_columns(),
        from in any::<prop::sample::Index>(),
        count in 0..20_usize,
        stale in any::<u8>(),
    ) {
        let built: Vec<Column> = columns.iter().map(|(kind, values)| build(*kind, values)).collect();
        let bytes = sealed_image_of(&built);
        let rows = built.first().map_or(0, Column::rows);
        let from = from.index(rows + 1);
        let wanted = from..(from + count).min(rows);
        let kinds: Vec<LaneKind> = columns.iter().map(|(kind, _)| *kind).collect();
        // A buffer with bytes of another image.
        let mut buffer = vec![stale; bytes.len()];
        Image::fetch(&mut buffer, &kinds, wanted.clone(), &mut |buffer, range| {
            buffer[range.clone()].copy_from_slice(&bytes[range]);
            Ok(())
        })
        .unwrap();
        let image = Image::reparse(&buffer).unwrap();
        for (index, (kind, values)) in columns.iter().enumerate() {
            let mut column = Column::new(*kind);
            image.decode_range(index, *kind, None, wanted.clone(), &mut column).unwrap();
            assert_column(&column, &values[wanted.clone()]);
        }
    }

    #[test]
    fn damage_is_noticed(columns in any_columns(), at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let built = columns.iter().map(|(kind, values)| build(*kind, values)).collect::<Vec<_>>();
        let mut bytes = image_of(&built);
        let at = at.index(bytes.len());
        prop_assert!(Image::parse(&bytes[..at]).is_err());
        bytes[at] ^= flip;
        prop_assert!(Image::parse(&bytes).is_err());
    }

    #[test]
    fn hostile_bytes_do_no_harm(
        columns in any_columns(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        kind in any_kind(),
        sealed in any::<bool>(),
    ) {
        let built = columns.iter().map(|(kind, values)| build(*kind, values)).collect::<Vec<_>>();
        let mut bytes = if sealed { sealed_image_of(&built) } else { image_of(&built) };
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut.index(4) == 0 {
            bytes.truncate(cut.index(bytes.len()));
        }
        vouch_for(&mut bytes);
        if let Ok(image) = Image::parse(&bytes) {
            for (index, (own, _)) in columns.iter().enumerate() {
                for kind in [*own, kind] {
                    let before = [value(kind, 3)];
                    let mut column = build(kind, &before);
                    match image.decode(index, kind, None, &mut column) {
                        Ok(()) => {
                            prop_assert_eq!(column.rows(), 1 + image.rows());
                            read_all(&column);
                        }
                        Err(_) => assert_column(&column, &before),
                    }
                }
            }
        }
    }
}

#[test]
fn integers_close_to_each_other_take_few_bytes() {
    let check = |kind: LaneKind, values: &[Option<i64>], body_bytes: Option<usize>| {
        let LaneKind::Fixed { width, .. } = kind else {
            unreachable!()
        };
        let values: Vec<Value> = values
            .iter()
            .map(|value| value.map(|value| value.to_le_bytes()[..usize::from(width)].to_vec()))
            .collect();
        let bytes = image_of(&[build(kind, &values)]);
        let image = Image::parse(&bytes).unwrap();
        let is_offsets = image.columns[0].encoding & ENCODING_MASK == OFFSETS;
        assert_eq!(
            is_offsets.then_some(image.columns[0].body.len()),
            body_bytes
        );
        let mut column = Column::new(kind);
        image.decode(0, kind, None, &mut column).unwrap();
        assert_column(&column, &values);
    };
    let int2 = LaneKind::Fixed {
        width: 2,
        stride: 2,
        number: Number::Signed,
    };
    let ten = |step: i64, base: i64| (0..10).map(|i| Some(base + i * step)).collect::<Vec<_>>();
    check(int2, &ten(-28, -5), Some(2 + 10));
    check(INT4, &ten(7_000, -30_000), Some(4 + 20));
    check(INT4, &ten(8_000, -30_000), None);
    check(INT8, &ten(1, i64::MIN), Some(8 + 10));
    check(INT8, &ten(1_000, i64::MAX - 9_000), Some(8 + 20));
    check(INT8, &ten(477_218_588, -7), Some(8 + 40));
    check(INT8, &ten(477_218_589, -7), None);
    check(INT8, &[Some(i64::MIN), Some(i64::MAX), Some(0)], None);
    // Too few rows to pay for the base; a NULL, whose bytes are zero, is not in the way.
    check(INT8, &ten(1, 1 << 40)[..1], None);
    let mut with_null = ten(1, 1 << 40);
    with_null[3] = None;
    check(INT8, &with_null, Some(2 + 8 + 10));
}

/// Touches every row, for Miri.
fn read_all(column: &Column) {
    let lane = column.lane();
    for row in 0..column.rows() {
        // SAFETY: the row exists and the column is borrowed.
        unsafe {
            if !lane.is_null(row) {
                lane.bool(row);
                std::hint::black_box(lane.pointer(row));
            }
        }
    }
}

#[test]
fn of_long_items_one_vector_is_fetched() {
    let kind = LaneKind::Varlena {
        dictionary: false,
        packed: true,
    };
    let rows = 4 * crate::limits::VECTOR_ROWS;
    let values = (0..rows).map(|row| Some(format!("{row:0>40}{}", row * 7919).into_bytes()));
    let bytes = sealed_image_of(&[build(kind, &values.collect::<Vec<_>>())]);
    let (mut buffer, mut fetched) = (vec![0; bytes.len()], 0);
    Image::fetch(&mut buffer, &[kind], 5000..5001, &mut |buffer, range| {
        fetched += range.len();
        buffer[range.clone()].copy_from_slice(&bytes[range]);
        Ok(())
    })
    .unwrap();
    assert!(fetched < bytes.len() / 3, "{fetched} of {}", bytes.len());
    // A fetch of rows past the last one returns an error. So does a fetch from an image whose head is zeros.
    assert!(Image::fetch(&mut buffer, &[kind], 0..rows + 1, &mut |_, _| Ok(())).is_err());
    assert!(Image::fetch(&mut [0; 30], &[kind], 0..1, &mut |_, _| Ok(())).is_err());
}

#[test]
fn one_row_is_small() {
    let columns = [
        build(INT8, &[value(INT8, 1)]),
        build(TEXT, &[Some(b"\x09abc".to_vec())]),
        build(LaneKind::Bool, &[Some(vec![1])]),
        build(INT4, &[None]),
        build(LaneKind::Absent, &[None]),
    ];
    let payload = 8 + 4 + 1;
    assert_eq!(image_of(&columns).len(), 7 + 2 * columns.len() + payload);
}

#[test]
fn constants_and_dictionaries_are_small() {
    let rows = if cfg!(miri) { 600 } else { 60_000 };
    let mut constant = Column::new(INT8);
    constant.push_repeated(Some(&[7; 8]), rows);
    assert!(image_of(&[constant]).len() < 32);

    let mut few = Column::new(TEXT);
    for row in 0..rows {
        few.push_item([b"north".as_slice(), b"south", b"east"][row % 3]);
    }
    assert!(image_of(&[few]).len() < rows + 64);
}

#[test]
fn padding_is_not_stored() {
    let kind = LaneKind::Fixed {
        width: 12,
        stride: 16,
        number: Number::Opaque,
    };
    let values = (0..100).map(|n| value(kind, n)).collect::<Vec<_>>();
    assert!(image_of(&[build(kind, &values)]).len() < 12 * values.len() + 32);
}

#[test]
fn large_dictionaries_take_wider_codes() {
    for distinct in [600_u32, 30_000] {
        if cfg!(miri) && distinct > 1_000 {
            continue;
        }
        let mut column = Column::new(TEXT);
        let item = |number: u32| number.to_le_bytes();
        for number in (0..distinct).chain(0..distinct) {
            column.push_item(&item(number / 2 * 2));
        }
        let bytes = image_of(&[column]);
        let mut decoded = Column::new(TEXT);
        let image = Image::parse(&bytes).unwrap();
        image.decode(0, TEXT, None, &mut decoded).unwrap();
        let expected = (0..distinct)
            .chain(0..distinct)
            .map(|number| Some(item(number / 2 * 2).to_vec()))
            .collect::<Vec<_>>();
        assert_column(&decoded, &expected);
    }
}

#[test]
fn columns_added_later_take_the_missing_value() {
    let bytes = image_of(&[build(INT4, &[value(INT4, 1), value(INT4, 2)])]);
    let image = Image::parse(&bytes).unwrap();
    let mut column = Column::new(TEXT);
    image.decode(1, TEXT, Some(b"new"), &mut column).unwrap();
    image.decode(1, TEXT, None, &mut column).unwrap();
    let new = Some(b"new".to_vec());
    assert_column(&column, &[new.clone(), new, None, None]);
    let mut number = Column::new(INT8);
    let wrong = image.decode(1, INT8, Some(&[1]), &mut number);
    assert_eq!(wrong, Err(Error::WidthDiffers { width: 8, bytes: 1 }));
}

#[test]
fn a_dropped_column_reads_as_null() {
    let bytes = image_of(&[build(INT4, &[value(INT4, 1), value(INT4, 2)])]);
    let image = Image::parse(&bytes).unwrap();
    let mut column = Column::new(LaneKind::Absent);
    image
        .decode(0, LaneKind::Absent, None, &mut column)
        .unwrap();
    assert_column(&column, &[None, None]);
}

#[test]
fn another_kind_is_refused() {
    let numbers = |count| (0..count).map(|n| value(INT4, n)).collect::<Vec<_>>();
    for count in [1, 5] {
        let bytes = image_of(&[build(INT4, &numbers(count))]);
        let image = Image::parse(&bytes).unwrap();
        let wider = image.decode(0, INT8, None, &mut Column::new(INT8));
        assert_eq!(wider, Err(Error::WidthDiffers { width: 8, bytes: 4 }));
        for kind in [TEXT, NUMERIC, LaneKind::Bool] {
            let refused = image.decode(0, kind, None, &mut Column::new(kind));
            assert!(
                matches!(refused, Err(Error::KindDiffers { .. })),
                "{kind:?}"
            );
        }
    }
    let bytes = image_of(&[build(INT4, &numbers(1))]);
    let refused = Image::parse(&bytes)
        .unwrap()
        .decode(0, INT4, None, &mut Column::new(INT8));
    assert!(matches!(refused, Err(Error::KindDiffers { .. })));
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_written() {
    let mut out = b"kept".to_vec();
    let one = |rows| {
        let mut column = Column::new(LaneKind::Absent);
        column.push_repeated(None, rows);
        column
    };
    let rows = IMAGE_ROWS_MAX + 1;
    assert_eq!(
        encode(&[one(rows)], rows, &mut out),
        Err(Error::TooManyRows { rows: rows as u64 })
    );
    assert_eq!(
        encode(&[one(2), one(3)], 2, &mut out),
        Err(Error::RowsDiffer {
            column: 1,
            rows: 3,
            expected: 2
        })
    );
    let many = (0..=COLUMNS_MAX).map(|_| one(0)).collect::<Vec<_>>();
    assert!(matches!(
        encode(&many, 0, &mut out),
        Err(Error::TooManyColumns { .. })
    ));
    assert_eq!(out, b"kept");
}

#[test]
fn an_image_past_the_limit_is_refused() {
    // One item of 64 KiB, repeated beside a different one so that it is no constant: stored once in
    // memory, once a row in the image.
    let mut column = Column::new(NUMERIC);
    column.push_item(b"other");
    column.push_repeated(Some(&[7; 65_536]), 20_000);
    let rows = column.rows();
    let mut out = Vec::new();
    assert!(matches!(
        encode(&[column], rows, &mut out),
        Err(Error::ImageTooLarge { bytes }) if bytes > IMAGE_BYTES_MAX
    ));
    assert!(out.is_empty());
}

#[test]
fn hostile_outlines_are_refused() {
    let parse = |body: &[u8]| {
        let mut bytes = [&[VERSION, 0, 0, 0, 0], body].concat();
        vouch_for(&mut bytes);
        Image::parse(&bytes).map(|_| ())
    };
    assert_eq!(parse(&[]), Err(Error::Truncated));
    assert!(parse(&[0, 0]).is_ok());
    assert!(matches!(
        parse(&[0x81, 0x80, 0x04, 0]),
        Err(Error::TooManyRows { rows: 65_537 })
    ));
    assert!(matches!(
        parse(&[1, 0xc1, 0x0c]),
        Err(Error::TooManyColumns { columns: 1_601 })
    ));
    assert_eq!(parse(&[1, 1, VALUES, 5, 1]), Err(Error::Truncated));
    assert!(matches!(
        parse(&[1, 1, VALUES, 0, 1]),
        Err(Error::Malformed(_))
    ));
    assert!(matches!(
        parse(&[0xff, 0xff, 0xff, 0xff, 0xff, 0]),
        Err(Error::Malformed(_))
    ));
    assert_eq!(
        Image::parse(&[9, 0, 0, 0, 0]).map(|_| ()),
        Err(Error::Version { version: 9 })
    );
}

#[test]
fn hostile_bodies_are_refused() {
    let decode = |rows: u8, encoding: u8, body: &[u8], kind| {
        let head = [VERSION, 0, 0, 0, 0, rows, 1, encoding, body.len() as u8];
        let mut bytes = [&head, body].concat();
        vouch_for(&mut bytes);
        let image = Image::parse(&bytes).unwrap();
        image.decode(0, kind, None, &mut Column::new(kind))
    };
    let malformed = |result| matches!(result, Err(Error::Malformed(_)));
    // A code outside, more items than bytes, a bool of 2, stray bits, an unknown encoding.
    assert!(matches!(
        decode(2, DICTIONARY, &[1, 1, b'a', 0, 1], TEXT),
        Err(Error::CodeOutside { code: 1, items: 1 })
    ));
    assert_eq!(
        decode(1, DICTIONARY, &[0xff, 0xff, 0xff, 0xff, 0x0f, 1], TEXT),
        Err(Error::Truncated)
    );
    assert_eq!(decode(2, ITEMS, &[1, 9, b'a'], TEXT), Err(Error::Truncated));
    assert!(malformed(decode(2, ITEMS, &[1, 0, b'a', b'b'], TEXT)));
    assert!(malformed(decode(1, ONE_BOOL, &[2], LaneKind::Bool)));
    assert!(malformed(decode(1, BOOLS, &[2], LaneKind::Bool)));
    assert!(malformed(decode(1, ALL_NULL, &[2], INT4)));
    assert!(malformed(decode(
        3,
        VALUES | HAS_VALIDITY,
        &[0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        INT4
    )));
    for encoding in [10, 31, SEALED | 1 << WIDTH_SHIFT, ITEMS | 3 << WIDTH_SHIFT] {
        assert_eq!(
            decode(0, encoding, &[], TEXT),
            Err(Error::Encoding { encoding })
        );
    }
}

/// Open rows and sealed ones, as segments have them in files and in object storage.
#[cfg(not(miri))]
#[test]
fn images_that_were_written_once_are_read_as_ever() {
    let kinds = [INT4, INT8, TEXT, NUMERIC, LaneKind::Bool];
    let values = kinds.map(|kind| -> Vec<Value> {
        let value = |row: u32| (row % 7 != 3).then(|| value(kind, row % 11).unwrap_or_default());
        (0..40).map(value).collect()
    });
    let columns = [0, 1, 2, 3, 4].map(|index: usize| build(kinds[index], &values[index]));
    for (name, today) in [
        ("golden/image_open", image_of(&columns)),
        ("golden/image_sealed", sealed_image_of(&columns)),
    ] {
        let kept = crate::test_support::golden(name, &today);
        let image = Image::parse(&kept).unwrap();
        for (index, (kind, values)) in kinds.iter().zip(&values).enumerate() {
            let mut column = Column::new(*kind);
            image.decode(index, *kind, None, &mut column).unwrap();
            assert_column(&column, values);
        }
    }
}

#[test]
fn all_items_of_a_sealed_image_are_asked_about_before_it_is_trusted() {
    let texts: Vec<Value> = (0..2_000_u32)
        .map(|row| (row % 7 != 3).then(|| format!("text {}", row % 3).into_bytes()))
        .collect();
    let numerics: Vec<Value> = (0..2_000_u32)
        .map(|row| (row % 5 != 1).then(|| row.to_le_bytes().to_vec()))
        .collect();
    let numbers: Vec<Value> = (0..2_000_i32)
        .map(|row| Some(row.to_le_bytes().to_vec()))
        .collect();
    let columns = [
        build(TEXT, &texts),
        build(INT4, &numbers),
        build(NUMERIC, &numerics),
    ];
    let bytes = sealed_image_of(&columns);
    let image = Image::parse(&bytes).unwrap();
    let mut asked = std::collections::BTreeSet::new();
    let everything = |column: usize, item: &[u8]| asked.insert((column, item.to_vec())) | true;
    assert_eq!(image.verify_sealed(everything), Ok(()));
    let of = |column: usize, values: &[Value]| -> std::collections::BTreeSet<_> {
        let values = values.iter().flatten();
        values.map(|value| (column, value.clone())).collect()
    };
    let mut expected = of(0, &texts);
    expected.extend(of(2, &numerics));
    assert_eq!(asked, expected);
    // One rejected item of each sort, in the last vector.
    for (column, bad) in [
        (0, b"text 2".to_vec()),
        (2, numerics[1_999].clone().unwrap()),
    ] {
        let likes = |place: usize, item: &[u8]| (place, item) != (column, &bad[..]);
        let refused = image.verify_sealed(likes);
        assert!(matches!(refused, Err(Error::EncodedLane(_))), "{refused:?}");
    }
    // Open rows never are in object storage.
    let open = image_of(&columns);
    let refused = Image::parse(&open).unwrap().verify_sealed(|_, _| true);
    assert!(
        matches!(refused, Err(Error::Encoding { .. })),
        "{refused:?}"
    );
}

#[test]
fn codes_outside_the_dictionary_are_found_before_an_image_is_trusted() {
    let texts: Vec<Value> = (0..300_u32)
        .map(|row| Some(format!("text {}", row * 7 % 5).into_bytes()))
        .collect();
    let bytes = sealed_image_of(&[build(TEXT, &texts)]);
    let lane = Image::parse(&bytes).unwrap().sealed_lane(0).unwrap();
    let mut refused = 0;
    for place in lane {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0b100;
        vouch_for(&mut damaged);
        let image = Image::parse(&damaged).unwrap();
        let decoded = image.decode(0, TEXT, None, &mut Column::new(TEXT));
        // An image that was verified can be decoded.
        match image.verify_sealed(|_, _| true) {
            Ok(()) => assert!(
                matches!(decoded, Ok(()) | Err(Error::KindDiffers { .. })),
                "byte {place}: {decoded:?}"
            ),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0);
}
