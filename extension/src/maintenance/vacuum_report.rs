//! The report of a VACUUM: for the catalogs, for the statistics, and for whoever asked for it.

use std::time::Instant;

use pgrx::{PgLogLevel, PgSqlErrorCode, ereport, pg_sys};

use super::seal::Sealed;
use crate::pg::server;
use crate::pg::table::OpenTable;
use crate::storage::extent;

/// A report that is being written.
pub struct Report {
    /// The oldest transaction whose id is not frozen.
    pub frozen: u32,
    pub rows_live: u64,
    pub rows_dead: u64,
    pub sealed: Sealed,
    pub has_indexes: bool,
    /// The index entries of rows that were gone.
    pub entries_removed: u64,
    /// The blocks of the file when VACUUM began.
    blocks_before: u32,
    audience: Audience,
    began: Instant,
}

/// Who gets the report of a VACUUM.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Audience {
    /// Only the log, at its most detailed level.
    Nobody,
    /// The client, by `VACUUM (VERBOSE)`.
    Client,
    /// The log, if an automatic VACUUM took at least so many milliseconds.
    Log(i32),
}

impl Audience {
    /// Who gets the report, by the parameters of a VACUUM.
    pub fn of(parameters: &pg_sys::VacuumParams) -> Audience {
        if parameters.options & pg_sys::VACOPT_VERBOSE != 0 {
            return Audience::Client;
        }
        let is_automatic = server::is_autovacuum_worker();
        match is_automatic && parameters.log_min_duration >= 0 {
            true => Audience::Log(parameters.log_min_duration),
            false => Audience::Nobody,
        }
    }
}

impl Report {
    /// Begins a report. Transactions before `horizon` are going to be frozen.
    pub fn begin(table: OpenTable<'_>, audience: Audience, horizon: u32) -> Report {
        let blocks_before = table.blocks();
        if audience == Audience::Client {
            let name = table.full_name();
            pgrx::info!("vacuuming \"{name}\"");
        }
        Report {
            frozen: horizon,
            rows_live: 0,
            rows_dead: 0,
            sealed: Sealed::default(),
            has_indexes: false,
            entries_removed: 0,
            blocks_before,
            audience,
            began: Instant::now(),
        }
    }

    /// Sends the report to the catalog, the statistics and its audience. The caller is the table's
    /// only VACUUM.
    pub fn send(&self, table: OpenTable<'_>) {
        table.report_vacuum(self.rows_live, self.frozen, self.has_indexes);
        let took = self.began.elapsed().as_millis();
        let is_heard = match self.audience {
            Audience::Log(least) => took >= least as u128,
            _ => true,
        };
        if is_heard {
            self.print(table);
        }
    }

    fn print(&self, table: OpenTable<'_>) {
        let name = table.full_name();
        // A file without blocks has no list of free ones.
        let (blocks, free) = match table.blocks() {
            0 => (0, Vec::new()),
            _ => extent::survey(table),
        };
        let free: u32 = free.iter().map(|extent| extent.blocks).sum();
        let Sealed { parts, rows, busy } = self.sealed;
        let (level, done) = match self.audience {
            Audience::Nobody => (PgLogLevel::DEBUG1, "vacuuming"),
            Audience::Client => (PgLogLevel::INFO, "vacuuming"),
            Audience::Log(_) => (PgLogLevel::LOG, "automatic vacuum of"),
        };
        let left = match busy {
            0 => String::new(),
            busy => format!("; {busy} ranges left open, as rows of them are in use"),
        };
        let entries = match self.has_indexes {
            true => format!("; {} index entries removed", self.entries_removed),
            false => String::new(),
        };
        ereport!(
            level,
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            format!(
                "finished {done} \"{name}\": {} rows live, {} dead; {rows} rows sealed in {parts} parts{left}{entries}; \
                 {} blocks before, {blocks} now, {free} of them free",
                self.rows_live, self.rows_dead, self.blocks_before
            ),
            format!(
                "It took {:.3} s. The oldest transaction that is not frozen is {}.",
                self.began.elapsed().as_secs_f64(),
                self.frozen
            )
        );
    }
}
