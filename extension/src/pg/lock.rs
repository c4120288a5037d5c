//! Heavyweight locks as values.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};

use super::ports;

/// The relation's *space lock*: page lock 0 of the relation. Writers share it from allocating blocks until their
/// directory entry names them; the sweep that looks for unreferenced blocks takes it exclusively, so that blocks in
/// flight are never taken for free ones.
pub struct SpaceLock {
    relation: pg_sys::Relation,
    mode: i32,
}

impl SpaceLock {
    /// # Safety
    /// `relation` is open and outlives the lock.
    pub unsafe fn share(relation: pg_sys::Relation) -> SpaceLock {
        // SAFETY: the caller's promise.
        unsafe { Self::take(relation, pg_sys::ShareLock as i32) }
    }

    /// # Safety
    /// `relation` is open and outlives the lock.
    pub unsafe fn exclusive(relation: pg_sys::Relation) -> SpaceLock {
        // SAFETY: the caller's promise.
        unsafe { Self::take(relation, pg_sys::ExclusiveLock as i32) }
    }

    unsafe fn take(relation: pg_sys::Relation, mode: i32) -> SpaceLock {
        // SAFETY: the caller's promise.
        unsafe { pg_sys::LockPage(relation, 0, mode) };
        SpaceLock { relation, mode }
    }
}

impl Drop for SpaceLock {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: taken in `take`; an abort releases it by the resource owner instead.
            unsafe { pg_sys::UnlockPage(self.relation, 0, self.mode) }
        }
    }
}

/// The relation's *row numbers lock*: page lock 1 of the relation. Whoever finds rows in order to change or lock them, by
/// their numbers, shares it until its transaction ends; sealing numbers rows anew and takes it exclusively for that moment,
/// if it can be had soon. So a number that was found still means the same row when it is used.
pub struct RowNumbersLock {
    relation: pg_sys::Relation,
    /// Only this resource owner can give it back.
    owner: pg_sys::ResourceOwner,
}

/// The page that stands for it.
const ROW_NUMBERS_PAGE: u32 = 1;

impl RowNumbersLock {
    /// Shares it until the transaction ends.
    ///
    /// # Safety
    /// `relation` is open.
    pub unsafe fn share_until_commit(relation: pg_sys::Relation) {
        // SAFETY: the caller's promise.
        unsafe { pg_sys::LockPage(relation, ROW_NUMBERS_PAGE, pg_sys::ShareLock as i32) };
    }

    /// `None`: others hold it.
    ///
    /// # Safety
    /// `relation` is open and outlives the lock.
    pub unsafe fn try_exclusive(relation: pg_sys::Relation) -> Option<RowNumbersLock> {
        let mode = pg_sys::ExclusiveLock as i32;
        // SAFETY: the caller's promise.
        let (taken, owner) = unsafe {
            let taken = pg_sys::ConditionalLockPage(relation, ROW_NUMBERS_PAGE, mode);
            (taken, pg_sys::CurrentResourceOwner)
        };
        // Not a value that is made first: dropping it would give back what nobody has.
        taken.then(|| RowNumbersLock { relation, owner })
    }

    /// Waits for it in its queue, so that whoever wants to share it from now on stands behind. `None`: those who share it have
    /// not ended within `wait_max`, or `lock_timeout` if that is shorter; then nobody waits any more.
    ///
    /// # Safety
    /// `relation` is open and outlives the lock.
    pub unsafe fn exclusive_within(
        relation: pg_sys::Relation,
        wait_max: Duration,
    ) -> Option<RowNumbersLock> {
        let mode = pg_sys::ExclusiveLock as i32;
        let wait_max = i32::try_from(wait_max.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the caller's promise. The error that ends the wait leaves nothing behind once its subtransaction is
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
                pg_sys::LockPage(relation, ROW_NUMBERS_PAGE, mode);
                true
            });
            let taken = PgTryBuilder::new(wait)
                .catch_when(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, |_| false)
                .finally(|| pg_sys::LockTimeout = setting)
                .execute();
            if taken {
                // The lock becomes the transaction's, which a statement of it is not.
                pg_sys::ReleaseCurrentSubTransaction();
            } else {
                pg_sys::RollbackAndReleaseCurrentSubTransaction();
            }
            pg_sys::MemoryContextSwitchTo(context);
            pg_sys::CurrentResourceOwner = owner;
            taken.then(|| RowNumbersLock {
                relation,
                owner: pg_sys::CurTransactionResourceOwner,
            })
        }
    }
}

impl Drop for RowNumbersLock {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let mode = pg_sys::ExclusiveLock as i32;
            // SAFETY: taken above by this owner, which lives as long as the statement or longer; an abort releases it by the
            // resource owner instead.
            unsafe {
                let current = pg_sys::CurrentResourceOwner;
                pg_sys::CurrentResourceOwner = self.owner;
                pg_sys::UnlockPage(self.relation, ROW_NUMBERS_PAGE, mode);
                pg_sys::CurrentResourceOwner = current;
            }
        }
    }
}

/// The relation for oneself: its lock in AccessExclusive mode, as VACUUM of a heap takes it to shorten the file. Standbys take it
/// too, until the transaction has ended.
pub struct SoleUse {
    relation: pg_sys::Relation,
}

impl SoleUse {
    /// Between two attempts to get it.
    const PAUSE_MICROS: std::ffi::c_long = 50_000;

    /// Tries so often, a moment apart. `None`: others use the relation all the time, or wait for it.
    ///
    /// # Safety
    /// `relation` is open, locked in ShareUpdateExclusive mode, and outlives the value.
    pub unsafe fn within(relation: pg_sys::Relation, attempts: u32) -> Option<SoleUse> {
        let (own, sole) = (
            pg_sys::ShareUpdateExclusiveLock as i32,
            pg_sys::AccessExclusiveLock as i32,
        );
        for attempt in 0..attempts {
            // SAFETY: the caller's promise.
            unsafe {
                if attempt > 0 {
                    pg_sys::pg_usleep(Self::PAUSE_MICROS);
                    ports::CHECK_FOR_INTERRUPTS();
                }
                // An ALTER TABLE, say, goes first.
                if pg_sys::LockHasWaitersRelation(relation, own) {
                    return None;
                }
                if pg_sys::ConditionalLockRelation(relation, sole) {
                    return Some(SoleUse { relation });
                }
            }
        }
        None
    }
}

impl Drop for SoleUse {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let mode = pg_sys::AccessExclusiveLock as i32;
            // SAFETY: taken above; an abort releases it by the resource owner instead.
            unsafe { pg_sys::UnlockRelation(self.relation, mode) }
        }
    }
}

/// The heavyweight lock on one row that those who must wait for its writer queue behind, so that none starves.
pub struct RowQueueLock {
    relation: pg_sys::Relation,
    tid: pg_sys::ItemPointerData,
    mode: i32,
}

impl RowQueueLock {
    /// # Safety
    /// `relation` is open and outlives the lock.
    pub unsafe fn acquire(
        relation: pg_sys::Relation,
        tid: pg_sys::ItemPointerData,
        mode: i32,
    ) -> RowQueueLock {
        let mut pointer = tid;
        // SAFETY: the caller's promise.
        unsafe { pg_sys::LockTuple(relation, &mut pointer, mode) };
        RowQueueLock {
            relation,
            tid,
            mode,
        }
    }

    /// `None`: another holds it.
    ///
    /// # Safety
    /// `relation` is open and outlives the lock.
    pub unsafe fn try_acquire(
        relation: pg_sys::Relation,
        tid: pg_sys::ItemPointerData,
        mode: i32,
    ) -> Option<RowQueueLock> {
        let mut pointer = tid;
        // SAFETY: the caller's promise.
        let taken = unsafe { ports::ConditionalLockTuple(relation, &mut pointer, mode) };
        taken.then(|| RowQueueLock {
            relation,
            tid,
            mode,
        })
    }
}

impl Drop for RowQueueLock {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: taken above; an abort releases it by the resource owner instead.
            unsafe { pg_sys::UnlockTuple(self.relation, &mut self.tid, self.mode) }
        }
    }
}
