//! `lanes.append(target, batch)`: one batch of the wire format becomes rows, with every check of an INSERT.
//!
//! ```text
//! bytea ── lanes_wire verifies ──► BatchView
//!            │
//!          target    opens the table, checks the privilege, matches columns to attributes, decides the way
//!            ├── direct    lanes table, no per-row work asked for: vectors are copied into lanes, one run each 65,536 rows,
//!            │             and index entries are made for each run
//!            └── copy      anything else (triggers, CHECK, partitions, foreign keys, domains, heap tables, …):
//!                          the rows go through Postgres's own COPY, which does all of it
//! ```
//!
//! `placed` appends rows that somebody keeps a log of: only directly into lanes, and it returns the
//! numbers of the rows. `restore` inserts images from object storage.
//!
//! `convert` maps batch types to SQL types; `refusal` maps every reason to its SQLSTATE. Both ways
//! are part of the calling transaction, see the same command id, and leave nothing behind after an
//! error. The way is logged at DEBUG1.

mod convert;
mod copy;
mod direct;
mod distributed;
mod placed;
mod refusal;
mod restore;
mod target;

use lanes_wire::BatchView;
use pgrx::prelude::*;

use refusal::Refusal;
use target::{AppendTarget, Route};

use crate::pg;

/// Appends a batch. Returns the number of inserted rows; a BEFORE ROW trigger may skip some of the
/// batch's.
#[pg_extern(sql = false)]
fn append(target: pg_sys::Oid, batch: &[u8]) -> i64 {
    pg::malloc::keep_freed_memory();
    let appended = || append_batch(target, batch).unwrap_or_else(|refusal| refusal.report());
    // An index may refuse a row, and then the error names the constraint.
    pg::whole_error::whole(appended) as i64
}

fn append_batch(table: pg_sys::Oid, batch: &[u8]) -> Result<u64, Refusal> {
    let batch = BatchView::verify(batch)?;
    let target = AppendTarget::open(table)?;
    let sources = target.sources(&batch)?;
    if batch.rows() == 0 {
        return Ok(0);
    }
    match target.route(&batch, &sources)? {
        Route::Direct(columns) => {
            direct::append(&target, &batch, &columns)?;
            Ok(batch.rows() as u64)
        }
        Route::Copy { because } => {
            debug1!(
                "lanes.append into \"{}\" goes through COPY: {because}",
                target.name()
            );
            copy::append(&target, &batch, &sources)
        }
    }
}
