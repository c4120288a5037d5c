//! What statements do to an open table beside its pages: its file, WAL records, locks, statistics,
//! serializable conflicts.

use pgrx::pg_sys;

use super::ports;
use super::snapshot::Snapshot;
use super::table::OpenTable;

const MAIN: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;

/// The file.
impl OpenTable<'_> {
    /// Blocks of the main fork.
    #[inline]
    pub fn blocks(self) -> u32 {
        (self.fork_bytes(MAIN) / u64::from(pg_sys::BLCKSZ)) as u32
    }

    /// Blocks of the table as PostgreSQL counts them: see [`crate::table_am::relation::size`].
    pub fn counted_blocks(self) -> u32 {
        // SAFETY: the table is open.
        unsafe { pg_sys::RelationGetNumberOfBlocksInFork(self.as_ptr(), MAIN) }
    }

    /// Bytes of a fork, or of all forks for `InvalidForkNumber`.
    pub fn fork_bytes(self, fork: pg_sys::ForkNumber::Type) -> u64 {
        // SAFETY: the table is open.
        unsafe { pg_sys::table_block_relation_size(self.as_ptr(), fork) }
    }

    /// Cuts the main fork to `blocks` blocks. The caller holds the table exclusively.
    pub fn truncate(self, blocks: u32) {
        // SAFETY: the table is open.
        unsafe { pg_sys::RelationTruncate(self.as_ptr(), blocks) }
    }

    /// Copies all forks to a new file at `locator` and drops the old ones when the transaction commits.
    pub fn copy_forks_to(self, locator: &ports::RelFileLocator) {
        let persistence = self.persistence();
        let is_unlogged = persistence == pg_sys::RELPERSISTENCE_UNLOGGED as std::ffi::c_char;
        // SAFETY: the table is open; both storage handles stay open until the target's is closed below.
        unsafe {
            let source = ports::RelationGetSmgr(self.as_ptr());
            pg_sys::FlushRelationBuffers(self.as_ptr());
            let target = pg_sys::RelationCreateStorage(*locator, persistence, true);
            pg_sys::RelationCopyStorage(source, target, MAIN, persistence);
            for fork in MAIN + 1..=pg_sys::ForkNumber::INIT_FORKNUM {
                if pg_sys::smgrexists(source, fork) {
                    pg_sys::smgrcreate(target, fork, false);
                    let is_init = fork == pg_sys::ForkNumber::INIT_FORKNUM;
                    if self.is_permanent() || (is_unlogged && is_init) {
                        ports::log_smgrcreate(locator, fork);
                    }
                    pg_sys::RelationCopyStorage(source, target, fork, persistence);
                }
            }
            pg_sys::RelationDropStorage(self.as_ptr());
            pg_sys::smgrclose(target);
        }
    }

    /// Whether VACUUM may shorten the file where the statement does not decide it: the parameter `vacuum_truncate`.
    pub fn vacuum_truncate(self) -> bool {
        // SAFETY: the table is open.
        unsafe { ports::vacuum_truncate(self.as_ptr()) }
    }
}

/// Creates an empty file at `locator`. An unlogged table gets an empty init fork as well, which replaces the main fork
/// after a crash.
pub fn create_file(locator: &ports::RelFileLocator, persistence: std::ffi::c_char) {
    const INIT: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::INIT_FORKNUM;
    // SAFETY: the storage handle is open until it is closed below; an ERROR makes the abort remove the file.
    unsafe {
        let smgr = pg_sys::RelationCreateStorage(*locator, persistence, true);
        if persistence == pg_sys::RELPERSISTENCE_UNLOGGED as std::ffi::c_char {
            pg_sys::smgrcreate(smgr, INIT, false);
            ports::log_smgrcreate(locator, INIT);
            pg_sys::smgrimmedsync(smgr, INIT);
        }
        pg_sys::smgrclose(smgr);
    }
}

/// Locks.
impl OpenTable<'_> {
    /// Whether this backend holds a lock on the table in `mode`, or in a stronger one if `or_stronger`.
    pub fn is_locked_by_me(self, mode: u32, or_stronger: bool) -> bool {
        // SAFETY: the table is open.
        unsafe { pg_sys::CheckRelationLockedByMe(self.as_ptr(), mode as i32, or_stronger) }
    }

    /// Whether somebody waits for a lock that conflicts with this backend's lock in `mode`.
    pub fn has_waiters(self, mode: u32) -> bool {
        // SAFETY: the table is open, and locked in this mode.
        unsafe { pg_sys::LockHasWaitersRelation(self.as_ptr(), mode as i32) }
    }

    /// Waits until a transaction is over, on behalf of an operation on a row of the table.
    pub fn wait_for_transaction(
        self,
        xid: u32,
        mut tid: pg_sys::ItemPointerData,
        reason: pg_sys::XLTW_Oper::Type,
    ) {
        // SAFETY: the table is open; no lightweight lock is held by code that waits.
        unsafe { pg_sys::XactLockTableWait(xid.into(), self.as_ptr(), &mut tid, reason) }
    }
}

/// Transactions.
impl OpenTable<'_> {
    /// The oldest transaction that some snapshot may not see: what older ones did counts for everybody.
    pub fn oldest_non_removable_xid(self) -> u32 {
        // SAFETY: the table is open.
        unsafe { pg_sys::GetOldestNonRemovableTransactionId(self.as_ptr()) }.into_inner()
    }

    /// Makes standbys cancel queries that may still need what transactions up to `horizon` removed or froze.
    pub fn log_snapshot_conflict(self, horizon: u32) {
        // SAFETY: the table is open; callers pass the id of a transaction that was assigned.
        unsafe { ports::log_snapshot_conflict(self.as_ptr(), horizon) }
    }

    /// Serializable isolation: this transaction reads the whole table.
    pub fn predicate_lock(self, snapshot: Snapshot<'_>) {
        // SAFETY: the table is open and the snapshot live.
        unsafe { ports::PredicateLockRelation(self.as_ptr(), snapshot.as_ptr()) }
    }

    /// Serializable isolation: this transaction reads a row, which `inserter` wrote.
    pub fn predicate_lock_row(
        self,
        tid: pg_sys::ItemPointerData,
        snapshot: Snapshot<'_>,
        inserter: u32,
    ) {
        // SAFETY: the table is open and the snapshot live.
        unsafe { ports::PredicateLockTID(self.as_ptr(), tid, snapshot.as_ptr(), inserter) }
    }

    /// Serializable isolation: whether scans under this snapshot report the writers that they do not see.
    pub fn reports_conflicts(self, snapshot: Snapshot<'_>) -> bool {
        // SAFETY: the table is open and the snapshot live.
        unsafe { ports::serializable_check_needed(self.as_ptr(), snapshot.as_ptr()) }
    }

    /// Serializable isolation: this transaction read around a row that `xid` wrote.
    pub fn check_conflict_out(self, xid: u32, snapshot: Snapshot<'_>) {
        // SAFETY: the table is open and the snapshot live.
        unsafe { ports::CheckForSerializableConflictOut(self.as_ptr(), xid, snapshot.as_ptr()) }
    }

    /// Serializable isolation: this transaction is about to write to the table, or to change a row of it.
    pub fn check_conflict_in(self, row: Option<pg_sys::ItemPointerData>) {
        // SAFETY: the table is open.
        unsafe { ports::CheckForSerializableConflictIn(self.as_ptr(), row) }
    }
}

/// Statistics.
impl OpenTable<'_> {
    /// Counts a sequential scan.
    pub fn count_scan(self) {
        // SAFETY: the table is open.
        unsafe { ports::pgstat_count_heap_scan(self.as_ptr()) }
    }

    /// Counts rows that a scan returned.
    pub fn count_rows_returned(self, rows: i64) {
        // SAFETY: the table is open.
        unsafe { ports::pgstat_count_heap_rows(self.as_ptr(), rows) }
    }

    /// Counts blocks whose rows were found in memory.
    pub fn count_blocks_found(self, blocks: u64) {
        // SAFETY: the table is open.
        unsafe { ports::pgstat_count_buffer_hits(self.as_ptr(), blocks as i64) }
    }

    /// Counts inserted rows.
    pub fn count_inserts(self, rows: usize) {
        // SAFETY: the table is open.
        unsafe { pg_sys::pgstat_count_heap_insert(self.as_ptr(), rows as _) }
    }

    /// Counts an updated row.
    pub fn count_update(self) {
        // SAFETY: the table is open.
        unsafe { ports::pgstat_count_heap_update(self.as_ptr()) }
    }

    /// Counts a deleted row.
    pub fn count_delete(self) {
        // SAFETY: the table is open.
        unsafe { pg_sys::pgstat_count_heap_delete(self.as_ptr()) }
    }

    /// Reports a VACUUM of the table to the statistics and its catalogue row. The caller is the table's only VACUUM.
    pub fn report_vacuum(self, rows_live: u64, oldest_unfrozen_xid: u32, has_indexes: bool) {
        // SAFETY: the table is open, and this VACUUM holds its lock.
        unsafe {
            let blocks = self.counted_blocks();
            ports::update_relation_stats(
                self.as_ptr(),
                blocks,
                rows_live as f64,
                oldest_unfrozen_xid,
                has_indexes,
            );
            ports::pgstat_report_vacuum(self.as_ptr(), rows_live);
        }
    }

    /// How many rows ANALYZE samples for the column whose statistics target is the largest.
    pub fn statistics_rows(self) -> u64 {
        // SAFETY: the table is open, inside a transaction.
        unsafe { ports::statistics_rows(self.as_ptr()) }
    }
}
