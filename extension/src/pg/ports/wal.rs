//! WAL records of core's that are written here.

use pgrx::pg_sys;

use super::RelFileLocator;
use crate::pg::table::OpenTable;

unsafe extern "C-unwind" {
    #[link_name = "log_smgrcreate"]
    fn log_create(locator: *const RelFileLocator, fork: pg_sys::ForkNumber::Type);
}

/// WAL-logs the creation of a fork's file, which the caller has made.
pub fn log_smgrcreate(locator: &RelFileLocator, fork: pg_sys::ForkNumber::Type) {
    // SAFETY: the locator is live; the boundary turns an ERROR into a panic.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| log_create(locator, fork)) }
}

/// nbtxlog.h; the same in every supported version.
const XLOG_BTREE_REUSE_PAGE: u8 = 0xD0;

/// Makes every standby cancel queries whose snapshot still needs what transactions up to `horizon` removed or
/// froze. Core writes such a record when a B-tree page is recycled; its replay touches no page, only conflicts,
/// which is exactly what a VACUUM of ours must announce and cannot by generic WAL records. The table is WAL-logged, and
/// `horizon` is a normal transaction id.
pub fn log_snapshot_conflict(table: OpenTable<'_>, horizon: u32) {
    // SAFETY: the record lives on this stack until XLogInsert has copied it.
    unsafe {
        let next = pg_sys::ReadNextFullTransactionId();
        let age = (next.value as u32).wrapping_sub(horizon) as u64;
        // xl_btree_reuse_page: locator, block, full transaction id and, from version 16 on, whether it is a catalogue.
        let mut record = Vec::with_capacity(32);
        let (space, database, file) = table.locator();
        for part in [space, database, file, pg_sys::InvalidBlockNumber] {
            record.extend_from_slice(&part.to_ne_bytes());
        }
        record.extend_from_slice(&next.value.saturating_sub(age).to_ne_bytes());
        #[cfg(not(feature = "pg15"))]
        record.push(0u8);
        pg_sys::XLogBeginInsert();
        pg_sys::XLogRegisterData(record.as_mut_ptr().cast(), record.len() as _);
        pg_sys::XLogInsert(pg_sys::RmgrIds::RM_BTREE_ID as u8, XLOG_BTREE_REUSE_PAGE);
    }
}
