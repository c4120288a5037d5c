//! Dictionary codes of text: items, and results that are kept from one dictionary to the next.
//!
//! An item is a complete varlena (see `kind`). Equal codes of one dictionary mean equal items, so a
//! result for an item is computed once for each dictionary. A segment's dictionary may begin as a
//! copy of the one before it: the results for the common codes are then kept.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::lane::DictionaryView;

/// Loads a word of a bitmap that a writer may be extending.
///
/// # Safety
/// `words` is aligned and readable up to `index`.
#[inline]
pub unsafe fn load_word(words: *const u64, index: usize) -> u64 {
    // SAFETY: the caller vouches for the word; it is only ever written by whole atomic stores.
    unsafe { AtomicU64::from_ptr(words.add(index).cast_mut()) }.load(Ordering::Relaxed)
}

/// The bytes of an item, header included.
///
/// # Safety
/// `item` points to an item of a lane.
#[inline]
pub unsafe fn item_bytes<'a>(item: *const u8) -> &'a [u8] {
    // SAFETY: this function's contract; headers are PostgreSQL's, little-endian, never compressed
    // or out of line.
    unsafe {
        let first = *item;
        let length = if first & 1 == 1 {
            usize::from(first >> 1)
        } else {
            (item.cast::<u32>().read_unaligned() >> 2) as usize
        };
        std::slice::from_raw_parts(item, length)
    }
}

/// The payload of an item, without its header.
///
/// # Safety
/// As for [`item_bytes`].
#[inline]
pub unsafe fn item_payload<'a>(item: *const u8) -> &'a [u8] {
    // SAFETY: this function's contract.
    unsafe {
        let bytes = item_bytes(item);
        &bytes[if *item & 1 == 1 { 1 } else { 4 }..]
    }
}

/// An item of a lane, as code outside of this crate sees it.
///
/// Invariant: the pointer leads to an item, which stays as it is for the lifetime.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Item<'a>(*const u8, PhantomData<&'a [u8]>);

impl<'a> Item<'a> {
    /// The item without a payload: its header is its only byte.
    const EMPTY: Item<'static> = {
        const HEADER: &[u8] = &[1 << 1 | 1];
        Item(HEADER.as_ptr(), PhantomData)
    };

    /// The item at an address.
    ///
    /// # Safety
    /// `item` points to an item of a lane, which stays as it is for the lifetime.
    #[inline]
    pub(crate) unsafe fn new(item: *const u8) -> Item<'a> {
        Item(item, PhantomData)
    }

    /// The item with which some bytes begin.
    ///
    /// # Panics
    /// If the bytes end before the item does.
    pub(super) fn first_of(bytes: &'a [u8]) -> Item<'a> {
        let header = match bytes {
            [first, ..] if first & 1 == 1 => 1,
            _ => 4,
        };
        assert!(bytes.len() >= header, "an item without a header");
        let item = Item(bytes.as_ptr(), PhantomData);
        // SAFETY: the header is within the bytes. The length is compared before a byte is read.
        let length = unsafe { item_bytes(item.0) }.len();
        assert!(
            (header..=bytes.len()).contains(&length),
            "an item is cut off"
        );
        item
    }

    /// The address of the item, whose bytes stay as they are for the lifetime.
    #[inline]
    pub fn as_ptr(self) -> *const u8 {
        self.0
    }

    /// The payload, without the header.
    #[inline]
    pub fn payload(self) -> &'a [u8] {
        // SAFETY: the invariant of this type.
        unsafe { item_payload(self.0) }
    }
}

/// A result for each code of the current dictionary.
pub struct CodeMemo<T> {
    instance: u64,
    known: Vec<Option<T>>,
    /// The number of codes without a result.
    unknown: usize,
    /// The number of leading codes whose result is found to be the code itself.
    identical: usize,
}

impl<T> Default for CodeMemo<T> {
    fn default() -> Self {
        CodeMemo {
            instance: 0,
            known: Vec::new(),
            unknown: 0,
            identical: 0,
        }
    }
}

impl CodeMemo<u32> {
    /// Whether every code has a result, and the result is the code itself. This holds for ids that
    /// were assigned in the order in which a first dictionary received its items.
    pub fn is_identity(&mut self) -> bool {
        while self.known.get(self.identical) == Some(&Some(self.identical as u32)) {
            self.identical += 1;
        }
        self.identical == self.known.len()
    }
}

impl<T: Copy> CodeMemo<T> {
    /// Goes on to another dictionary, keeping what holds there too. True if nothing changed since
    /// the last call.
    pub fn enter(&mut self, dictionary: &DictionaryView) -> bool {
        let items = dictionary.items as usize;
        if dictionary.instance != 0 && dictionary.instance == self.instance {
            let unchanged = self.known.len() >= items;
            self.grow(items);
            return unchanged;
        }
        let kept = if dictionary.parent != 0 && dictionary.parent == self.instance {
            (dictionary.inherited as usize).min(self.known.len())
        } else {
            0
        };
        self.known.truncate(kept);
        self.identical = self.identical.min(kept);
        self.unknown = self.known.iter().filter(|known| known.is_none()).count();
        self.grow(items);
        self.instance = dictionary.instance;
        false
    }

    fn grow(&mut self, items: usize) {
        if items > self.known.len() {
            self.unknown += items - self.known.len();
            self.known.resize(items, None);
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.known.capacity() * size_of::<Option<T>>()
    }

    /// The codes without a result.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = u32> + '_ {
        let known = self.known.iter().enumerate();
        known.filter_map(|(code, known)| known.is_none().then_some(code as u32))
    }

    /// The number of codes without a result.
    pub(crate) fn count_unknown(&self) -> usize {
        self.unknown
    }

    /// The results of all codes, if every code has one.
    pub fn complete(&self) -> Option<&[Option<T>]> {
        (self.unknown == 0).then_some(&self.known[..])
    }

    /// The result of a code, if there is one.
    pub fn known(&self, code: u32) -> Option<T> {
        self.known.get(code as usize).copied().flatten()
    }

    /// The result of a code, which is computed if there is none.
    #[inline]
    pub fn get(&mut self, code: u32, find_out: impl FnOnce() -> T) -> T {
        let index = code as usize;
        self.grow(index + 1);
        match self.known[index] {
            Some(known) => known,
            None => {
                let known = find_out();
                self.known[index] = Some(known);
                self.unknown -= 1;
                known
            }
        }
    }

    /// Keeps the result of a code, which may have it already.
    #[inline]
    pub fn learn(&mut self, code: u32, known: T) {
        self.get(code, || known);
    }

    /// Replaces the result of a code that has one.
    pub fn set(&mut self, code: u32, known: T) {
        self.known[code as usize] = Some(known);
    }
}

/// A test on a text.
pub trait TextTest {
    /// Whether the test may raise an error. It is then evaluated only for items of selected rows.
    fn may_fail(&self) -> bool {
        false
    }

    /// Whether it holds for an item.
    fn holds(&mut self, item: Item<'_>) -> bool;

    /// Tests many items at once.
    fn hold(&mut self, items: &[Item<'_>], found: &mut [bool]) {
        for (item, found) in items.iter().zip(found) {
            *found = self.holds(*item);
        }
    }
}

/// Items that are tested together, with their owners.
pub(super) struct Asked<'a, T> {
    items: [Item<'a>; ASKED_MAX],
    owners: [T; ASKED_MAX],
    count: usize,
}

/// The number of items that are tested together.
const ASKED_MAX: usize = 128;

impl<'a, T: Copy + Default> Asked<'a, T> {
    pub(super) fn new() -> Asked<'a, T> {
        Asked {
            items: [Item::EMPTY; ASKED_MAX],
            owners: [T::default(); ASKED_MAX],
            count: 0,
        }
    }

    /// Adds an item. When the batch is full, tests it and passes each result to `tell`.
    pub(super) fn add(
        &mut self,
        item: Item<'a>,
        owner: T,
        test: &mut dyn TextTest,
        tell: impl FnMut(T, bool),
    ) {
        (self.items[self.count], self.owners[self.count]) = (item, owner);
        self.count += 1;
        if self.count == ASKED_MAX {
            self.finish(test, tell);
        }
    }

    /// Tests the items added since the last test.
    pub(super) fn finish(&mut self, test: &mut dyn TextTest, mut tell: impl FnMut(T, bool)) {
        let mut found = [false; ASKED_MAX];
        let count = std::mem::take(&mut self.count);
        test.hold(&self.items[..count], &mut found[..count]);
        for (owner, found) in self.owners[..count].iter().zip(found) {
            tell(*owner, found);
        }
    }
}

/// Equality with one of some payloads, byte by byte.
pub struct OneOf {
    payloads: Vec<Box<[u8]>>,
}

impl OneOf {
    /// Equal to any of these.
    pub fn new(payloads: Vec<Box<[u8]>>) -> OneOf {
        OneOf { payloads }
    }
}

impl TextTest for OneOf {
    fn holds(&mut self, item: Item<'_>) -> bool {
        let payload = item.payload();
        self.payloads.iter().any(|wanted| **wanted == *payload)
    }
}
