//! The server and this process: settings, the state of recovery, random numbers.

use std::ffi::CStr;

use pgrx::pg_sys;

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

/// Whether all statements of the transaction use one snapshot: its isolation level is REPEATABLE READ or higher.
pub fn has_fixed_snapshot() -> bool {
    // SAFETY: a read of a variable of this process, which has one thread.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}

/// A random number fit for secrets; `None` if the operating system provides none.
pub fn strong_random() -> Option<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: the function writes as many bytes as the buffer has.
    let is_filled = unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) };
    is_filled.then(|| u64::from_ne_bytes(bytes))
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
