//! The series that selectors of this session have selected, with their labels.
//!
//! Dashboards ask the same queries again and again. What a selector selects among the series that the label index
//! covers depends on the runs of the index alone, and runs never change: see [`crate::labels`]. So an entry's key
//! consists of the runs that the calling query sees and of the matchers. Series that no run covers are not cached.
//!
//! Invariants:
//! - The caller's privileges on the series are checked by each query, also if the cache answers it. Where row-level
//!   security hides series, the index is not used, and so neither is the cache.
//! - The cache of a session holds [`BYTES_MAX`] at most. The entries that were used longest ago make room for others.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use lanes_promql::labels::Labels;

/// A series: its id and its labels.
pub type IdentifiedSeries = (u32, Labels);

/// The largest number of series of an entry.
pub const ENTRY_SERIES_MAX: u64 = 50_000;
/// The size of the cache of a session, in bytes.
const BYTES_MAX: usize = 16 << 20;
/// What a series takes beside the text of its labels, roughly.
const SERIES_BYTES: usize = 96;
/// What each label takes beside its text.
const LABEL_BYTES: usize = 8;

/// The series of one selector.
struct Entry {
    series: Arc<[IdentifiedSeries]>,
    bytes: usize,
    /// The number of the last use.
    used: u64,
}

/// The entries, by the runs of the index and the matchers.
#[derive(Default)]
struct SeriesCache {
    entries: HashMap<String, Entry>,
    bytes: usize,
    uses: u64,
}

thread_local! {
    static CACHE: RefCell<SeriesCache> = RefCell::default();
}

/// The series of a key, if the cache has them.
pub fn get(key: &str) -> Option<Arc<[IdentifiedSeries]>> {
    CACHE.with_borrow_mut(|cache| cache.get(key))
}

/// Keeps the series of a key.
pub fn put(key: String, series: &Arc<[IdentifiedSeries]>) {
    CACHE.with_borrow_mut(|cache| cache.put(key, series));
}

impl SeriesCache {
    fn get(&mut self, key: &str) -> Option<Arc<[IdentifiedSeries]>> {
        let entry = self.entries.get_mut(key)?;
        self.uses += 1;
        entry.used = self.uses;
        Some(Arc::clone(&entry.series))
    }

    fn put(&mut self, key: String, series: &Arc<[IdentifiedSeries]>) {
        let bytes = key.len() + series.iter().map(bytes_of).sum::<usize>();
        if bytes > BYTES_MAX {
            return;
        }
        while self.bytes + bytes > BYTES_MAX {
            self.remove_oldest();
        }
        self.bytes += bytes;
        self.uses += 1;
        let entry = Entry {
            series: Arc::clone(series),
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

fn bytes_of((_, labels): &IdentifiedSeries) -> usize {
    let texts = labels.iter().map(|(name, value)| name.len() + value.len());
    SERIES_BYTES + texts.map(|text| text + LABEL_BYTES).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(bytes: usize) -> Arc<[IdentifiedSeries]> {
        let value = "x".repeat(bytes);
        [(1, Labels::from_pairs([("a", value)]))].into()
    }

    #[test]
    fn the_oldest_entries_make_room() {
        let mut cache = SeriesCache::default();
        let third = series(BYTES_MAX / 3);
        cache.put("one".to_owned(), &third);
        cache.put("two".to_owned(), &third);
        assert!(cache.get("one").is_some());
        cache.put("three".to_owned(), &third);
        let held = ["one", "two", "three"].map(|key| cache.get(key).is_some());
        assert_eq!(held, [true, false, true]);
        cache.put("huge".to_owned(), &series(2 * BYTES_MAX));
        assert!(cache.get("huge").is_none() && cache.get("three").is_some());
        assert!(cache.bytes <= BYTES_MAX);
    }
}
