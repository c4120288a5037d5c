//! The directory: a chain of pages with one entry for each run, ascending by row. The exclusive lock of
//! its last page is the append lock of the table.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 24 | 4 | magic `LDIR` |
//! | 28 | 4 | next page of the chain, 0 on the last |
//! | 32 | 8 | row that the page's first entry starts at |
//! | 40 | 40 each | entries, up to `pd_lower` |
//! | `pd_upper` | | images of tiny runs, newest first |
//!
//! An entry is a [`RunEntry`] in native byte order: first row, rows, xmin, cmin, flags, block, bytes,
//! place, extra. With `FLAG_INLINE` the image lies in the same page, at `place`. Otherwise it lies in
//! data pages from `block` on. `extra` is 0 on the page; in memory it is the block of the directory
//! page. Transaction ids are stored here, in tombstones and in entries of parts, and nowhere else. So
//! freezing never rewrites data.

use lanes_columnar::arena::{Position, RunEntry};

use super::metapage::Meta;
use super::part;
use crate::error;
use crate::pg::byte_change::ByteChange;
use crate::pg::page::{self, LockedPage, get_u32, get_u64, put_u16, put_u32, put_u64};
use crate::pg::table::OpenTable;

/// Visible to everybody, whatever `xmin` says.
pub const FLAG_FROZEN: u32 = 1;
/// Visible to nobody: its transaction aborted, or all its rows are gone. Its blocks may be reused.
pub const FLAG_DEAD: u32 = 2;
/// In the arena only: `xmin` is known to have committed.
pub const FLAG_COMMITTED: u32 = 4;
/// The image lies in the directory page.
pub const FLAG_INLINE: u32 = 8;
/// In memory only: the entry is a segment of a sealed part and not an entry of the directory.
/// `place` is the low half of the part's number, `extra` the block of the page that the part's
/// entry is on.
pub const FLAG_SEALED: u32 = 16;
/// In memory only, with `FLAG_SEALED`: the image is in object storage. `block` is the low half of
/// the part's origin.
pub const FLAG_REMOTE: u32 = 32;
/// In memory only, with `FLAG_SEALED`: the image's last bytes lie with the index of its part
/// ([`super::part_image`]).
pub const FLAG_PACKED: u32 = 64;
/// In memory only, with `FLAG_SEALED`: only snapshots for which `xmin` is in progress see the rows
/// ([`super::part`]).
pub const FLAG_FADING: u32 = 128;

const MAGIC: u32 = u32::from_le_bytes(*b"LDIR");
const AT_MAGIC: usize = 24;
const AT_NEXT: usize = 28;
const AT_BASE_ROW: usize = 32;
const AT_ENTRIES: usize = 40;
/// Bytes of an entry.
pub const ENTRY_BYTES: usize = 40;
/// Where in an entry its flags are.
const AT_FLAGS: usize = 20;
/// The largest image that is stored inline. A larger image wastes less space on data pages of its
/// own.
pub const INLINE_BYTES_MAX: usize = 2000;

/// Makes a page an empty directory page whose rows start at `base_row`.
pub fn initialise_page(bytes: &mut [u8], base_row: u64) {
    put_u32(bytes, AT_MAGIC, MAGIC);
    put_u32(bytes, AT_NEXT, 0);
    put_u64(bytes, AT_BASE_ROW, base_row);
    page::set_lower(bytes, AT_ENTRIES);
}

/// A directory page, checked.
#[derive(Clone, Copy)]
pub struct DirectoryPage<'a> {
    bytes: &'a [u8],
}

impl<'a> DirectoryPage<'a> {
    /// Checks that the bytes are a directory page.
    pub fn parse(bytes: &'a [u8]) -> Self {
        match Self::try_parse(bytes) {
            Some(page) => page,
            None => error::corrupt("a directory page was expected"),
        }
    }

    /// Checks a page that may have been reused meanwhile; `None`: it is no directory page any more.
    pub fn try_parse(bytes: &'a [u8]) -> Option<Self> {
        let lower = page::lower(bytes);
        let sound =
            get_u32(bytes, AT_MAGIC) == MAGIC && lower >= AT_ENTRIES && lower <= page::upper(bytes);
        sound.then_some(DirectoryPage { bytes })
    }

    /// Entries on the page.
    pub fn count(&self) -> usize {
        (page::lower(self.bytes) - AT_ENTRIES) / ENTRY_BYTES
    }

    /// The next page of the chain.
    pub fn next(&self) -> Option<u32> {
        Some(get_u32(self.bytes, AT_NEXT)).filter(|&next| next != 0)
    }

    /// One entry.
    pub fn entry(&self, index: usize) -> RunEntry {
        debug_assert!(index < self.count());
        let at = AT_ENTRIES + index * ENTRY_BYTES;
        let entry = &self.bytes[at..at + ENTRY_BYTES];
        RunEntry {
            first_row: get_u64(entry, 0),
            rows: get_u32(entry, 8),
            xmin: get_u32(entry, 12),
            cmin: get_u32(entry, 16),
            flags: get_u32(entry, AT_FLAGS),
            block: get_u32(entry, 24),
            bytes: get_u32(entry, 28),
            place: get_u32(entry, 32),
            extra: get_u32(entry, 36),
        }
    }

    /// The row after the page's last entry. On the last page of the chain it is the next row to be
    /// assigned.
    pub fn next_row(&self) -> u64 {
        match self.count() {
            0 => get_u64(self.bytes, AT_BASE_ROW),
            count => {
                let last = self.entry(count - 1);
                last.first_row + last.rows as u64
            }
        }
    }

    /// The inline image of an entry of this page.
    pub fn inline_image(&self, entry: &RunEntry) -> &'a [u8] {
        let (start, length) = (entry.place as usize, entry.bytes as usize);
        match self.bytes.get(start..start + length) {
            Some(image) if start >= page::upper(self.bytes) => image,
            _ => error::corrupt("an inline run lies outside its directory page"),
        }
    }

    /// Whether an entry with so many inline bytes fits.
    pub fn has_room(&self, inline_bytes: usize) -> bool {
        page::upper(self.bytes) - page::lower(self.bytes) >= ENTRY_BYTES + inline_bytes
    }
}

/// Appends an entry, and its image if that is inline, to a page that has room, as part of a change.
/// Returns the entry as written.
pub fn push_entry(
    change: &mut ByteChange<'_>,
    page: &LockedPage,
    mut entry: RunEntry,
    inline_image: Option<&[u8]>,
) -> RunEntry {
    let at = page::lower(page.bytes());
    let mut upper = page::upper(page.bytes());
    if let Some(image) = inline_image {
        upper -= image.len();
        change.put(upper, image);
        entry.place = upper as u32;
        entry.flags |= FLAG_INLINE;
    }
    change.put(at, &encode(&entry));
    let mut ends = [0; 4];
    put_u16(&mut ends, 0, (at + ENTRY_BYTES) as u16);
    put_u16(&mut ends, 2, upper as u16);
    change.put(page::AT_LOWER, &ends);
    entry
}

/// Changes the flags of an entry in place.
pub fn set_flags(bytes: &mut [u8], index: usize, flags: u32) {
    let at = AT_ENTRIES + index * ENTRY_BYTES + AT_FLAGS;
    put_u32(bytes, at, flags);
}

/// In all entries of a page that have `flag`, writes another block as the beginning of their image.
pub fn set_block_of(bytes: &mut [u8], flag: u32, block: u32) {
    for index in 0..DirectoryPage::parse(bytes).count() {
        let entry = DirectoryPage::parse(bytes).entry(index);
        if entry.flags & flag != 0 {
            write_entry(
                bytes,
                AT_ENTRIES + index * ENTRY_BYTES,
                &RunEntry { block, ..entry },
            );
        }
    }
}

fn write_entry(bytes: &mut [u8], at: usize, entry: &RunEntry) {
    bytes[at..at + ENTRY_BYTES].copy_from_slice(&encode(entry));
}

/// The bytes of an entry.
fn encode(entry: &RunEntry) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    put_u64(&mut bytes, 0, entry.first_row);
    put_u32(&mut bytes, 8, entry.rows);
    put_u32(&mut bytes, 12, entry.xmin);
    put_u32(&mut bytes, 16, entry.cmin);
    put_u32(&mut bytes, AT_FLAGS, entry.flags);
    put_u32(&mut bytes, 24, entry.block);
    put_u32(&mut bytes, 28, entry.bytes);
    put_u32(&mut bytes, 32, entry.place);
    put_u32(&mut bytes, 36, entry.extra);
    bytes
}

/// Links the next page of the chain.
pub fn set_next(bytes: &mut [u8], block: u32) {
    put_u32(bytes, AT_NEXT, block);
}

/// Whether a run is dead by now. The caller's copy of its entry may be older.
pub fn is_dead_by_now(table: OpenTable<'_>, run: &RunEntry) -> bool {
    if run.flags & FLAG_SEALED != 0 {
        return part::is_dead_by_now(table, run);
    }
    let page = {
        if run.extra >= table.blocks() {
            return true;
        }
        LockedPage::share(table, run.extra)
    };
    // A page that is no longer a directory page held only dead runs.
    let Some(view) = DirectoryPage::try_parse(page.bytes()) else {
        return true;
    };
    (0..view.count())
        .map(|i| view.entry(i))
        .any(|e| e.first_row == run.first_row && e.flags & FLAG_DEAD != 0)
}

/// Whether the directory ends at a position.
pub fn ends_at(table: OpenTable<'_>, position: Position) -> bool {
    if position.block == 0 {
        return false;
    }
    let locked = LockedPage::share(table, position.block);
    let page = DirectoryPage::parse(locked.bytes());
    page.count() == position.index as usize && page.next().is_none()
}

/// Calls `visit` with the entries of each page from `position` on (`block` 0 means from `head`),
/// and with the position after them. Stops early when `visit` returns false.
pub fn walk(
    table: OpenTable<'_>,
    head: u32,
    position: Position,
    mut visit: impl FnMut(u32, &[RunEntry], Position) -> bool,
) {
    let mut at = if position.block == 0 {
        Position {
            block: head,
            index: 0,
        }
    } else {
        position
    };
    let mut entries = Vec::new();
    loop {
        entries.clear();
        let locked = LockedPage::share(table, at.block);
        let page = DirectoryPage::parse(locked.bytes());
        let count = page.count();
        entries.extend((at.index as usize..count).map(|i| RunEntry {
            extra: at.block,
            ..page.entry(i)
        }));
        let here = at.block;
        let next = page.next();
        drop(locked);
        at = match next {
            Some(block) => Position { block, index: 0 },
            None => Position {
                block: here,
                index: count as u32,
            },
        };
        if (!entries.is_empty() && !visit(here, &entries, at)) || next.is_none() {
            return;
        }
        crate::pg::ports::CHECK_FOR_INTERRUPTS();
    }
}

/// The number of the next row to be appended, from the last directory page.
pub fn next_row(table: OpenTable<'_>) -> u64 {
    let Some(meta) = Meta::load(table) else {
        return 0;
    };
    let mut block = meta.directory_tail;
    loop {
        let page = LockedPage::share(table, block);
        let view = DirectoryPage::parse(page.bytes());
        match view.next() {
            Some(next) => block = next,
            None => return view.next_row(),
        }
    }
}
