//! The view `lanes.segments`, and the function under it: what the rows of a table take, as what, and where they lie.
//!
//! | rows of | what they are |
//! |---|---|
//! | a sealed segment | one row, from the index of its part: nothing of the segment itself is read, wherever it is |
//! | runs that are not sealed | one row for those next to each other in one segment of the arena; they are decoded to be measured |
//!
//! Whoever may read a table sees its rows here, and nobody else. Times are contents: where row
//! security hides rows from the caller, they are NULL.

use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};
use lanes_columnar::zone_map::{self, Bound, Zone};
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::column_name;
use crate::maintenance::seal_plan;
use crate::pg::table::{OpenTable, OpenedTable};
use crate::pg::{ports, table_catalog, type_io};
use crate::remote::cold_cache;
use crate::remote::key::Key;
use crate::storage::directory::FLAG_SEALED;
use crate::storage::tombstone::kind;
use crate::table::decode::{self, Remote};
use crate::table::pending_rows;
use crate::table::reader::{Content, Reader};
use crate::table::visibility::{XidStatus, xid_status};
use crate::table_options::time_column;

/// A time of a row, in microseconds since 2000-01-01, of the time zone UTC or of none.
type Time = i64;

/// One row.
#[derive(Default)]
struct Stored {
    state: &'static str,
    part: Option<u64>,
    first_row: u64,
    rows: u64,
    deleted: u64,
    resident: u64,
    runs: u64,
    raw: Option<u64>,
    bytes: u64,
    /// Of a sealed segment: each column with its encoding and the bytes of its lane, as far as they were noted.
    columns: Option<Vec<(String, Option<&'static str>, u32)>>,
    times: Option<(Time, Time)>,
    block: Option<u32>,
    key: Option<String>,
    is_cached: Option<bool>,
}

/// What a lanes table consists of. Nothing, if it is dropped meanwhile.
#[pg_extern(sql = false)]
#[expect(clippy::type_complexity, reason = "the columns of the SQL function")]
fn stored_segments(
    target: pg_sys::Oid,
) -> TableIterator<
    'static,
    (
        name!(state, &'static str),
        name!(part, Option<i64>),
        name!(first_row, i64),
        name!(rows, i64),
        name!(rows_deleted, i64),
        name!(rows_resident, i64),
        name!(runs, i64),
        name!(bytes_raw, Option<i64>),
        name!(bytes, i64),
        name!(columns, Option<Vec<String>>),
        name!(encodings, Option<Vec<Option<&'static str>>>),
        name!(column_bytes, Option<Vec<i64>>),
        name!(min_time, Option<i64>),
        name!(max_time, Option<i64>),
        name!(block, Option<i64>),
        name!(object_key, Option<String>),
        name!(in_cold_cache, Option<bool>),
    ),
> {
    let opened = OpenedTable::try_open(target, pg_sys::AccessShareLock);
    let rows = opened.map_or_else(Vec::new, |opened| {
        super::check_readable(opened.get(), "lanes.stored_segments()");
        rows_of(opened.get())
    });
    TableIterator::new(rows.into_iter().map(|row| {
        let columns = row.columns.as_ref();
        (
            row.state,
            row.part.map(|part| part as i64),
            row.first_row as i64,
            row.rows as i64,
            row.deleted as i64,
            row.resident as i64,
            row.runs as i64,
            row.raw.map(|raw| raw as i64),
            row.bytes as i64,
            columns.map(|all| all.iter().map(|(name, ..)| name.clone()).collect()),
            columns.map(|all| all.iter().map(|(_, encoding, _)| *encoding).collect()),
            columns.map(|all| all.iter().map(|(.., bytes)| i64::from(*bytes)).collect()),
            row.times.map(|(least, _)| least),
            row.times.map(|(_, greatest)| greatest),
            row.block.map(i64::from),
            row.key,
            row.is_cached,
        )
    }))
}

fn rows_of(table: OpenTable<'_>) -> Vec<Stored> {
    pending_rows::flush_table(table.oid());
    let mut reader = Reader::open(table);
    let Some(content) = reader.content.take() else {
        return Vec::new();
    };
    let hides_rows = table_catalog::applies_row_security(table.oid(), true);
    let clock = Clock::of(table).filter(|_| !hides_rows);
    let mut rows = Vec::new();
    let mut open: Option<Open> = None;
    for index in 0..content.runs.len() {
        let run = content.runs.get(index);
        if run.flags & FLAG_SEALED != 0 {
            rows.extend(
                open.take()
                    .map(|open| open.measure(&reader, &content, clock)),
            );
            rows.extend(sealed(table, &content, run.first_row, clock));
            ports::CHECK_FOR_INTERRUPTS();
            continue;
        }
        if seal_plan::is_dead(&run) {
            continue;
        }
        let (mut from, end) = (run.first_row, run.end_row());
        while from < end {
            let segment = segment_of(from);
            let to = end.min(segment_first_row(segment) + u64::from(segment_rows_max(segment)));
            if open
                .as_ref()
                .is_none_or(|open| segment_of(open.first_row) != segment)
            {
                rows.extend(
                    open.take()
                        .map(|open| open.measure(&reader, &content, clock)),
                );
                ports::CHECK_FOR_INTERRUPTS();
            }
            let open = open.get_or_insert(Open {
                first_row: from,
                ..Open::default()
            });
            open.end_row = to;
            open.rows += to - from;
            open.runs += 1;
            // A run that spans segments counts in each by its share of rows.
            open.bytes += u64::from(run.bytes) * (to - from) / u64::from(run.rows);
            from = to;
        }
    }
    rows.extend(open.map(|open| open.measure(&reader, &content, clock)));
    rows
}

/// A sealed segment.
fn sealed(
    table: OpenTable<'_>,
    content: &Content,
    first_row: u64,
    clock: Option<Clock>,
) -> Option<Stored> {
    let (part, segment) = content.parts.segment(table, first_row)?;
    let key = Key::of(content.meta.storage_id, part.origin as u32, first_row);
    let is_remote = part.is_remote();
    let is_noted = segment
        .columns
        .iter()
        .any(|column| column.encoding.name().is_some());
    let columns = segment
        .columns
        .iter()
        .enumerate()
        .filter_map(|(place, column)| {
            let name = column_name(table, place)?;
            Some((name, column.encoding.name(), column.bytes))
        });
    let time = clock.and_then(|clock| Some((clock, segment.zones.get(clock.column)?)));
    let end_row = first_row + u64::from(segment.rows);
    Some(Stored {
        state: if is_remote { "remote" } else { "sealed" },
        part: Some(part.origin),
        first_row,
        rows: segment.rows.into(),
        deleted: deleted(content, first_row, end_row),
        resident: resident(content, first_row, end_row),
        runs: 1,
        raw: is_noted.then(|| segment.columns.iter().map(|column| column.raw).sum()),
        bytes: segment.bytes.into(),
        columns: is_noted.then(|| columns.collect()),
        times: time.and_then(|(clock, zone)| clock.times(zone)),
        // An image of less than a page lies with its part's index.
        block: (!is_remote).then_some(match segment.block {
            0 => part.block,
            block => block,
        }),
        key: is_remote.then(|| key.to_string()),
        is_cached: is_remote.then(|| cold_cache::has(&key)),
    })
}

/// Runs next to each other, of one segment of the arena.
#[derive(Default)]
struct Open {
    first_row: u64,
    end_row: u64,
    rows: u64,
    runs: u64,
    bytes: u64,
}

impl Open {
    fn measure(self, reader: &Reader<'_>, content: &Content, clock: Option<Clock>) -> Stored {
        let (from, to) = (self.first_row, self.end_row);
        let decoded = {
            decode::decode_rows(
                reader.table,
                &reader.shape,
                &content.runs,
                from,
                to,
                Remote::Leave,
            )
        };
        let rows = (from - decoded.first_row) as usize..(to - decoded.first_row) as usize;
        let raw = decoded
            .columns
            .iter()
            .map(|column| column.value_bytes(rows.clone()))
            .sum();
        let time = clock.and_then(|clock| Some((clock, decoded.columns.get(clock.column)?)));
        let times = time.and_then(|(clock, column)| {
            let zone = zone_map::of_column(column, rows);
            clock.times(&zone)
        });
        Stored {
            state: "open",
            first_row: from,
            rows: self.rows,
            deleted: deleted(content, from, to),
            resident: resident(content, from, to),
            runs: self.runs,
            raw: Some(raw),
            bytes: self.bytes,
            times,
            ..Stored::default()
        }
    }
}

/// Which column says when a row is of, and how.
#[derive(Clone, Copy)]
struct Clock {
    column: usize,
    /// Its type knows of no time zone: its times are of the session's.
    is_local: bool,
}

impl Clock {
    fn of(table: OpenTable<'_>) -> Option<Clock> {
        let column = time_column::of(table)?;
        let attribute = table.descriptor().attribute(column);
        Some(Clock {
            column,
            is_local: attribute.atttypid == pg_sys::TIMESTAMPOID,
        })
    }

    /// The least and the greatest time of a zone, if there is one.
    fn times(self, zone: &Zone) -> Option<(Time, Time)> {
        if zone.non_null == 0 {
            return None;
        }
        let (Bound::Signed(least), Bound::Signed(greatest)) = (zone.minimum, zone.maximum) else {
            return None;
        };
        Some((self.to_utc(least), self.to_utc(greatest)))
    }

    fn to_utc(self, time: i64) -> Time {
        match self.is_local {
            true => type_io::timestamp_to_utc(time),
            false => time,
        }
    }
}

/// Rows of a range that have been deleted, also if some snapshot still sees them.
fn deleted(content: &Content, from: u64, to: u64) -> u64 {
    let tombstones = content.tombstones.borrow();
    let rows = tombstones.range(from, to).filter(|(_, list)| {
        list.iter().any(|tombstone| {
            tombstone.kind != kind::VOID
                && tombstone.deletes()
                && (tombstone.is_frozen() || xid_status(tombstone.xmax) == XidStatus::Committed)
        })
    });
    rows.count() as u64
}

/// Rows of a range, all of one segment, that are in the arena, decoded.
fn resident(content: &Content, from: u64, to: u64) -> u64 {
    let segment = segment_of(from);
    let pinned = content
        .runs
        .cached()
        .and_then(|cached| cached.pin_segment(segment));
    let rows = pinned.map_or(0, |pinned| u64::from(pinned.rows_resident()));
    (segment_first_row(segment) + rows)
        .min(to)
        .saturating_sub(from)
}
