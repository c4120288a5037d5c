//! `lanes`: telemetry and ticks as columns in memory, inside PostgreSQL.
//!
//! ```text
//! write   a slot (INSERT, COPY) or a batch (ingest) ──► columns ──► table::append ──► a run in pages and in the arena
//! read    table::scan (runs and tombstones under a snapshot) ─┬─► table_am ──────────► a slot, for PostgreSQL's scans
//!                                                             └─► vectors ──► nodes ──► a slot, for vectorised plans
//! ```
//! `extension/README.md` lists the rooms. A room uses only rooms that stand above it there.
//!
//! For any table there are SQL functions over times and values (`functions`). For the series of
//! Prometheus there are the label index (`labels`) and queries in PromQL (`promql`).
//!
//! This file loads and registers, nothing else.

use pgrx::prelude::*;

mod arithmetic;
mod asof_rewrite;
mod background_worker;
mod custom_scan;
mod error;
mod expressions;
mod functions;
mod gapfill_rewrite;
mod gucs;
mod hooks;
mod ingest;
mod inspect;
mod joins;
mod labels;
mod maintenance;
mod nodes;
mod offload;
mod pg;
mod planner;
mod promql;
mod remote;
mod storage;
mod table;
mod table_am;
mod table_options;
mod vectorize;
mod vectors;

pgrx::pg_module_magic!();

/// Called when Postgres loads the library.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    pg::signals::silence_backtraces();
    if !pg::server::is_preloading() {
        error::raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "lanes must be loaded by the server at its start",
            "Add lanes to shared_preload_libraries in postgresql.conf and restart the server.",
        );
    }
    lanes_columnar::interrupt::register(pg::ports::CHECK_FOR_INTERRUPTS);
    gucs::register();
    background_worker::register();
    pg::slot::register();
    remote::requests::register();
    table::speculation::register();
    table::logged_rows::register();
    pg::shmem::register(gucs::arena_bytes());
    table_am::routine::register();
    vectorize::register();
    nodes::register();

    hooks::register();
}
