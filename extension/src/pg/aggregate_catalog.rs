//! What the catalogue contains about an aggregate.

use std::ffi::{CStr, CString};

use pgrx::pg_sys::{self, Datum, Oid};

/// Columns of `pg_aggregate`, by number.
mod column {
    pub const KIND: i16 = 2;
    pub const TRANSITION: i16 = 4;
    pub const FINAL: i16 = 5;
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
    /// The state of no rows, as text; `None` is NULL.
    pub initial: Option<CString>,
}

impl AggregateFunctions {
    /// Whether a function may do something else when it is called again.
    pub fn is_volatile(&self) -> bool {
        let mut functions = self.finish.into_iter().chain([self.transition]);
        // SAFETY: looks functions up that exist, as an aggregate depends on them.
        functions.any(|function| unsafe { pg_sys::func_volatile(function) } as u8 == b'v')
    }

    /// The functions of an aggregate. `None` if there is no such aggregate.
    pub fn of(aggregate: Oid) -> Option<AggregateFunctions> {
        let cache = pg_sys::SysCacheIdentifier::AGGFNOID;
        // SAFETY: the tuple is released after its columns were copied; each column has the type that is read.
        unsafe {
            let tuple = pg_sys::SearchSysCache1(cache as i32, aggregate.into());
            if tuple.is_null() {
                return None;
            }
            let value = |column| value_of(cache, tuple, column);
            let function = |column| value(column).map(|oid| Oid::from(oid.value() as u32));
            let letter = |column| value(column).map_or(0, |letter| letter.value() as u8);
            let text = |text: Datum| {
                let text = pg_sys::text_to_cstring(text.cast_mut_ptr());
                CStr::from_ptr(text).to_owned()
            };
            let finish = function(column::FINAL);
            let functions = AggregateFunctions {
                is_normal: letter(column::KIND) == b'n',
                transition: function(column::TRANSITION).unwrap_or(Oid::INVALID),
                finish: finish.filter(|finish| *finish != Oid::INVALID),
                finish_takes_all: letter(column::FINAL_TAKES_ALL) != 0,
                finish_keeps_state: letter(column::FINAL_CHANGES) == b'r',
                initial: value(column::INITIAL).map(text),
            };
            pg_sys::ReleaseSysCache(tuple);
            Some(functions)
        }
    }
}

/// The owner of a function.
pub fn owner(function: Oid) -> Option<Oid> {
    let cache = pg_sys::SysCacheIdentifier::PROCOID;
    // SAFETY: the tuple is released after its column was read, which is an OID.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache as i32, function.into());
        if tuple.is_null() {
            return None;
        }
        let owner = value_of(cache, tuple, OWNER).map(|oid| Oid::from(oid.value() as u32));
        pg_sys::ReleaseSysCache(tuple);
        owner
    }
}

/// A column of a tuple; `None` is NULL.
///
/// # Safety
/// The tuple is a live one of the cache, which has such a column.
unsafe fn value_of(
    cache: pg_sys::SysCacheIdentifier::Type,
    tuple: pg_sys::HeapTuple,
    column: i16,
) -> Option<Datum> {
    let mut is_null = false;
    // SAFETY: this function's contract.
    let value = unsafe { pg_sys::SysCacheGetAttr(cache as i32, tuple, column, &raw mut is_null) };
    (!is_null).then_some(value)
}
