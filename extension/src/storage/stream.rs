//! Sealed rows read for one scan alone: a vector at a time, and only as the scan comes to it.

use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};
use lanes_columnar::streamed::{SealedRun, StreamMemory, Streamed};
use pgrx::pg_sys;

use super::directory::{FLAG_DEAD, FLAG_SEALED};
use super::load::{self, Runs, Shape};

/// Whether all runs that overlap the rows `[from, to)` are sealed or dead.
pub fn is_sealed(runs: &Runs, from: u64, to: u64) -> bool {
    (runs.first_ending_after(from)..runs.len())
        .map(|index| runs.get(index))
        .take_while(|run| run.first_row < to)
        .all(|run| run.flags & (FLAG_SEALED | FLAG_DEAD) != 0)
}

/// Opens the sealed runs that overlap the rows `[from, to)`, all of one segment, whose first row has place 0. Those in object
/// storage are waited for. `None`, with `memory` as it was: there are other runs among them, or reading failed; what decodes all of
/// them at once knows how to go on, or tells what is wrong.
///
/// # Safety
/// `relation` is the open lanes table that the runs belong to.
pub unsafe fn open(
    relation: pg_sys::Relation,
    shape: &Shape,
    runs: &Runs,
    from: u64,
    to: u64,
    memory: &mut StreamMemory,
) -> Option<Streamed> {
    if !is_sealed(runs, from, to) {
        return None;
    }
    let segment = segment_of(from);
    let (start, places) = (segment_first_row(segment), segment_rows_max(segment));
    let end = start + u64::from(places);
    let mut sealed = Vec::new();
    for index in runs.first_ending_after(from)..runs.len() {
        let run = runs.get(index);
        if run.first_row >= to {
            break;
        }
        // Nobody sees the rows of a dead run, so no place of theirs is read.
        if run.flags & FLAG_DEAD != 0 {
            continue;
        }
        let mut image = memory.image();
        // SAFETY: the caller's promise.
        unsafe { load::read_image(relation, &run, &mut image).ok()? };
        let first = run.first_row.max(start);
        let rows = first - run.first_row..run.end_row().min(end) - run.first_row;
        sealed.push(SealedRun {
            image,
            rows: rows.start as usize..rows.end as usize,
            place: (first - start) as usize,
        });
    }
    let room = std::mem::take(memory);
    match Streamed::open(room, &shape.kinds, places as usize, sealed).ok()? {
        Ok(streamed) => Some(streamed),
        Err(room) => {
            *memory = room;
            None
        }
    }
}
