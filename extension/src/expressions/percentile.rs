//! Translates calls of `percentile_cont`, `percentile_disc` and `mode`.
//!
//! The fraction must be a constant from 0 to 1, or NULL. PostgreSQL checks any other fraction once
//! a group, and raises an error only if there is a group. Instead of a fraction there may be an array
//! of them, of one dimension.

use lanes_columnar::aggregate::percentile::{Choice, Fractions, Percentile};
use lanes_columnar::aggregate::{Accumulator, Argument};
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::with_number;
use lanes_simd::Comparison;
use pgrx::pg_sys;

use super::aggregate_call::{Parts, Shape};
use super::translate::{Translation, Translator};
use crate::pg::tree::{Aggref, Expr};
use crate::pg::typed_datum::TypedDatum;
use crate::pg::{catalog, ports};

/// How a call chooses among values; `None` if it calls another aggregate.
pub fn choice(call: Aggref<'_>) -> Option<Choice> {
    match call.aggfnoid().to_u32() {
        pg_sys::F_PERCENTILE_CONT_FLOAT8_FLOAT8 | pg_sys::F_PERCENTILE_CONT__FLOAT8_FLOAT8 => {
            Some(Choice::Continuous)
        }
        pg_sys::F_PERCENTILE_DISC_FLOAT8_ANYELEMENT
        | pg_sys::F_PERCENTILE_DISC__FLOAT8_ANYELEMENT => Some(Choice::Discrete),
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
    let fractions = match choice {
        Choice::MostFrequent => Fractions::One(None),
        _ => fractions(call)?,
    };
    let descends = descends(call)?;
    let value = translator.value(value)?;
    let number = value.number();
    let shape = match (choice, &fractions) {
        (Choice::Continuous, Fractions::One(_)) => Shape::Number(NumberType::F64),
        (Choice::Continuous, Fractions::Several(_)) => {
            Shape::Numbers(NumberType::F64, pg_sys::FLOAT8OID)
        }
        (Choice::Discrete | Choice::MostFrequent, Fractions::One(_)) => Shape::Number(number),
        (Choice::Discrete | Choice::MostFrequent, Fractions::Several(_)) => {
            Shape::Numbers(number, catalog::element_type(call.aggtype()))
        }
    };
    let percentile: Box<dyn Accumulator> = with_number!(number, T => {
        Box::new(Percentile::<T>::new(choice, fractions, descends))
    });
    Ok((Argument::Number(value), percentile, shape))
}

/// The fractions of a call.
fn fractions(call: Aggref<'_>) -> Translation<Fractions> {
    let fraction = call.aggdirectargs().first();
    let fraction = fraction
        .ok_or("a percentile without a fraction")?
        .stripped();
    let Some(constant) = fraction.as_const() else {
        return Err("a percentile whose fraction is no constant".into());
    };
    let fractions = match (call.aggfnoid().to_u32(), constant.value()) {
        (
            pg_sys::F_PERCENTILE_CONT__FLOAT8_FLOAT8 | pg_sys::F_PERCENTILE_DISC__FLOAT8_ANYELEMENT,
            array,
        ) => {
            let elements = array.and_then(TypedDatum::list);
            let elements = elements.ok_or("fractions that are no array of one dimension")?;
            let each = elements.iter().map(|element| element.map(double));
            Fractions::Several(each.collect())
        }
        (_, fraction) => Fractions::One(fraction.map(double)),
    };
    let is_legal = |fraction: &Option<f64>| fraction.is_none_or(|it| (0.0..=1.0).contains(&it));
    let are_legal = match &fractions {
        Fractions::One(fraction) => is_legal(fraction),
        Fractions::Several(several) => several.iter().all(is_legal),
    };
    match are_legal {
        true => Ok(fractions),
        false => Err("a percentile whose fraction is not between 0 and 1".into()),
    }
}

/// The number that a `float8` is.
fn double(value: TypedDatum) -> f64 {
    f64::from_bits(value.datum().value() as u64)
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
