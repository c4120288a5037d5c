//! What statements do to an open table beside its pages: its file, WAL records, locks, statistics,
//! serializable conflicts.

use pgrx::pg_sys;

use super::functions::{Place, relation};
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

    /// Blocks of the table as PostgreSQL counts them: see
    /// [`RelationAccess::size`](super::access::RelationAccess::size).
    pub fn counted_blocks(self) -> u32 {
        relation::RelationGetNumberOfBlocksInFork(self, MAIN)
    }

    /// Bytes of a fork, or of all forks for `InvalidForkNumber`.
    pub fn fork_bytes(self, fork: pg_sys::ForkNumber::Type) -> u64 {
        relation::table_block_relation_size(self, fork)
    }

    /// Cuts the main fork to `blocks` blocks. The caller holds the table exclusively.
    pub fn truncate(self, blocks: u32) {
        relation::RelationTruncate(self, blocks)
    }

    /// Copies all forks to a new file at `locator` and drops the old ones when the transaction commits.
    pub fn copy_forks_to(self, locator: &ports::RelFileLocator) {
        ports::copy_forks(self, locator);
    }

    /// Whether VACUUM may shorten the file where the statement does not decide it: the parameter `vacuum_truncate`.
    pub fn vacuum_truncate(self) -> bool {
        ports::vacuum_truncate(self)
    }
}

pub use super::ports::create_file;

/// Locks.
impl OpenTable<'_> {
    /// Whether this backend holds a lock on the table in `mode`, or in a stronger one if `or_stronger`.
    pub fn is_locked_by_me(self, mode: u32, or_stronger: bool) -> bool {
        relation::CheckRelationLockedByMe(self, mode as i32, or_stronger)
    }

    /// Whether somebody waits for a lock that conflicts with this backend's lock in `mode`.
    pub fn has_waiters(self, mode: u32) -> bool {
        relation::LockHasWaitersRelation(self, mode as i32)
    }

    /// Waits until a transaction is over, on behalf of an operation on a row of the table.
    pub fn wait_for_transaction(
        self,
        xid: u32,
        mut tid: pg_sys::ItemPointerData,
        reason: pg_sys::XLTW_Oper::Type,
    ) {
        relation::XactLockTableWait(xid.into(), self, Place(&mut tid), reason);
    }
}

/// Transactions.
impl OpenTable<'_> {
    /// The oldest transaction that some snapshot may not see: what older ones did counts for everybody.
    pub fn oldest_non_removable_xid(self) -> u32 {
        relation::GetOldestNonRemovableTransactionId(self).into_inner()
    }

    /// Makes standbys cancel queries that may still need what transactions up to `horizon` removed or froze.
    pub fn log_snapshot_conflict(self, horizon: u32) {
        ports::log_snapshot_conflict(self, horizon)
    }

    /// Serializable isolation: this transaction reads the whole table.
    pub fn predicate_lock(self, snapshot: Snapshot<'_>) {
        ports::PredicateLockRelation(self, snapshot)
    }

    /// Serializable isolation: this transaction reads a row, which `inserter` wrote.
    pub fn predicate_lock_row(
        self,
        mut tid: pg_sys::ItemPointerData,
        snapshot: Snapshot<'_>,
        inserter: u32,
    ) {
        ports::PredicateLockTID(self, Place(&mut tid), snapshot, inserter)
    }

    /// Serializable isolation: whether scans under this snapshot report the writers that they do not see.
    pub fn reports_conflicts(self, snapshot: Snapshot<'_>) -> bool {
        ports::CheckForSerializableConflictOutNeeded(self, snapshot)
    }

    /// Serializable isolation: this transaction read around a row that `xid` wrote.
    pub fn check_conflict_out(self, xid: u32, snapshot: Snapshot<'_>) {
        ports::CheckForSerializableConflictOut(self, xid, snapshot)
    }

    /// Serializable isolation: this transaction is about to write to the table, or to change a row of it.
    pub fn check_conflict_in(self, row: Option<pg_sys::ItemPointerData>) {
        ports::check_conflict_in(self, row)
    }
}

/// Statistics.
impl OpenTable<'_> {
    /// Counts a sequential scan.
    pub fn count_scan(self) {
        ports::pgstat_count_heap_scan(self)
    }

    /// Counts rows that a scan returned.
    pub fn count_rows_returned(self, rows: i64) {
        ports::pgstat_count_heap_rows(self, rows)
    }

    /// Counts blocks whose rows were found in memory, as hits of PostgreSQL's own buffers count.
    pub fn count_blocks_found(self, blocks: u64) {
        ports::count_buffer_hits(self, blocks as i64)
    }

    /// Counts inserted rows.
    pub fn count_inserts(self, rows: usize) {
        relation::pgstat_count_heap_insert(self, rows as i64);
    }

    /// Counts an updated row.
    pub fn count_update(self) {
        ports::pgstat_count_heap_update(self)
    }

    /// Counts a deleted row.
    pub fn count_delete(self) {
        relation::pgstat_count_heap_delete(self)
    }

    /// Reports a VACUUM of the table to the statistics and its catalogue row. The caller is the table's only VACUUM.
    pub fn report_vacuum(self, rows_live: u64, oldest_unfrozen_xid: u32, has_indexes: bool) {
        let blocks = self.counted_blocks();
        let rows = rows_live as f64;
        ports::update_relation_stats(self, blocks, rows, oldest_unfrozen_xid, has_indexes);
        ports::pgstat_report_vacuum(self, rows_live);
    }

    /// How many rows ANALYZE samples for the column whose statistics target is the largest.
    pub fn statistics_rows(self) -> u64 {
        ports::statistics_rows(self)
    }
}
