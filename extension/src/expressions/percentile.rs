//! Calls of `percentile_cont` and `percentile_disc`.
//!
//! The fraction has to be a constant from 0 to 1, or NULL: of any other PostgreSQL tells once a group whether it is an
//! error. An array of fractions is PostgreSQL's.

use lanes_columnar::aggregate::percentile::{Choice, Percentile};
use lanes_columnar::aggregate::{Accumulator, Argument};
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::with_number;
use lanes_simd::Comparison;
use pgrx::pg_sys;

use super::aggregate_call::{Parts, Shape};
use super::translate::{Translation, Translator, strip};
use crate::pg::{nodes, ports};

/// How such a call chooses; none if it is another aggregate's.
pub fn choice(call: &pg_sys::Aggref) -> Option<Choice> {
    match call.aggfnoid.to_u32() {
        pg_sys::F_PERCENTILE_CONT_FLOAT8_FLOAT8 => Some(Choice::Continuous),
        pg_sys::F_PERCENTILE_DISC_FLOAT8_ANYELEMENT => Some(Choice::Discrete),
        _ => None,
    }
}

/// A call with the expression that it orders by.
///
/// # Safety
/// `call` is a live Aggref over one table.
pub unsafe fn parts(
    translator: &mut Translator,
    call: &pg_sys::Aggref,
    arguments: &[*mut pg_sys::Node],
) -> Translation<Parts> {
    let choice = choice(call).ok_or("another aggregate than a percentile")?;
    // SAFETY: the caller's promise.
    unsafe {
        let fraction = fraction(call)?;
        let descends = descends(call)?;
        let value = translator.value(arguments[0])?;
        let number = value.number();
        let shape = match choice {
            Choice::Discrete => Shape::Number(number),
            Choice::Continuous => Shape::Number(NumberType::F64),
        };
        let percentile: Box<dyn Accumulator> = with_number!(number, T => {
            Box::new(Percentile::<T>::new(choice, fraction, descends))
        });
        Ok((Argument::Number(value), percentile, shape))
    }
}

/// The fraction of a call; `None` is NULL.
unsafe fn fraction(call: &pg_sys::Aggref) -> Translation<Option<f64>> {
    // SAFETY: a live call; the cast follows the tag.
    unsafe {
        let fraction = nodes::list::<pg_sys::Node>(call.aggdirectargs).next();
        let fraction = strip(fraction.ok_or("a percentile without a fraction")?);
        if (*fraction).type_ != pg_sys::NodeTag::T_Const {
            return Err("a percentile whose fraction is no constant".into());
        }
        let constant = &*fraction.cast::<pg_sys::Const>();
        let value = f64::from_bits(constant.constvalue.value() as u64);
        match constant.constisnull || (0.0..=1.0).contains(&value) {
            true => Ok((!constant.constisnull).then_some(value)),
            false => Err("a percentile whose fraction is not between 0 and 1".into()),
        }
    }
}

/// Whether a call orders from the greatest to the least.
unsafe fn descends(call: &pg_sys::Aggref) -> Translation<bool> {
    // SAFETY: a live call.
    unsafe {
        let clause = nodes::list::<pg_sys::SortGroupClause>(call.aggorder).next();
        let operator = clause.and_then(|clause| ports::btree_operator((*clause).sortop));
        match operator {
            Some((Comparison::Less, ..)) => Ok(false),
            Some((Comparison::Greater, ..)) => Ok(true),
            _ => Err("a percentile in an order that is not the type's own".into()),
        }
    }
}
