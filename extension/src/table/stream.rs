//! Sealed rows that are decoded for one scan alone, a vector at a time, when the scan comes to it.
//!
//! Their images come from the arena if it keeps them, otherwise from pages or from object storage.
//! Images that were read are given to the arena to keep, if it has room. The decoded rows belong to
//! the scan.

use std::rc::Rc;

use lanes_columnar::arena::{Images, NewImage, RunEntry};
use lanes_columnar::limits::{VECTOR_ROWS, segment_first_row, segment_of, segment_rows_max};
use lanes_columnar::streamed::{self, ImageBytes, SealedRun, StreamMemory, Streamed};

use super::decode;
use super::runs::Runs;
use super::shape::TableShape;
use crate::pg::ports::BLCKSZ;
use crate::pg::shmem::ArenaLocks;
use crate::pg::table::OpenTable;
use crate::storage::directory::{self, FLAG_DEAD, FLAG_SEALED};

/// Rows of one segment that are being streamed. They are dropped before the images that they are
/// decoded from.
pub struct Stream {
    pub rows: Streamed,
    images: Option<Rc<Images<ArenaLocks>>>,
    is_noted: bool,
}

impl Stream {
    /// Notes in the arena that its images were read, once most of their rows were.
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

/// Sealed rows of one segment, found but not read yet.
pub struct SealedRows {
    segment: u32,
    runs: Vec<RunEntry>,
    /// The segment in which the runs begin.
    home: u32,
    /// Bytes of their images.
    pub bytes: u64,
    /// The images that the arena keeps.
    images: Option<Rc<Images<ArenaLocks>>>,
}

/// Why rows are not streamed.
pub enum NotStreamed {
    /// The rows are not stored in a form that can be streamed. Decoding all of them at once works.
    Otherwise,
    /// They cannot be read.
    Unreadable(String),
}

impl SealedRows {
    /// The runs that overlap the rows `[from, to)`, all of one segment, if all of those runs are sealed or dead.
    ///
    /// The first segments of a table are small, so one run may cover several of them. Its image is
    /// kept with the first of these, and reads are counted there. Once that segment is decoded, the
    /// others are to be decoded too.
    pub fn find(runs: &Runs, from: u64, to: u64) -> Option<SealedRows> {
        let segment = segment_of(from);
        let start = segment_first_row(segment);
        let end = start + u64::from(segment_rows_max(segment));
        let mut found = Vec::new();
        let overlapping = (runs.first_ending_after(from)..runs.len()).map(|index| runs.get(index));
        for run in overlapping.take_while(|run| run.first_row < to) {
            if run.flags & (FLAG_SEALED | FLAG_DEAD) == 0 {
                return None;
            }
            // Nobody sees the rows of a dead run, so they are not read.
            if run.flags & FLAG_DEAD == 0 {
                found.push(run);
            }
        }
        let is_within = |run: &RunEntry| run.first_row >= start && run.end_row() <= end;
        let home = match &found[..] {
            runs if runs.iter().all(is_within) => segment,
            [run] => segment_of(run.first_row),
            _ => return None,
        };
        let cached = runs.cached();
        let images = cached
            .and_then(|cached| cached.pin_images(home))
            .map(Rc::new);
        if home != segment
            && images.is_none()
            && cached.is_some_and(|cached| cached.pin_segment(home).is_some())
        {
            return None;
        }
        Some(SealedRows {
            segment,
            bytes: found.iter().map(|run| u64::from(run.bytes)).sum(),
            runs: found,
            home,
            images,
        })
    }

    /// How often most rows were read, and how often the rows were opened; `None`: the arena does
    /// not keep their images.
    pub fn reads(&self) -> Option<(u32, u32)> {
        let images = self.images.as_ref();
        images.map(|images| (images.looks(), images.opens()))
    }

    /// The image of a run, if the arena keeps it. The image counts as opened.
    pub fn kept_image(&self, run: &RunEntry) -> Option<ImageBytes> {
        let images = self.images.as_ref()?;
        let kept = ImageBytes::kept(images, run.first_row, run.bytes as usize)?;
        if self.home == self.segment {
            images.note_open();
        }
        Some(kept)
    }

    /// Opens the rows. The segment's first row has place 0. Images in object storage are waited
    /// for. If `keep`, the arena keeps the images.
    ///
    /// # Errors
    /// Why they are not streamed.
    pub fn open(
        self,
        table: OpenTable<'_>,
        shape: &TableShape,
        runs: &Runs,
        memory: &mut StreamMemory,
        keep: bool,
    ) -> Result<Stream, NotStreamed> {
        let places = segment_rows_max(self.segment) as usize;
        let sealed = self.read_images(table, memory)?;
        let (room, missing) = (std::mem::take(memory), &shape.missing);
        let rows = match Streamed::open(room, &shape.kinds, missing, places, sealed) {
            Ok(rows) => rows,
            Err(streamed::NotStreamed::Unsealed(room)) => {
                *memory = *room;
                return Err(NotStreamed::Otherwise);
            }
            Err(streamed::NotStreamed::Unreadable(index, failure)) => {
                return Err(unreadable(table, &self.runs[index], &failure));
            }
        };
        if keep && self.images.is_none() {
            self.give_to_arena(shape, runs, &rows);
        }
        if let Some(images) = self.images.as_ref().filter(|_| self.home == self.segment) {
            images.note_open();
        }
        Ok(Stream {
            rows,
            images: self.images,
            is_noted: self.home != self.segment,
        })
    }

    /// The runs with their images, from the arena if it keeps them.
    fn read_images(
        &self,
        table: OpenTable<'_>,
        memory: &mut StreamMemory,
    ) -> Result<Vec<SealedRun>, NotStreamed> {
        let start = segment_first_row(self.segment);
        let segment_end = start + u64::from(segment_rows_max(self.segment));
        let mut sealed = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            let images = self.images.as_ref();
            let kept = images
                .and_then(|images| ImageBytes::kept(images, run.first_row, run.bytes as usize));
            let image = match kept {
                Some(kept) => {
                    table.count_blocks_found((run.bytes as usize).div_ceil(BLCKSZ) as u64);
                    kept
                }
                None => {
                    let mut image = memory.image();
                    let read = decode::read_image(table, run, &mut image);
                    read.map_err(|failure| unreadable(table, run, &failure))?;
                    ImageBytes::Own(image)
                }
            };
            let end = run.end_row().min(segment_end);
            let first = run.first_row.max(start);
            sealed.push(SealedRun {
                image,
                image_rows: run.rows as usize,
                rows: (first - run.first_row) as usize..(end - run.first_row) as usize,
                place: (first - start) as usize,
            });
        }
        Ok(sealed)
    }

    /// Gives the images that were read to the arena to keep. This comes only after they are
    /// verified, because the arena is trusted.
    fn give_to_arena(&self, shape: &TableShape, runs: &Runs, rows: &Streamed) {
        let Some(cached) = runs.cached() else {
            return;
        };
        let verified = rows.own_images();
        let verified = verified.map(|(index, bytes)| NewImage {
            first_row: self.runs[index].first_row,
            bytes,
            columns: shape.kinds.len(),
            vectors: (self.runs[index].rows as usize).div_ceil(VECTOR_ROWS),
        });
        cached.put_images(self.home, &verified.collect::<Vec<_>>());
    }
}

/// Why a run whose image cannot be read is not streamed.
fn unreadable(
    table: OpenTable<'_>,
    run: &RunEntry,
    failure: &dyn std::fmt::Display,
) -> NotStreamed {
    match directory::is_dead_by_now(table, run) {
        // VACUUM has marked the run as dead and reused its blocks since its entry was read.
        true => NotStreamed::Otherwise,
        false => NotStreamed::Unreadable(decode::failure_of(run, failure)),
    }
}
