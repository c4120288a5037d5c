//! Quals that zone maps can contradict.

use std::cmp::Ordering;

use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::predicate::{Predicate, flip};
use lanes_columnar::vector::value::Value;
use lanes_columnar::zone_map::{Bound, Zone};
use lanes_simd::Comparison;

/// A comparison of a column with a scalar that has to hold.
#[derive(Clone, Copy, Debug)]
pub struct Prune {
    /// The column.
    pub attribute: usize,
    comparison: Comparison,
    number: NumberType,
    scalar: usize,
}

impl Prune {
    /// The comparisons that have to hold for a predicate to be TRUE.
    pub fn of(predicate: &Predicate, found: &mut Vec<Prune>) {
        match predicate {
            Predicate::And(parts) => parts.iter().for_each(|part| Prune::of(part, found)),
            Predicate::Compare(comparison, left, right) => {
                let (attribute, number, scalar, comparison) = match (left, right) {
                    (Value::Column(number, attribute), Value::Scalar(_, scalar)) => {
                        (*attribute, *number, *scalar, *comparison)
                    }
                    (Value::Scalar(_, scalar), Value::Column(number, attribute)) => {
                        (*attribute, *number, *scalar, flip(*comparison))
                    }
                    _ => return,
                };
                found.push(Prune {
                    attribute,
                    comparison,
                    number,
                    scalar,
                });
            }
            _ => {}
        }
    }

    /// Whether no row of a zone can pass.
    pub fn rules_out(&self, zone: &Zone, scalars: &[Option<Scalar>]) -> bool {
        if zone.non_null == 0 {
            return true;
        }
        let Some(scalar) = scalars[self.scalar] else {
            // A comparison with NULL is never TRUE.
            return true;
        };
        let wanted = match self.number {
            NumberType::F32 => Bound::Float(f64::from(f32::from_bits(scalar.0 as u32))),
            NumberType::F64 => Bound::Float(f64::from_bits(scalar.0)),
            _ => Bound::Signed(scalar.0 as i64),
        };
        let (Some(minimum), Some(maximum)) =
            (zone.minimum.compare(wanted), zone.maximum.compare(wanted))
        else {
            return false;
        };
        match self.comparison {
            Comparison::Equal => minimum == Ordering::Greater || maximum == Ordering::Less,
            Comparison::NotEqual => minimum.is_eq() && maximum.is_eq(),
            Comparison::Less => minimum.is_ge(),
            Comparison::LessOrEqual => minimum.is_gt(),
            Comparison::Greater => maximum.is_le(),
            Comparison::GreaterOrEqual => maximum.is_lt(),
        }
    }
}
