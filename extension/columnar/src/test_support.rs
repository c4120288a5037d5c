//! Helpers of several tests: columns of any kind, and their model, a list of optional values.

use std::cmp::Ordering;

use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::column::Column;
use crate::kind::{LaneKind, Number, item_align};
use crate::lane::{Lane, LaneData};
use crate::zone_map::{Bound, Zone};

/// The model of a value: the bytes that the column's functions take, `None` for NULL.
pub(crate) type Value = Option<Vec<u8>>;

/// `int4`.
pub(crate) const INT4: LaneKind = fixed(4, Number::Signed);
/// `int8`.
pub(crate) const INT8: LaneKind = fixed(8, Number::Signed);
/// `float8`.
pub(crate) const FLOAT8: LaneKind = fixed(8, Number::Float);
/// `text`.
pub(crate) const TEXT: LaneKind = LaneKind::Varlena {
    dictionary: true,
    packed: true,
};
/// `numeric`.
pub(crate) const NUMERIC: LaneKind = LaneKind::Varlena {
    dictionary: false,
    packed: true,
};

/// Numbers of so many bytes.
const fn fixed(width: u16, number: Number) -> LaneKind {
    LaneKind::Fixed {
        width,
        stride: width,
        number,
    }
}

/// A number of cases. `PROPTEST_CASES` cuts it down, for memcheck and the like; so does Miri, which
/// is a few hundred times slower.
pub(crate) fn cases(count: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES");
    let most = asked.map_or(u32::MAX, |text| {
        text.parse().expect("PROPTEST_CASES is a number")
    });
    Config {
        cases: count.min(if cfg!(miri) { 2 } else { most }),
        failure_persistence: None,
        ..Config::default()
    }
}

/// Any kind of column.
pub(crate) fn any_kind() -> impl Strategy<Value = LaneKind> {
    let fixed = |width, stride, number| {
        Just(LaneKind::Fixed {
            width,
            stride,
            number,
        })
    };
    prop_oneof![
        Just(LaneKind::Absent),
        Just(LaneKind::Bool),
        fixed(2, 2, Number::Signed),
        fixed(4, 4, Number::Signed),
        fixed(8, 8, Number::Signed),
        fixed(4, 4, Number::Float),
        fixed(8, 8, Number::Float),
        fixed(4, 4, Number::Opaque),
        fixed(6, 8, Number::Opaque),
        fixed(16, 16, Number::Opaque),
        fixed(16, 16, Number::Bytes16),
        (any::<bool>(), any::<bool>())
            .prop_map(|(dictionary, packed)| LaneKind::Varlena { dictionary, packed }),
    ]
}

/// Any value of a column of this kind. `variety` bounds the number of distinct values.
pub(crate) fn any_value(kind: LaneKind, variety: u32) -> impl Strategy<Value = Value> {
    prop::option::weighted(0.8, 0..variety).prop_map(move |number| value(kind, number?))
}

/// The value of this kind that goes by a number.
pub(crate) fn value(kind: LaneKind, number: u32) -> Value {
    match kind {
        LaneKind::Absent => None,
        LaneKind::Bool => Some(vec![(number % 2) as u8]),
        LaneKind::Fixed {
            width,
            number: sort @ (Number::Signed | Number::Float),
            ..
        } => Some(numeric(sort, width, number)),
        LaneKind::Fixed {
            number: Number::Bytes16,
            ..
        } => {
            // Some have their first 8 bytes in common.
            let first = u64::from(number / 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            Some([first, number.into()].map(u64::to_be_bytes).concat())
        }
        LaneKind::Fixed { width, .. } => {
            let bytes = number.to_le_bytes();
            Some(bytes.iter().copied().cycle().take(width.into()).collect())
        }
        LaneKind::Varlena { .. } => {
            // Every 17th item is long, so that both alignments occur.
            let length = if number % 17 == 16 { 140 } else { number % 11 };
            let mut item = number.to_le_bytes()[..2].to_vec();
            item.resize(2 + length as usize, b'x');
            Some(item)
        }
    }
}

/// A number, sometimes an extreme or a special one.
fn numeric(sort: Number, width: u16, number: u32) -> Vec<u8> {
    let sign = if number % 2 == 1 { -1 } else { 1 };
    if sort == Number::Signed {
        let value = match number % 19 {
            17 => i64::MIN >> (64 - 8 * width),
            18 => i64::MAX >> (64 - 8 * width),
            _ => sign * i64::from(number),
        };
        return value.to_ne_bytes()[..width.into()].to_vec();
    }
    let value = match number % 19 {
        15 => -0.0,
        16 => f64::NAN,
        17 => f64::NEG_INFINITY,
        18 => f64::INFINITY,
        _ => sign as f64 * f64::from(number),
    };
    match width {
        4 => (value as f32).to_ne_bytes().to_vec(),
        _ => value.to_ne_bytes().to_vec(),
    }
}

/// Appends one value the slow way.
pub(crate) fn push(column: &mut Column, value: &Value) {
    match (value, column.kind()) {
        (None, _) | (_, LaneKind::Absent) => column.push_null(),
        (Some(value), LaneKind::Bool) => column.push_bool(value[0] == 1),
        (Some(value), LaneKind::Fixed { .. }) => column.push_fixed(value),
        (Some(value), LaneKind::Varlena { .. }) => column.push_item(value),
    }
}

/// A column of these values.
pub(crate) fn build(kind: LaneKind, values: &[Value]) -> Column {
    let mut column = Column::new(kind);
    for value in values {
        push(&mut column, value);
    }
    column
}

/// Checks that rows of a lane, from `first` on, are these values.
///
/// # Safety
/// The lane is alive and has that many rows.
pub(crate) unsafe fn assert_lane(lane: Lane, kind: LaneKind, first: usize, values: &[Value]) {
    for (row, value) in (first..).zip(values) {
        // SAFETY: this function's contract; a value that is not NULL has the bytes of its model.
        unsafe {
            assert_eq!(lane.is_null(row), value.is_none(), "NULL of row {row}");
            let Some(value) = value else {
                continue;
            };
            if kind == LaneKind::Bool {
                assert_eq!(lane.bool(row), value[0] == 1, "bool of row {row}");
                continue;
            }
            let pointer = lane.pointer(row);
            let found = std::slice::from_raw_parts(pointer, value.len());
            assert_eq!(found, value, "bytes of row {row}");
            let align = match (kind, lane.data) {
                (LaneKind::Varlena { packed, .. }, _) => item_align(packed, value.len()),
                (_, LaneData::Fixed { stride, .. }) => 1 << stride.trailing_zeros().min(3),
                _ => 1,
            };
            assert_eq!(pointer as usize % align, 0, "alignment of row {row}");
        }
    }
}

/// Checks a whole column.
pub(crate) fn assert_column(column: &Column, values: &[Value]) {
    assert_eq!(column.rows(), values.len());
    let nulls = values.iter().filter(|value| value.is_none()).count();
    assert_eq!(column.null_count(), nulls);
    // SAFETY: the column is borrowed meanwhile and has as many rows as values.
    unsafe { assert_lane(column.lane(), column.kind(), 0, values) };
}

/// The bytes of a file that was written once, for every later version to read, by its path in the
/// sources. With `LANES_WRITE_GOLDEN` set one that is missing is written as it would be today; the
/// others are left alone.
#[cfg(not(miri))]
pub(crate) fn golden(path: &str, today: &[u8]) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src")
        .join(path)
        .with_extension("bin");
    if std::env::var_os("LANES_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, today).unwrap();
    }
    std::fs::read(&path).unwrap()
}

/// Checks that no value is outside the bounds of a zone that is not exact.
pub(crate) fn assert_zone<'v>(
    zone: &Zone,
    kind: LaneKind,
    values: impl Iterator<Item = &'v Value>,
) {
    let LaneKind::Fixed { width, number, .. } = kind else {
        return;
    };
    let bound = |value: &[u8]| {
        let is_negative = value[usize::from(width) - 1] > 127;
        let mut bytes = [if is_negative { 0xff } else { 0 }; 8];
        let low = value.len().min(8);
        bytes[..low].copy_from_slice(&value[..low]);
        match (number, value) {
            (Number::Float, &[a, b, c, d]) => Bound::Float(f32::from_le_bytes([a, b, c, d]).into()),
            (Number::Float, _) => Bound::Float(f64::from_le_bytes(bytes)),
            (Number::Bytes16, value) => {
                let first = u64::from_be_bytes(value[..8].try_into().unwrap());
                Bound::Signed((i128::from(first) - (1 << 63)) as i64)
            }
            _ => Bound::Signed(i64::from_le_bytes(bytes)),
        }
    };
    for value in values.flatten().map(|value| bound(value)) {
        let is_within = zone.minimum.compare(value).is_some_and(Ordering::is_le)
            && zone.maximum.compare(value).is_some_and(Ordering::is_ge);
        assert!(is_within, "{value:?} is outside {zone:?}");
        assert!(zone.non_null > 0 && !zone.exact);
    }
}
