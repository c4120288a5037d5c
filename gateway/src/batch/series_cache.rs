//! Which id belongs to which label bytes: what makes a known series cost one hash and one look-up.
//!
//! Keys are label bytes as sent, compared whole: the hash only finds the place, so no collision can merge two series. A sender that
//! writes its labels in an uncommon way simply has a second key for the same id.
//!
//! Invariants
//! - An id is inserted only after the transaction that registered it has committed.
//! - Entries of a shard belong to the shard's generation. A request that began under another generation neither finds nor inserts: ids
//!   of a database that has been replaced (restored, failed over) are never used for the new one.
//! - Memory is bounded: a shard has a young and an old half; when the young one is full it becomes the old one, and the old one goes.
//!   A hit in the old half moves to the young one, so series in use stay.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hashbrown::HashTable;
use parking_lot::RwLock;
use tokio::sync::Mutex;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::series_index::SeriesIndex;

const SHARDS: usize = 64;
/// Table slot, allocation header and the like, for each entry.
const ENTRY_OVERHEAD_BYTES: usize = 56;

/// Series id of the database, 1 or more.
pub type SeriesId = i32;

/// Label bytes to ids; shared by all requests.
pub struct SeriesCache {
    shards: Vec<RwLock<Shard>>,
    /// Makes places unpredictable, so that no sender can aim at one shard or one place.
    seed: u64,
    generation: AtomicU64,
    shard_bytes_max: usize,
    entries: AtomicUsize,
    index: Arc<Mutex<SeriesIndex>>,
    index_bytes: AtomicUsize,
}

#[derive(Default)]
struct Shard {
    generation: u64,
    young: Half,
    old: Half,
}

#[derive(Default)]
struct Half {
    table: HashTable<Entry>,
    bytes: usize,
}

struct Entry {
    hash: u64,
    key: Box<[u8]>,
    id: SeriesId,
}

impl Half {
    fn find(&self, hash: u64, key: &[u8]) -> Option<SeriesId> {
        self.table
            .find(hash, |entry| *entry.key == *key)
            .map(|entry| entry.id)
    }
}

impl SeriesCache {
    /// A cache of about `bytes_max` bytes at most, and an index of as many.
    pub fn new(bytes_max: usize, seed: u64) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            seed,
            generation: AtomicU64::new(0),
            shard_bytes_max: bytes_max / SHARDS,
            entries: AtomicUsize::new(0),
            index: Arc::new(Mutex::new(SeriesIndex::new(bytes_max, seed))),
            index_bytes: AtomicUsize::new(0),
        }
    }

    /// The index of all registered series, for who registers: one at a time, over calls to the database.
    pub fn index(&self) -> Arc<Mutex<SeriesIndex>> {
        Arc::clone(&self.index)
    }

    /// Bytes of the index when it was last told of.
    pub fn index_bytes(&self) -> usize {
        self.index_bytes.load(Ordering::Relaxed)
    }

    /// Tells of the index, which may be locked for long.
    pub fn note_index_bytes(&self, bytes: usize) {
        self.index_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The generation that a request starting now belongs to.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Entries held; a series may have several.
    pub fn entries(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// Forgets all and begins a new generation, which is returned.
    pub fn begin_generation(&self) -> u64 {
        // First the number, then the shards: a request of the new generation that meets an uncleared shard misses.
        let generation = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        for shard in &self.shards {
            let mut shard = shard.write();
            if shard.generation < generation {
                self.entries.fetch_sub(
                    shard.young.table.len() + shard.old.table.len(),
                    Ordering::Relaxed,
                );
                *shard = Shard {
                    generation,
                    ..Shard::default()
                };
            }
        }
        generation
    }

    /// The id of a series, if known to this generation.
    pub fn find(&self, generation: u64, key: &[u8]) -> Option<SeriesId> {
        let hash = xxh3_64_with_seed(key, self.seed);
        let shard_lock = self.shard(hash);
        {
            let shard = shard_lock.read();
            if shard.generation != generation {
                return None;
            }
            if let Some(id) = shard.young.find(hash, key) {
                return Some(id);
            }
            shard.old.find(hash, key)?;
        }
        // Found in the old half: move it, under the write lock and looking again, as others may have been quicker.
        let mut shard = shard_lock.write();
        if shard.generation != generation {
            return None;
        }
        let moved = match shard.old.table.find_entry(hash, |entry| *entry.key == *key) {
            Ok(entry) => entry.remove().0,
            Err(_) => return shard.young.find(hash, key),
        };
        let id = moved.id;
        self.entries.fetch_sub(1, Ordering::Relaxed);
        self.put(&mut shard, moved);
        Some(id)
    }

    /// Remembers an id that is committed. Does nothing if the generation has passed.
    pub fn insert(&self, generation: u64, key: &[u8], id: SeriesId) {
        let hash = xxh3_64_with_seed(key, self.seed);
        let mut shard = self.shard(hash).write();
        if shard.generation != generation
            || shard.young.find(hash, key).is_some()
            || shard.old.find(hash, key).is_some()
        {
            return;
        }
        self.put(
            &mut shard,
            Entry {
                hash,
                key: key.into(),
                id,
            },
        );
    }

    fn put(&self, shard: &mut Shard, entry: Entry) {
        let bytes = entry.key.len() + ENTRY_OVERHEAD_BYTES;
        if shard.young.bytes + bytes > self.shard_bytes_max / 2 {
            self.entries
                .fetch_sub(shard.old.table.len(), Ordering::Relaxed);
            shard.old = std::mem::take(&mut shard.young);
        }
        shard.young.bytes += bytes;
        shard
            .young
            .table
            .insert_unique(entry.hash, entry, |entry| entry.hash);
        self.entries.fetch_add(1, Ordering::Relaxed);
    }

    fn shard(&self, hash: u64) -> &RwLock<Shard> {
        // The table takes its place from the low bits and its tag from the top seven: these are in between.
        &self.shards[(hash >> 48) as usize % SHARDS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_bytes_decide() {
        let cache = SeriesCache::new(1 << 20, 7);
        for number in 0..1000i32 {
            cache.insert(0, &number.to_le_bytes(), number + 1);
        }
        for number in 0..1000i32 {
            assert_eq!(cache.find(0, &number.to_le_bytes()), Some(number + 1));
        }
        assert_eq!(cache.find(0, b"other"), None);
        assert_eq!(cache.entries(), 1000);
    }

    #[test]
    fn equal_hashes_do_not_merge_series() {
        let mut half = Half::default();
        for (key, id) in [(b"one", 1), (b"two", 2)] {
            half.table.insert_unique(
                42,
                Entry {
                    hash: 42,
                    key: key.as_slice().into(),
                    id,
                },
                |entry| entry.hash,
            );
        }
        assert_eq!(
            (
                half.find(42, b"one"),
                half.find(42, b"two"),
                half.find(42, b"six")
            ),
            (Some(1), Some(2), None)
        );
    }

    #[test]
    fn generations_do_not_see_each_other() {
        let cache = SeriesCache::new(1 << 20, 7);
        cache.insert(0, b"a", 1);
        let next = cache.begin_generation();
        assert_eq!((next, cache.generation(), cache.entries()), (1, 1, 0));
        assert_eq!(cache.find(next, b"a"), None);
        cache.insert(0, b"a", 1);
        assert_eq!(
            cache.find(next, b"a"),
            None,
            "an id of the past is not taken up"
        );
        cache.insert(next, b"a", 9);
        assert_eq!(
            (cache.find(next, b"a"), cache.find(0, b"a")),
            (Some(9), None)
        );
    }

    #[test]
    fn memory_is_bounded_and_series_in_use_stay() {
        let entry_bytes = ENTRY_OVERHEAD_BYTES + 4;
        let cache = SeriesCache::new(SHARDS * entry_bytes * 20, 7);
        let used = (-1i32).to_le_bytes();
        cache.insert(0, &used, 77);
        for number in 0..100_000i32 {
            cache.insert(0, &number.to_le_bytes(), number + 1);
            assert_eq!(cache.find(0, &used), Some(77));
        }
        assert!(cache.entries() <= SHARDS * 20, "{}", cache.entries());
        assert!(cache.entries() >= SHARDS * 10, "{}", cache.entries());
        let counted: usize = cache
            .shards
            .iter()
            .map(|s| s.read())
            .map(|s| s.young.table.len() + s.old.table.len())
            .sum();
        assert_eq!(counted, cache.entries());
    }
}
