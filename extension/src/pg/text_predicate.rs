//! PostgreSQL's own operators on texts, such as `LIKE`, asked for many values.

use pgrx::memcxt::PgMemoryContexts;
use pgrx::{IntoDatum, pg_sys};

/// An operator on texts with its right side.
pub struct TextTest {
    function: pg_sys::FmgrInfo,
    collation: pg_sys::Oid,
    right: pg_sys::Datum,
    /// Memory of one call.
    scratch: PgMemoryContexts,
}

impl TextTest {
    /// The test by a function that takes two texts and returns a boolean. The right side is in the server's encoding.
    ///
    /// # Safety
    /// There is such a function.
    pub unsafe fn new(function: pg_sys::Oid, collation: pg_sys::Oid, right: &[u8]) -> TextTest {
        // SAFETY: zero is valid for the plain fields, and fmgr_info sets all of them.
        let mut info: pg_sys::FmgrInfo = unsafe { std::mem::zeroed() };
        // SAFETY: the caller's promise; what the call remembers lives in the current memory.
        unsafe { pg_sys::fmgr_info(function, &raw mut info) };
        TextTest {
            function: info,
            collation,
            right: right.into_datum().unwrap_or(pg_sys::Datum::null()),
            scratch: PgMemoryContexts::new("lanes text test"),
        }
    }

    /// Whether a value passes. It is in the server's encoding.
    pub fn passes(&mut self, value: &[u8]) -> bool {
        let (function, collation, right) = (&raw mut self.function, self.collation, self.right);
        // SAFETY: the function takes two texts, and bytes as a datum are a varlena, as a text is one. The memory of the
        // call is freed when nothing points there any more.
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
