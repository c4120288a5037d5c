//! Fresh pages: whole pages that are written to blocks at the end of the file which no buffer holds
//! yet. They go directly to the file, as in an index build. Otherwise each block would take a
//! buffer and evict another, and would be written twice: as zeros to extend the file, and once more
//! when its buffer is evicted.
//!
//! Why this is safe:
//! - *Nobody else knows the blocks.* They lie past the former end of the file, and the caller names
//!   them in an entry only after [`FreshPages::finish`]. Some readers find blocks by number alone
//!   (`pg_prewarm`, ANALYZE from PostgreSQL 17 on), and may have read them as zeros. Such a buffer
//!   gets the page once the file has it. A read that began before the write has its buffer in the
//!   table of buffers by then, and a later read finds the page.
//! - *Checkpoints.* The pages of a group are written, and their file is registered to be synced at
//!   the next checkpoint, before the group's WAL record is inserted. So a checkpoint either starts
//!   before the record, and replay writes the pages again, or it starts after the record, and syncs
//!   them.
//! - *WAL before data.* A page may reach the disk before its record. After a crash in between,
//!   nothing names its block, which is overwritten without being read once VACUUM's sweep has found
//!   it. Records are full images, so replay never depends on the previous content of a page. After
//!   a loss of power such a page may be torn. Nothing of ours reads it, but `pg_checksums --check`
//!   reports it.
//! - *Full disk.* Disk space is allocated before the file is extended, so a full disk is an ERROR
//!   of the writer and not of a later checkpoint. A writer that fails leaves blocks that read as
//!   zeros.

use std::cell::Cell;
#[cfg(feature = "pg15")]
use std::ffi::CStr;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::page::LockedPage;
use super::ports::{self, BLCKSZ};
use super::table::OpenTable;
use crate::error;

const MAIN: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;
/// The pages of a group: as many as one WAL record takes, and few enough to stay in the cache of
/// the core from filling to logging.
const GROUP_PAGES: usize = 32;
/// The blocks of one file of a relation. Each file is synced separately.
const FILE_BLOCKS: u32 = pg_sys::RELSEG_SIZE;

const _: () = assert!(GROUP_PAGES <= pg_sys::XLR_MAX_BLOCK_ID as usize);

/// A page, aligned as direct input and output require.
#[repr(C, align(4096))]
#[derive(Clone)]
struct PageImage([u8; BLCKSZ]);

static ZEROS: PageImage = PageImage([0; BLCKSZ]);

thread_local! {
    /// The memory of the last group, for the next writer.
    static SPARE: Cell<Vec<PageImage>> = const { Cell::new(Vec::new()) };
}

/// Extends the main fork by `blocks >= 1` blocks, which read as zeros, from block `length` on.
pub fn lengthen(table: OpenTable<'_>, length: u32, blocks: u32) {
    let Some(end) = length
        .checked_add(blocks)
        .filter(|end| *end < pg_sys::InvalidBlockNumber)
    else {
        error::raise(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            "a lanes table cannot have more than 4294967294 blocks",
            "Partition the table.",
        )
    };
    // SAFETY: the table is open; the page of zeros is only read.
    unsafe {
        let smgr = ports::RelationGetSmgr(table);
        #[cfg(not(feature = "pg15"))]
        pg_sys::smgrzeroextend(smgr, MAIN, length, (end - length) as i32, false);
        #[cfg(feature = "pg15")]
        {
            // Writing the last block allocates its space.
            take_room(smgr, length, end - 1);
            let zeros = (&raw const ZEROS).cast_mut().cast();
            pg_sys::smgrextend(smgr, MAIN, end - 1, zeros, false);
        }
    }
}

/// Writes consecutive fresh pages. If it is dropped before [`finish`](Self::finish), the pages of
/// the last group are lost.
pub struct FreshPages<'a> {
    table: OpenTable<'a>,
    /// Block of the group's first page.
    first: u32,
    pages: Vec<PageImage>,
    filled: usize,
}

impl<'a> FreshPages<'a> {
    /// Begins to write the blocks from `first` on. [`lengthen`] made them for the caller alone, and
    /// nothing has read them.
    pub fn begin(table: OpenTable<'a>, first: u32) -> FreshPages<'a> {
        FreshPages {
            table,
            first,
            pages: SPARE.take(),
            filled: 0,
        }
    }

    /// Fills the next block. `fill` gets an initialised page, whose bytes after the header have any
    /// values. It writes all bytes up to the `pd_lower` that it sets, and zeros after that.
    pub fn fill(&mut self, fill: impl FnOnce(&mut [u8])) {
        if self.filled == GROUP_PAGES {
            self.write_group();
            ports::CHECK_FOR_INTERRUPTS();
        }
        if self.filled == self.pages.len() {
            self.pages.push(ZEROS.clone());
            // SAFETY: the page is BLCKSZ bytes of our own.
            unsafe { pg_sys::PageInit(self.page(self.filled), BLCKSZ, 0) };
        }
        fill(&mut self.pages[self.filled].0);
        self.filled += 1;
    }

    /// Writes and logs the remaining pages.
    pub fn finish(mut self) {
        self.write_group();
        SPARE.set(std::mem::take(&mut self.pages));
    }

    fn page(&mut self, index: usize) -> pg_sys::Page {
        self.pages[index].0.as_mut_ptr().cast()
    }

    fn write_group(&mut self) {
        let count = self.filled;
        if count == 0 {
            return;
        }
        let mut blocks: [u32; GROUP_PAGES] =
            std::array::from_fn(|index| self.first.wrapping_add(index as u32));
        let mut pages = [std::ptr::null_mut(); GROUP_PAGES];
        for (index, page) in pages.iter_mut().enumerate().take(count) {
            *page = self.page(index);
        }
        // SAFETY: the table is open; the pages are initialised and our own.
        unsafe {
            let smgr = ports::RelationGetSmgr(self.table);
            for (index, (&page, &block)) in pages.iter().zip(&blocks).enumerate().take(count) {
                // A spare page still has the position of the record that logged it.
                (*page.cast::<pg_sys::PageHeaderData>()).pd_lsn = pg_sys::PageXLogRecPtr::default();
                pg_sys::PageSetChecksumInplace(page, block);
                let is_last_of_file = index + 1 == count || (block + 1).is_multiple_of(FILE_BLOCKS);
                #[cfg(any(feature = "pg15", feature = "pg16"))]
                pg_sys::smgrwrite(smgr, MAIN, block, page.cast(), !is_last_of_file);
                #[cfg(not(any(feature = "pg15", feature = "pg16")))]
                {
                    let mut buffer = page.cast_const().cast();
                    pg_sys::smgrwritev(smgr, MAIN, block, &mut buffer, 1, !is_last_of_file);
                }
            }
            if self.table.needs_wal() {
                let mut locator = self.table.file();
                pg_sys::log_newpages(
                    &mut locator,
                    MAIN,
                    count as i32,
                    blocks.as_mut_ptr(),
                    pages.as_mut_ptr(),
                    true,
                );
            }
        }
        self.first += count as u32;
        self.filled = 0;
        for (&block, page) in blocks.iter().zip(&self.pages).take(count) {
            refresh_buffer(self.table, block, &page.0);
        }
    }
}

/// If a buffer holds the block as it was before, gives it the page as the file has it. Nobody else
/// can read the pages of a temporary table.
fn refresh_buffer(table: OpenTable<'_>, block: u32, page: &[u8]) {
    // SAFETY: the table is open. Only the first step of a prefetch matters here: it looks for a buffer.
    let has_buffer =
        || unsafe { pg_sys::PrefetchBuffer(table.as_ptr(), MAIN, block) }.recent_buffer != 0;
    if !table.uses_local_buffers() && has_buffer() {
        LockedPage::exclusive(table, block).replace(page);
    }
}

#[cfg(feature = "pg15")]
/// Takes room for the blocks from `first` up to `end`; where the file system cannot tell, nothing
/// happens. The files may be longer after that. A full disk is an ERROR.
///
/// # Safety
/// `smgr` is of a relation that has `first` blocks and that the caller alone may lengthen.
unsafe fn take_room(smgr: pg_sys::SMgrRelation, first: u32, end: u32) {
    let mut from = first;
    while from < end {
        let file = from / FILE_BLOCKS;
        let to = end.min((file + 1) * FILE_BLOCKS);
        // SAFETY: the caller's promise.
        unsafe { take_room_in_file(smgr, file, from % FILE_BLOCKS, to - from) }
        from = to;
    }
}

#[cfg(feature = "pg15")]
/// # Safety
/// As for [`take_room`]; the blocks are counted from the beginning of the `file`th file.
unsafe fn take_room_in_file(smgr: pg_sys::SMgrRelation, file: u32, first: u32, blocks: u32) {
    // SAFETY: the path is a string of the server's; the descriptor is closed here, or by the
    // transaction's end after an ERROR.
    let result = unsafe {
        let node = (*smgr).smgr_rnode;
        let path = pg_sys::GetRelationPath(
            node.node.dbNode,
            node.node.spcNode,
            node.node.relNode,
            node.backend,
            pg_sys::ForkNumber::MAIN_FORKNUM,
        );
        let mut name = CStr::from_ptr(path).to_bytes().to_vec();
        pg_sys::pfree(path.cast());
        if file > 0 {
            name.extend_from_slice(format!(".{file}").as_bytes());
        }
        name.push(0);
        let descriptor =
            pg_sys::OpenTransientFile(name.as_ptr().cast(), libc::O_RDWR | libc::O_CREAT);
        if descriptor < 0 {
            // The write that follows tells why.
            return;
        }
        let result = libc::posix_fallocate(
            descriptor,
            i64::from(first) * BLCKSZ as i64,
            i64::from(blocks) * BLCKSZ as i64,
        );
        pg_sys::CloseTransientFile(descriptor);
        result
    };
    if matches!(result, libc::ENOSPC | libc::EDQUOT) {
        error::raise(
            PgSqlErrorCode::ERRCODE_DISK_FULL,
            "could not extend the table: no space left on device",
            "Check free disk space.",
        );
    }
}
