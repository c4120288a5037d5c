//! Decoding rows into the arena.

use lanes_columnar::limits::{segment_first_row, segment_rows_max};

use super::decode::{Remote, decode_rows};
use super::runs::Runs;
use super::shape::TableShape;
use crate::gucs;
use crate::pg::table::OpenTable;
use crate::storage::directory::FLAG_SEALED;

/// The end of the rows that are decoded together with those up to `to`; it is at most `end`. A
/// sealed run is decoded as a whole: its next reader wants more than a part of it, and its image is
/// removed from the arena.
fn whole_to(runs: &Runs, to: u64, end: u64) -> u64 {
    let last = to.checked_sub(1).and_then(|row| runs.find(row));
    let sealed = last.map(|index| runs.get(index));
    let sealed = sealed.filter(|run| run.flags & FLAG_SEALED != 0);
    sealed.map_or(to, |run| to.max(run.end_row())).min(end)
}

/// Decodes the rows of a segment into the arena, up to row `to` of the table and to the end of the
/// sealed run there. False: the arena has no room.
pub fn make_resident(
    table: OpenTable<'_>,
    shape: &TableShape,
    runs: &Runs,
    segment: u32,
    to: u64,
) -> bool {
    let Some(cached) = runs.cached() else {
        return false;
    };
    let start = segment_first_row(segment);
    let end = whole_to(runs, to, start + segment_rows_max(segment) as u64);
    if (end - start) * shape.bytes_a_row() > gucs::arena_bytes() as u64 {
        // This is known without decoding all of them, which each request for a row would do in
        // vain.
        return false;
    }
    // The first attempt to extend a segment of another shape (columns were added since) removes
    // that segment.
    let mut retired_before = false;
    loop {
        let resident = cached
            .pin_segment(segment)
            .filter(|pinned| pinned.columns() == shape.kinds.len())
            .map_or(0, |pinned| pinned.rows_resident());
        let from = start + resident as u64;
        if from >= end {
            return true;
        }
        if bytes_stored(runs, from, end) > cached_bytes_max() {
            return false;
        }
        cached.give_up_images(segment);
        let decoded = decode_rows(table, shape, runs, from, end, Remote::Recall);
        let skip = (from - decoded.first_row) as usize;
        let rows = (end - from) as usize;
        if cached.extend_segment(
            segment,
            &shape.kinds,
            resident,
            &decoded.columns,
            skip,
            rows,
        ) {
            return true;
        }
        // Another backend may have extended the segment in the meantime. There is no room only if
        // nothing changed.
        let now = cached
            .pin_segment(segment)
            .map_or(0, |pinned| pinned.rows_resident());
        if now <= resident && std::mem::replace(&mut retired_before, true) {
            return false;
        }
    }
}

/// The bytes of the images of the runs that overlap some rows.
fn bytes_stored(runs: &Runs, from: u64, to: u64) -> u64 {
    (runs.first_ending_after(from)..runs.len())
        .map(|index| runs.get(index))
        .take_while(|run| run.first_row < to)
        .map(|run| run.bytes as u64)
        .sum()
}

/// A larger segment is not decoded into the arena, because it would evict everything else.
fn cached_bytes_max() -> u64 {
    gucs::arena_bytes() as u64 / 2
}
