//! Ports of what calls of functions need from C, under their C names: aggregates and windows, and copies of values.

#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_void};

use pgrx::pg_sys;

/// A window function's handle (`WindowObject`), private to Postgres's executor.
pub type WindowObject = *mut c_void;

unsafe extern "C-unwind" {
    fn WinGetPartitionLocalMemory(window: WindowObject, bytes: usize) -> *mut c_void;
    fn WinGetCurrentPosition(window: WindowObject) -> i64;
    fn WinSetMarkPosition(window: WindowObject, position: i64);
    fn WinGetFuncArgCurrent(
        window: WindowObject,
        argument: c_int,
        is_null: *mut bool,
    ) -> pg_sys::Datum;
    #[link_name = "datumCopy"]
    pub(super) fn datum_copy(value: pg_sys::Datum, by_value: bool, length: c_int) -> pg_sys::Datum;
    #[link_name = "datumGetSize"]
    fn datum_size(value: pg_sys::Datum, by_value: bool, length: c_int) -> usize;
    #[link_name = "datumEstimateSpace"]
    fn datum_estimate_space(
        value: pg_sys::Datum,
        is_null: bool,
        by_value: bool,
        length: c_int,
    ) -> usize;
    #[link_name = "datumSerialize"]
    fn datum_serialize(
        value: pg_sys::Datum,
        is_null: bool,
        by_value: bool,
        length: c_int,
        start: *mut *mut c_char,
    );
    #[link_name = "datumRestore"]
    fn datum_restore(start: *mut *mut c_char, is_null: *mut bool) -> pg_sys::Datum;
}

/// `AggCheckCallContext`: the aggregate's memory context, if this is a call by an aggregate.
///
/// # Safety
/// `info` is a call by Postgres.
pub unsafe fn AggCheckCallContext(info: pg_sys::FunctionCallInfo) -> Option<pg_sys::MemoryContext> {
    // SAFETY: the caller's promise; a node's tag says what it is.
    unsafe {
        let context = (*info).context;
        if context.is_null() {
            return None;
        }
        match (*context).type_ {
            pg_sys::NodeTag::T_AggState => {
                let memory = (*context.cast::<pg_sys::AggState>()).curaggcontext;
                Some((*memory).ecxt_per_tuple_memory)
            }
            pg_sys::NodeTag::T_WindowAggState => {
                Some((*context.cast::<pg_sys::WindowAggState>()).curaggcontext)
            }
            _ => None,
        }
    }
}

/// `PG_WINDOW_OBJECT`, `WindowObjectIsValid`: the window that this call is for, if it is for one.
///
/// # Safety
/// `info` is a call by Postgres.
pub unsafe fn PG_WINDOW_OBJECT(info: pg_sys::FunctionCallInfo) -> Option<WindowObject> {
    // SAFETY: the caller's promise; a node's tag says what it is.
    unsafe {
        let context = (*info).context;
        (!context.is_null() && (*context).type_ == pg_sys::NodeTag::T_WindowObjectData)
            .then_some(context.cast())
    }
}

/// Reads the current row's arguments and returns the partition's memory. Releases the rows before.
///
/// # Safety
/// `window` is the call's window; the function has as many arguments as `values`.
pub unsafe fn window_row(
    window: WindowObject,
    bytes: usize,
    values: &mut [Option<pg_sys::Datum>],
) -> *mut c_void {
    let mut memory = std::ptr::null_mut();
    // SAFETY: a live window. One boundary surrounds all calls, because it is not free; nothing in it needs dropping.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            WinSetMarkPosition(window, WinGetCurrentPosition(window));
            for (i, value) in values.iter_mut().enumerate() {
                let mut is_null = false;
                let datum = WinGetFuncArgCurrent(window, i as c_int, &mut is_null);
                *value = (!is_null).then_some(datum);
            }
            memory = WinGetPartitionLocalMemory(window, bytes);
        });
    }
    memory
}

/// `datumCopy`: a copy in the current memory context; expanded values become flat.
///
/// # Safety
/// `value` is not NULL and of a type of this length.
pub unsafe fn datumCopy(value: pg_sys::Datum, by_value: bool, length: i16) -> pg_sys::Datum {
    if by_value {
        return value;
    }
    // SAFETY: the caller's promise; the boundary turns an ERROR into a panic.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| datum_copy(value, by_value, length as c_int)) }
}

/// `datumGetSize`: the bytes of a value.
///
/// # Safety
/// `value` is not NULL and of a type of this length.
pub unsafe fn datumGetSize(value: pg_sys::Datum, by_value: bool, length: i16) -> usize {
    // SAFETY: the caller's promise; the boundary turns an ERROR into a panic.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| datum_size(value, by_value, length as c_int)) }
}

/// `datumEstimateSpace`, `datumSerialize`: the value's bytes for a process of the same server, appended.
///
/// # Safety
/// A value that is there is of a type of this length.
pub unsafe fn datumSerialize(
    value: Option<pg_sys::Datum>,
    by_value: bool,
    length: i16,
    bytes: &mut Vec<u8>,
) {
    let (datum, is_null) = (value.unwrap_or(pg_sys::Datum::null()), value.is_none());
    // SAFETY: the caller's promise; the estimate is what is then written; the boundary turns an ERROR into a panic.
    unsafe {
        let space = pg_sys::ffi::pg_guard_ffi_boundary(|| {
            datum_estimate_space(datum, is_null, by_value, length as c_int)
        });
        let from = bytes.len();
        bytes.resize(from + space, 0);
        let mut start = bytes.as_mut_ptr().add(from).cast::<c_char>();
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            datum_serialize(datum, is_null, by_value, length as c_int, &mut start)
        });
    }
}

/// `datumRestore`: the value that [`datumSerialize`] wrote, in the current memory context.
///
/// # Safety
/// `bytes` were written by [`datumSerialize`].
pub unsafe fn datumRestore(bytes: &[u8]) -> Option<pg_sys::Datum> {
    let mut start = bytes.as_ptr().cast_mut().cast::<c_char>();
    let mut is_null = false;
    // SAFETY: the caller's promise; the bytes are only read; the boundary turns an ERROR into a panic.
    let datum =
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| datum_restore(&mut start, &mut is_null)) };
    (!is_null).then_some(datum)
}
