//! The server, the machine and this process: identity, files, settings, locks of tables.

use std::ffi::{CStr, CString};
use std::time::Duration;

use pgrx::pg_sys;

use super::functions::{Null, Place, catalog, process};
use super::signals;

/// The database that this backend is connected to.
pub fn database() -> u32 {
    process::MyDatabaseId().to_u32()
}

/// Whether the server loads the libraries of `shared_preload_libraries`.
pub fn is_preloading() -> bool {
    process::process_shared_preload_libraries_in_progress()
}

/// Whether pg_upgrade has started the server, to read one cluster or to make the other.
pub fn is_binary_upgrade() -> bool {
    process::IsBinaryUpgrade()
}

/// The cluster's identifier, which initdb made.
pub fn system_identifier() -> u64 {
    process::GetSystemIdentifier()
}

/// This process's id.
pub fn process_id() -> i32 {
    process::MyProcPid()
}

/// Whether this process is a worker of autovacuum.
pub fn is_autovacuum_worker() -> bool {
    process::MyBackendType() == pg_sys::BackendType::B_AUTOVAC_WORKER
}

/// The path of the data directory.
pub fn data_directory() -> String {
    let directory = process::DataDir().unwrap_or_default();
    directory.to_string_lossy().into_owned()
}

/// The setting `deadlock_timeout`.
pub fn deadlock_timeout() -> Duration {
    let milliseconds = u64::try_from(process::DeadlockTimeout());
    Duration::from_millis(milliseconds.unwrap_or_default())
}

/// Sleeps. Signals do not end it.
pub fn sleep(time: Duration) {
    process::pg_usleep(time.as_micros() as std::ffi::c_long);
}

/// The text that the server's configuration gives a setting; `None` if it names no value.
pub fn configured(setting: &CStr) -> Option<CString> {
    process::GetConfigOption(setting, true, false).map(CStr::to_owned)
}

/// A size in megabytes, from a number with an optional unit.
pub fn parse_megabytes(text: &CStr) -> Option<i32> {
    let mut megabytes = 0;
    let unit = pg_sys::GUC_UNIT_MB as i32;
    process::parse_int(text, Place(&mut megabytes), unit, Null).then_some(megabytes)
}

/// Megabytes of memory that the machine has; 0 if the system does not say.
pub fn machine_megabytes() -> i64 {
    signals::machine_bytes() / (1024 * 1024)
}

/// Random bits from the server's cryptographic generator; `None` if it has none.
pub fn random_u64() -> Option<u64> {
    let mut bytes = [0u8; 8];
    process::pg_strong_random(&mut bytes).then(|| u64::from_ne_bytes(bytes))
}

pub use super::functions::process::{
    cpu_operator_cost, cpu_tuple_cost, enable_hashjoin, enable_parallel_append,
    parallel_leader_participation, seq_page_cost,
};

/// A number of rows as the planner estimates them: whole, and at least one.
pub fn clamp_row_est(rows: f64) -> f64 {
    process::clamp_row_est(rows)
}

/// Whether the server is a standby.
pub fn is_standby() -> bool {
    process::RecoveryInProgress()
}

/// Whether the transaction's isolation level is SERIALIZABLE.
pub fn is_serializable() -> bool {
    process::XactIsoLevel() == pg_sys::XACT_SERIALIZABLE as i32
}

/// Whether all statements of the transaction use one snapshot: its isolation level is REPEATABLE READ or higher.
pub fn has_fixed_snapshot() -> bool {
    process::XactIsoLevel() >= pg_sys::XACT_REPEATABLE_READ as i32
}

/// Locks a table until the transaction ends, unless that means waiting. Returns whether the table is locked.
pub fn try_lock_table(table: pg_sys::Oid, mode: u32) -> bool {
    process::ConditionalLockRelationOid(table, mode as i32)
}

/// Locks a table until the transaction ends.
pub fn lock_table(table: pg_sys::Oid, mode: u32) {
    process::LockRelationOid(table, mode as i32);
}

/// Whether `default_table_access_method` names an access method.
pub fn has_default_access_method(name: &CStr) -> bool {
    process::default_table_access_method() == Some(name)
}

/// Whether row-level security hides rows of a table from the current user.
pub fn hides_rows(table: pg_sys::Oid) -> bool {
    let found = catalog::check_enable_rls(table, pg_sys::InvalidOid, false);
    found == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
}
