//! A call of one of this extension's SQL functions: its arguments, the memory of its aggregate, its window.
//!
//! Functions are registered with [`sql_callables!`](crate::sql_callables), which makes a [`Call`]
//! behind a guard and passes it to safe code. An aggregate's transition runs once a row, so fields
//! are read directly where that suffices.

use std::mem::size_of;

use pgrx::pg_sys;

use super::call_ports as ports;
use super::tree::{Aggref, plan_node};
use super::typed_datum::TypedDatum;

/// The arguments and surroundings of one call.
///
/// Whoever makes a `Call` warrants that the body reads each argument as the type that SQL declares, and an argument of
/// type `internal` as the state that this aggregate made. Its methods are safe for that reason.
pub struct Call {
    info: pg_sys::FunctionCallInfo,
}

impl Call {
    /// Runs `body` and returns its value to PostgreSQL; `None` is NULL.
    ///
    /// # Safety
    /// PostgreSQL called with `info`, and `body` reads the arguments as SQL declares them.
    pub unsafe fn enter(
        info: pg_sys::FunctionCallInfo,
        body: impl FnOnce(&Call) -> Option<pg_sys::Datum>,
    ) -> pg_sys::Datum {
        let result = body(&Call { info });
        // SAFETY: a live call.
        unsafe { (*info).isnull = result.is_none() };
        result.unwrap_or(pg_sys::Datum::null())
    }

    /// An argument, counted from 0; `None` if it is NULL or missing.
    pub fn argument(&self, index: usize) -> Option<pg_sys::Datum> {
        // SAFETY: PostgreSQL passes `nargs` arguments.
        unsafe {
            if index >= (*self.info).nargs as usize {
                return None;
            }
            let argument = &*(*self.info).args.as_ptr().add(index);
            (!argument.isnull).then_some(argument.value)
        }
    }

    /// Whether the call has this argument, NULL or not.
    pub fn has_argument(&self, index: usize) -> bool {
        // SAFETY: a live call.
        unsafe { index < (*self.info).nargs as usize }
    }

    /// An argument of type float8.
    pub fn float8(&self, index: usize) -> Option<f64> {
        self.argument(index).map(float8)
    }

    /// An argument of 64 bits: bigint, timestamp, timestamptz.
    pub fn int8(&self, index: usize) -> Option<i64> {
        self.argument(index).map(int8)
    }

    /// An argument of 32 bits: integer, date.
    pub fn int4(&self, index: usize) -> Option<i32> {
        self.argument(index).map(int4)
    }

    /// An argument of type interval: months, days, microseconds.
    pub fn interval(&self, index: usize) -> Option<(i32, i32, i64)> {
        let value = self.argument(index)?.cast_mut_ptr::<pg_sys::Interval>();
        // SAFETY: SQL declares the argument as interval.
        unsafe { Some(((*value).month, (*value).day, (*value).time)) }
    }

    /// The bytes of an argument of type text or bytea.
    pub fn text(&self, index: usize) -> Option<&[u8]> {
        let value = self.argument(index)?.cast_mut_ptr::<pg_sys::varlena>();
        // SAFETY: SQL declares the argument as a varlena. A detoasted copy lives as long as the call.
        unsafe {
            let plain = pg_sys::pg_detoast_datum_packed(value);
            let bytes = pgrx::varlena::vardata_any(plain).cast::<u8>();
            Some(std::slice::from_raw_parts(
                bytes,
                pgrx::varlena::varsize_any_exhdr(plain),
            ))
        }
    }

    /// An argument of type internal: a state that [`new_state`](Self::new_state) made. Only one
    /// reference to a state may exist, so an argument is read once.
    #[expect(
        clippy::mut_from_ref,
        reason = "the state is the aggregate's, not the call's"
    )]
    pub fn state<T: Copy>(&self, index: usize) -> Option<&mut T> {
        let state = self.argument(index)?.cast_mut_ptr::<T>();
        // SAFETY: the aggregate made the state, which lives as long as the group.
        Some(unsafe { &mut *state })
    }

    /// A new state in an aggregate's memory. It needs no dropping.
    #[expect(
        clippy::mut_from_ref,
        reason = "the state is the aggregate's, not the call's"
    )]
    pub fn new_state<T: Copy>(&self, memory: pg_sys::MemoryContext, state: T) -> &mut T {
        // SAFETY: as many bytes as are written, at the largest alignment that PostgreSQL knows.
        unsafe {
            let place = pg_sys::MemoryContextAlloc(memory, size_of::<T>()).cast::<T>();
            place.write(state);
            &mut *place
        }
    }

    /// An argument of type float8[]: a one-dimensional array of `N` numbers without NULLs. `None` if it is NULL, an
    /// error if it is another array. Within an aggregate the array may be changed in place; elsewhere it is a copy.
    #[expect(
        clippy::mut_from_ref,
        reason = "the array is the aggregate's, not the call's"
    )]
    pub fn float8_array<const N: usize>(
        &self,
        index: usize,
    ) -> Option<Result<&mut Float8Array<N>, NotSuchArray>> {
        let mut array = self.argument(index)?.cast_mut_ptr::<Float8Array<N>>();
        // SAFETY: SQL declares the argument as float8[], so it is a varlena of at least an array's header. The low bits
        // of its first byte are zero if it is neither packed nor compressed nor out of line.
        unsafe {
            if *array.cast::<u8>() & 3 != 0 {
                array = pg_sys::pg_detoast_datum(array.cast()).cast();
            }
            let bytes = (array.cast::<u32>().read() >> 2) as usize;
            let header = &(*array).header;
            let is_plain = bytes == size_of::<Float8Array<N>>()
                && header.ndim == 1
                && header.dataoffset == 0
                && header.elemtype == pg_sys::FLOAT8OID
                && (*array).dimension == N as i32;
            if !is_plain {
                return Some(Err(NotSuchArray));
            }
            if self.aggregate_memory().is_none() {
                let copy = pg_sys::palloc(size_of::<Float8Array<N>>()).cast::<Float8Array<N>>();
                copy.copy_from_nonoverlapping(array, 1);
                array = copy;
            }
            Some(Ok(&mut *array))
        }
    }

    /// The type of an argument in this call, where SQL declares a polymorphic one; invalid if it is unknown.
    pub fn argument_type(&self, index: usize) -> pg_sys::Oid {
        // SAFETY: a live call.
        unsafe { pg_sys::get_fn_expr_argtype((*self.info).flinfo, index as i32) }
    }

    /// An argument with its type in this call.
    pub fn typed(&self, index: usize) -> Option<TypedDatum> {
        let value = self.argument(index)?;
        // SAFETY: PostgreSQL passes a value of the type that it names, which lives as long as the call.
        Some(TypedDatum::new(value, self.argument_type(index)))
    }

    /// The memory that lives as long as the aggregate's group; `None` outside an aggregate.
    pub fn aggregate_memory(&self) -> Option<pg_sys::MemoryContext> {
        // SAFETY: a live call.
        unsafe { ports::AggCheckCallContext(self.info) }
    }

    /// Whether the aggregate that calls is one over a window, whose result is asked for again and again.
    pub fn is_in_window(&self) -> bool {
        // SAFETY: a live call; a node's tag says what it is.
        unsafe {
            let context = (*self.info).context;
            !context.is_null() && (*context).type_ == pg_sys::NodeTag::T_WindowAggState
        }
    }

    /// Has `callback` called with `argument` before the memory of the aggregate is reset, unless an ERROR ends the
    /// query. Over a window, or outside an aggregation, it is an ERROR.
    pub fn at_end_of_aggregate(
        &self,
        callback: unsafe extern "C-unwind" fn(pg_sys::Datum),
        argument: pg_sys::Datum,
    ) {
        // SAFETY: a live call.
        unsafe { pg_sys::AggRegisterCallback(self.info, Some(callback), argument) }
    }

    /// The call of the aggregate that this call belongs to, as the plan has it; `None` outside an aggregation.
    pub fn aggregate(&self) -> Option<Aggref<'_>> {
        // SAFETY: a live call. The plan lives longer.
        let aggregate = unsafe { pg_sys::AggGetAggref(self.info) };
        (!aggregate.is_null()).then(|| plan_node(aggregate))
    }

    /// A row of the composite type that SQL declares as the result.
    pub fn composite(&self, values: &[Option<pg_sys::Datum>]) -> Option<pg_sys::Datum> {
        let mut descriptor = std::ptr::null_mut();
        let mut plain: Vec<pg_sys::Datum> = values
            .iter()
            .map(|v| v.unwrap_or(pg_sys::Datum::null()))
            .collect();
        let mut nulls: Vec<bool> = values.iter().map(Option::is_none).collect();
        // SAFETY: a live call; the descriptor has as many columns as there are values, which is checked.
        unsafe {
            pg_sys::get_call_result_type(self.info, std::ptr::null_mut(), &mut descriptor);
            if descriptor.is_null() || (*descriptor).natts as usize != values.len() {
                return None;
            }
            let tuple = pg_sys::heap_form_tuple(descriptor, plain.as_mut_ptr(), nulls.as_mut_ptr());
            Some(pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data))
        }
    }

    /// The current memory context.
    pub fn current_memory(&self) -> pg_sys::MemoryContext {
        // SAFETY: a read of a variable of this process, which has one thread.
        unsafe { pg_sys::CurrentMemoryContext }
    }

    /// Runs `body` with the value that this place in the query keeps from row to row. `None` if the call comes from no
    /// query. A function keeps values of one type only.
    pub fn with_memory<M: Copy + Default, R>(&self, body: impl FnOnce(&mut M) -> R) -> Option<R> {
        // SAFETY: the memory lives as long as the pointer to it and is as large as the value. `body` has no call, so it
        // does not come back here.
        unsafe {
            let function = (*self.info).flinfo;
            if function.is_null() {
                return None;
            }
            if (*function).fn_extra.is_null() {
                let memory = pg_sys::MemoryContextAlloc((*function).fn_mcxt, size_of::<M>());
                memory.cast::<M>().write(M::default());
                (*function).fn_extra = memory;
            }
            Some(body(&mut *(*function).fn_extra.cast()))
        }
    }

    /// Runs `body` with the first `N` arguments of a window function at the current row, and with the value that its
    /// partition keeps. Earlier rows are not read again, so PostgreSQL may drop them. `None` outside a window.
    pub fn window_row<const N: usize, M: Copy + Default, R>(
        &self,
        body: impl FnOnce([Option<pg_sys::Datum>; N], &mut M) -> R,
    ) -> Option<R> {
        // SAFETY: SQL declares a WINDOW function of at least `N` arguments. The memory is zero at the partition's first
        // row, and as large as `PartitionValue`, of which zero is a value. `body` has no call, so it does not come back
        // here.
        unsafe {
            let window = ports::PG_WINDOW_OBJECT(self.info)?;
            let mut values = [None; N];
            let bytes = size_of::<PartitionValue<M>>();
            let memory = ports::window_row(window, bytes, &mut values);
            let kept = &mut *memory.cast::<PartitionValue<M>>();
            if kept.is_set == 0 {
                kept.is_set = 1;
                kept.value.write(M::default());
            }
            Some(body(values, kept.value.assume_init_mut()))
        }
    }
}

/// A value in a partition's memory, which PostgreSQL fills with zeros.
#[repr(C)]
struct PartitionValue<M> {
    is_set: u64,
    value: std::mem::MaybeUninit<M>,
}

/// A one-dimensional array of float8 without NULLs, as PostgreSQL lays it out.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Float8Array<const N: usize> {
    header: pg_sys::ArrayType,
    dimension: i32,
    lower_bound: i32,
    /// The numbers.
    pub numbers: [f64; N],
}

const _: () = assert!(size_of::<Float8Array<3>>() == 48);

/// An array has another shape than the function requires.
#[derive(Clone, Copy, Debug)]
pub struct NotSuchArray;

/// The float8 that a datum is.
pub fn float8(datum: pg_sys::Datum) -> f64 {
    f64::from_bits(datum.value() as u64)
}

/// The bigint, timestamp or timestamptz that a datum is.
pub fn int8(datum: pg_sys::Datum) -> i64 {
    datum.value() as i64
}

/// The integer or date that a datum is.
pub fn int4(datum: pg_sys::Datum) -> i32 {
    datum.value() as i32
}

/// A float8 as a datum.
pub fn float8_datum(value: f64) -> pg_sys::Datum {
    pg_sys::Datum::from(value.to_bits())
}

/// Registers C functions for SQL: `symbol, record => body;`, where `record` is `pg_finfo_` and the
/// symbol, and `body` is `fn(&Call) -> Option<Datum>`. The body must read the arguments as `sql/`
/// declares those of the symbol.
#[macro_export]
macro_rules! sql_callables {
    ($($symbol:ident, $record:ident => $body:expr;)*) => {$(
        #[doc = concat!("SQL: `", stringify!($symbol), "`.")]
        ///
        /// # Safety
        /// Only PostgreSQL calls it.
        #[pgrx::pg_guard]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $symbol(
            info: pgrx::pg_sys::FunctionCallInfo,
        ) -> pgrx::pg_sys::Datum {
            let body: fn(&$crate::pg::call::Call) -> Option<pgrx::pg_sys::Datum> = $body;
            // SAFETY: PostgreSQL calls it as SQL declares the symbol, and the body was registered for that declaration.
            unsafe { $crate::pg::call::Call::enter(info, body) }
        }

        /// PostgreSQL's record of the calling convention (`PG_FUNCTION_INFO_V1`).
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $record() -> &'static pgrx::pg_sys::Pg_finfo_record {
            static VERSION_1: pgrx::pg_sys::Pg_finfo_record =
                pgrx::pg_sys::Pg_finfo_record { api_version: 1 };
            &VERSION_1
        }
    )*};
}

/// Registers main functions of background workers: `symbol => body;`, where `body` is `fn(Datum)`, which takes the
/// worker's argument.
#[macro_export]
macro_rules! worker_mains {
    ($($symbol:ident => $body:expr;)*) => {$(
        #[doc = concat!("Worker: `", stringify!($symbol), "`.")]
        #[pgrx::pg_guard]
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $symbol(argument: pgrx::pg_sys::Datum) {
            let body: fn(pgrx::pg_sys::Datum) = $body;
            body(argument);
        }
    )*};
}

/// Raises PostgreSQL's error for a float8 that is too large.
pub fn float_overflow() -> ! {
    // SAFETY: raises an error and nothing else.
    unsafe { pg_sys::float_overflow_error() };
    // Bindings of PostgreSQL 18 do not know that the function never returns.
    #[cfg(feature = "pg18")]
    unreachable!("an error was raised")
}

/// Raises PostgreSQL's error for a float8 that is too small.
pub fn float_underflow() -> ! {
    // SAFETY: raises an error and nothing else.
    unsafe { pg_sys::float_underflow_error() };
    // Bindings of PostgreSQL 18 do not know that the function never returns.
    #[cfg(feature = "pg18")]
    unreachable!("an error was raised")
}

/// Ends the transaction of a procedure that was called at the top, as PL/pgSQL's COMMIT does, and
/// runs `work` in the next one. `None`: the call is inside a transaction block or a function, and
/// nothing was done.
pub fn commit_before<T>(call: pg_sys::FunctionCallInfo, work: impl FnOnce() -> T) -> Option<T> {
    // SAFETY: PostgreSQL passed the call's information, and the context of a CALL is of this type.
    unsafe {
        let context = (*call).context;
        let is_call = !context.is_null() && (*context).type_ == pg_sys::NodeTag::T_CallContext;
        if !is_call || (*context.cast::<pg_sys::CallContext>()).atomic {
            return None;
        }
        pg_sys::SPI_connect_ext(pg_sys::SPI_OPT_NONATOMIC as i32);
        pg_sys::SPI_commit();
        let result = work();
        pg_sys::SPI_finish();
        Some(result)
    }
}

/// Makes a type, whose datums are of a type of SQL, one that functions return.
macro_rules! returned_as {
    ($type:ident, $sql:literal) => {
        // SAFETY: the datums are of this type of SQL.
        unsafe impl pgrx::pgrx_sql_entity_graph::metadata::SqlTranslatable for $type {
            const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!($type);
            const TYPE_ORIGIN: pgrx::pgrx_sql_entity_graph::metadata::TypeOrigin =
                pgrx::pgrx_sql_entity_graph::metadata::TypeOrigin::External;
            const ARGUMENT_SQL: Result<
                pgrx::pgrx_sql_entity_graph::metadata::SqlMappingRef,
                pgrx::pgrx_sql_entity_graph::metadata::ArgumentError,
            > = Ok(pgrx::pgrx_sql_entity_graph::metadata::SqlMappingRef::literal($sql));
            const RETURN_SQL: Result<
                pgrx::pgrx_sql_entity_graph::metadata::ReturnsRef,
                pgrx::pgrx_sql_entity_graph::metadata::ReturnsError,
            > = Ok(pgrx::pgrx_sql_entity_graph::metadata::ReturnsRef::One(
                pgrx::pgrx_sql_entity_graph::metadata::SqlMappingRef::literal($sql),
            ));
        }

        // SAFETY: the datums are of this type, as SQL declares.
        unsafe impl pgrx::callconv::BoxRet for $type {
            unsafe fn box_into<'fcx>(
                self,
                call: &mut pgrx::callconv::FcInfo<'fcx>,
            ) -> pgrx::datum::Datum<'fcx> {
                match pgrx::IntoDatum::into_datum(self) {
                    // SAFETY: the datum is of the call's result type.
                    Some(value) => unsafe { call.return_raw_datum(value) },
                    None => call.return_null(),
                }
            }
        }
    };
}
pub(super) use returned_as;
