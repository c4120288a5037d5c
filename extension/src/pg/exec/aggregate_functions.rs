//! The functions of an aggregate, ready to be called outside of PostgreSQL's own aggregation.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Datum, Oid};

use super::callable::{AggregateContext, CallTypes, Callable};
use super::scalar::RunningNode;
use crate::pg::aggregate_catalog::AggregateFunctions;
use crate::pg::functions::{Place, catalog, values};
use crate::pg::tree::Aggref;

/// The functions that add a state in serialised form to another one.
pub(super) struct Merge {
    pub deserialise: Callable,
    pub combine: Callable,
}

/// Makes the functions of an aggregate's call, which live until the node starts again.
pub(super) struct FunctionsOfCall<'a> {
    pub call: Aggref<'a>,
    /// The types of the aggregate's arguments.
    pub types: Vec<Oid>,
    pub context: AggregateContext,
    pub node: RunningNode,
}

impl FunctionsOfCall<'_> {
    /// The transition function.
    pub fn transition(&self, function: Oid) -> Callable {
        let state = self.call.aggtranstype();
        let arguments = [&[state], &self.types[..]].concat();
        let types = CallTypes {
            arguments: &arguments,
            result: state,
            collation: self.call.inputcollid(),
        };
        let make = || Callable::transition(function, types, self.context);
        self.node.memory().enter(make)
    }

    /// The function that makes the result of a state, if there is one.
    pub fn finish(&self, functions: &AggregateFunctions) -> Option<Callable> {
        let state = self.call.aggtranstype();
        match self.call.is_partial() {
            true if state == pg_sys::INTERNALOID => {
                Some(self.of_state(functions.serialise?, &[state], pg_sys::BYTEAOID))
            }
            true => None,
            false => {
                let taken = match functions.finish_takes_all {
                    true => &self.types[..],
                    false => &[],
                };
                let arguments = [&[state], taken].concat();
                Some(self.of_state(functions.finish?, &arguments, self.call.aggtype()))
            }
        }
    }

    /// The functions that add a serialised state, if there are such.
    pub fn merge(&self, functions: &AggregateFunctions) -> Option<Merge> {
        let state = self.call.aggtranstype();
        let (deserialise, combine) = (functions.deserialise?, functions.combine?);
        let serialised = [pg_sys::BYTEAOID, pg_sys::INTERNALOID];
        Some(Merge {
            deserialise: self.of_state(deserialise, &serialised, state),
            combine: self.of_state(combine, &[state, state], state),
        })
    }

    /// A function that takes arguments of these types, the first of which is a state.
    fn of_state(&self, function: Oid, arguments: &[Oid], result: Oid) -> Callable {
        let types = CallTypes {
            arguments,
            result,
            collation: self.call.inputcollid(),
        };
        let make = || Callable::of_state(function, types, self.context);
        self.node.memory().enter(make)
    }
}

/// The value of a type that a text, which the type reads, spells.
pub(super) fn value_of_text(text: &CStr, type_of: Oid) -> Datum {
    let (mut input, mut parameter) = (Oid::INVALID, Oid::INVALID);
    catalog::getTypeInputInfo(type_of, Place(&mut input), Place(&mut parameter));
    values::input(input, text, parameter)
}
