//! Text or bytes being collected: dictionary-coded while that pays, else plain.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

use crate::limits::DICTIONARY_ITEMS_FLOOR;
use crate::vector::Codes;
use crate::{ItemsSource, Values};

/// A dictionary is written out while collecting only if that takes no more than this many times its
/// own bytes. A few bytes of codes for one long item would come to a gigabyte.
const EXPANSION_MAX: u64 = 4;

/// The items of a column, one for each row.
///
/// The column begins as a dictionary. When the dictionary has more than [`DICTIONARY_ITEMS_FLOOR`]
/// items and more than half as many as there are rows, hashing no longer pays. The column then
/// continues plain, unless its items would be [`EXPANSION_MAX`] times as long. A column that ends
/// as a dictionary is sent in the smaller of the two forms.
#[derive(Debug, Default)]
pub(crate) struct ItemBuffer {
    hasher: DefaultHashBuilder,
    /// Codes by the hash of their items.
    codes_by_item: HashTable<u32>,
    item_ends: Vec<u32>,
    item_bytes: Vec<u8>,
    /// One code a row, while a dictionary.
    codes: Vec<u32>,
    is_plain: bool,
    /// One end a row, once plain.
    ends: Vec<u32>,
    bytes: Vec<u8>,
    /// Bytes of all rows' items.
    bytes_total: u64,
    /// Codes here of another dictionary's codes; kept for its memory.
    translated: Vec<u32>,
}

fn item_length(ends: &[u32], item: usize) -> u64 {
    let start = if item == 0 { 0 } else { ends[item - 1] };
    u64::from(ends[item] - start)
}

fn item_at<'b>(ends: &[u32], bytes: &'b [u8], item: usize) -> &'b [u8] {
    let start = if item == 0 { 0 } else { ends[item - 1] };
    &bytes[start as usize..ends[item] as usize]
}

impl ItemBuffer {
    pub(crate) fn rows(&self) -> usize {
        if self.is_plain {
            self.ends.len()
        } else {
            self.codes.len()
        }
    }

    /// Bytes of all rows' items; the caller keeps them below [`crate::limits::BATCH_BYTES_MAX`], so
    /// that ends fit `u32`.
    pub(crate) fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    pub(crate) fn clear(&mut self) {
        self.codes_by_item.clear();
        self.item_ends.clear();
        self.item_bytes.clear();
        self.codes.clear();
        self.is_plain = false;
        self.ends.clear();
        self.bytes.clear();
        self.bytes_total = 0;
    }

    pub(crate) fn push(&mut self, item: &[u8]) {
        self.bytes_total += item.len() as u64;
        if self.is_plain {
            self.bytes.extend_from_slice(item);
            self.ends.push(self.bytes.len() as u32);
            return;
        }
        let code = self.code_of(item);
        self.codes.push(code);
        self.give_up_if_it_does_not_pay();
    }

    fn give_up_if_it_does_not_pay(&mut self) {
        let items = self.item_ends.len();
        let dictionary_bytes = 4 * self.codes.len() as u64 + self.item_bytes.len() as u64;
        if items > DICTIONARY_ITEMS_FLOOR
            && items > self.codes.len() / 2
            && self.bytes_total <= EXPANSION_MAX * dictionary_bytes
        {
            self.expand();
            self.is_plain = true;
        }
    }

    /// Whether appending a verified column would write out its dictionary here, to many times its
    /// bytes.
    pub(crate) fn would_multiply(&self, values: &Values<'_>) -> bool {
        let Values::Codes { codes, items } = values else {
            return false;
        };
        if !self.is_plain {
            return false;
        }
        let length = |row| items.get(codes.get(row) as usize).len() as u64;
        let written_out: u64 = (0..codes.len()).map(length).sum();
        let dictionary_bytes = 4 * codes.len() as u64 + items.bytes_total() as u64;
        written_out > EXPANSION_MAX * dictionary_bytes
    }

    /// Appends all rows of a verified column. A dictionary is looked up once an item, not once a
    /// row.
    pub(crate) fn append(&mut self, values: &Values<'_>) {
        match values {
            Values::Codes { codes, items } if !self.is_plain && items.len() <= codes.len() => {
                let mut translated = std::mem::take(&mut self.translated);
                translated.clear();
                translated.extend(items.iter().map(|item| self.code_of(item)));
                let from = self.codes.len();
                let codes_of = |code: u32| translated[code as usize];
                match codes {
                    Codes::U8(codes) => self
                        .codes
                        .extend(codes.iter().map(|code| codes_of((*code).into()))),
                    _ => self
                        .codes
                        .extend((0..codes.len()).map(|row| codes_of(codes.get(row)))),
                }
                self.bytes_total += self.codes[from..]
                    .iter()
                    .map(|code| item_length(&self.item_ends, *code as usize))
                    .sum::<u64>();
                self.translated = translated;
                self.give_up_if_it_does_not_pay();
            }
            Values::Codes { codes, items } => {
                for row in 0..codes.len() {
                    self.push(items.get(codes.get(row) as usize));
                }
            }
            Values::Items(items) => items.iter().for_each(|item| self.push(item)),
            Values::Bool(_) | Values::Fixed { .. } => {}
        }
    }

    /// Appends a row without an item. Its code must be valid nevertheless, because the reader
    /// checks the codes of NULL rows too.
    pub(crate) fn push_null(&mut self) {
        self.push(&[]);
    }

    fn code_of(&mut self, item: &[u8]) -> u32 {
        let ItemBuffer {
            hasher,
            codes_by_item,
            item_ends,
            item_bytes,
            ..
        } = self;
        let found = codes_by_item.entry(
            hasher.hash_one(item),
            |code| item_at(item_ends, item_bytes, *code as usize) == item,
            |code| hasher.hash_one(item_at(item_ends, item_bytes, *code as usize)),
        );
        match found {
            hashbrown::hash_table::Entry::Occupied(entry) => *entry.get(),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let code = item_ends.len() as u32;
                entry.insert(code);
                item_bytes.extend_from_slice(item);
                item_ends.push(item_bytes.len() as u32);
                code
            }
        }
    }

    /// Fills `ends` and `bytes` from the dictionary.
    fn expand(&mut self) {
        self.ends.clear();
        self.bytes.clear();
        self.ends.reserve(self.codes.len());
        self.bytes.reserve(self.bytes_total as usize);
        for code in &self.codes {
            let item = item_at(&self.item_ends, &self.item_bytes, *code as usize);
            self.bytes.extend_from_slice(item);
            self.ends.push(self.bytes.len() as u32);
        }
    }

    /// Readies [`Self::source`]: chooses the smaller form.
    pub(crate) fn prepare(&mut self) {
        if !self.is_plain && !self.dictionary_pays() {
            self.expand();
        }
    }

    fn dictionary_pays(&self) -> bool {
        let code_bytes = match self.item_ends.len() {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        };
        let dictionary =
            self.codes.len() * code_bytes + self.item_ends.len() * 4 + self.item_bytes.len();
        (dictionary as u64) < self.codes.len() as u64 * 4 + self.bytes_total
    }

    /// The items; [`Self::prepare`] comes first.
    pub(crate) fn source(&self) -> ItemsSource<'_> {
        if self.is_plain || !self.dictionary_pays() {
            ItemsSource::Plain {
                ends: &self.ends,
                bytes: &self.bytes,
            }
        } else {
            ItemsSource::Dictionary {
                codes: &self.codes,
                item_ends: &self.item_ends,
                item_bytes: &self.item_bytes,
            }
        }
    }
}
