//! What the participants of a parallel query share.

use std::ops::Deref;

use crate::pg::functions::process;

/// A value in the dynamic shared memory of a parallel query. It is valid until the node's shutdown callback returns,
/// when its holder forgets the handle.
pub struct SharedState<T: 'static>(&'static T);

impl<T> Clone for SharedState<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SharedState<T> {}

impl<T> Deref for SharedState<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

impl<T> SharedState<T> {
    /// The value, for what is dropped when the holder forgets the handle.
    pub fn lasting(self) -> &'static T {
        self.0
    }

    /// A value that is initialised. The holder forgets the handle in the node's shutdown callback.
    pub fn of(value: &'static T) -> SharedState<T> {
        SharedState(value)
    }
}

/// Whether this process is a worker of a parallel query.
pub fn is_worker() -> bool {
    process::ParallelWorkerNumber() >= 0
}
