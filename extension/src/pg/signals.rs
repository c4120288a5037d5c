//! This process and the operating system: signals, memory, urgency, environment.

use pgrx::pg_sys;
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// Sets the handler of a signal. PostgreSQL 18 renames the function by a macro.
///
/// # Safety
/// The handler may run at any time from now on.
unsafe fn pqsignal(signal: i32, handler: pg_sys::pqsigfunc) {
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

unsafe extern "C-unwind" {
    // Core's handler of SIGTERM, without the bindings' error boundary: it only sets flags.
    fn die(signal: c_int);
}

/// Makes SIGTERM end a long piece of work at its next check for interrupts, as in any session. Called before any work.
pub fn let_sigterm_cancel() {
    // SAFETY: core's own handler; nothing runs yet.
    unsafe { pqsignal(pg_sys::SIGTERM as i32, Some(die)) };
}

/// Sets the nice value of this process. If it is refused, the process is as urgent as before.
pub fn set_nice(nice: i32) {
    // SAFETY: a call without pointers, about this process, which has one thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
}

/// Bytes of memory that the machine has; 0 if the system does not say.
pub fn machine_bytes() -> i64 {
    // SAFETY: calls without pointers.
    let [pages, page_bytes] =
        [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
    pages.saturating_mul(page_bytes).max(0)
}

/// Lets the C library's heap keep up to so many bytes of freed memory. Does nothing without the GNU C library.
pub fn keep_freed_bytes(bytes: i32) {
    #[cfg(target_env = "gnu")]
    // SAFETY: the allocator locks these parameters, and uses them from its next call on.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, bytes);
        libc::mallopt(libc::M_TRIM_THRESHOLD, bytes);
    }
}

/// Keeps backtraces out of errors. Errors of PostgreSQL's own pass through Rust on their way; with `RUST_BACKTRACE` set
/// in the server's environment each would carry one in its DETAIL.
pub fn silence_backtraces() {
    // SAFETY: this process has one thread.
    unsafe { std::env::set_var("RUST_LIB_BACKTRACE", "0") };
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
