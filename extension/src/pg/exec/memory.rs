//! Memory contexts as values.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::{call_ports, executor, ports};

/// A memory context that outlives this handle.
#[derive(Clone, Copy)]
pub struct Memory(pg_sys::MemoryContext);

impl Memory {
    /// # Safety
    /// `context` lives as long as the handle and its copies are used.
    pub unsafe fn of(context: pg_sys::MemoryContext) -> Memory {
        Memory(context)
    }

    /// Runs `work` with this context as the current one.
    #[inline]
    pub fn enter<T>(self, work: impl FnOnce() -> T) -> T {
        // SAFETY: `of` was promised a live context.
        unsafe { executor::in_context(self.0, work) }
    }

    /// Frees everything that the context and its children contain.
    #[inline]
    pub fn reset(self) {
        // SAFETY: `of` was promised a live context.
        unsafe { ports::MemoryContextReset(self.0) }
    }

    /// A new context below this one. It is freed with this one, or by [`Memory::delete`].
    pub fn child(self, name: &'static CStr) -> Memory {
        // SAFETY: the parent is live, and the name is static, as PostgreSQL keeps a pointer to it.
        unsafe {
            Memory(pg_sys::AllocSetContextCreateInternal(
                self.0,
                name.as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            ))
        }
    }

    /// Frees the context. No copy of the handle is used afterwards.
    pub fn delete(self) {
        // SAFETY: `of` was promised a live context.
        unsafe { pg_sys::MemoryContextDelete(self.0) }
    }

    /// The context as PostgreSQL's functions take it.
    pub fn as_raw(self) -> pg_sys::MemoryContext {
        self.0
    }

    /// Bytes that the context and its children have allocated.
    pub fn allocated_bytes(self) -> usize {
        // SAFETY: `of` was promised a live context.
        unsafe { pg_sys::MemoryContextMemAllocated(self.0, true) }
    }

    /// Copies a value into this context.
    pub fn copy(self, value: pg_sys::Datum, layout: ValueLayout) -> pg_sys::Datum {
        if layout.by_value {
            return value;
        }
        // SAFETY: the value is of a type with this layout (see the module's invariants).
        self.enter(|| unsafe { call_ports::datumCopy(value, false, layout.length) })
    }
}

/// How values of a type are passed.
#[derive(Clone, Copy, Debug)]
pub struct ValueLayout {
    /// Whether a `Datum` contains the value itself.
    pub by_value: bool,
    /// Bytes of a value; -1 for values that begin with their length.
    pub length: i16,
}

impl ValueLayout {
    /// The layout of a type.
    pub fn of_type(type_of: pg_sys::Oid) -> ValueLayout {
        let (mut length, mut by_value) = (0, false);
        // SAFETY: looks the type up in the catalogue.
        unsafe { pg_sys::get_typlenbyval(type_of, &raw mut length, &raw mut by_value) };
        ValueLayout { by_value, length }
    }

    /// The bytes of a value that is passed by reference and comes out of a table, so it is not an expanded one. The
    /// slice is valid as long as the value is.
    #[inline]
    pub fn bytes<'a>(self, value: pg_sys::Datum) -> Option<&'a [u8]> {
        // SAFETY: the value is of a type with this layout (see the module's invariants).
        (!self.by_value).then(|| unsafe { executor::bytes(value, i32::from(self.length)) })
    }

    /// Bytes that a copy of a value allocates; 0 for a value that is passed by value.
    pub fn copied_bytes(self, value: pg_sys::Datum) -> usize {
        if self.by_value {
            return 0;
        }
        // SAFETY: the value is of a type with this layout (see the module's invariants).
        unsafe { call_ports::datumGetSize(value, false, self.length) }
    }
}

/// Bytes that a hash table of the session may use: `work_mem` × `hash_mem_multiplier`.
pub fn hash_memory_limit() -> usize {
    // SAFETY: reads settings of this session.
    unsafe { pg_sys::get_hash_memory_limit() }
}

/// Bytes of `work_mem`.
pub fn work_memory_limit() -> usize {
    // SAFETY: reads a setting of this session.
    unsafe { pg_sys::work_mem as usize * 1024 }
}

/// Runs `work`, and frees what PostgreSQL's functions allocate in it at once. The result is a number, so it points to
/// nothing there.
pub fn scratch(work: impl FnOnce() -> i64) -> i64 {
    let mut memory = pgrx::PgMemoryContexts::new("lanes scratch memory");
    // SAFETY: nothing points into the memory when it is freed.
    unsafe { memory.switch_to(|_| work()) }
}
