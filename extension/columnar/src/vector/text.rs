//! Dictionary codes of text: items, and results that are kept from one dictionary to the next.
//!
//! An item is a complete varlena (see `kind`). Equal codes of one dictionary mean equal items, so a
//! result for an item is computed once for each dictionary. A segment's dictionary may begin as a
//! copy of the one before it: the results for the common codes are then kept.

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
    ///
    /// # Safety
    /// `item` points to an item of a lane.
    unsafe fn holds(&mut self, item: *const u8) -> bool;

    /// Tests many items at once.
    ///
    /// # Safety
    /// As for [`TextTest::holds`].
    unsafe fn hold(&mut self, items: &[*const u8], found: &mut [bool]) {
        for (item, found) in items.iter().zip(found) {
            // SAFETY: this function's contract.
            *found = unsafe { self.holds(*item) };
        }
    }
}

/// Items that are tested together, with their owners.
pub(super) struct Asked<T> {
    items: [*const u8; ASKED_MAX],
    owners: [T; ASKED_MAX],
    count: usize,
}

/// The number of items that are tested together.
const ASKED_MAX: usize = 128;

impl<T: Copy + Default> Asked<T> {
    pub(super) fn new() -> Asked<T> {
        Asked {
            items: [std::ptr::null(); ASKED_MAX],
            owners: [T::default(); ASKED_MAX],
            count: 0,
        }
    }

    /// Adds an item. When the batch is full, tests it and passes each result to `tell`.
    ///
    /// # Safety
    /// As for [`TextTest::holds`], until [`Asked::finish`].
    pub(super) unsafe fn add(
        &mut self,
        item: *const u8,
        owner: T,
        test: &mut dyn TextTest,
        tell: impl FnMut(T, bool),
    ) {
        (self.items[self.count], self.owners[self.count]) = (item, owner);
        self.count += 1;
        if self.count == ASKED_MAX {
            // SAFETY: this function's contract.
            unsafe { self.finish(test, tell) };
        }
    }

    /// Tests the items added since the last test.
    ///
    /// # Safety
    /// As for [`Asked::add`].
    pub(super) unsafe fn finish(&mut self, test: &mut dyn TextTest, mut tell: impl FnMut(T, bool)) {
        let mut found = [false; ASKED_MAX];
        let count = std::mem::take(&mut self.count);
        // SAFETY: this function's contract.
        unsafe { test.hold(&self.items[..count], &mut found[..count]) };
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
    unsafe fn holds(&mut self, item: *const u8) -> bool {
        // SAFETY: this function's contract.
        let payload = unsafe { item_payload(item) };
        self.payloads.iter().any(|wanted| **wanted == *payload)
    }
}
