//! Transactions: the current one, and what became of others.

use pgrx::pg_sys;

use super::functions::process;

/// Whether a transaction is the current one or a live subtransaction of it.
#[inline]
pub fn is_current(xid: u32) -> bool {
    process::TransactionIdIsCurrentTransactionId(xid)
}

/// Whether a transaction is under way, or prepared.
pub fn is_under_way(xid: u32) -> bool {
    process::TransactionIdIsInProgress(xid.into())
}

/// Whether a transaction that is not under way has committed.
pub fn did_commit(xid: u32) -> bool {
    process::TransactionIdDidCommit(xid.into())
}

/// `TransactionIdPrecedes` for normal transaction ids.
#[inline]
pub fn precedes(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// `TransactionIdRetreat`: the normal transaction id before another one.
pub fn before(xid: u32) -> u32 {
    const FIRST_NORMAL: u32 = 3;
    match xid.wrapping_sub(1) {
        before if before >= FIRST_NORMAL => before,
        _ => u32::MAX,
    }
}

/// The id of the current transaction or subtransaction, assigned if it has none.
pub fn current_xid() -> u32 {
    match process::GetCurrentTransactionIdIfAny() {
        0 => process::GetCurrentTransactionId().into_inner(),
        xid => xid,
    }
}

/// The id of the current top-level transaction; `None` if it has none.
pub fn top_xid() -> Option<u32> {
    let xid = process::GetTopTransactionIdIfAny().into_inner();
    (xid != 0).then_some(xid)
}

/// The id that the next transaction will get.
pub fn next_xid() -> u32 {
    process::ReadNextFullTransactionId() as u32
}

/// A lower bound of the transactions that are under way.
pub fn recent_xmin() -> pg_sys::TransactionId {
    process::RecentXmin()
}

/// The oldest multixact that may still be looked up.
pub fn oldest_multixact() -> pg_sys::MultiXactId {
    process::GetOldestMultiXactId()
}

/// The current command, which from now on counts as one that has written.
pub fn writing_command() -> pg_sys::CommandId {
    process::GetCurrentCommandId(true)
}

/// How deep the current subtransaction is nested; 1 outside of all.
pub fn nest_level() -> i32 {
    process::GetCurrentTransactionNestLevel()
}

/// Whether this process runs VACUUM, so that others' snapshots ignore its transaction id and its snapshots.
pub fn is_vacuum() -> bool {
    process::is_in_vacuum()
}

/// Whether the server is a standby or still replays WAL.
pub fn is_in_recovery() -> bool {
    process::RecoveryInProgress()
}

/// Waits until all that this transaction has logged is on disk.
pub fn flush_wal() {
    process::XLogFlush(process::XactLastRecEnd());
}

/// Now, in microseconds since 2000-01-01 UTC.
pub fn now() -> i64 {
    process::GetCurrentTimestamp()
}

/// When the current statement began, in microseconds since 2000-01-01 UTC.
pub fn statement_start() -> i64 {
    process::GetCurrentStatementStartTimestamp()
}

/// Raises the ERROR of a command that writes where nothing may be written: on a standby, in a read-only or a parallel
/// transaction. A temporary table may be written to in the first two.
pub fn check_may_write(command: &std::ffi::CStr, is_temporary: bool) {
    if !is_temporary {
        process::PreventCommandDuringRecovery(command);
        if process::XactReadOnly() {
            process::PreventCommandIfReadOnly(command);
        }
    }
    process::PreventCommandIfParallelMode(command);
}
