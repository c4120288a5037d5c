//! The series that have samples between two times.
//!
//! ```text
//! wanted series ─┬─ zones of segments in object storage ─► a segment that has such times has all series of its zone
//!                └─ open and sealed rows ────────────────► read: series and time, as far as zones do not decide
//! ```
//! Series that were found are not searched again, so sealed rows whose series are all known are passed by their
//! zones. Of object storage nothing is fetched: the answer may therefore have series too many there, and never lacks
//! one.
//!
//! Where row-level security hides samples, a statement reads them all, because zones would tell of hidden rows.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use lanes_columnar::lane::Lane;
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::zone_map::Zone;
use lanes_labels::IdSet;
use pgrx::pg_sys;
use pgrx::pg_sys::BuiltinOid::TIMESTAMPTZOID;

use crate::pg::snapshot::Snapshot;
use crate::pg::statement::Statement;
use crate::pg::table::{OpenTable, OpenedTable};
use crate::pg::{catalog, server, table_catalog};
use crate::storage::directory::FLAG_REMOTE;
use crate::table::scan::{ByZone, Scan};

/// The attributes of `lanes.samples`.
const TS: usize = 0;
const SERIES: usize = 1;

/// All series of the samples that the caller may see.
static VISIBLE: Statement = Statement::reading(
    c"
    SELECT series FROM lanes.samples
     WHERE ts OPERATOR(pg_catalog.>=) $1 AND ts OPERATOR(pg_catalog.<=) $2 GROUP BY series",
    &[TIMESTAMPTZOID, TIMESTAMPTZOID],
);

/// Times as PostgreSQL stores them, both ends included.
pub type Times = RangeInclusive<i64>;

/// Times that exclude none.
pub const ALL_TIMES: Times = i64::MIN..=i64::MAX;

/// The wanted series that have samples between two times. The calling query sees the samples.
pub fn with_samples(wanted: IdSet, times: &Times) -> IdSet {
    let table = catalog::lanes_table(c"samples");
    let opened = table.and_then(|table| OpenedTable::try_open(table, pg_sys::AccessShareLock));
    let Some(opened) = opened.filter(|_| !times.is_empty() && !wanted.is_empty()) else {
        return IdSet::new();
    };
    let table = opened.get();
    table_catalog::check_privilege(table, pg_sys::ACL_SELECT, &[]);
    if server::hides_rows(table.oid()) {
        return wanted & visible(times);
    }
    Snapshot::with_active(|snapshot| seen_by(snapshot, table, wanted, times))
}

/// The wanted series that have samples in a table which a snapshot sees.
fn seen_by(
    snapshot: Option<Snapshot<'_>>,
    table: OpenTable<'_>,
    wanted: IdSet,
    times: &Times,
) -> IdSet {
    if let Some(snapshot) = snapshot {
        table.predicate_lock(snapshot);
    }
    let mut scan = Scan::begin(table, snapshot);
    scan.wanted = Some(vec![TS, SERIES]);
    let mut search = Search {
        times,
        left: RefCell::new(wanted.clone()),
    };
    if !scan.leaves_remote() {
        search.take_remote(&scan);
    }
    search.read(&mut scan);
    wanted - search.left.into_inner()
}

fn visible(times: &Times) -> IdSet {
    let mut found = IdSet::new();
    let arguments = [*times.start(), *times.end()].map(pg_sys::Datum::from);
    VISIBLE.each_row(&arguments, |row| {
        found.extend(row.get::<i32>(1).map(|id| id as u32));
    });
    found
}

/// A search for series.
struct Search<'t> {
    times: &'t Times,
    /// The wanted series that have not been found yet.
    left: RefCell<IdSet>,
}

impl Search<'_> {
    /// Takes the series of all segments in object storage that have such times.
    fn take_remote(&mut self, scan: &Scan<'_>) {
        let Some(content) = &scan.reader.content else {
            return;
        };
        for index in 0..content.runs.len() {
            let run = content.runs.get(index);
            let zone = |attribute| {
                let table = scan.reader.table;
                content.parts.zone(table, run.first_row, attribute)
            };
            if run.flags & FLAG_REMOTE != 0
                && !self.is_ruled_out(&zone)
                && let Some((first, last)) = zone(SERIES).and_then(bounds)
            {
                self.left.get_mut().remove_range(ids(first, last));
            }
        }
    }

    /// Whether zones prove that none of their rows is of a series that is left, between the times.
    fn is_ruled_out(&self, zone: &dyn Fn(usize) -> Option<Zone>) -> bool {
        let ts = zone(TS).and_then(bounds);
        let series = zone(SERIES).and_then(bounds);
        let is_elsewhen = |(first, last)| last < *self.times.start() || first > *self.times.end();
        let is_known = |(first, last)| self.left.borrow().range_cardinality(ids(first, last)) == 0;
        ts.is_some_and(is_elsewhen) || series.is_some_and(is_known)
    }

    /// Reads the rows of a scan.
    fn read(&mut self, scan: &mut Scan<'_>) {
        while !self.left.get_mut().is_empty() {
            let by_zone = ByZone {
                rules_out: &|zone| self.is_ruled_out(zone),
                answered_by: None,
            };
            let Some((ranges, window)) = scan.next_window(true, by_zone) else {
                return;
            };
            let places = ranges
                .iter()
                .map(|range| (window.place(range.from), window.place(range.to)));
            for (mut from, end) in places.collect::<Vec<_>>() {
                while from < end {
                    // Vectors are decoded as a whole.
                    let to = end.min((from / VECTOR_ROWS + 1) * VECTOR_ROWS);
                    if !self.is_vector_ruled_out(scan, from / VECTOR_ROWS) {
                        scan.fill(from..to, Some(&[TS, SERIES]));
                        self.read_rows(scan, from, to);
                    }
                    from = to;
                }
            }
        }
    }

    /// Whether zones prove that no row of a vector of the open window is of a series that is left, between the times.
    fn is_vector_ruled_out(&self, scan: &Scan<'_>, vector: usize) -> bool {
        let window = scan.window();
        self.is_ruled_out(&|attribute| window.and_then(|window| window.zone(attribute, vector)))
    }

    /// Takes the series of the rows at some places of the open window.
    fn read_rows(&mut self, scan: &Scan<'_>, from: usize, to: usize) {
        let Some(window) = scan.window() else {
            return;
        };
        let lanes: Vec<Lane> = window.lanes().collect();
        let frame = Frame {
            lanes: &lanes,
            dictionaries: window.dictionaries(),
            place: from,
            rows: to - from,
            scalars: &[],
            zones: &[],
            joined: &[],
            substitutes: &[],
        };
        let (Some(times), Some(series)) = (frame.values::<i64>(TS), frame.values::<i32>(SERIES))
        else {
            return;
        };
        let left = self.left.get_mut();
        let mut known = None;
        for (time, series) in times.iter().zip(series) {
            if known != Some(*series) && self.times.contains(time) {
                left.remove(*series as u32);
                known = Some(*series);
            }
        }
    }
}

/// The least and the greatest value of a zone of integers.
fn bounds(zone: Zone) -> Option<(i64, i64)> {
    Some((zone.minimum.signed()?, zone.maximum.signed()?))
}

/// The ids between the bounds of a zone.
fn ids(first: i64, last: i64) -> RangeInclusive<u32> {
    let id = |bound: i64| u32::try_from(bound).unwrap_or(if bound < 0 { 0 } else { u32::MAX });
    id(first)..=id(last)
}
