//! Translates calls of the aggregates over numbers in the order of their times.

use lanes_columnar::aggregate::ema::TimeSort;
use lanes_columnar::aggregate::over_time::{Between, Counter, OverTime, TimeWeight};
use lanes_columnar::aggregate::{Accumulator, Argument};
use lanes_columnar::vector::number::NumberType;

use super::aggregate_call::{Parts, Shape};
use super::lanes_aggregate::{Arrival, Ordered};
use super::time_sort::TupleSort;
use super::translate::{Translation, Translator};
use crate::pg::tree::{Const, Expr};
use crate::pg::typed_datum::TypedDatum;

/// The argument, the accumulator and the result of a call of this name.
///
/// # Errors
/// Why the engine cannot compute the aggregate.
pub fn parts(
    translator: &mut Translator,
    name: &str,
    arguments: &[Expr<'_>],
    ordered: &Ordered<'_>,
) -> Translation<Parts> {
    let &[x, time, ..] = arguments else {
        return Err(format!("aggregate {name}"));
    };
    // Rows are taken in the order of their times in any case. Another order would decide which of equal times is first.
    let by_time = |&(key, ascends): &(Expr<'_>, bool)| ascends && key.equals(time);
    if !ordered.keys.iter().all(by_time) {
        return Err(format!("ORDER BY something else in {name}"));
    }
    let between = match arguments {
        [_, _, method] if name == "time_weight" => between(*method)?,
        _ => Between::Locf,
    };
    let x = translator.value(x)?;
    let time = translator.value(time)?;
    if x.number() != NumberType::F64 || time.number() != NumberType::I64 {
        return Err(format!("{name} of other types"));
    }
    let sort: Option<Box<dyn TimeSort>> = match ordered.arrival {
        Arrival::InOrder => None,
        Arrival::Any => Some(Box::new(TupleSort::begin())),
    };
    let series: Box<dyn Accumulator> = match name {
        "counter_increase" => Box::new(OverTime::new(Counter::default(), Counter::increase, sort)),
        "counter_rate" => Box::new(OverTime::new(Counter::default(), Counter::rate, sort)),
        _ => {
            let empty = TimeWeight::new(between);
            Box::new(OverTime::new(empty, TimeWeight::average, sort))
        }
    };
    Ok((Argument::Pair(x, time), series, Shape::Double))
}

/// The method that an argument names, if it is a constant.
fn between(method: Expr<'_>) -> Translation<Between> {
    let name = method.stripped().as_const().and_then(Const::value);
    let name = name.and_then(TypedDatum::bytes);
    let name = name.ok_or("a method of time_weight that is not a constant")?;
    Between::of(&name).ok_or_else(|| "an unknown method of time_weight".into())
}
