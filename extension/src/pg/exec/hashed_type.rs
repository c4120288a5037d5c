//! A type whose values are told apart by its hash and equality functions.

use pgrx::pg_sys;

use super::callable::SqlFunction;
use super::memory::ValueLayout;
use crate::pg::columns::{collation_of, type_of};

/// The functions of an expression's type, from PostgreSQL's type cache.
pub struct HashedType {
    hash: SqlFunction,
    equality: SqlFunction,
    layout: ValueLayout,
}

impl HashedType {
    /// The type of an expression. The planner has checked that the type has both functions.
    pub fn of(expression: *mut pg_sys::Node) -> HashedType {
        let (type_of, collation) = (type_of(expression), collation_of(expression));
        // PostgreSQL checks that a hash goes with the equality only if it has looked the equality up before.
        let equality = SqlFunction::equality(type_of, collation);
        HashedType {
            hash: SqlFunction::hash(type_of, collation),
            equality,
            layout: ValueLayout::of_type(type_of),
        }
    }

    /// The hash of a value.
    pub fn hash(&mut self, value: pg_sys::Datum) -> u32 {
        self.hash.call(&[value]).value() as u32
    }

    /// Whether two values are equal.
    pub fn are_equal(&mut self, a: pg_sys::Datum, b: pg_sys::Datum) -> bool {
        self.equality.call(&[a, b]).value() & 0xff != 0
    }

    /// How values are passed.
    pub fn layout(&self) -> ValueLayout {
        self.layout
    }
}
