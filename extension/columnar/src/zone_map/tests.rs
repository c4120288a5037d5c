//! Zones against a naive twin that looks at one value after the other.

use proptest::prelude::*;

use super::*;
use crate::test_support::{Value, any_kind, build, cases, value};

/// A value as a bound.
fn bound(kind: LaneKind, value: &[u8]) -> Bound {
    match (number_of(kind), value) {
        (Number::Signed, &[a, b]) => Bound::Signed(i16::from_ne_bytes([a, b]).into()),
        (Number::Signed, &[a, b, c, d]) => Bound::Signed(i32::from_ne_bytes([a, b, c, d]).into()),
        (Number::Signed, value) => Bound::Signed(i64::from_ne_bytes(value.try_into().unwrap())),
        (Number::Float, &[a, b, c, d]) => Bound::Float(f32::from_ne_bytes([a, b, c, d]).into()),
        (Number::Float, value) => Bound::Float(f64::from_ne_bytes(value.try_into().unwrap())),
        (Number::Bytes16, value) => {
            let first = u64::from_be_bytes(value[..8].try_into().unwrap());
            Bound::Signed((i128::from(first) - (1 << 63)) as i64)
        }
        (Number::Opaque, _) => Bound::Unknown,
    }
}

/// Whether `a` comes before `b` in PostgreSQL's order, spelt out.
fn is_less(a: Bound, b: Bound) -> bool {
    match (a, b) {
        (Bound::Signed(a), Bound::Signed(b)) => a < b,
        (Bound::Float(a), Bound::Float(b)) => !a.is_nan() && (b.is_nan() || a < b),
        _ => false,
    }
}

/// The zone of these rows.
pub(crate) fn naive(kind: LaneKind, values: &[Value]) -> Zone {
    let mut zone = Zone::empty(kind);
    let mut last = None;
    for value in values {
        let Some(value) = value else {
            zone.sorted = false;
            continue;
        };
        zone.non_null += 1;
        zone.has_sum = kind == LaneKind::Bool || number_of(kind) == Number::Signed;
        if kind == LaneKind::Bool {
            zone.sum += i128::from(value[0]);
        }
        let bound = bound(kind, value);
        if zone.non_null == 1 || is_less(bound, zone.minimum) {
            zone.minimum = bound;
        }
        if zone.non_null == 1 || is_less(zone.maximum, bound) {
            zone.maximum = bound;
        }
        if let Bound::Float(value) = bound {
            zone.has_nan |= value.is_nan();
            zone.has_infinite |= value.is_infinite();
        }
        if number_of(kind) == Number::Signed {
            zone.sum += i128::from(bound.signed().unwrap_or(0));
        }
        zone.sorted &= number_of(kind) != Number::Bytes16;
        zone.sorted &= last.is_none_or(|last| !is_less(bound, last));
        last = Some(bound);
    }
    zone
}

/// Checks that two zones say the same, where every NaN and every zero is as good as another.
pub(crate) fn assert_zone(found: &Zone, expected: &Zone) {
    let same =
        |a: Bound, b: Bound| !is_less(a, b) && !is_less(b, a) && a.is_known() == b.is_known();
    let plain = |zone: &Zone| {
        let Zone {
            non_null,
            sum,
            has_sum,
            sorted,
            has_nan,
            has_infinite,
            exact,
            ..
        } = *zone;
        (
            non_null,
            (sum, has_sum),
            sorted,
            has_nan,
            has_infinite,
            exact,
        )
    };
    assert!(
        same(found.minimum, expected.minimum)
            && same(found.maximum, expected.maximum)
            && plain(found) == plain(expected),
        "{found:?} where {expected:?} was expected"
    );
}

/// Checks that a zone holds for these rows, though it may be of more.
pub(crate) fn assert_covers(found: &Zone, rows: &Zone) {
    assert!(found.non_null >= rows.non_null);
    if rows.non_null > 0 {
        assert!(
            !is_less(rows.minimum, found.minimum) && !is_less(found.maximum, rows.maximum),
            "{found:?} does not cover {rows:?}"
        );
    }
    assert!(rows.sorted || !found.sorted, "{found:?} of {rows:?}");
    assert!(found.has_nan || !rows.has_nan);
    assert!(found.has_infinite || !rows.has_infinite);
}

/// Puts values in order, NULLs last.
pub(crate) fn sort(kind: LaneKind, values: &mut [Value]) {
    values.sort_by(|a, b| match (a, b) {
        (Some(a), Some(b)) => bound(kind, a)
            .compare(bound(kind, b))
            .unwrap_or(Ordering::Equal),
        _ => a.is_none().cmp(&b.is_none()),
    });
}

const ROWS_MAX: usize = if cfg!(miri) { 150 } else { 5_000 };

/// Values that are likely to lie in order, to have no NULLs, or to be NULL altogether.
fn any_values() -> impl Strategy<Value = (LaneKind, Vec<Value>)> {
    let variety = prop_oneof![Just(1_u32), Just(20), Just(30_000)];
    let nulls = prop_oneof![Just(0_u32), Just(1), Just(50), Just(100)];
    (
        any_kind(),
        0..ROWS_MAX,
        variety,
        nulls,
        any::<bool>(),
        any::<u32>(),
    )
        .prop_map(|(kind, rows, variety, nulls, sorted, seed)| {
            let mut random = seed;
            let mut next = || {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                random >> 9
            };
            let mut values = (0..rows)
                .map(|_| {
                    if next() % 100 < nulls {
                        return None;
                    }
                    value(kind, next() % variety)
                })
                .collect::<Vec<_>>();
            if sorted {
                sort(kind, &mut values);
            }
            (kind, values)
        })
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_zone_agrees_with_a_naive_twin(
        (kind, values) in any_values(),
        ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        let column = build(kind, &values);
        let end = ends.0.index(values.len() + 1);
        let start = ends.1.index(end + 1);
        // SAFETY: the column is of this kind and has these rows.
        let zone = unsafe { compute(&column.lane(), kind, start..end) };
        assert_zone(&zone, &naive(kind, &values[start..end]));
    }

    #[test]
    fn zones_of_parts_make_the_zone_of_the_whole(
        (kind, values) in any_values(),
        cut in any::<prop::sample::Index>(),
    ) {
        let cut = cut.index(values.len() + 1);
        let (before, after) = values.split_at(cut);
        let union = naive(kind, before).union(naive(kind, after));
        assert_zone(&union, &naive(kind, &values));
    }

    #[test]
    fn a_word_tells_a_bound(kind in any_kind(), number in any::<u32>()) {
        let Some(value) = value(kind, number) else {
            return Ok(());
        };
        let bound = bound(kind, &value);
        let found = Bound::of_word(kind, bound.word());
        prop_assert_eq!(format!("{:?}", found), format!("{:?}", bound));
    }
}

fn of_floats(values: &[f64]) -> Zone {
    let kind = LaneKind::Fixed {
        width: 8,
        stride: 8,
        number: Number::Float,
    };
    let mut column = crate::column::Column::new(kind);
    for value in values {
        column.push_fixed(&value.to_ne_bytes());
    }
    // SAFETY: the column is of this kind and has these rows.
    unsafe { compute(&column.lane(), kind, 0..values.len()) }
}

#[test]
fn nan_is_greatest_and_zeros_are_equal() {
    let only = of_floats(&[f64::NAN, -f64::NAN]);
    assert!(only.minimum.float().unwrap().is_nan() && only.maximum.float().unwrap().is_nan());
    assert!(only.sorted && only.has_nan && !only.has_infinite);
    let some = of_floats(&[f64::INFINITY, f64::NAN, f64::NAN]);
    assert_eq!(some.minimum.float(), Some(f64::INFINITY));
    assert!(some.maximum.float().unwrap().is_nan());
    assert!(some.sorted && some.has_infinite);
    assert!(!of_floats(&[f64::NAN, f64::INFINITY]).sorted);
    let zeros = of_floats(&[0.0, -0.0, 0.0]);
    assert!(zeros.sorted);
    assert_eq!(
        zeros.minimum.compare(Bound::Float(-0.0)),
        Some(Ordering::Equal)
    );
}

#[test]
fn no_rows_are_outside_every_range() {
    let none = of_floats(&[]);
    for value in [f64::NEG_INFINITY, 0.0, f64::INFINITY, f64::NAN] {
        let below = Bound::Float(value).compare(none.minimum) == Some(Ordering::Less);
        let above = Bound::Float(value).compare(none.maximum) == Some(Ordering::Greater);
        assert!(below || above, "{value}");
    }
}

#[test]
fn sums_of_extremes_are_exact() {
    let kind = LaneKind::Fixed {
        width: 8,
        stride: 8,
        number: Number::Signed,
    };
    for extreme in [i64::MIN, i64::MAX, -1] {
        let rows = 3 * VECTOR_ROWS;
        let mut column = crate::column::Column::new(kind);
        column.push_repeated(Some(&extreme.to_ne_bytes()), rows);
        // SAFETY: the column is of this kind and has these rows.
        let zone = unsafe { compute(&column.lane(), kind, 0..rows) };
        assert_eq!(zone.sum, i128::from(extreme) * rows as i128);
        assert!(zone.sorted);
    }
}
