//! Expressions of PostgreSQL's `numeric`, computed with integers of 64 bits.
//!
//! ```text
//! items of a column ── item ──► digits as an integer, digits after the point ─┐
//! constants, integers ────────────────────────────────────────────────────────┼─► + - * CASE ──► Decimals
//! ```
//! A [`Decimal`] is an integer and the number of digits after its point, its *scale*: 12.50 is 1250
//! with scale 2. Sums, differences and products of decimals are exact, and so are PostgreSQL's.
//!
//! | module | contents |
//! |---|---|
//! | `item` | reads a `numeric` as PostgreSQL stores it |
//! | `uniform` | reads many numbers of one scale |
//! | [`mod@column`] | columns, which several expressions may share |
//! | [`decimals`] | the decimals of a vector |
//! | [`operation`] | sums, differences and products of two vectors |
//! | [`value`] | expressions: columns, constants, integers, operations, choices |
//! | [`comparison`] | conditions that compare two expressions, or a column with a limit |
//! | `rounding` | doubles that are converted to `numeric` and rounded |
//!
//! Invariants:
//! - PostgreSQL shows as many digits after the point as the *scale* says, so 1.5 and 1.50 are equal
//!   but not the same. Every result has the scale that PostgreSQL gives it, also where the values
//!   of a vector have several scales.
//! - What does not fit has no decimal: NaN, the infinities, more than 18 digits after the point, or
//!   an integer of more than 64 bits. One such value among the selected rows of a vector makes the
//!   whole vector [`None`]. The caller then lets PostgreSQL compute the vector.
//! - Whether an operation fits is decided from the magnitudes of a vector, before it is computed.

pub mod column;
pub mod comparison;
pub mod decimals;
mod item;
pub mod operation;
mod rounding;
mod uniform;
pub mod value;

#[cfg(test)]
pub(crate) mod test_items;
#[cfg(test)]
mod tests;

pub use decimals::Decimals;
pub use rounding::{PLACES_MAX, round_double};
pub use value::DecimalValue;

/// The most digits after the point.
pub const SCALE_MAX: u8 = 18;

/// A number with a fixed number of digits after the point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decimal {
    /// The number times ten to the power of the scale.
    pub value: i64,
    /// The number of digits after the point, at most [`SCALE_MAX`].
    pub scale: u8,
}

impl Decimal {
    /// The decimal that an item of a column of type `numeric` is. `None` if it does not fit.
    ///
    /// # Safety
    /// `item` points to a `numeric` of PostgreSQL's that is neither compressed nor out of line.
    pub unsafe fn of_item(item: *const u8) -> Option<Decimal> {
        // SAFETY: this function's contract.
        unsafe { item::read(item) }
    }

    /// The decimal that an item of such a column is, from its bytes after the header. `None` if it does not fit.
    pub(crate) fn of_payload(payload: &[u8]) -> Option<Decimal> {
        item::read_any(payload)
    }
}

/// Ten to the power of a number of digits up to [`SCALE_MAX`].
pub(crate) fn power_of_ten(digits: u8) -> i64 {
    const POWERS: [i64; SCALE_MAX as usize + 1] = {
        let mut powers = [1; SCALE_MAX as usize + 1];
        let mut digits = 1;
        while digits < powers.len() {
            powers[digits] = powers[digits - 1] * 10;
            digits += 1;
        }
        powers
    };
    POWERS[digits as usize]
}
