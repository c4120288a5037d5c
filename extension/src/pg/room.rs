//! Room on disk for blocks at the end of a relation's main fork, as `smgrzeroextend` takes it from PostgreSQL 16 on.

use std::ffi::CStr;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::ports::BLCKSZ;
use crate::error;

/// Blocks of one file of a relation.
const FILE_BLOCKS: u32 = pg_sys::RELSEG_SIZE;

/// Takes room for the blocks from `first` up to `end`; where the file system cannot tell, nothing
/// happens. The files may be longer after that. A full disk is an ERROR.
///
/// # Safety
/// `smgr` is of a relation that has `first` blocks and that the caller alone may lengthen.
pub unsafe fn take(smgr: pg_sys::SMgrRelation, first: u32, end: u32) {
    let mut from = first;
    while from < end {
        let file = from / FILE_BLOCKS;
        let to = end.min((file + 1) * FILE_BLOCKS);
        // SAFETY: the caller's promise.
        unsafe { take_in_file(smgr, file, from % FILE_BLOCKS, to - from) }
        from = to;
    }
}

/// # Safety
/// As for [`take`]; the blocks are counted from the beginning of the `file`th file.
unsafe fn take_in_file(smgr: pg_sys::SMgrRelation, file: u32, first: u32, blocks: u32) {
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
