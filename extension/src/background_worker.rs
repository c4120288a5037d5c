//! The background workers that seal by themselves: a launcher, and a sealer that visits one database after the other.
//!
//! ```text
//! launcher   every lanes.seal_naptime: lists the databases from the shared catalogue, starts a sealer for each, waits for it
//! sealer     if the database has the extension: new series of Prometheus are indexed by their labels, and the views of
//!            metrics get columns for new labels; each lanes table that has something due and that nobody vacuums
//!            just now is given what VACUUM would do: retention, sealing, settling, the sweep for free blocks; its file is
//!            shortened only if much of it is free
//! ```
//!
//! A sealer stays in a database no longer than its tables need, because DROP DATABASE waits for it.
//! Each table has its own transaction: an ERROR in one is logged, and the others are still visited.
//!
//! A sealer is a superuser and executes SQL of this library. The owner of a database may not be a
//! superuser, but can set settings for it, such as a `search_path` that finds other operators
//! first. So the sealer has [settings of its own](SETTINGS).

use std::ffi::CStr;
use std::time::Duration;

use pgrx::bgworkers::{
    BackgroundWorker, BackgroundWorkerBuilder, BgWorkerStartTime, SignalWakeFlags,
};
use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;

use crate::gucs;
use crate::labels::maintain;
use crate::maintenance::shorten::Effort;
use crate::maintenance::vacuum_report::Audience;
use crate::maintenance::{self, vacuum};
use crate::pg::table::OpenedTable;
use crate::pg::{background, names, server, table_catalog};

/// How often the launcher checks whether it was switched on.
const IDLE: Duration = Duration::from_secs(60);

/// Settings that decide what the sealer's SQL means and whether it ends. The database and its owner
/// cannot change them.
const SETTINGS: [(&CStr, &CStr); 6] = [
    (c"search_path", c"pg_catalog, pg_temp"),
    (c"default_transaction_isolation", c"read committed"),
    (c"default_transaction_read_only", c"off"),
    (c"statement_timeout", c"0"),
    (c"lock_timeout", c"0"),
    (c"row_security", c"on"),
];

/// Registers the launcher. Called from `_PG_init`.
///
/// There is none while pg_upgrade runs: it drops and creates databases, which nobody may be connected to, and whoever
/// wrote in the new cluster would take transaction ids of the old one.
pub fn register() {
    if server::is_binary_upgrade() {
        return;
    }
    BackgroundWorkerBuilder::new("lanes sealing launcher")
        .set_library("lanes")
        .set_function("lanes_sealing_launcher")
        .enable_spi_access()
        .set_start_time(BgWorkerStartTime::RecoveryFinished)
        .set_restart_time(Some(Duration::from_secs(10)))
        .load();
}

crate::worker_mains! {
    lanes_sealing_launcher => |_| launch();
    lanes_sealer => |database| seal(database);
}

/// The launcher.
fn launch() {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGHUP | SignalWakeFlags::SIGTERM);
    background::connect_to_shared_catalogs();
    loop {
        let nap = gucs::seal_naptime();
        if !BackgroundWorker::wait_latch(Some(nap.unwrap_or(IDLE))) {
            return;
        }
        if BackgroundWorker::sighup_received() {
            background::reload_configuration();
        }
        if gucs::seal_naptime().is_none() {
            continue;
        }
        for database in BackgroundWorker::transaction(table_catalog::databases) {
            if BackgroundWorker::sigterm_received() {
                return;
            }
            // No worker slot is free. The next round will find one.
            let sealer = BackgroundWorkerBuilder::new("lanes sealer")
                .set_library("lanes")
                .set_function("lanes_sealer")
                .enable_spi_access()
                .set_argument(Some(database.into()))
                .set_notify_pid(server::process_id())
                .load_dynamic();
            if let Ok(sealer) = sealer {
                // The sealer's own log says whether it ended well. The end of the postmaster ends
                // this process too.
                let _ = sealer.wait_for_shutdown();
            }
        }
    }
}

/// A sealer, whose argument is the database.
fn seal(database: pg_sys::Datum) {
    background::let_sigterm_cancel();
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGHUP);
    let database = pg_sys::Oid::from(database.value() as u32);
    BackgroundWorker::connect_worker_to_spi_by_oid(Some(database), None);
    for (name, value) in SETTINGS {
        background::override_setting(name, value);
    }
    give_way(gucs::seal_nice());
    if let Err(failure) = attempt(maintain::visit) {
        pgrx::log!("lanes: could not index labels: {failure}");
    }
    for metric in BackgroundWorker::transaction(maintain::metrics_to_extend) {
        if let Err(failure) = attempt(|| maintain::extend_view(&metric)) {
            // Somebody reads the view. The next round will extend it.
            pgrx::debug1!("lanes: no new columns for metric \"{metric}\": {failure}");
        }
    }
    for table in BackgroundWorker::transaction(table_catalog::lanes_tables) {
        if let Err(failure) = attempt(|| visit(table)) {
            let name = BackgroundWorker::transaction(|| names::table_name(table));
            pgrx::log!("lanes: could not seal \"{name}\": {failure}");
        }
    }
}

/// Runs `body` in a transaction of its own. Returns the message of an ERROR.
fn attempt(
    work: impl FnOnce() + std::panic::UnwindSafe + std::panic::RefUnwindSafe,
) -> Result<(), String> {
    let attempted = PgTryBuilder::new(|| {
        BackgroundWorker::transaction(work);
        Ok(())
    })
    .catch_others(|failure| Err(message(&failure)))
    .execute();
    if attempted.is_err() {
        background::abort_transaction();
    }
    attempted
}

/// Lowers the priority of this process. Sealing can wait, but clients that send or query rows
/// cannot.
fn give_way(nice: i32) {
    if nice == 0 {
        return;
    }
    background::set_nice(nice);
    // Where Linux groups processes by session (each of PostgreSQL's processes begins one), a nice
    // value counts only within the group, and the group has a nice value of its own. Elsewhere this
    // file does not exist.
    let _ = std::fs::write("/proc/self/autogroup", nice.to_string());
}

/// The message of an ERROR.
fn message(failure: &CaughtError) -> String {
    let (CaughtError::PostgresError(report)
    | CaughtError::ErrorReport(report)
    | CaughtError::RustPanic {
        ereport: report, ..
    }) = failure;
    report.message().to_owned()
}

/// Does what is due in a table, unless somebody else works on it. The lock is kept until the
/// transaction ends.
fn visit(table: pg_sys::Oid) {
    let mode = pg_sys::ShareUpdateExclusiveLock;
    let Some(opened) = OpenedTable::try_open_at_once(table, mode) else {
        return;
    };
    let opened = opened.keep_lock();
    let table = opened.get();
    if table.is_lanes() && maintenance::upkeep::is_due(table) {
        let effort = table.vacuum_truncate().then_some(Effort::BACKGROUND);
        vacuum::vacuum(table, Audience::Nobody, effort, true);
    }
}
