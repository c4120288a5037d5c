//! Translates calls of functions that return the start of a time bucket: `lanes.time_bucket`,
//! `lanes.xbar`, `date_trunc` and `date_bin`.

use lanes_columnar::aggregate::Key;
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::value::Value;
use pgrx::pg_sys;

use super::aggregate_call::KeyShape;
use super::buckets::{self, BucketKey, Clock, FunctionBuckets, Reach};
use super::translate::{Constant, Scalars, Translation, Translator, number_type, to_scalar};
use crate::arithmetic::bucket::{Bucket, BucketError, Parts};
use crate::pg::catalog;
use crate::pg::exec::function_call::FunctionCall;
use crate::pg::names::function_name;
use crate::pg::time_zone::TimeZone;
use crate::pg::tree::{Expr, Expression, FuncExpr};
use crate::pg::typed_datum::TypedDatum;

/// The function of a bucket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Function {
    /// `lanes.time_bucket` or `lanes.xbar`
    TimeBucket,
    /// `date_trunc`
    Truncate,
    /// `date_bin`
    Bin,
}

impl Function {
    fn of(function: pg_sys::Oid) -> Option<Function> {
        match function.to_u32() {
            pg_sys::F_DATE_TRUNC_TEXT_TIMESTAMP
            | pg_sys::F_DATE_TRUNC_TEXT_TIMESTAMPTZ
            | pg_sys::F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT => Some(Function::Truncate),
            pg_sys::F_DATE_BIN_INTERVAL_TIMESTAMP_TIMESTAMP
            | pg_sys::F_DATE_BIN_INTERVAL_TIMESTAMPTZ_TIMESTAMPTZ => Some(Function::Bin),
            oid if catalog::is_lanes_function(function) => {
                matches!(function_name(oid).as_str(), "time_bucket" | "xbar")
                    .then_some(Function::TimeBucket)
            }
            _ => None,
        }
    }
}

/// The bucket that an expression is, if its width is a constant.
pub fn bucket_key(expr: Expr<'_>) -> Option<BucketKey<'_>> {
    let call = expr.stripped().as_func()?;
    let function = Function::of(call.funcid())?;
    let mut arguments = call.args().iter();
    let (width, time) = (arguments.next()?.as_const()?.value()?, arguments.next()?);
    let is_date = time.type_of() == pg_sys::DATEOID;
    let parts = match (function, width.interval()) {
        (Function::Truncate, _) => buckets::unit_parts(&width.bytes()?)?,
        (_, Some(interval)) => Parts {
            months: interval.month,
            days: interval.day,
            micros: interval.time,
        },
        (_, None) => return None,
    };
    let width = parts.estimated_micros() / if is_date { DAY } else { 1.0 };
    (width > 0.0).then_some(BucketKey { time, width })
}

/// A day in microseconds.
const DAY: f64 = 86_400e6;

/// The index of the argument that is the time.
const TIME: usize = 1;

/// The key that a call is, if it is of one of these functions.
///
/// # Errors
/// If an argument other than the time differs from row to row.
pub fn key(
    translator: &mut Translator,
    call: FuncExpr<'_>,
) -> Translation<Option<(Key, KeyShape)>> {
    let arguments: Vec<Expr<'_>> = call.args().iter().collect();
    let Some(function) = Function::of(call.funcid()) else {
        return Ok(None);
    };
    if !matches!(arguments.len(), 2 | 3) {
        return Ok(None);
    }
    let time = translator.value(arguments[TIME])?;
    let result = call.as_expr().type_of();
    let Some(number) = number_type(result) else {
        return Ok(None);
    };
    if time.number() != number || !matches!(number, NumberType::I32 | NumberType::I64) {
        return Ok(None);
    }
    let mut constants: Vec<Constant> = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        if index == TIME {
            constants.push(None);
        } else if argument.has_vars() {
            return Err("a bucket whose width differs by row".into());
        } else {
            constants.push(translator.constant(*argument)?);
        }
    }
    let shape = KeyShape::Number(number);
    let Scalars::Evaluated(node) = translator.scalars_from() else {
        return Ok(Some((Key::Number(time), shape)));
    };
    let is_null = |(index, value): (usize, &Constant)| index != TIME && value.is_none();
    if constants.iter().enumerate().any(is_null) {
        // The functions are strict, so each row has the key NULL.
        let null: Value = translator.null(number);
        return Ok(Some((Key::Number(null), shape)));
    }
    let reach = reach(function, &constants, number, result);
    let call = FunctionCall::new(call.funcid(), call.inputcollid(), &constants, TIME, node)
        .ok_or_else(|| format!("function {}", function_name(call.funcid().to_u32())))?;
    let buckets = FunctionBuckets::new(call, number == NumberType::I32, reach);
    Ok(Some((Key::Bucket(time, Box::new(buckets)), shape)))
}

/// How far the buckets of a call reach.
fn reach(
    function: Function,
    constants: &[Constant],
    number: NumberType,
    result: pg_sys::Oid,
) -> Reach {
    let Some(width) = constants[0] else {
        return Reach::Point;
    };
    let last = constants.get(2).copied().flatten();
    let zone_name = last
        .filter(|last| catalog::base_type(last.type_of()) == pg_sys::TEXTOID)
        .and_then(TypedDatum::bytes);
    let interval = width.interval().map(|interval| Parts {
        months: interval.month,
        days: interval.day,
        micros: interval.time,
    });
    // The function itself reports what is wrong with a width.
    let clock = |labels: Result<Bucket, BucketError>, zone| match labels {
        Ok(labels) => Reach::Clock(Clock::new(labels, zone)),
        Err(_) => Reach::Point,
    };
    match (function, zone_name, interval) {
        (Function::Truncate, Some(name), _) => match (TimeZone::named(&name), width.bytes()) {
            (Some(zone), Some(unit)) => buckets::reach_of_unit(&unit, Some(zone)),
            _ => Reach::Point,
        },
        (Function::Truncate, None, _) => {
            let zone = match result == pg_sys::TIMESTAMPTZOID {
                true => TimeZone::of_session(),
                false => None,
            };
            let unit = width.bytes().unwrap_or_default();
            buckets::reach_of_unit(&unit, zone)
        }
        (_, Some(name), Some(interval)) => match TimeZone::named(&name) {
            Some(zone) => clock(Bucket::timestamps(interval, None), Some(zone)),
            None => Reach::Point,
        },
        (_, _, None) => match to_scalar(number, width.datum()).0 as i64 {
            width if width > 0 => Reach::Width(width),
            _ => Reach::Point,
        },
        (Function::Bin, None, Some(interval)) => buckets::reach_of_stride(interval),
        (Function::TimeBucket, None, Some(interval)) => {
            let origin = last.map(|origin| origin.datum().value() as i64);
            match number {
                NumberType::I64 => clock(Bucket::timestamps(interval, origin), None),
                _ => clock(Bucket::dates(interval, origin.map(|day| day as i32)), None),
            }
        }
    }
}
