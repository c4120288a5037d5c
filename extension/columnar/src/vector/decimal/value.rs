//! Expressions with a decimal for each row.

use super::Decimal;
use super::column::{DecimalColumn, Found, SharedColumn};
use super::decimals::Decimals;
use super::operation::DecimalOperation;
use crate::vector::Evaluation;
use crate::vector::choice::Condition;
use crate::vector::frame::Frame;
use crate::vector::number::NumberType;
use crate::vector::selection::Selection;
use crate::vector::value::{Operand, Value};

/// A decimal a row.
pub enum DecimalValue {
    /// A column of type `numeric`.
    Column(Box<DecimalColumn>),
    /// A column of type `numeric` that other expressions read too.
    Shared(SharedColumn),
    /// One decimal for the whole scan, or NULL.
    Constant(Option<Decimal>, Box<Decimals>),
    /// An integer, with scale 0.
    Integer(Box<Value>, Box<Decimals>),
    /// Two decimals.
    Operation(
        DecimalOperation,
        Box<(DecimalValue, DecimalValue)>,
        Box<Decimals>,
    ),
    /// `CASE` or `COALESCE`: the first branch that a row takes. A row that takes none is NULL.
    Choice(Vec<(Condition, DecimalValue)>, Box<Decimals>),
}

impl DecimalValue {
    /// A column of type `numeric`.
    pub fn column(attribute: usize) -> DecimalValue {
        DecimalValue::Column(Box::new(DecimalColumn::new(attribute)))
    }

    /// One decimal for the whole scan, or NULL.
    pub fn constant(decimal: Option<Decimal>) -> DecimalValue {
        DecimalValue::Constant(decimal, Box::new(Decimals::same(decimal)))
    }

    /// An integer.
    ///
    /// # Panics
    /// If the value is a float.
    pub fn integer(value: Value) -> DecimalValue {
        let number = value.number();
        assert!(
            matches!(number, NumberType::I16 | NumberType::I32 | NumberType::I64),
            "a decimal of {number:?}"
        );
        DecimalValue::Integer(Box::new(value), Box::default())
    }

    /// An operation on two decimals.
    pub fn operation(
        operation: DecimalOperation,
        left: DecimalValue,
        right: DecimalValue,
    ) -> DecimalValue {
        DecimalValue::Operation(operation, Box::new((left, right)), Box::default())
    }

    /// The first branch that a row takes.
    pub fn choice(branches: Vec<(Condition, DecimalValue)>) -> DecimalValue {
        DecimalValue::Choice(branches, Box::default())
    }

    /// Forgets what shared columns have read: another vector follows.
    pub fn forget(&mut self) {
        match self {
            DecimalValue::Shared(column) => column.forget(),
            DecimalValue::Operation(_, sides, _) => {
                sides.0.forget();
                sides.1.forget();
            }
            DecimalValue::Choice(branches, _) => {
                branches.iter_mut().for_each(|(_, value)| value.forget());
            }
            DecimalValue::Column(_) | DecimalValue::Constant(..) | DecimalValue::Integer(..) => {}
        }
    }

    /// The decimals of the selected rows; `None` if one of them does not fit.
    ///
    /// # Errors
    /// The errors of the parts that are not decimals.
    pub fn evaluate(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<Option<Found<'_>>> {
        match self {
            DecimalValue::Column(column) => Ok(column.evaluate(frame, selection).map(Found::Own)),
            DecimalValue::Shared(column) => Ok(column.evaluate(frame, selection)),
            DecimalValue::Constant(decimal, out) => {
                out.select_same(*decimal, selection);
                Ok(Some(Found::Own(out)))
            }
            DecimalValue::Integer(value, out) => {
                let number = value.number();
                let operand = value.evaluate(frame, selection)?;
                let rows = operand.valid(selection);
                let taken = match number {
                    NumberType::I16 => take_integers::<i16>(out, operand, &rows),
                    NumberType::I32 => take_integers::<i32>(out, operand, &rows),
                    _ => take_integers::<i64>(out, operand, &rows),
                };
                Ok(taken.map(|()| Found::Own(out)))
            }
            DecimalValue::Operation(operation, sides, out) => {
                let (left, right) = &mut **sides;
                let Some(left) = left.evaluate(frame, selection)? else {
                    return Ok(None);
                };
                let Some(right) = right.evaluate(frame, selection)? else {
                    return Ok(None);
                };
                let applied = operation.apply(&left, &right, frame.rows, out);
                Ok(applied.map(|()| Found::Own(out)))
            }
            DecimalValue::Choice(branches, out) => {
                let chosen = choose(branches, frame, selection, out)?;
                Ok(chosen.map(|()| Found::Own(out)))
            }
        }
    }
}

/// Takes the integers of some rows, none of which is NULL.
fn take_integers<T>(out: &mut Decimals, operand: Operand, rows: &Selection) -> Option<()>
where
    T: crate::vector::number::Number + Into<i64>,
{
    out.take_rows(rows, |row| {
        // SAFETY: the operand is of this type, and the row is one of its vector.
        let value: i64 = unsafe { operand.get::<T>(row) }.into();
        // The least integer has no magnitude.
        (value != i64::MIN).then_some(Decimal { value, scale: 0 })
    })
}

/// Evaluates each branch for the rows that no branch before it took.
fn choose(
    branches: &mut [(Condition, DecimalValue)],
    frame: &Frame<'_>,
    selection: &Selection,
    out: &mut Decimals,
) -> Evaluation<Option<()>> {
    let (mut open, mut valid) = (*selection, Selection::NONE);
    let mut greatest = 0;
    for (condition, value) in branches {
        if open.is_empty() {
            break;
        }
        let offered = match condition {
            Condition::Holds(condition) => condition.evaluate(frame, &open)?.yes,
            Condition::IsPresent | Condition::Always => open,
        };
        if offered.is_empty() {
            continue;
        }
        let Some(decimals) = value.evaluate(frame, &offered)? else {
            return Ok(None);
        };
        let taken = match condition {
            Condition::IsPresent => decimals.valid(),
            Condition::Holds(_) | Condition::Always => &offered,
        };
        open = open.and_not(taken);
        out.copy_rows(&decimals);
        greatest = greatest.max(decimals.scale());
        valid = valid.or(decimals.valid());
    }
    Ok(out.finish_copies(valid, greatest))
}
