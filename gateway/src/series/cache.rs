//! The cache from label bytes to series ids. It makes a known series cost one hash and one look-up.
//!
//! Keys are label bytes as sent, compared whole. The hash only selects the position, so no
//! collision can merge two series. A sender with an unusual encoding of its labels simply has a
//! second key for the same id.
//!
//! # Invariants
//! - An id is inserted only after the transaction that registered it has committed.
//! - The entries of a shard belong to the shard's generation. A request that began under another
//!   generation neither finds nor inserts entries. Ids of a database that has been replaced
//!   (restored, failed over) are therefore never used for the new one.
//! - Memory is bounded. A full shard drops the entries that have not been found since it was full
//!   before, and then some of those that were never found. Series in use therefore stay while there
//!   is room for them, and a hit takes only a shared lock.

use std::array;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use hashbrown::HashTable;
use parking_lot::RecursiveRwLock;
use tokio::sync::Mutex;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::SeriesIndex;

const SHARDS: usize = 64;
/// The number of series that are looked up together.
pub const GROUP_KEYS: usize = 16;
/// The bytes of each entry besides its key: table slot, allocation header and the like.
const ENTRY_OVERHEAD_BYTES: usize = 56;

/// A series id of the database. It is at least 1.
pub type SeriesId = i32;

/// A cache from label bytes to ids, shared by all requests.
pub struct SeriesCache {
    shards: Vec<RecursiveRwLock<Shard>>,
    /// Makes positions unpredictable, so that no sender can aim at one shard or one position.
    seed: u64,
    generation: AtomicU64,
    shard_bytes_max: usize,
    entries: AtomicUsize,
    index: Arc<Mutex<SeriesIndex>>,
    index_bytes: AtomicUsize,
    registrations: AtomicU64,
}

#[derive(Default)]
struct Shard {
    generation: u64,
    table: HashTable<Entry>,
    bytes: usize,
}

struct Entry {
    hash: u64,
    key: Box<[u8]>,
    id: SeriesId,
    /// How recently the entry was used. It decreases by one each time that the shard is full.
    last_use: AtomicU8,
}

/// The entry was neither found nor inserted since the shard was full the last time.
const LONG_AGO: u8 = 0;
const INSERTED: u8 = 1;
const FOUND: u8 = 2;

impl Entry {
    /// Returns the id and marks the entry as in use.
    fn found(&self) -> SeriesId {
        // Usually the entry is marked already. Nothing is written then, and the entry stays in the
        // caches of all cores.
        if self.last_use.load(Ordering::Relaxed) != FOUND {
            self.last_use.store(FOUND, Ordering::Relaxed);
        }
        self.id
    }

    fn bytes(&self) -> usize {
        self.key.len() + ENTRY_OVERHEAD_BYTES
    }
}

impl Shard {
    fn find(&self, hash: u64, key: &[u8]) -> Option<SeriesId> {
        let entry = self
            .table
            .find(hash, |entry| entry.hash == hash && *entry.key == *key)?;
        Some(entry.found())
    }

    /// Makes room. It first drops entries that were not found since the last time, then half of
    /// those that were never found, and finally a quarter of all.
    fn sweep(&mut self, bytes_max: usize) {
        self.drop_some(|entry, _| {
            let use_now = entry.last_use.get_mut();
            let goes = *use_now == LONG_AGO;
            *use_now = use_now.saturating_sub(1);
            goes
        });
        let enough = bytes_max - bytes_max / 8;
        if self.bytes > enough {
            self.drop_some(|entry, nth| nth % 2 == 0 && *entry.last_use.get_mut() == LONG_AGO);
        }
        if self.bytes > enough {
            self.drop_some(|_, nth| nth % 4 == 0);
        }
    }

    fn drop_some(&mut self, mut goes: impl FnMut(&mut Entry, usize) -> bool) {
        let (mut nth, mut bytes) = (0, self.bytes);
        self.table.retain(|entry| {
            nth += 1;
            let goes = goes(entry, nth);
            bytes -= if goes { entry.bytes() } else { 0 };
            !goes
        });
        self.bytes = bytes;
    }
}

impl SeriesCache {
    /// Creates a cache of at most about `bytes_max` bytes, and an index of the same size.
    pub fn new(bytes_max: usize, seed: u64) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RecursiveRwLock::default()).collect(),
            seed,
            generation: AtomicU64::new(0),
            shard_bytes_max: bytes_max / SHARDS,
            entries: AtomicUsize::new(0),
            index: Arc::new(Mutex::new(SeriesIndex::new(bytes_max, seed))),
            index_bytes: AtomicUsize::new(0),
            registrations: AtomicU64::new(0),
        }
    }

    /// The approximate bytes of the entries.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().bytes).sum()
    }

    /// Whether at least half of the room is free.
    pub fn has_room(&self) -> bool {
        self.bytes() < self.shard_bytes_max * SHARDS / 2
    }

    /// The index of all registered series. A registration holds its lock over calls to the
    /// database.
    pub fn index(&self) -> Arc<Mutex<SeriesIndex>> {
        Arc::clone(&self.index)
    }

    /// The number of times that registered series were inserted. While it is unchanged, a series
    /// that was not found is still not in the cache.
    pub fn registrations(&self) -> u64 {
        self.registrations.load(Ordering::Acquire)
    }

    /// Records that registered series were inserted.
    pub fn note_registration(&self) {
        self.registrations.fetch_add(1, Ordering::AcqRel);
    }

    /// The bytes of the index, as recorded last.
    pub fn index_bytes(&self) -> usize {
        self.index_bytes.load(Ordering::Relaxed)
    }

    /// Records the bytes of the index, which may be locked for a long time.
    pub fn note_index_bytes(&self, bytes: usize) {
        self.index_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The generation of requests that start now.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The number of entries. A series may have several.
    pub fn entries(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// Drops all entries and begins a new generation, which is returned.
    pub fn begin_generation(&self) -> u64 {
        // The number changes before the shards. A request of the new generation that meets an old
        // shard finds nothing.
        let generation = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        for shard in &self.shards {
            let mut shard = shard.write();
            if shard.generation < generation {
                self.entries.fetch_sub(shard.table.len(), Ordering::Relaxed);
                *shard = Shard {
                    generation,
                    ..Shard::default()
                };
            }
        }
        generation
    }

    /// Returns a hash that no sender can predict.
    pub fn hash(&self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.seed)
    }

    /// Returns the id of a series if it is known in this generation.
    pub fn find(&self, generation: u64, key: &[u8]) -> Option<SeriesId> {
        let hash = self.hash(key);
        let shard = self.shard(hash).read();
        if shard.generation == generation {
            shard.find(hash, key)
        } else {
            None
        }
    }

    /// Returns the ids of up to [`GROUP_KEYS`] series that are known in this generation. Positions
    /// past the end of `keys` are `None`.
    ///
    /// A look-up among a million series waits for memory several times. This method does the same
    /// step for all keys before the next step, so the processor overlaps these waits.
    pub fn find_all(&self, generation: u64, keys: &[&[u8]]) -> [Option<SeriesId>; GROUP_KEYS] {
        debug_assert!(keys.len() <= GROUP_KEYS);
        let mut hashes = [0; GROUP_KEYS];
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = self.hash(key);
        }
        // The locks are recursive: a thread that holds some shards never waits behind a writer that
        // waits for one of them.
        let shards: [_; GROUP_KEYS] =
            array::from_fn(|place| (place < keys.len()).then(|| self.shard(hashes[place]).read()));
        let shards: [Option<&Shard>; GROUP_KEYS] = array::from_fn(|place| {
            let shard = shards[place].as_deref()?;
            (shard.generation == generation).then_some(shard)
        });
        let entries: [Option<&Entry>; GROUP_KEYS] = array::from_fn(|place| {
            let (table, hash) = (&shards[place]?.table, hashes[place]);
            table.find(hash, |entry| entry.hash == hash)
        });
        array::from_fn(|place| {
            let (entry, key) = (entries[place]?, keys[place]);
            match *entry.key == *key {
                true => Some(entry.found()),
                // Another key with the same hash was found first.
                false => shards[place]?.find(hashes[place], key),
            }
        })
    }

    /// Inserts an id whose registration is committed. Does nothing if the generation has passed.
    pub fn insert(&self, generation: u64, key: &[u8], id: SeriesId) {
        let hash = self.hash(key);
        let bytes = key.len() + ENTRY_OVERHEAD_BYTES;
        let mut shard = self.shard(hash).write();
        if shard.generation != generation
            || bytes > self.shard_bytes_max
            || shard.find(hash, key).is_some()
        {
            return;
        }
        let before = shard.table.len();
        if shard.bytes + bytes > self.shard_bytes_max {
            shard.sweep(self.shard_bytes_max);
        }
        if shard.bytes + bytes > self.shard_bytes_max {
            // If a few large entries fill the shard, the cache prefers none to too many.
            shard.table.clear();
            shard.bytes = 0;
        }
        shard.bytes += bytes;
        let entry = Entry {
            hash,
            key: key.into(),
            id,
            last_use: AtomicU8::new(INSERTED),
        };
        shard.table.insert_unique(hash, entry, |entry| entry.hash);
        let after = shard.table.len();
        // Both happen under the lock of the shard, so the sum is right in the end.
        self.entries.fetch_add(after, Ordering::Relaxed);
        self.entries.fetch_sub(before, Ordering::Relaxed);
    }

    fn shard(&self, hash: u64) -> &RecursiveRwLock<Shard> {
        // The table takes its position from the low bits and its tag from the top seven bits. The
        // shard is selected by bits in between.
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
        let mut shard = Shard::default();
        for (key, id) in [(b"one", 1), (b"two", 2)] {
            let entry = Entry {
                hash: 42,
                key: key.as_slice().into(),
                id,
                last_use: AtomicU8::new(INSERTED),
            };
            shard.table.insert_unique(42, entry, |entry| entry.hash);
        }
        let found = [b"one", b"two", b"six"].map(|key| shard.find(42, key));
        assert_eq!(found, [Some(1), Some(2), None]);
    }

    #[test]
    fn keys_are_found_together_as_they_are_one_by_one() {
        let cache = SeriesCache::new(1 << 20, 7);
        let numbers: Vec<[u8; 4]> = (0..100i32).map(i32::to_le_bytes).collect();
        for (id, key) in (1..).zip(&numbers).filter(|(id, _)| id % 3 != 0) {
            // Another entry with the same hash is found first.
            let (hash, key_of_other) = (cache.hash(key), b"other".as_slice().into());
            let other = Entry {
                hash,
                key: key_of_other,
                id: -1,
                last_use: AtomicU8::new(INSERTED),
            };
            if id % 5 == 0 {
                let mut shard = cache.shard(hash).write();
                shard.table.insert_unique(hash, other, |entry| entry.hash);
            }
            cache.insert(0, key, id);
        }
        for keys in numbers.chunks(GROUP_KEYS).chain([&numbers[..1], &[]]) {
            let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_slice()).collect();
            for generation in [0, 1] {
                let mut each: Vec<_> = keys.iter().map(|key| cache.find(generation, key)).collect();
                each.resize(GROUP_KEYS, None);
                assert_eq!(cache.find_all(generation, &keys), *each);
            }
        }
        let known = cache.find_all(0, &[&numbers[0], &numbers[2], &numbers[4]]);
        assert_eq!(known[..3], [Some(1), None, Some(5)]);
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
            "an id of an earlier generation is not inserted"
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
            assert!(cache.bytes() <= SHARDS * entry_bytes * 20);
        }
        assert!(cache.entries() <= SHARDS * 20, "{}", cache.entries());
        assert!(cache.entries() >= SHARDS * 8, "{}", cache.entries());
        let counted: usize = cache
            .shards
            .iter()
            .map(|shard| shard.read())
            .map(|shard| shard.table.len())
            .sum();
        assert_eq!(counted, cache.entries());
    }
}
