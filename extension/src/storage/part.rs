//! Parts: the sealed ranges of rows and their places. They are a chain of pages with entries of fixed
//! size, in the order in which they were added.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 24 | 4 | magic `LPRT` |
//! | 28 | 4 | next page of the chain, 0 on the last |
//! | 32 | 64 each | entries, up to `pd_lower` |
//!
//! | bytes of an entry | field |
//! |---|---|
//! | 8 | first row |
//! | 8 | row after the last |
//! | 8 | rows kept |
//! | 8 | number of the next tombstone at the time of sealing |
//! | 8 | origin |
//! | 8 | number |
//! | 4, 4 | first block of its stream, and bytes of it; the stream contains its index ([`super::part_image`]) |
//! | 4 | xid |
//! | 4 | flags |
//!
//! The *number* is the table's generation at which the entry was added. No two parts of a table have
//! one number. The *origin* is the number of the part in which the rows got their present row numbers
//! and images.
//!
//! A part takes the place of all runs within its range, and of all parts within it that were added
//! before. Everybody sees its rows. A part without an index has no rows: its range was dropped.
//!
//! A *remote* part replaces a local part with the same range, rows, tombstones and origin. Only the
//! images have moved, to object storage, under keys made of the origin ([`crate::remote`]). Its index
//! stays in the file, so its zones rule out segments as before.
//!
//! A *fading* part has the rows that `dedup` took out of a range. One record adds it together with the
//! part of the rows that stay, which comes after it. Only snapshots for which `xid` is in progress see
//! its rows: they were taken before the sealing, and saw these rows already. Once no such snapshot is
//! left, sealing drops the range of the fading part.
//!
//! A *mapped* part belongs to a table with indexes. Index entries name its rows by the numbers with
//! which the rows were inserted, and its place map says where these rows lie now. Sealing takes whole
//! runs and parts, so their entry numbers fill the range of the new part.
//!
//! `xid` is the next transaction id at the time of sealing. A scan that began before the sealing reads
//! the runs that the part replaced, and its snapshot is at least as old as `xid`. Once no such snapshot
//! is left, VACUUM *settles* the part: it flags the covered runs and parts as dead, voids the
//! tombstones that are older than the numbers of the rows, and sets `xid` to 0.

use lanes_columnar::arena::RunEntry;

use super::metapage::Meta;
use crate::error;
use crate::pg::page::{self, LockedPage, get_u32, get_u64, put_u32, put_u64};
use crate::pg::ports::{BLCKSZ, CHECK_FOR_INTERRUPTS};
use crate::pg::table::OpenTable;

mod live;

pub use live::{LivePart, Parts, known_index};

const MAGIC: u32 = u32::from_le_bytes(*b"LPRT");
const AT_MAGIC: usize = 24;
const AT_NEXT: usize = 28;
const AT_ENTRIES: usize = 32;
const ENTRY_BYTES: usize = 64;

/// A later part that is settled covers this one, or this one is settled and has no rows. Its entry
/// says nothing any more.
pub const FLAG_DEAD: u32 = 1;
/// The images of its segments are in object storage.
pub const FLAG_REMOTE: u32 = 2;
/// The last bytes of its images lie with its index ([`super::part_image`]).
pub const FLAG_PACKED: u32 = 4;
/// Only snapshots for which its `xid` is in progress see its rows.
pub const FLAG_FADING: u32 = 8;
/// Its stream ends with a place map ([`lanes_columnar::place_map`]). Without a map, each row lies
/// at its entry number.
pub const FLAG_MAPPED: u32 = 16;

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartEntry {
    pub first_row: u64,
    pub end_row: u64,
    pub rows: u64,
    pub next_tombstone: u64,
    pub origin: u64,
    pub number: u64,
    pub block: u32,
    pub bytes: u32,
    pub xid: u32,
    pub flags: u32,
}

impl PartEntry {
    fn covers(&self, row: u64) -> bool {
        self.first_row <= row && row < self.end_row
    }

    /// Whether the images of its segments are in object storage.
    pub fn is_remote(&self) -> bool {
        self.flags & FLAG_REMOTE != 0
    }

    /// Whether the last bytes of its images lie with its index.
    pub fn is_packed(&self) -> bool {
        self.flags & FLAG_PACKED != 0
    }

    /// Whether its stream ends with a place map.
    pub fn is_mapped(&self) -> bool {
        self.flags & FLAG_MAPPED != 0
    }

    /// Whether only snapshots for which its `xid` is in progress see its rows.
    pub fn is_fading(&self) -> bool {
        self.flags & FLAG_FADING != 0
    }

    /// Whether a tombstone with this number is older than the numbers of the rows.
    pub fn outlives(&self, tombstone: u64) -> bool {
        tombstone < self.next_tombstone
    }
}

/// Makes a page an empty page of parts.
pub fn initialise_page(bytes: &mut [u8]) {
    put_u32(bytes, AT_MAGIC, MAGIC);
    put_u32(bytes, AT_NEXT, 0);
    page::set_lower(bytes, AT_ENTRIES);
}

/// The entries on a page of parts; `None`: the page has another content by now.
fn try_count(bytes: &[u8]) -> Option<usize> {
    let is_sound =
        get_u32(bytes, AT_MAGIC) == MAGIC && (AT_ENTRIES..=BLCKSZ).contains(&page::lower(bytes));
    is_sound.then(|| entries_within(bytes))
}

/// The entries on a page that is known to be a page of parts.
fn entries_within(bytes: &[u8]) -> usize {
    (page::lower(bytes) - AT_ENTRIES) / ENTRY_BYTES
}

/// Entries on a page of parts.
pub fn count(bytes: &[u8]) -> usize {
    try_count(bytes).unwrap_or_else(|| error::corrupt("a page of parts was expected"))
}

/// One entry of a page of parts.
pub fn entry(bytes: &[u8], index: usize) -> PartEntry {
    let entry = &bytes[AT_ENTRIES + index * ENTRY_BYTES..][..ENTRY_BYTES];
    PartEntry {
        first_row: get_u64(entry, 0),
        end_row: get_u64(entry, 8),
        rows: get_u64(entry, 16),
        next_tombstone: get_u64(entry, 24),
        origin: get_u64(entry, 32),
        number: get_u64(entry, 40),
        block: get_u32(entry, 48),
        bytes: get_u32(entry, 52),
        xid: get_u32(entry, 56),
        flags: get_u32(entry, 60),
    }
}

/// Overwrites an entry.
pub fn set_entry(bytes: &mut [u8], index: usize, part: &PartEntry) {
    let entry = &mut bytes[AT_ENTRIES + index * ENTRY_BYTES..][..ENTRY_BYTES];
    put_u64(entry, 0, part.first_row);
    put_u64(entry, 8, part.end_row);
    put_u64(entry, 16, part.rows);
    put_u64(entry, 24, part.next_tombstone);
    put_u64(entry, 32, part.origin);
    put_u64(entry, 40, part.number);
    put_u32(entry, 48, part.block);
    put_u32(entry, 52, part.bytes);
    put_u32(entry, 56, part.xid);
    put_u32(entry, 60, part.flags);
}

/// Whether a page of parts has room for `entries` more entries.
pub fn has_room(bytes: &[u8], more: usize) -> bool {
    AT_ENTRIES + (entries_within(bytes) + more) * ENTRY_BYTES <= BLCKSZ
}

/// Appends an entry to a page of parts that has room.
pub fn push(bytes: &mut [u8], part: &PartEntry) {
    let index = entries_within(bytes);
    page::set_lower(bytes, AT_ENTRIES + (index + 1) * ENTRY_BYTES);
    set_entry(bytes, index, part);
}

/// The next page of the chain.
pub fn next(bytes: &[u8]) -> Option<u32> {
    Some(get_u32(bytes, AT_NEXT)).filter(|&next| next != 0)
}

/// Links the next page of the chain.
pub fn set_next(bytes: &mut [u8], block: u32) {
    put_u32(bytes, AT_NEXT, block);
}

/// Calls `visit` with each page of the chain: its block, and its entries.
pub fn walk(table: OpenTable<'_>, meta: &Meta, mut visit: impl FnMut(u32, &[PartEntry])) {
    let mut at = Some(meta.part_head).filter(|&head| head != 0);
    while let Some(block) = at {
        let page = LockedPage::share(table, block);
        let bytes = page.bytes();
        let entries: Vec<PartEntry> = (0..count(bytes)).map(|i| entry(bytes, i)).collect();
        at = next(bytes);
        drop(page);
        visit(block, &entries);
        CHECK_FOR_INTERRUPTS();
    }
}

/// Whether the part of a sealed segment is dead by now. The caller's copy of its entry may be
/// older.
pub fn is_dead_by_now(table: OpenTable<'_>, run: &RunEntry) -> bool {
    match page_of_run(table, run) {
        // A page that is no longer a page of parts held only dead parts.
        None => true,
        Some(entries) => entries
            .iter()
            .any(|part| part.number as u32 == run.place && part.flags & FLAG_DEAD != 0),
    }
}

/// The entry of the part that a sealed segment belongs to; `None`: the entry is gone, because the
/// part was dead.
pub fn of_run(table: OpenTable<'_>, run: &RunEntry) -> Option<PartEntry> {
    let entries = page_of_run(table, run)?;
    entries
        .into_iter()
        .find(|part| part.number as u32 == run.place)
}

/// The entries on the page of a sealed segment's part; `None`: the page is no page of parts any
/// more.
fn page_of_run(table: OpenTable<'_>, run: &RunEntry) -> Option<Vec<PartEntry>> {
    let page = {
        if run.extra >= table.blocks() {
            return None;
        }
        LockedPage::share(table, run.extra)
    };
    let count = try_count(page.bytes())?;
    Some((0..count).map(|i| entry(page.bytes(), i)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of these rows.
    pub fn part(first_row: u64, end_row: u64, number: u64) -> PartEntry {
        PartEntry {
            first_row,
            end_row,
            rows: end_row - first_row,
            next_tombstone: number,
            origin: number,
            number,
            block: 0,
            bytes: 0,
            xid: 0,
            flags: 0,
        }
    }

    #[test]
    fn tombstones_from_before_the_sealing_are_outlived() {
        let sealed = part(0, 10, 5);
        assert!(sealed.outlives(4) && !sealed.outlives(5));
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        let mut bytes = vec![0; BLCKSZ];
        initialise_page(&mut bytes);
        let mut written = 0;
        while has_room(&bytes, 1) {
            push(&mut bytes, &part(written, written + 1, written));
            written += 1;
        }
        assert_eq!((try_count(&bytes), next(&bytes)), (Some(127), None));
        assert_eq!(entry(&bytes, 126), part(126, 127, 126));
        set_next(&mut bytes, 9);
        assert_eq!(next(&bytes), Some(9));
    }
}
