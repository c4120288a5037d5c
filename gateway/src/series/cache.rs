//! Which id belongs to which label bytes: what makes a known series cost one hash and one look-up.
//!
//! Keys are label bytes as sent, compared whole: the hash only finds the place, so no collision can merge two series. A sender that
//! writes its labels in an uncommon way simply has a second key for the same id.
//!
//! Invariants
//! - An id is inserted only after the transaction that registered it has committed.
//! - Entries of a shard belong to the shard's generation. A request that began under another generation neither finds nor inserts: ids
//!   of a database that has been replaced (restored, failed over) are never used for the new one.
//! - Memory is bounded: a shard that is full lets those entries go that have not been found since it was full before, then some of those
//!   never found. So series in use stay while there is room for them, a part of them where there is not, and a hit takes no more than a
//!   shared lock.

use std::array;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use hashbrown::HashTable;
use parking_lot::RecursiveRwLock;
use tokio::sync::Mutex;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::SeriesIndex;

const SHARDS: usize = 64;
/// Series that are looked up together.
pub const GROUP_KEYS: usize = 16;
/// Table slot, allocation header and the like, for each entry.
const ENTRY_OVERHEAD_BYTES: usize = 56;

/// Series id of the database, 1 or more.
pub type SeriesId = i32;

/// Label bytes to ids; shared by all requests.
pub struct SeriesCache {
    shards: Vec<RecursiveRwLock<Shard>>,
    /// Makes places unpredictable, so that no sender can aim at one shard or one place.
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
    /// How much it was used lately; less by one each time that the shard is full.
    last_use: AtomicU8,
}

/// Neither found nor inserted since the shard was full the last time.
const LONG_AGO: u8 = 0;
const INSERTED: u8 = 1;
const FOUND: u8 = 2;

impl Entry {
    /// Its id, as of an entry that is in use.
    fn found(&self) -> SeriesId {
        // Mostly it is so: then nothing is written, and the entry stays in the caches of all cores.
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

    /// Makes room: first go those not found since the last time, then half of those never found, at last a quarter of all.
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
    /// A cache of about `bytes_max` bytes at most, and an index of as many.
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

    /// Bytes of the entries held, about.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().bytes).sum()
    }

    /// Whether half of the room is left at least.
    pub fn has_room(&self) -> bool {
        self.bytes() < self.shard_bytes_max * SHARDS / 2
    }

    /// The index of all registered series, for who registers: one at a time, over calls to the database.
    pub fn index(&self) -> Arc<Mutex<SeriesIndex>> {
        Arc::clone(&self.index)
    }

    /// How often registered series have been inserted: while it stays, so does what is not known.
    pub fn registrations(&self) -> u64 {
        self.registrations.load(Ordering::Acquire)
    }

    /// Tells that registered series have been inserted.
    pub fn note_registration(&self) {
        self.registrations.fetch_add(1, Ordering::AcqRel);
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
                self.entries.fetch_sub(shard.table.len(), Ordering::Relaxed);
                *shard = Shard {
                    generation,
                    ..Shard::default()
                };
            }
        }
        generation
    }

    /// A hash whose places no sender can foresee.
    pub fn hash(&self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.seed)
    }

    /// The id of a series, if known to this generation.
    pub fn find(&self, generation: u64, key: &[u8]) -> Option<SeriesId> {
        let hash = self.hash(key);
        let shard = self.shard(hash).read();
        if shard.generation == generation {
            shard.find(hash, key)
        } else {
            None
        }
    }

    /// The ids of up to [`GROUP_KEYS`] series, those that are known to this generation; none for the places past `keys`.
    ///
    /// A look-up of one among a million series waits for memory, several times. Here each wait is that of all of them: nothing but these
    /// looks lies between them, so the processor has as many under way as it can.
    pub fn find_all(&self, generation: u64, keys: &[&[u8]]) -> [Option<SeriesId>; GROUP_KEYS] {
        debug_assert!(keys.len() <= GROUP_KEYS);
        let mut hashes = [0; GROUP_KEYS];
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = self.hash(key);
        }
        // The locks are recursive: who holds some shards never waits for one behind a writer who waits for one of them.
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
                // Another key of the same hash came first.
                false => shards[place]?.find(hashes[place], key),
            }
        })
    }

    /// Remembers an id that is committed. Does nothing if the generation has passed.
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
            // A few large entries: rather none than too many.
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
        // Both under the lock of the shard, so the sum is right in the end.
        self.entries.fetch_add(after, Ordering::Relaxed);
        self.entries.fetch_sub(before, Ordering::Relaxed);
    }

    fn shard(&self, hash: u64) -> &RecursiveRwLock<Shard> {
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
    fn several_are_found_as_each_of_them_is() {
        let cache = SeriesCache::new(1 << 20, 7);
        let numbers: Vec<[u8; 4]> = (0..100i32).map(i32::to_le_bytes).collect();
        for (id, key) in (1..).zip(&numbers).filter(|(id, _)| id % 3 != 0) {
            // Found first in its place, and not it.
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
