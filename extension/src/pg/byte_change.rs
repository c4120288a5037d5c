//! Small WAL-logged changes of pages: a few bytes whose places the caller knows.
//!
//! They are generic WAL records, as those of [`PageChange`](super::page::PageChange), and the same code of PostgreSQL
//! replays them. PostgreSQL's functions that write such records copy each page and compare it with the copy, byte by
//! byte, to find out what has changed. Here the record is written from what the caller says, so it costs as much as
//! its bytes.

use pgrx::pg_sys;

use super::page::LockedPage;
use super::ports::BLCKSZ;
use super::table::OpenTable;

unsafe extern "C-unwind" {
    // Within a critical section they raise no ERROR that could be caught: it would be a PANIC. So they need no
    // boundary.
    #[link_name = "MarkBufferDirty"]
    fn mark_dirty(buffer: pg_sys::Buffer);
    #[link_name = "XLogBeginInsert"]
    fn begin_record();
    #[link_name = "XLogRegisterBuffer"]
    fn register_buffer(id: u8, buffer: pg_sys::Buffer, flags: u8);
    #[link_name = "XLogRegisterBufData"]
    fn register_data(id: u8, bytes: *mut std::ffi::c_char, length: BytesLength);
    #[link_name = "XLogInsert"]
    fn insert_record(manager: u8, info: u8) -> pg_sys::XLogRecPtr;
}

/// The type of the length of a record's bytes.
#[cfg(feature = "pg15")]
type BytesLength = i32;
#[cfg(not(feature = "pg15"))]
type BytesLength = u32;

/// Offset and length of a fragment, before its bytes.
const FRAGMENT_HEAD: usize = 4;

/// One atomic, WAL-logged change of a locked page. The page changes in [`ByteChange::finish`]; dropping the value
/// earlier discards the change.
pub struct ByteChange<'a> {
    table: OpenTable<'a>,
    page: &'a LockedPage,
    /// The new bytes of the page, as a generic WAL record has them: offset (2), length (2) and bytes of each fragment.
    fragments: Bytes,
}

/// Bytes that take no memory of their own while they are few, as those of a tombstone or of a small row.
struct Bytes {
    few: [u8; FEW_BYTES],
    length: usize,
    /// All of them, once they are more.
    many: Vec<u8>,
}

const FEW_BYTES: usize = 192;

impl Bytes {
    const fn new() -> Bytes {
        Bytes {
            few: [0; FEW_BYTES],
            length: 0,
            many: Vec::new(),
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        match self.few.get_mut(self.length..end) {
            Some(place) => place.copy_from_slice(bytes),
            None => {
                if self.many.is_empty() {
                    self.many.extend_from_slice(&self.few[..self.length]);
                }
                self.many.extend_from_slice(bytes);
            }
        }
        self.length = end;
    }

    fn as_slice(&self) -> &[u8] {
        match self.many.is_empty() {
            true => &self.few[..self.length],
            false => &self.many,
        }
    }
}

impl<'a> ByteChange<'a> {
    /// Begins a change of a page of a table. The page is exclusively locked.
    #[inline(always)]
    pub fn begin(table: OpenTable<'a>, page: &'a LockedPage) -> ByteChange<'a> {
        assert!(
            page.is_exclusive(),
            "only an exclusively locked page is written"
        );
        ByteChange {
            table,
            page,
            fragments: Bytes::new(),
        }
    }

    /// Puts bytes at a place of the page. In the end all that is not zero lies outside the hole between `pd_lower` and
    /// `pd_upper`.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        assert!(
            at + bytes.len() <= BLCKSZ,
            "bytes within a page are written"
        );
        let [a, b] = (at as u16).to_ne_bytes();
        let [c, d] = (bytes.len() as u16).to_ne_bytes();
        let head: [u8; FRAGMENT_HEAD] = [a, b, c, d];
        self.fragments.extend(&head);
        self.fragments.extend(bytes);
    }

    /// Applies and WAL-logs the change.
    #[inline(always)]
    pub fn finish(self) {
        // Not moved: the value is a quarter of a kilobyte.
        self.write();
    }

    fn write(&self) {
        let is_logged = self.table.needs_wal();
        let buffer = self.page.buffer();
        // SAFETY: the page is pinned and exclusively locked by a value that outlives this one. Nothing in between
        // raises an ERROR, but what writes the record, and that must not fail once the page has changed.
        unsafe {
            pg_sys::CritSectionCount += 1;
            self.apply();
            mark_dirty(buffer);
            if is_logged {
                begin_record();
                register_buffer(0, buffer, pg_sys::REGBUF_STANDARD as u8);
                register_bytes(0, self.fragments.as_slice());
                let position = insert_record(pg_sys::RmgrIds::RM_GENERIC_ID as u8, 0);
                set_position(pg_sys::BufferGetPage(buffer), position);
            }
            pg_sys::CritSectionCount -= 1;
        }
    }

    /// Writes the fragments to the page.
    ///
    /// # Safety
    /// In a critical section, if the change is logged.
    unsafe fn apply(&self) {
        // SAFETY: the page is pinned and exclusively locked; `put` has checked that fragments lie within it.
        unsafe {
            let page = pg_sys::BufferGetPage(self.page.buffer()).cast::<u8>();
            let mut rest = self.fragments.as_slice();
            while let [a, b, c, d, tail @ ..] = rest {
                let at = usize::from(u16::from_ne_bytes([*a, *b]));
                let length = usize::from(u16::from_ne_bytes([*c, *d]));
                std::ptr::copy_nonoverlapping(tail.as_ptr(), page.add(at), length);
                rest = &tail[length..];
            }
        }
    }
}

/// Adds bytes to a block of the record that is being made.
///
/// # Safety
/// The block was registered; the bytes live until the record is inserted.
unsafe fn register_bytes(id: u8, bytes: &[u8]) {
    // SAFETY: the caller's promise; the bytes are only read.
    unsafe {
        register_data(
            id,
            bytes.as_ptr().cast_mut().cast(),
            bytes.len() as BytesLength,
        );
    }
}

/// `PageSetLSN`.
///
/// # Safety
/// The page is pinned and exclusively locked.
unsafe fn set_position(page: pg_sys::Page, position: pg_sys::XLogRecPtr) {
    // SAFETY: the caller's promise; every page begins with this header.
    unsafe {
        (*page.cast::<pg_sys::PageHeaderData>()).pd_lsn = pg_sys::PageXLogRecPtr {
            xlogid: (position >> 32) as u32,
            xrecoff: position as u32,
        };
    }
}
