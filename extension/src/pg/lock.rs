//! Heavyweight locks as values.

use pgrx::pg_sys;

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
        taken.then_some(RowQueueLock {
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
