//! Translates calls of this extension's own aggregates, which may have an ORDER BY.

use lanes_columnar::aggregate::edge::Edge;
use lanes_columnar::aggregate::ema::{Ema, Order};
use lanes_columnar::aggregate::extreme::End;
use lanes_columnar::aggregate::histogram::{Buckets, Histogram};
use lanes_columnar::aggregate::weighted::Weighted;
use lanes_columnar::aggregate::{Accumulator, Argument};
use lanes_columnar::vector::Weight;
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::value::Value;
use lanes_columnar::with_number;
use lanes_simd::Comparison;

use super::aggregate_call::{Parts, Shape};
use super::over_time;
use super::time_sort::TupleSort;
use super::translate::{Translation, Translator};
use crate::pg::call;
use crate::pg::names::function_name;
use crate::pg::ports;
use crate::pg::tree::{Aggref, Const, Expr};

pub use crate::pg::catalog::is_lanes_function as is_ours;

/// Histograms with more buckets are left to PostgreSQL: one vector may bring so many groups as it has rows.
const HISTOGRAM_BUCKETS_MAX: i32 = 1_000;

/// In which order an aggregate with ORDER BY receives its rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// In the order that the call requests. If not, evaluation fails with
    /// [`lanes_columnar::vector::EvaluationError::Disordered`].
    InOrder,
    /// In any order: the aggregate sorts them.
    Any,
}

/// The ORDER BY of a call.
pub struct Ordered<'p> {
    /// The keys, and whether each is ascending with NULL last, in the type's own order.
    pub(super) keys: Vec<(Expr<'p>, bool)>,
    pub(super) arrival: Arrival,
}

impl<'p> Ordered<'p> {
    /// The ORDER BY of a call.
    pub fn of(call: Aggref<'p>, arrival: Arrival) -> Ordered<'p> {
        let keys = call.aggorder().iter().map(|clause| {
            let ascends = ports::btree_operator(clause.sortop())
                .is_some_and(|(comparison, ..)| comparison == Comparison::Less);
            (clause.expr(call.args()), ascends && !clause.nulls_first())
        });
        Ordered {
            keys: keys.collect(),
            arrival,
        }
    }

    /// Whether the engine respects the order: there is none, or the aggregate uses it.
    pub fn is_respected(&self, call: Aggref<'_>) -> bool {
        let name = || function_name(call.aggfnoid().to_u32());
        let is_used = || !matches!(name().as_str(), "vwap" | "histogram");
        self.keys.is_empty() || is_ours(call.aggfnoid()) && is_used()
    }
}

/// The argument, the accumulator and the result of a call of one of this extension's aggregates.
///
/// # Errors
/// Why the engine cannot compute the aggregate.
pub fn parts(
    translator: &mut Translator,
    call: Aggref<'_>,
    arguments: &[Expr<'_>],
    ordered: &Ordered<'_>,
) -> Translation<Parts> {
    let name = function_name(call.aggfnoid().to_u32());
    // The expressions of ORDER BY follow the arguments.
    match (is_ours(call.aggfnoid()), name.as_str(), arguments) {
        (true, "first" | "last", [value, time, ..]) => {
            edge(translator, &name, (*value, *time), ordered)
        }
        (true, "vwap", [price, volume, ..]) => vwap(translator, *price, *volume),
        (true, "ema", [x, weight, ..]) => ema(translator, *x, *weight, ordered),
        (true, "counter_increase" | "counter_rate" | "time_weight", _) => {
            over_time::parts(translator, &name, arguments, ordered)
        }
        (true, "histogram", [x, low, high, buckets]) => {
            histogram(translator, *x, [*low, *high, *buckets])
        }
        _ => Err(format!("aggregate {name}")),
    }
}

/// `first(value, time)` and `last(value, time)`.
fn edge(
    translator: &mut Translator,
    name: &str,
    (value, time): (Expr<'_>, Expr<'_>),
    ordered: &Ordered<'_>,
) -> Translation<Parts> {
    // An order by the call's own time changes nothing: among equal times any row may be the result.
    if !ordered.keys.iter().all(|(key, _)| key.equals(time)) {
        return Err(format!("ORDER BY something else in {name}"));
    }
    let end = match name {
        "first" => End::Minimum,
        _ => End::Maximum,
    };
    let value = translator.value(value)?;
    let time = translator.value(time)?;
    let (v, t) = (value.number(), time.number());
    let edge: Box<dyn Accumulator> = with_number!(v, V => with_number!(t, T => {
        Box::new(Edge::<V, T>::new(end))
    }));
    Ok((Argument::Pair(value, time), edge, Shape::Number(v)))
}

/// `vwap(price, volume)`.
fn vwap(translator: &mut Translator, price: Expr<'_>, volume: Expr<'_>) -> Translation<Parts> {
    let price = translator.value(price)?;
    let volume = translator.value(volume)?;
    if price.number() != NumberType::F64 || volume.number() != NumberType::F64 {
        return Err("vwap of other types".into());
    }
    let weighted = Box::new(Weighted::default());
    Ok((Argument::Pair(price, volume), weighted, Shape::Double))
}

/// `ema(x, alpha)` and `ema(x, span)`.
fn ema(
    translator: &mut Translator,
    x: Expr<'_>,
    weight: Expr<'_>,
    ordered: &Ordered<'_>,
) -> Translation<Parts> {
    let x = translator.value(x)?;
    let parameter = translator.value(weight)?;
    let weight = match parameter.number() {
        NumberType::F64 => Weight::Alpha,
        NumberType::I32 => Weight::Span,
        _ => return Err("a weight of another type in ema".into()),
    };
    if x.number() != NumberType::F64 {
        return Err("ema of another type".into());
    }
    let (time, order) = match ordered.keys[..] {
        [] => (None, Order::Rows),
        [(key, true)] => {
            let time = translator.value(key)?;
            let number = time.number();
            let order = match ordered.arrival {
                Arrival::InOrder => Order::Checked(number),
                Arrival::Any => Order::Sorted(number, Box::new(TupleSort::begin())),
            };
            (Some(time), order)
        }
        _ => return Err("ORDER BY other than one ascending column in ema".into()),
    };
    let parameter = match weight {
        Weight::Alpha => parameter,
        Weight::Span => Value::convert(NumberType::F64, parameter),
    };
    let ema = Box::new(Ema::new(weight, order));
    let shape = Shape::Number(NumberType::F64);
    Ok((Argument::Timed(x, parameter, time), ema, shape))
}

/// `histogram(x, low, high, buckets)` with buckets that are the same in all rows.
fn histogram(
    translator: &mut Translator,
    x: Expr<'_>,
    [low, high, buckets]: [Expr<'_>; 3],
) -> Translation<Parts> {
    let constant = |expr: Expr<'_>| {
        let constant = expr.stripped().as_const().and_then(Const::value);
        constant.ok_or("a histogram whose buckets are not constants")
    };
    let (low, high) = (constant(low)?, constant(high)?);
    let (low, high) = (call::float8(low.datum()), call::float8(high.datum()));
    let count = call::int4(constant(buckets)?.datum());
    let buckets = Buckets::new(low, high, count).filter(|_| count <= HISTOGRAM_BUCKETS_MAX);
    let buckets = buckets.ok_or("a histogram of illegal or many buckets")?;
    let x = translator.value(x)?;
    if x.number() != NumberType::F64 {
        return Err("a histogram of another type".into());
    }
    let histogram = Box::new(Histogram::new(buckets));
    Ok((Argument::Number(x), histogram, Shape::Counts))
}
