//! What operators may look at in SQL: `lanes.arena_segments(table)`, `lanes.arena()`, `lanes.version()`, and, in
//! [`stored`], the view `lanes.segments`, in [`space`], the view `lanes.space`.

use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::error;
use crate::pg::descriptor::attribute_name;
use crate::pg::table::OpenTable;
use crate::pg::table::OpenedTable;
use crate::pg::{shmem, table_catalog};
use crate::storage::directory::{FLAG_DEAD, FLAG_REMOTE, FLAG_SEALED};
use crate::storage::metapage::Meta;
use crate::table::runs::Runs;
use crate::table::shape::TableShape;

mod check;
mod space;
mod stored;

/// The library's version, and the server's that it was built for.
#[pg_extern(sql = false)]
fn version() -> String {
    format!(
        "lanes {} for PostgreSQL {}",
        env!("CARGO_PKG_VERSION"),
        pg_sys::get_pg_major_version_num()
    )
}

/// The arena's state; no row when the library was not preloaded, so that there is no arena.
#[pg_extern(sql = false)]
#[expect(clippy::type_complexity, reason = "the columns of the SQL function")]
fn arena() -> TableIterator<
    'static,
    (
        name!(bytes_total, i64),
        name!(bytes_used, i64),
        name!(bytes_largest_free, i64),
        name!(relations, i64),
        name!(segments, i64),
        name!(segment_evictions, i64),
        name!(relation_evictions, i64),
        name!(refusals, i64),
    ),
> {
    TableIterator::new(shmem::arena().map(|arena| {
        let stats = arena.stats();
        (
            stats.bytes_total as i64,
            stats.bytes_used as i64,
            stats.bytes_largest_free as i64,
            stats.relations as i64,
            stats.segments as i64,
            stats.segment_evictions as i64,
            stats.relation_evictions as i64,
            stats.refusals as i64,
        )
    }))
}

/// What a lanes table takes of the arena; no row if it is not in there.
#[pg_extern(sql = false)]
fn arena_of(
    target: pg_sys::Oid,
) -> TableIterator<
    'static,
    (
        name!(bytes_max, Option<i64>),
        name!(bytes_used, i64),
        name!(segment_evictions, i64),
    ),
> {
    let opened = open_readable(target, "lanes.arena()");
    let stats = runs_of(opened.get()).and_then(|runs| runs.cached().map(|cached| cached.stats()));
    TableIterator::new(stats.map(|stats| {
        (
            (stats.bytes_max > 0).then_some(stats.bytes_max as i64),
            stats.bytes_used as i64,
            stats.segment_evictions as i64,
        )
    }))
}

/// One row a segment.
struct SegmentRow {
    segment: u32,
    first_row: u64,
    rows: u64,
    rows_dead: u64,
    rows_resident: u64,
    runs: u64,
    bytes_stored: u64,
    /// Some of its runs, or all, are in object storage.
    has_remote: bool,
    /// Some of its runs, or all, are of a sealed part that is not.
    has_sealed: bool,
    has_open: bool,
}

impl SegmentRow {
    fn state(&self) -> &'static str {
        match (self.has_remote, self.has_sealed, self.has_open) {
            (true, false, false) => "remote",
            (true, ..) => "remote in part",
            (false, true, true) => "sealed in part",
            (false, true, false) => "sealed",
            (false, false, _) => "open",
        }
    }
}

/// The segments of a lanes table: rows handed out, those of aborted or removed runs, those in the
/// arena, and the bytes of their images in pages.
#[pg_extern(sql = false)]
#[expect(clippy::type_complexity, reason = "the columns of the SQL function")]
fn segments(
    target: pg_sys::Oid,
) -> TableIterator<
    'static,
    (
        name!(segment, i64),
        name!(state, String),
        name!(first_row, i64),
        name!(rows, i64),
        name!(rows_dead, i64),
        name!(rows_resident, i64),
        name!(runs, i64),
        name!(bytes_stored, i64),
    ),
> {
    let opened = open_readable(target, "lanes.arena_segments()");
    let rows = segment_rows(opened.get());
    TableIterator::new(rows.into_iter().map(|row| {
        (
            row.segment as i64,
            row.state().to_owned(),
            row.first_row as i64,
            row.rows as i64,
            row.rows_dead as i64,
            row.rows_resident as i64,
            row.runs as i64,
            row.bytes_stored as i64,
        )
    }))
}

/// Opens a table for a function; an ERROR unless it is a lanes table that the caller may read.
fn open_readable(table: pg_sys::Oid, function: &str) -> OpenedTable {
    let opened = OpenedTable::open(table, pg_sys::AccessShareLock);
    check_readable(opened.get(), function);
    opened
}

/// Raises an ERROR unless a table is a lanes table that the caller may read.
fn check_readable(table: OpenTable<'_>, function: &str) {
    if !table.is_lanes() {
        error::raise(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a lanes table", table.name()),
            format!("{function} takes a table that was created USING lanes."),
        );
    }
    table_catalog::check_privilege(table, pg_sys::ACL_SELECT, &[]);
}

/// The runs of a table; `None` if nothing was ever written to it.
fn runs_of(table: OpenTable<'_>) -> Option<Runs> {
    let meta = Meta::load(table)?;
    let shape = TableShape::of(table.descriptor());
    Some(Runs::of(table, &meta, shape.fingerprint))
}

fn segment_rows(table: OpenTable<'_>) -> Vec<SegmentRow> {
    let Some(runs) = runs_of(table) else {
        return Vec::new();
    };
    let mut rows: Vec<SegmentRow> = Vec::new();
    for index in 0..runs.len() {
        let run = runs.get(index);
        let (mut from, end) = (run.first_row, run.first_row + run.rows as u64);
        while from < end {
            let segment = segment_of(from);
            let to = end.min(segment_first_row(segment) + segment_rows_max(segment) as u64);
            if rows.last().is_none_or(|last| last.segment != segment) {
                let resident = runs.cached().and_then(|cached| cached.pin_segment(segment));
                rows.push(SegmentRow {
                    segment,
                    first_row: segment_first_row(segment),
                    rows: 0,
                    rows_dead: 0,
                    rows_resident: resident.map_or(0, |pinned| pinned.rows_resident() as u64),
                    runs: 0,
                    bytes_stored: 0,
                    has_remote: false,
                    has_sealed: false,
                    has_open: false,
                });
            }
            if let Some(row) = rows.last_mut() {
                row.rows += to - from;
                row.runs += 1;
                let is_sealed = run.flags & FLAG_SEALED != 0;
                let is_remote = run.flags & FLAG_REMOTE != 0;
                row.has_remote |= is_remote;
                row.has_sealed |= is_sealed && !is_remote;
                row.has_open |= !is_sealed;
                if run.flags & FLAG_DEAD != 0 {
                    row.rows_dead += to - from;
                } else if !is_remote {
                    // A run that spans segments counts in each by its share of rows.
                    row.bytes_stored += run.bytes as u64 * (to - from) / run.rows as u64;
                }
            }
            from = to;
        }
    }
    rows
}

/// The name of a column; `None`: there is no such column any more.
fn column_name(table: OpenTable<'_>, place: usize) -> Option<String> {
    let mut attributes = table.descriptor().attributes();
    let attribute = attributes.nth(place)?;
    let name = || attribute_name(attribute).to_string_lossy().into_owned();
    (!attribute.attisdropped).then(name)
}
