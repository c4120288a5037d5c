//! The catalog's description of an aggregate.

use std::ffi::{CStr, CString};

use pgrx::pg_sys::{self, Datum, Oid};

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
        // SAFETY: looks functions up that exist, as an aggregate depends on them.
        functions.any(|function| unsafe { pg_sys::func_volatile(function) } as u8 == b'v')
    }

    /// The functions of an aggregate. `None` if there is no such aggregate.
    pub fn of(aggregate: Oid) -> Option<AggregateFunctions> {
        cached(pg_sys::SysCacheIdentifier::AGGFNOID, aggregate, |row| {
            let function = |column| {
                let function = row.value(column).map(to_oid);
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
                initial: row.value(column::INITIAL).map(to_text),
            }
        })
    }
}

/// The owner of a function.
pub fn owner(function: Oid) -> Option<Oid> {
    let cache = pg_sys::SysCacheIdentifier::PROCOID;
    cached(cache, function, |row| row.value(OWNER).map(to_oid)).flatten()
}

/// A row of a catalogue, while its tuple is held.
struct CachedRow {
    cache: pg_sys::SysCacheIdentifier::Type,
    tuple: pg_sys::HeapTuple,
}

impl CachedRow {
    /// The value of a column, by number; `None` is NULL.
    fn value(&self, column: i16) -> Option<Datum> {
        let (cache, mut is_null) = (self.cache as i32, false);
        // SAFETY: `cached` holds the tuple, and asks for columns that its catalogue has.
        let value = unsafe { pg_sys::SysCacheGetAttr(cache, self.tuple, column, &raw mut is_null) };
        (!is_null).then_some(value)
    }
}

/// Reads the row with an OID. `None` if there is none.
fn cached<T>(
    cache: pg_sys::SysCacheIdentifier::Type,
    key: Oid,
    read: impl FnOnce(&CachedRow) -> T,
) -> Option<T> {
    // SAFETY: the tuple is released after `read` has copied what it wants.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache as i32, key.into());
        if tuple.is_null() {
            return None;
        }
        let found = read(&CachedRow { cache, tuple });
        pg_sys::ReleaseSysCache(tuple);
        Some(found)
    }
}

fn to_oid(value: Datum) -> Oid {
    Oid::from(value.value() as u32)
}

/// The characters of a text.
fn to_text(value: Datum) -> CString {
    // SAFETY: columns of this module that are read so are texts; the copy is a string that ends with a NUL.
    unsafe {
        let text = pg_sys::text_to_cstring(value.cast_mut_ptr());
        CStr::from_ptr(text).to_owned()
    }
}
