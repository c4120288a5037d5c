//! What the gateway does about object storage, as requests and people see it.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::state::ObjectState;

/// The state of object storage, and whether writes are refused because of it.
#[derive(Default)]
pub struct ObjectStatus {
    state: Mutex<ObjectState>,
    /// Why writes are refused until object storage has caught up.
    backlog_refusal: Mutex<Option<String>>,
    /// Whether there is such a reason. Most requests read only this.
    is_backlog_full: AtomicBool,
}

impl ObjectStatus {
    /// Records the state.
    pub fn set_state(&self, state: ObjectState) {
        *self.state.lock() = state;
    }

    /// The state. It does not affect whether the gateway accepts requests.
    pub fn state(&self) -> ObjectState {
        *self.state.lock()
    }

    /// Records why writes are refused until object storage has caught up, or that they are not.
    pub fn set_backlog_refusal(&self, refusal: Option<String>) {
        let is_full = refusal.is_some();
        *self.backlog_refusal.lock() = refusal;
        self.is_backlog_full.store(is_full, Ordering::Release);
    }

    /// Why writes are refused until object storage has caught up, if they are.
    pub fn backlog_refusal(&self) -> Option<String> {
        let is_full = self.is_backlog_full.load(Ordering::Acquire);
        is_full
            .then(|| self.backlog_refusal.lock().clone())
            .flatten()
    }
}
