//! The functions of an aggregate, ready to be called outside of PostgreSQL's own aggregation.

use pgrx::pg_sys::{self, Datum, Oid};

use super::callable::Callable;
use super::memory::Memory;
use super::row_evaluator::RowReader;
use super::scalar::RunningNode;
use crate::pg::aggregate_catalog::AggregateFunctions;
use crate::pg::tree::{Aggref, View};

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
}

/// The functions that add a state in serialised form to another one.
pub(super) struct Merge {
    pub deserialise: Callable,
    pub combine: Callable,
}

/// Makes the functions of an aggregate's call.
pub(super) struct FunctionsOfCall<'a> {
    pub call: Aggref<'a>,
    /// The types of the aggregate's arguments.
    pub types: Vec<Oid>,
    pub context: *mut pg_sys::AggState,
    pub node: RunningNode,
}

impl FunctionsOfCall<'_> {
    /// The transition function.
    ///
    /// # Safety
    /// The function is the one of the call's aggregate; context and node live as long as the result.
    pub unsafe fn transition(&self, function: Oid) -> Callable {
        let mut types = self.types.clone();
        let (state, collation) = (self.call.aggtranstype(), self.call.inputcollid());
        let mut expression = std::ptr::null_mut();
        // SAFETY: this function's contract.
        unsafe {
            self.node.memory().enter(|| {
                pg_sys::ffi::pg_guard_ffi_boundary(|| {
                    build_aggregate_transfn_expr(
                        types.as_mut_ptr(),
                        types.len() as i32,
                        0,
                        false,
                        state,
                        collation,
                        function,
                        Oid::INVALID,
                        &raw mut expression,
                        std::ptr::null_mut(),
                    );
                });
                let arguments = types.len() + 1;
                Callable::new(function, arguments, expression, collation, self.context)
            })
        }
    }

    /// The function that makes the result of a state, if there is one.
    ///
    /// # Safety
    /// As for [`Self::transition`].
    pub unsafe fn finish(&self, functions: &AggregateFunctions) -> Option<Callable> {
        let state = self.call.aggtranstype();
        let (function, mut types, result) = match self.call.is_partial() {
            true if state == pg_sys::INTERNALOID => {
                (functions.serialise?, vec![state], pg_sys::BYTEAOID)
            }
            true => return None,
            false => {
                let taken = if functions.finish_takes_all {
                    &self.types[..]
                } else {
                    &[]
                };
                let types = [&[state], taken].concat();
                (functions.finish?, types, self.call.aggtype())
            }
        };
        // SAFETY: this function's contract.
        Some(unsafe { self.of_state(function, &mut types, result) })
    }

    /// The functions that add a serialised state, if there are such.
    ///
    /// # Safety
    /// As for [`Self::transition`].
    pub unsafe fn merge(&self, functions: &AggregateFunctions) -> Option<Merge> {
        let state = self.call.aggtranstype();
        let (deserialise, combine) = (functions.deserialise?, functions.combine?);
        // SAFETY: this function's contract.
        unsafe {
            let mut types = [pg_sys::BYTEAOID, pg_sys::INTERNALOID];
            let deserialise = self.of_state(deserialise, &mut types, state);
            let combine = self.of_state(combine, &mut [state, state], state);
            Some(Merge {
                deserialise,
                combine,
            })
        }
    }

    /// A function that takes arguments of these types.
    ///
    /// # Safety
    /// As for [`Self::transition`].
    unsafe fn of_state(&self, function: Oid, types: &mut [Oid], result: Oid) -> Callable {
        let collation = self.call.inputcollid();
        let mut expression = std::ptr::null_mut();
        let (count, state) = (types.len(), types[0]);
        let others = &mut types[1..];
        // SAFETY: this function's contract. PostgreSQL takes the type of the first argument, the state, by itself.
        unsafe {
            self.node.memory().enter(|| {
                pg_sys::ffi::pg_guard_ffi_boundary(|| {
                    build_aggregate_finalfn_expr(
                        others.as_mut_ptr(),
                        count as i32,
                        state,
                        result,
                        collation,
                        function,
                        &raw mut expression,
                    );
                });
                Callable::new(function, count, expression, collation, self.context)
            })
        }
    }
}

/// The node that transition functions take for the one that calls them: it has the memory of the states, and the call.
///
/// # Safety
/// The node has started. The result lives until the node starts again.
pub(super) unsafe fn aggregate_state(
    call: Aggref<'_>,
    reader: &RowReader,
    memory: Memory,
    node: RunningNode,
) -> *mut pg_sys::AggState {
    // SAFETY: this function's contract; the structures are zero but for what is set.
    unsafe {
        let kept = node.memory().as_raw();
        let state: *mut pg_sys::AggState =
            pg_sys::MemoryContextAllocZero(kept, size_of::<pg_sys::AggState>()).cast();
        let context: *mut pg_sys::ExprContext =
            pg_sys::MemoryContextAllocZero(kept, size_of::<pg_sys::ExprContext>()).cast();
        (*context).type_ = pg_sys::NodeTag::T_ExprContext;
        (*context).ecxt_per_query_memory = kept;
        (*context).ecxt_per_tuple_memory = memory.as_raw();
        // The structure is private to PostgreSQL. It begins with the call, and zero is a legal value of the rest.
        let private: *mut *mut pg_sys::Aggref =
            pg_sys::MemoryContextAllocZero(kept, PRIVATE_BYTES).cast();
        *private = call.as_ptr();
        (*state).ss.ps.type_ = pg_sys::NodeTag::T_AggState;
        (*state).ss.ps.state = (*node.as_ptr()).state;
        (*state).curaggcontext = context;
        (*state).tmpcontext = reader.context();
        (*state).curpertrans = private.cast();
        state
    }
}

/// The state of no rows, from its text.
///
/// # Safety
/// The text is one that the type of the state reads.
pub(super) unsafe fn initial_state(text: &std::ffi::CStr, state: Oid) -> Datum {
    let (mut input, mut parameter) = (Oid::INVALID, Oid::INVALID);
    // SAFETY: this function's contract.
    unsafe {
        pg_sys::getTypeInputInfo(state, &raw mut input, &raw mut parameter);
        pg_sys::OidInputFunctionCall(input, text.as_ptr().cast_mut(), parameter, -1)
    }
}
