//! Pages: pinned, share- or exclusively locked buffers as values, and WAL-logged changes to them.
//!
//! Lock order, everywhere: tombstone tail → directory tail → metapage → the arena's relation lock → its allocator
//! lock. Data pages are locked alone.

use std::cell::Cell;

use pgrx::pg_sys;

use super::ports::{self, BLCKSZ, P_NEW, PAGE_HEADER_BYTES};

thread_local! {
    /// The ring of [`LockedPage::share_in_passing`], once there is one.
    static RING: Cell<pg_sys::BufferAccessStrategy> = const { Cell::new(std::ptr::null_mut()) };
}

/// A pinned, content-locked buffer. Dropping releases lock and pin, except while an ERROR passes (see [`super`]).
pub struct LockedPage {
    buffer: pg_sys::Buffer,
}

impl LockedPage {
    /// Reads and share-locks a block of the main fork.
    ///
    /// # Safety
    /// `relation` is open; the block exists.
    pub unsafe fn share(relation: pg_sys::Relation, block: u32) -> LockedPage {
        let mode = pg_sys::BUFFER_LOCK_SHARE as i32;
        // SAFETY: the caller's promise.
        unsafe { Self::read(relation, block, mode, std::ptr::null_mut()) }
    }

    /// The same for a block that is not worth a buffer beyond this look: of those that no buffer holds yet, a few buffers in turn
    /// hold one after another, as in a scan of a large table.
    ///
    /// # Safety
    /// `relation` is open; the block exists.
    pub unsafe fn share_in_passing(relation: pg_sys::Relation, block: u32) -> LockedPage {
        let mode = pg_sys::BUFFER_LOCK_SHARE as i32;
        // SAFETY: the caller's promise. The ring has the numbers of buffers, not pins, and stays as long as the backend.
        unsafe {
            if RING.get().is_null() {
                let before = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
                RING.set(pg_sys::GetAccessStrategy(
                    pg_sys::BufferAccessStrategyType::BAS_BULKREAD,
                ));
                pg_sys::MemoryContextSwitchTo(before);
            }
            Self::read(relation, block, mode, RING.get())
        }
    }

    /// Reads and exclusively locks a block of the main fork.
    ///
    /// # Safety
    /// `relation` is open; the block exists.
    pub unsafe fn exclusive(relation: pg_sys::Relation, block: u32) -> LockedPage {
        let mode = pg_sys::BUFFER_LOCK_EXCLUSIVE as i32;
        // SAFETY: the caller's promise.
        unsafe { Self::read(relation, block, mode, std::ptr::null_mut()) }
    }

    unsafe fn read(
        relation: pg_sys::Relation,
        block: u32,
        mode: i32,
        ring: pg_sys::BufferAccessStrategy,
    ) -> LockedPage {
        // SAFETY: the caller's promise.
        unsafe {
            let buffer = pg_sys::ReadBufferExtended(
                relation,
                pg_sys::ForkNumber::MAIN_FORKNUM,
                block,
                pg_sys::ReadBufferMode::RBM_NORMAL,
                ring,
            );
            pg_sys::LockBuffer(buffer, mode);
            LockedPage { buffer }
        }
    }

    /// An existing block whose old content does not matter, zeroed and exclusively locked.
    ///
    /// # Safety
    /// `relation` is open; the block exists and nobody refers to it.
    pub unsafe fn zeroed(relation: pg_sys::Relation, block: u32) -> LockedPage {
        // SAFETY: the caller's promise.
        let buffer = unsafe {
            pg_sys::ReadBufferExtended(
                relation,
                pg_sys::ForkNumber::MAIN_FORKNUM,
                block,
                pg_sys::ReadBufferMode::RBM_ZERO_AND_LOCK,
                std::ptr::null_mut(),
            )
        };
        LockedPage { buffer }
    }

    /// A new block at the end of the relation, zeroed and exclusively locked.
    ///
    /// # Safety
    /// `relation` is open and the caller alone may extend it (it holds the metapage exclusively, or the relation's
    /// extension lock before there is one).
    pub unsafe fn extend(relation: pg_sys::Relation) -> LockedPage {
        // SAFETY: the caller's promise.
        unsafe {
            #[cfg(feature = "pg15")]
            let buffer = {
                let buffer = pg_sys::ReadBufferExtended(
                    relation,
                    pg_sys::ForkNumber::MAIN_FORKNUM,
                    P_NEW,
                    pg_sys::ReadBufferMode::RBM_NORMAL,
                    std::ptr::null_mut(),
                );
                pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32);
                buffer
            };
            #[cfg(not(feature = "pg15"))]
            let buffer = {
                let _ = P_NEW;
                let target = pg_sys::BufferManagerRelation {
                    rel: relation,
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
            LockedPage { buffer }
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
        unsafe { pg_sys::BufferGetBlockNumber(self.buffer) }
    }

    /// Whether the page was never initialised (all zero).
    pub fn is_new(&self) -> bool {
        header_u16(
            self.bytes(),
            std::mem::offset_of!(pg_sys::PageHeaderData, pd_upper),
        ) == 0
    }

    /// Writes a page that is WAL-logged later as a whole (see [`log_fresh`]) or never.
    ///
    /// # Safety
    /// The page is exclusively locked and nobody refers to the block yet.
    pub unsafe fn overwrite(&mut self, fill: impl FnOnce(&mut [u8])) {
        // SAFETY: pinned and exclusively locked; the slice ends before the lock is released.
        unsafe {
            let page = pg_sys::BufferGetPage(self.buffer);
            pg_sys::PageInit(page, BLCKSZ, 0);
            fill(std::slice::from_raw_parts_mut(page.cast::<u8>(), BLCKSZ));
            pg_sys::MarkBufferDirty(self.buffer);
        }
    }

    /// Makes the page what the file already has; so there is nothing to write or to log.
    ///
    /// # Safety
    /// The page is exclusively locked; `image` is a whole page.
    pub unsafe fn replace(&mut self, image: pg_sys::Page) {
        // SAFETY: the caller's promise; pinned, so the page stays.
        unsafe {
            let page = pg_sys::BufferGetPage(self.buffer);
            std::ptr::copy_nonoverlapping(image.cast_const(), page, BLCKSZ);
        }
    }
}

impl Drop for LockedPage {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: this value holds exactly one pin and the content lock.
            unsafe { pg_sys::UnlockReleaseBuffer(self.buffer) }
        }
    }
}

/// WAL-logs a range of freshly written blocks as full images, 32 a record.
///
/// # Safety
/// `relation` is open; the blocks were written by [`LockedPage::overwrite`].
pub unsafe fn log_fresh(relation: pg_sys::Relation, first: u32, blocks: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        if ports::RelationNeedsWAL(relation) {
            pg_sys::log_newpage_range(
                relation,
                pg_sys::ForkNumber::MAIN_FORKNUM,
                first,
                first + blocks,
                true,
            );
        }
    }
}

/// One atomic, WAL-logged change of up to four locked pages, by core's generic WAL records. Nothing happens to the
/// pages before [`PageChange::finish`]; dropping it earlier forgets the change.
pub struct PageChange {
    state: *mut pg_sys::GenericXLogState,
}

impl PageChange {
    /// # Safety
    /// `relation` is open and stays so until the change is finished.
    pub unsafe fn begin(relation: pg_sys::Relation) -> PageChange {
        PageChange {
            // SAFETY: the caller's promise.
            state: unsafe { pg_sys::GenericXLogStart(relation) },
        }
    }

    /// The working copy of a page that is exclusively locked.
    pub fn edit<'a>(&'a mut self, page: &LockedPage) -> &'a mut [u8] {
        // SAFETY: the page is locked; the copy lives in the change's state until finish.
        unsafe {
            let copy = pg_sys::GenericXLogRegisterBuffer(self.state, page.buffer, 0);
            std::slice::from_raw_parts_mut(copy.cast::<u8>(), BLCKSZ)
        }
    }

    /// The same for a page whose old content does not matter: initialised, and logged as a whole.
    pub fn create<'a>(&'a mut self, page: &LockedPage) -> &'a mut [u8] {
        // SAFETY: as above; PageInit writes within BLCKSZ.
        unsafe {
            let copy = pg_sys::GenericXLogRegisterBuffer(
                self.state,
                page.buffer,
                pg_sys::GENERIC_XLOG_FULL_IMAGE as i32,
            );
            pg_sys::PageInit(copy, BLCKSZ, 0);
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

impl Drop for PageChange {
    fn drop(&mut self) {
        if !self.state.is_null() && !std::thread::panicking() {
            // SAFETY: the state was not finished; during an ERROR its memory context frees it.
            unsafe { pg_sys::GenericXLogAbort(self.state) }
        }
    }
}

/// Reads a little-endian u16 of a page.
pub fn header_u16(page: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([page[at], page[at + 1]])
}

/// Reads a u32 of a page.
pub fn get_u32(page: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(page[at..at + 4].try_into().expect("four bytes"))
}

/// Reads a u64 of a page.
pub fn get_u64(page: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(page[at..at + 8].try_into().expect("eight bytes"))
}

/// Writes a u32 to a page.
pub fn put_u32(page: &mut [u8], at: usize, value: u32) {
    page[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

/// Writes a u64 to a page.
pub fn put_u64(page: &mut [u8], at: usize, value: u64) {
    page[at..at + 8].copy_from_slice(&value.to_ne_bytes());
}

/// `pd_lower`: the end of what is used from the front.
pub fn lower(page: &[u8]) -> usize {
    header_u16(page, std::mem::offset_of!(pg_sys::PageHeaderData, pd_lower)) as usize
}

/// `pd_upper`: the start of what is used from the back.
pub fn upper(page: &[u8]) -> usize {
    header_u16(page, std::mem::offset_of!(pg_sys::PageHeaderData, pd_upper)) as usize
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
