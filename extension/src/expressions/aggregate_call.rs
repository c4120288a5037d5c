//! From PostgreSQL's aggregate calls and grouping expressions to the engine's, and from the engine's answers to datums.

use lanes_columnar::aggregate::accumulator::Count;
use lanes_columnar::aggregate::extreme::{End, Extreme};
use lanes_columnar::aggregate::logic::Logic;
use lanes_columnar::aggregate::moments::Moments;
use lanes_columnar::aggregate::sum::{FloatSum, IntegerResult, IntegerSums};
use lanes_columnar::aggregate::{Accumulator, Aggregate, Argument, Key};
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::with_number;
use pgrx::pg_sys;

use super::buckets::{self, Clock, FunctionBuckets, Reach};
use super::call_memory::CallMemory;
use super::lanes_aggregate::{self, Arrival, Ordered, is_ours};
use super::translate::{Scalars, Translation, Translator, is_text_column, number_type, strip};
use super::uuid_quals::is_uuid_column;
use super::{epoch_bucket, percentile};
use crate::functions::bucket::{Bucket, Parts as Width};
use crate::pg::names::{describe, function_name, type_name};
use crate::pg::{datum, nodes};

/// How an answer becomes a datum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// `bigint`.
    BigInt,
    /// `numeric` from an exact integer.
    Numeric,
    /// A number of the argument's type.
    Number(NumberType),
    /// `double precision`.
    Double,
    /// `boolean`.
    Truth,
    /// `numeric`, an exact sum divided by a count.
    NumericAverage,
    /// `double precision`, from count, sum and squares of differences; `numeric`, from exact sums of integers.
    Moment(Moment),
}

/// What is wanted of count, sum and squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    Average,
    Variance { sample: bool, root: bool },
}

/// An aggregate call.
pub fn aggregate(
    translator: &mut Translator,
    call: *mut pg_sys::Aggref,
    arrival: Arrival,
) -> Translation<(Aggregate, Shape)> {
    // SAFETY: the caller's promise.
    unsafe {
        let call = &*call;
        let name = || function_name(call.aggfnoid.to_u32());
        if !call.aggdistinct.is_null() {
            return Err(format!("DISTINCT in {}", name()));
        }
        let is_percentile = percentile::choice(call).is_some();
        let is_known = call.aggkind as u8 == b'n' || is_percentile;
        if !is_known || call.aggvariadic || call.agglevelsup != 0 {
            return Err(format!("aggregate {}", name()));
        }
        let filter = match call.aggfilter.is_null() {
            true => None,
            false => Some(translator.predicate(call.aggfilter.cast())?),
        };
        let arguments: Vec<*mut pg_sys::Node> = nodes::list::<pg_sys::TargetEntry>(call.args)
            .map(|entry| (*entry).expr.cast())
            .collect();
        let ordered = Ordered::of(call, arrival);
        if !is_percentile && !ordered.is_heeded(call) {
            return Err(format!("ORDER BY in {}", name()));
        }
        let (argument, accumulator, shape) = match is_percentile {
            true => percentile::parts(translator, call, &arguments)?,
            false => builtin(translator, call, &arguments, &ordered)?,
        };
        let aggregate = Aggregate {
            filter,
            argument,
            accumulator,
        };
        Ok((aggregate, shape))
    }
}

/// What an aggregate takes, its states, and how its answer becomes a datum.
pub type Parts = (Argument, Box<dyn Accumulator>, Shape);

unsafe fn builtin(
    translator: &mut Translator,
    call: &pg_sys::Aggref,
    arguments: &[*mut pg_sys::Node],
    ordered: &Ordered,
) -> Translation<Parts> {
    use pg_sys::*;
    let function = call.aggfnoid.to_u32();
    let variance = |sample, root| Moment::Variance { sample, root };
    // SAFETY: `aggregate`'s caller promised a live call.
    unsafe {
        match function {
            F_COUNT_ => Ok((Argument::Nothing, Box::new(Count::default()), Shape::BigInt)),
            F_COUNT_ANY => {
                let argument = strip(arguments[0]);
                let taken = if (*argument).type_ == NodeTag::T_Var && !translator.is_given(argument)
                {
                    Argument::Presence(translator.attribute(argument)?)
                } else if !contain_var_clause(argument) && (*argument).type_ == NodeTag::T_Const {
                    match (*argument.cast::<Const>()).constisnull {
                        false => Argument::Nothing,
                        true => return Err("a count of NULL".into()),
                    }
                } else if exprType(argument) == BOOLOID {
                    Argument::Truth(translator.predicate(argument)?)
                } else {
                    Argument::Number(translator.value(argument)?)
                };
                Ok((taken, Box::new(Count::default()), Shape::BigInt))
            }
            F_SUM_INT2 => integers::<i16>(translator, arguments, IntegerResult::Sum, Shape::BigInt),
            F_SUM_INT4 => integers::<i32>(translator, arguments, IntegerResult::Sum, Shape::BigInt),
            F_SUM_INT8 => {
                integers::<i64>(translator, arguments, IntegerResult::Sum, Shape::Numeric)
            }
            F_AVG_INT2 => average::<i16>(translator, arguments),
            F_AVG_INT4 => average::<i32>(translator, arguments),
            F_AVG_INT8 => average::<i64>(translator, arguments),
            F_SUM_FLOAT4 => {
                let value = number(translator, arguments, NumberType::F32)?;
                let shape = Shape::Number(NumberType::F32);
                Ok((value, Box::new(FloatSum::<f32>::default()), shape))
            }
            F_SUM_FLOAT8 => {
                let value = number(translator, arguments, NumberType::F64)?;
                let shape = Shape::Number(NumberType::F64);
                Ok((value, Box::new(FloatSum::<f64>::default()), shape))
            }
            F_VAR_POP_INT2 => variance_of::<i16>(translator, arguments, false, false),
            F_VAR_POP_INT4 => variance_of::<i32>(translator, arguments, false, false),
            F_VAR_SAMP_INT2 | F_VARIANCE_INT2 => {
                variance_of::<i16>(translator, arguments, true, false)
            }
            F_VAR_SAMP_INT4 | F_VARIANCE_INT4 => {
                variance_of::<i32>(translator, arguments, true, false)
            }
            F_STDDEV_POP_INT2 => variance_of::<i16>(translator, arguments, false, true),
            F_STDDEV_POP_INT4 => variance_of::<i32>(translator, arguments, false, true),
            F_STDDEV_SAMP_INT2 | F_STDDEV_INT2 => {
                variance_of::<i16>(translator, arguments, true, true)
            }
            F_STDDEV_SAMP_INT4 | F_STDDEV_INT4 => {
                variance_of::<i32>(translator, arguments, true, true)
            }
            F_AVG_FLOAT4 => moments::<f32>(translator, arguments, Moment::Average),
            F_AVG_FLOAT8 => moments::<f64>(translator, arguments, Moment::Average),
            F_VAR_POP_FLOAT4 => moments::<f32>(translator, arguments, variance(false, false)),
            F_VAR_POP_FLOAT8 => moments::<f64>(translator, arguments, variance(false, false)),
            F_VAR_SAMP_FLOAT4 | F_VARIANCE_FLOAT4 => {
                moments::<f32>(translator, arguments, variance(true, false))
            }
            F_VAR_SAMP_FLOAT8 | F_VARIANCE_FLOAT8 => {
                moments::<f64>(translator, arguments, variance(true, false))
            }
            F_STDDEV_POP_FLOAT4 => moments::<f32>(translator, arguments, variance(false, true)),
            F_STDDEV_POP_FLOAT8 => moments::<f64>(translator, arguments, variance(false, true)),
            F_STDDEV_SAMP_FLOAT4 | F_STDDEV_FLOAT4 => {
                moments::<f32>(translator, arguments, variance(true, true))
            }
            F_STDDEV_SAMP_FLOAT8 | F_STDDEV_FLOAT8 => {
                moments::<f64>(translator, arguments, variance(true, true))
            }
            F_BOOL_AND | F_EVERY | F_BOOL_OR => {
                let predicate = translator.predicate(arguments[0])?;
                let logic = Logic::new(function != F_BOOL_OR);
                Ok((Argument::Truth(predicate), Box::new(logic), Shape::Truth))
            }
            _ => match end_of(function) {
                Some(end) => extreme(translator, arguments, end),
                None => lanes_aggregate::parts(translator, call, arguments, ordered),
            },
        }
    }
}

/// Which end of numbers an aggregate finds, if it is `min` or `max` of them.
pub fn end_of(function: u32) -> Option<End> {
    use pg_sys::*;
    match function {
        F_MIN_INT2 | F_MIN_INT4 | F_MIN_INT8 | F_MIN_FLOAT4 | F_MIN_FLOAT8 | F_MIN_DATE
        | F_MIN_TIME | F_MIN_TIMESTAMP | F_MIN_TIMESTAMPTZ => Some(End::Minimum),
        F_MAX_INT2 | F_MAX_INT4 | F_MAX_INT8 | F_MAX_FLOAT4 | F_MAX_FLOAT8 | F_MAX_DATE
        | F_MAX_TIME | F_MAX_TIMESTAMP | F_MAX_TIMESTAMPTZ => Some(End::Maximum),
        _ => None,
    }
}

unsafe fn number(
    translator: &mut Translator,
    arguments: &[*mut pg_sys::Node],
    wanted: NumberType,
) -> Translation<Argument> {
    let value = translator.value(arguments[0])?;
    if value.number() != wanted {
        return Err("an argument of another type".into());
    }
    Ok(Argument::Number(value))
}

unsafe fn integers<T: lanes_columnar::vector::number::Number>(
    translator: &mut Translator,
    arguments: &[*mut pg_sys::Node],
    shape: IntegerResult,
    result: Shape,
) -> Translation<Parts>
where
    T::Sum: Into<i128>,
{
    // SAFETY: as for `builtin`.
    let value = unsafe { number(translator, arguments, T::TYPE)? };
    Ok((value, Box::new(IntegerSums::<T>::new(shape)), result))
}

unsafe fn average<T: lanes_columnar::vector::number::Number>(
    translator: &mut Translator,
    arguments: &[*mut pg_sys::Node],
) -> Translation<Parts>
where
    T::Sum: Into<i128>,
{
    // SAFETY: as for `builtin`.
    unsafe {
        integers::<T>(
            translator,
            arguments,
            IntegerResult::Average,
            Shape::NumericAverage,
        )
    }
}

/// Of integers whose squares add up in 128 bits: those of `bigint` need not.
unsafe fn variance_of<T: lanes_columnar::vector::number::Number>(
    translator: &mut Translator,
    arguments: &[*mut pg_sys::Node],
    sample: bool,
    root: bool,
) -> Translation<Parts>
where
    T::Sum: Into<i128>,
{
    let shape = Shape::Moment(Moment::Variance { sample, root });
    // SAFETY: as for `builtin`.
    unsafe { integers::<T>(translator, arguments, IntegerResult::Moments, shape) }
}

unsafe fn moments<T: lanes_columnar::vector::number::Number>(
    translator: &mut Translator,
    arguments: &[*mut pg_sys::Node],
    moment: Moment,
) -> Translation<Parts> {
    // SAFETY: as for `builtin`.
    let value = unsafe { number(translator, arguments, T::TYPE)? };
    let moments = Moments::<T>::new(moment != Moment::Average);
    Ok((value, Box::new(moments), Shape::Moment(moment)))
}

unsafe fn extreme(
    translator: &mut Translator,
    arguments: &[*mut pg_sys::Node],
    end: End,
) -> Translation<Parts> {
    let value = translator.value(arguments[0])?;
    let number = value.number();
    let extreme: Box<dyn Accumulator> = with_number!(number, T => Box::new(Extreme::<T>::new(end)));
    Ok((Argument::Number(value), extreme, Shape::Number(number)))
}

/// How a key becomes a datum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyShape {
    /// An item.
    Text,
    /// `uuid`.
    Uuid,
    /// A number of a type.
    Number(NumberType),
    /// `boolean`.
    Truth,
    /// `numeric`, the number of a bucket of seconds, times this if it is given.
    Epoch(Option<pg_sys::Datum>),
    /// What the code of this joined expression stands for.
    Joined(usize),
}

/// A grouping expression.
pub fn key(translator: &mut Translator, node: *mut pg_sys::Node) -> Translation<(Key, KeyShape)> {
    // SAFETY: the caller's promise.
    unsafe {
        // Relabelling changes no bytes, but it may change what is equal: a collation, blanks at the end of a `bpchar`.
        let (grouped_as, collation) = (pg_sys::exprType(node), pg_sys::exprCollation(node));
        let node = strip(node);
        if !pg_sys::contain_var_clause(node) {
            return Err("a constant in GROUP BY".into());
        }
        let type_of = pg_sys::exprType(node);
        if let Some(bucket) = epoch_bucket::key(translator, node)? {
            return Ok(bucket);
        }
        if !is_grouped_by_bytes(grouped_as) {
            return Err(format!("GROUP BY type {}", type_name(grouped_as)));
        }
        if is_text_column(node) {
            if collation != pg_sys::InvalidOid && !pg_sys::get_collation_isdeterministic(collation)
            {
                return Err("a nondeterministic collation in GROUP BY".into());
            }
            return Ok((Key::Text(translator.attribute(node)?), KeyShape::Text));
        }
        if is_uuid_column(node) {
            return Ok((Key::Bytes16(translator.attribute(node)?), KeyShape::Uuid));
        }
        if type_of == pg_sys::BOOLOID {
            return Ok((Key::Truth(translator.predicate(node)?), KeyShape::Truth));
        }
        if (*node).type_ == pg_sys::NodeTag::T_FuncExpr
            && let Some(bucket) = bucket(translator, node.cast())?
        {
            return Ok(bucket);
        }
        match number_type(type_of) {
            Some(number) => Ok((
                Key::Number(translator.value(node)?),
                KeyShape::Number(number),
            )),
            None if (*node).type_ == pg_sys::NodeTag::T_Var => {
                Err(format!("GROUP BY a column of type {}", type_name(type_of)))
            }
            None => Err(describe(node)),
        }
    }
}

/// Whether values of a type are equal as the engine compares them, that is if texts have the same bytes.
unsafe fn is_grouped_by_bytes(type_of: pg_sys::Oid) -> bool {
    // SAFETY: a catalogue look-up.
    let base = unsafe { pg_sys::getBaseType(type_of) };
    let is_text = matches!(base, pg_sys::TEXTOID | pg_sys::VARCHAROID);
    is_text || matches!(base, pg_sys::BOOLOID | pg_sys::UUIDOID) || number_type(base).is_some()
}

/// A time bucket, if the function gives one.
unsafe fn bucket(
    translator: &mut Translator,
    call: *mut pg_sys::FuncExpr,
) -> Translation<Option<(Key, KeyShape)>> {
    // SAFETY: as for `key`.
    unsafe {
        let function = (*call).funcid;
        let arguments: Vec<*mut pg_sys::Node> = nodes::list((*call).args).collect();
        let ours = is_ours(function)
            && matches!(
                function_name(function.to_u32()).as_str(),
                "time_bucket" | "xbar"
            );
        let truncates = matches!(
            function.to_u32(),
            pg_sys::F_DATE_TRUNC_TEXT_TIMESTAMP
                | pg_sys::F_DATE_TRUNC_TEXT_TIMESTAMPTZ
                | pg_sys::F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT
        );
        let bins = matches!(
            function.to_u32(),
            pg_sys::F_DATE_BIN_INTERVAL_TIMESTAMP_TIMESTAMP
                | pg_sys::F_DATE_BIN_INTERVAL_TIMESTAMPTZ_TIMESTAMPTZ
        );
        if !(ours || truncates || bins) || !matches!(arguments.len(), 2 | 3) {
            return Ok(None);
        }
        let time = translator.value(arguments[1])?;
        let result = pg_sys::exprType(call.cast());
        let Some(number) = number_type(result) else {
            return Ok(None);
        };
        if time.number() != number || !matches!(number, NumberType::I32 | NumberType::I64) {
            return Ok(None);
        }
        let mut scalars = Vec::new();
        for (index, argument) in arguments.iter().enumerate() {
            if index == 1 {
                scalars.push(Some(pg_sys::Datum::null()));
            } else if pg_sys::contain_var_clause(*argument) {
                return Err("a bucket whose width differs by row".into());
            } else {
                scalars.push(translator.constant(*argument)?);
            }
        }
        let shape = KeyShape::Number(number);
        if matches!(translator.scalars_from(), Scalars::Unknown) {
            return Ok(Some((Key::Number(time), shape)));
        }
        if scalars.iter().any(Option::is_none) {
            // The function is strict: every row has the key NULL.
            let null = translator.null(number);
            return Ok(Some((Key::Number(null), shape)));
        }
        let scalars: Vec<pg_sys::Datum> = scalars.into_iter().flatten().collect();
        let with_zone = result == pg_sys::TIMESTAMPTZOID;
        let width_type = pg_sys::exprType(arguments[0]);
        let has_zone = arguments.len() == 3 && pg_sys::exprType(arguments[2]) == pg_sys::TEXTOID;
        let interval = || {
            let width = &*scalars[0].cast_mut_ptr::<pg_sys::Interval>();
            Width {
                months: width.month,
                days: width.day,
                micros: width.time,
            }
        };
        let origin = scalars.get(2).map(|origin| origin.value() as i64);
        let clock = |labels: Result<Bucket, _>| match labels {
            Ok(labels) => Reach::Clock(Clock::plain(labels)),
            // The function says what is wrong.
            Err(_) => Reach::Point,
        };
        let reach = if has_zone {
            let zone = buckets::zone_of(&datum::text_payload(scalars[2]));
            if zone.is_null() {
                Reach::Point
            } else if truncates {
                buckets::reach_of_unit(&datum::text_payload(scalars[0]), zone)
            } else {
                match Bucket::timestamps(interval(), None) {
                    Ok(labels) => Reach::Clock(Clock::in_zone(labels, zone)),
                    Err(_) => Reach::Point,
                }
            }
        } else if truncates {
            let zone = match with_zone {
                true => pg_sys::session_timezone.cast_const(),
                false => std::ptr::null(),
            };
            buckets::reach_of_unit(&datum::text_payload(scalars[0]), zone)
        } else if width_type != pg_sys::INTERVALOID {
            let width = super::translate::to_scalar(number, scalars[0]).0 as i64;
            match width > 0 {
                true => Reach::Width(width),
                false => Reach::Point,
            }
        } else if bins {
            buckets::reach_of_stride(interval())
        } else if number == NumberType::I64 {
            clock(Bucket::timestamps(interval(), origin))
        } else {
            clock(Bucket::dates(interval(), origin.map(|day| day as i32)))
        };
        let narrow = number == NumberType::I32;
        let collation = (*call).inputcollid;
        let memory = CallMemory::new(translator.scalars_from());
        let buckets = FunctionBuckets::new(function, collation, scalars, 1, narrow, reach, memory);
        Ok(Some((Key::Bucket(time, Box::new(buckets)), shape)))
    }
}
