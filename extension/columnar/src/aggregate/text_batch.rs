//! Many texts that get their ids together.
//!
//! ```text
//! all hashes ──► all slots ──► places of texts with these hashes ──► texts
//! a text that is not found so ──► KeyValues::text
//! ```
//! Where a key has had many texts, nearly every access misses the cache. So each pass asks for what
//! the next one reads, and the processor waits for many of them at a time.

use std::ptr::null;

use super::key_values::{KeyValues, OwnedValue, UNKNOWN, payload};
use crate::buffer::{prefetch, prefetch_at};
use crate::vector::text::item_bytes;

/// Texts of one batch: few enough that what was read for them is still in the first cache.
pub(super) const TEXTS_MAX: usize = 128;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Rows with their texts, as items.
pub(super) struct TextBatch {
    items: [*const u8; TEXTS_MAX],
    rows: [u32; TEXTS_MAX],
    count: usize,
}

impl TextBatch {
    pub(super) fn new() -> TextBatch {
        TextBatch {
            items: [null(); TEXTS_MAX],
            rows: [0; TEXTS_MAX],
            count: 0,
        }
    }

    /// Adds a row. A batch that is full must be [ended](Self::end).
    ///
    /// # Safety
    /// `item` points to an item of a lane, until the batch is ended.
    #[inline]
    pub(super) unsafe fn push(&mut self, row: usize, item: *const u8) {
        // Many texts end in the next line.
        prefetch_at(item);
        prefetch_at(item.wrapping_add(LINE_BYTES));
        self.items[self.count] = item;
        self.rows[self.count] = row as u32;
        self.count += 1;
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.count == TEXTS_MAX
    }

    /// Tells the id of each row's text, in the order in which the rows were added. The batch is
    /// empty afterwards.
    pub(super) fn end(&mut self, values: &mut KeyValues, mut tell: impl FnMut(usize, u32)) {
        let count = std::mem::take(&mut self.count);
        let mut items: [&[u8]; TEXTS_MAX] = [&[]; TEXTS_MAX];
        for (item, &pointer) in items.iter_mut().zip(&self.items[..count]) {
            // SAFETY: `push` was given an item.
            *item = unsafe { item_bytes(pointer) };
        }
        let mut ids = [UNKNOWN; TEXTS_MAX];
        values.texts(&items[..count], &mut ids);
        let rows = self.rows[..count].iter().zip(ids);
        rows.for_each(|(row, id)| tell(*row as usize, id));
    }
}

impl KeyValues {
    /// The ids of at most [`TEXTS_MAX`] texts, given as items. New texts get ids in their order.
    fn texts(&mut self, texts: &[&[u8]], ids: &mut [u32; TEXTS_MAX]) {
        let mut hashes = [0; TEXTS_MAX];
        for (hash, item) in hashes.iter_mut().zip(texts) {
            *hash = self.texts.hash(payload(item));
            self.texts.prefetch(*hash);
        }
        if !self.texts.is_empty() {
            self.find_texts(texts, &hashes, ids);
        }
        for ((id, hash), item) in ids.iter_mut().zip(hashes).zip(texts) {
            if *id == UNKNOWN {
                *id = self.text_of_hash(hash, item);
            }
        }
    }

    /// The ids of texts that are near their first slots and have the same form of header there.
    fn find_texts(&self, texts: &[&[u8]], hashes: &[u32; TEXTS_MAX], ids: &mut [u32; TEXTS_MAX]) {
        for (id, &hash) in ids.iter_mut().zip(hashes).take(texts.len()) {
            *id = self.texts.near(hash);
            prefetch(&self.values, *id as usize);
        }
        let mut places = [0; TEXTS_MAX];
        for ((place, &id), item) in places.iter_mut().zip(&*ids).zip(texts) {
            if let Some(OwnedValue::Text { start, .. }) = self.values.get(id as usize) {
                *place = *start;
                prefetch(&self.items, *start);
                prefetch(&self.items, start + item.len() - 1);
            }
        }
        for ((id, place), item) in ids.iter_mut().zip(places).zip(texts) {
            let known = self.items.get(place..place + item.len());
            if known != Some(item) {
                *id = UNKNOWN;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::key_values::KeyValue;
    use super::*;
    use crate::test_support::cases;

    /// A text as an item, with a header of a byte if that is asked for and possible.
    fn item(text: &str, is_packed: bool) -> Vec<u8> {
        let header = match text.len() {
            ..=126 if is_packed => vec![(text.len() as u8 + 1) << 1 | 1],
            length => ((length as u32 + 4) << 2).to_le_bytes().to_vec(),
        };
        [&header, text.as_bytes()].concat()
    }

    /// Different texts of different numbers: an empty one, short ones, and some with beginnings,
    /// or ends, in common.
    fn text(number: u32) -> String {
        match number % 5 {
            0 if number == 0 => String::new(),
            0 => format!("{number}"),
            1 => format!("https://www.example.com/{number}"),
            2 => format!("{number}/and/a/common/end"),
            3 => format!("{number:_>7}"),
            _ => format!("{}{number}", "x".repeat(200)),
        }
    }

    proptest! {
        #![proptest_config(cases(100))]

        #[test]
        fn ids_are_those_of_a_map(
            batches in prop::collection::vec(
                prop::collection::vec((any::<u32>(), any::<bool>()), 0..=TEXTS_MAX), 1..40),
            spread in prop_oneof![1..20_u32, Just(1_000), Just(1_000_000)],
            null_before in 0..4_usize, closes in 0..60_usize,
            cleared in prop::sample::select(vec![0, 0, 0x00FF_FFFF, 0xF0FF_FFFF]),
        ) {
            let mut values = KeyValues::default();
            values.texts.cleared = cleared;
            let mut expected: HashMap<String, u32> = HashMap::new();
            for (index, batch) in batches.iter().enumerate() {
                if index == null_before {
                    values.null();
                }
                if index == closes {
                    values.close();
                }
                let texts: Vec<String> = batch.iter().map(|(number, _)| text(number % spread)).collect();
                let items: Vec<Vec<u8>> =
                    texts.iter().zip(batch).map(|(text, (_, is_packed))| item(text, *is_packed)).collect();
                let mut ids = TextBatch::new();
                for (row, item) in items.iter().enumerate() {
                    // SAFETY: the items live on.
                    unsafe { ids.push(row * 3, item.as_ptr()) };
                }
                prop_assert_eq!(ids.is_full(), batch.len() == TEXTS_MAX);
                let mut told = Vec::new();
                ids.end(&mut values, |row, id| told.push((row, id)));
                for (row, text) in texts.into_iter().enumerate() {
                    let next = expected.len() as u32 + u32::from(index >= null_before);
                    let id = match index >= closes {
                        true => expected.get(&text).copied().unwrap_or(UNKNOWN),
                        false => *expected.entry(text).or_insert(next),
                    };
                    prop_assert_eq!(told[row], (row * 3, id));
                }
            }
            for (text, id) in expected {
                let KeyValue::Text(item) = values.value(id) else {
                    panic!("a text");
                };
                prop_assert_eq!(payload(item), text.as_bytes());
            }
        }
    }

    #[test]
    fn long_texts_are_compared_to_their_ends() {
        let mut values = KeyValues::default();
        values.texts.cleared = u32::MAX;
        let long = "y".repeat(70_000);
        let texts = [
            format!("{long}a"),
            format!("{long}b"),
            format!("{long}a"),
            long,
        ];
        let items = texts.map(|text| item(&text, true));
        for _ in 0..2 {
            let mut batch = TextBatch::new();
            for (row, item) in items.iter().enumerate() {
                // SAFETY: the items live on.
                unsafe { batch.push(row, item.as_ptr()) };
            }
            let mut told = Vec::new();
            batch.end(&mut values, |_, id| told.push(id));
            assert_eq!(told, [0, 1, 0, 2]);
        }
    }
}
