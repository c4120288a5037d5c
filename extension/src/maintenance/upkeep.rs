//! Retention, sealing and settling, which keep a table small. VACUUM, `lanes.seal()` and the
//! background worker call them.

use lanes_columnar::zone_map::{self, Bound};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys};

use super::seal::{self, Order, Sealed};
use super::seal_plan::{self, Limits, Range};
use crate::pg::table::OpenTable;
use crate::pg::table::OpenedTable;
use crate::pg::{ports, table_catalog, transaction};
use crate::storage::directory::{FLAG_DEAD, FLAG_SEALED};
use crate::storage::part::LivePart;
use crate::table::decode::{self, Remote};
use crate::table::pending_rows;
use crate::table::reader::{Content, Reader};
use crate::table::visibility::xid_precedes;
use crate::table_options::{self, Settings, time_column};
use crate::{error, gucs};

/// Drops rows that are older than the table retains, then seals. Once the last part is added, the
/// caller takes a transaction id ([`seal::let_settle`]).
pub fn seal(table: OpenTable<'_>, thorough: bool) -> Sealed {
    let settings = table_options::of(table.oid());
    let order = Order {
        keys: settings.keys(table.oid()).unwrap_or_default(),
        dedup: settings.dedup,
    };
    if let Some(age) = settings.retain {
        drop_old(table, transaction::now() - age);
    }
    drop_faded(table);
    let mut reader = Reader::open(table);
    let Some(content) = reader.content.take() else {
        return Sealed::default();
    };
    let limits = limits(&reader, &content, &settings, thorough);
    drop((content, reader));
    seal::seal(table, &order, &limits)
}

/// Whether there is something to seal, to settle or to drop.
pub fn is_due(table: OpenTable<'_>) -> bool {
    let mut reader = Reader::open(table);
    let Some(content) = reader.content.take() else {
        return false;
    };
    let horizon = table.oldest_non_removable_xid();
    let settings = table_options::of(table.oid());
    let unsettled = |part: &LivePart| part.entry.xid != 0 && xid_precedes(part.entry.xid, horizon);
    content.parts.live().iter().any(unsettled)
        || faded_part(&content, horizon).is_some()
        || {
            let limits = limits(&reader, &content, &settings, false);
            seal_plan::is_any(&content, &reader.shape, horizon, &limits)
        }
        || settings.retain.is_some_and(|age| {
            let before = transaction::now() - age;
            time_column::of(table)
                .is_some_and(|time| old_part(table, &content, time, before).is_some())
        })
}

fn limits(reader: &Reader<'_>, content: &Content, settings: &Settings, thorough: bool) -> Limits {
    let rows_min = gucs::seal_rows();
    let is_due = !thorough && has_due_rows(reader, content, settings);
    Limits {
        rows_min,
        open_rows_min: if is_due { 1 } else { rows_min },
        memory: gucs::seal_memory_bytes(),
        thorough,
        dedup: settings.dedup,
    }
}

/// Whether open rows are so old that they are to be dropped or go to object storage. Both need
/// sealed rows. The first open rows count as the oldest.
fn has_due_rows(reader: &Reader<'_>, content: &Content, settings: &Settings) -> bool {
    let age = [settings.retain, settings.hot].into_iter().flatten().min();
    let table = reader.table;
    let (Some(age), Some(time)) = (age, time_column::of(table)) else {
        return false;
    };
    let runs = &content.runs;
    let first_open = (0..runs.len())
        .map(|index| runs.get(index))
        .find(|run| run.flags & (FLAG_SEALED | FLAG_DEAD) == 0);
    let Some(run) = first_open else {
        return false;
    };
    let shape = reader.shape.only(&[time]);
    let (from, to) = (run.first_row, run.end_row());
    let decoded = decode::decode_rows(table, &shape, runs, from, to, Remote::Leave);
    let column = &decoded.columns[time];
    let zone = zone_map::of_column(column, 0..column.rows());
    matches!(zone.maximum, Bound::Signed(newest) if newest < transaction::now() - age)
}

/// A part whose newest time is before `before`.
fn old_part<'a>(
    table: OpenTable<'_>,
    content: &'a Content,
    time: usize,
    before: i64,
) -> Option<&'a LivePart> {
    content.parts.live().iter().find(|part| {
        part.newest_time(table, time)
            .is_some_and(|newest| newest < before)
    })
}

/// A part of rows that dedup took out, which no snapshot sees any more.
fn faded_part(content: &Content, horizon: u32) -> Option<&LivePart> {
    let is_over = |xid| xid == 0 || xid_precedes(xid, horizon);
    let mut parts = content.parts.live().iter();
    parts.find(|part| part.entry.is_fading() && is_over(part.entry.xid))
}

/// Drops the parts of rows that dedup took out, which no snapshot sees any more.
fn drop_faded(table: OpenTable<'_>) {
    let horizon = table.oldest_non_removable_xid();
    drop_parts(table, |content| faded_part(content, horizon));
}

/// Drops the parts whose newest time is before `before`, in microseconds since 2000-01-01 UTC.
fn drop_old(table: OpenTable<'_>, before: i64) {
    if let Some(time) = time_column::of(table) {
        drop_parts(table, |content| old_part(table, content, time, before));
    }
}

/// Drops parts until `find` finds none, or until others use rows of the one that it finds.
fn drop_parts(table: OpenTable<'_>, find: impl Fn(&Content) -> Option<&LivePart>) {
    loop {
        let mut reader = Reader::open(table);
        let Some(content) = reader.content.take() else {
            return;
        };
        let Some(part) = find(&content) else {
            return;
        };
        let range = Range {
            first_row: part.entry.first_row,
            end_row: part.entry.end_row,
            rows: Vec::new(),
        };
        if !seal::drop_range(table, &content, &range) {
            return;
        }
        ports::CHECK_FOR_INTERRUPTS();
    }
}

/// The number of open rows that some snapshot may not see.
fn unseen_rows(table: OpenTable<'_>) -> u64 {
    let content = Reader::open(table).content.take();
    let horizon = table.oldest_non_removable_xid();
    content.map_or(0, |content| seal_plan::unseen_rows(&content, horizon))
}

/// Reports how many rows stay open, and whose snapshot is the reason.
fn report_unseen(name: &str, rows: u64) {
    let holder = Spi::get_one::<String>("SELECT lanes.oldest_snapshot()").unwrap_or_default();
    let detail = holder.map_or_else(String::new, |holder| {
        format!("The oldest snapshot is that of {holder}.")
    });
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("rows of \"{name}\" stay open, because not every snapshot sees them: {rows}"),
        "",
    )
    .set_detail(detail)
    .set_hint("Seal again once older transactions have ended.")
    .report(PgLogLevel::NOTICE);
}

/// Seals all rows of a lanes table that every snapshot sees, and merges its parts. Returns how many
/// rows were written.
#[pg_extern(sql = false)]
fn seal_table(target: pg_sys::Oid) -> i64 {
    if transaction::is_in_recovery() {
        error::raise(
            PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
            "a standby cannot seal",
            "Run lanes.seal() on the primary; its standbys follow.",
        );
    }
    // Checked before the table is locked: whoever may not lock it shall not wait for the lock
    // either.
    table_catalog::check_owner(target);
    let opened = OpenedTable::open(target, pg_sys::ShareUpdateExclusiveLock).keep_lock();
    let table = opened.get();
    check_sealable(table);
    pending_rows::flush_table(target);
    let mut sealed = seal(table, true);
    let unseen = match unseen_rows(table) {
        0 => 0,
        // The transactions whose snapshots did not see the rows may have ended since.
        _ => {
            let again = seal(table, true);
            sealed.parts += again.parts;
            sealed.rows += again.rows;
            sealed.busy = again.busy;
            unseen_rows(table)
        }
    };
    if sealed.parts > 0 {
        seal::let_settle();
    }
    if unseen > 0 {
        report_unseen(&table.name(), unseen);
    }
    if sealed.busy > 0 {
        pgrx::notice!(
            "rows of \"{}\" are being changed or locked: the ranges that hold them were not sealed",
            table.name()
        );
    }
    sealed.rows as i64
}

/// Raises an ERROR unless a table is a lanes table that this transaction has neither changed nor
/// locked exclusively. A ROLLBACK would restore its columns, but not the rows that were sealed with
/// the changed ones.
fn check_sealable(table: OpenTable<'_>) {
    let name = table.name();
    if !table.is_lanes() {
        error::raise(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("\"{name}\" is not a lanes table"),
            "lanes.seal() takes a table that was created USING lanes.",
        );
    }
    if table.is_locked_by_me(pg_sys::AccessExclusiveLock, false)
        || table_catalog::is_changed_by_this_transaction(table.oid())
    {
        error::raise(
            PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION,
            format!(
                "\"{name}\" was changed or locked by this transaction, which may yet be rolled back"
            ),
            "Commit the transaction before sealing the table.",
        );
    }
}
