//! The equality of two values of a type, by the function of an operator.

use pgrx::pg_sys::{Datum, Oid};

use super::callable::SqlFunction;

/// A function of equality, ready to be called.
pub struct Equality(SqlFunction);

impl Equality {
    /// The function that a grouping key has for its equality, in the current memory context.
    pub fn new(function: Oid, collation: Oid) -> Equality {
        Equality(SqlFunction::new(function, collation, 2))
    }

    /// Whether two values, neither of which is NULL, are equal.
    pub fn holds(&mut self, a: Datum, b: Datum) -> bool {
        self.0.call(&[a, b]).value() != 0
    }
}
