//! Tombstones: who deleted, updated or locked a row. They are a chain of pages with entries of fixed
//! size, to which entries are only appended.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 24 | 4 | magic `LTMB` |
//! | 28 | 4 | next page of the chain, 0 on the last |
//! | 32 | 8 | number of the page's first entry among all that the chain ever had |
//! | 40 | 32 each | entries, up to `pd_lower` |
//!
//! Entry: row (8), next version's row (8), xmax (4), cmax (4), kind (2), lock mode (2), flags (4).
//!
//! A sealing gives rows new numbers. The number of a tombstone tells whether it is older than the
//! sealing of the row that it names. If it is, it says nothing about the row that has this row number
//! now.
//!
//! A row may have many tombstones: of aborted transactions, of row locks, and at most one deletion that
//! counts. Whoever adds one holds the exclusive lock of the chain's last page, and has looked at all
//! tombstones of the row under that lock. So two transactions cannot both delete a row. Each backend
//! keeps a copy of what it has read of the chain ([`Tombstones`]), and reads on from there.

use std::cell::RefCell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use lanes_columnar::arena::{Position, RelationKey};

use super::extent;
use super::metapage::{self, META_BLOCK, Meta};
use super::part::Parts;
use crate::error;
use crate::pg::byte_change::ByteChange;
use crate::pg::page::{
    self, LockedPage, PageChange, get_u16, get_u32, get_u64, put_u16, put_u32, put_u64,
};
use crate::pg::ports::{BLCKSZ, CHECK_FOR_INTERRUPTS};
use crate::pg::table::OpenTable;

const MAGIC: u32 = u32::from_le_bytes(*b"LTMB");
const AT_MAGIC: usize = 24;
const AT_NEXT: usize = 28;
const AT_BASE_NUMBER: usize = 32;
const AT_ENTRIES: usize = 40;
const ENTRY_BYTES: usize = 32;
/// The number of relations whose tombstones a backend remembers. The least recently used ones are
/// forgotten first.
const CACHED_RELATIONS_MAX: usize = 64;

/// The meaning of a tombstone for its row.
pub mod kind {
    /// None: its transaction aborted, or its lock is over.
    pub const VOID: u16 = 0;
    pub const DELETE: u16 = 1;
    /// Deleted in favour of `next_row`.
    pub const UPDATE: u16 = 2;
    /// Locked in `mode` while `xmax` runs.
    pub const LOCK: u16 = 3;
}

/// The deletion counts for everybody.
pub const FLAG_FROZEN: u32 = 1;
/// The next version went to another partition.
pub const FLAG_MOVED: u32 = 2;

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstone {
    pub row: u64,
    pub next_row: u64,
    pub xmax: u32,
    pub cmax: u32,
    pub kind: u16,
    /// `LockTupleMode`.
    pub mode: u16,
    pub flags: u32,
}

impl Tombstone {
    /// Whether it takes the row away. Otherwise it locks the row, or says nothing.
    pub fn deletes(&self) -> bool {
        matches!(self.kind, kind::DELETE | kind::UPDATE)
    }

    /// Whether the deletion counts for everybody.
    pub fn is_frozen(&self) -> bool {
        self.flags & FLAG_FROZEN != 0
    }
}

/// Makes a page an empty tombstone page, whose first entry has this number.
pub fn initialise_page(bytes: &mut [u8], base_number: u64) {
    put_u32(bytes, AT_MAGIC, MAGIC);
    put_u32(bytes, AT_NEXT, 0);
    put_u64(bytes, AT_BASE_NUMBER, base_number);
    page::set_lower(bytes, AT_ENTRIES);
}

/// Entries on a tombstone page.
pub fn count(bytes: &[u8]) -> usize {
    let lower = page::lower(bytes);
    if get_u32(bytes, AT_MAGIC) != MAGIC || !(AT_ENTRIES..=BLCKSZ).contains(&lower) {
        error::corrupt("a tombstone page was expected");
    }
    (lower - AT_ENTRIES) / ENTRY_BYTES
}

/// The number of an entry of a tombstone page. For the place after the last entry it is the number
/// of the next tombstone.
pub fn number(bytes: &[u8], index: usize) -> u64 {
    get_u64(bytes, AT_BASE_NUMBER) + index as u64
}

/// One entry of a tombstone page.
pub fn entry(bytes: &[u8], index: usize) -> Tombstone {
    let entry = &bytes[AT_ENTRIES + index * ENTRY_BYTES..][..ENTRY_BYTES];
    Tombstone {
        row: get_u64(entry, 0),
        next_row: get_u64(entry, 8),
        xmax: get_u32(entry, 16),
        cmax: get_u32(entry, 20),
        kind: get_u16(entry, 24),
        mode: get_u16(entry, 26),
        flags: get_u32(entry, 28),
    }
}

/// Overwrites an entry.
pub fn set_entry(bytes: &mut [u8], index: usize, tombstone: &Tombstone) {
    bytes[AT_ENTRIES + index * ENTRY_BYTES..][..ENTRY_BYTES].copy_from_slice(&encode(tombstone));
}

/// The bytes of an entry.
fn encode(tombstone: &Tombstone) -> [u8; ENTRY_BYTES] {
    let mut entry = [0; ENTRY_BYTES];
    put_u64(&mut entry, 0, tombstone.row);
    put_u64(&mut entry, 8, tombstone.next_row);
    put_u32(&mut entry, 16, tombstone.xmax);
    put_u32(&mut entry, 20, tombstone.cmax);
    put_u16(&mut entry, 24, tombstone.kind);
    put_u16(&mut entry, 26, tombstone.mode);
    put_u32(&mut entry, 28, tombstone.flags);
    entry
}

/// The next page of the chain.
pub fn next(bytes: &[u8]) -> Option<u32> {
    Some(get_u32(bytes, AT_NEXT)).filter(|&next| next != 0)
}

/// Links the next page of the chain.
pub fn set_next(bytes: &mut [u8], block: u32) {
    put_u32(bytes, AT_NEXT, block);
}

/// Whether a table has no tombstones.
pub fn is_empty(table: OpenTable<'_>) -> bool {
    Meta::load(table).is_none_or(|meta| {
        let is_one_page = meta.tombstone_head == meta.tombstone_tail;
        is_one_page && count(LockedPage::share(table, meta.tombstone_head).bytes()) == 0
    })
}

/// The chain's last page, locked exclusively, so that nobody else can add a tombstone.
pub struct Tail {
    page: LockedPage,
}

impl Tail {
    pub fn lock(table: OpenTable<'_>, meta: &Meta) -> Tail {
        let mut block = meta.tombstone_tail;
        loop {
            let page = LockedPage::exclusive(table, block);
            // Checks, too, that it is a tombstone page.
            count(page.bytes());
            match next(page.bytes()) {
                Some(further) => block = further,
                None => return Tail { page },
            }
        }
    }

    /// Adds a tombstone to the chain and to this backend's copy of it.
    pub fn push(self, table: OpenTable<'_>, tombstone: &Tombstone, known: &RefCell<Tombstones>) {
        if let Some(at) = self.push_alone(table, tombstone) {
            known.borrow_mut().note(at, tombstone);
        }
    }

    /// Adds a tombstone. Returns its position if it is on the page that was the last one.
    pub fn push_alone(self, table: OpenTable<'_>, tombstone: &Tombstone) -> Option<Position> {
        let index = count(self.page.bytes());
        let at = AT_ENTRIES + index * ENTRY_BYTES;
        if at + ENTRY_BYTES <= BLCKSZ {
            let mut change = ByteChange::begin(table, &self.page);
            change.put(at, &encode(tombstone));
            let lower = (at + ENTRY_BYTES) as u16;
            change.put(page::AT_LOWER, &lower.to_ne_bytes());
            change.finish();
            let at = Position {
                block: self.page.block(),
                index: index as u32,
            };
            return Some(at);
        }
        let block = extent::allocate(table, 1).first;
        let fresh = LockedPage::zeroed(table, block);
        let meta = LockedPage::exclusive(table, META_BLOCK);
        let mut change = PageChange::begin(table);
        set_next(change.edit(&self.page), block);
        let bytes = change.create(&fresh);
        initialise_page(bytes, number(self.page.bytes(), index));
        append(bytes, tombstone);
        metapage::set_tombstone_tail(change.edit(&meta), block);
        change.finish();
        None
    }

    /// The number that the next tombstone will have.
    pub fn next_number(&self) -> u64 {
        number(self.page.bytes(), count(self.page.bytes()))
    }

    /// The page's block and bytes.
    pub fn content(&self) -> (u32, &[u8]) {
        (self.page.block(), self.page.bytes())
    }
}

fn append(bytes: &mut [u8], tombstone: &Tombstone) {
    let index = count(bytes);
    page::set_lower(bytes, AT_ENTRIES + (index + 1) * ENTRY_BYTES);
    set_entry(bytes, index, tombstone);
}

/// The tombstones of one row. Few rows have more than one.
enum OfRow {
    One(Tombstone),
    Several(Vec<Tombstone>),
}

impl OfRow {
    fn push(&mut self, tombstone: Tombstone) {
        match self {
            OfRow::One(first) => *self = OfRow::Several(vec![*first, tombstone]),
            OfRow::Several(list) => list.push(tombstone),
        }
    }

    fn as_slice(&self) -> &[Tombstone] {
        match self {
            OfRow::One(tombstone) => std::slice::from_ref(tombstone),
            OfRow::Several(list) => list,
        }
    }
}

/// Tombstones by their rows. Rows are mostly deleted in ascending order, so those of the last rows are a list.
#[derive(Default)]
struct ByRow {
    first: BTreeMap<u64, OfRow>,
    /// One for each row, ascending. The rows are greater than those of `first`.
    last: Vec<Tombstone>,
    /// Rows from this one on have none.
    end_row: u64,
}

impl ByRow {
    fn add(&mut self, tombstone: &Tombstone) {
        if tombstone.row >= self.end_row {
            self.end_row = tombstone.row + 1;
            self.last.push(*tombstone);
            return;
        }
        let last = self.last.drain(..);
        self.first.extend(last.map(|it| (it.row, OfRow::One(it))));
        match self.first.entry(tombstone.row) {
            Entry::Vacant(place) => {
                place.insert(OfRow::One(*tombstone));
            }
            Entry::Occupied(place) => place.into_mut().push(*tombstone),
        }
    }

    fn is_empty(&self) -> bool {
        self.first.is_empty() && self.last.is_empty()
    }

    fn of_row(&self, row: u64) -> &[Tombstone] {
        match self.last.first() {
            _ if row >= self.end_row => &[],
            Some(first) if row >= first.row => {
                let place = self.last.binary_search_by_key(&row, |it| it.row);
                place.map_or(&[], |place| std::slice::from_ref(&self.last[place]))
            }
            _ => self.first.get(&row).map_or(&[], OfRow::as_slice),
        }
    }

    fn range(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, &[Tombstone])> {
        let first = self.first.range(from..to);
        let first = first.map(|(row, list)| (*row, list.as_slice()));
        let place_of = |row| self.last.partition_point(|it| it.row < row);
        let last = &self.last[place_of(from)..place_of(to)];
        first.chain(last.iter().map(|it| (it.row, std::slice::from_ref(it))))
    }
}

/// This backend's copy of one relation's tombstones.
#[derive(Default)]
pub struct Tombstones {
    generation: u64,
    parts: Rc<Parts>,
    position: Position,
    by_row: ByRow,
    used: u64,
}

thread_local! {
    static CACHE: RefCell<HashMap<RelationKey, Rc<RefCell<Tombstones>>>> = RefCell::new(HashMap::new());
}

impl Tombstones {
    /// This backend's tombstones of the table, brought up to date.
    pub fn of(table: OpenTable<'_>, meta: &Meta) -> Rc<RefCell<Tombstones>> {
        let key = meta.key(table);
        let shared = CACHE.with_borrow_mut(|cache| {
            if cache.len() >= CACHED_RELATIONS_MAX
                && !cache.contains_key(&key)
                && let Some(oldest) = cache
                    .iter()
                    .min_by_key(|(_, t)| t.borrow().used)
                    .map(|(k, _)| *k)
            {
                cache.remove(&oldest);
            }
            // A scan in progress keeps the list of its own generation. A later list may lack
            // tombstones whose runs are dead by now, and the scan's copy of the directory may not
            // say so.
            if cache
                .get(&key)
                .is_none_or(|known| known.borrow().generation != meta.generation)
            {
                let fresh = Tombstones {
                    generation: meta.generation,
                    parts: Parts::of(table, meta),
                    ..Default::default()
                };
                cache.insert(key, Rc::new(RefCell::new(fresh)));
            }
            cache[&key].clone()
        });
        shared.borrow_mut().read_on(table, meta, None);
        shared
    }

    /// Reads the tombstones that were added since. If the caller has locked the last page, its
    /// bytes are used. Returns whether there were any.
    pub fn read_on(&mut self, table: OpenTable<'_>, meta: &Meta, tail: Option<&Tail>) -> bool {
        let before = self.position;
        self.used = USES.with(|uses| {
            uses.set(uses.get() + 1);
            uses.get()
        });
        let mut block = if self.position.block == 0 {
            meta.tombstone_head
        } else {
            self.position.block
        };
        let mut from = self.position.index as usize;
        loop {
            let next = match tail {
                Some(tail) if tail.content().0 == block => {
                    self.take(tail.content().1, from);
                    self.position = Position {
                        block,
                        index: count(tail.content().1) as u32,
                    };
                    None
                }
                _ => {
                    let page = LockedPage::share(table, block);
                    self.take(page.bytes(), from);
                    self.position = Position {
                        block,
                        index: count(page.bytes()) as u32,
                    };
                    next(page.bytes())
                }
            };
            match next {
                None => return self.position != before,
                Some(further) => {
                    block = further;
                    from = 0;
                }
            }
            if tail.is_none() {
                CHECK_FOR_INTERRUPTS();
            }
        }
    }

    /// Adds a tombstone that this backend has just added to the chain at a position, if all
    /// tombstones before it are known. The tombstone need not be read then. It names its row by the
    /// number that the row has now, so no [part](super::part::PartEntry::outlives) makes it void.
    fn note(&mut self, at: Position, tombstone: &Tombstone) {
        if self.position == at {
            self.position.index += 1;
            self.by_row.add(tombstone);
        }
    }

    fn take(&mut self, bytes: &[u8], from: usize) {
        for index in from..count(bytes) {
            let tombstone = entry(bytes, index);
            let is_outlived = self
                .parts
                .of_row(tombstone.row)
                .is_some_and(|part| part.outlives(number(bytes, index)));
            if tombstone.kind != kind::VOID && !is_outlived {
                self.by_row.add(&tombstone);
            }
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.by_row.is_empty()
    }

    /// The tombstones of one row, oldest first.
    pub fn of_row(&self, row: u64) -> &[Tombstone] {
        self.by_row.of_row(row)
    }

    /// All tombstones of the rows `[from, to)`, by row.
    pub fn range(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, &[Tombstone])> {
        self.by_row.range(from, to)
    }
}

thread_local! {
    static USES: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows in the order in which their tombstones come, and whether they are found as in a plain list.
    fn are_found(rows: &[u64]) {
        let mut by_row = ByRow::default();
        let mut plain: BTreeMap<u64, Vec<Tombstone>> = BTreeMap::new();
        for (number, &row) in (0..).zip(rows) {
            let tombstone = Tombstone {
                row,
                next_row: 0,
                xmax: number,
                cmax: 0,
                kind: kind::DELETE,
                mode: 0,
                flags: 0,
            };
            by_row.add(&tombstone);
            plain.entry(row).or_default().push(tombstone);
            for row in 0..12 {
                let list = plain.get(&row).map_or(&[][..], Vec::as_slice);
                assert_eq!(by_row.of_row(row), list, "{rows:?} at {row}");
                let found: Vec<_> = by_row.range(row.min(9), 9).collect();
                let wanted = plain.iter().filter(|(it, _)| (row..9).contains(it));
                let wanted: Vec<_> = wanted.map(|(it, list)| (*it, list.as_slice())).collect();
                assert_eq!(found, wanted, "{rows:?} from {row}");
            }
            assert!(!by_row.is_empty());
        }
    }

    #[test]
    fn tombstones_are_found_in_whatever_order_they_came() {
        are_found(&[1, 2, 5, 9, 10]);
        are_found(&[1, 2, 2, 3, 3, 8]);
        are_found(&[5, 7, 3, 8, 10, 7, 1, 11, 0, 11, 5]);
        are_found(&[10, 9, 8, 2, 1, 0]);
        assert!(ByRow::default().is_empty());
    }
}
