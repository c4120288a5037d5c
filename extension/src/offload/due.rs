//! The gateway's half of offloading, as SQL functions: what is due, its bytes, and that it has arrived.
//!
//! The gateway's role need not own the tables, nor may it read them: that a table's owner has given it the parameter `hot` is
//! what allows its segments to be taken away, and nothing else does.

use pgrx::PgSqlErrorCode;
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::pg::ports;
use crate::remote::key::Key;
use crate::storage::metapage::Meta;
use crate::storage::part::{self, LivePart, PartEntry, Parts};
use crate::storage::part_image;
use crate::table::reader::{Content, Reader};
use crate::table_am::routine;
use crate::{background_worker, error, maintenance, table_options};

/// One row of `lanes.offload_list()`.
struct Due {
    table: pg_sys::Oid,
    part: u64,
    /// Its newest time.
    newest: i64,
    segments: Vec<(u64, u32, u32, String)>,
}

/// Local sealed segments that are older than their tables' `hot`, of whole parts, those of the oldest parts first.
#[pg_extern(sql = false)]
fn offload_list(
    wanted: i32,
) -> TableIterator<
    'static,
    (
        name!(target, pg_sys::Oid),
        name!(part, i64),
        name!(first_row, i64),
        name!(rows, i64),
        name!(bytes, i64),
        name!(key, String),
    ),
> {
    let mut due: Vec<Due> = Vec::new();
    // SAFETY: inside a transaction.
    unsafe {
        if !pg_sys::RecoveryInProgress() {
            for table in background_worker::tables() {
                due_of(table, &mut due);
            }
        }
    }
    due.sort_by_key(|part| part.newest);
    let mut rows = Vec::new();
    for part in due {
        if rows.len() >= usize::try_from(wanted).unwrap_or(0) {
            break;
        }
        let (table, number) = (part.table, part.part as i64);
        rows.extend(
            part.segments
                .into_iter()
                .map(|(first_row, count, bytes, key)| {
                    let (first_row, count, bytes) =
                        (first_row as i64, i64::from(count), i64::from(bytes));
                    (table, number, first_row, count, bytes, key)
                }),
        );
    }
    TableIterator::new(rows)
}

/// Adds what is due of a table, unless it is locked exclusively just now.
///
/// # Safety
/// Runs inside a transaction.
unsafe fn due_of(table: pg_sys::Oid, due: &mut Vec<Due>) {
    // SAFETY: the caller's promise; the table is closed again, and its lock released.
    unsafe {
        let lock = pg_sys::AccessShareLock as i32;
        if !pg_sys::ConditionalLockRelationOid(table, lock) {
            return;
        }
        let relation = pg_sys::try_relation_open(table, pg_sys::NoLock as i32);
        if relation.is_null() {
            pg_sys::UnlockRelationOid(table, lock);
            return;
        }
        if is_offloadable(relation)
            && let Some(age) = table_options::of(table).hot
            && let Some(time) = maintenance::upkeep::time_column(relation)
            && let Some(meta) = Meta::load(relation)
        {
            let before = pg_sys::GetCurrentTimestamp() - age;
            for part in Parts::of(relation, &meta).live() {
                let entry = &part.entry;
                if entry.is_remote() || entry.is_fading() {
                    continue;
                }
                let newest = maintenance::upkeep::newest_time(relation, part, time);
                if let Some(newest) = newest.filter(|&newest| newest < before) {
                    let index = part.index(relation);
                    let segments = index.segments.iter().map(|segment| {
                        let key = Key::of(meta.storage_id, entry.origin as u32, segment.first_row);
                        (
                            segment.first_row,
                            segment.rows,
                            segment.bytes,
                            key.to_string(),
                        )
                    });
                    due.push(Due {
                        table,
                        part: entry.origin,
                        newest,
                        segments: segments.collect(),
                    });
                }
            }
        }
        pg_sys::relation_close(relation, lock);
    }
}

/// The rows that a live part takes the place of.
#[pg_extern(sql = false)]
fn part_rows(
    target: pg_sys::Oid,
    part: i64,
) -> TableIterator<
    'static,
    (
        name!(storage_id, i64),
        name!(first_row, i64),
        name!(end_row, i64),
    ),
> {
    let mut rows = Vec::new();
    // SAFETY: the table is closed again; an ERROR leaves that to the resource owner.
    unsafe {
        let lock = pg_sys::AccessShareLock as i32;
        let relation = pg_sys::try_relation_open(target, lock);
        if !relation.is_null() {
            if is_offloadable(relation)
                && let Some(meta) = Meta::load(relation)
                && let Some(part) = live_part(&Parts::of(relation, &meta), part as u64)
            {
                let entry = &part.entry;
                rows.push((
                    meta.storage_id as i64,
                    entry.first_row as i64,
                    entry.end_row as i64,
                ));
            }
            pg_sys::relation_close(relation, lock);
        }
    }
    TableIterator::new(rows)
}

/// The bytes of a segment that `lanes.offload_list()` named.
#[pg_extern(sql = false)]
fn segment_image(target: pg_sys::Oid, part: i64, first_row: i64) -> Vec<u8> {
    // SAFETY: the table is closed again; an ERROR leaves that to the resource owner.
    unsafe {
        let lock = pg_sys::AccessShareLock as i32;
        let relation = pg_sys::try_relation_open(target, lock);
        let gone = || -> ! {
            error::raise(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "there is no local segment at row {first_row} in part {part} of that table any more"
                ),
                "Ask lanes.offload_list() again: the part was merged, dropped or offloaded.",
            )
        };
        if relation.is_null() {
            gone();
        }
        let image = if may_be_taken(relation) {
            local_image(relation, part as u64, first_row as u64)
        } else {
            None
        };
        pg_sys::relation_close(relation, lock);
        image.unwrap_or_else(|| gone())
    }
}

unsafe fn local_image(relation: pg_sys::Relation, origin: u64, first_row: u64) -> Option<Vec<u8>> {
    // SAFETY: `segment_image`'s table is open.
    unsafe {
        let parts = Parts::of(relation, &Meta::load(relation)?);
        let part = live_part(&parts, origin).filter(|part| !part.entry.is_remote())?;
        let index = part.index(relation);
        let place = index
            .segments
            .binary_search_by_key(&first_row, |segment| segment.first_row)
            .ok()?;
        let mut image = Vec::with_capacity(index.segments[place].bytes as usize);
        // The statement's snapshot keeps VACUUM from settling a part that took this one's place since.
        if let Err(failure) =
            maintenance::replace_part::read_checked(relation, part, place, &mut image)
        {
            error::corrupt(&format!("the segment at row {first_row}: {failure}"));
        }
        Some(image)
    }
}

/// All segments of a part are durable elsewhere.
#[pg_extern(sql = false)]
fn offload_commit(target: pg_sys::Oid, part: i64) -> bool {
    // SAFETY: the table is closed again and its lock kept until the transaction ends.
    unsafe {
        if pg_sys::RecoveryInProgress() {
            error::raise(
                PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                "a standby cannot offload",
                "Run lanes.offload_commit() on the primary; its standbys follow.",
            );
        }
        let lock = pg_sys::ShareUpdateExclusiveLock as i32;
        let relation = pg_sys::try_relation_open(target, lock);
        if relation.is_null() {
            return false;
        }
        let is_remote = match Reader::open(relation).content.take() {
            Some(content) => commit(relation, &content, part as u64),
            None => false,
        };
        pg_sys::relation_close(relation, pg_sys::NoLock as i32);
        is_remote
    }
}

unsafe fn commit(relation: pg_sys::Relation, content: &Content, origin: u64) -> bool {
    // SAFETY: `offload_commit`'s table is open and locked.
    unsafe {
        match live_part(&content.parts, origin) {
            // Its answer was lost.
            Some(part) if part.entry.is_remote() => true,
            Some(part) if may_be_taken(relation) => {
                maintenance::replace_part::make_remote(relation, content, part);
                // An id of our own, after the part's: once it and all that is older is over the local part is done with,
                // even if nobody else writes.
                pg_sys::GetCurrentTransactionId();
                true
            }
            // Dropped since; but somebody may still read it, and its objects are not orphans yet.
            _ => remote_parts(relation, &content.meta)
                .iter()
                .any(|entry| entry.origin == origin),
        }
    }
}

/// The live part whose rows have their numbers from this one.
fn live_part(parts: &Parts, origin: u64) -> Option<&LivePart> {
    parts.live().iter().find(|part| part.entry.origin == origin)
}

/// Keys that parts name which somebody may still read.
#[pg_extern(sql = false)]
fn remote_keys() -> SetOfIterator<'static, String> {
    let mut keys = Vec::new();
    // SAFETY: inside a transaction; tables are closed again. A table that is locked exclusively is waited for: none may be
    // left out.
    unsafe {
        let lock = pg_sys::AccessShareLock as i32;
        for table in background_worker::tables() {
            let relation = pg_sys::try_relation_open(table, lock);
            if relation.is_null() {
                continue;
            }
            if is_offloadable(relation)
                && let Some(meta) = Meta::load(relation)
            {
                for entry in remote_parts(relation, &meta) {
                    for segment in part_image::read_index(relation, &entry).segments {
                        let key = Key::of(meta.storage_id, entry.origin as u32, segment.first_row);
                        keys.push(key.to_string());
                    }
                }
            }
            pg_sys::relation_close(relation, lock);
        }
    }
    SetOfIterator::new(keys)
}

/// Remote parts that somebody may still read: those that a later part covers are read until they are dead.
///
/// # Safety
/// `relation` is the open lanes table that `meta` was read from.
unsafe fn remote_parts(relation: pg_sys::Relation, meta: &Meta) -> Vec<PartEntry> {
    let mut remote = Vec::new();
    // SAFETY: the caller's promise.
    unsafe {
        part::walk(relation, meta, |_, entries| {
            let counts = |e: &&PartEntry| e.is_remote() && e.flags & part::FLAG_DEAD == 0;
            remote.extend(entries.iter().filter(counts).copied());
        });
    }
    remote
}

/// # Safety
/// `relation` is open.
pub unsafe fn is_offloadable(relation: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        (*relation).rd_tableam == routine::routine() && !ports::RelationUsesLocalBuffers(relation)
    }
}

/// Whether the table's owner wants its segments to be offloaded.
///
/// # Safety
/// `relation` is open.
unsafe fn may_be_taken(relation: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise.
    unsafe { is_offloadable(relation) && table_options::of((*relation).rd_id).hot.is_some() }
}
