//! Bringing rows into the arena.

use lanes_columnar::limits::{segment_first_row, segment_rows_max};

use super::decode::{Remote, decode_rows};
use super::runs::Runs;
use super::shape::TableShape;
use crate::gucs;
use crate::pg::table::OpenTable;
use crate::storage::directory::FLAG_SEALED;

/// The end of what is decoded with the rows up to `to`, at most `end`: a sealed run is decoded as a whole, as whoever
/// reads it next wants more than a part, and finds no image any more.
fn whole_to(runs: &Runs, to: u64, end: u64) -> u64 {
    let last = to.checked_sub(1).and_then(|row| runs.find(row));
    let sealed = last.map(|index| runs.get(index));
    let sealed = sealed.filter(|run| run.flags & FLAG_SEALED != 0);
    sealed.map_or(to, |run| to.max(run.end_row())).min(end)
}

/// Makes the rows of a segment up to `to` (a row of the table) resident in the arena, and what is sealed with them. False:
/// there is no room.
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
        // Not to be found out by decoding all of them, for each row that is asked for.
        return false;
    }
    // A segment of another shape (columns were added since) is retired by the first attempt to extend it.
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
        // Another backend may have brought it further meanwhile; only if nothing moved is there no room.
        let now = cached
            .pin_segment(segment)
            .map_or(0, |pinned| pinned.rows_resident());
        if now <= resident && std::mem::replace(&mut retired_before, true) {
            return false;
        }
    }
}

/// Bytes of the images of the runs that overlap some rows.
fn bytes_stored(runs: &Runs, from: u64, to: u64) -> u64 {
    (runs.first_ending_after(from)..runs.len())
        .map(|index| runs.get(index))
        .take_while(|run| run.first_row < to)
        .map(|run| run.bytes as u64)
        .sum()
}

/// A segment that is larger than this is not worth decoding for the arena: it would push out everything else.
fn cached_bytes_max() -> u64 {
    gucs::arena_bytes() as u64 / 2
}
