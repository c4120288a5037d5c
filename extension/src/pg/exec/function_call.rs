//! Calls of PostgreSQL's functions that the engine makes value by value.
//!
//! A function leaves behind what it allocates, and its caller frees it, as PostgreSQL's executor does after each row.
//! The engine passes millions of values between two rows that it returns, so it frees after each call. The next call
//! then allocates memory that is still in the processor's nearest cache.

use lanes_columnar::vector::text::{Item, TextTest};
use pgrx::pg_sys::{self, Datum, Oid};

use super::callable::SqlFunction;
use super::memory::Memory;
use super::scalar::RunningNode;
use crate::pg::typed_datum::TypedDatum;
use crate::pg::{catalog, executor};

/// Where functions allocate during a call. It lives until its node starts again, as the node's scalars do.
struct CallMemory(Memory);

impl CallMemory {
    fn new(node: RunningNode) -> CallMemory {
        CallMemory(node.memory().child(c"lanes function calls"))
    }

    /// Runs `call` once for each number below `count`. What a call allocates is freed before the next. All calls are
    /// within one boundary for errors, because a boundary costs as much as a short function. `call` has no boundary of
    /// its own: an ERROR jumps out of it, so it owns nothing that needs dropping, and it does not panic.
    fn each(&mut self, count: usize, mut call: impl FnMut(usize)) {
        let memory = self.0;
        executor::guarded(|| {
            memory.enter(|| {
                for index in 0..count {
                    executor::check_interrupts_here();
                    executor::reset_here(memory);
                    call(index);
                }
            });
        });
    }
}

/// A call of a function of which one argument changes: a date, an integer or a timestamp.
pub struct FunctionCall {
    function: SqlFunction,
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
        let datum = |value: &Option<TypedDatum>| value.map_or(Datum::null(), TypedDatum::datum);
        Some(FunctionCall {
            function: SqlFunction::new(function, collation, arguments.len()),
            arguments: arguments.iter().map(datum).collect(),
            changing,
            memory: CallMemory::new(node),
        })
    }

    /// Calls the function for a value of the changing argument. What the call allocates is freed at the next call.
    pub fn call(&mut self, value: Datum) -> Datum {
        self.arguments[self.changing] = value;
        let (function, arguments, memory) = (&mut self.function, &self.arguments, self.memory.0);
        let result = executor::guarded(|| {
            executor::reset_here(memory);
            memory.enter(|| function.call_here(arguments))
        });
        function.not_null(result)
    }
}

/// A function of two texts, of which one stays the same, as a test on the texts of a dictionary.
pub struct FunctionTest {
    function: SqlFunction,
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
        Some(FunctionTest {
            function: SqlFunction::new(function.into(), collation, 2),
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
        let (function, constant) = (&mut self.function, self.constant);
        self.memory.each(items.len().min(found.len()), |index| {
            let mut arguments = [constant; 2];
            arguments[place] = Datum::from(items[index].as_ptr().cast_mut());
            let holds = function.call_here(&arguments);
            found[index] = holds.is_some_and(|holds| holds.value() & 0xff != 0);
        });
    }
}
