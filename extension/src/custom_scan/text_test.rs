//! A function of PostgreSQL's as a test on the texts of a dictionary.

use lanes_columnar::vector::text::TextTest;
use pgrx::pg_sys;

use super::call_memory::CallMemory;
use crate::pg::datum;

/// A function of two texts, one of which stays the same.
pub struct FunctionTest {
    function: pg_sys::FmgrInfo,
    collation: pg_sys::Oid,
    other: pg_sys::Datum,
    /// Whether the column is the second argument.
    flipped: bool,
    may_fail: bool,
    memory: CallMemory,
}

impl FunctionTest {
    /// # Safety
    /// `function` takes two texts and gives a bool, never NULL for texts; `other` is a text that outlives the test, as
    /// does the current memory context.
    pub unsafe fn new(
        function: pg_sys::Oid,
        collation: pg_sys::Oid,
        other: pg_sys::Datum,
        flipped: bool,
        memory: CallMemory,
    ) -> FunctionTest {
        let mut info = pg_sys::FmgrInfo::default();
        // SAFETY: the caller's promise.
        let may_fail = unsafe {
            pg_sys::fmgr_info(function, &raw mut info);
            may_fail(function, other, flipped)
        };
        FunctionTest {
            function: info,
            collation,
            other,
            flipped,
            may_fail,
            memory,
        }
    }
}

/// Whether a function of two texts may raise an error: a pattern that ends with an escape does, if a text gets that far.
unsafe fn may_fail(function: pg_sys::Oid, other: pg_sys::Datum, flipped: bool) -> bool {
    let takes_pattern = matches!(
        function.to_u32(),
        pg_sys::F_TEXTLIKE | pg_sys::F_TEXTNLIKE | pg_sys::F_TEXTICLIKE | pg_sys::F_TEXTICNLIKE
    );
    // SAFETY: the caller has a text.
    takes_pattern && (flipped || unsafe { datum::text_payload(other) }.ends_with(b"\\"))
}

impl TextTest for FunctionTest {
    fn may_fail(&self) -> bool {
        self.may_fail
    }

    unsafe fn holds(&mut self, item: *const u8) -> bool {
        let item = pg_sys::Datum::from(item.cast_mut());
        let (a, b) = if self.flipped {
            (self.other, item)
        } else {
            (item, self.other)
        };
        let (function, collation) = (&raw mut self.function, self.collation);
        // SAFETY: `new`'s promise; an item is a text.
        let result = unsafe {
            let bytes = pgrx::varlena::varsize_any(item.cast_mut_ptr());
            self.memory.call(bytes, || {
                pg_sys::FunctionCall2Coll(function, collation, a, b)
            })
        };
        result.value() & 0xff != 0
    }
}
