//! Condition variables in shared memory.

use std::cell::UnsafeCell;

use pgrx::pg_sys;

/// A condition variable, by which processes wake others. It lies in shared memory.
#[repr(transparent)]
pub struct ConditionVariable(UnsafeCell<pg_sys::ConditionVariable>);

// SAFETY: PostgreSQL's functions lock the variable themselves.
unsafe impl Sync for ConditionVariable {}

impl ConditionVariable {
    /// A variable that nobody waits for.
    pub fn new() -> ConditionVariable {
        let mut variable = pg_sys::ConditionVariable::default();
        // SAFETY: the variable is a value of our own, and may be moved while nobody waits for it.
        unsafe { pg_sys::ConditionVariableInit(&raw mut variable) };
        ConditionVariable(UnsafeCell::new(variable))
    }

    /// Enters this process among those that [`ConditionVariable::broadcast`] wakes. From here on no wake-up is missed.
    pub fn prepare_to_sleep(&'static self) {
        // SAFETY: the variable stays as long as the process.
        unsafe { pg_sys::ConditionVariablePrepareToSleep(self.0.get()) }
    }

    /// Sleeps until somebody wakes this process, or so many milliseconds have passed. The cancellation of a query is an
    /// ERROR.
    pub fn sleep(&'static self, milliseconds: i64) {
        let timeout = milliseconds as std::ffi::c_long;
        // SAFETY: the variable stays as long as the process.
        unsafe {
            pg_sys::ConditionVariableTimedSleep(self.0.get(), timeout, pg_sys::PG_WAIT_EXTENSION);
        }
    }

    /// Wakes all processes that wait.
    pub fn broadcast(&self) {
        // SAFETY: the variable is live.
        unsafe { pg_sys::ConditionVariableBroadcast(self.0.get()) }
    }
}

/// Ends what [`ConditionVariable::prepare_to_sleep`] began.
pub fn cancel_sleep() {
    // SAFETY: without a preparation there is nothing to end.
    unsafe {
        pg_sys::ConditionVariableCancelSleep();
    }
}
