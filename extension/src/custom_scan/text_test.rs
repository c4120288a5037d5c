//! A function of PostgreSQL's as a test on the texts of a dictionary.

use lanes_columnar::vector::text::TextTest;
use pgrx::pg_sys;

/// A function of two texts, one of which stays the same.
pub struct FunctionTest {
    function: pg_sys::FmgrInfo,
    collation: pg_sys::Oid,
    other: pg_sys::Datum,
    /// Whether the column is the second argument.
    flipped: bool,
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
    ) -> FunctionTest {
        let mut info = pg_sys::FmgrInfo::default();
        // SAFETY: the caller's promise.
        unsafe { pg_sys::fmgr_info(function, &raw mut info) };
        FunctionTest {
            function: info,
            collation,
            other,
            flipped,
        }
    }
}

impl TextTest for FunctionTest {
    unsafe fn holds(&mut self, item: *const u8) -> bool {
        let item = pg_sys::Datum::from(item.cast_mut());
        let (a, b) = if self.flipped {
            (self.other, item)
        } else {
            (item, self.other)
        };
        // SAFETY: `new`'s promise; an item is a text.
        let result =
            unsafe { pg_sys::FunctionCall2Coll(&raw mut self.function, self.collation, a, b) };
        result.value() & 0xff != 0
    }
}
