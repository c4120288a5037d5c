//! A function of PostgreSQL's with its call: for the functions of an aggregate, with the values of
//! their states, and for functions on values.
//!
//! Functions of an aggregate see an `AggState` as their context, because many of them look for the
//! memory of the aggregate there. They are called within one error boundary for many rows: an ERROR
//! jumps out of [`Callable::invoke`] and [`SqlFunction::call_here`], so nothing between them and the
//! boundary needs dropping.
//!
//! A call is safe under the invariants of this folder. The function exists, because the catalog or a
//! look-up names it. The arguments are of its types, because whoever makes such a value knows them,
//! and PostgreSQL or this folder made the arguments.

use pgrx::pg_sys::{self, Datum, Oid};

use super::expression::RowContext;
use super::memory::{Memory, ValueLayout};
use super::scalar::RunningNode;
use crate::pg::call_ports::datum_copy;
use crate::pg::executor;
use crate::pg::tree::{Aggref, View};

/// The most arguments of such a function, an aggregate's state included.
pub(super) const ARGUMENTS_MAX: usize = 8;

/// More bytes than the structures that PostgreSQL keeps of an aggregate have.
const PRIVATE_BYTES: usize = 4096;

unsafe extern "C-unwind" {
    fn build_aggregate_transfn_expr(
        types: *mut Oid,
        count: i32,
        direct: i32,
        variadic: bool,
        state: Oid,
        collation: Oid,
        function: Oid,
        inverse: Oid,
        expression: *mut *mut pg_sys::Expr,
        inverse_expression: *mut *mut pg_sys::Expr,
    );
    fn build_aggregate_finalfn_expr(
        types: *mut Oid,
        count: i32,
        state: Oid,
        result: Oid,
        collation: Oid,
        function: Oid,
        expression: *mut *mut pg_sys::Expr,
    );
    #[link_name = "DatumGetEOHP"]
    fn expanded_header(value: Datum) -> *mut pg_sys::ExpandedObjectHeader;
    #[link_name = "DeleteExpandedObject"]
    fn delete_expanded(value: Datum);
    #[link_name = "MakeExpandedObjectReadOnlyInternal"]
    fn read_only(value: Datum) -> Datum;
    #[link_name = "pfree"]
    fn free(pointer: *mut std::ffi::c_void);
}

/// The node that functions of an aggregate take for the one that calls them: it has the memory of the states, and the
/// call.
#[derive(Clone, Copy)]
pub(super) struct AggregateContext(*mut pg_sys::AggState);

impl AggregateContext {
    /// The context of a call whose arguments are evaluated in `rows`. It lives until the node starts again.
    pub fn new(
        call: Aggref<'_>,
        rows: RowContext,
        memory: Memory,
        node: RunningNode,
    ) -> AggregateContext {
        let kept = node.memory().as_raw();
        // SAFETY: the structures are zero but for what is set, and zero is a legal value of the rest.
        unsafe {
            let state: *mut pg_sys::AggState =
                pg_sys::MemoryContextAllocZero(kept, size_of::<pg_sys::AggState>()).cast();
            let context: *mut pg_sys::ExprContext =
                pg_sys::MemoryContextAllocZero(kept, size_of::<pg_sys::ExprContext>()).cast();
            (*context).type_ = pg_sys::NodeTag::T_ExprContext;
            (*context).ecxt_per_query_memory = kept;
            (*context).ecxt_per_tuple_memory = memory.as_raw();
            // The structure is private to PostgreSQL. It begins with the call.
            let private: *mut *mut pg_sys::Aggref =
                pg_sys::MemoryContextAllocZero(kept, PRIVATE_BYTES).cast();
            *private = call.as_ptr();
            (*state).ss.ps.type_ = pg_sys::NodeTag::T_AggState;
            (*state).ss.ps.state = node.estate().as_ptr();
            (*state).curaggcontext = context;
            (*state).tmpcontext = rows.as_ptr();
            (*state).curpertrans = private.cast();
            AggregateContext(state)
        }
    }
}

/// A call of a function, which PostgreSQL lays out with the arguments at its end.
#[repr(C)]
struct Call {
    info: pg_sys::FunctionCallInfoBaseData,
    arguments: [pg_sys::NullableDatum; ARGUMENTS_MAX],
}

const _: () = assert!(
    std::mem::offset_of!(Call, arguments)
        == std::mem::offset_of!(pg_sys::FunctionCallInfoBaseData, args)
);

/// A function with its call.
///
/// Invariant: `call` refers to a function that lives as long as this value: to `own`, or to one that
/// the process keeps.
pub(super) struct Callable {
    call: Box<Call>,
    /// The function, if nobody else keeps it.
    own: Option<Box<pg_sys::FmgrInfo>>,
}

/// The types in a call of one of an aggregate's functions.
#[derive(Clone, Copy)]
pub(super) struct CallTypes<'a> {
    /// The types of the arguments, the first of which is a state.
    pub arguments: &'a [Oid],
    pub result: Oid,
    pub collation: Oid,
}

impl Callable {
    /// The transition function of an aggregate. What is made lives in the current memory context.
    pub fn transition(function: Oid, types: CallTypes<'_>, context: AggregateContext) -> Callable {
        let (mut others, mut expression) = (types.arguments[1..].to_vec(), std::ptr::null_mut());
        let (at, expression_at) = (others.as_mut_ptr(), &raw mut expression);
        let (state, collation, count) = (types.arguments[0], types.collation, others.len() as i32);
        // SAFETY: the function reads so many types. The boundary turns an ERROR into a panic.
        unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                build_aggregate_transfn_expr(
                    at,
                    count,
                    0,
                    false,
                    state,
                    collation,
                    function,
                    Oid::INVALID,
                    expression_at,
                    std::ptr::null_mut(),
                );
            });
            Callable::new(function, types, expression, context)
        }
    }

    /// Another function of an aggregate. What is made lives in the current memory context.
    pub fn of_state(function: Oid, types: CallTypes<'_>, context: AggregateContext) -> Callable {
        let (mut others, mut expression) = (types.arguments[1..].to_vec(), std::ptr::null_mut());
        let (at, expression_at) = (others.as_mut_ptr(), &raw mut expression);
        let (state, count) = (types.arguments[0], types.arguments.len() as i32);
        let (result, collation) = (types.result, types.collation);
        // SAFETY: PostgreSQL takes the type of the first argument, the state, by itself, and reads those of the others.
        // The boundary turns an ERROR into a panic.
        unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                build_aggregate_finalfn_expr(
                    at,
                    count,
                    state,
                    result,
                    collation,
                    function,
                    expression_at,
                );
            });
            Callable::new(function, types, expression, context)
        }
    }

    /// A function with a parsed expression of its call, from which polymorphic functions take their types.
    ///
    /// # Safety
    /// Expression and context live as long as the result.
    unsafe fn new(
        function: Oid,
        types: CallTypes<'_>,
        expression: *mut pg_sys::Expr,
        context: AggregateContext,
    ) -> Callable {
        let count = types.arguments.len();
        let mut callable = Callable::plain(function, types.collation, count);
        // SAFETY: the function lives as long as its call.
        unsafe { (*callable.call.info.flinfo).fn_expr = expression.cast() };
        callable.call.info.context = context.0.cast();
        callable
    }

    /// A function without a context. What it caches lives in the current memory context.
    fn plain(function: Oid, collation: Oid, count: usize) -> Callable {
        let mut info = Box::new(pg_sys::FmgrInfo::default());
        // SAFETY: the function exists.
        unsafe { pg_sys::fmgr_info(function, &raw mut *info) };
        let at = &raw mut *info;
        // SAFETY: the function lives as long as the result, which owns it.
        let mut callable = unsafe { Callable::of(at, collation, count) };
        callable.own = Some(info);
        callable
    }

    /// A call of a function with so many arguments.
    ///
    /// # Safety
    /// The function lives as long as the result.
    unsafe fn of(function: *mut pg_sys::FmgrInfo, collation: Oid, count: usize) -> Callable {
        assert!(count <= ARGUMENTS_MAX, "too many arguments");
        let mut call = Box::new(Call {
            info: pg_sys::FunctionCallInfoBaseData::default(),
            arguments: [pg_sys::NullableDatum::default(); ARGUMENTS_MAX],
        });
        call.info.flinfo = function;
        call.info.fncollation = collation;
        call.info.nargs = count as i16;
        Callable { call, own: None }
    }

    /// Whether the function is not called for NULL.
    #[inline]
    pub fn is_strict(&self) -> bool {
        // SAFETY: the function lives as long as its call.
        unsafe { (*self.call.info.flinfo).fn_strict }
    }

    /// Sets an argument, and whether it is NULL.
    #[inline]
    pub fn set(&mut self, index: usize, (value, isnull): (Datum, bool)) {
        self.call.arguments[index] = pg_sys::NullableDatum { value, isnull };
    }

    /// An argument that was set, and whether it is NULL.
    #[inline]
    pub fn argument(&self, index: usize) -> (Datum, bool) {
        let argument = self.call.arguments[index];
        (argument.value, argument.isnull)
    }

    /// Calls the function with the arguments that are set, which are of its types. The result is a value and whether it
    /// is NULL.
    #[inline]
    pub fn invoke(&mut self) -> (Datum, bool) {
        self.call.info.isnull = false;
        // SAFETY: the function lives as long as its call.
        let Some(function) = (unsafe { (*self.call.info.flinfo).fn_addr }) else {
            return (Datum::null(), true);
        };
        // SAFETY: the arguments are of the function's types, and lie where it looks for them.
        let value = unsafe { function((&raw mut *self.call).cast()) };
        (value, self.call.info.isnull)
    }

    /// Calls the function with these arguments first, and NULL for all others. A strict function that gets a NULL is
    /// not called, and the result is NULL.
    pub fn apply(&mut self, first: &[(Datum, bool)]) -> (Datum, bool) {
        let null = (Datum::null(), true);
        let given = first.iter().copied().chain(std::iter::repeat(null));
        for (index, argument) in (0..ARGUMENTS_MAX).zip(given) {
            self.set(index, argument);
        }
        let count = self.call.info.nargs as usize;
        let mut taken = self.call.arguments[..count].iter();
        match self.is_strict() && taken.any(|argument| argument.isnull) {
            true => null,
            false => self.invoke(),
        }
    }
}

/// A function of SQL on values, of which none is NULL.
pub struct SqlFunction(Callable);

impl SqlFunction {
    /// A function that exists, with its number of arguments. What it caches lives in the current memory context.
    pub fn new(function: Oid, collation: Oid, count: usize) -> SqlFunction {
        SqlFunction(Callable::plain(function, collation, count))
    }

    /// The equality of a type that has one.
    pub fn equality(type_of: Oid, collation: Oid) -> SqlFunction {
        let wanted = pg_sys::TYPECACHE_EQ_OPR_FINFO;
        // SAFETY: entries of the type cache live as long as the process, and so do their functions.
        unsafe {
            let cached = pg_sys::lookup_type_cache(type_of, wanted as i32);
            SqlFunction(Callable::of(&raw mut (*cached).eq_opr_finfo, collation, 2))
        }
    }

    /// The hash of a type that has one.
    pub fn hash(type_of: Oid, collation: Oid) -> SqlFunction {
        let wanted = pg_sys::TYPECACHE_HASH_PROC_FINFO;
        // SAFETY: entries of the type cache live as long as the process, and so do their functions.
        unsafe {
            let cached = pg_sys::lookup_type_cache(type_of, wanted as i32);
            let function = &raw mut (*cached).hash_proc_finfo;
            SqlFunction(Callable::of(function, collation, 1))
        }
    }

    /// Calls the function within a boundary: an ERROR jumps. `None` is NULL.
    #[inline]
    pub fn call_here(&mut self, arguments: &[Datum]) -> Option<Datum> {
        for (index, argument) in arguments.iter().enumerate() {
            self.0.set(index, (*argument, false));
        }
        let (value, is_null) = self.0.invoke();
        (!is_null).then_some(value)
    }

    /// Calls the function. An ERROR becomes a panic, and so does NULL.
    pub fn call(&mut self, arguments: &[Datum]) -> Datum {
        let result = executor::guarded(|| self.call_here(arguments));
        self.not_null(result)
    }

    /// A result of this function, which may not be NULL.
    pub fn not_null(&self, result: Option<Datum>) -> Datum {
        result.unwrap_or_else(|| {
            // SAFETY: the function lives as long as its call.
            let function = unsafe { (*self.0.call.info.flinfo).fn_oid };
            pgrx::error!("function {} returned NULL", function.to_u32())
        })
    }
}

/// Values of states: of types that are passed by reference, in a memory of their own.
#[derive(Clone, Copy)]
pub(super) struct StateValues {
    /// The memory.
    pub memory: Memory,
    /// How the values are passed.
    pub layout: ValueLayout,
}

impl StateValues {
    /// A value in the memory of states, within a boundary.
    pub fn kept(self, value: Datum) -> Datum {
        if self.layout.by_value {
            return value;
        }
        let memory = self.memory.as_raw();
        // SAFETY: a value of a state's type; a value that can be written is an expanded one with a header.
        unsafe {
            if self.is_expanded(value) && (*(*expanded_header(value)).eoh_context).parent == memory
            {
                return value;
            }
            let before = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = memory;
            let copy = datum_copy(value, false, self.layout.length.into());
            pg_sys::CurrentMemoryContext = before;
            copy
        }
    }

    /// Frees a value in the memory of states, within a boundary.
    pub fn free(self, value: Datum) {
        if self.layout.by_value {
            return;
        }
        // SAFETY: the value was [kept](Self::kept), and nobody uses it any more.
        unsafe {
            match self.is_expanded(value) {
                true => delete_expanded(value),
                false => free(value.cast_mut_ptr()),
            }
        }
    }

    /// A value that a function cannot change in its place, within a boundary.
    pub fn read_only(self, value: Datum) -> Datum {
        match self.is_expanded(value) {
            // SAFETY: such a value has a header.
            true => unsafe { read_only(value) },
            false => value,
        }
    }

    /// Whether a value is an expanded one that may be changed: `VARATT_IS_EXTERNAL_EXPANDED_RW`.
    fn is_expanded(self, value: Datum) -> bool {
        /// The first byte of a pointer in place of a value.
        const POINTER: u8 = 1;
        /// The second byte of a pointer to an expanded value that may be changed.
        const EXPANDED: u8 = 3;
        // SAFETY: a value of variable length that is not NULL begins with a header.
        self.layout.length == -1
            && unsafe {
                let header: *const u8 = value.cast_mut_ptr();
                *header == POINTER && *header.add(1) == EXPANDED
            }
    }
}
