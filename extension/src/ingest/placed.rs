//! Appending rows that somebody keeps a log of. The rows go directly into a lanes table, and the
//! answer has their numbers.
//!
//! A row keeps its number until it is sealed, and its part then covers that number. So whoever
//! knows the numbers of appended rows can compare them with the ranges of parts to know whether the
//! rows are in parts ([`crate::offload::local_rows`]).

use lanes_wire::BatchView;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::direct;
use super::refusal::Refusal;
use super::target::{AppendTarget, Filling, Route};
use crate::pg;
use crate::storage::metapage::Meta;

/// Appends a batch to a table that takes it directly.
///
/// The answer has the table's storage id, and then the first row and the number of rows of each
/// run, in the order of the batch's rows. It is empty for a batch without rows.
#[pg_extern(sql = false)]
fn append_placed(target: pg_sys::Oid, batch: &[u8]) -> Vec<i64> {
    pg::malloc::keep_freed_memory();
    pg::whole_error::whole(|| place(target, batch).unwrap_or_else(|refusal| refusal.report()))
}

fn place(table: pg_sys::Oid, batch: &[u8]) -> Result<Vec<i64>, Refusal> {
    let batch = BatchView::verify(batch)?;
    let target = AppendTarget::open(table)?;
    let sources = target.sources(&batch)?;
    let not_placed = |because| Refusal::NotPlaced {
        table: target.name(),
        because,
    };
    if !target.table().is_permanent() {
        return Err(not_placed("the table is not logged"));
    }
    let columns = match target.route(&batch, &sources)? {
        Route::Direct(columns) => columns,
        Route::Copy { because } => return Err(not_placed(because)),
    };
    // If the batch is appended again from the log, the default might be another.
    if columns
        .iter()
        .any(|filling| matches!(filling, Filling::Constant(Some(_))))
    {
        return Err(not_placed(
            "the batch leaves out a column that has a default",
        ));
    }
    if batch.rows() == 0 {
        return Ok(Vec::new());
    }
    let runs = direct::append(&target, &batch, &columns)?;
    let meta = Meta::load(target.table());
    let storage_id = meta.map_or(0, |meta| meta.storage_id);
    let mut placed = vec![storage_id as i64];
    placed.extend(
        runs.iter()
            .flat_map(|(row, rows)| [*row as i64, *rows as i64]),
    );
    Ok(placed)
}
