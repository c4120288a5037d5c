//! What `pg_stat_progress_vacuum`, `pg_stat_progress_create_index` and `pg_stat_progress_cluster` show of this session.
//!
//! PostgreSQL's AM-independent code begins and ends the reports of CREATE INDEX, CLUSTER and VACUUM FULL. A report that
//! an ERROR interrupts ends with the transaction.

use pgrx::pg_sys::{self, ProgressCommandType};

use super::functions::process;

/// Sets a number of the current report.
fn set(number: u32, value: i64) {
    process::pgstat_progress_update_param(number as i32, value);
}

/// The phases of VACUUM, as PostgreSQL's view names them.
#[derive(Clone, Copy, Debug)]
pub enum VacuumPhase {
    /// `scanning heap`: reading runs, deletions and parts.
    Scanning,
    /// `vacuuming heap`: marking runs and deletions, and freeing blocks.
    Vacuuming,
    /// `vacuuming indexes`
    Indexes,
    /// `truncating heap`: moving parts down, and shortening the file.
    Truncating,
    /// `performing final cleanup`: sealing, and everything after it.
    FinalCleanup,
}

/// The report of a VACUUM, until it is dropped.
pub struct VacuumProgress(());

impl VacuumProgress {
    /// Begins the report for a table of so many blocks.
    pub fn begin(table: pg_sys::Oid, blocks: u32) -> VacuumProgress {
        let command = ProgressCommandType::PROGRESS_COMMAND_VACUUM;
        process::pgstat_progress_start_command(command, table);
        set(pg_sys::PROGRESS_VACUUM_TOTAL_HEAP_BLKS, blocks.into());
        let progress = VacuumProgress(());
        progress.enter(VacuumPhase::Scanning);
        progress
    }

    /// Goes on to a phase.
    pub fn enter(&self, phase: VacuumPhase) {
        use pg_sys::*;
        let phase = match phase {
            VacuumPhase::Scanning => PROGRESS_VACUUM_PHASE_SCAN_HEAP,
            VacuumPhase::Vacuuming => PROGRESS_VACUUM_PHASE_VACUUM_HEAP,
            VacuumPhase::Indexes => PROGRESS_VACUUM_PHASE_VACUUM_INDEX,
            VacuumPhase::Truncating => PROGRESS_VACUUM_PHASE_TRUNCATE,
            VacuumPhase::FinalCleanup => PROGRESS_VACUUM_PHASE_FINAL_CLEANUP,
        };
        set(PROGRESS_VACUUM_PHASE, phase.into());
    }

    /// The table's blocks have been scanned.
    pub fn scanned(&self, blocks: u32) {
        set(pg_sys::PROGRESS_VACUUM_HEAP_BLKS_SCANNED, blocks.into());
    }

    /// The table's blocks have been vacuumed.
    pub fn vacuumed(&self, blocks: u32) {
        set(pg_sys::PROGRESS_VACUUM_HEAP_BLKS_VACUUMED, blocks.into());
    }

    /// The entries of all indexes have been looked at once.
    pub fn cleaned_indexes(&self) {
        set(pg_sys::PROGRESS_VACUUM_NUM_INDEX_VACUUMS, 1);
    }
}

impl Drop for VacuumProgress {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            process::pgstat_progress_end_command();
        }
    }
}

/// How far a scan for CREATE INDEX has come, in blocks of the table, of which its rows take equal shares.
pub struct BuildProgress {
    blocks: u32,
    end_row: u64,
}

impl BuildProgress {
    /// Begins to report a scan of a table of so many blocks, whose row numbers end here.
    pub fn begin(blocks: u32, end_row: u64) -> BuildProgress {
        set(pg_sys::PROGRESS_SCAN_BLOCKS_TOTAL, blocks.into());
        BuildProgress { blocks, end_row }
    }

    /// The scan has come to a row.
    pub fn at(&self, row: u64) {
        let done = u128::from(self.blocks) * u128::from(row) / u128::from(self.end_row.max(1));
        set(pg_sys::PROGRESS_SCAN_BLOCKS_DONE, done as i64);
    }

    /// The scan has ended.
    pub fn end(&self) {
        set(pg_sys::PROGRESS_SCAN_BLOCKS_DONE, self.blocks.into());
    }
}

/// Reports how many rows CLUSTER or VACUUM FULL has read and written.
pub fn copied_rows(read: u64, written: u64) {
    set(pg_sys::PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED, read as i64);
    set(pg_sys::PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN, written as i64);
}

/// Reports that CLUSTER or VACUUM FULL reads the rows of a table of so many blocks.
pub fn copying(blocks: u32) {
    use pg_sys::*;
    set(
        PROGRESS_CLUSTER_PHASE,
        PROGRESS_CLUSTER_PHASE_SEQ_SCAN_HEAP.into(),
    );
    set(PROGRESS_CLUSTER_TOTAL_HEAP_BLKS, blocks.into());
}

/// Reports that CLUSTER sorts the rows that it has read.
pub fn sorting() {
    use pg_sys::*;
    set(
        PROGRESS_CLUSTER_PHASE,
        PROGRESS_CLUSTER_PHASE_SORT_TUPLES.into(),
    );
}

/// Reports that CLUSTER writes the rows in order.
pub fn writing_sorted() {
    use pg_sys::*;
    set(
        PROGRESS_CLUSTER_PHASE,
        PROGRESS_CLUSTER_PHASE_WRITE_NEW_HEAP.into(),
    );
}
