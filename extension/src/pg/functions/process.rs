//! The server, this process, its transactions and its locks.

use std::ffi::{CStr, c_long};

use pgrx::pg_sys::{self, Oid, TransactionId};

use super::{Null, Place, functions, variables};
use crate::pg::snapshot::{Snapshot, VisibilityHorizon};
use crate::pg::time_zone::Zone;

functions! {
    /// Aborts the current transaction.
    fn AbortCurrentTransaction();

    /// Undoes changes of settings since a level, or keeps them.
    fn AtEOXact_GUC(is_commit: bool, level: i32);

    /// Opens no database: shared catalogs can be read.
    fn BackgroundWorkerInitializeConnection(database: Null, role: Null, flags: u32);

    /// Locks a table until the transaction ends, unless that means waiting; whether it is locked.
    fn ConditionalLockRelationOid(table: Oid, mode: i32) -> bool;

    /// The snapshot that is active, if there is one.
    fn GetActiveSnapshot() -> Option<Snapshot<'p>>;

    /// Whether there is an active snapshot.
    fn ActiveSnapshotSet() -> bool;

    /// The current command; with `is_used` it counts as one that has written.
    fn GetCurrentCommandId(is_used: bool) -> u32;

    /// When the current statement began, in microseconds since 2000.
    fn GetCurrentStatementStartTimestamp() -> i64;

    /// Now, in microseconds since 2000.
    fn GetCurrentTimestamp() -> i64;

    /// The id of the current transaction or subtransaction, assigned if it has none.
    fn GetCurrentTransactionId() -> TransactionId;

    /// How deep the current subtransaction is nested; 1 outside of all.
    fn GetCurrentTransactionNestLevel() -> i32;

    /// The oldest multixact that may still be looked up.
    fn GetOldestMultiXactId() -> TransactionId;

    /// The cluster's identifier.
    fn GetSystemIdentifier() -> u64;

    /// The id of the current top-level transaction; 0 if it has none.
    fn GetTopTransactionIdIfAny() -> TransactionId;

    /// The current user, and what it may not do.
    fn GetUserIdAndSecContext(user: Place<'_, Oid>, context: Place<'_, i32>);

    /// Whether all can see that what a transaction deleted is gone.
    fn GlobalVisTestIsRemovableXid(horizon: VisibilityHorizon<'_>, xid: TransactionId) -> bool;

    /// Locks a table until the transaction ends.
    fn LockRelationOid(table: Oid, mode: i32);

    /// Begins a level of settings.
    fn NewGUCNestLevel() -> i32;

    /// Raises an ERROR on a standby.
    fn PreventCommandDuringRecovery(command: &CStr);

    /// Raises an ERROR while workers run.
    fn PreventCommandIfParallelMode(command: &CStr);

    /// Raises an ERROR in a read-only transaction.
    fn PreventCommandIfReadOnly(command: &CStr);

    /// Reads the configuration again.
    fn ProcessConfigFile(context: pg_sys::GucContext::Type);

    /// Whether the server is a standby or still replays WAL.
    fn RecoveryInProgress() -> bool;

    /// Sets a setting.
    fn SetConfigOption(
        name: &CStr,
        value: &CStr,
        context: pg_sys::GucContext::Type,
        source: pg_sys::GucSource::Type,
    );

    /// Sets the current user, and what it may not do.
    fn SetUserIdAndSecContext(user: Oid, context: i32);

    /// A new token for a row of a transaction that may yet be taken back. Others can wait until it is released.
    fn SpeculativeInsertionLockAcquire(xid: TransactionId) -> u32;

    /// Releases the token.
    fn SpeculativeInsertionLockRelease(xid: TransactionId);

    /// Whether a transaction that is not under way has committed.
    fn TransactionIdDidCommit(xid: TransactionId) -> bool;

    /// Whether a transaction is under way, or prepared.
    fn TransactionIdIsInProgress(xid: TransactionId) -> bool;

    /// Unlocks a table.
    fn UnlockRelationOid(table: Oid, mode: i32);

    /// Waits until the WAL up to a position, which this process has written, is on disk.
    fn XLogFlush(position: u64);

    /// Whether a transaction was under way when a snapshot was taken, or began later.
    fn XidInMVCCSnapshot(xid: TransactionId, snapshot: Snapshot<'_>) -> bool;

    /// A number of rows as the planner estimates them.
    fn clamp_row_est(rows: f64) -> f64;

    /// The text that the configuration gives a setting; `None` if it names no value.
    fn GetConfigOption(
        name: &CStr,
        missing_ok: bool,
        restrict_privileged: bool,
    ) -> Option<&'p CStr>;

    /// Bytes that a hash table of the session may use.
    fn get_hash_memory_limit() -> usize;

    /// Whether a text is a number with an optional unit, which is written to the place.
    fn parse_int(text: &CStr, number: Place<'_, i32>, unit: i32, hint: Null) -> bool;

    /// Sleeps for so many microseconds.
    fn pg_usleep(microseconds: c_long);

    /// The offset of a time zone from UTC at a time, when it changes next, and what it is then. Returns 1 if it
    /// changes, 0 if it never does, and -1 if the zone has no data.
    fn pg_next_dst_boundary(
        time: Place<'_, i64>,
        offset: Place<'_, c_long>,
        is_summer: Place<'_, i32>,
        boundary: Place<'_, i64>,
        offset_after: Place<'_, c_long>,
        is_summer_after: Place<'_, i32>,
        zone: Zone<'static>,
    ) -> i32;

    /// The time zone of a name that is not too long; `None` if there is none.
    fn pg_tzset(name: &CStr) -> Option<Zone<'static>>;

    /// Ends the report of a long command.
    fn pgstat_progress_end_command();

    /// Begins the report of a long command.
    fn pgstat_progress_start_command(command: pg_sys::ProgressCommandType::Type, table: Oid);

    /// Sets a number of the current report; without a report it does nothing.
    fn pgstat_progress_update_param(number: i32, value: i64);
}

variables! {
    /// Whether the server was started by pg_upgrade.
    IsBinaryUpgrade: bool;
    /// The setting of the same name, in milliseconds.
    DeadlockTimeout: i32;
    /// How many parts of the code hold off interrupts.
    InterruptHoldoffCount: u32;
    /// What sort of process this is.
    MyBackendType: pg_sys::BackendType::Type;
    /// The database that this process is connected to.
    MyDatabaseId: Oid;
    /// This process's id.
    MyProcPid: i32;
    /// The number of a worker of a parallel query; negative in any other process.
    ParallelWorkerNumber: i32;
    /// Whether this process was asked to end.
    ProcDiePending: i32;
    /// A lower bound of the transactions that are under way.
    RecentXmin: TransactionId;
    /// The isolation level of the transaction.
    XactIsoLevel: i32;
    /// The end of the last record that the transaction has written.
    XactLastRecEnd: u64;
    /// Whether the transaction may only read.
    XactReadOnly: bool;
    /// The setting of the same name.
    cpu_operator_cost: f64;
    /// The setting of the same name.
    cpu_tuple_cost: f64;
    /// The setting of the same name.
    default_statistics_target: i32;
    /// The setting of the same name.
    enable_hashjoin: bool;
    /// The setting of the same name.
    enable_parallel_append: bool;
    /// The setting of the same name.
    parallel_leader_participation: bool;
    /// Whether the server loads the libraries of `shared_preload_libraries`.
    process_shared_preload_libraries_in_progress: bool;
    /// The setting of the same name.
    seq_page_cost: f64;
    /// The setting of the same name.
    wal_level: i32;
    /// The setting of the same name, in kilobytes.
    work_mem: i32;
}

/// The text of a variable that is a string, or null.
macro_rules! texts {
    ($($(#[$meta:meta])* $name:ident;)*) => {$(
        $(#[$meta])*
        pub fn $name<'p>() -> Option<&'p CStr> {
            // SAFETY: the variable is null or a string, and this process has one thread.
            unsafe { crate::pg::tree::view::Field::of(pg_sys::$name) }
        }
    )*};
}

texts! {
    /// The path of the data directory.
    DataDir;
    /// The setting of the same name.
    default_table_access_method;
}

/// The session's time zone.
pub fn session_timezone() -> Option<Zone<'static>> {
    // SAFETY: a read of a setting: null, or a zone, which PostgreSQL keeps as long as the process.
    unsafe { crate::pg::tree::view::Field::of(pg_sys::session_timezone) }
}

/// The id that the next transaction will get, with its epoch.
pub fn ReadNextFullTransactionId() -> u64 {
    // SAFETY: a read of a shared counter.
    unsafe { pg_sys::ReadNextFullTransactionId() }.value
}

/// Whether this process runs VACUUM, so that others' snapshots ignore its transaction id and its snapshots.
pub fn is_in_vacuum() -> bool {
    // SAFETY: this process's own entry among all processes, whose flags nobody else writes.
    let flags = unsafe { (*pg_sys::MyProc).statusFlags };
    u32::from(flags) & pg_sys::PROC_IN_VACUUM != 0
}

/// Fills a buffer with bits from the server's cryptographic generator; false if it has none.
pub fn pg_strong_random(buffer: &mut [u8]) -> bool {
    // SAFETY: the buffer is as long as the call says.
    unsafe { pg_sys::pg_strong_random(buffer.as_mut_ptr().cast(), buffer.len()) }
}

unsafe extern "C-unwind" {
    // They raise no ERROR, and need no boundary.
    #[link_name = "TransactionIdIsCurrentTransactionId"]
    fn is_current_transaction(xid: u32) -> bool;
    #[link_name = "GetCurrentTransactionIdIfAny"]
    fn current_xid_if_any() -> u32;
}

/// Whether a transaction is the current one or a live subtransaction of it.
#[inline]
pub fn TransactionIdIsCurrentTransactionId(xid: u32) -> bool {
    // SAFETY: reads this process's own state.
    unsafe { is_current_transaction(xid) }
}

/// The id of the current transaction or subtransaction; 0 if it has none.
#[inline]
pub fn GetCurrentTransactionIdIfAny() -> u32 {
    // SAFETY: reads this process's own state.
    unsafe { current_xid_if_any() }
}

/// `ConditionalXactLockTableWait`: whether the transaction is over.
pub fn ConditionalXactLockTableWait(xid: u32) -> bool {
    // SAFETY: a plain call.
    unsafe {
        pg_sys::ConditionalXactLockTableWait(
            xid.into(),
            #[cfg(feature = "pg18")]
            false,
        )
    }
}
