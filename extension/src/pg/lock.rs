//! Heavyweight locks as values.

use std::time::Duration;

use pgrx::pg_sys;

use super::functions::{Place, process, relation};
use super::ports;
use super::resource_owner::{self, ResourceOwner};
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
        relation::LockPage(table, 0, mode);
        SpaceLock { table, mode }
    }
}

impl Drop for SpaceLock<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // An abort releases it by the resource owner instead.
            relation::UnlockPage(self.table, 0, self.mode);
        }
    }
}

/// A new token for rows of a transaction that may yet be taken back. Others can wait for its release.
pub fn take_token(xid: u32) -> u32 {
    process::SpeculativeInsertionLockAcquire(xid.into())
}

/// Releases the token.
pub fn release_token(xid: u32) {
    process::SpeculativeInsertionLockRelease(xid.into());
}

/// The lock on extending a table's file before there is a metapage.
pub struct ExtensionLock<'a> {
    table: OpenTable<'a>,
}

impl<'a> ExtensionLock<'a> {
    /// Waits for the lock.
    pub fn acquire(table: OpenTable<'a>) -> ExtensionLock<'a> {
        relation::LockRelationForExtension(table, pg_sys::ExclusiveLock as i32);
        ExtensionLock { table }
    }
}

impl Drop for ExtensionLock<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let mode = pg_sys::ExclusiveLock as i32;
            // An abort releases it by the resource owner instead.
            relation::UnlockRelationForExtension(self.table, mode);
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
    owner: ResourceOwner,
}

/// The page that stands for the lock.
const ROW_NUMBERS_PAGE: u32 = 1;

impl<'a> RowNumbersLock<'a> {
    /// Shares the lock until the transaction ends.
    pub fn share_until_commit(table: OpenTable<'a>) {
        relation::LockPage(table, ROW_NUMBERS_PAGE, pg_sys::ShareLock as i32);
    }

    /// `None`: others hold it.
    pub fn try_exclusive(table: OpenTable<'a>) -> Option<RowNumbersLock<'a>> {
        let mode = pg_sys::ExclusiveLock as i32;
        let taken = relation::ConditionalLockPage(table, ROW_NUMBERS_PAGE, mode);
        let owner = ResourceOwner::current();
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
        let lock = || relation::LockPage(table, ROW_NUMBERS_PAGE, mode);
        let owner = resource_owner::lock_within(wait_max, lock)?;
        Some(RowNumbersLock { table, owner })
    }
}

impl Drop for RowNumbersLock<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let mode = pg_sys::ExclusiveLock as i32;
            // The owner lives as long as the statement or longer. An abort releases the lock by the
            // owner instead.
            let table = self.table;
            let unlock = || relation::UnlockPage(table, ROW_NUMBERS_PAGE, mode);
            self.owner.run(unlock);
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
            if attempt > 0 {
                process::pg_usleep(Self::PAUSE_MICROS);
                ports::CHECK_FOR_INTERRUPTS();
            }
            // Others that wait for the table, such as an ALTER TABLE, go first.
            if relation::LockHasWaitersRelation(table, own) {
                return None;
            }
            if relation::ConditionalLockRelation(table, sole) {
                return Some(SoleUse { table });
            }
        }
        None
    }
}

impl Drop for SoleUse<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let mode = pg_sys::AccessExclusiveLock as i32;
            // An abort releases it by the resource owner instead.
            relation::UnlockRelation(self.table, mode);
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
        relation::LockTuple(table, Place(&mut pointer), mode);
        RowQueueLock { table, tid, mode }
    }

    /// `None`: another transaction holds it.
    pub fn try_acquire(
        table: OpenTable<'a>,
        tid: pg_sys::ItemPointerData,
        mode: i32,
    ) -> Option<RowQueueLock<'a>> {
        let mut pointer = tid;
        let taken = ports::ConditionalLockTuple(table, &mut pointer, mode);
        taken.then(|| RowQueueLock { table, tid, mode })
    }
}

impl Drop for RowQueueLock<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // An abort releases it by the resource owner instead.
            relation::UnlockTuple(self.table, Place(&mut self.tid), self.mode);
        }
    }
}
