//! The ids of keys that are some words each, dense from 0 in order of appearance.
//!
//! ```text
//! slots:  [ tag │ id + 1 ] …     0 is free; a key's place is the upper bits of its hash, or the next free slot
//! keys:   words of id 0, words of id 1, …
//! ```
//! Each table serves millions of keys, so nearly every access misses the cache. A vector of rows is therefore looked up
//! in passes without branches between them: the processor then waits for many slots, and afterwards for many keys, at a
//! time.
//!
//! Slots are ordered by the upper bits of hashes. A table that doubles moves its slots from one end to the other,
//! without a look at the keys.

use crate::buffer::reserve_huge;
use crate::limits::VECTOR_ROWS;
use crate::vector::selection::Selection;

/// Slots of a table that is not empty, as a power of two at least.
const SLOTS_MIN_BITS: u32 = 12;
/// Of five slots, this many are used at most.
const USED_OF_FIVE: usize = 3;
/// Bits of a filter for each key, at least. About one unknown key in so many passes the filter.
const FILTER_BITS: usize = 8;
/// Keys have at most so many words: one byte marks the NULLs of a key.
pub(crate) const WORDS_MAX: usize = 8;

/// The keys of a vector's rows, a word after the other.
pub(crate) struct RowWords {
    /// For each word of the keys, that of each row. It is 0 for NULL.
    pub(crate) words: Vec<Box<[u64; VECTOR_ROWS]>>,
    /// For each row, a bit for each word that is NULL.
    nulls: Box<[u8; VECTOR_ROWS]>,
    /// Whether any selected row has a NULL. Otherwise `nulls` is not valid.
    pub(crate) has_nulls: bool,
    hashes: Box<[u64; VECTOR_ROWS]>,
    /// The slots in which the rows' keys may be.
    slots: Box<[u64; VECTOR_ROWS]>,
}

/// Keys and their ids.
pub(crate) struct KeyTable {
    width: usize,
    keys: Vec<u64>,
    /// The NULLs of each key; empty if there are none at all.
    nulls: Vec<u8>,
    slots: Vec<u64>,
    /// How far hashes are shifted to become a place among the slots.
    shift: u32,
    count: usize,
    /// A bit for each of the lower bits of a hash, which is set if some key has them; empty unless asked for.
    filter: Vec<u64>,
}

/// Mixes a word into a hash. The constants differ from those of the hashes that divide rows into partitions: a
/// table of one partition would use a small part of its slots otherwise.
#[inline]
fn mixed(hash: u64, word: u64) -> u64 {
    let wide = u128::from(hash ^ word ^ 0xa076_1d64_78bd_642f)
        .wrapping_mul(u128::from(0xe703_7ed1_a0b4_28db_u64));
    (wide >> 64) as u64 ^ wide as u64
}

/// The hash of a key before its words are mixed in.
#[inline]
fn null_hash(nulls: u8) -> u64 {
    u64::from(nulls) << 56
}

/// The hash of a key.
#[inline]
fn hash_of(nulls: u8, key: &[u64]) -> u64 {
    key.iter()
        .fold(null_hash(nulls), |hash, word| mixed(hash, *word))
}

impl RowWords {
    pub(crate) fn new(width: usize) -> RowWords {
        debug_assert!((1..=WORDS_MAX).contains(&width));
        RowWords {
            words: (0..width).map(|_| Box::new([0; VECTOR_ROWS])).collect(),
            nulls: Box::new([0; VECTOR_ROWS]),
            has_nulls: false,
            hashes: Box::new([0; VECTOR_ROWS]),
            slots: Box::new([0; VECTOR_ROWS]),
        }
    }

    /// Makes a word of some rows NULL. Rows that are not mentioned have no NULL in it.
    pub(crate) fn set_null(&mut self, word: usize, rows: &Selection) {
        if !std::mem::replace(&mut self.has_nulls, true) {
            self.nulls.fill(0);
        }
        let (words, nulls) = (&mut self.words[word], &mut self.nulls);
        rows.for_each(|row| {
            words[row] = 0;
            nulls[row] |= 1 << word;
        });
    }

    /// Whether two rows have different words. Neither has a NULL.
    #[inline]
    pub(crate) fn differ(&self, a: usize, b: usize) -> bool {
        self.words.iter().any(|words| words[a] != words[b])
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * size_of::<[u64; VECTOR_ROWS]>()
            + 2 * size_of::<[u64; VECTOR_ROWS]>()
            + size_of::<[u8; VECTOR_ROWS]>()
    }

    /// The NULLs of a row.
    #[inline]
    fn nulls_of(&self, row: usize) -> u8 {
        match self.has_nulls {
            true => self.nulls[row],
            false => 0,
        }
    }

    /// Computes the hashes of the selected rows.
    fn hash(&mut self, selection: &Selection, rows: usize) {
        let hashes = &mut self.hashes;
        let nulls = self.has_nulls.then_some(&self.nulls);
        selection.for_each_of(rows, |row| {
            hashes[row] = nulls.map_or(0, |nulls| null_hash(nulls[row]));
        });
        for words in &self.words {
            selection.for_each_of(rows, |row| hashes[row] = mixed(hashes[row], words[row]));
        }
    }
}

impl KeyTable {
    pub(crate) fn new(width: usize) -> KeyTable {
        KeyTable {
            width,
            keys: Vec::new(),
            nulls: Vec::new(),
            slots: Vec::new(),
            shift: u64::BITS,
            count: 0,
            filter: Vec::new(),
        }
    }

    /// Prepares for rows most of whose keys are [not known](Self::known). There are no more new keys.
    pub(crate) fn expect_unknown(&mut self) {
        let bits = (self.count * FILTER_BITS).next_power_of_two().max(64);
        self.filter = vec![0; bits / 64];
        let width = self.width;
        for id in 0..self.count {
            let nulls = self.nulls.get(id).copied().unwrap_or(0);
            let hash = hash_of(nulls, &self.keys[id * width..(id + 1) * width]);
            let bit = hash as usize & (bits - 1);
            self.filter[bit / 64] |= 1 << (bit % 64);
        }
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// A word of a key; `None` is NULL.
    #[inline]
    pub(crate) fn word(&self, id: u32, word: usize) -> Option<u64> {
        let nulls = self.nulls.get(id as usize).copied().unwrap_or(0);
        (nulls >> word & 1 == 0).then(|| self.keys[id as usize * self.width + word])
    }

    /// Forgets all keys.
    pub(crate) fn clear(&mut self) {
        *self = KeyTable::new(self.width);
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let words = self.keys.capacity() + self.slots.capacity() + self.filter.capacity();
        words * size_of::<u64>() + self.nulls.capacity()
    }

    /// Writes the ids of the keys of the selected rows of a vector. New keys get ids.
    pub(crate) fn ids(
        &mut self,
        rows: &mut RowWords,
        selection: &Selection,
        vector_rows: usize,
        ids: &mut [u32; VECTOR_ROWS],
    ) {
        self.reserve(selection.count());
        rows.hash(selection, vector_rows);
        let missed = self.look_up(rows, selection, vector_rows, ids);
        missed.for_each(|row| ids[row] = self.id_or_new(rows, row));
    }

    /// Writes the ids of the selected rows whose keys are known, and returns these rows.
    pub(crate) fn known(
        &mut self,
        rows: &mut RowWords,
        selection: &Selection,
        vector_rows: usize,
        ids: &mut [u32; VECTOR_ROWS],
    ) -> Selection {
        if self.slots.is_empty() {
            return Selection::NONE;
        }
        rows.hash(selection, vector_rows);
        let passed = self.pass(rows, selection, vector_rows);
        let missed = self.look_up(rows, &passed, vector_rows, ids);
        let mut known = passed.and_not(&missed);
        missed.for_each(|row| {
            if let Ok(id) = self.find(rows, row) {
                ids[row] = id;
                known.words[row / 64] |= 1 << (row % 64);
            }
        });
        known
    }

    /// The id of a key without NULLs, which gets one if it is new. The table has no filter.
    pub(crate) fn id(&mut self, key: &[u64]) -> u32 {
        debug_assert!(self.filter.is_empty(), "a table with a filter has all keys");
        self.reserve(1);
        let hash = hash_of(0, key);
        let place = match self.place_of(hash, key) {
            Ok(id) => return id,
            Err(place) => place,
        };
        self.keys.extend_from_slice(key);
        self.add(place, hash, 0)
    }

    /// The id of a key without NULLs, if it is known.
    pub(crate) fn known_id(&self, key: &[u64]) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.place_of(hash_of(0, key), key).ok()
    }

    /// The id of a key without NULLs, or the free slot for it. There is a free slot.
    fn place_of(&self, hash: u64, key: &[u64]) -> Result<u32, usize> {
        self.search(hash, |id| {
            let start = id as usize * self.width;
            let nulls = self.nulls.get(id as usize).copied().unwrap_or(0);
            nulls == 0 && &self.keys[start..start + self.width] == key
        })
    }

    /// The selected rows that pass the filter, if there is one.
    fn pass(&self, rows: &RowWords, selection: &Selection, vector_rows: usize) -> Selection {
        let Some(mask) = (self.filter.len() * 64).checked_sub(1) else {
            return *selection;
        };
        let mut passed = Selection::NONE;
        selection.for_each_of(vector_rows, |row| {
            let bit = rows.hashes[row] as usize & mask;
            passed.words[row / 64] |= (self.filter[bit / 64] >> (bit % 64) & 1) << (row % 64);
        });
        passed
    }

    /// Writes the ids of rows whose keys are in their first slot, and returns the other rows.
    fn look_up(
        &self,
        rows: &mut RowWords,
        selection: &Selection,
        vector_rows: usize,
        ids: &mut [u32; VECTOR_ROWS],
    ) -> Selection {
        let (hashes, slots) = (&rows.hashes, &mut rows.slots);
        selection.for_each_of(vector_rows, |row| {
            slots[row] = self.slots[(hashes[row] >> self.shift) as usize];
        });
        match self.width {
            1 => self.compare::<1>(rows, selection, vector_rows, ids),
            2 => self.compare::<2>(rows, selection, vector_rows, ids),
            _ => self.compare::<0>(rows, selection, vector_rows, ids),
        }
    }

    /// Compares the keys in the first slots. `WIDTH` is that of keys if it is not 0.
    fn compare<const WIDTH: usize>(
        &self,
        rows: &RowWords,
        selection: &Selection,
        vector_rows: usize,
        ids: &mut [u32; VECTOR_ROWS],
    ) -> Selection {
        let mut missed = Selection::NONE;
        selection.for_each_of(vector_rows, |row| {
            let id = (rows.slots[row] as u32).wrapping_sub(1);
            let is_found = rows.slots[row] as u32 != 0
                && rows.slots[row] >> 32 == rows.hashes[row] >> 32
                && self.is_key::<WIDTH>(id, rows, row);
            ids[row] = id;
            missed.words[row / 64] |= u64::from(!is_found) << (row % 64);
        });
        missed
    }

    /// Whether an id is that of a row's key.
    #[inline(always)]
    fn is_key<const WIDTH: usize>(&self, id: u32, rows: &RowWords, row: usize) -> bool {
        let width = if WIDTH == 0 { self.width } else { WIDTH };
        let start = id as usize * width;
        let key = &self.keys[start..start + width];
        let nulls = self.nulls.get(id as usize).copied().unwrap_or(0);
        let mut words = key.iter().zip(&rows.words);
        words.all(|(word, words)| *word == words[row]) && nulls == rows.nulls_of(row)
    }

    /// The id of a row's key, or the free slot for it. There is a free slot.
    fn find(&self, rows: &RowWords, row: usize) -> Result<u32, usize> {
        self.search(rows.hashes[row], |id| self.is_key::<0>(id, rows, row))
    }

    /// The id of a key of this hash that `is_key` tells, or the free slot for it.
    #[inline]
    fn search(&self, hash: u64, is_key: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut place = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[place];
            if slot == 0 {
                return Err(place);
            }
            let id = slot as u32 - 1;
            if slot >> 32 == hash >> 32 && is_key(id) {
                return Ok(id);
            }
            place = (place + 1) & mask;
        }
    }

    /// The id of a row's key, which gets one if it is new.
    fn id_or_new(&mut self, rows: &RowWords, row: usize) -> u32 {
        let place = match self.find(rows, row) {
            Ok(id) => return id,
            Err(place) => place,
        };
        self.keys.extend(rows.words.iter().map(|words| words[row]));
        self.add(place, rows.hashes[row], rows.nulls_of(row))
    }

    /// Gives the next id to a key, whose words were added, in a free slot.
    #[inline]
    fn add(&mut self, place: usize, hash: u64, nulls: u8) -> u32 {
        let id = self.count as u32;
        self.count += 1;
        self.slots[place] = hash >> 32 << 32 | u64::from(id + 1);
        if nulls != 0 || !self.nulls.is_empty() {
            self.nulls.resize(id as usize, 0);
            self.nulls.push(nulls);
        }
        id
    }

    /// Makes room for so many new keys.
    fn reserve(&mut self, more: usize) {
        let wanted = self.count + more;
        reserve_huge(&mut self.keys, wanted * self.width);
        let is_enough = |slots: usize| wanted * 5 <= slots * USED_OF_FIVE;
        if is_enough(self.slots.len()) {
            return;
        }
        let mut bits = SLOTS_MIN_BITS;
        while !is_enough(1 << bits) {
            bits += 1;
        }
        let mut slots = Vec::new();
        reserve_huge(&mut slots, 1 << bits);
        slots.resize(1 << bits, 0);
        let (shift, mask) = (u64::BITS - bits, slots.len() - 1);
        // The lower half of a hash is not stored. It is not needed: a table has at most 2^32 slots.
        for &slot in self.slots.iter().filter(|slot| **slot != 0) {
            let mut place = (slot >> shift) as usize;
            while slots[place] != 0 {
                place = (place + 1) & mask;
            }
            slots[place] = slot;
        }
        (self.slots, self.shift) = (slots, shift);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    type Key = Vec<Option<u64>>;

    fn fill(rows: &mut RowWords, keys: &[Key]) {
        rows.has_nulls = false;
        for word in 0..rows.words.len() {
            let mut nulls = Selection::NONE;
            for (row, key) in keys.iter().enumerate() {
                match key[word] {
                    Some(value) => rows.words[word][row] = value,
                    None => nulls.insert(row, row + 1),
                }
            }
            if !nulls.is_empty() {
                rows.set_null(word, &nulls);
            }
        }
    }

    proptest! {
        #[test]
        fn ids_are_those_of_a_map(
            width in 1..4_usize, spread in prop_oneof![Just(3_u64), Just(40), Just(u64::MAX)],
            vectors in prop::collection::vec(
                prop::collection::vec([prop::option::weighted(0.95, any::<u64>()), any::<Option<u64>>(), any::<Option<u64>>()], 1..300), 1..5),
            with_nulls: bool, with_filter: bool, closes in 0..5_usize, skipped in 0..20_usize,
        ) {
            let mut table = KeyTable::new(width);
            let mut rows = RowWords::new(width);
            let mut expected: HashMap<Key, u32> = HashMap::new();
            let mut ids = Box::new([0; VECTOR_ROWS]);
            for (index, vector) in vectors.iter().enumerate() {
                let keys: Vec<Key> = vector.iter().map(|key| key[..width].iter().map(|word| {
                    let word = word.map(|word| word % spread);
                    word.or((!with_nulls).then_some(0))
                }).collect()).collect();
                fill(&mut rows, &keys);
                let mut selection = Selection::first(keys.len());
                if skipped < keys.len() {
                    selection.remove(skipped);
                }
                let is_closed = index >= closes;
                if is_closed && with_filter {
                    table.expect_unknown();
                }
                let mut known = Selection::NONE;
                match is_closed {
                    true => known = table.known(&mut rows, &selection, keys.len(), &mut ids),
                    false => table.ids(&mut rows, &selection, keys.len(), &mut ids),
                }
                for row in (0..keys.len()).filter(|row| selection.contains(*row)) {
                    let next = expected.len() as u32;
                    if is_closed {
                        prop_assert_eq!(known.contains(row), expected.contains_key(&keys[row]));
                    } else {
                        expected.entry(keys[row].clone()).or_insert(next);
                    }
                    if let Some(id) = expected.get(&keys[row]) {
                        prop_assert_eq!(ids[row], *id);
                    }
                }
            }
            prop_assert_eq!(table.len(), expected.len());
            for (key, id) in &expected {
                let words: Key = (0..width).map(|word| table.word(*id, word)).collect();
                prop_assert_eq!(&words, key);
            }
        }
    }

    #[test]
    fn a_table_that_grows_keeps_its_ids() {
        let mut table = KeyTable::new(1);
        let mut rows = RowWords::new(1);
        let mut ids = Box::new([0; VECTOR_ROWS]);
        let vectors = 100_u64;
        for _ in 0..2 {
            for vector in 0..vectors {
                for row in 0..VECTOR_ROWS as u64 {
                    rows.words[0][row as usize] = (vector << 11 | row) * 1_000_003;
                }
                let all = Selection::first(VECTOR_ROWS);
                table.ids(&mut rows, &all, VECTOR_ROWS, &mut ids);
                let first = vector as u32 * VECTOR_ROWS as u32;
                assert!((first..).zip(ids.iter()).all(|(id, found)| id == *found));
            }
        }
        assert_eq!(table.len(), vectors as usize * VECTOR_ROWS);
        assert!(table.bytes() < table.len() * (8 + 8) * 4);
    }
}
