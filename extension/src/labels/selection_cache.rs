//! What selectors of this session have selected.
//!
//! Dashboards ask the same queries again and again. What a selector selects among the series that the label index
//! covers depends on the runs of the index alone, and runs never change: see [`crate::labels`]. So an entry's key
//! consists of the runs that the calling query sees and of all that selects. Series that no run covers are not cached.
//!
//! Invariants:
//! - The caller's privileges on the series are checked by each query, also if a cache answers it. Where row-level
//!   security hides series, the index is not used, and so neither is a cache.
//! - A cache holds [`BYTES_MAX`] at most. The entries that were used longest ago make room for others.

use std::collections::HashMap;

/// The largest number of series of an entry.
pub const ENTRY_SERIES_MAX: u64 = 50_000;
/// The size of a cache, in bytes.
const BYTES_MAX: usize = 16 << 20;

/// The series of one selector.
struct Entry<T> {
    series: T,
    bytes: usize,
    /// The number of the last use.
    used: u64,
}

/// Series in any form, by the runs of the index and by what selects.
pub struct SelectionCache<T> {
    entries: HashMap<String, Entry<T>>,
    bytes: usize,
    uses: u64,
}

impl<T> Default for SelectionCache<T> {
    fn default() -> SelectionCache<T> {
        SelectionCache {
            entries: HashMap::new(),
            bytes: 0,
            uses: 0,
        }
    }
}

impl<T: Clone> SelectionCache<T> {
    /// The series of a key, if the cache has them.
    pub fn get(&mut self, key: &str) -> Option<T> {
        let entry = self.entries.get_mut(key)?;
        self.uses += 1;
        entry.used = self.uses;
        Some(entry.series.clone())
    }

    /// Keeps the series of a key, which the cache does not have. They take so many bytes.
    pub fn put(&mut self, key: String, series: T, bytes: usize) {
        let bytes = key.len() + bytes;
        if bytes > BYTES_MAX {
            return;
        }
        while self.bytes + bytes > BYTES_MAX {
            self.remove_oldest();
        }
        self.bytes += bytes;
        self.uses += 1;
        let entry = Entry {
            series,
            bytes,
            used: self.uses,
        };
        self.entries.insert(key, entry);
    }

    fn remove_oldest(&mut self) {
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
        let oldest = oldest.map(|(key, _)| key.clone());
        let removed = oldest.and_then(|key| self.entries.remove(&key));
        self.bytes = removed.map_or(0, |entry| self.bytes - entry.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_make_room() {
        let mut cache = SelectionCache::default();
        let third = BYTES_MAX / 3;
        cache.put("one".to_owned(), 1, third);
        cache.put("two".to_owned(), 2, third);
        assert_eq!(cache.get("one"), Some(1));
        cache.put("three".to_owned(), 3, third);
        let held = ["one", "two", "three"].map(|key| cache.get(key));
        assert_eq!(held, [Some(1), None, Some(3)]);
        cache.put("huge".to_owned(), 4, 2 * BYTES_MAX);
        assert_eq!((cache.get("huge"), cache.get("three")), (None, Some(3)));
        assert!(cache.bytes <= BYTES_MAX);
    }
}
