//! PostgreSQL's own operators on texts, such as `LIKE`, evaluated for many values.

use pgrx::memcxt::PgMemoryContexts;
use pgrx::{IntoDatum, pg_sys};

/// An operator on texts with its right operand.
pub struct TextTest {
    function: pg_sys::FmgrInfo,
    collation: pg_sys::Oid,
    right: pg_sys::Datum,
    /// The memory of one call.
    scratch: PgMemoryContexts,
}

impl TextTest {
    /// A test by a function with a right operand in the server's encoding. `None` unless the
    /// function takes two texts and returns a boolean.
    pub fn new(function: pg_sys::Oid, collation: pg_sys::Oid, right: &[u8]) -> Option<TextTest> {
        let wanted = (vec![pg_sys::TEXTOID; 2], pg_sys::BOOLOID);
        if super::catalog::signature(function) != wanted {
            return None;
        }
        // SAFETY: zero is valid for the plain fields, and fmgr_info sets all of them.
        let mut info: pg_sys::FmgrInfo = unsafe { std::mem::zeroed() };
        // SAFETY: the function exists. What it caches lives in the current memory context.
        unsafe { pg_sys::fmgr_info(function, &raw mut info) };
        Some(TextTest {
            function: info,
            collation,
            right: right.into_datum().unwrap_or(pg_sys::Datum::null()),
            scratch: PgMemoryContexts::new("lanes text test"),
        })
    }

    /// Whether a value in the server's encoding passes.
    pub fn passes(&mut self, value: &[u8]) -> bool {
        let (function, collation, right) = (&raw mut self.function, self.collation, self.right);
        // SAFETY: the function takes two texts, and bytes as a datum are a varlena like a text. The
        // memory of the call is freed when nothing points to it any more.
        unsafe {
            let passes = self.scratch.switch_to(|_| {
                let value = value.into_datum().unwrap_or(pg_sys::Datum::null());
                pg_sys::FunctionCall2Coll(function, collation, value, right).value() != 0
            });
            self.scratch.reset();
            passes
        }
    }
}
