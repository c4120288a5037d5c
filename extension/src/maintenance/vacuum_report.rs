//! The report of what a VACUUM found and did: for the catalogues, for the statistics, and for whoever asked to be told.

use std::time::Instant;

use pgrx::{PgLogLevel, PgSqlErrorCode, ereport, pg_sys};

use super::seal::Sealed;
use crate::pg::ports;
use crate::storage::{extent, metapage};

/// A report that is being written.
pub struct Report {
    /// The oldest transaction whose id is not frozen.
    pub frozen: u32,
    pub rows_live: u64,
    pub rows_dead: u64,
    pub sealed: Sealed,
    /// Blocks of the file when VACUUM began.
    blocks_before: u32,
    told: Told,
    began: Instant,
}

/// Whom a VACUUM tells what it has done.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Told {
    /// Nobody but the log at its most talkative.
    Nobody,
    /// The client, by `VACUUM (VERBOSE)`.
    Client,
    /// The log, if an automatic VACUUM took so many milliseconds or more.
    Log(i32),
}

impl Told {
    /// Whom the parameters of a VACUUM ask to be told.
    pub fn of(parameters: &pg_sys::VacuumParams) -> Told {
        if parameters.options & pg_sys::VACOPT_VERBOSE != 0 {
            return Told::Client;
        }
        // SAFETY: a variable of this process.
        let kind = unsafe { pg_sys::MyBackendType };
        let is_automatic = kind == pg_sys::BackendType::B_AUTOVAC_WORKER;
        match is_automatic && parameters.log_min_duration >= 0 {
            true => Told::Log(parameters.log_min_duration),
            false => Told::Nobody,
        }
    }
}

impl Report {
    /// Begins a report: transactions before `horizon` are going to be frozen.
    ///
    /// # Safety
    /// `relation` is an open lanes table.
    pub unsafe fn begin(relation: pg_sys::Relation, told: Told, horizon: u32) -> Report {
        // SAFETY: the caller's promise.
        let blocks_before = unsafe { metapage::blocks(relation) };
        if told == Told::Client {
            // SAFETY: the caller's promise.
            let name = unsafe { full_name(relation) };
            pgrx::info!("vacuuming \"{name}\"");
        }
        Report {
            frozen: horizon,
            rows_live: 0,
            rows_dead: 0,
            sealed: Sealed::default(),
            blocks_before,
            told,
            began: Instant::now(),
        }
    }

    /// Brings the report into the catalogue and the statistics, and tells those who asked for it.
    ///
    /// # Safety
    /// The table is still open.
    pub unsafe fn send(&self, relation: pg_sys::Relation) {
        // SAFETY: the caller's promise.
        unsafe {
            let blocks = metapage::blocks(relation);
            ports::update_relation_stats(relation, blocks, self.rows_live as f64, self.frozen);
            ports::pgstat_report_vacuum(relation, self.rows_live);
            let took = self.began.elapsed().as_millis();
            let is_told = match self.told {
                Told::Log(least) => took >= least as u128,
                _ => true,
            };
            if is_told {
                self.tell(relation);
            }
        }
    }

    unsafe fn tell(&self, relation: pg_sys::Relation) {
        // SAFETY: the table is open; one without blocks has no list of free ones.
        let (name, (blocks, free)) = unsafe {
            let survey = match metapage::blocks(relation) {
                0 => (0, Vec::new()),
                _ => extent::survey(relation),
            };
            (full_name(relation), survey)
        };
        let free: u32 = free.iter().map(|extent| extent.blocks).sum();
        let Sealed { parts, rows, busy } = self.sealed;
        let (level, done) = match self.told {
            Told::Nobody => (PgLogLevel::DEBUG1, "vacuuming"),
            Told::Client => (PgLogLevel::INFO, "vacuuming"),
            Told::Log(_) => (PgLogLevel::LOG, "automatic vacuum of"),
        };
        let left = match busy {
            0 => String::new(),
            busy => format!("; {busy} ranges left open, as rows of them are in use"),
        };
        ereport!(
            level,
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            format!(
                "finished {done} \"{name}\": {} rows live, {} dead; {rows} rows sealed in {parts} parts{left}; {} blocks \
                 before, {blocks} now, {free} of them free",
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

/// A table's name with its database and schema, as PostgreSQL's own VACUUM writes it.
unsafe fn full_name(relation: pg_sys::Relation) -> String {
    // SAFETY: the caller's table is open; names are palloc'd, or null for what was dropped meanwhile.
    unsafe {
        let text = |name: *const std::ffi::c_char| match name.is_null() {
            true => "?".to_owned(),
            false => std::ffi::CStr::from_ptr(name)
                .to_string_lossy()
                .into_owned(),
        };
        let schema = pg_sys::get_namespace_name((*(*relation).rd_rel).relnamespace);
        format!(
            "{}.{}.{}",
            text(pg_sys::get_database_name(pg_sys::MyDatabaseId)),
            text(schema),
            ports::RelationGetRelationName(relation)
        )
    }
}
