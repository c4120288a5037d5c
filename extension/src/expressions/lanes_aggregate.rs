//! Calls of this extension's own aggregates, which may have an ORDER BY.

use lanes_columnar::aggregate::edge::Edge;
use lanes_columnar::aggregate::ema::{Ema, Order};
use lanes_columnar::aggregate::extreme::End;
use lanes_columnar::aggregate::weighted::Weighted;
use lanes_columnar::aggregate::{Accumulator, Argument};
use lanes_columnar::vector::Weight;
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::value::Value;
use lanes_columnar::with_number;
use lanes_simd::Comparison;
use pgrx::pg_sys;

use super::aggregate_call::{Parts, Shape};
use super::time_sort::TupleSort;
use super::translate::{Translation, Translator};
use crate::pg::names::function_name;
use crate::pg::{nodes, ports};

/// What an aggregate with ORDER BY may rely on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// Rows are expected to come in the order asked for: [`lanes_columnar::vector::EvaluationError::Disordered`] if not.
    InOrder,
    /// Nothing: they are sorted.
    Any,
}

/// The ORDER BY of a call.
pub struct Ordered {
    /// Expressions, and whether they are ascending with NULL last, in the type's own order.
    keys: Vec<(*mut pg_sys::Node, bool)>,
    arrival: Arrival,
}

impl Ordered {
    /// # Safety
    /// `call` is a live Aggref.
    pub unsafe fn of(call: &pg_sys::Aggref, arrival: Arrival) -> Ordered {
        // SAFETY: the caller's promise.
        let keys = unsafe {
            nodes::list::<pg_sys::SortGroupClause>(call.aggorder).map(|clause| {
                let key = pg_sys::get_sortgroupclause_expr(clause, call.args);
                let ascends = ports::btree_operator((*clause).sortop)
                    .is_some_and(|(comparison, ..)| comparison == Comparison::Less);
                (key, ascends && !(*clause).nulls_first)
            })
        };
        Ordered {
            keys: keys.collect(),
            arrival,
        }
    }

    /// Whether there is none, or the aggregate is one that looks at it.
    ///
    /// # Safety
    /// Runs inside a transaction.
    pub unsafe fn is_heeded(&self, call: &pg_sys::Aggref) -> bool {
        // SAFETY: the caller's promise.
        self.keys.is_empty()
            || unsafe { is_ours(call.aggfnoid) && function_name(call.aggfnoid.to_u32()) != "vwap" }
    }
}

/// A call of one of this extension's aggregates.
///
/// # Safety
/// `call` is a live Aggref over one table, with these arguments and this order.
pub unsafe fn parts(
    translator: &mut Translator,
    call: &pg_sys::Aggref,
    arguments: &[*mut pg_sys::Node],
    ordered: &Ordered,
) -> Translation<Parts> {
    // SAFETY: the caller's promise.
    unsafe {
        let function = call.aggfnoid.to_u32();
        let name = function_name(function);
        if !is_ours(call.aggfnoid) {
            return Err(format!("aggregate {name}"));
        }
        match name.as_str() {
            "first" | "last" => {
                // By its own time it may be ordered: among equal times the answer is any.
                let is_time = |key: &(*mut pg_sys::Node, bool)| {
                    pg_sys::equal(key.0.cast(), arguments[1].cast())
                };
                if !ordered.keys.iter().all(is_time) {
                    return Err(format!("ORDER BY something else in {name}"));
                }
                let end = if name == "first" {
                    End::Minimum
                } else {
                    End::Maximum
                };
                let value = translator.value(arguments[0])?;
                let time = translator.value(arguments[1])?;
                let (v, t) = (value.number(), time.number());
                let edge: Box<dyn Accumulator> = with_number!(v, V => with_number!(t, T => {
                    Box::new(Edge::<V, T>::new(end))
                }));
                Ok((Argument::Pair(value, time), edge, Shape::Number(v)))
            }
            "vwap" => {
                let price = translator.value(arguments[0])?;
                let volume = translator.value(arguments[1])?;
                if price.number() != NumberType::F64 || volume.number() != NumberType::F64 {
                    return Err("vwap of other types".into());
                }
                let weighted = Box::new(Weighted::default());
                Ok((Argument::Pair(price, volume), weighted, Shape::Double))
            }
            "ema" => {
                let x = translator.value(arguments[0])?;
                let given = translator.value(arguments[1])?;
                let weight = match given.number() {
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
                let given = match weight {
                    Weight::Alpha => given,
                    Weight::Span => Value::convert(NumberType::F64, given),
                };
                let ema = Box::new(Ema::new(weight, order));
                let shape = Shape::Number(NumberType::F64);
                Ok((Argument::Timed(x, given, time), ema, shape))
            }
            _ => Err(format!("aggregate {name}")),
        }
    }
}

/// Whether a function is one of the schema of this extension.
///
/// # Safety
/// Runs inside a transaction.
pub unsafe fn is_ours(function: pg_sys::Oid) -> bool {
    if function.to_u32() < pg_sys::FirstNormalObjectId {
        return false;
    }
    // SAFETY: catalogue look-ups.
    unsafe {
        let schema = pg_sys::get_namespace_oid(c"lanes".as_ptr(), true);
        schema != pg_sys::InvalidOid && pg_sys::get_func_namespace(function) == schema
    }
}
