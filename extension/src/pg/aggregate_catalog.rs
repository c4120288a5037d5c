//! The catalog's description of an aggregate.

use std::ffi::CString;

use pgrx::pg_sys::{self, Oid};

use super::catalog_rows::cached;
use super::functions::catalog;

/// Columns of `pg_aggregate`, by number.
mod column {
    pub const KIND: i16 = 2;
    pub const TRANSITION: i16 = 4;
    pub const FINAL: i16 = 5;
    pub const COMBINE: i16 = 6;
    pub const SERIALISE: i16 = 7;
    pub const DESERIALISE: i16 = 8;
    pub const FINAL_TAKES_ALL: i16 = 12;
    pub const FINAL_CHANGES: i16 = 14;
    pub const INITIAL: i16 = 21;
}

/// The column of `pg_proc` with a function's owner, by number.
const OWNER: i16 = 4;

/// The functions of an aggregate.
pub struct AggregateFunctions {
    /// Whether it is neither an ordered-set nor a hypothetical-set aggregate.
    pub is_normal: bool,
    /// The function that adds a row to a state.
    pub transition: Oid,
    /// The function that makes the result of a state, if the state is not the result.
    pub finish: Option<Oid>,
    /// Whether that function takes the aggregate's arguments too, as NULLs.
    pub finish_takes_all: bool,
    /// Whether that function leaves the state as it is.
    pub finish_keeps_state: bool,
    /// The function that combines two states.
    pub combine: Option<Oid>,
    /// The function that makes a sequence of bytes of a state of type internal, and the one that reads it.
    pub serialise: Option<Oid>,
    pub deserialise: Option<Oid>,
    /// The state of no rows, as text; `None` is NULL.
    pub initial: Option<CString>,
}

impl AggregateFunctions {
    /// Whether a function may do something else when it is called again.
    pub fn is_volatile(&self) -> bool {
        let mut functions = self.finish.into_iter().chain([self.transition]);
        functions.any(|function| catalog::func_volatile(function) as u8 == b'v')
    }

    /// The functions of an aggregate. `None` if there is no such aggregate.
    pub fn of(aggregate: Oid) -> Option<AggregateFunctions> {
        let cache = pg_sys::SysCacheIdentifier::AGGFNOID;
        cached(cache, [aggregate.into()], |row| {
            let function = |column| {
                let function = row.oid(column);
                function.filter(|function| *function != Oid::INVALID)
            };
            let letter = |column| row.value(column).map_or(0, |letter| letter.value() as u8);
            AggregateFunctions {
                is_normal: letter(column::KIND) == b'n',
                transition: function(column::TRANSITION).unwrap_or(Oid::INVALID),
                finish: function(column::FINAL),
                finish_takes_all: letter(column::FINAL_TAKES_ALL) != 0,
                finish_keeps_state: letter(column::FINAL_CHANGES) == b'r',
                combine: function(column::COMBINE),
                serialise: function(column::SERIALISE),
                deserialise: function(column::DESERIALISE),
                initial: row.text(column::INITIAL),
            }
        })
    }
}

/// The owner of a function.
pub fn owner(function: Oid) -> Option<Oid> {
    let cache = pg_sys::SysCacheIdentifier::PROCOID;
    cached(cache, [function.into()], |row| row.oid(OWNER))?
}
