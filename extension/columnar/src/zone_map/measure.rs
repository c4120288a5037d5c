//! One pass over the numbers of at most one vector, in chunks that compilers turn into vector code.
//!
//! Each chunk is either without a NULL, or goes through a mask, which costs no branch a row. The
//! loops are compiled twice, the second time for AVX2, which processors since 2013 have: without it
//! 64-bit integers cannot be compared but one by one.

use super::{Bound, Zone};
use crate::bits;

/// Values that share a word of a bitmap.
const CHUNK: usize = 64;

/// The number of values that are measured side by side.
const LANES: usize = 8;

/// A number by which a column may be ordered.
pub(super) trait Value: Copy + Default {
    /// Whether `self` may not come before `next` in ascending order.
    fn is_descent(self, next: Self) -> bool;
}

/// A signed integer.
pub(super) trait Integer: Value + Ord {
    const LEAST: Self;
    const GREATEST: Self;
    fn widen(self) -> i64;
    /// The value as `high * 2^32 + low`, so that sums of 2^31 values fit 64 bits each.
    fn split(self) -> (i64, i64);
}

macro_rules! integer {
    ($type:ty, $split:expr) => {
        impl Value for $type {
            #[inline(always)]
            fn is_descent(self, next: Self) -> bool {
                next < self
            }
        }
        impl Integer for $type {
            const LEAST: Self = <$type>::MIN;
            const GREATEST: Self = <$type>::MAX;
            #[inline(always)]
            fn widen(self) -> i64 {
                self.into()
            }
            #[inline(always)]
            fn split(self) -> (i64, i64) {
                $split(self.into())
            }
        }
    };
}
integer!(i16, |value: i64| (0, value));
integer!(i32, |value: i64| (0, value));
integer!(i64, |value: i64| (value >> 32, value & 0xffff_ffff));

/// A floating-point number.
pub(super) trait Float: Value + PartialOrd {
    const INFINITY: Self;
    const NEGATIVE_INFINITY: Self;
    fn magnitude(self) -> Self;
    fn widen(self) -> f64;
}

macro_rules! float {
    ($type:ty) => {
        impl Value for $type {
            #[inline(always)]
            #[allow(clippy::eq_op, reason = "a NaN is what does not equal itself")]
            fn is_descent(self, next: Self) -> bool {
                // NaN is greatest: nothing descends to it, and from it all but NaN do.
                (self > next) | (self != self) & (next == next)
            }
        }
        impl Float for $type {
            const INFINITY: Self = <$type>::INFINITY;
            const NEGATIVE_INFINITY: Self = <$type>::NEG_INFINITY;
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn widen(self) -> f64 {
                self.into()
            }
        }
    };
}
float!(f32);
float!(f64);

/// Compiles a function for AVX2 too, and chooses at run time.
macro_rules! dispatched {
    ($(#[$doc:meta])* $name:ident, $body:ident, $single:ident, $bound:ident) => {
        $(#[$doc])*
        pub(super) fn $name<T: $bound>(values: &[T], valid: Option<&[u64]>, zone: Zone) -> Zone {
            // Rows that are appended one by one are measured so.
            if let ([value], None) = (values, valid) {
                return $single(*value, zone);
            }
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            {
                #[target_feature(enable = "avx2")]
                fn with_avx2<T: $bound>(values: &[T], valid: Option<&[u64]>, zone: Zone) -> Zone {
                    $body(values, valid, zone)
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the CPU supports AVX2, as just tested.
                    return unsafe { with_avx2(values, valid, zone) };
                }
            }
            $body(values, valid, zone)
        }
    };
}

dispatched! {
    /// Completes the zone of integers of which at least one is not NULL. `valid` has a bit for each
    /// value, and is present if some values are NULL.
    signed, signed_body, single_signed, Integer
}

dispatched! {
    /// Completes the zone of floats like [`signed`].
    floats, floats_body, single_float, Float
}

/// Hands out chunks in groups, with the bits of the values that count: whole ones by `whole`, all
/// others by `masked`, and of these the last is as short as whole groups allow.
#[inline(always)]
fn each_chunk<T: Value, S>(
    values: &[T],
    valid: Option<&[u64]>,
    state: &mut S,
    whole: impl Fn(&mut S, &[[T; LANES]]),
    masked: impl Fn(&mut S, &[[T; LANES]], u64),
) {
    let (chunks, rest) = values.as_chunks::<CHUNK>();
    for (index, chunk) in chunks.iter().enumerate() {
        match valid.map_or(u64::MAX, |valid| valid[index]) {
            u64::MAX => whole(state, chunk.as_chunks().0),
            0 => {}
            word => masked(state, chunk.as_chunks().0, word),
        }
    }
    if !rest.is_empty() {
        let mut padded = [T::default(); CHUNK];
        padded[..rest.len()].copy_from_slice(rest);
        let word = valid.map_or(u64::MAX, |valid| valid[chunks.len()]);
        let groups = &padded.as_chunks().0[..rest.len().div_ceil(LANES)];
        masked(state, groups, word & bits::low_bits(rest.len()));
    }
}

/// Whether no value is less than the one before it.
#[inline(always)]
fn is_sorted<T: Value>(values: &[T]) -> bool {
    let mut start = 0;
    while start + 1 < values.len() {
        let end = (start + CHUNK + 1).min(values.len());
        let here = &values[start..end];
        let pairs = here.iter().zip(&here[1..]);
        if pairs.fold(false, |any, (&a, &b)| any | a.is_descent(b)) {
            return false;
        }
        start = end - 1;
    }
    true
}

struct IntegerTally<T> {
    least: [T; LANES],
    greatest: [T; LANES],
    high: [i64; LANES],
    low: [i64; LANES],
}

impl<T: Integer> IntegerTally<T> {
    #[inline(always)]
    fn add<const MASKED: bool>(&mut self, chunk: &[[T; LANES]], word: u64) {
        for (group, values) in chunk.iter().enumerate() {
            for (lane, &value) in values.iter().enumerate() {
                let keep = !MASKED || word >> (group * LANES + lane) & 1 == 1;
                let (high, low) = value.split();
                let (least, greatest) = (self.least[lane], self.greatest[lane]);
                self.least[lane] = if keep & (value < least) { value } else { least };
                self.greatest[lane] = if keep & (value > greatest) {
                    value
                } else {
                    greatest
                };
                self.high[lane] += if keep { high } else { 0 };
                self.low[lane] += if keep { low } else { 0 };
            }
        }
    }
}

#[inline(always)]
fn signed_body<T: Integer>(values: &[T], valid: Option<&[u64]>, zone: Zone) -> Zone {
    let mut tally = IntegerTally {
        least: [T::GREATEST; LANES],
        greatest: [T::LEAST; LANES],
        high: [0; LANES],
        low: [0; LANES],
    };
    each_chunk(
        values,
        valid,
        &mut tally,
        |tally, chunk| tally.add::<false>(chunk, 0),
        |tally, chunk, word| tally.add::<true>(chunk, word),
    );
    let least = tally.least.into_iter().fold(T::GREATEST, T::min);
    let greatest = tally.greatest.into_iter().fold(T::LEAST, T::max);
    let high = i128::from(tally.high.iter().sum::<i64>());
    let low = i128::from(tally.low.iter().sum::<i64>());
    Zone {
        minimum: Bound::Signed(least.widen()),
        maximum: Bound::Signed(greatest.widen()),
        sum: (high << 32) + low,
        has_sum: true,
        sorted: valid.is_none() && is_sorted(values),
        ..zone
    }
}

/// The zone of one integer, as [`signed_body`] computes it.
fn single_signed<T: Integer>(value: T, zone: Zone) -> Zone {
    let value = value.widen();
    Zone {
        minimum: Bound::Signed(value),
        maximum: Bound::Signed(value),
        sum: value.into(),
        has_sum: true,
        sorted: true,
        ..zone
    }
}

/// The zone of one float, as [`floats_body`] computes it.
fn single_float<T: Float>(value: T, zone: Zone) -> Zone {
    let is_infinite = value.magnitude() == T::INFINITY;
    let value = value.widen();
    let bound = Bound::Float(if value.is_nan() { f64::NAN } else { value });
    Zone {
        minimum: bound,
        maximum: bound,
        sorted: true,
        has_nan: value.is_nan(),
        has_infinite: is_infinite,
        ..zone
    }
}

struct FloatTally<T> {
    least: [T; LANES],
    greatest: [T; LANES],
    nans: [u32; LANES],
    infinite: [bool; LANES],
}

impl<T: Float> FloatTally<T> {
    #[inline(always)]
    #[allow(clippy::eq_op, reason = "a NaN is what does not equal itself")]
    fn add<const MASKED: bool>(&mut self, chunk: &[[T; LANES]], word: u64) {
        for (group, values) in chunk.iter().enumerate() {
            for (lane, &value) in values.iter().enumerate() {
                let keep = !MASKED || word >> (group * LANES + lane) & 1 == 1;
                let (least, greatest) = (self.least[lane], self.greatest[lane]);
                self.least[lane] = if keep & (value < least) { value } else { least };
                self.greatest[lane] = if keep & (value > greatest) {
                    value
                } else {
                    greatest
                };
                self.nans[lane] += u32::from(keep & (value != value));
                self.infinite[lane] |= keep & (value.magnitude() == T::INFINITY);
            }
        }
    }
}

#[inline(always)]
fn floats_body<T: Float>(values: &[T], valid: Option<&[u64]>, zone: Zone) -> Zone {
    let mut tally = FloatTally {
        least: [T::INFINITY; LANES],
        greatest: [T::NEGATIVE_INFINITY; LANES],
        nans: [0; LANES],
        infinite: [false; LANES],
    };
    each_chunk(
        values,
        valid,
        &mut tally,
        |tally, chunk| tally.add::<false>(chunk, 0),
        |tally, chunk, word| tally.add::<true>(chunk, word),
    );
    let lesser = |a: T, b: T| if b < a { b } else { a };
    let greater = |a: T, b: T| if b > a { b } else { a };
    let least = tally.least.into_iter().fold(T::INFINITY, lesser);
    let greatest = tally
        .greatest
        .into_iter()
        .fold(T::NEGATIVE_INFINITY, greater);
    let nans = tally.nans.iter().sum::<u32>();
    Zone {
        minimum: Bound::Float(if nans == zone.non_null {
            f64::NAN
        } else {
            least.widen()
        }),
        maximum: Bound::Float(if nans > 0 { f64::NAN } else { greatest.widen() }),
        sorted: valid.is_none() && is_sorted(values),
        has_nan: nans > 0,
        has_infinite: tally.infinite.contains(&true),
        ..zone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{LaneKind, Number};

    fn empty(width: u16, number: Number) -> Zone {
        let kind = LaneKind::Fixed {
            width,
            stride: width,
            number,
        };
        Zone {
            non_null: 1,
            has_sum: false,
            ..Zone::empty(kind)
        }
    }

    #[test]
    fn a_single_value_is_measured_as_many_are() {
        for value in [i64::MIN, -1, 0, 7, 1 << 40, i64::MAX] {
            let zone = empty(8, Number::Signed);
            let (single, many) = (
                single_signed(value, zone),
                signed_body(&[value], None, zone),
            );
            assert_eq!(format!("{single:?}"), format!("{many:?}"));
        }
        for value in [
            f64::NEG_INFINITY,
            -0.0,
            0.0,
            1.5,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ] {
            let zone = empty(8, Number::Float);
            let (single, many) = (single_float(value, zone), floats_body(&[value], None, zone));
            assert_eq!(format!("{single:?}"), format!("{many:?}"));
            let value = value as f32;
            let (single, many) = (single_float(value, zone), floats_body(&[value], None, zone));
            assert_eq!(format!("{single:?}"), format!("{many:?}"));
        }
    }
}
