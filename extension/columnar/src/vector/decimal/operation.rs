//! Sums, differences and products of the decimals of two vectors.

use super::SCALE_MAX;
use super::decimals::{Decimals, fits};
use crate::limits::VECTOR_ROWS;

/// An operation on two decimals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecimalOperation {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
}

impl DecimalOperation {
    /// Computes the operation for the first `rows` rows; `None` if a result may not fit.
    ///
    /// A sum has the greater of the two scales, and a product has their sum, as in PostgreSQL.
    pub(super) fn apply(
        self,
        left: &Decimals,
        right: &Decimals,
        rows: usize,
        out: &mut Decimals,
    ) -> Option<()> {
        let valid = left.valid().and(right.valid());
        let (scale, magnitude) = match self {
            DecimalOperation::Multiply => {
                let scale = left.scale() + right.scale();
                if scale > SCALE_MAX {
                    return None;
                }
                let magnitude = fits(left.magnitude().checked_mul(right.magnitude())?)?;
                each(left, right, rows, out, |a, b| a.wrapping_mul(b));
                (scale, magnitude)
            }
            DecimalOperation::Add | DecimalOperation::Subtract => {
                let scale = left.scale().max(right.scale());
                let (of_left, of_right) = (left.factor_to(scale)?, right.factor_to(scale)?);
                let magnitude = (left.magnitude() * of_left as u64)
                    .checked_add(right.magnitude() * of_right as u64)?;
                fits(magnitude)?;
                // A sum is `a * of_left + b * of_right`.
                let sign = if self == DecimalOperation::Add { 1 } else { -1 };
                let (of_left, of_right) = (of_left, of_right * sign);
                match (of_left, of_right) {
                    (1, 1) => each(left, right, rows, out, i64::wrapping_add),
                    (1, -1) => each(left, right, rows, out, i64::wrapping_sub),
                    _ => each(left, right, rows, out, |a, b| {
                        let (a, b) = (a.wrapping_mul(of_left), b.wrapping_mul(of_right));
                        a.wrapping_add(b)
                    }),
                }
                (scale, magnitude)
            }
        };
        let has_own_scales = left.own_scales().is_some() || right.own_scales().is_some();
        if has_own_scales {
            let scale_of = |row| {
                let (left, right) = (left.scale_of(row), right.scale_of(row));
                match self {
                    DecimalOperation::Multiply => left + right,
                    _ => left.max(right),
                }
            };
            let own_scales = out.own_scales_mut();
            valid.for_each(|row| own_scales[row] = scale_of(row));
        }
        out.set(scale, has_own_scales, valid, magnitude);
        Some(())
    }
}

/// Combines the values of all rows. Those of rows that are not valid may be anything.
#[inline(always)]
fn each(
    left: &Decimals,
    right: &Decimals,
    rows: usize,
    out: &mut Decimals,
    combine: impl Fn(i64, i64) -> i64,
) {
    let rows = rows.min(VECTOR_ROWS);
    let (left, right) = (&left.values()[..rows], &right.values()[..rows]);
    let out = &mut out.values_mut()[..rows];
    for ((out, a), b) in out.iter_mut().zip(left).zip(right) {
        *out = combine(*a, *b);
    }
}
