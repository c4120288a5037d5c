//! A call of one of our SQL functions: its arguments as Rust values, the memory of its aggregate, its window.
//!
//! The functions are registered with [`sql_callables!`](crate::sql_callables): a guard, then this type, then safe code.
//! Nothing here goes through Postgres where reading a field does: an aggregate's transition runs once a row.

use std::mem::size_of;

use pgrx::pg_sys;

use super::call_ports as ports;

/// The arguments and surroundings of one call. Reading an argument as another type than SQL declares gives a wrong
/// number, never a wild read: what is behind a pointer is read by the functions marked unsafe alone.
pub struct Call {
    info: pg_sys::FunctionCallInfo,
}

impl Call {
    /// Runs `body` and hands its value back to Postgres; `None` is NULL.
    ///
    /// # Safety
    /// `info` is what Postgres called with.
    pub unsafe fn enter(
        info: pg_sys::FunctionCallInfo,
        body: impl FnOnce(&Call) -> Option<pg_sys::Datum>,
    ) -> pg_sys::Datum {
        let result = body(&Call { info });
        // SAFETY: the caller's promise.
        unsafe { (*info).isnull = result.is_none() };
        result.unwrap_or(pg_sys::Datum::null())
    }

    /// Argument `index` from 0; `None` if it is NULL or not there.
    pub fn argument(&self, index: usize) -> Option<pg_sys::Datum> {
        // SAFETY: Postgres passes `nargs` arguments.
        unsafe {
            if index >= (*self.info).nargs as usize {
                return None;
            }
            let argument = &*(*self.info).args.as_ptr().add(index);
            (!argument.isnull).then_some(argument.value)
        }
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
    ///
    /// # Safety
    /// SQL declares the argument as interval.
    pub unsafe fn interval(&self, index: usize) -> Option<(i32, i32, i64)> {
        let value = self.argument(index)?.cast_mut_ptr::<pg_sys::Interval>();
        // SAFETY: the caller's promise.
        unsafe { Some(((*value).month, (*value).day, (*value).time)) }
    }

    /// An argument of type text: its bytes.
    ///
    /// # Safety
    /// SQL declares the argument as text; the bytes are not kept past the call.
    pub unsafe fn text(&self, index: usize) -> Option<&[u8]> {
        let value = self.argument(index)?.cast_mut_ptr::<pg_sys::varlena>();
        // SAFETY: the caller's promise; both functions take any varlena.
        unsafe {
            let plain = pg_sys::pg_detoast_datum_packed(value);
            let bytes = pgrx::varlena::vardata_any(plain).cast::<u8>();
            Some(std::slice::from_raw_parts(
                bytes,
                pgrx::varlena::varsize_any_exhdr(plain),
            ))
        }
    }

    /// An argument of type internal: a state that this library made.
    pub fn state<T>(&self, index: usize) -> Option<*mut T> {
        self.argument(index).map(|datum| datum.cast_mut_ptr())
    }

    /// The type that argument `index` has in this call, where SQL declares a polymorphic one; invalid if unknown.
    pub fn argument_type(&self, index: usize) -> pg_sys::Oid {
        // SAFETY: Postgres set up the call.
        unsafe { pg_sys::get_fn_expr_argtype((*self.info).flinfo, index as i32) }
    }

    /// The memory that lives as long as the aggregate's group; `None` outside an aggregate.
    pub fn aggregate_memory(&self) -> Option<pg_sys::MemoryContext> {
        // SAFETY: Postgres set up the call.
        unsafe { ports::AggCheckCallContext(self.info) }
    }

    /// Gives `body` what this place in the query remembers from row to row, zero at the first; `None` where the call
    /// comes from no query.
    ///
    /// # Safety
    /// The function remembers nothing else, and `body` does not come back here.
    pub unsafe fn with_memory<M: Remembered, R>(
        &self,
        body: impl FnOnce(&mut M) -> R,
    ) -> Option<R> {
        // SAFETY: the caller's promise; the memory lives as long as the pointer to it, is as long as M, aligned to the
        // maximum, and zero is a valid M.
        unsafe {
            let function = (*self.info).flinfo;
            if function.is_null() {
                return None;
            }
            if (*function).fn_extra.is_null() {
                let memory = pg_sys::MemoryContextAllocZero((*function).fn_mcxt, size_of::<M>());
                (*function).fn_extra = memory;
            }
            Some(body(&mut *(*function).fn_extra.cast()))
        }
    }

    /// Gives `body` the first `N` arguments of a window function at the current row, and its partition's memory, zero at
    /// the partition's first row. Rows before the current one are not asked for again, so Postgres may forget them.
    /// `None` outside a window.
    ///
    /// # Safety
    /// The function is declared WINDOW with at least `N` arguments, and `body` does not come back here.
    pub unsafe fn window_row<const N: usize, M: Remembered, R>(
        &self,
        body: impl FnOnce([Option<pg_sys::Datum>; N], &mut M) -> R,
    ) -> Option<R> {
        // SAFETY: the caller's promise; the memory is as long as M, aligned to the maximum, and zero is a valid M.
        unsafe {
            let window = ports::PG_WINDOW_OBJECT(self.info)?;
            let mut values = [None; N];
            let memory = ports::window_row(window, size_of::<M>(), &mut values);
            Some(body(values, &mut *memory.cast()))
        }
    }
}

/// What a function remembers from call to call.
///
/// # Safety
/// All bytes zero is a valid value; needs no Drop.
pub unsafe trait Remembered: Copy {}

/// The datum's float8.
pub fn float8(datum: pg_sys::Datum) -> f64 {
    f64::from_bits(datum.value() as u64)
}

/// The datum's bigint, timestamp or timestamptz.
pub fn int8(datum: pg_sys::Datum) -> i64 {
    datum.value() as i64
}

/// The datum's integer or date.
pub fn int4(datum: pg_sys::Datum) -> i32 {
    datum.value() as i32
}

/// A float8 as a datum.
pub fn float8_datum(value: f64) -> pg_sys::Datum {
    pg_sys::Datum::from(value.to_bits())
}

/// Registers C functions for SQL: `symbol, record => body;`, where `record` is `pg_finfo_` and the symbol, and `body` is
/// `fn(&Call) -> Option<Datum>`.
#[macro_export]
macro_rules! sql_callables {
    ($($symbol:ident, $record:ident => $body:expr;)*) => {$(
        #[doc = concat!("SQL: `", stringify!($symbol), "`.")]
        ///
        /// # Safety
        /// Called by Postgres alone.
        #[pgrx::pg_guard]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $symbol(
            info: pgrx::pg_sys::FunctionCallInfo,
        ) -> pgrx::pg_sys::Datum {
            let body: fn(&$crate::pg::call::Call) -> Option<pgrx::pg_sys::Datum> = $body;
            // SAFETY: Postgres calls with a valid record.
            unsafe { $crate::pg::call::Call::enter(info, body) }
        }

        /// Postgres's record of the calling convention (`PG_FUNCTION_INFO_V1`).
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $record() -> &'static pgrx::pg_sys::Pg_finfo_record {
            static VERSION_1: pgrx::pg_sys::Pg_finfo_record =
                pgrx::pg_sys::Pg_finfo_record { api_version: 1 };
            &VERSION_1
        }
    )*};
}
