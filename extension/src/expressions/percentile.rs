//! Translates calls of `percentile_cont`, `percentile_disc` and `mode`.
//!
//! The fraction must be a constant from 0 to 1, or NULL. PostgreSQL checks any other fraction once
//! a group, and raises an error only if there is a group. Arrays of fractions are left to
//! PostgreSQL.

use lanes_columnar::aggregate::percentile::{Choice, Percentile};
use lanes_columnar::aggregate::{Accumulator, Argument};
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::with_number;
use lanes_simd::Comparison;
use pgrx::pg_sys;

use super::aggregate_call::{Parts, Shape};
use super::translate::{Translation, Translator};
use crate::pg::ports;
use crate::pg::tree::{Aggref, Expr};

/// How a call chooses among values; `None` if it calls another aggregate.
pub fn choice(call: Aggref<'_>) -> Option<Choice> {
    match call.aggfnoid().to_u32() {
        pg_sys::F_PERCENTILE_CONT_FLOAT8_FLOAT8 => Some(Choice::Continuous),
        pg_sys::F_PERCENTILE_DISC_FLOAT8_ANYELEMENT => Some(Choice::Discrete),
        pg_sys::F_MODE => Some(Choice::MostFrequent),
        _ => None,
    }
}

/// The argument, the accumulator and the result of a call. The argument is the expression that it orders by.
///
/// # Errors
/// Why the engine cannot compute the percentile.
pub fn parts(translator: &mut Translator, call: Aggref<'_>, value: Expr<'_>) -> Translation<Parts> {
    let choice = choice(call).ok_or("another aggregate than a percentile")?;
    let fraction = match choice {
        Choice::MostFrequent => None,
        _ => fraction(call)?,
    };
    let descends = descends(call)?;
    let value = translator.value(value)?;
    let number = value.number();
    let shape = match choice {
        Choice::Discrete | Choice::MostFrequent => Shape::Number(number),
        Choice::Continuous => Shape::Number(NumberType::F64),
    };
    let percentile: Box<dyn Accumulator> = with_number!(number, T => {
        Box::new(Percentile::<T>::new(choice, fraction, descends))
    });
    Ok((Argument::Number(value), percentile, shape))
}

/// The fraction of a call; `None` is NULL.
fn fraction(call: Aggref<'_>) -> Translation<Option<f64>> {
    let fraction = call.aggdirectargs().first();
    let fraction = fraction
        .ok_or("a percentile without a fraction")?
        .stripped();
    let Some(constant) = fraction.as_const() else {
        return Err("a percentile whose fraction is no constant".into());
    };
    let value = constant
        .value()
        .map(|value| f64::from_bits(value.datum().value() as u64));
    match value.is_none_or(|value| (0.0..=1.0).contains(&value)) {
        true => Ok(value),
        false => Err("a percentile whose fraction is not between 0 and 1".into()),
    }
}

/// Whether a call orders values from the greatest to the least.
fn descends(call: Aggref<'_>) -> Translation<bool> {
    let clause = call.aggorder().first();
    let operator = clause.and_then(|clause| ports::btree_operator(clause.sortop()));
    match operator {
        Some((Comparison::Less, ..)) => Ok(false),
        Some((Comparison::Greater, ..)) => Ok(true),
        _ => Err("a percentile in an order that is not the type's own".into()),
    }
}
