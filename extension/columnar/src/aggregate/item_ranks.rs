//! The ranks of texts: their places in an order, as numbers.
//!
//! ```text
//! a dictionary's texts ──► ids, as of texts of earlier dictionaries ──► new ones take their places in the order
//!                                                     code of a row ──► rank of its text
//! ```
//! So two texts are compared once, whatever rows have them. A rank is a place among the texts that are known so far.
//! When new texts come, the ranks of the others move.

use super::text_ids::TextIds;
use crate::lane::DictionaryView;
use crate::order::ItemSort;
use crate::vector::text::{CodeMemo, Item, item_bytes};

/// The most texts that are known, and the most bytes of them.
const TEXTS_MAX: usize = 1 << 14;
const BYTES_MAX: usize = 4 << 20;
/// Bytes of memory that a text takes beside its own.
const TEXT_BYTES: usize = 32;

/// Texts that are different if their bytes are, in an order that tells all of them apart.
pub(super) struct ItemRanks {
    sort: ItemSort,
    ids: TextIds,
    /// The texts as items, by id.
    items: Vec<Box<[u8]>>,
    item_bytes: usize,
    /// The ids in the order of their texts.
    order: Vec<u32>,
    /// The ids of the codes of the current dictionary.
    of_codes: CodeMemo<u32>,
    /// Their ranks, if all codes have one.
    by_code: Vec<i32>,
}

/// What a dictionary has changed.
pub(super) enum Entered {
    /// Nothing: the ranks are those of before.
    Same,
    /// The ranks of the texts that were known. The place in the list is the rank of before.
    Moved(Vec<i32>),
    /// The dictionary's texts are too many to be given ranks.
    Refused,
}

impl ItemRanks {
    /// No text yet.
    pub(super) fn new(sort: ItemSort) -> ItemRanks {
        ItemRanks {
            sort,
            ids: TextIds::default(),
            items: Vec::new(),
            item_bytes: 0,
            order: Vec::new(),
            of_codes: CodeMemo::default(),
            by_code: Vec::new(),
        }
    }

    /// Goes on to a dictionary, whose texts `item` returns by code. With them, so many texts may be known at most.
    pub(super) fn enter<'a>(
        &mut self,
        dictionary: &DictionaryView,
        item: impl Fn(u32) -> Item<'a>,
        most: usize,
    ) -> Entered {
        if self.of_codes.enter(dictionary) && self.of_codes.count_unknown() == 0 {
            return Entered::Same;
        }
        let count = self.items.len() + self.of_codes.count_unknown();
        if count > most.min(TEXTS_MAX) {
            return Entered::Refused;
        }
        let unknown: Vec<u32> = self.of_codes.unknown().collect();
        let bytes = unknown.iter().map(|code| item(*code).payload().len());
        if self.item_bytes + bytes.sum::<usize>() > BYTES_MAX {
            return Entered::Refused;
        }
        for code in unknown {
            let id = self.id(item(code));
            self.of_codes.learn(code, id);
        }
        let moved = self.place_new();
        let mut ranks = vec![0; self.order.len()];
        for (rank, id) in self.order.iter().enumerate() {
            ranks[*id as usize] = rank as i32;
        }
        let ids = self.of_codes.complete().unwrap_or_default();
        self.by_code.clear();
        let rank = |id: &Option<u32>| id.map_or(0, |id| ranks[id as usize]);
        self.by_code.extend(ids.iter().map(rank));
        moved.map_or(Entered::Same, Entered::Moved)
    }

    /// The id of a text, which is a new one for a new text.
    fn id(&mut self, item: Item<'_>) -> u32 {
        let payload = item.payload();
        let hash = self.ids.hash(payload);
        let items = &self.items;
        let is_text = |id: u32| payload_of(&items[id as usize]) == payload;
        let known = self.ids.find(hash, is_text);
        if known != super::key_values::UNKNOWN {
            return known;
        }
        let id = self.items.len() as u32;
        self.ids.insert(hash, id);
        // SAFETY: an item, as its type promises.
        self.items.push(unsafe { item_bytes(item.as_ptr()) }.into());
        self.item_bytes += payload.len();
        id
    }

    /// Gives the new texts their places in the order, and returns the new ranks of the others; `None` if they keep
    /// theirs.
    fn place_new(&mut self) -> Option<Vec<i32>> {
        let known = self.order.len();
        let mut new: Vec<u32> = (known as u32..self.items.len() as u32).collect();
        if new.is_empty() {
            return None;
        }
        let (sort, items) = (self.sort, &self.items);
        let counted = |id: u32| sort.counted(payload_of(&items[id as usize]));
        new.sort_by(|a, b| sort.compare(counted(*a), counted(*b)));
        let mut moved = Vec::with_capacity(known);
        let mut order = Vec::with_capacity(items.len());
        let mut rest = &self.order[..];
        for id in new {
            let before =
                rest.partition_point(|other| sort.compare(counted(*other), counted(id)).is_lt());
            let (first, others) = rest.split_at(before);
            moved.extend((order.len() as i32..).take(before));
            order.extend_from_slice(first);
            order.push(id);
            rest = others;
        }
        moved.extend((order.len() as i32..).take(rest.len()));
        order.extend_from_slice(rest);
        self.order = order;
        Some(moved)
    }

    /// The ranks of the current dictionary's codes.
    pub(super) fn by_code(&self) -> &[i32] {
        &self.by_code
    }

    /// The text of a rank as an item.
    pub(super) fn item(&self, rank: i32) -> &[u8] {
        &self.items[self.order[rank as usize] as usize]
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        let texts = self.items.len() * TEXT_BYTES + self.item_bytes;
        texts + self.ids.bytes() + self.of_codes.bytes() + self.by_code.capacity() * 4
    }
}

/// The text of an item.
fn payload_of(item: &[u8]) -> &[u8] {
    super::key_values::payload(item)
}
