//! Codes of values of any type that has a hash: equal values have the same code.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use pgrx::pg_sys::{self, Datum};

use super::hashed_type::HashedType;
use super::memory::Memory;
use crate::pg::columns::{collation_of, type_of};
use crate::pg::{catalog, datum};

/// Values that were met, and their codes, which count from 0. NULL has a code too.
pub struct ValueCodes {
    hashed_type: HashedType,
    /// Whether values are texts that are equal if their bytes are.
    are_texts: bool,
    /// Memory that values are copied to. It lives until the node is restarted.
    memory: Memory,
    null: Option<u32>,
    hasher: DefaultHashBuilder,
    by_hash: HashTable<Entry>,
    /// Codes by the bits of values that are passed by value.
    by_bits: HashMap<usize, u32>,
    values: Vec<Option<Datum>>,
    /// Bytes of the copied values.
    copied_bytes: usize,
}

/// The code of a value, and the value's hash.
#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    code: u32,
}

impl ValueCodes {
    /// No code is given yet. Values are of the type of an expression.
    pub fn new(expression: *mut pg_sys::Node, memory: Memory) -> ValueCodes {
        let base = catalog::base_type(type_of(expression));
        let collation = collation_of(expression);
        let is_text = matches!(base, pg_sys::TEXTOID | pg_sys::VARCHAROID);
        let is_bytes = collation != pg_sys::InvalidOid && catalog::is_deterministic(collation);
        ValueCodes {
            hashed_type: HashedType::of(expression),
            are_texts: is_text && is_bytes,
            memory,
            null: None,
            hasher: DefaultHashBuilder::default(),
            by_hash: HashTable::new(),
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

    /// The code of a value by the bytes of texts, or by the functions of another type.
    fn hashed_code(&mut self, value: Datum) -> u32 {
        let (hashed_type, values) = (&mut self.hashed_type, &self.values);
        let hash = match self.are_texts {
            true => self.hasher.hash_one(datum::payload(value)),
            false => self.hasher.hash_one(hashed_type.hash(value)),
        };
        let found = self.by_hash.find(hash, |entry| {
            let is_same = |known: Datum| match self.are_texts {
                true => datum::payload(known) == datum::payload(value),
                false => hashed_type.are_equal(known, value),
            };
            entry.hash == hash && values[entry.code as usize].is_some_and(is_same)
        });
        if let Some(entry) = found {
            return entry.code;
        }
        let code = self.values.len() as u32;
        let entry = Entry { hash, code };
        self.by_hash.insert_unique(hash, entry, |entry| entry.hash);
        let layout = self.hashed_type.layout();
        self.copied_bytes += layout.copied_bytes(value);
        self.values.push(Some(self.memory.copy(value, layout)));
        code
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.copied_bytes + self.table_bytes()
    }

    /// Bytes of memory besides the copied values.
    pub fn table_bytes(&self) -> usize {
        let tables = self.by_hash.allocation_size() + self.by_bits.allocation_size();
        tables + self.values.capacity() * size_of::<Option<Datum>>()
    }

    /// Bytes of a copied value, on average.
    pub fn mean_bytes(&self) -> usize {
        self.copied_bytes / self.values.len().max(1)
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
        self.by_hash = HashTable::new();
        self.by_bits = HashMap::new();
        self.values = Vec::new();
        self.copied_bytes = 0;
    }
}
