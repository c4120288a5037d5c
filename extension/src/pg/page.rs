//! Pages: pinned buffers with a shared or exclusive lock as values, and WAL-logged changes of them.
//!
//! Lock order: tombstone tail → directory tail → metapage → the arena's relation lock → the arena's allocator
//! lock. A data page is locked while nothing else is.

use std::cell::Cell;
use std::marker::PhantomData;

use pgrx::pg_sys;

use super::ports::{BLCKSZ, Locator, P_NEW, PAGE_HEADER_BYTES};
use super::table::OpenTable;

unsafe extern "C-unwind" {
    // These functions need no boundary, which would take longer than they do. None raises an ERROR for a buffer that
    // this backend has pinned. `LockBuffer` does where a backend holds 200 locks of this kind; here it holds a few.
    #[link_name = "LockBuffer"]
    fn lock_buffer(buffer: pg_sys::Buffer, mode: i32);
    #[link_name = "UnlockReleaseBuffer"]
    fn unlock_and_release(buffer: pg_sys::Buffer);
    #[link_name = "BufferGetBlockNumber"]
    fn block_number(buffer: pg_sys::Buffer) -> pg_sys::BlockNumber;
}

thread_local! {
    /// The buffers of [`LockedPage::share_in_passing`]; null before its first use.
    static RING: Cell<pg_sys::BufferAccessStrategy> = const { Cell::new(std::ptr::null_mut()) };
    /// The buffers that blocks were found in last, by the block's number. Statements that change rows one by one come
    /// back to the same few pages.
    static RECENT: [Cell<Recent>; RECENT_MAX] = const { [const { Cell::new(NOT_RECENT) }; RECENT_MAX] };
}

const RECENT_MAX: usize = 8;

/// Where a block was found. It may have left the buffer since, which PostgreSQL checks.
#[derive(Clone, Copy)]
struct Recent {
    file: Locator,
    block: u32,
    buffer: pg_sys::Buffer,
}

const NOT_RECENT: Recent = Recent {
    file: (0, 0, 0),
    block: 0,
    buffer: 0,
};

/// A pinned buffer whose content is locked. Dropping releases lock and pin, except while an ERROR
/// passes (see [`super`]).
pub struct LockedPage {
    buffer: pg_sys::Buffer,
    is_exclusive: bool,
}

impl LockedPage {
    /// Reads and share-locks a block of the main fork. A block past the file's end is an ERROR.
    #[inline]
    pub fn share(table: OpenTable<'_>, block: u32) -> LockedPage {
        Self::read(table, block, false, std::ptr::null_mut())
    }

    /// Reads and share-locks a block that is not worth a buffer beyond this look. Blocks that no
    /// buffer holds yet share a few buffers in turn, as in a scan of a large table.
    pub fn share_in_passing(table: OpenTable<'_>, block: u32) -> LockedPage {
        if RING.get().is_null() {
            // SAFETY: the ring holds numbers of buffers, not pins, and stays as long as the backend.
            unsafe {
                let before = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
                RING.set(pg_sys::GetAccessStrategy(
                    pg_sys::BufferAccessStrategyType::BAS_BULKREAD,
                ));
                pg_sys::MemoryContextSwitchTo(before);
            }
        }
        Self::read(table, block, false, RING.get())
    }

    /// Reads and exclusively locks a block of the main fork. A block past the file's end is an ERROR.
    #[inline]
    pub fn exclusive(table: OpenTable<'_>, block: u32) -> LockedPage {
        Self::read(table, block, true, std::ptr::null_mut())
    }

    fn read(
        table: OpenTable<'_>,
        block: u32,
        is_exclusive: bool,
        ring: pg_sys::BufferAccessStrategy,
    ) -> LockedPage {
        let mode = match is_exclusive {
            true => pg_sys::BUFFER_LOCK_EXCLUSIVE,
            false => pg_sys::BUFFER_LOCK_SHARE,
        };
        let is_passing = !ring.is_null() || table.uses_local_buffers();
        let recent = if is_passing {
            None
        } else {
            pin_recent(table, block)
        };
        // SAFETY: the table is open; the ring is null or lives as long as the backend.
        let buffer = unsafe {
            let buffer = recent.unwrap_or_else(|| {
                pg_sys::ReadBufferExtended(
                    table.as_ptr(),
                    pg_sys::ForkNumber::MAIN_FORKNUM,
                    block,
                    pg_sys::ReadBufferMode::RBM_NORMAL,
                    ring,
                )
            });
            lock_buffer(buffer, mode as i32);
            buffer
        };
        if recent.is_none() && !is_passing {
            let file = table.locator();
            RECENT.with(|places| {
                places[block as usize % RECENT_MAX].set(Recent {
                    file,
                    block,
                    buffer,
                });
            });
        }
        LockedPage {
            buffer,
            is_exclusive,
        }
    }

    /// Zeroes and exclusively locks an existing block whose old content does not matter. Nobody refers to the block.
    pub fn zeroed(table: OpenTable<'_>, block: u32) -> LockedPage {
        // SAFETY: the table is open.
        let buffer = unsafe {
            pg_sys::ReadBufferExtended(
                table.as_ptr(),
                pg_sys::ForkNumber::MAIN_FORKNUM,
                block,
                pg_sys::ReadBufferMode::RBM_ZERO_AND_LOCK,
                std::ptr::null_mut(),
            )
        };
        LockedPage {
            buffer,
            is_exclusive: true,
        }
    }

    /// Adds a zeroed block at the end of the file and locks it exclusively. The caller alone may
    /// extend the file: it holds the metapage exclusively, or the extension lock before there is a
    /// metapage.
    pub fn extend(table: OpenTable<'_>) -> LockedPage {
        // SAFETY: the table is open.
        #[cfg(feature = "pg15")]
        let buffer = unsafe {
            let buffer = pg_sys::ReadBufferExtended(
                table.as_ptr(),
                pg_sys::ForkNumber::MAIN_FORKNUM,
                P_NEW,
                pg_sys::ReadBufferMode::RBM_NORMAL,
                std::ptr::null_mut(),
            );
            pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32);
            buffer
        };
        // SAFETY: the table is open, and its entry is all of the target that is set.
        #[cfg(not(feature = "pg15"))]
        let buffer = unsafe {
            let _ = P_NEW;
            let target = pg_sys::BufferManagerRelation {
                rel: table.as_ptr(),
                ..Default::default()
            };
            pg_sys::ExtendBufferedRel(
                target,
                pg_sys::ForkNumber::MAIN_FORKNUM,
                std::ptr::null_mut(),
                (pg_sys::ExtendBufferedFlags::EB_SKIP_EXTENSION_LOCK
                    | pg_sys::ExtendBufferedFlags::EB_LOCK_FIRST) as u32,
            )
        };
        LockedPage {
            buffer,
            is_exclusive: true,
        }
    }

    /// The page's bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the buffer is pinned and locked by this value, so its BLCKSZ bytes stay and are not changed.
        unsafe {
            std::slice::from_raw_parts(pg_sys::BufferGetPage(self.buffer).cast::<u8>(), BLCKSZ)
        }
    }

    /// The block's number in the relation.
    pub fn block(&self) -> u32 {
        // SAFETY: the buffer is pinned.
        unsafe { block_number(self.buffer) }
    }

    /// Whether it is locked exclusively.
    pub fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }

    /// The buffer, for PostgreSQL's functions.
    pub(super) fn buffer(&self) -> pg_sys::Buffer {
        self.buffer
    }

    /// Whether the page was never initialised (all zero).
    pub fn is_new(&self) -> bool {
        get_u16(
            self.bytes(),
            std::mem::offset_of!(pg_sys::PageHeaderData, pd_upper),
        ) == 0
    }

    /// Writes a whole page that is WAL-logged later (see [`log_fresh`]) or never. Nobody refers to the block yet.
    pub fn overwrite(&mut self, fill: impl FnOnce(&mut [u8])) {
        assert!(
            self.is_exclusive,
            "only an exclusively locked page is written"
        );
        // SAFETY: pinned and exclusively locked; the slice ends before the lock is released.
        unsafe {
            let page = pg_sys::BufferGetPage(self.buffer);
            pg_sys::PageInit(page, BLCKSZ, 0);
            fill(std::slice::from_raw_parts_mut(page.cast::<u8>(), BLCKSZ));
            pg_sys::MarkBufferDirty(self.buffer);
        }
    }

    /// Makes the page what the file already holds, so there is nothing to write or to log.
    pub fn replace(&mut self, image: &[u8]) {
        assert!(
            self.is_exclusive,
            "only an exclusively locked page is written"
        );
        // SAFETY: pinned and exclusively locked, and of this size.
        unsafe {
            let page = pg_sys::BufferGetPage(self.buffer);
            std::slice::from_raw_parts_mut(page.cast::<u8>(), BLCKSZ).copy_from_slice(image);
        }
    }
}

impl Drop for LockedPage {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: this value holds exactly one pin and the content lock.
            unsafe { unlock_and_release(self.buffer) }
        }
    }
}

/// Pins the buffer that a block was found in last, if the block is still there.
fn pin_recent(table: OpenTable<'_>, block: u32) -> Option<pg_sys::Buffer> {
    let place = block as usize % RECENT_MAX;
    let recent = RECENT.with(|places| places[place].get());
    if recent.buffer == 0 || recent.block != block || recent.file != table.locator() {
        return None;
    }
    let fork = pg_sys::ForkNumber::MAIN_FORKNUM;
    // SAFETY: a number of a shared buffer; PostgreSQL compares what the buffer holds by now.
    let is_there = unsafe { pg_sys::ReadRecentBuffer(table.file(), fork, block, recent.buffer) };
    is_there.then_some(recent.buffer)
}

/// WAL-logs a range of blocks that were just written by [`LockedPage::overwrite`] as full images, 32 in each record.
pub fn log_fresh(table: OpenTable<'_>, first: u32, blocks: u32) {
    if table.needs_wal() {
        // SAFETY: the table is open.
        unsafe {
            pg_sys::log_newpage_range(
                table.as_ptr(),
                pg_sys::ForkNumber::MAIN_FORKNUM,
                first,
                first + blocks,
                true,
            );
        }
    }
}

/// One atomic, WAL-logged change of up to four locked pages, by core's generic WAL records. The pages change in
/// [`PageChange::finish`]; dropping the value earlier discards the change.
pub struct PageChange<'a> {
    state: *mut pg_sys::GenericXLogState,
    table: PhantomData<OpenTable<'a>>,
}

impl<'a> PageChange<'a> {
    /// Begins a change of pages of a table.
    pub fn begin(table: OpenTable<'a>) -> PageChange<'a> {
        PageChange {
            // SAFETY: the table stays open as long as the change.
            state: unsafe { pg_sys::GenericXLogStart(table.as_ptr()) },
            table: PhantomData,
        }
    }

    /// The working copy of a page that is exclusively locked.
    pub fn edit<'b>(&'b mut self, page: &LockedPage) -> &'b mut [u8] {
        self.copy_of(page, 0)
    }

    /// The working copy of a page whose old content does not matter: initialised, and logged as a whole.
    pub fn create<'b>(&'b mut self, page: &LockedPage) -> &'b mut [u8] {
        let copy = self.copy_of(page, pg_sys::GENERIC_XLOG_FULL_IMAGE as i32);
        // SAFETY: the copy is a page of BLCKSZ bytes.
        unsafe { pg_sys::PageInit(copy.as_mut_ptr().cast(), BLCKSZ, 0) };
        copy
    }

    fn copy_of<'b>(&'b mut self, page: &LockedPage, flags: i32) -> &'b mut [u8] {
        assert!(
            page.is_exclusive,
            "only an exclusively locked page is written"
        );
        // SAFETY: the page is locked; the copy lives in the change's state until finish.
        unsafe {
            let copy = pg_sys::GenericXLogRegisterBuffer(self.state, page.buffer, flags);
            std::slice::from_raw_parts_mut(copy.cast::<u8>(), BLCKSZ)
        }
    }

    /// Applies and WAL-logs the change.
    pub fn finish(mut self) {
        let state = std::mem::replace(&mut self.state, std::ptr::null_mut());
        // SAFETY: the registered pages are still locked by the caller's LockedPage values.
        unsafe { pg_sys::GenericXLogFinish(state) };
    }
}

impl Drop for PageChange<'_> {
    fn drop(&mut self) {
        if !self.state.is_null() && !std::thread::panicking() {
            // SAFETY: the state was not finished; during an ERROR its memory context frees it.
            unsafe { pg_sys::GenericXLogAbort(self.state) }
        }
    }
}

/// Reads a u32 of a page.
pub fn get_u32(page: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(page[at..at + 4].try_into().expect("four bytes"))
}

/// Reads a u64 of a page.
pub fn get_u64(page: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(page[at..at + 8].try_into().expect("eight bytes"))
}

/// Reads a u16 of a page.
pub fn get_u16(page: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([page[at], page[at + 1]])
}

/// Writes a u16 to a page.
pub fn put_u16(page: &mut [u8], at: usize, value: u16) {
    page[at..at + 2].copy_from_slice(&value.to_ne_bytes());
}

/// Writes a u32 to a page.
pub fn put_u32(page: &mut [u8], at: usize, value: u32) {
    page[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

/// Writes a u64 to a page.
pub fn put_u64(page: &mut [u8], at: usize, value: u64) {
    page[at..at + 8].copy_from_slice(&value.to_ne_bytes());
}

/// Where a page says how far it is used from the front, and from the back: two numbers of 16 bits.
pub const AT_LOWER: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_lower);
const _: () = assert!(std::mem::offset_of!(pg_sys::PageHeaderData, pd_upper) == AT_LOWER + 2);

/// `pd_lower`: the end of what is used from the front.
pub fn lower(page: &[u8]) -> usize {
    get_u16(page, std::mem::offset_of!(pg_sys::PageHeaderData, pd_lower)) as usize
}

/// `pd_upper`: the start of what is used from the back.
pub fn upper(page: &[u8]) -> usize {
    get_u16(page, std::mem::offset_of!(pg_sys::PageHeaderData, pd_upper)) as usize
}

/// Sets `pd_lower`; the hole between lower and upper is not WAL-logged.
pub fn set_lower(page: &mut [u8], value: usize) {
    let at = std::mem::offset_of!(pg_sys::PageHeaderData, pd_lower);
    page[at..at + 2].copy_from_slice(&(value as u16).to_ne_bytes());
}

/// Sets `pd_upper`.
pub fn set_upper(page: &mut [u8], value: usize) {
    let at = std::mem::offset_of!(pg_sys::PageHeaderData, pd_upper);
    page[at..at + 2].copy_from_slice(&(value as u16).to_ne_bytes());
}

const _: () = assert!(PAGE_HEADER_BYTES == 24);
