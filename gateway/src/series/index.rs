//! The index of all registered series: hashes of label sets to candidate ids. It tells a new series
//! from a registered one without asking the database.
//!
//! The database has no index on label sets, so whoever registers series must know all of them. A
//! gateway therefore keeps 32 bits of a hash and the id for each series that any gateway has ever
//! registered. This takes 8 bytes in a full table, and 10 to 21 bytes including free slots.
//!
//! # Invariants
//! - The table contains every series of the generation with an id up to
//!   [`SeriesIndex::indexed_to`]. The absence of a hash is proof; its presence is a hint. A
//!   candidate counts only when the database has confirmed its labels, so no collision can merge
//!   two series.
//! - The hash is seeded, and only gateways know the seed, so no sender can aim at collisions. The
//!   database stores hashes of most series. If the index begins with these, it uses their seed.
//! - Memory is bounded: the table does not grow beyond its limit. Series that find no room have ids
//!   past `indexed_to` and must be looked up in the database, by metric.

use hashbrown::HashTable;
use lanes_labels::SeriesHasher;

use super::SeriesId;

/// An index from hashes of label sets to candidate ids.
#[derive(Debug)]
pub struct SeriesIndex {
    table: HashTable<Slot>,
    seed: u64,
    bytes_max: usize,
    generation: u64,
    indexed_to: SeriesId,
    known_to: SeriesId,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    id: SeriesId,
}

/// The bytes of a slot and its control byte.
const SLOT_BYTES: usize = size_of::<Slot>() + 1;

impl SeriesIndex {
    /// Creates an index of at most `bytes_max` bytes, but of a few slots at least.
    pub fn new(bytes_max: usize, seed: u64) -> Self {
        Self {
            table: HashTable::new(),
            seed,
            bytes_max,
            generation: 0,
            indexed_to: 0,
            known_to: 0,
        }
    }

    /// Drops everything if the index belongs to another generation.
    pub fn begin(&mut self, generation: u64) {
        if self.generation != generation {
            *self = Self {
                generation,
                ..Self::new(self.bytes_max, self.seed)
            };
        }
    }

    /// Adopts the seed if the index is empty. Returns whether the index uses this seed.
    pub fn takes_seed(&mut self, seed: u64) -> bool {
        if self.known_to == 0 {
            self.seed = seed;
        }
        self.seed == seed
    }

    /// The generation that the ids belong to.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The last id known to be in the registry. The next registration continues there.
    pub fn known_to(&self) -> SeriesId {
        self.known_to
    }

    /// The id up to which all series are in the table. It is at most `known_to`.
    pub fn indexed_to(&self) -> SeriesId {
        self.indexed_to
    }

    /// The bytes of the table.
    pub fn bytes(&self) -> usize {
        self.table.allocation_size()
    }

    /// Records that ids up to `id` have been assigned. Gaps among them are series that no longer
    /// exist.
    pub fn advance(&mut self, id: SeriesId) {
        if self.indexed_to == self.known_to {
            self.indexed_to = self.indexed_to.max(id);
        }
        self.known_to = self.known_to.max(id);
    }

    /// Adds consecutive series that begin at `first_id`, which lies beyond all known ids.
    pub fn extend<'a>(
        &mut self,
        first_id: SeriesId,
        metric: &str,
        labels: impl ExactSizeIterator<Item = &'a str>,
    ) {
        let hasher = SeriesHasher::new(metric, self.seed);
        self.extend_hashes(first_id, labels.map(|labels| hasher.hash(labels)));
    }

    /// Adds the hashes of consecutive series that begin at `first_id`, which lies beyond all known
    /// ids.
    pub fn extend_hashes(
        &mut self,
        first_id: SeriesId,
        hashes: impl ExactSizeIterator<Item = u32>,
    ) {
        let Some(last_id) = SeriesId::try_from(hashes.len())
            .ok()
            .and_then(|series| first_id.checked_add(series - 1))
        else {
            return;
        };
        if self.indexed_to == self.known_to && self.has_room(hashes.len()) {
            for (id, hash) in (first_id..=last_id).zip(hashes) {
                self.table
                    .insert_unique(place(hash), Slot { hash, id }, |slot| place(slot.hash));
            }
            self.indexed_to = last_id;
        }
        self.known_to = self.known_to.max(last_id);
    }

    /// Returns the ids up to `indexed_to` that a label set may have: nearly always none or one.
    pub fn candidates(&self, metric: &str, labels: &str) -> impl Iterator<Item = SeriesId> {
        let hash = SeriesHasher::new(metric, self.seed).hash(labels);
        self.table
            .iter_hash(place(hash))
            .filter(move |slot| slot.hash == hash)
            .map(|slot| slot.id)
    }

    fn has_room(&self, series: usize) -> bool {
        let wanted = self.table.len() + series;
        // A table is at most seven eighths full. Then it doubles, and the old table exists until it
        // has been copied.
        let slots = (wanted * 8 / 7 + 1).next_power_of_two();
        wanted <= self.table.capacity() || (slots + slots / 2) * SLOT_BYTES <= self.bytes_max
    }
}

/// Spreads the hash: the table takes its position from the low bits and its tag from the top seven
/// bits, and 32 bits have to serve both.
fn place(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(index: &SeriesIndex, metric: &str, labels: &str) -> Vec<SeriesId> {
        index.candidates(metric, labels).collect()
    }

    #[test]
    fn every_series_is_its_own_candidate() {
        let mut index = SeriesIndex::new(1 << 20, 3);
        let labels: Vec<String> = (0..5000)
            .map(|number| format!("{{\"n\":\"{number}\"}}"))
            .collect();
        index.extend(1, "up", labels.iter().map(String::as_str));
        for (id, labels) in (1..).zip(&labels) {
            assert!(candidates(&index, "up", labels).contains(&id));
        }
        assert!(candidates(&index, "down", &labels[0]).is_empty());
        assert_eq!((index.known_to(), index.indexed_to()), (5000, 5000));
    }

    #[test]
    fn a_full_index_reports_where_it_ends() {
        let mut index = SeriesIndex::new(64 * SLOT_BYTES * 3, 3);
        let mut indexed = 0;
        for first_id in 1..=1000 {
            let labels = first_id.to_string();
            index.extend(first_id, "up", [labels.as_str()].into_iter());
            assert_eq!(index.known_to(), first_id);
            let is_in = candidates(&index, "up", &labels).contains(&first_id);
            assert_eq!(is_in, index.indexed_to() == first_id, "{first_id}");
            indexed += i32::from(is_in);
        }
        assert_eq!(index.indexed_to(), indexed);
        assert!((50..=112).contains(&indexed), "{indexed}");
        assert!(index.bytes() <= 64 * SLOT_BYTES * 3, "{}", index.bytes());
        index.advance(2000);
        assert_eq!((index.known_to(), index.indexed_to()), (2000, indexed));
    }

    #[test]
    fn hashes_of_another_seed_are_refused_once_there_are_some() {
        let mut index = SeriesIndex::new(1 << 20, 3);
        assert!(index.takes_seed(4) && index.takes_seed(5));
        let hashes = ["{}", "{\"a\":\"b\"}"].map(|labels| SeriesHasher::new("up", 5).hash(labels));
        index.extend_hashes(3, hashes.into_iter());
        assert!(index.takes_seed(5) && !index.takes_seed(3));
        index.extend(5, "up", ["{\"a\":\"c\"}"].into_iter());
        for (id, labels) in [(3, "{}"), (4, "{\"a\":\"b\"}"), (5, "{\"a\":\"c\"}")] {
            assert_eq!(candidates(&index, "up", labels), [id]);
        }
        assert_eq!((index.known_to(), index.indexed_to()), (5, 5));
    }

    #[test]
    fn another_generation_begins_empty() {
        let mut index = SeriesIndex::new(1 << 20, 3);
        index.extend(1, "up", ["{}"].into_iter());
        index.advance(7);
        index.begin(0);
        assert_eq!((index.known_to(), index.indexed_to()), (7, 7));
        index.begin(1);
        assert_eq!((index.known_to(), index.indexed_to()), (0, 0));
        assert!(candidates(&index, "up", "{}").is_empty());
    }
}
