//! Encoded and decoded, columns are the same.

use proptest::prelude::*;

use super::{Constant, DecodedVector, EncodedLane, encode_lane, key_starts};
use crate::column::Column;
use crate::error::Error;
use crate::kind::LaneKind;
use crate::limits::VECTOR_ROWS;
use crate::test_support::{
    self, FLOAT8, INT8, Value, any_kind, any_value, assert_lane, build, cases,
};

mod golden;
mod hostile;
mod numbers;
mod series;

/// Rows of a property's columns: over one vector and into the next, unless under Miri.
const ROWS_MAX: usize = if cfg!(miri) { 80 } else { VECTOR_ROWS + 300 };

/// Checks every way to read an encoded lane against the values, and answers the bytes.
pub(super) fn assert_identity(kind: LaneKind, values: &[Value], starts: &[u32]) -> Vec<u8> {
    let column = build(kind, values);
    let bytes = encode_lane(&column, starts).unwrap();
    assert_reads(&bytes, kind, values);
    bytes
}

/// Checks every way to read these bytes against the values.
pub(super) fn assert_reads(bytes: &[u8], kind: LaneKind, values: &[Value]) {
    let lane = EncodedLane::open(bytes, kind).unwrap();
    assert_eq!(lane.rows(), values.len());
    assert_eq!(lane.vectors(), values.len().div_ceil(VECTOR_ROWS));
    let items = lane.dictionary();
    let mut vector = DecodedVector::new();
    for (index, values) in values.chunks(VECTOR_ROWS).enumerate() {
        lane.decode_vector(index, &mut vector);
        assert_eq!(vector.rows(), values.len());
        // SAFETY: the vector and its items are not changed meanwhile and have as many rows.
        unsafe { assert_lane(vector.lane(items.as_ref()), kind, 0, values) };
        if let Some(constant) = lane.constant(index) {
            assert_constant(constant, items.as_ref(), values);
        }
        if let Some(zone) = lane.zone(index) {
            test_support::assert_zone(&zone, kind, values.iter());
        }
        let mut first = 0;
        for (constant, rows) in lane.repeats(index).into_iter().flatten() {
            assert_constant(constant, items.as_ref(), &values[first..first + rows]);
            first += rows;
        }
        assert!(first == 0 || first == values.len());
    }
    for (row, value) in values.iter().enumerate() {
        match lane.point(row).unwrap() {
            Some(point) => assert_constant(point, items.as_ref(), std::slice::from_ref(value)),
            None => assert!(matches!(kind, LaneKind::Varlena { .. }) && items.is_none()),
        }
    }
    assert!(lane.point(values.len()).is_err());
    lane.decode_vector(lane.vectors(), &mut vector);
    assert_eq!(vector.rows(), 0);
    let part = values.len() / 3..values.len() - values.len() / 5;
    for rows in [0..values.len(), part] {
        let mut column = Column::new(kind);
        lane.decode(rows.clone(), &mut column).unwrap();
        test_support::assert_column(&column, &values[rows]);
    }
    assert!(
        lane.decode(0..values.len() + 1, &mut Column::new(kind))
            .is_err()
    );
    assert_eq!(
        lane.encodings().is_empty(),
        values.is_empty(),
        "{:?}",
        lane.encodings()
    );
}

fn assert_constant(constant: Constant<'_>, items: Option<&super::ItemList>, values: &[Value]) {
    for value in values {
        match (constant, value) {
            (Constant::Null, value) => assert_eq!(value, &None),
            (_, None) => panic!("a NULL in a run of values"),
            (Constant::Bits(bits), Some(value)) => {
                assert_eq!(&bits.to_ne_bytes()[..value.len()], value);
            }
            (Constant::Bytes(bytes), Some(value)) => assert_eq!(bytes, value),
            (Constant::Code(code), Some(value)) => {
                assert_eq!(items.unwrap().item(code as usize), value);
            }
        }
    }
}

fn any_column() -> impl Strategy<Value = (LaneKind, Vec<Value>)> {
    (
        any_kind(),
        prop_oneof![1..3_u32, 3..40_u32, 40..100_000_u32],
    )
        .prop_flat_map(|(kind, variety)| {
            let values = prop::collection::vec(any_value(kind, variety), 0..ROWS_MAX);
            (Just(kind), values)
        })
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn any_column_comes_back(
        (kind, values) in any_column(),
        starts in prop::collection::vec(0..ROWS_MAX as u32, 0..20),
        is_sorted in any::<bool>(),
    ) {
        let mut values = values;
        let mut starts = starts;
        if is_sorted {
            values.sort();
            starts.sort();
        }
        assert_identity(kind, &values, &starts);
    }
}

#[test]
fn lanes_without_a_value_are_all_null() {
    for rows in [0, 1, 3 * VECTOR_ROWS] {
        let bytes = assert_identity(FLOAT8, &vec![None; rows], &[]);
        let lane = EncodedLane::open(&bytes, FLOAT8).unwrap();
        assert!(lane.is_null() && bytes.len() < 40, "{}", bytes.len());
    }
}

#[test]
fn a_dropped_column_reads_as_null_and_another_kind_is_refused() {
    let bytes = assert_identity(INT8, &[Some(vec![1; 8]), None], &[]);
    let lane = EncodedLane::open(&bytes, LaneKind::Absent).unwrap();
    assert_eq!(lane.constant(0), Some(Constant::Null));
    let refused = EncodedLane::open(&bytes, FLOAT8).map(|_| ());
    assert!(
        matches!(
            refused,
            Err(Error::KindDiffers {
                found: "integers",
                ..
            })
        ),
        "{refused:?}"
    );
}

// Thousands of rows are too many for Miri.
#[cfg(not(miri))]
#[test]
fn items_that_rows_share_are_stored_once() {
    let kind = LaneKind::Varlena {
        dictionary: false,
        packed: true,
    };
    let long = vec![b'x'; 10_000];
    let mut column = Column::new(kind);
    column.push_repeated(Some(&long), 5_000);
    column.push_item(b"short");
    let bytes = encode_lane(&column, &[]).unwrap();
    assert!(bytes.len() < 11_000, "{}", bytes.len());
    let mut values = vec![Some(long); 5_000];
    values.push(Some(b"short".to_vec()));
    assert_reads(&bytes, kind, &values);
}

#[test]
fn text_that_repeats_itself_is_compressed() {
    let kind = LaneKind::Varlena {
        dictionary: false,
        packed: false,
    };
    let line = |row: usize| {
        format!(
            "GET /api/v1/query?id={} HTTP/1.1 200 {} bytes",
            row * 7919 % 10_007,
            row % 97
        )
    };
    let rows = if cfg!(miri) { 50 } else { 5_000 };
    let values: Vec<Value> = (0..rows).map(|row| Some(line(row).into_bytes())).collect();
    let plain: usize = values.iter().flatten().map(Vec::len).sum();
    let bytes = assert_identity(kind, &values, &[]);
    assert!(bytes.len() < plain / 2, "{} of {plain}", bytes.len());
    let lane = EncodedLane::open(&bytes, kind).unwrap();
    assert_eq!(lane.encodings()[0].0, "compressed");
}

// Thousands of rows are too many for Miri.
#[cfg(not(miri))]
#[test]
fn codes_decode_across_vectors_with_and_without_nulls() {
    let kind = LaneKind::Varlena {
        dictionary: true,
        packed: true,
    };
    let rows = 3 * VECTOR_ROWS + 5;
    let mut values: Vec<Value> = (0..rows)
        .map(|row| Some(format!("item {}", row % 700).into_bytes()))
        .collect();
    assert_identity(kind, &values, &[]);
    // A vector of NULLs, and some NULLs in the next.
    values[VECTOR_ROWS..2 * VECTOR_ROWS + 3].fill(None);
    assert_identity(kind, &values, &[]);
    let bytes = assert_identity(kind, &vec![Some(b"one".to_vec()); rows], &[]);
    let lane = EncodedLane::open(&bytes, kind).unwrap();
    assert_eq!(lane.constant(1), Some(Constant::Code(0)));
    assert_eq!(lane.dictionary().unwrap().item(0), b"one");
}

#[test]
fn keys_start_where_any_column_changes() {
    let longs = |numbers: &[i64]| {
        let value = |number: &i64| Some(number.to_ne_bytes().to_vec());
        build(INT8, &numbers.iter().map(value).collect::<Vec<_>>())
    };
    let left = longs(&[1, 1, 1, 2, 2, 2]);
    let right = longs(&[5, 5, 6, 6, 6, 7]);
    assert_eq!(key_starts(&[&left]), [3]);
    assert_eq!(key_starts(&[&left, &right]), [2, 3, 5]);
    assert_eq!(key_starts(&[]), []);
    let nulls = build(
        INT8,
        &[None, None, Some(vec![0; 8]), Some(vec![0; 8]), None],
    );
    assert_eq!(key_starts(&[&nulls]), [2, 4]);
    let mut hidden = Column::new(INT8);
    hidden.extend_fixed(
        &[1, 2, 3, 3_i64].map(i64::to_ne_bytes).concat(),
        Some(&[0b1100]),
        4,
    );
    assert_eq!(key_starts(&[&hidden]), [2]);
    for dictionary in [false, true] {
        let kind = LaneKind::Varlena {
            dictionary,
            packed: true,
        };
        let item = |item: &str| Some(item.as_bytes().to_vec());
        let items = build(kind, &[item("a"), item("a"), item("ab"), item("b")]);
        assert_eq!(key_starts(&[&items]), [2, 3]);
    }
}
