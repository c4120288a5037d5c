//! The equality of two values of a type, by the function of an operator.

use pgrx::pg_sys::{self, Datum, Oid};

/// A function of equality, ready to be called.
pub struct Equality {
    info: Box<pg_sys::FmgrInfo>,
    collation: Oid,
}

impl Equality {
    /// The function that a grouping key has for its equality, in the current memory context.
    pub fn new(function: Oid, collation: Oid) -> Equality {
        let mut info = Box::new(pg_sys::FmgrInfo::default());
        // SAFETY: the function exists, since a key of a plan depends on it.
        unsafe { pg_sys::fmgr_info(function, &raw mut *info) };
        Equality { info, collation }
    }

    /// Whether two values, neither of which is NULL, are equal.
    pub fn holds(&mut self, a: Datum, b: Datum) -> bool {
        let info = &raw mut *self.info;
        // SAFETY: values of the key's type, which the function takes.
        unsafe { pg_sys::FunctionCall2Coll(info, self.collation, a, b).value() != 0 }
    }
}
