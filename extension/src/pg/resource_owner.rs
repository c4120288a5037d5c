//! Resource owners, and locks that are waited for within a time.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};

/// Who owns pins, locks and open files: a statement, a subtransaction or a transaction.
#[derive(Clone, Copy)]
pub struct ResourceOwner(pg_sys::ResourceOwner);

impl ResourceOwner {
    /// The current owner.
    pub fn current() -> ResourceOwner {
        // SAFETY: a read of a variable of this process, which has one thread.
        ResourceOwner(unsafe { pg_sys::CurrentResourceOwner })
    }

    /// Runs `work` as this owner, which still lives. `work` does not panic.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        // SAFETY: the owner lives, and the current one is put back.
        unsafe {
            let current = pg_sys::CurrentResourceOwner;
            pg_sys::CurrentResourceOwner = self.0;
            let result = work();
            pg_sys::CurrentResourceOwner = current;
            result
        }
    }
}

/// Runs `lock`, which waits for a lock, and returns the lock's owner, the transaction. `None`: the lock was not free
/// within `wait_max`, or within `lock_timeout` if that is shorter. Nobody waits any more then.
pub fn lock_within(wait_max: Duration, lock: impl FnOnce()) -> Option<ResourceOwner> {
    let wait_max = i32::try_from(wait_max.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the error that ends the wait leaves nothing behind once its subtransaction is rolled back; the setting is
    // this process's own, and is put back whatever happens.
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
            lock();
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
        taken.then_some(ResourceOwner(pg_sys::CurTransactionResourceOwner))
    }
}
