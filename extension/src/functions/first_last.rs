//! `lanes.first(value, ts)`, `lanes.last(value, ts)`: the value at the smallest and at the largest time.
//!
//! Rows whose time is NULL do not count; a NULL value does, and may be the result. Of equal times the first row to arrive
//! is `first` and the last to arrive is `last`. Times compare as keys of 64 bits in the order of their type.
//!
//! The state holds one value, copied into the aggregate's memory: at its place if it fits, so a column that grows with
//! time does not allocate a row.

use std::cmp::Ordering;
use std::mem::size_of;

use lanes_columnar::aggregate::ema::order_key;
use pgrx::{FromDatum, IntoDatum, PgSqlErrorCode, pg_sys};

use crate::error;
use crate::pg::call::Call;
use crate::pg::call_ports as ports;

crate::sql_callables! {
    lanes_first_64, pg_finfo_lanes_first_64 => |call| transition(call, call.int8(2), Ordering::Less);
    lanes_first_32, pg_finfo_lanes_first_32 => |call| transition(call, key_32(call), Ordering::Less);
    lanes_first_float8, pg_finfo_lanes_first_float8 => |call| transition(call, key_float8(call), Ordering::Less);
    lanes_last_64, pg_finfo_lanes_last_64 => |call| transition(call, call.int8(2), Ordering::Greater);
    lanes_last_32, pg_finfo_lanes_last_32 => |call| transition(call, key_32(call), Ordering::Greater);
    lanes_last_float8, pg_finfo_lanes_last_float8 => |call| transition(call, key_float8(call), Ordering::Greater);
    lanes_first_combine, pg_finfo_lanes_first_combine => |call| combine(call, Ordering::Less);
    lanes_last_combine, pg_finfo_lanes_last_combine => |call| combine(call, Ordering::Greater);
    lanes_first_last_serialise, pg_finfo_lanes_first_last_serialise => serialise;
    lanes_first_last_deserialise, pg_finfo_lanes_first_last_deserialise => deserialise;
    lanes_first_last_final, pg_finfo_lanes_first_last_final => finish;
}

fn key_32(call: &Call) -> Option<i64> {
    call.int4(2).map(i64::from)
}

fn key_float8(call: &Call) -> Option<i64> {
    call.float8(2).map(order_key)
}

/// How values of a type lie.
#[derive(Clone, Copy)]
#[repr(C)]
struct Storage {
    length: i16,
    by_value: bool,
}

/// The row kept so far.
#[repr(C)]
struct Kept {
    key: i64,
    storage: Storage,
    is_null: bool,
    /// What the type gives by value; else a pointer to `capacity` bytes of the aggregate's memory, while that is not 0.
    value: pg_sys::Datum,
    capacity: usize,
}

/// What a worker sends: this, then the value as `datumSerialize` writes it.
const HEAD_BYTES: usize = 11;

impl Kept {
    /// A state in `memory` that keeps this row.
    fn begin(
        memory: pg_sys::MemoryContext,
        storage: Storage,
        key: i64,
        value: Option<pg_sys::Datum>,
    ) -> *mut Kept {
        // SAFETY: as many bytes as are written, aligned to the maximum; the value is of the storage's type.
        unsafe {
            let state = pg_sys::MemoryContextAlloc(memory, size_of::<Kept>()).cast::<Kept>();
            state.write(Kept {
                key,
                storage,
                is_null: true,
                value: pg_sys::Datum::null(),
                capacity: 0,
            });
            (*state).keep(memory, key, value);
            state
        }
    }

    fn value(&self) -> Option<pg_sys::Datum> {
        (!self.is_null).then_some(self.value)
    }

    /// Keeps another row.
    ///
    /// # Safety
    /// The value is of this storage's type and lives; `memory` is the state's own.
    #[inline]
    unsafe fn keep(
        &mut self,
        memory: pg_sys::MemoryContext,
        key: i64,
        value: Option<pg_sys::Datum>,
    ) {
        self.key = key;
        self.is_null = value.is_none();
        let Some(value) = value else { return };
        if self.storage.by_value {
            self.value = value;
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.keep_reference(memory, value) };
        }
    }

    /// # Safety
    /// As [`Kept::keep`].
    unsafe fn keep_reference(&mut self, memory: pg_sys::MemoryContext, value: pg_sys::Datum) {
        // SAFETY: the caller's promise; the copy fits its place; what is freed was allocated here.
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
            // A flattened copy is at least a header long; it is replaced by the next.
            self.capacity = flat.unwrap_or(1);
        }
    }
}

/// The bytes of a value that lies flat in memory; `None` if it is a reference to somewhere else.
///
/// # Safety
/// `value` is a datum of a type of this length, by reference.
unsafe fn flat_bytes(value: pg_sys::Datum, length: i16) -> Option<usize> {
    let at = value.cast_mut_ptr::<u8>();
    // SAFETY: the caller's promise; a varlena's first byte says how its length is written.
    unsafe {
        match length {
            -1 if *at == 1 => None,
            -1 if *at & 1 == 1 => Some((*at >> 1) as usize),
            -1 => Some((at.cast::<u32>().read_unaligned() >> 2) as usize),
            length => usize::try_from(length).ok(),
        }
    }
}

/// `better` is how the key must compare to replace the one kept.
#[inline]
fn transition(call: &Call, key: Option<i64>, better: Ordering) -> Option<pg_sys::Datum> {
    let state = call.state::<Kept>(0);
    let Some(key) = key else {
        return state.map(pg_sys::Datum::from);
    };
    let memory = super::aggregate_memory(call);
    let Some(state) = state else {
        let kept = Kept::begin(memory, storage(call), key, call.argument(1));
        return Some(pg_sys::Datum::from(kept));
    };
    // SAFETY: a state of this aggregate, and the value's type is the one it began with.
    unsafe {
        if replaces(key, (*state).key, better) {
            (*state).keep(memory, key, call.argument(1));
        }
    }
    Some(pg_sys::Datum::from(state))
}

/// Whether the later of two rows replaces the earlier. Of equals the first is `first`, the last is `last`.
#[inline]
fn replaces(later: i64, earlier: i64, better: Ordering) -> bool {
    match better {
        Ordering::Less => later < earlier,
        _ => later >= earlier,
    }
}

fn combine(call: &Call, better: Ordering) -> Option<pg_sys::Datum> {
    let earlier = call.state::<Kept>(0);
    let Some(later) = call.state::<Kept>(1) else {
        return earlier.map(pg_sys::Datum::from);
    };
    let memory = super::aggregate_memory(call);
    // SAFETY: both are states of this aggregate; the second may live shorter, so its value is copied.
    let state = unsafe {
        let (key, value) = ((*later).key, (*later).value());
        match earlier {
            None => Kept::begin(memory, (*later).storage, key, value),
            Some(earlier) => {
                if replaces(key, (*earlier).key, better) {
                    (*earlier).keep(memory, key, value);
                }
                earlier
            }
        }
    };
    Some(pg_sys::Datum::from(state))
}

fn serialise(call: &Call) -> Option<pg_sys::Datum> {
    // SAFETY: a state of this aggregate.
    let kept = unsafe { &*call.state::<Kept>(0)? };
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(&kept.key.to_ne_bytes());
    bytes.extend_from_slice(&kept.storage.length.to_ne_bytes());
    bytes.push(kept.storage.by_value as u8);
    // SAFETY: the value is of the storage's type.
    unsafe {
        ports::datumSerialize(
            kept.value(),
            kept.storage.by_value,
            kept.storage.length,
            &mut bytes,
        );
    }
    bytes.into_datum()
}

fn deserialise(call: &Call) -> Option<pg_sys::Datum> {
    // SAFETY: SQL declares the argument as bytea; it was written by `serialise` of the same server.
    let state = unsafe {
        let bytes = Vec::<u8>::from_datum(call.argument(0)?, false)?;
        let (head, value) = bytes.split_at_checked(HEAD_BYTES)?;
        let (key, storage) = head.split_at(size_of::<i64>());
        let storage = Storage {
            length: i16::from_ne_bytes([storage[0], storage[1]]),
            by_value: storage[2] != 0,
        };
        let mut key_bytes = [0; size_of::<i64>()];
        key_bytes.copy_from_slice(key);
        let key = i64::from_ne_bytes(key_bytes);
        let value = ports::datumRestore(value);
        Kept::begin(pg_sys::CurrentMemoryContext, storage, key, value)
    };
    Some(pg_sys::Datum::from(state))
}

fn finish(call: &Call) -> Option<pg_sys::Datum> {
    // SAFETY: a state of this aggregate. The value is copied: as a window function the state goes on changing.
    unsafe {
        let kept = &*call.state::<Kept>(0)?;
        let copy = |value| ports::datumCopy(value, kept.storage.by_value, kept.storage.length);
        kept.value().map(copy)
    }
}

/// How the values of this call lie.
fn storage(call: &Call) -> Storage {
    let of = call.argument_type(1);
    if of == pg_sys::InvalidOid {
        error::raise(
            PgSqlErrorCode::ERRCODE_INDETERMINATE_DATATYPE,
            "could not determine the type of the value",
            "Cast the first argument to the type that it is meant to have.",
        );
    }
    let mut storage = Storage {
        length: 0,
        by_value: false,
    };
    // SAFETY: a look-up in the catalogue of a type that is there.
    unsafe { pg_sys::get_typlenbyval(of, &mut storage.length, &mut storage.by_value) };
    storage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_floats_are_in_postgres_order() {
        let ascending = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.0,
            -f64::from_bits(1),
            0.0,
            f64::from_bits(1),
            1.0,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        for pair in ascending.windows(2) {
            assert!(order_key(pair[0]) < order_key(pair[1]), "{pair:?}");
        }
        assert_eq!(order_key(-0.0), order_key(0.0));
        assert_eq!(order_key(-f64::NAN), order_key(f64::NAN));
    }
}
