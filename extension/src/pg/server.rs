//! The server, the machine and this process: identity, files, settings, locks of tables.

use std::ffi::{CStr, CString};
use std::time::Duration;

use pgrx::pg_sys;

/// The database that this backend is connected to.
pub fn database() -> u32 {
    // SAFETY: set when the backend connects, and constant afterwards.
    unsafe { pg_sys::MyDatabaseId }.to_u32()
}

/// Whether the server loads the libraries of `shared_preload_libraries`.
pub fn is_preloading() -> bool {
    // SAFETY: a read of a variable of this process, which has one thread.
    unsafe { pg_sys::process_shared_preload_libraries_in_progress }
}

/// Keeps backtraces out of errors. Errors of PostgreSQL's own pass through Rust on their way; with `RUST_BACKTRACE` set
/// in the server's environment each would carry one in its DETAIL.
pub fn silence_backtraces() {
    // SAFETY: this process has one thread.
    unsafe { std::env::set_var("RUST_LIB_BACKTRACE", "0") };
}

/// The cluster's identifier, which initdb made.
pub fn system_identifier() -> u64 {
    // SAFETY: reads the control file's copy in memory.
    unsafe { pg_sys::GetSystemIdentifier() }
}

/// This process's id.
pub fn process_id() -> i32 {
    // SAFETY: set at the start of the process.
    unsafe { pg_sys::MyProcPid }
}

/// Whether this process is a worker of autovacuum.
pub fn is_autovacuum_worker() -> bool {
    // SAFETY: set at the start of the process.
    unsafe { pg_sys::MyBackendType == pg_sys::BackendType::B_AUTOVAC_WORKER }
}

/// The path of the data directory.
pub fn data_directory() -> String {
    // SAFETY: set when the server starts, NUL-terminated and constant.
    unsafe { CStr::from_ptr(pg_sys::DataDir) }
        .to_string_lossy()
        .into_owned()
}

/// The setting `deadlock_timeout`.
pub fn deadlock_timeout() -> Duration {
    // SAFETY: a setting of this backend.
    let milliseconds = unsafe { pg_sys::DeadlockTimeout };
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or_default())
}

/// Sleeps. Signals do not end it.
pub fn sleep(time: Duration) {
    // SAFETY: no lightweight lock is held by code that sleeps.
    unsafe { pg_sys::pg_usleep(time.as_micros() as std::ffi::c_long) }
}

/// The text that the server's configuration gives a setting; `None` if it names no value.
pub fn configured(setting: &CStr) -> Option<CString> {
    // SAFETY: a missing setting yields null; the string is copied at once.
    unsafe {
        let value = pg_sys::GetConfigOption(setting.as_ptr(), true, false);
        (!value.is_null()).then(|| CStr::from_ptr(value).to_owned())
    }
}

/// A size in megabytes, from a number with an optional unit.
pub fn parse_megabytes(text: &CStr) -> Option<i32> {
    let mut megabytes = 0;
    let unit = pg_sys::GUC_UNIT_MB as i32;
    // SAFETY: a C string and a place for the result; no hint is requested.
    let is_size =
        unsafe { pg_sys::parse_int(text.as_ptr(), &mut megabytes, unit, std::ptr::null_mut()) };
    is_size.then_some(megabytes)
}

/// Megabytes of memory that the machine has; 0 if the system does not say.
pub fn machine_megabytes() -> i64 {
    // SAFETY: calls without pointers.
    let (pages, page_bytes) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    pages.saturating_mul(page_bytes).max(0) / (1024 * 1024)
}

/// Random bits from the server's cryptographic generator; `None` if it has none.
pub fn random_u64() -> Option<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer is as long as the call says.
    let is_filled = unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) };
    is_filled.then(|| u64::from_ne_bytes(bytes))
}

/// Declares a function that reads a setting.
macro_rules! settings {
    ($($name:ident: $type:ty;)*) => {$(
        #[doc = concat!("The setting `", stringify!($name), "`.")]
        #[inline]
        pub fn $name() -> $type {
            // SAFETY: a read of a variable of this process, which has one thread.
            unsafe { pg_sys::$name }
        }
    )*};
}

settings! {
    cpu_operator_cost: f64;
    cpu_tuple_cost: f64;
    seq_page_cost: f64;
    enable_hashjoin: bool;
    enable_parallel_append: bool;
    parallel_leader_participation: bool;
}

/// A number of rows as the planner estimates them: whole, and at least one.
pub fn clamp_row_est(rows: f64) -> f64 {
    // SAFETY: a plain computation.
    unsafe { pg_sys::clamp_row_est(rows) }
}

/// Whether the server is a standby.
pub fn is_standby() -> bool {
    // SAFETY: a read of the server's state.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Whether the transaction's isolation level is SERIALIZABLE.
pub fn is_serializable() -> bool {
    // SAFETY: a setting of the backend.
    unsafe { pg_sys::XactIsoLevel == pg_sys::XACT_SERIALIZABLE as i32 }
}

/// Whether all statements of the transaction use one snapshot: its isolation level is REPEATABLE READ or higher.
pub fn has_fixed_snapshot() -> bool {
    // SAFETY: a read of a variable of this process, which has one thread.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}

/// Locks a table until the transaction ends, unless that means waiting. Returns whether the table is locked.
pub fn try_lock_table(table: pg_sys::Oid, mode: u32) -> bool {
    // SAFETY: takes a lock that the transaction releases.
    unsafe { pg_sys::ConditionalLockRelationOid(table, mode as i32) }
}

/// Locks a table until the transaction ends.
pub fn lock_table(table: pg_sys::Oid, mode: u32) {
    // SAFETY: takes a lock that the transaction releases.
    unsafe { pg_sys::LockRelationOid(table, mode as i32) }
}

/// Whether `default_table_access_method` names an access method.
pub fn has_default_access_method(name: &CStr) -> bool {
    // SAFETY: a setting of this session: a string, or null.
    unsafe {
        let setting = pg_sys::default_table_access_method;
        !setting.is_null() && CStr::from_ptr(setting) == name
    }
}

/// Whether row-level security hides rows of a table from the current user.
pub fn hides_rows(table: pg_sys::Oid) -> bool {
    // SAFETY: a look-up in the system catalogs, inside a transaction.
    let found = unsafe { pg_sys::check_enable_rls(table, pg_sys::InvalidOid, false) };
    found == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
}
