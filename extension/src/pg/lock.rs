//! Heavyweight locks as values.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};

use super::ports;
use super::table::OpenTable;

/// The relation's *space lock*: page lock 0 of the relation. Writers share it from allocating
/// blocks until their directory entry names them. The sweep that looks for blocks that nothing
/// names takes it exclusively, so it never frees blocks that are about to be named.
pub struct SpaceLock<'a> {
    table: OpenTable<'a>,
    mode: i32,
}

impl<'a> SpaceLock<'a> {
    pub fn share(table: OpenTable<'a>) -> SpaceLock<'a> {
        Self::take(table, pg_sys::ShareLock as i32)
    }

    pub fn exclusive(table: OpenTable<'a>) -> SpaceLock<'a> {
        Self::take(table, pg_sys::ExclusiveLock as i32)
    }

    fn take(table: OpenTable<'a>, mode: i32) -> SpaceLock<'a> {
        // SAFETY: the table is open.
        unsafe { pg_sys::LockPage(table.as_ptr(), 0, mode) };
        SpaceLock { table, mode }
    }
}

impl Drop for SpaceLock<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: taken in `take`; an abort releases it by the resource owner instead.
            unsafe { pg_sys::UnlockPage(self.table.as_ptr(), 0, self.mode) }
        }
    }
}

/// The lock on extending a table's file before there is a metapage.
pub struct ExtensionLock<'a> {
    table: OpenTable<'a>,
}

impl<'a> ExtensionLock<'a> {
    /// Waits for the lock.
    pub fn acquire(table: OpenTable<'a>) -> ExtensionLock<'a> {
        // SAFETY: the table is open.
        unsafe {
            pg_sys::LockRelationForExtension(table.as_ptr(), pg_sys::ExclusiveLock as i32);
        }
        ExtensionLock { table }
    }
}

impl Drop for ExtensionLock<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let mode = pg_sys::ExclusiveLock as i32;
            // SAFETY: taken in `acquire`; an abort releases it by the resource owner instead.
            unsafe { pg_sys::UnlockRelationForExtension(self.table.as_ptr(), mode) }
        }
    }
}

/// The relation's *row numbers lock*: page lock 1 of the relation. Whoever looks for rows by their
/// numbers, to change or lock them, shares it until its transaction ends. Sealing gives rows new
/// numbers. It takes the lock exclusively for that moment, if it gets the lock soon. So a number
/// that was found means the same row when it is used.
pub struct RowNumbersLock<'a> {
    table: OpenTable<'a>,
    /// Only this resource owner can release it.
    owner: pg_sys::ResourceOwner,
}

/// The page that stands for the lock.
const ROW_NUMBERS_PAGE: u32 = 1;

impl<'a> RowNumbersLock<'a> {
    /// Shares the lock until the transaction ends.
    pub fn share_until_commit(table: OpenTable<'a>) {
        // SAFETY: the table is open.
        unsafe { pg_sys::LockPage(table.as_ptr(), ROW_NUMBERS_PAGE, pg_sys::ShareLock as i32) };
    }

    /// `None`: others hold it.
    pub fn try_exclusive(table: OpenTable<'a>) -> Option<RowNumbersLock<'a>> {
        let mode = pg_sys::ExclusiveLock as i32;
        // SAFETY: the table is open.
        let (taken, owner) = unsafe {
            let taken = pg_sys::ConditionalLockPage(table.as_ptr(), ROW_NUMBERS_PAGE, mode);
            (taken, pg_sys::CurrentResourceOwner)
        };
        // The value is made only after this. Dropping it before would release a lock that nobody
        // holds.
        taken.then(|| RowNumbersLock { table, owner })
    }

    /// Waits for the lock in its queue, so that later requests to share it queue behind. `None`:
    /// those who share it have not ended within `wait_max`, or within `lock_timeout` if that is
    /// shorter. Nobody waits any more then.
    pub fn exclusive_within(
        table: OpenTable<'a>,
        wait_max: Duration,
    ) -> Option<RowNumbersLock<'a>> {
        let mode = pg_sys::ExclusiveLock as i32;
        let wait_max = i32::try_from(wait_max.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the table is open. The error that ends the wait leaves nothing behind once its subtransaction is
        // rolled back; the setting is this backend's own, and is put back whatever happens.
        unsafe {
            let (context, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
            let setting = pg_sys::LockTimeout;
            pg_sys::BeginInternalSubTransaction(std::ptr::null());
            pg_sys::MemoryContextSwitchTo(context);
            pg_sys::LockTimeout = match setting {
                0 => wait_max.max(1),
                setting => setting.min(wait_max.max(1)),
            };
            let wait = AssertUnwindSafe(|| {
                pg_sys::LockPage(table.as_ptr(), ROW_NUMBERS_PAGE, mode);
                true
            });
            let taken = PgTryBuilder::new(wait)
                .catch_when(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, |_| false)
                .finally(|| pg_sys::LockTimeout = setting)
                .execute();
            if taken {
                // The lock becomes the transaction's, and the transaction outlives this statement.
                pg_sys::ReleaseCurrentSubTransaction();
            } else {
                pg_sys::RollbackAndReleaseCurrentSubTransaction();
            }
            pg_sys::MemoryContextSwitchTo(context);
            pg_sys::CurrentResourceOwner = owner;
            taken.then(|| RowNumbersLock {
                table,
                owner: pg_sys::CurTransactionResourceOwner,
            })
        }
    }
}

impl Drop for RowNumbersLock<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let mode = pg_sys::ExclusiveLock as i32;
            // SAFETY: taken above by this owner, which lives as long as the statement or longer; an
            // abort releases it by the resource owner instead.
            unsafe {
                let current = pg_sys::CurrentResourceOwner;
                pg_sys::CurrentResourceOwner = self.owner;
                pg_sys::UnlockPage(self.table.as_ptr(), ROW_NUMBERS_PAGE, mode);
                pg_sys::CurrentResourceOwner = current;
            }
        }
    }
}

/// Exclusive use of the relation: its AccessExclusiveLock, as VACUUM of a heap takes it to shorten
/// the file. Standbys take it too, until the transaction has ended.
pub struct SoleUse<'a> {
    table: OpenTable<'a>,
}

impl<'a> SoleUse<'a> {
    /// The pause between two attempts.
    const PAUSE_MICROS: std::ffi::c_long = 50_000;

    /// Tries for so many attempts, with pauses. `None`: others use the relation all the time, or
    /// wait for it.
    pub fn within(table: OpenTable<'a>, attempts: u32) -> Option<SoleUse<'a>> {
        let (own, sole) = (
            pg_sys::ShareUpdateExclusiveLock as i32,
            pg_sys::AccessExclusiveLock as i32,
        );
        for attempt in 0..attempts {
            // SAFETY: the table is open.
            unsafe {
                if attempt > 0 {
                    pg_sys::pg_usleep(Self::PAUSE_MICROS);
                    ports::CHECK_FOR_INTERRUPTS();
                }
                // Others that wait for the table, such as an ALTER TABLE, go first.
                if pg_sys::LockHasWaitersRelation(table.as_ptr(), own) {
                    return None;
                }
                if pg_sys::ConditionalLockRelation(table.as_ptr(), sole) {
                    return Some(SoleUse { table });
                }
            }
        }
        None
    }
}

impl Drop for SoleUse<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let mode = pg_sys::AccessExclusiveLock as i32;
            // SAFETY: taken above; an abort releases it by the resource owner instead.
            unsafe { pg_sys::UnlockRelation(self.table.as_ptr(), mode) }
        }
    }
}

/// The heavyweight lock on one row. Those who wait for the row's writer queue behind it, so that
/// nobody starves.
pub struct RowQueueLock<'a> {
    table: OpenTable<'a>,
    tid: pg_sys::ItemPointerData,
    mode: i32,
}

impl<'a> RowQueueLock<'a> {
    pub fn acquire(
        table: OpenTable<'a>,
        tid: pg_sys::ItemPointerData,
        mode: i32,
    ) -> RowQueueLock<'a> {
        let mut pointer = tid;
        // SAFETY: the table is open.
        unsafe { pg_sys::LockTuple(table.as_ptr(), &mut pointer, mode) };
        RowQueueLock { table, tid, mode }
    }

    /// `None`: another transaction holds it.
    pub fn try_acquire(
        table: OpenTable<'a>,
        tid: pg_sys::ItemPointerData,
        mode: i32,
    ) -> Option<RowQueueLock<'a>> {
        let mut pointer = tid;
        // SAFETY: the table is open.
        let taken = unsafe { ports::ConditionalLockTuple(table.as_ptr(), &mut pointer, mode) };
        taken.then(|| RowQueueLock { table, tid, mode })
    }
}

impl Drop for RowQueueLock<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: taken above; an abort releases it by the resource owner instead.
            unsafe { pg_sys::UnlockTuple(self.table.as_ptr(), &mut self.tid, self.mode) }
        }
    }
}
