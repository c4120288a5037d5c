//! What keeps a table small: retention, sealing, settling. By VACUUM, by `lanes.seal()`, by the background worker.

use lanes_columnar::zone_map::{self, Bound};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys};

use super::seal::{self, Order, Sealed};
use super::seal_plan::{self, Limits, Range};
use crate::pg::ports;
use crate::storage::directory::{FLAG_DEAD, FLAG_SEALED};
use crate::storage::part::LivePart;
use crate::table::reader::{Content, Reader};
use crate::table::runs::Remote;
use crate::table::visibility::xid_precedes;
use crate::table_am::routine;
use crate::table_options::{self, Settings};
use crate::{error, gucs, table};

/// Drops what is older than the table retains, then seals what is to be sealed. Once it has added its last part, the
/// caller takes a transaction id ([`seal::let_settle`]).
///
/// # Safety
/// `relation` is an open lanes table, locked in ShareUpdateExclusive mode.
pub unsafe fn seal(relation: pg_sys::Relation, thorough: bool) -> Sealed {
    // SAFETY: the caller's promise.
    unsafe {
        let table = (*relation).rd_id;
        let settings = table_options::of(table);
        let order = Order {
            keys: settings.keys(table).unwrap_or_default(),
            dedup: settings.dedup,
        };
        if let Some(age) = settings.retain {
            drop_old(relation, pg_sys::GetCurrentTimestamp() - age);
        }
        drop_faded(relation);
        let mut reader = Reader::open(relation);
        let Some(content) = reader.content.take() else {
            return Sealed::default();
        };
        let limits = limits(&reader, &content, &settings, thorough);
        drop((content, reader));
        seal::seal(relation, &order, &limits)
    }
}

/// Whether there is something to seal, to settle or to drop.
///
/// # Safety
/// `relation` is an open lanes table, locked in ShareUpdateExclusive mode.
pub unsafe fn is_due(relation: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let mut reader = Reader::open(relation);
        let Some(content) = reader.content.take() else {
            return false;
        };
        let horizon = seal_plan::horizon(relation);
        let settings = table_options::of((*relation).rd_id);
        let unsettled =
            |part: &LivePart| part.entry.xid != 0 && xid_precedes(part.entry.xid, horizon);
        content.parts.live().iter().any(unsettled)
            || faded_part(&content, horizon).is_some()
            || {
                let limits = limits(&reader, &content, &settings, false);
                seal_plan::is_any(&content, &reader.shape, horizon, &limits)
            }
            || settings.retain.is_some_and(|age| {
                let before = pg_sys::GetCurrentTimestamp() - age;
                time_column(relation)
                    .is_some_and(|time| old_part(relation, &content, time, before).is_some())
            })
    }
}

/// # Safety
/// `reader` is of a table as [`seal`] takes it, and holds this content.
unsafe fn limits(
    reader: &Reader,
    content: &Content,
    settings: &Settings,
    thorough: bool,
) -> Limits {
    let rows_min = gucs::seal_rows();
    // SAFETY: the caller's promise.
    let is_due = !thorough && unsafe { has_due_rows(reader, content, settings) };
    Limits {
        rows_min,
        open_rows_min: if is_due { 1 } else { rows_min },
        memory: gucs::seal_memory_bytes(),
        thorough,
        dedup: settings.dedup,
    }
}

/// Whether open rows are as old as rows may be that are dropped or go to object storage, which only sealed ones do. The
/// first ones are taken for the oldest.
unsafe fn has_due_rows(reader: &Reader, content: &Content, settings: &Settings) -> bool {
    // SAFETY: `seal`'s caller promised an open, locked table; the column is alive while it is measured.
    unsafe {
        let age = [settings.retain, settings.hot].into_iter().flatten().min();
        let relation = reader.relation;
        let (Some(age), Some(time)) = (age, time_column(relation)) else {
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
        let decoded = table::runs::decode_rows(relation, &shape, runs, from, to, Remote::Leave);
        let column = &decoded.columns[time];
        let zone = zone_map::compute(&column.lane(), column.kind(), 0..column.rows());
        matches!(zone.maximum, Bound::Signed(newest) if newest < pg_sys::GetCurrentTimestamp() - age)
    }
}

/// A part whose newest time is before `before`.
unsafe fn old_part(
    relation: pg_sys::Relation,
    content: &Content,
    time: usize,
    before: i64,
) -> Option<&LivePart> {
    content.parts.live().iter().find(|part| {
        // SAFETY: `seal`'s caller promised an open, locked table, whose parts these are.
        unsafe { newest_time(relation, part, time) }.is_some_and(|newest| newest < before)
    })
}

/// The newest time of a part; `None`: it is not known of all its segments, or there are none.
///
/// # Safety
/// `relation` is the open lanes table that the part belongs to; `time` is the place of a time column.
pub unsafe fn newest_time(relation: pg_sys::Relation, part: &LivePart, time: usize) -> Option<i64> {
    // SAFETY: the caller's promise.
    let index = unsafe { part.index(relation) };
    let newest = index.segments.iter().map(|segment| {
        match segment.zones.get(time).map(|zone| zone.maximum) {
            Some(Bound::Signed(newest)) => Some(newest),
            _ => None,
        }
    });
    newest.collect::<Option<Vec<i64>>>()?.into_iter().max()
}

/// A part of rows that dedup took out and that no snapshot sees any more.
fn faded_part(content: &Content, horizon: u32) -> Option<&LivePart> {
    let is_over = |xid| xid == 0 || xid_precedes(xid, horizon);
    let mut parts = content.parts.live().iter();
    parts.find(|part| part.entry.is_fading() && is_over(part.entry.xid))
}

/// Drops the parts whose rows dedup took out and no snapshot sees any more.
unsafe fn drop_faded(relation: pg_sys::Relation) {
    // SAFETY: `seal`'s caller promised an open, locked table.
    unsafe {
        let horizon = seal_plan::horizon(relation);
        drop_parts(relation, |content| faded_part(content, horizon));
    }
}

/// Drops the parts whose newest time is before `before`, in microseconds since 2000-01-01 UTC.
unsafe fn drop_old(relation: pg_sys::Relation, before: i64) {
    // SAFETY: `seal`'s caller promised an open, locked table.
    unsafe {
        if let Some(time) = time_column(relation) {
            drop_parts(relation, |content| {
                old_part(relation, content, time, before)
            });
        }
    }
}

/// Drops parts as long as `find` finds one, and others do not use its rows.
unsafe fn drop_parts(relation: pg_sys::Relation, find: impl Fn(&Content) -> Option<&LivePart>) {
    // SAFETY: `seal`'s caller promised an open, locked table.
    unsafe {
        loop {
            let mut reader = Reader::open(relation);
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
            if !seal::drop_range(relation, &content, &range) {
                return;
            }
            ports::CHECK_FOR_INTERRUPTS();
        }
    }
}

/// The place of the column that says when a row is of: the first of a timestamp type, of those of `order_by` if there is
/// one.
///
/// # Safety
/// `relation` is open.
pub unsafe fn time_column(relation: pg_sys::Relation) -> Option<usize> {
    // SAFETY: the caller promised an open table.
    unsafe {
        let descriptor = (*relation).rd_att;
        let is_time = |&place: &usize| {
            let attribute = ports::TupleDescAttr(descriptor, place);
            let kind = attribute.atttypid;
            !attribute.attisdropped
                && (kind == pg_sys::TIMESTAMPTZOID || kind == pg_sys::TIMESTAMPOID)
        };
        let table = (*relation).rd_id;
        let keys = table_options::of(table).keys(table).unwrap_or_default();
        let columns = (*descriptor).natts as usize;
        keys.into_iter().chain(0..columns).find(is_time)
    }
}

/// Open rows that some snapshot may not see.
unsafe fn unseen_rows(relation: pg_sys::Relation) -> u64 {
    // SAFETY: `seal_table` opened and locked the table.
    unsafe {
        let content = Reader::open(relation).content.take();
        let horizon = seal_plan::horizon(relation);
        content.map_or(0, |content| seal_plan::unseen_rows(&content, horizon))
    }
}

/// Says how many rows stay open, and who keeps them so.
fn tell_of_unseen(name: &str, rows: u64) {
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

/// Seals all rows of a lanes table that every snapshot sees, and merges its parts; how many rows were written.
#[pg_extern(sql = false)]
fn seal_table(target: pg_sys::Oid) -> i64 {
    // SAFETY: the table is opened, checked to be ours, and closed again; an ERROR leaves that to the resource owner.
    unsafe {
        if pg_sys::RecoveryInProgress() {
            error::raise(
                PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                "a standby cannot seal",
                "Run lanes.seal() on the primary; its standbys follow.",
            );
        }
        // Before the lock: whoever may not have it shall not wait for it either.
        if !ports::owns_relation(target) {
            let name = pg_sys::get_rel_name(target);
            pg_sys::aclcheck_error(
                pg_sys::AclResult::ACLCHECK_NOT_OWNER,
                pg_sys::ObjectType::OBJECT_TABLE,
                name,
            );
        }
        let table = pg_sys::table_open(target, pg_sys::ShareUpdateExclusiveLock as i32);
        let name = ports::RelationGetRelationName(table);
        if (*table).rd_tableam != routine::routine() {
            error::raise(
                PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                format!("\"{name}\" is not a lanes table"),
                "lanes.seal() takes a table that was created USING lanes.",
            );
        }
        // Its columns may be other ones after a ROLLBACK; what was sealed stays as it is.
        let exclusive = pg_sys::AccessExclusiveLock as i32;
        if pg_sys::CheckRelationLockedByMe(table, exclusive, false)
            || ports::changed_by_this_transaction(target)
        {
            error::raise(
                PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION,
                format!(
                    "\"{name}\" was changed or locked by this transaction, which may yet be rolled back"
                ),
                "Sealing cannot be: commit, and seal then.",
            );
        }
        let mut sealed = seal(table, true);
        let unseen = match unseen_rows(table) {
            // Whose snapshots they were may have ended since.
            0 => 0,
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
        pg_sys::table_close(table, pg_sys::NoLock as i32);
        if unseen > 0 {
            tell_of_unseen(&name, unseen);
        }
        if sealed.busy > 0 {
            pgrx::notice!(
                "rows of \"{name}\" are being changed or locked: what they lie in was left as it is"
            );
        }
        sealed.rows as i64
    }
}
