//! A number's place in an order.

use crate::vector::number::{Number, NumberType, Scalar};
use crate::with_number;
use crate::zone_map::Bound;

/// How rows are ordered by a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// Greater numbers come first.
    pub descending: bool,
    /// NULL comes before all numbers, whatever the direction.
    pub nulls_first: bool,
}

/// A place in an [`Order`]: what comes first is smaller. Equal numbers (all NaN; -0 and +0) have
/// equal ranks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Rank {
    class: u8,
    bits: u64,
}

const NULL_BEFORE: u8 = 0;
const NUMBER: u8 = 1;
const NULL_AFTER: u8 = 2;

const SIGN: u64 = 1 << 63;

impl Order {
    /// The rank of NULL.
    pub fn null(self) -> Rank {
        let class = if self.nulls_first {
            NULL_BEFORE
        } else {
            NULL_AFTER
        };
        Rank { class, bits: 0 }
    }

    /// The rank of a number.
    #[inline]
    pub fn rank<T: Number>(self, value: T) -> Rank {
        if T::TYPE.is_float() {
            self.directed(of_float(value.to_f64()))
        } else {
            self.directed(value.to_scalar().0 ^ SIGN)
        }
    }

    /// The rank of a value that has such an abbreviation.
    #[inline]
    pub(super) fn abbreviated(self, abbreviation: u64) -> Rank {
        self.directed(abbreviation)
    }

    /// The rank of a bound; `None` if the bound is not known.
    pub fn bound(self, bound: Bound) -> Option<Rank> {
        match bound {
            Bound::Unknown => None,
            Bound::Signed(value) => Some(self.directed(value as u64 ^ SIGN)),
            Bound::Float(value) => Some(self.directed(of_float(value))),
        }
    }

    /// A number of this rank; `None` if it is that of NULL.
    pub fn number(self, rank: Rank, number: NumberType) -> Option<Scalar> {
        if rank.is_null() {
            return None;
        }
        let ascending = if self.descending {
            !rank.bits
        } else {
            rank.bits
        };
        Some(if number.is_float() {
            let value = to_float(ascending);
            with_number!(number, T => narrow::<T>(value))
        } else {
            Scalar(ascending ^ SIGN)
        })
    }

    #[inline]
    fn directed(self, ascending: u64) -> Rank {
        let bits = if self.descending {
            !ascending
        } else {
            ascending
        };
        Rank {
            class: NUMBER,
            bits,
        }
    }
}

impl Rank {
    /// After all others.
    pub const LAST: Rank = Rank {
        class: NULL_AFTER + 1,
        bits: 0,
    };

    /// The rank of a number that comes so many places later; of the last number if there is none.
    pub fn later(self, places: u64) -> Rank {
        let places = if self.is_null() { 0 } else { places };
        Rank {
            bits: self.bits.saturating_add(places),
            ..self
        }
    }

    /// Whether it is the rank of NULL.
    pub fn is_null(self) -> bool {
        self.class != NUMBER
    }
}

/// Floats as integers of the same order; NaN is the greatest.
#[inline]
fn of_float(value: f64) -> u64 {
    if value.is_nan() {
        return u64::MAX;
    }
    // -0 + 0 is +0; all others stay.
    let bits = (value + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn to_float(bits: u64) -> f64 {
    if bits == u64::MAX {
        f64::NAN
    } else if bits & SIGN != 0 {
        f64::from_bits(bits ^ SIGN)
    } else {
        f64::from_bits(!bits)
    }
}

/// Exact: the number came from a `T`.
fn narrow<T: Number>(value: f64) -> Scalar {
    match T::TYPE {
        NumberType::F32 => (value as f32).to_scalar(),
        _ => value.to_scalar(),
    }
}
