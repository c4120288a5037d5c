//! The dictionary of one column: its distinct items and the code of each.
//!
//! Codes count up from 0 in the order in which items first appear. Items are looked up in an
//! open-addressing table with linear probing. An entry has 32 bits of the item's hash above its
//! code plus one, so 0 marks an empty entry and most mismatches are found without reading an item.
//!
//! A coded row costs 4 bytes; a plain row costs 12 bytes and its item; an entry of the dictionary
//! costs about 32 bytes and its item. A dictionary therefore pays if an item appears twice on
//! average. [`Dictionary::pays`] checks this only from [`JUDGED_ITEMS_MIN`] items on, because
//! sources often name each of their items once before they repeat any.

use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64;

use crate::buffer::Buffer;
use crate::items::Items;

/// The number of distinct items from which on a dictionary must pay. Tests use a smaller number.
pub(crate) const JUDGED_ITEMS_MIN: usize = if cfg!(test) { 256 } else { 4_096 };

/// Rows an item must stand for, on average, for a dictionary to pay.
pub(crate) const ROWS_PER_ITEM_MIN: usize = 2;

const TABLE_ENTRIES_MIN: usize = 16;

/// A number that no other dictionary of a column in this process, and no dictionary of an arena,
/// has.
pub(crate) fn next_instance() -> u64 {
    static INSTANCES: AtomicU64 = AtomicU64::new(1 << 63);
    INSTANCES.fetch_add(1, Ordering::Relaxed)
}

/// The hash under which every dictionary of this crate, private or shared, keeps an item.
#[inline]
pub(crate) fn item_hash(item: &[u8]) -> u32 {
    xxh3_64(item) as u32
}

/// The entry of a table for the item of `code`.
#[inline]
pub(crate) fn table_entry(hash: u32, code: u32) -> u64 {
    u64::from(hash) << 32 | (u64::from(code) + 1)
}

/// The distinct items of a column.
///
/// Invariants: `hashes` has one entry for each item; `table` contains the entry of each item once,
/// its length is zero or a power of two, and at most half of its entries are used.
pub(crate) struct Dictionary {
    instance: u64,
    items: Items,
    hashes: Buffer<u32>,
    table: Vec<u64>,
}

impl Dictionary {
    pub(crate) fn new(packed: bool) -> Self {
        Dictionary {
            instance: next_instance(),
            items: Items::new(packed),
            hashes: Buffer::new(),
            table: Vec::new(),
        }
    }

    /// A number that changes when codes change their meaning.
    #[inline]
    pub(crate) fn instance(&self) -> u64 {
        self.instance
    }

    #[inline]
    pub(crate) fn items(&self) -> &Items {
        &self.items
    }

    pub(crate) fn into_items(self) -> Items {
        self.items
    }

    #[inline]
    pub(crate) fn hash(&self, code: usize) -> u32 {
        self.hashes[code]
    }

    /// The code of `item`, which is added if it is new.
    #[inline]
    pub(crate) fn intern(&mut self, item: &[u8]) -> u32 {
        if (self.items.len() + 1) * 2 > self.table.len() {
            self.grow();
        }
        let hash = item_hash(item);
        let mask = self.table.len() - 1;
        let mut index = hash as usize & mask;
        loop {
            let entry = self.table[index];
            if entry == 0 {
                let code = self.items.len() as u32;
                self.items.push(item);
                self.hashes.push(hash);
                self.table[index] = table_entry(hash, code);
                return code;
            }
            if (entry >> 32) as u32 == hash {
                let code = entry as u32 - 1;
                if self.items.item(code as usize) == item {
                    return code;
                }
            }
            index = (index + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let entries = (self.table.len() * 2).max(TABLE_ENTRIES_MIN);
        self.table.clear();
        self.table.resize(entries, 0);
        for (code, &hash) in self.hashes.iter().enumerate() {
            let mut index = hash as usize & (entries - 1);
            while self.table[index] != 0 {
                index = (index + 1) & (entries - 1);
            }
            self.table[index] = table_entry(hash, code as u32);
        }
    }

    /// Whether the dictionary is worth its memory for `rows` rows that are not NULL.
    #[inline]
    pub(crate) fn pays(&self, rows: usize) -> bool {
        self.items.len() < JUDGED_ITEMS_MIN || rows >= self.items.len() * ROWS_PER_ITEM_MIN
    }

    pub(crate) fn clear(&mut self) {
        self.instance = next_instance();
        self.items.truncate(0);
        self.hashes.clear();
        self.table.fill(0);
    }

    pub(crate) fn byte_len(&self) -> usize {
        self.items.byte_len() + self.hashes.byte_len() + self.table.len() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_items_share_a_code_and_codes_are_dense() {
        let mut dictionary = Dictionary::new(true);
        for round in 0..3 {
            for number in 0..300_u32 {
                let item = format!("item {number}");
                assert_eq!(
                    dictionary.intern(item.as_bytes()),
                    number,
                    "in round {round}"
                );
            }
        }
        assert_eq!(dictionary.items().len(), 300);
        assert_eq!(dictionary.items().item(77), b"item 77");
        dictionary.clear();
        assert_eq!(dictionary.intern(b"item 5"), 0);
    }

    #[test]
    fn the_table_never_fills_up() {
        let mut dictionary = Dictionary::new(true);
        for number in 0..if cfg!(miri) { 300 } else { 10_000_u32 } {
            dictionary.intern(&number.to_le_bytes());
            assert!(dictionary.items().len() * 2 <= dictionary.table.len());
        }
    }
}
