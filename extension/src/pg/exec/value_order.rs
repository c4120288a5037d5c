//! The order of values of any type that has one.

use std::cmp::Ordering;

use pgrx::pg_sys::{self, Datum, Oid};

use super::callable::SqlFunction;
use super::scalar::RunningNode;
use crate::pg::tree::SortGroupClause;
use crate::pg::{catalog, collation, datum, ports};

/// The order of values.
pub struct ValueOrder {
    less: SqlFunction,
    nulls_first: bool,
    /// The collation of texts, and whether they descend: their bytes are compared without a call.
    texts: Option<(Oid, bool)>,
}

impl ValueOrder {
    /// The order of a clause of DISTINCT or ORDER BY.
    pub fn new(clause: SortGroupClause<'_>, collation: Oid, node: RunningNode) -> ValueOrder {
        let less = catalog::operator_function(clause.sortop());
        // Other types of the family are stored in other ways, such as `name`.
        let is_descending = match less.to_u32() {
            pg_sys::F_TEXT_LT => Some(false),
            pg_sys::F_TEXT_GT => Some(true),
            _ => None,
        };
        let texts = is_descending.filter(|_| collation != pg_sys::InvalidOid);
        ValueOrder {
            less: node.memory().enter(|| SqlFunction::new(less, collation, 2)),
            nulls_first: clause.nulls_first(),
            texts: texts.map(|is_descending| (collation, is_descending)),
        }
    }

    /// The order of two values. Texts are neither compressed nor out of line.
    fn compare(&mut self, a: Option<Datum>, b: Option<Datum>) -> Ordering {
        let (a, b) = match (a, b) {
            (Some(a), Some(b)) => (a, b),
            (None, None) => return Ordering::Equal,
            (a, _) if a.is_none() == self.nulls_first => return Ordering::Less,
            _ => return Ordering::Greater,
        };
        if let Some((collation, is_descending)) = self.texts {
            let order = collation::compare(datum::payload(a), datum::payload(b), collation);
            return match is_descending {
                true => order.reverse(),
                false => order,
            };
        }
        let mut is_less = |a, b| self.less.call(&[a, b]).value() & 0xff != 0;
        match is_less(a, b) {
            true => Ordering::Less,
            false if is_less(b, a) => Ordering::Greater,
            false => Ordering::Equal,
        }
    }

    /// The indexes of values in the order of the values.
    pub fn sorted(&mut self, values: &[Option<Datum>]) -> Vec<u32> {
        let mut sorted: Vec<u32> = (0..values.len() as u32).collect();
        sorted.sort_by(|a, b| {
            ports::CHECK_FOR_INTERRUPTS();
            self.compare(values[*a as usize], values[*b as usize])
        });
        sorted
    }

    /// The place of each value among all values. Values that tie have one place.
    pub fn places(&mut self, values: &[Option<Datum>]) -> Vec<u32> {
        let sorted = self.sorted(values);
        let mut places = vec![0; values.len()];
        let mut place = 0;
        for (index, code) in (0_u32..).zip(&sorted) {
            let before = sorted[index.saturating_sub(1) as usize];
            if self.compare(values[before as usize], values[*code as usize]) == Ordering::Less {
                place = index;
            }
            places[*code as usize] = place;
        }
        places
    }
}
