//! A value of any type that an aggregate's state keeps.
//!
//! The value is copied into the aggregate's memory, to its old place if it fits. So a column that
//! grows with time does not allocate once a row.

use pgrx::pg_sys::{self, Datum};

use super::call::Call;
use super::call_ports as ports;

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
        // SAFETY: a look-up of an existing type.
        unsafe { pg_sys::get_typlenbyval(type_of, &mut storage.length, &mut storage.by_value) };
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
        // SAFETY: PostgreSQL passes a live value of the argument's type.
        unsafe { self.keep(memory, call.argument(argument)) };
    }

    /// Keeps the value of another state of the same aggregate, which may live shorter.
    pub fn keep_other(&mut self, memory: pg_sys::MemoryContext, other: &KeptValue) {
        // SAFETY: the other state's value is live and of the same type.
        unsafe { self.keep(memory, other.value()) };
    }

    /// # Safety
    /// The value is live and of the type that is kept; `memory` is the state's own.
    #[inline]
    unsafe fn keep(&mut self, memory: pg_sys::MemoryContext, value: Option<Datum>) {
        self.is_null = value.is_none();
        let Some(value) = value else { return };
        if self.storage.by_value {
            self.value = value;
        } else {
            // SAFETY: see above.
            unsafe { self.keep_reference(memory, value) };
        }
    }

    /// # Safety
    /// As for [`keep`](Self::keep).
    unsafe fn keep_reference(&mut self, memory: pg_sys::MemoryContext, value: Datum) {
        // SAFETY: the copy fits its place; what is freed was allocated here.
        unsafe {
            let flat = flat_bytes(value, self.storage.length);
            if let Some(bytes) = flat
                && bytes <= self.capacity
            {
                let (from, to) = (value.cast_mut_ptr::<u8>(), self.value.cast_mut_ptr::<u8>());
                std::ptr::copy_nonoverlapping(from, to, bytes);
                return;
            }
            let before = pg_sys::MemoryContextSwitchTo(memory);
            let copy = ports::datumCopy(value, false, self.storage.length);
            pg_sys::MemoryContextSwitchTo(before);
            if self.capacity > 0 {
                pg_sys::pfree(self.value.cast_mut_ptr());
            }
            self.value = copy;
            // A flattened copy has at least a header. The next value replaces it.
            self.capacity = flat.unwrap_or(1);
        }
    }

    fn value(&self) -> Option<Datum> {
        (!self.is_null).then_some(self.value)
    }

    /// A copy of the value in the current memory context; `None` is NULL.
    pub fn copied(&self) -> Option<Datum> {
        let storage = self.storage;
        // SAFETY: the value is live and of the type that is kept.
        self.value()
            .map(|value| unsafe { ports::datumCopy(value, storage.by_value, storage.length) })
    }

    /// Appends the value in a form that another process of the server can read.
    pub fn serialise(&self, bytes: &mut Vec<u8>) {
        let storage = self.storage;
        bytes.extend_from_slice(&storage.length.to_ne_bytes());
        bytes.push(storage.by_value as u8);
        // SAFETY: the value is live and of the type that is kept.
        unsafe { ports::datumSerialize(self.value(), storage.by_value, storage.length, bytes) };
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
        // SAFETY: SQL declares the function for arguments of type internal only, so nobody else can call it with other
        // bytes.
        unsafe {
            let value = ports::datumRestore(value);
            kept.keep(pg_sys::CurrentMemoryContext, value);
        }
        Some(kept)
    }
}

/// The bytes of a value that is flat in memory; `None` if it is a reference to somewhere else.
///
/// # Safety
/// `value` is a datum of a type of this length, by reference.
unsafe fn flat_bytes(value: Datum, length: i16) -> Option<usize> {
    let at = value.cast_mut_ptr::<u8>();
    // SAFETY: a varlena's first byte says how its length is written.
    unsafe {
        match length {
            -1 if *at == 1 => None,
            -1 if *at & 1 == 1 => Some((*at >> 1) as usize),
            -1 => Some((at.cast::<u32>().read_unaligned() >> 2) as usize),
            length => usize::try_from(length).ok(),
        }
    }
}
