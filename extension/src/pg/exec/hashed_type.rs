//! A type whose values are told apart by its hash and equality functions.

use pgrx::pg_sys;

use super::memory::ValueLayout;
use crate::pg::columns::{collation_of, type_of};

/// The functions of an expression's type, from PostgreSQL's type cache.
#[derive(Clone, Copy)]
pub struct HashedType {
    cached: *mut pg_sys::TypeCacheEntry,
    collation: pg_sys::Oid,
}

impl HashedType {
    /// The type of an expression, which has both functions.
    pub fn of(expression: *mut pg_sys::Node) -> HashedType {
        let wanted = pg_sys::TYPECACHE_EQ_OPR_FINFO | pg_sys::TYPECACHE_HASH_PROC_FINFO;
        HashedType {
            // SAFETY: entries of the type cache live as long as the process.
            cached: unsafe { pg_sys::lookup_type_cache(type_of(expression), wanted as i32) },
            collation: collation_of(expression),
        }
    }

    /// The hash of a value.
    pub fn hash(self, value: pg_sys::Datum) -> u32 {
        // SAFETY: the planner has checked that the type has the function, and the value is of the type.
        unsafe {
            let function = &raw mut (*self.cached).hash_proc_finfo;
            pg_sys::FunctionCall1Coll(function, self.collation, value).value() as u32
        }
    }

    /// Whether two values are equal.
    pub fn are_equal(self, a: pg_sys::Datum, b: pg_sys::Datum) -> bool {
        // SAFETY: the planner has checked that the type has the function, and the values are of the type.
        unsafe {
            let function = &raw mut (*self.cached).eq_opr_finfo;
            pg_sys::FunctionCall2Coll(function, self.collation, a, b).value() & 0xff != 0
        }
    }

    /// How values are passed.
    pub fn layout(self) -> ValueLayout {
        // SAFETY: entries of the type cache live as long as the process.
        unsafe {
            ValueLayout {
                by_value: (*self.cached).typbyval,
                length: (*self.cached).typlen,
            }
        }
    }
}
