//! A value of any type that an aggregate's state keeps.
//!
//! The value is copied into the aggregate's memory, to its old place if it fits. So a column that
//! grows with time does not allocate once a row.

use pgrx::pg_sys::{self, Datum};

use super::call::Call;
use super::exec::memory::Memory;
use super::functions::{Place, catalog};
use super::tree::plan_node;
use super::{datum, executor};

/// How values of a type are stored.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Storage {
    length: i16,
    by_value: bool,
}

impl Storage {
    /// How the values of an argument of a call are stored; `None` if its type is unknown.
    pub fn of_argument(call: &Call, argument: usize) -> Option<Storage> {
        let type_of = call.argument_type(argument);
        if type_of == pg_sys::InvalidOid {
            return None;
        }
        let mut storage = Storage {
            length: 0,
            by_value: false,
        };
        let (length, by_value) = (&mut storage.length, &mut storage.by_value);
        catalog::get_typlenbyval(type_of, Place(length), Place(by_value));
        Some(storage)
    }
}

/// A value, or NULL.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KeptValue {
    storage: Storage,
    is_null: bool,
    /// The value of a type that is passed by value. Otherwise a pointer to `capacity` bytes of the aggregate's memory,
    /// unless the capacity is 0.
    value: Datum,
    capacity: usize,
}

/// The bytes of a value's storage in its serialised form.
const STORAGE_BYTES: usize = 3;

impl KeptValue {
    /// NULL, of a type that is stored in this way.
    pub fn null(storage: Storage) -> KeptValue {
        KeptValue {
            storage,
            is_null: true,
            value: Datum::null(),
            capacity: 0,
        }
    }

    /// NULL of the type of another value.
    pub fn null_like(other: &KeptValue) -> KeptValue {
        KeptValue::null(other.storage)
    }

    /// Keeps an argument of a call, whose type is that of all rows.
    #[inline]
    pub fn keep_argument(&mut self, memory: pg_sys::MemoryContext, call: &Call, argument: usize) {
        self.keep(memory, call.argument(argument));
    }

    /// Keeps the value of another state of the same aggregate, which may live shorter.
    pub fn keep_other(&mut self, memory: pg_sys::MemoryContext, other: &KeptValue) {
        self.keep(memory, other.value());
    }

    /// Keeps a value of the type that is kept. The memory is the state's own.
    #[inline]
    fn keep(&mut self, memory: pg_sys::MemoryContext, value: Option<Datum>) {
        self.is_null = value.is_none();
        match value {
            None => {}
            Some(value) if self.storage.by_value => self.value = value,
            Some(value) => self.keep_reference(plan_node(memory), value),
        }
    }

    fn keep_reference(&mut self, memory: Memory, value: Datum) {
        let flat = datum::flat_size(value, self.storage.length);
        if let Some(bytes) = flat
            && bytes <= self.capacity
        {
            datum::overwrite(self.value, value, bytes);
            return;
        }
        let copy = memory.enter(|| datum::copied(value, self.storage.length));
        if self.capacity > 0 {
            datum::free(self.value);
        }
        self.value = copy;
        // A flattened copy has at least a header. The next value replaces it.
        self.capacity = flat.unwrap_or(1);
    }

    fn value(&self) -> Option<Datum> {
        (!self.is_null).then_some(self.value)
    }

    /// A copy of the value in the current memory context; `None` is NULL.
    pub fn copied(&self) -> Option<Datum> {
        let storage = self.storage;
        self.value().map(|value| match storage.by_value {
            true => value,
            false => datum::copied(value, storage.length),
        })
    }

    /// Appends the value in a form that another process of the server can read.
    pub fn serialise(&self, bytes: &mut Vec<u8>) {
        let storage = self.storage;
        bytes.extend_from_slice(&storage.length.to_ne_bytes());
        bytes.push(storage.by_value as u8);
        datum::serialise(self.value(), storage.by_value, storage.length, bytes);
    }

    /// The value that [`serialise`](Self::serialise) appended, in the current memory context. The bytes come from an
    /// argument that PostgreSQL passes from a call of the serialisation function.
    pub fn restore(bytes: &[u8]) -> Option<KeptValue> {
        let (storage, value) = bytes.split_at_checked(STORAGE_BYTES)?;
        let storage = Storage {
            length: i16::from_ne_bytes([storage[0], storage[1]]),
            by_value: storage[2] != 0,
        };
        let mut kept = KeptValue::null(storage);
        kept.keep(executor::current_memory().as_raw(), datum::restore(value));
        Some(kept)
    }
}
