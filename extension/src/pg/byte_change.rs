//! Small WAL-logged changes of pages: a few bytes whose places the caller knows.
//!
//! They are generic WAL records, as those of [`PageChange`](super::page::PageChange), and the same code of PostgreSQL
//! replays them. PostgreSQL's functions that write such records copy each page and compare it with the copy, byte by
//! byte, to find out what has changed. Here the record is written from what the caller says, so it costs as much as
//! its bytes.

use std::marker::PhantomData;

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

/// Pages of one change at most; a record has room for more.
const PAGES_MAX: usize = 2;
/// Offset and length of a fragment, before its bytes.
const FRAGMENT_HEAD: usize = 4;

/// One atomic, WAL-logged change of up to two locked pages. The pages change in [`ByteChange::finish`]; dropping the
/// value earlier discards the change.
pub struct ByteChange<'a> {
    table: OpenTable<'a>,
    pages: [Option<Fragments>; PAGES_MAX],
    locked: PhantomData<&'a LockedPage>,
}

/// The new bytes of one page, as a generic WAL record has them: offset (2), length (2) and bytes of each fragment.
struct Fragments {
    buffer: pg_sys::Buffer,
    bytes: Bytes,
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
    /// Begins a change of pages of a table.
    pub fn begin(table: OpenTable<'a>) -> ByteChange<'a> {
        ByteChange {
            table,
            pages: [const { None }; PAGES_MAX],
            locked: PhantomData,
        }
    }

    /// Puts bytes at a place of a page that is exclusively locked, and stays so until the change is finished. In the
    /// end all that is not zero lies outside the hole between `pd_lower` and `pd_upper`.
    pub fn put(&mut self, page: &'a LockedPage, at: usize, bytes: &[u8]) {
        assert!(
            page.is_exclusive() && at + bytes.len() <= BLCKSZ,
            "bytes within an exclusively locked page are written"
        );
        let buffer = page.buffer();
        let is_free_or_it =
            |place: &&mut Option<Fragments>| place.as_ref().is_none_or(|it| it.buffer == buffer);
        let place = self.pages.iter_mut().find(is_free_or_it);
        let fragments = place
            .expect("a change has two pages at most")
            .get_or_insert_with(|| Fragments {
                buffer,
                bytes: Bytes::new(),
            });
        fragments.push(at, bytes);
    }

    /// Applies and WAL-logs the change.
    pub fn finish(self) {
        let is_logged = self.table.needs_wal();
        let pages = || self.pages.iter().flatten();
        // SAFETY: the pages are pinned and exclusively locked by values that outlive this one. Nothing in between
        // raises an ERROR, but what writes the record, and that must not fail once pages have changed.
        unsafe {
            pg_sys::CritSectionCount += 1;
            for page in pages() {
                page.apply();
                mark_dirty(page.buffer);
            }
            if is_logged {
                begin_record();
                for (id, page) in (0..).zip(pages()) {
                    register_buffer(id, page.buffer, pg_sys::REGBUF_STANDARD as u8);
                    register_bytes(id, page.bytes.as_slice());
                }
                let position = insert_record(pg_sys::RmgrIds::RM_GENERIC_ID as u8, 0);
                for page in pages() {
                    set_position(pg_sys::BufferGetPage(page.buffer), position);
                }
            }
            pg_sys::CritSectionCount -= 1;
        }
    }
}

impl Fragments {
    fn push(&mut self, at: usize, bytes: &[u8]) {
        let [a, b] = (at as u16).to_ne_bytes();
        let [c, d] = (bytes.len() as u16).to_ne_bytes();
        let head: [u8; FRAGMENT_HEAD] = [a, b, c, d];
        self.bytes.extend(&head);
        self.bytes.extend(bytes);
    }

    /// Writes the fragments to their page.
    ///
    /// # Safety
    /// The page is pinned and exclusively locked.
    unsafe fn apply(&self) {
        // SAFETY: the caller's promise; `put` has checked that fragments lie within the page.
        unsafe {
            let page = pg_sys::BufferGetPage(self.buffer).cast::<u8>();
            let mut rest = self.bytes.as_slice();
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
