//! This process as a background worker: its main function, connections, settings, and how urgent it is.

use std::ffi::{CStr, c_int};

use pgrx::pg_sys;

use super::signals::pqsignal;

/// Registers main functions of background workers: `symbol => body;`, where `body` is `fn(Datum)`, which takes the
/// worker's argument.
#[macro_export]
macro_rules! worker_mains {
    ($($symbol:ident => $body:expr;)*) => {$(
        #[doc = concat!("Worker: `", stringify!($symbol), "`.")]
        #[pgrx::pg_guard]
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $symbol(argument: pgrx::pg_sys::Datum) {
            let body: fn(pgrx::pg_sys::Datum) = $body;
            body(argument);
        }
    )*};
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

/// Connects a worker that was registered with access to databases to none of them: it reads shared catalogs only.
pub fn connect_to_shared_catalogs() {
    // SAFETY: no database and no role are chosen.
    unsafe { pg_sys::BackgroundWorkerInitializeConnection(std::ptr::null(), std::ptr::null(), 0) };
}

/// Reads the configuration again, outside of transactions.
pub fn reload_configuration() {
    // SAFETY: as every process of the server does when it is told to.
    unsafe { pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP) };
}

/// Sets a setting of this process whatever the database or its owner has set, outside of transactions, as autovacuum
/// does.
pub fn override_setting(name: &CStr, value: &CStr) {
    let (context, source) = (
        pg_sys::GucContext::PGC_SUSET,
        pg_sys::GucSource::PGC_S_OVERRIDE,
    );
    // SAFETY: both strings are copied.
    unsafe { pg_sys::SetConfigOption(name.as_ptr(), value.as_ptr(), context, source) };
}

/// Aborts the transaction of a worker after an ERROR at the top, as core does: locks, pins and memory of the
/// transaction go with it.
pub fn abort_transaction() {
    // SAFETY: nothing of the transaction is in use at the top.
    unsafe { pg_sys::AbortCurrentTransaction() };
}

/// Sets the nice value of this process. If it is refused, the process is as urgent as before.
pub fn set_nice(nice: i32) {
    // SAFETY: a call without pointers, about this process, which has one thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
}
