//! Memory contexts as values.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::functions::{Place, catalog, executor as functions, process};
use crate::pg::tree::view::{View, views};
use crate::pg::{datum, executor};

views! {
    /// A memory context.
    Context of MemoryContextData {} {} {}
}

/// A memory context that outlives this handle.
pub type Memory = Context<'static>;

impl Context<'static> {
    /// Runs `work` with this context as the current one.
    #[inline]
    pub fn enter<T>(self, work: impl FnOnce() -> T) -> T {
        executor::enter(self, work)
    }

    /// Frees everything that the context and its children contain.
    #[inline]
    pub fn reset(self) {
        executor::reset_memory_context(self);
    }

    /// A new context below this one. It is freed with this one, or by [`Context::delete`].
    pub fn child(self, name: &'static CStr) -> Memory {
        functions::AllocSetContextCreateInternal(
            self,
            name,
            pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        )
    }

    /// Frees the context. No copy of the handle is used afterwards.
    pub fn delete(self) {
        functions::MemoryContextDelete(self);
    }

    /// The context as PostgreSQL's functions take it.
    pub fn as_raw(self) -> pg_sys::MemoryContext {
        self.as_ptr()
    }

    /// Bytes that the context and its children have allocated.
    pub fn allocated_bytes(self) -> usize {
        functions::MemoryContextMemAllocated(self, true)
    }

    /// Copies a value into this context.
    pub fn copy(self, value: pg_sys::Datum, layout: ValueLayout) -> pg_sys::Datum {
        if layout.by_value {
            return value;
        }
        self.enter(|| datum::copied(value, layout.length))
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
        catalog::get_typlenbyval(type_of, Place(&mut length), Place(&mut by_value));
        ValueLayout { by_value, length }
    }

    /// The bytes of a value that is passed by reference and comes out of a table, so it is not an expanded one. The
    /// slice is valid as long as the value is.
    #[inline]
    pub fn bytes<'a>(self, value: pg_sys::Datum) -> Option<&'a [u8]> {
        (!self.by_value).then(|| datum::bytes_of(value, self.length))
    }

    /// Bytes that a copy of a value allocates; 0 for a value that is passed by value.
    pub fn copied_bytes(self, value: pg_sys::Datum) -> usize {
        if self.by_value {
            return 0;
        }
        datum::copied_size(value, self.length)
    }
}

/// Bytes that a hash table of the session may use: `work_mem` × `hash_mem_multiplier`.
pub fn hash_memory_limit() -> usize {
    process::get_hash_memory_limit()
}

/// Bytes of `work_mem`.
pub fn work_memory_limit() -> usize {
    process::work_mem() as usize * 1024
}

/// Runs `work`, and frees what PostgreSQL's functions allocate in it at once. The result is a number, so it points to
/// nothing there.
pub fn scratch(work: impl FnOnce() -> i64) -> i64 {
    executor::in_scratch_memory(work)
}
