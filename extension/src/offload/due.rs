//! The SQL functions for offloading: the parts that are due, their bytes, and the confirmation that
//! they have arrived.
//!
//! The gateway's role neither needs to own the tables nor may it read them. Only a table's owner
//! allows its segments to be taken away, by giving it the parameter `hot`.

use pgrx::PgSqlErrorCode;
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::error;
use crate::maintenance::replace_part;
use crate::pg::table::{OpenTable, OpenedTable};
use crate::pg::{table_catalog, transaction};
use crate::remote::key::Key;
use crate::remote::scope;
use crate::storage::metapage::Meta;
use crate::storage::part::{self, LivePart, PartEntry, Parts};
use crate::storage::part_image;
use crate::table::pending_rows;
use crate::table::reader::{Content, Reader};
use crate::table_options::{self, time_column};

/// One row of `lanes.offload_list()`.
struct Due {
    table: pg_sys::Oid,
    part: u64,
    /// Its newest time.
    newest: i64,
    segments: Vec<(u64, u32, u32, String)>,
}

/// Local sealed segments that are older than their tables' `hot`. Parts are listed as a whole,
/// beginning with the oldest.
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
    if !transaction::is_in_recovery() && !is_refused() {
        for table in table_catalog::lanes_tables() {
            // A table that is locked exclusively at this moment is left for the next call.
            if let Some(opened) = OpenedTable::try_open_at_once(table, pg_sys::AccessShareLock) {
                add_due(opened.get(), &mut due);
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

/// Adds the parts of a table that are due.
fn add_due(table: OpenTable<'_>, due: &mut Vec<Due>) {
    let Some(age) = hot_age(table) else {
        return;
    };
    let (Some(time), Some(meta)) = (time_column::of(table), Meta::load(table)) else {
        return;
    };
    let before = transaction::now() - age;
    for part in Parts::of(table, &meta).live() {
        let entry = &part.entry;
        if entry.is_remote() || entry.is_fading() {
            continue;
        }
        let Some(newest) = part
            .newest_time(table, time)
            .filter(|&newest| newest < before)
        else {
            continue;
        };
        let key_of = |first_row| Key::of(meta.storage_id, entry.origin as u32, first_row);
        let segments = part.index(table).segments.iter().map(|segment| {
            let key = key_of(segment.first_row).to_string();
            (segment.first_row, segment.rows, segment.bytes, key)
        });
        due.push(Due {
            table: table.oid(),
            part: entry.origin,
            newest,
            segments: segments.collect(),
        });
    }
}

/// The range of rows that a live part covers.
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
    let opened = OpenedTable::try_open(target, pg_sys::AccessShareLock);
    let row = opened.and_then(|opened| {
        let table = opened.get();
        let meta = is_offloadable(table).then(|| Meta::load(table)).flatten()?;
        let parts = Parts::of(table, &meta);
        let entry = &live_part(&parts, part as u64)?.entry;
        let (first_row, end_row) = (entry.first_row as i64, entry.end_row as i64);
        Some((meta.storage_id as i64, first_row, end_row))
    });
    TableIterator::new(row)
}

/// The bytes of a segment that `lanes.offload_list()` named.
#[pg_extern(sql = false)]
fn segment_image(target: pg_sys::Oid, part: i64, first_row: i64) -> Vec<u8> {
    let opened = OpenedTable::try_open(target, pg_sys::AccessShareLock);
    let image = opened.and_then(|opened| {
        let table = opened.get();
        hot_age(table)?;
        local_image(table, part as u64, first_row as u64)
    });
    image.unwrap_or_else(|| {
        error::raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("part {part} of the table has no local segment at row {first_row} any more"),
            "The part was merged, dropped or offloaded. Call lanes.offload_list() again.",
        )
    })
}

fn local_image(table: OpenTable<'_>, origin: u64, first_row: u64) -> Option<Vec<u8>> {
    let parts = Parts::of(table, &Meta::load(table)?);
    let part = live_part(&parts, origin).filter(|part| !part.entry.is_remote())?;
    let index = part.index(table);
    let place = index
        .segments
        .binary_search_by_key(&first_row, |segment| segment.first_row)
        .ok()?;
    let mut image = Vec::with_capacity(index.segments[place].bytes as usize);
    // The statement's snapshot keeps VACUUM from settling a part that replaced this one since.
    if let Err(failure) = replace_part::read_checked(table, part, place, &mut image) {
        error::corrupt(&format!("the segment at row {first_row}: {failure}"));
    }
    Some(image)
}

/// Notes that all segments of a part are durable in object storage.
#[pg_extern(sql = false)]
fn offload_commit(target: pg_sys::Oid, part: i64) -> bool {
    if transaction::is_in_recovery() {
        error::raise(
            PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
            "a standby cannot offload",
            "Run lanes.offload_commit() on the primary; its standbys follow.",
        );
    }
    let Some(opened) = OpenedTable::try_open(target, pg_sys::ShareUpdateExclusiveLock) else {
        return false;
    };
    // The lock is kept until the transaction ends.
    let opened = opened.keep_lock();
    let table = opened.get();
    pending_rows::flush_table(table.oid());
    let content = Reader::open(table).content.take();
    content.is_some_and(|content| commit(table, &content, part as u64))
}

fn commit(table: OpenTable<'_>, content: &Content, origin: u64) -> bool {
    match live_part(&content.parts, origin) {
        // An earlier call succeeded, and its answer was lost.
        Some(part) if part.entry.is_remote() => true,
        Some(part) if hot_age(table).is_some() => {
            scope::claim(has_remote_parts);
            replace_part::make_remote(table, content, part);
            // This transaction gets an id after the id of the part. Once it and all older
            // transactions have ended, the local part is settled, even if nobody else writes.
            transaction::current_xid();
            true
        }
        // The part was dropped since. Its objects are not orphans while somebody may read it.
        _ => remote_parts(table, &content.meta)
            .iter()
            .any(|entry| entry.origin == origin),
    }
}

/// The live part with this origin.
fn live_part(parts: &Parts, origin: u64) -> Option<&LivePart> {
    parts.live().iter().find(|part| part.entry.origin == origin)
}

/// The keys that parts name which somebody may still read.
#[pg_extern(sql = false)]
fn remote_keys() -> SetOfIterator<'static, String> {
    let mut keys = Vec::new();
    for table in table_catalog::lanes_tables() {
        // A table that is locked exclusively is waited for, because no key may be left out.
        let Some(opened) = OpenedTable::try_open(table, pg_sys::AccessShareLock) else {
            continue;
        };
        let table = opened.get();
        let Some(meta) = is_offloadable(table).then(|| Meta::load(table)).flatten() else {
            continue;
        };
        for entry in remote_parts(table, &meta) {
            for segment in part_image::read_index(table, &entry).segments {
                let key = Key::of(meta.storage_id, entry.origin as u32, segment.first_row);
                keys.push(key.to_string());
            }
        }
    }
    SetOfIterator::new(keys)
}

/// Whether this database is a copy of another one, with remote rows of that: it cannot offload.
fn is_refused() -> bool {
    scope::is_of_copy() && has_remote_parts()
}

/// Whether any table of this database has remote parts.
fn has_remote_parts() -> bool {
    let tables = table_catalog::lanes_tables().into_iter();
    let mut opened =
        tables.filter_map(|table| OpenedTable::try_open(table, pg_sys::AccessShareLock));
    opened.any(|opened| {
        let table = opened.get();
        let meta = is_offloadable(table).then(|| Meta::load(table)).flatten();
        meta.is_some_and(|meta| !remote_parts(table, &meta).is_empty())
    })
}

/// The remote parts that somebody may still read. A part that a later one covers is read until it
/// is dead.
fn remote_parts(table: OpenTable<'_>, meta: &Meta) -> Vec<PartEntry> {
    let mut remote = Vec::new();
    part::walk(table, meta, |_, entries| {
        let counts = |e: &&PartEntry| e.is_remote() && e.flags & part::FLAG_DEAD == 0;
        remote.extend(entries.iter().filter(counts).copied());
    });
    remote
}

/// Whether a table is a lanes table whose segments may be put into object storage.
pub fn is_offloadable(table: OpenTable<'_>) -> bool {
    table.is_lanes() && !table.uses_local_buffers()
}

/// The age at which the table's owner wants segments to be offloaded, in microseconds.
fn hot_age(table: OpenTable<'_>) -> Option<i64> {
    let is_offloadable = is_offloadable(table);
    is_offloadable
        .then(|| table_options::of(table.oid()).hot)
        .flatten()
}
