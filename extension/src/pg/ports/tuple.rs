//! Tuples: their descriptors, the slots they lie in, locks on them.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::descriptor::Descriptor;
use crate::pg::table::OpenTable;
use crate::pg::tree::View;

/// One attribute of a tuple descriptor, counted from 0.
///
/// # Panics
/// If there are not so many.
#[inline]
pub fn TupleDescAttr(descriptor: Descriptor<'_>, index: usize) -> &pg_sys::FormData_pg_attribute {
    let count = descriptor.len();
    assert!(index < count, "attribute {index} of {count}");
    // SAFETY: the descriptor is live and has so many attributes.
    unsafe { &*attribute_at(descriptor.as_ptr(), index) }
}

/// A name in a row of a catalog.
pub fn name_text(name: &pg_sys::NameData) -> &CStr {
    // SAFETY: a NameData is NUL-terminated.
    unsafe { CStr::from_ptr(name.data.as_ptr()) }
}

/// Where an attribute of a tuple descriptor lies.
///
/// # Safety
/// `descriptor` is a live descriptor of more than `index` attributes.
unsafe fn attribute_at(
    descriptor: pg_sys::TupleDesc,
    index: usize,
) -> *mut pg_sys::FormData_pg_attribute {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return (*descriptor).attrs.as_mut_ptr().add(index);
        // The full attributes lie behind the compact ones.
        #[cfg(feature = "pg18")]
        return (*descriptor)
            .compact_attrs
            .as_mut_ptr()
            .add((*descriptor).natts as usize)
            .cast::<pg_sys::FormData_pg_attribute>()
            .add(index);
    }
}

/// Writes one attribute of a tuple descriptor that nobody else refers to yet.
///
/// # Safety
/// As for [`attribute_at`].
pub unsafe fn set_attribute(
    descriptor: pg_sys::TupleDesc,
    index: usize,
    attribute: pg_sys::FormData_pg_attribute,
) {
    // SAFETY: the caller's promise.
    unsafe {
        attribute_at(descriptor, index).write(attribute);
        #[cfg(feature = "pg18")]
        pg_sys::populate_compact_attribute(descriptor, index as std::ffi::c_int);
    }
}

/// The value that rows from before `ALTER TABLE … ADD COLUMN … DEFAULT` have in attribute `index` (from 0).
///
/// # Panics
/// If there are not so many attributes.
pub fn missing_value(descriptor: Descriptor<'_>, index: usize) -> Option<pg_sys::Datum> {
    let count = descriptor.len();
    assert!(index < count, "attribute {index} of {count}");
    let mut is_null = true;
    // SAFETY: the descriptor is a relation's or a copy of one, and has so many attributes.
    let value =
        unsafe { pg_sys::getmissingattr(descriptor.as_ptr(), index as i32 + 1, &mut is_null) };
    (!is_null).then_some(value)
}

/// Empties a slot.
///
/// # Safety
/// `slot` is live.
pub unsafe fn ExecClearTuple(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: every slot has routines, and every routine table this callback.
    unsafe {
        if let Some(clear) = (*(*slot).tts_ops).clear {
            clear(slot);
        }
    }
}

/// `ExecStoreVirtualTuple`, for slots whose values and marks of NULLs have just been written: it is called for every
/// row.
///
/// # Safety
/// `slot` is a virtual slot that was empty, and all of its attributes are written.
pub unsafe fn ExecStoreVirtualTuple(
    slot: *mut pg_sys::TupleTableSlot,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's promise.
    unsafe {
        (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
        (*slot).tts_nvalid = (*(*slot).tts_tupleDescriptor).natts as i16;
    }
    slot
}

/// `MemoryContextReset`, which need not be called for memory that nobody has used since: it is asked for every row.
///
/// # Safety
/// `context` is live, and nobody looks at its memory any more.
pub unsafe fn MemoryContextReset(context: pg_sys::MemoryContext) {
    // SAFETY: the caller's promise.
    unsafe {
        if !(*context).isReset || !(*context).firstchild.is_null() {
            pg_sys::MemoryContextReset(context);
        }
    }
}

/// `ConditionalLockTuple`.
pub fn ConditionalLockTuple(
    table: OpenTable<'_>,
    row: &mut pg_sys::ItemPointerData,
    mode: i32,
) -> bool {
    // SAFETY: the table is open.
    unsafe {
        pg_sys::ConditionalLockTuple(
            table.as_ptr(),
            row,
            mode,
            #[cfg(feature = "pg18")]
            false,
        )
    }
}

/// Makes all attributes of a slot readable.
///
/// # Safety
/// `slot` is filled.
pub unsafe fn slot_getallattrs(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: the caller's promise; every kind of slot that leaves attributes unread has this callback.
    unsafe {
        let attributes = (*(*slot).tts_tupleDescriptor).natts;
        if i32::from((*slot).tts_nvalid) < attributes {
            pg_sys::slot_getsomeattrs_int(slot, attributes);
        }
    }
}
