//! Conditions that compare two decimals.

use lanes_simd::Comparison;

use super::column::DecimalColumn;
use super::decimals::Decimals;
use super::value::DecimalValue;
use super::{Decimal, power_of_ten};
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::number::Number;
use crate::vector::predicate::{Predicate, Truth, compare};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;

/// A comparison of two decimals, with a condition for vectors that they do not fit.
pub struct DecimalComparison {
    comparison: Comparison,
    left: DecimalValue,
    right: DecimalValue,
    /// The same condition for values of any kind.
    general: Predicate,
    /// Values that were brought to another scale.
    room: Box<[i64; VECTOR_ROWS]>,
}

impl DecimalComparison {
    /// Compares two decimals. Where one of them does not fit, `general` decides, which must be the same condition.
    pub fn new(
        comparison: Comparison,
        left: DecimalValue,
        right: DecimalValue,
        general: Predicate,
    ) -> Box<DecimalComparison> {
        Box::new(DecimalComparison {
            comparison,
            left,
            right,
            general,
            room: Box::new([0; VECTOR_ROWS]),
        })
    }

    /// The truth of the selected rows.
    pub(in crate::vector) fn evaluate(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<Truth> {
        match self.compare(frame, selection)? {
            Some(truth) => Ok(truth),
            None => self.general.evaluate(frame, selection),
        }
    }

    /// Compares as integers; `None` if a decimal does not fit.
    fn compare(&mut self, frame: &Frame<'_>, selection: &Selection) -> Evaluation<Option<Truth>> {
        let Some(left) = self.left.evaluate(frame, selection)? else {
            return Ok(None);
        };
        let Some(right) = self.right.evaluate(frame, selection)? else {
            return Ok(None);
        };
        let scale = left.scale().max(right.scale());
        let room = &mut self.room;
        let (Some(a), Some(b)) = (operand(&left, scale, room), operand(&right, scale, room)) else {
            return Ok(None);
        };
        let known = left.valid().and(right.valid());
        let yes = compare::<i64>(self.comparison, a, b, frame.rows).and(&known);
        let no = known.and_not(&yes);
        Ok(Some(Truth { yes, no }))
    }
}

/// A column that is compared with a limit, which changes from vector to vector.
pub(crate) struct DecimalLimit {
    column: DecimalColumn,
    /// Values that were brought to another scale.
    room: Box<[i64; VECTOR_ROWS]>,
}

impl DecimalLimit {
    /// A limit of a column of type `numeric`.
    pub(crate) fn new(attribute: usize) -> DecimalLimit {
        DecimalLimit {
            column: DecimalColumn::new(attribute),
            room: Box::new([0; VECTOR_ROWS]),
        }
    }

    /// The selected rows, none of which is NULL, for which the comparison with the limit holds; `None` if a decimal
    /// does not fit.
    pub(crate) fn rows(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
        comparison: Comparison,
        limit: Decimal,
    ) -> Option<Selection> {
        let decimals = self.column.evaluate(frame, selection)?;
        let scale = decimals.scale().max(limit.scale);
        let limit = limit
            .value
            .checked_mul(power_of_ten(scale - limit.scale))?
            .to_scalar();
        let values = operand(decimals, scale, &mut self.room)?;
        let found = compare::<i64>(comparison, values, Operand::Same(limit), frame.rows);
        Some(found.and(selection))
    }
}

/// The values with a scale that is no less than theirs; `None` if they do not fit. At most one of two sides needs the
/// room.
fn operand(decimals: &Decimals, scale: u8, room: &mut [i64; VECTOR_ROWS]) -> Option<Operand> {
    let factor = decimals.factor_to(scale)?;
    if let Some(value) = decimals.same_value() {
        return Some(Operand::Same((value * factor).to_scalar()));
    }
    let values = match factor {
        1 => decimals.values(),
        factor => {
            let pairs = room.iter_mut().zip(decimals.values());
            pairs.for_each(|(scaled, value)| *scaled = value.wrapping_mul(factor));
            room
        }
    };
    Some(Operand::Each {
        values: values.as_ptr().cast(),
        validity: std::ptr::null(),
    })
}
