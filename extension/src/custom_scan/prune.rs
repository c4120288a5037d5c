//! Quals that zone maps can contradict.

use std::cmp::Ordering;

use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::predicate::{Predicate, flip};
use lanes_columnar::vector::value::Value;
use lanes_columnar::zone_map::{Bound, Zone};
use lanes_simd::Comparison;
use pgrx::pg_sys;

use super::translate::{Translation, Translator};

/// The quals of a table, and what of them zone maps can contradict.
pub struct Filter {
    /// In the order in which they are evaluated.
    pub quals: Vec<Predicate>,
    pub prunes: Vec<Prune>,
    /// The attributes that the quals look at.
    pub attributes: Vec<usize>,
    /// Those whose zones spare the quals a look at rows, beyond whole vectors that they contradict.
    pub zones_wanted: Vec<usize>,
}

impl Filter {
    /// The first that `translator` translates, so that it knows of no other attributes.
    ///
    /// # Errors
    /// Why a qual is none of the engine's.
    ///
    /// # Safety
    /// Live quals.
    pub unsafe fn of(
        translator: &mut Translator,
        quals: impl Iterator<Item = *mut pg_sys::Node>,
    ) -> Translation<Filter> {
        // SAFETY: the caller's promise.
        let quals = unsafe { predicates(translator, quals)? };
        let (mut prunes, mut zones_wanted) = (Vec::new(), Vec::new());
        for qual in &quals {
            Prune::of(qual, &mut prunes);
            qual.zones_wanted(&mut zones_wanted);
        }
        // Those that rule out most go first.
        prunes.sort_by_key(|prune| prune.comparison != Comparison::Equal);
        zones_wanted.sort_unstable();
        zones_wanted.dedup();
        Ok(Filter {
            quals,
            prunes,
            attributes: translator.attributes(),
            zones_wanted,
        })
    }

    /// Whether zones may tell of a vector that no row passes.
    pub fn may_rule_out(&self) -> bool {
        !self.prunes.is_empty() || !self.zones_wanted.is_empty()
    }
}

/// Quals as the engine's.
///
/// # Errors
/// Why one of them is none.
///
/// # Safety
/// Live quals.
pub unsafe fn predicates(
    translator: &mut Translator,
    quals: impl Iterator<Item = *mut pg_sys::Node>,
) -> Translation<Vec<Predicate>> {
    // SAFETY: the caller's promise.
    quals
        .map(|qual| unsafe { translator.predicate(qual) })
        .collect()
}

/// The column of a value that is one, or one made wider: bounds of the one are bounds of the other.
fn widened_column(value: &Value) -> Option<usize> {
    match value {
        Value::Column(_, attribute) => Some(*attribute),
        Value::Convert(to, inner, _) => {
            let (from, to) = (inner.number(), *to);
            let exact = from.is_float() == to.is_float() && from.width() <= to.width();
            inner.column().filter(|_| exact)
        }
        _ => None,
    }
}

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
    fn of(predicate: &Predicate, found: &mut Vec<Prune>) {
        match predicate {
            Predicate::And(parts) => parts.iter().for_each(|part| Prune::of(part, found)),
            Predicate::Compare(comparison, left, right) => {
                let (attribute, number, scalar, comparison) =
                    match (widened_column(left), widened_column(right), left, right) {
                        (Some(attribute), _, _, Value::Scalar(number, scalar)) => {
                            (attribute, *number, *scalar, *comparison)
                        }
                        (_, Some(attribute), Value::Scalar(number, scalar), _) => {
                            (attribute, *number, *scalar, flip(*comparison))
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
