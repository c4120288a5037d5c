//! The ids of texts by their hashes, in a table of open addresses.
//!
//! ```text
//! hash ──► slot ──► hash and id; a slot taken by another text ──► the next slot
//! ```
//! The texts themselves lie elsewhere, one after another. So a text costs no allocation of its own,
//! and a search that finds it reads its slot and the text alone.
//!
//! Slots are ordered by hashes. A table that doubles moves its slots from one end to the other.

use super::key_values::UNKNOWN;
use crate::buffer::{prefetch, reserve_huge};

/// A text that was met.
#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    /// [`UNKNOWN`] in a free slot.
    id: u32,
}

const FREE: Slot = Slot {
    hash: 0,
    id: UNKNOWN,
};

/// Slots that are looked at without a branch. Most texts are in one of them.
const NEAR_SLOTS: usize = 4;

/// Slots of the first table, as a power of two.
const SLOTS_MIN_BITS: u32 = 4;

/// The table. Their number of slots is zero or a power of two, at least half of them free.
#[derive(Default)]
pub(crate) struct TextIds {
    slots: Vec<Slot>,
    /// How far hashes are shifted to become a place among the slots, if there are any.
    shift: u32,
    taken: usize,
    /// Bits that hashes do not have.
    #[cfg(test)]
    pub(super) cleared: u32,
}

impl TextIds {
    /// The hash of a text.
    #[inline]
    pub(crate) fn hash(&self, text: &[u8]) -> u32 {
        let hash = (xxhash_rust::xxh3::xxh3_64(text) >> 32) as u32;
        #[cfg(test)]
        let hash = hash & !self.cleared;
        hash
    }

    /// Asks for the first slots of a hash, which [`Self::near`] reads.
    #[inline]
    pub(super) fn prefetch(&self, hash: u32) {
        // Without slots nothing is shifted away, and nothing is loaded.
        prefetch(&self.slots, (hash >> self.shift) as usize);
    }

    /// The id in one of the first slots of a hash that has this hash, or [`UNKNOWN`]. There are
    /// slots. It has no branches that depend on what it reads.
    #[inline]
    pub(super) fn near(&self, hash: u32) -> u32 {
        let mask = self.slots.len() - 1;
        let place = (hash >> self.shift) as usize;
        (0..NEAR_SLOTS).rev().fold(UNKNOWN, |found, next| {
            let slot = self.slots[(place + next) & mask];
            if slot.hash == hash { slot.id } else { found }
        })
    }

    /// Whether no text has an id.
    pub(super) fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// The id with this hash whose text is the one looked for, as the caller says; [`UNKNOWN`] if
    /// there is none.
    #[inline]
    pub(crate) fn find(&self, hash: u32, is_text: impl Fn(u32) -> bool) -> u32 {
        if self.slots.is_empty() {
            return UNKNOWN;
        }
        let mask = self.slots.len() - 1;
        let mut place = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[place];
            if slot.id == UNKNOWN || slot.hash == hash && is_text(slot.id) {
                return slot.id;
            }
            place = (place + 1) & mask;
        }
    }

    /// Adds the id of a text that is not there yet.
    pub(crate) fn insert(&mut self, hash: u32, id: u32) {
        if self.slots.len() <= self.taken * 2 {
            self.grow();
        }
        self.put(Slot { hash, id });
        self.taken += 1;
    }

    /// Doubles the slots.
    #[cold]
    fn grow(&mut self) {
        let bits = match self.slots.len() {
            0 => SLOTS_MIN_BITS,
            slots => slots.trailing_zeros() + 1,
        };
        let mut slots = Vec::new();
        reserve_huge(&mut slots, 1 << bits);
        slots.resize(1 << bits, FREE);
        let before = std::mem::replace(&mut self.slots, slots);
        self.shift = u32::BITS - bits;
        let taken = before.into_iter().filter(|slot| slot.id != UNKNOWN);
        taken.for_each(|slot| self.put(slot));
    }

    /// Writes to the first free slot for a hash.
    fn put(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut place = (slot.hash >> self.shift) as usize;
        while self.slots[place].id != UNKNOWN {
            place = (place + 1) & mask;
        }
        self.slots[place] = slot;
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_one_hash_are_told_apart() {
        let mut ids = TextIds::default();
        let texts = ["a", "b", "c", "d"];
        let hash = |text: &str| u32::from(text == "d");
        for round in 0..2 {
            for (id, text) in (0..).zip(texts) {
                let found = ids.find(hash(text), |id| texts[id as usize] == text);
                assert_eq!(found, if round == 0 { UNKNOWN } else { id });
                if round == 0 {
                    ids.insert(hash(text), id);
                }
            }
        }
        assert_eq!(ids.find(0, |_| false), UNKNOWN);
    }

    #[test]
    fn a_table_that_grows_keeps_all_ids() {
        let mut ids = TextIds::default();
        let text = |id: u32| format!("text {id}");
        for id in 0..5_000 {
            ids.insert(ids.hash(text(id).as_bytes()), id);
        }
        for id in 0..5_000 {
            let wanted = text(id);
            let hash = ids.hash(wanted.as_bytes());
            assert_eq!(ids.find(hash, |known| text(known) == wanted), id);
        }
        let hash = ids.hash(b"text 5000");
        assert_eq!(ids.find(hash, |known| text(known) == "text 5000"), UNKNOWN);
        assert!(ids.bytes() <= 16_384 * 8);
    }
}
