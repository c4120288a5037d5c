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
        let mut found = [false];
        // SAFETY: the caller's promise.
        unsafe { self.hold(&[item], &mut found) };
        found[0]
    }

    unsafe fn hold(&mut self, items: &[*const u8], found: &mut [bool]) {
        let (constant, place) = (self.other, usize::from(self.flipped));
        let mut call = TwoTexts {
            info: pg_sys::FunctionCallInfoBaseData::default(),
            arguments: [pg_sys::NullableDatum::default(); 2],
        };
        call.info.flinfo = &raw mut self.function;
        call.info.fncollation = self.collation;
        call.info.nargs = 2;
        call.arguments[1 - place].value = constant;
        let (Some(function), count) = (self.function.fn_addr, items.len().min(found.len())) else {
            return;
        };
        let call = &raw mut call;
        // SAFETY: `new`'s promise; an item is a text. The arguments lie where the function looks for them.
        unsafe {
            self.memory.each(count, |index| {
                (*call).arguments[place].value = pg_sys::Datum::from(items[index].cast_mut());
                (*call).info.isnull = false;
                found[index] = function(call.cast()).value() & 0xff != 0;
            });
        }
    }
}

/// A call of a function of two arguments, which PostgreSQL lays out one after the other.
#[repr(C)]
struct TwoTexts {
    info: pg_sys::FunctionCallInfoBaseData,
    arguments: [pg_sys::NullableDatum; 2],
}

const _: () = assert!(
    std::mem::offset_of!(TwoTexts, arguments)
        == std::mem::offset_of!(pg_sys::FunctionCallInfoBaseData, args)
);
