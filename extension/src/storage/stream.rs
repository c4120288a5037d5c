//! Sealed rows read without being decoded for others: a vector at a time, and only as the scan comes to it.
//!
//! Their images come from the arena, if it keeps them, else from pages or from object storage; then the arena is given them to
//! keep, if it has room. What is decoded is the scan's own.

use lanes_columnar::arena::{Images, RunEntry};
use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};
use lanes_columnar::streamed::{ImageBytes, SealedRun, StreamMemory, Streamed};
use pgrx::pg_sys;

use super::directory::{FLAG_DEAD, FLAG_SEALED};
use super::load::{self, Runs, Shape};
use crate::pg::shmem::ArenaLocks;

/// Rows of one segment that are being streamed. Drops them before the images that they are decoded from.
pub struct Stream {
    pub rows: Streamed,
    images: Option<Images<ArenaLocks>>,
    is_noted: bool,
}

impl Stream {
    /// Tells the arena that its images were looked at, once most of their rows were.
    pub fn note_look(&mut self) {
        if let Some(images) = &self.images
            && !self.is_noted
            && self.rows.is_mostly_filled()
        {
            images.note_look();
            self.is_noted = true;
        }
    }
}

/// Bytes of the images of the runs that overlap the rows `[from, to)`, all of one segment, if all of those runs are sealed or dead,
/// and none goes beyond the segment: it would have to be read once more for each of its segments.
pub fn bytes_to_stream(runs: &Runs, from: u64, to: u64) -> Option<u64> {
    let segment = segment_of(from);
    let start = segment_first_row(segment);
    let end = start + u64::from(segment_rows_max(segment));
    let mut bytes = 0;
    for run in overlapping(runs, from, to) {
        let is_within = run.first_row >= start && run.end_row() <= end;
        if !is_within || run.flags & (FLAG_SEALED | FLAG_DEAD) == 0 {
            return None;
        }
        bytes += u64::from(run.bytes);
    }
    Some(bytes)
}

fn overlapping(runs: &Runs, from: u64, to: u64) -> impl Iterator<Item = RunEntry> {
    (runs.first_ending_after(from)..runs.len())
        .map(|index| runs.get(index))
        .take_while(move |run| run.first_row < to)
}

/// Opens the sealed runs that overlap the rows `[from, to)`, all of one segment, whose first row has place 0. Those in object
/// storage are waited for. `None`: there are other runs among them, or reading failed; what decodes all of them at once knows how to
/// go on, or tells what is wrong.
///
/// # Safety
/// `relation` is the open lanes table that the runs belong to.
pub unsafe fn open(
    relation: pg_sys::Relation,
    shape: &Shape,
    runs: &Runs,
    (from, to): (u64, u64),
    memory: &mut StreamMemory,
    keep: bool,
) -> Option<Stream> {
    bytes_to_stream(runs, from, to)?;
    let segment = segment_of(from);
    let (start, places) = (segment_first_row(segment), segment_rows_max(segment));
    let images = runs.cached().and_then(|cached| cached.pin_images(segment));
    let mut sealed = Vec::new();
    // Nobody sees the rows of a dead run, so no place of theirs is read.
    for run in overlapping(runs, from, to).filter(|run| run.flags & FLAG_DEAD == 0) {
        let kept = images
            .as_ref()
            .and_then(|images| images.of_run(run.first_row));
        let image = match kept.filter(|kept| kept.len() == run.bytes as usize) {
            // SAFETY: the pin is kept as long as what reads the bytes.
            Some(kept) => unsafe { ImageBytes::kept(kept) },
            None => {
                let mut image = memory.image();
                // SAFETY: the caller's promise.
                unsafe { load::read_image(relation, &run, &mut image).ok()? };
                ImageBytes::Own(image)
            }
        };
        sealed.push(SealedRun {
            image,
            image_rows: run.rows as usize,
            rows: 0..run.rows as usize,
            place: (run.first_row - start) as usize,
        });
    }
    let (room, missing) = (std::mem::take(memory), &shape.missing);
    let rows = match Streamed::open(room, &shape.kinds, missing, places as usize, sealed).ok()? {
        Ok(rows) => rows,
        Err(room) => {
            *memory = room;
            return None;
        }
    };
    // Not before they are verified: what the arena keeps is trusted.
    if let Some(cached) = runs.cached().filter(|_| keep && images.is_none()) {
        let verified = rows.own_images();
        let verified = verified.map(|(place, image)| (start + place as u64, image));
        cached.put_images(segment, &verified.collect::<Vec<_>>());
    }
    Some(Stream {
        rows,
        images,
        is_noted: false,
    })
}
