//! The signals of this process.

use pgrx::pg_sys;
use std::mem::MaybeUninit;

/// Sets the handler of a signal. PostgreSQL 18 renames the function by a macro.
///
/// # Safety
/// The handler may run at any time from now on.
pub unsafe fn pqsignal(signal: i32, handler: pg_sys::pqsigfunc) {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::pqsignal(signal, handler);
        #[cfg(feature = "pg18")]
        pg_sys::pqsignal_be(signal, handler);
    }
}

/// A guard. While it lives, its thread receives no signals. Threads that are started meanwhile never receive any.
///
/// PostgreSQL's signal handlers set variables of the backend and wake it, so they must run on the backend's own thread.
/// A signal that arrives while the guard lives waits.
pub struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    /// Blocks all signals.
    pub fn new() -> SignalsBlocked {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the first call writes a set, which the second one reads before it writes the other. Neither fails
        // with these arguments.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            SignalsBlocked(before.assume_init())
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: the set is the one that was valid before.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether this thread receives SIGUSR1.
    fn is_received() -> bool {
        let mut now = MaybeUninit::uninit();
        // SAFETY: the call writes the set of this thread, which is then read.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), now.as_mut_ptr());
            libc::sigismember(now.as_ptr(), libc::SIGUSR1) == 0
        }
    }

    #[test]
    fn a_thread_that_is_started_meanwhile_receives_no_signals() {
        assert!(is_received());
        let blocked = SignalsBlocked::new();
        let other = std::thread::spawn(is_received);
        drop(blocked);
        assert!(is_received());
        assert!(!other.join().expect("a thread that ends"));
    }
}
