//! Values of samples that mean something by their bits, and which of several samples counts.

use std::cmp::Ordering;

/// The bits of a value that ends a series: it is stale from there on.
pub const STALE_BITS: u64 = 0x7ff0_0000_0000_0002;

/// The bits that mark a step without a value in a row. No arithmetic makes them, since its NaNs
/// are quiet, and no sample keeps them: [`ordinary`] sees to it.
const ABSENT_BITS: u64 = 0x7ff0_0000_6162_736e;

/// The mark of a step without a value.
pub(crate) const ABSENT: f64 = f64::from_bits(ABSENT_BITS);

/// Whether a value ends its series.
pub fn is_stale(value: f64) -> bool {
    value.to_bits() == STALE_BITS
}

/// Whether a step of a row has no value.
#[inline(always)]
pub(crate) fn is_absent(value: f64) -> bool {
    value.to_bits() == ABSENT_BITS
}

/// A value of a sample, which is never the mark of a missing one, whatever its sign.
#[inline(always)]
pub(crate) fn ordinary(value: f64) -> f64 {
    if value.to_bits() & !(1 << 63) == ABSENT_BITS {
        return f64::NAN;
    }
    value
}

/// Which steps of a row have a value, a bit each.
pub(crate) fn presence(values: &[f64]) -> Vec<u64> {
    let bits = |chunk: &[f64]| {
        let places = chunk.iter().enumerate();
        places.fold(0, |bits, (place, value)| {
            bits | u64::from(!is_absent(*value)) << place
        })
    };
    values.chunks(64).map(bits).collect()
}

/// Which of two samples of one time counts: the greater one. A number is greater than a NaN.
/// Storage may contain several samples of a time, but Prometheus has one.
pub fn precedence(a: f64, b: f64) -> Ordering {
    let is_number = |value: f64| !value.is_nan();
    is_number(a)
        .cmp(&is_number(b))
        .then_with(|| a.total_cmp(&b))
}
