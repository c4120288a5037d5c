//! PostgreSQL's own operators on texts, such as `LIKE`, evaluated for many values.

use pgrx::memcxt::PgMemoryContexts;
use pgrx::{IntoDatum, pg_sys};

use super::exec::callable::SqlFunction;
use super::{catalog, executor};

/// An operator on texts with its right operand.
pub struct TextTest {
    function: SqlFunction,
    right: pg_sys::Datum,
    /// The memory of one call.
    scratch: PgMemoryContexts,
}

impl TextTest {
    /// A test by a function with a right operand in the server's encoding. `None` unless the
    /// function takes two texts and returns a boolean.
    pub fn new(function: pg_sys::Oid, collation: pg_sys::Oid, right: &[u8]) -> Option<TextTest> {
        let wanted = (vec![pg_sys::TEXTOID; 2], pg_sys::BOOLOID);
        if catalog::signature(function) != wanted {
            return None;
        }
        Some(TextTest {
            function: SqlFunction::new(function, collation, 2),
            right: right.into_datum().unwrap_or(pg_sys::Datum::null()),
            scratch: PgMemoryContexts::new("lanes text test"),
        })
    }

    /// Whether a value in the server's encoding passes.
    pub fn passes(&mut self, value: &[u8]) -> bool {
        let (function, right) = (&mut self.function, self.right);
        executor::in_memory(&mut self.scratch, || {
            // Bytes as a datum are a varlena like a text.
            let value = value.into_datum().unwrap_or(pg_sys::Datum::null());
            function.call(&[value, right]).value() != 0
        })
    }
}
