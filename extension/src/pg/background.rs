//! This process as a background worker: its connection, settings, and how urgent it is.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::functions::{Null, process};

pub use super::signals::{let_sigterm_cancel, set_nice};

/// Connects a worker that was registered with access to databases to none of them: it reads shared catalogs only.
pub fn connect_to_shared_catalogs() {
    process::BackgroundWorkerInitializeConnection(Null, Null, 0);
}

/// Reads the configuration again, outside of transactions.
pub fn reload_configuration() {
    process::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
}

/// Sets a setting of this process whatever the database or its owner has set, outside of transactions, as autovacuum
/// does.
pub fn override_setting(name: &CStr, value: &CStr) {
    let (context, source) = (
        pg_sys::GucContext::PGC_SUSET,
        pg_sys::GucSource::PGC_S_OVERRIDE,
    );
    process::SetConfigOption(name, value, context, source);
}

/// Aborts the transaction of a worker after an ERROR at the top, as core does: locks, pins and memory of the
/// transaction go with it.
pub fn abort_transaction() {
    process::AbortCurrentTransaction();
}
