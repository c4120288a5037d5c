//! Transactions: the current one, and what became of others.

use pgrx::pg_sys;

unsafe extern "C-unwind" {
    // They raise no ERROR.
    #[link_name = "TransactionIdIsCurrentTransactionId"]
    fn is_current_transaction(xid: u32) -> bool;
    #[link_name = "GetCurrentTransactionIdIfAny"]
    fn current_xid_if_any() -> u32;
}

/// Whether a transaction is the current one or a live subtransaction of it.
#[inline]
pub fn is_current(xid: u32) -> bool {
    // SAFETY: reads this backend's own state.
    unsafe { is_current_transaction(xid) }
}

/// Whether a transaction is under way, or prepared.
pub fn is_under_way(xid: u32) -> bool {
    // SAFETY: reads the shared list of transactions.
    unsafe { pg_sys::TransactionIdIsInProgress(xid.into()) }
}

/// Whether a transaction that is not under way has committed.
pub fn did_commit(xid: u32) -> bool {
    // SAFETY: reads the commit log.
    unsafe { pg_sys::TransactionIdDidCommit(xid.into()) }
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
    // SAFETY: runs inside a transaction.
    unsafe {
        match current_xid_if_any() {
            0 => pg_sys::GetCurrentTransactionId().into_inner(),
            xid => xid,
        }
    }
}

/// The id of the current top-level transaction; `None` if it has none.
pub fn top_xid() -> Option<u32> {
    // SAFETY: reads this backend's own state.
    let xid = unsafe { pg_sys::GetTopTransactionIdIfAny() }.into_inner();
    (xid != 0).then_some(xid)
}

/// The id that the next transaction will get.
pub fn next_xid() -> u32 {
    // SAFETY: reads a shared counter.
    unsafe { pg_sys::ReadNextFullTransactionId() }.value as u32
}

/// A lower bound of the transactions that are under way.
pub fn recent_xmin() -> pg_sys::TransactionId {
    // SAFETY: reads this backend's own state.
    unsafe { pg_sys::RecentXmin }
}

/// The oldest multixact that may still be looked up.
pub fn oldest_multixact() -> pg_sys::MultiXactId {
    // SAFETY: reads shared memory.
    unsafe { pg_sys::GetOldestMultiXactId() }
}

/// The current command, which from now on counts as one that has written.
pub fn writing_command() -> pg_sys::CommandId {
    // SAFETY: runs inside a transaction.
    unsafe { pg_sys::GetCurrentCommandId(true) }
}

/// How deep the current subtransaction is nested; 1 outside of all.
pub fn nest_level() -> i32 {
    // SAFETY: reads this backend's own state.
    unsafe { pg_sys::GetCurrentTransactionNestLevel() }
}

/// Whether this process runs VACUUM, so that others' snapshots ignore its transaction id and its snapshots.
pub fn is_vacuum() -> bool {
    // SAFETY: this process's own entry among all processes, whose flags nobody else writes.
    let flags = unsafe { (*pg_sys::MyProc).statusFlags };
    u32::from(flags) & pg_sys::PROC_IN_VACUUM != 0
}

/// Whether the server is a standby or still replays WAL.
pub fn is_in_recovery() -> bool {
    // SAFETY: reads shared memory.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Waits until all that this transaction has logged is on disk.
pub fn flush_wal() {
    // SAFETY: the position is one that this backend has written.
    unsafe { pg_sys::XLogFlush(pg_sys::XactLastRecEnd) }
}

/// Now, in microseconds since 2000-01-01 UTC.
pub fn now() -> i64 {
    // SAFETY: reads the clock.
    unsafe { pg_sys::GetCurrentTimestamp() }
}

/// When the current statement began, in microseconds since 2000-01-01 UTC.
pub fn statement_start() -> i64 {
    // SAFETY: reads this backend's own state.
    unsafe { pg_sys::GetCurrentStatementStartTimestamp() }
}

/// Raises the ERROR of a command that writes where nothing may be written: on a standby, in a read-only or a parallel
/// transaction. A temporary table may be written to in the first two.
pub fn check_may_write(command: &std::ffi::CStr, is_temporary: bool) {
    // SAFETY: the name ends with NUL; each function raises an ERROR or returns.
    unsafe {
        if !is_temporary {
            pg_sys::PreventCommandDuringRecovery(command.as_ptr());
            if pg_sys::XactReadOnly {
                pg_sys::PreventCommandIfReadOnly(command.as_ptr());
            }
        }
        pg_sys::PreventCommandIfParallelMode(command.as_ptr());
    }
}

/// Ends the transaction of a procedure that was called at the top, as PL/pgSQL's COMMIT does, and
/// runs `work` in the next one. `None`: the call is inside a transaction block or a function, and
/// nothing was done.
pub fn commit_before<T>(call: pg_sys::FunctionCallInfo, work: impl FnOnce() -> T) -> Option<T> {
    // SAFETY: PostgreSQL passed the call's information, and the context of a CALL is of this type.
    unsafe {
        let context = (*call).context;
        let is_call = !context.is_null() && (*context).type_ == pg_sys::NodeTag::T_CallContext;
        if !is_call || (*context.cast::<pg_sys::CallContext>()).atomic {
            return None;
        }
        pg_sys::SPI_connect_ext(pg_sys::SPI_OPT_NONATOMIC as i32);
        pg_sys::SPI_commit();
        let result = work();
        pg_sys::SPI_finish();
        Some(result)
    }
}
