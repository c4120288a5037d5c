//! Translates calls of aggregates, and the keys of groups.

use lanes_columnar::aggregate::accumulator::Count;
use lanes_columnar::aggregate::distinct::Distinct;
use lanes_columnar::aggregate::extreme::{End, Extreme};
use lanes_columnar::aggregate::logic::Logic;
use lanes_columnar::aggregate::moments::Moments;
use lanes_columnar::aggregate::sum::{FloatSum, IntegerResult, IntegerSums};
use lanes_columnar::aggregate::{Accumulator, Aggregate, Argument, Key};
use lanes_columnar::vector::number::{Number, NumberType};
use lanes_columnar::with_number;
use pgrx::pg_sys;

use super::lanes_aggregate::{self, Arrival, Ordered};
use super::regression::{self, OfPairs};
use super::row_function::KeysByCode;
use super::transition_state::TransitionState;
use super::translate::{Translation, Translator, number_type, text_column};
use super::uuid_quals::uuid_column;
use super::variance_call::{spread_of, variance};
use super::{
    bit_call, bucket_call, coded_count, distinct_count, epoch_bucket, percentile, row_order,
    text_extreme,
};
use crate::pg::catalog;
use crate::pg::names::{describe, function_name, type_name};
use crate::pg::numeric::Numeric;
use crate::pg::tree::{Aggref, Expr, TargetEntry};

/// How an aggregate's result becomes a datum.
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
    /// `integer[]`.
    Counts,
    /// An array of numbers of a type, with the type of its elements.
    Numbers(NumberType, pg_sys::Oid),
    /// `numeric`, an exact sum divided by a count.
    NumericAverage,
    /// `double precision`, from count, sum and squares of differences; `numeric`, from exact sums of integers.
    Moment(Moment),
    /// `double precision`, from the moments of pairs.
    OfPairs(OfPairs),
    /// What a worker hands over instead of a result.
    State(TransitionState),
    /// A value of the aggregate's own type.
    Datum,
}

/// What is computed from count, sum and squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// The mean.
    Average,
    /// The variance of a sample or a population, or its root.
    Variance { sample: bool, root: bool },
}

/// The aggregate that a call computes, and how its result becomes a datum. Values that PostgreSQL computes, and that
/// count once, get codes in `by_code`.
///
/// # Errors
/// Why the engine cannot compute the aggregate.
pub fn aggregate(
    translator: &mut Translator,
    call: Aggref<'_>,
    arrival: Arrival,
    by_code: &mut KeysByCode,
) -> Translation<(Aggregate, Shape)> {
    let name = || function_name(call.aggfnoid().to_u32());
    let is_percentile = percentile::choice(call).is_some();
    let is_known = call.is_normal() || is_percentile;
    if !is_known || call.aggvariadic() || call.agglevelsup() != 0 {
        return Err(format!("aggregate {}", name()));
    }
    let filter = match call.aggfilter() {
        None => None,
        Some(filter) => Some(translator.predicate(filter)?),
    };
    let arguments: Vec<Expr<'_>> = call.args().iter().map(TargetEntry::expr).collect();
    if let [counted] = arguments[..]
        && let Some(place) = translator.given_code(counted)
    {
        let aggregate = coded_count::aggregate(translator, filter, place, is_distinct(call));
        return Ok((aggregate, Shape::BigInt));
    }
    if let [counted] = arguments[..]
        && call.aggfnoid().to_u32() == pg_sys::F_COUNT_ANY
        && is_distinct(call)
        && let Some(argument) = distinct_count::argument(translator, call, counted, by_code)?
    {
        let aggregate = Aggregate {
            filter,
            argument,
            accumulator: Box::new(Count::default()),
        };
        return Ok((aggregate, Shape::BigInt));
    }
    let ordered = Ordered::of(call, arrival);
    let is_any_order = is_percentile || row_order::is_ignored(call);
    let (argument, accumulator, shape) = match (is_percentile, &arguments[..]) {
        (true, [value, ..]) => percentile::parts(translator, call, *value)?,
        (true, []) => return Err(format!("aggregate {}", name())),
        (false, _) if !is_any_order && !ordered.is_respected(call) => {
            ordered_rows(translator, call, &arguments)?
        }
        (false, _) => builtin_or_rows(translator, call, &arguments, &ordered)?,
    };
    let aggregate = Aggregate {
        filter,
        argument: once_if_distinct(translator, call, &arguments, argument)?,
        accumulator,
    };
    Ok((aggregate, shape))
}

/// The argument of a call, each value of which counts once if the call has DISTINCT.
fn once_if_distinct(
    translator: &mut Translator,
    call: Aggref<'_>,
    arguments: &[Expr<'_>],
    argument: Argument,
) -> Translation<Argument> {
    if !is_distinct(call) || matches!(argument, Argument::Rows | Argument::Distinct(_)) {
        return Ok(argument);
    }
    match arguments {
        [value] if !lanes_aggregate::is_ours(call.aggfnoid()) => {
            let (key, _) = key(translator, *value)?;
            Ok(Argument::Distinct(Distinct::new(argument, key)))
        }
        _ => {
            let name = function_name(call.aggfnoid().to_u32());
            Err(format!("DISTINCT in {name}"))
        }
    }
}

/// The aggregate whose transition state a [partial](Aggref::is_partial) call returns, and how the state becomes a
/// datum. PostgreSQL keeps one state for the calls of a query that have the same transition function and the same
/// arguments.
///
/// # Errors
/// Why the engine cannot compute the state.
pub fn partial(
    translator: &mut Translator,
    call: Aggref<'_>,
    calls: &[Aggref<'_>],
) -> Translation<(Aggregate, Shape)> {
    let mut by_code = KeysByCode::default();
    let (aggregate, shape) = aggregate(translator, call, Arrival::InOrder, &mut by_code)?;
    let function = call.aggfnoid().to_u32();
    if matches!(aggregate.argument, Argument::Rows) {
        // PostgreSQL's own functions make the state.
        return Ok((aggregate, shape));
    }
    let Some(state) = TransitionState::of(function) else {
        // The state of a count, a sum, an extreme or a truth is its result.
        let is_result = matches!(shape, Shape::BigInt | Shape::Number(_) | Shape::Truth);
        if is_result && !keeps_values(call) && !lanes_aggregate::is_ours(call.aggfnoid()) {
            return Ok((aggregate, shape));
        }
        return Err(format!("aggregate {} by workers", function_name(function)));
    };
    let has_variance = || {
        let mut others = calls
            .iter()
            .filter(|other| other.aggtransno() == call.aggtransno());
        others.any(|other| spread_of(other.aggfnoid().to_u32()).is_some())
    };
    let accumulator: Box<dyn Accumulator> = match (state, function) {
        // The state of a sum has a count too.
        (TransitionState::IntegerSum, _) => {
            Box::new(IntegerSums::<i64>::new(IntegerResult::Average))
        }
        // An average needs no squares; a variance with the same state does.
        (TransitionState::Floats, pg_sys::F_AVG_FLOAT4) => {
            Box::new(Moments::<f32>::new(has_variance()))
        }
        (TransitionState::Floats, pg_sys::F_AVG_FLOAT8) => {
            Box::new(Moments::<f64>::new(has_variance()))
        }
        _ => aggregate.accumulator,
    };
    let aggregate = Aggregate {
        accumulator,
        ..aggregate
    };
    Ok((aggregate, Shape::State(state)))
}

/// Whether zone maps hold the result of an aggregate of all rows.
pub fn is_in_zone_maps(call: Aggref<'_>) -> bool {
    use pg_sys::{
        F_AVG_INT2, F_AVG_INT4, F_AVG_INT8, F_COUNT_, F_COUNT_ANY, F_SUM_INT2, F_SUM_INT4,
        F_SUM_INT8,
    };
    let function = call.aggfnoid().to_u32();
    let is_held = match function {
        F_COUNT_ | F_COUNT_ANY => true,
        F_SUM_INT2 | F_SUM_INT4 | F_SUM_INT8 => true,
        F_AVG_INT2 | F_AVG_INT4 | F_AVG_INT8 => true,
        _ => end_of(function).is_some(),
    };
    let mut arguments = call.args().iter().map(TargetEntry::expr);
    let has_columns = arguments.all(|argument| argument.as_var().is_some());
    is_held && has_columns && call.aggfilter().is_none() && !is_distinct(call)
}

/// Whether only distinct values count, and it makes a difference.
pub(super) fn is_distinct(call: Aggref<'_>) -> bool {
    use pg_sys::*;
    let function = call.aggfnoid().to_u32();
    let is_same =
        end_of(function).is_some() || matches!(function, F_BOOL_AND | F_EVERY | F_BOOL_OR);
    !call.aggdistinct().is_empty() && !is_same
}

/// Whether an aggregate keeps values of its rows: many of them may be in one group.
pub fn keeps_values(call: Aggref<'_>) -> bool {
    is_distinct(call) || percentile::choice(call).is_some()
}

/// The argument of an aggregate, its states, and how its result becomes a datum.
pub type Parts = (Argument, Box<dyn Accumulator>, Shape);

/// A call of an aggregate that the engine computes or, failing that, one whose states PostgreSQL computes.
fn builtin_or_rows(
    translator: &mut Translator,
    call: Aggref<'_>,
    arguments: &[Expr<'_>],
    ordered: &Ordered<'_>,
) -> Translation<Parts> {
    let before = translator.progress();
    builtin(translator, call, arguments, ordered).or_else(|reason| {
        if !translator.has_row_functions {
            return Err(reason);
        }
        translator.go_back(before);
        translator.row_aggregate(call, arguments).ok_or(reason)
    })
}

/// A call of an aggregate whose result depends on the order of its rows: PostgreSQL computes it.
fn ordered_rows(
    translator: &mut Translator,
    call: Aggref<'_>,
    arguments: &[Expr<'_>],
) -> Translation<Parts> {
    let parts = match translator.has_row_functions {
        true => translator.row_aggregate(call, arguments),
        false => None,
    };
    parts.ok_or_else(|| format!("ORDER BY in {}", function_name(call.aggfnoid().to_u32())))
}

/// A call of an aggregate of PostgreSQL's or, failing that, of this extension's.
fn builtin(
    translator: &mut Translator,
    call: Aggref<'_>,
    arguments: &[Expr<'_>],
    ordered: &Ordered<'_>,
) -> Translation<Parts> {
    use pg_sys::*;
    let function = call.aggfnoid().to_u32();
    if function == F_COUNT_ {
        return Ok((Argument::Nothing, Box::new(Count::default()), Shape::BigInt));
    }
    let &[argument, ..] = arguments else {
        return Err(format!("aggregate {}", function_name(function)));
    };
    match function {
        F_COUNT_ANY => {
            let counted = counted(translator, argument.stripped())?;
            Ok((counted, Box::new(Count::default()), Shape::BigInt))
        }
        F_SUM_INT2 => integers::<i16>(translator, argument, IntegerResult::Sum, Shape::BigInt),
        F_SUM_INT4 => integers::<i32>(translator, argument, IntegerResult::Sum, Shape::BigInt),
        F_SUM_INT8 => integers::<i64>(translator, argument, IntegerResult::Sum, Shape::Numeric),
        F_AVG_INT2 => average::<i16>(translator, argument),
        F_AVG_INT4 => average::<i32>(translator, argument),
        F_AVG_INT8 => average::<i64>(translator, argument),
        F_SUM_FLOAT4 => {
            let value = number(translator, argument, NumberType::F32)?;
            let shape = Shape::Number(NumberType::F32);
            Ok((value, Box::new(FloatSum::<f32>::default()), shape))
        }
        F_SUM_FLOAT8 => {
            let value = number(translator, argument, NumberType::F64)?;
            let shape = Shape::Number(NumberType::F64);
            Ok((value, Box::new(FloatSum::<f64>::default()), shape))
        }
        F_AVG_FLOAT4 => moments::<f32>(translator, argument, Moment::Average),
        F_AVG_FLOAT8 => moments::<f64>(translator, argument, Moment::Average),
        F_BOOL_AND | F_EVERY | F_BOOL_OR => {
            let predicate = translator.predicate(argument)?;
            let logic = Logic::new(function != F_BOOL_OR);
            Ok((Argument::Truth(predicate), Box::new(logic), Shape::Truth))
        }
        F_REGR_COUNT => regression::count(translator, arguments),
        _ if let Some(wanted) = OfPairs::of(function) => {
            regression::parts(translator, arguments, wanted)
        }
        _ if let Some(operation) = bit_call::operation(function) => {
            bit_call::parts(translator, argument, operation)
        }
        _ => match (end_of(function), spread_of(function)) {
            (Some(end), _) => extreme(translator, argument, end),
            (None, Some((number, spread))) => variance(translator, argument, number, spread),
            (None, None) => match text_extreme::parts(translator, call, argument)? {
                Some(parts) => Ok(parts),
                None => lanes_aggregate::parts(translator, call, arguments, ordered),
            },
        },
    }
}

/// The argument of `count(x)`.
fn counted(translator: &mut Translator, argument: Expr<'_>) -> Translation<Argument> {
    if let Some(column) = argument.as_var()
        && !translator.is_given(column)
    {
        return Ok(Argument::Presence(translator.attribute(column)?));
    }
    if let Some(constant) = argument.as_const() {
        return match constant.constisnull() {
            false => Ok(Argument::Nothing),
            true => Err("a count of NULL".into()),
        };
    }
    if argument.type_of() == pg_sys::BOOLOID {
        return Ok(Argument::Truth(translator.predicate(argument)?));
    }
    Ok(Argument::Number(translator.value(argument)?))
}

/// The end of numbers that an aggregate, by its OID, finds if it is `min` or `max`.
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

/// An argument that must be a number of a type.
pub(super) fn number(
    translator: &mut Translator,
    argument: Expr<'_>,
    wanted: NumberType,
) -> Translation<Argument> {
    let value = translator.value(argument)?;
    if value.number() != wanted {
        return Err("an argument of another type".into());
    }
    Ok(Argument::Number(value))
}

/// A sum, an average or a variance of integers.
pub(super) fn integers<T: Number>(
    translator: &mut Translator,
    argument: Expr<'_>,
    shape: IntegerResult,
    result: Shape,
) -> Translation<Parts>
where
    T::Sum: Into<i128>,
{
    let value = number(translator, argument, T::TYPE)?;
    Ok((value, Box::new(IntegerSums::<T>::new(shape)), result))
}

/// An average of integers.
fn average<T: Number>(translator: &mut Translator, argument: Expr<'_>) -> Translation<Parts>
where
    T::Sum: Into<i128>,
{
    let result = Shape::NumericAverage;
    integers::<T>(translator, argument, IntegerResult::Average, result)
}

/// An average or a variance of floats.
pub(super) fn moments<T: Number>(
    translator: &mut Translator,
    argument: Expr<'_>,
    moment: Moment,
) -> Translation<Parts> {
    let value = number(translator, argument, T::TYPE)?;
    let moments = Moments::<T>::new(moment != Moment::Average);
    Ok((value, Box::new(moments), Shape::Moment(moment)))
}

/// `min` or `max` of numbers.
fn extreme(translator: &mut Translator, argument: Expr<'_>, end: End) -> Translation<Parts> {
    let value = translator.value(argument)?;
    let number = value.number();
    let extreme: Box<dyn Accumulator> = with_number!(number, T => Box::new(Extreme::<T>::new(end)));
    Ok((Argument::Number(value), extreme, Shape::Number(number)))
}

/// How a group's key becomes a datum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyShape {
    /// `text` or `varchar`.
    Text,
    /// `uuid`.
    Uuid,
    /// A number of a type.
    Number(NumberType),
    /// `boolean`.
    Truth,
    /// `numeric`: the number of a bucket of seconds, times the factor if there is one.
    Epoch(Option<Numeric>),
    /// The value of this joined expression, of which the key is a code.
    Joined(usize),
}

/// The key that an expression of GROUP BY is, and how it becomes a datum.
///
/// # Errors
/// Why the engine cannot group by it.
pub fn key(translator: &mut Translator, expr: Expr<'_>) -> Translation<(Key, KeyShape)> {
    // Relabelling changes no bytes, but it may change which values are equal: by a collation, or in a `bpchar` by the
    // blanks at the end.
    let (grouped_as, collation) = (expr.type_of(), expr.collation());
    let expr = expr.stripped();
    if !expr.has_vars() {
        return Err("a constant in GROUP BY".into());
    }
    if let Some(bucket) = epoch_bucket::key(translator, expr)? {
        return Ok(bucket);
    }
    if !is_grouped_by_bytes(grouped_as) {
        return Err(format!("GROUP BY type {}", type_name(grouped_as)));
    }
    if let Some(column) = text_column(expr) {
        if !catalog::is_deterministic(collation) {
            return Err("a nondeterministic collation in GROUP BY".into());
        }
        return Ok((Key::Text(translator.attribute(column)?), KeyShape::Text));
    }
    if let Some(column) = uuid_column(expr) {
        return Ok((Key::Bytes16(translator.attribute(column)?), KeyShape::Uuid));
    }
    let type_of = expr.type_of();
    if type_of == pg_sys::BOOLOID {
        return Ok((Key::Truth(translator.predicate(expr)?), KeyShape::Truth));
    }
    if let Some(call) = expr.as_func()
        && let Some(bucket) = bucket_call::key(translator, call)?
    {
        return Ok(bucket);
    }
    match number_type(type_of) {
        Some(number) => Ok((
            Key::Number(translator.value(expr)?),
            KeyShape::Number(number),
        )),
        None if expr.as_var().is_some() => {
            Err(format!("GROUP BY a column of type {}", type_name(type_of)))
        }
        None => Err(describe(expr)),
    }
}

/// Whether values of a type are equal exactly if the engine finds them equal: texts are if their bytes are.
pub(super) fn is_grouped_by_bytes(type_of: pg_sys::Oid) -> bool {
    let base = catalog::base_type(type_of);
    let is_text = matches!(base, pg_sys::TEXTOID | pg_sys::VARCHAROID);
    is_text || matches!(base, pg_sys::BOOLOID | pg_sys::UUIDOID) || number_type(base).is_some()
}
