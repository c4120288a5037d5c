//! Calls of PostgreSQL's functions that the engine makes value by value.
//!
//! A function leaves behind what it allocates, and its caller frees it, as PostgreSQL's executor does after each row.
//! The engine passes millions of values between two rows that it returns, so it frees after each call. The next call
//! then allocates memory that is still in the processor's nearest cache.

use lanes_columnar::vector::text::{Item, TextTest};
use pgrx::pg_sys::{self, Datum, Oid};

use super::scalar::RunningNode;
use crate::pg::catalog;
use crate::pg::typed_datum::TypedDatum;

unsafe extern "C-unwind" {
    #[link_name = "MemoryContextReset"]
    fn reset(context: pg_sys::MemoryContext);
    #[link_name = "ProcessInterrupts"]
    fn process_interrupts();
}

/// Where functions allocate during a call. It lives until its node starts again, as the node's scalars do.
struct CallMemory(pg_sys::MemoryContext);

impl CallMemory {
    fn new(node: RunningNode) -> CallMemory {
        // SAFETY: the parent is a live context of the node.
        CallMemory(unsafe {
            pg_sys::AllocSetContextCreateInternal(
                node.memory().as_raw(),
                c"lanes function calls".as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            )
        })
    }

    /// Runs `call` once for each number below `count`. What a call allocates is freed before the next. All calls are
    /// within one boundary for errors, because a boundary costs as much as a short function.
    ///
    /// # Safety
    /// The node is in execution and has not started again. `call` calls PostgreSQL's function itself, without a
    /// boundary of its own. An ERROR jumps out of it, so it owns nothing that needs dropping, and it does not panic.
    unsafe fn each(&mut self, count: usize, mut call: impl FnMut(usize)) {
        let context = self.0;
        // SAFETY: the context lives until the node starts again; an ERROR resets the current context; nothing in here
        // needs dropping.
        unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                let before = pg_sys::MemoryContextSwitchTo(context);
                for index in 0..count {
                    if pg_sys::InterruptPending != 0 {
                        process_interrupts();
                    }
                    if !(*context).isReset {
                        reset(context);
                    }
                    call(index);
                }
                pg_sys::MemoryContextSwitchTo(before);
            });
        }
    }
}

/// A call of a function of which one argument changes: a date, an integer or a timestamp.
pub struct FunctionCall {
    info: pg_sys::FmgrInfo,
    collation: Oid,
    arguments: Vec<Datum>,
    /// The index of the argument that changes.
    changing: usize,
    memory: CallMemory,
}

impl FunctionCall {
    /// A call with these arguments, of which the one at `changing` is `None`. Returns `None` unless the function takes
    /// two or three arguments of these types, the changing one is passed by value, and so is the result.
    pub fn new(
        function: Oid,
        collation: Oid,
        arguments: &[Option<TypedDatum>],
        changing: usize,
        node: RunningNode,
    ) -> Option<FunctionCall> {
        let (types, result) = catalog::signature(function);
        let fits = |(argument, declared): (&Option<TypedDatum>, &Oid)| match argument {
            Some(value) => catalog::base_type(value.type_of()) == *declared,
            None => catalog::is_by_value(*declared),
        };
        let is_callable = matches!(arguments.len(), 2 | 3)
            && types.len() == arguments.len()
            && arguments.iter().zip(&types).all(fits)
            && arguments.get(changing).is_some_and(Option::is_none)
            && catalog::is_by_value(result);
        if !is_callable {
            return None;
        }
        let mut info = pg_sys::FmgrInfo::default();
        // SAFETY: the function exists, since it has a signature.
        unsafe { pg_sys::fmgr_info(function, &raw mut info) };
        let datum = |value: &Option<TypedDatum>| value.map_or(Datum::null(), TypedDatum::datum);
        Some(FunctionCall {
            info,
            collation,
            arguments: arguments.iter().map(datum).collect(),
            changing,
            memory: CallMemory::new(node),
        })
    }

    /// Calls the function for a value of the changing argument. What the call allocates is freed at the next call.
    pub fn call(&mut self, value: Datum) -> Datum {
        self.arguments[self.changing] = value;
        let (function, collation) = (&raw mut self.info, self.collation);
        let context = self.memory.0;
        // SAFETY: `new` checked the types; the context lives as long as the node's scalars, and the switch back also
        // happens when an ERROR passes, because PostgreSQL resets the current context.
        unsafe {
            if !(*context).isReset {
                reset(context);
            }
            let before = pg_sys::MemoryContextSwitchTo(context);
            let result = match self.arguments[..] {
                [a, b] => pg_sys::FunctionCall2Coll(function, collation, a, b),
                [a, b, c] => pg_sys::FunctionCall3Coll(function, collation, a, b, c),
                _ => unreachable!("a call has two or three arguments"),
            };
            pg_sys::MemoryContextSwitchTo(before);
            result
        }
    }
}

/// A function of two texts, of which one stays the same, as a test on the texts of a dictionary.
pub struct FunctionTest {
    info: pg_sys::FmgrInfo,
    collation: Oid,
    constant: Datum,
    /// Whether the column is the second argument.
    is_flipped: bool,
    may_fail: bool,
    memory: CallMemory,
}

impl FunctionTest {
    /// A test by a function, given by its OID. Returns `None` unless it takes two texts and returns a boolean, and the
    /// constant is a text.
    pub fn new(
        function: u32,
        collation: Oid,
        constant: TypedDatum,
        is_flipped: bool,
        node: RunningNode,
    ) -> Option<FunctionTest> {
        let text = constant.bytes()?;
        let wanted = (vec![pg_sys::TEXTOID; 2], pg_sys::BOOLOID);
        if catalog::signature(function.into()) != wanted {
            return None;
        }
        let takes_pattern = matches!(
            function,
            pg_sys::F_TEXTLIKE | pg_sys::F_TEXTNLIKE | pg_sys::F_TEXTICLIKE | pg_sys::F_TEXTICNLIKE
        );
        let mut info = pg_sys::FmgrInfo::default();
        // SAFETY: the function exists, since it has a signature.
        unsafe { pg_sys::fmgr_info(function.into(), &raw mut info) };
        Some(FunctionTest {
            info,
            collation,
            constant: constant.datum(),
            is_flipped,
            // A pattern that ends with an escape is an error as soon as a text matches all before it.
            may_fail: takes_pattern && (is_flipped || text.ends_with(b"\\")),
            memory: CallMemory::new(node),
        })
    }
}

impl TextTest for FunctionTest {
    fn may_fail(&self) -> bool {
        self.may_fail
    }

    fn holds(&mut self, item: Item<'_>) -> bool {
        let mut found = [false];
        self.hold(&[item], &mut found);
        found[0]
    }

    fn hold(&mut self, items: &[Item<'_>], found: &mut [bool]) {
        let place = usize::from(self.is_flipped);
        let mut call = TwoTexts {
            info: pg_sys::FunctionCallInfoBaseData::default(),
            arguments: [pg_sys::NullableDatum::default(); 2],
        };
        call.info.flinfo = &raw mut self.info;
        call.info.fncollation = self.collation;
        call.info.nargs = 2;
        call.arguments[1 - place].value = self.constant;
        let (Some(function), count) = (self.info.fn_addr, items.len().min(found.len())) else {
            return;
        };
        let call = &raw mut call;
        // SAFETY: the function takes two texts and returns a bool that is not NULL for texts; an item is a text; the
        // arguments lie where the function looks for them; the closure owns nothing.
        unsafe {
            self.memory.each(count, |index| {
                (*call).arguments[place].value = Datum::from(items[index].as_ptr().cast_mut());
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
