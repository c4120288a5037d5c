//! What the participants of a parallel query share.

use std::ops::Deref;
use std::ptr::NonNull;

use pgrx::pg_sys;

/// A value in the dynamic shared memory of a parallel query. It is valid until the node's shutdown callback returns.
pub struct SharedState<T>(NonNull<T>);

impl<T> Clone for SharedState<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SharedState<T> {}

impl<T> Deref for SharedState<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `of` was promised an initialised value that outlives the handle.
        unsafe { self.0.as_ref() }
    }
}

impl<T> SharedState<T> {
    /// The value, for what is dropped when the holder forgets the handle.
    pub fn lasting(self) -> &'static T
    where
        T: 'static,
    {
        // SAFETY: as for `deref`.
        unsafe { self.0.as_ref() }
    }

    /// # Safety
    /// `memory` points to an initialised value. The holder forgets the handle in the node's shutdown callback.
    pub unsafe fn of(memory: *mut T) -> Option<SharedState<T>> {
        NonNull::new(memory).map(SharedState)
    }
}

/// Whether this process is a worker of a parallel query.
pub fn is_worker() -> bool {
    // SAFETY: reads a variable of this process.
    unsafe { pg_sys::ParallelWorkerNumber >= 0 }
}
