//! Codes of values of any type that has a hash: equal values have the same code.

use std::collections::HashMap;

use pgrx::pg_sys::{self, Datum};

use super::hashed_type::HashedType;
use super::memory::Memory;

/// Values that were met, and their codes, which count from 0. NULL has a code too.
pub struct ValueCodes {
    hashed_type: HashedType,
    /// Memory that values are copied to. It lives until the node is restarted.
    memory: Memory,
    null: Option<u32>,
    /// Codes by the hashes of their values.
    by_hash: HashMap<u32, Vec<u32>>,
    /// Codes by the bits of values that are passed by value.
    by_bits: HashMap<usize, u32>,
    values: Vec<Option<Datum>>,
    /// Bytes of the copied values.
    copied_bytes: usize,
}

impl ValueCodes {
    /// No code is given yet. Values are of the type of an expression.
    pub fn new(expression: *mut pg_sys::Node, memory: Memory) -> ValueCodes {
        ValueCodes {
            hashed_type: HashedType::of(expression),
            memory,
            null: None,
            by_hash: HashMap::new(),
            by_bits: HashMap::new(),
            values: Vec::new(),
            copied_bytes: 0,
        }
    }

    /// The code of a value. A new value gets the next code.
    pub fn code(&mut self, value: Option<Datum>) -> u32 {
        let next = self.values.len() as u32;
        let Some(value) = value else {
            return *self.null.get_or_insert_with(|| {
                self.values.push(None);
                next
            });
        };
        if !self.hashed_type.layout().by_value {
            return self.hashed_code(value);
        }
        if let Some(code) = self.by_bits.get(&value.value()) {
            return *code;
        }
        let code = self.hashed_code(value);
        self.by_bits.insert(value.value(), code);
        code
    }

    /// The code of a value by the functions of its type.
    fn hashed_code(&mut self, value: Datum) -> u32 {
        let next = self.values.len() as u32;
        let hashed_type = &mut self.hashed_type;
        let codes = self.by_hash.entry(hashed_type.hash(value)).or_default();
        for &code in codes.iter() {
            if let Some(known) = self.values[code as usize]
                && hashed_type.are_equal(known, value)
            {
                return code;
            }
        }
        codes.push(next);
        let layout = hashed_type.layout();
        self.copied_bytes += layout.copied_bytes(value);
        self.values.push(Some(self.memory.copy(value, layout)));
        next
    }

    /// Bytes of memory, roughly.
    pub fn bytes(&self) -> usize {
        /// An entry of `by_hash` with its list of one code, and an element of `values`.
        const VALUE_BYTES: usize = 80;
        let by_bits = self.by_bits.capacity() * (size_of::<(usize, u32)>() + 1);
        self.copied_bytes + by_bits + self.values.len() * VALUE_BYTES
    }

    /// The values by code; `None` is NULL.
    pub fn values(&self) -> &[Option<Datum>] {
        &self.values
    }

    /// Takes the values by code; `None` is NULL. No code is given until the values are [forgotten](Self::clear).
    pub fn take_values(&mut self) -> Vec<Option<Datum>> {
        std::mem::take(&mut self.values)
    }

    /// Forgets all values, whose memory the caller then resets. Codes count from 0 again.
    pub fn clear(&mut self) {
        self.null = None;
        self.by_hash = HashMap::new();
        self.by_bits = HashMap::new();
        self.values = Vec::new();
        self.copied_bytes = 0;
    }
}
