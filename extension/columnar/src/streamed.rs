//! Sealed rows that are decoded a vector at a time, when they are about to be read, into memory
//! that later rows reuse.
//!
//! ```text
//! images of runs ──► Streamed::open ──► lane(column)        one lane over all places, valid as long as the value lives
//!                          │        ├──► zone(column, places)  zones, without decoding
//!                          │        ├──► fill(places, columns) decodes vectors, which may be read afterwards
//!                          │        └──► point(column, place)  one value of a vector that is not filled
//!                          └── into_memory() ──► the next Streamed::open
//! ```
//!
//! A *place* is the index of a row in the lanes. The places of the runs ascend and do not overlap.
//! Between them are gaps: reading a gap stays within bounds but returns arbitrary values.
//!
//! | column | stored as | decoded |
//! |---|---|---|
//! | fixed width, bools | values at their places | a vector at a time, by `fill` |
//! | items of one run that are all codes of a dictionary | codes at their places, and the items of the dictionary, which later rows often share | a vector at a time, by `fill` |
//! | other items | a column: dictionaries of several runs must become one, and items follow the items before them | by `open` |
//! | columns that an image does not contain | a column | by `open` |
//! | kind [`LaneKind::Absent`] | nothing | never |
//!
//! # Invariants
//! Lanes do not move while the value lives: all memory is allocated before the first lane is
//! returned. Codes at filled places and in gaps are below the number of items, whatever the bytes
//! contain: a vector with a greater code is refused and counts as not filled. A vector of a column
//! is decoded once, or twice if few of its rows were wanted at first: then only the blocks with these
//! rows are decoded, and the vector counts as filled in part.

use std::ops::Range;

use crate::bits;
use crate::encoding::{Constant, DecodedVector};
use crate::error::{Error, Result};
use crate::kind::LaneKind;
use crate::lane::{DictionaryView, Lane, LaneData};
use crate::limits::VECTOR_ROWS;
use crate::repeats::ValueRepeats;
use crate::zone_map::Zone;

use kept::{Dictionary, Kept, fill, fill_part, keep};
use room::Room;
use sealed_run::lane;
pub use sealed_run::{ImageBytes, SealedRun};

/// Of a vector of which no more rows are wanted, only the blocks that have them are decoded.
const PART_ROWS_MAX: usize = VECTOR_ROWS / 2;

/// Memory of rows that were read, for the next ones.
#[derive(Default)]
pub struct StreamMemory {
    columns: Vec<Room>,
    /// The dictionary that each column had last: that of the next rows is often the same.
    dictionaries: Vec<Option<Dictionary>>,
    vector: Option<DecodedVector>,
    images: Vec<Vec<u8>>,
}

impl StreamMemory {
    /// An empty vector for an image, with memory where an earlier one left some.
    pub fn image(&mut self) -> Vec<u8> {
        let mut image = self.images.pop().unwrap_or_default();
        image.clear();
        image
    }

    /// The bytes of memory, except for a decoded vector of some 50 kB and its items.
    pub fn bytes(&self) -> usize {
        let columns = self.columns.iter().map(Room::bytes).sum::<usize>();
        let dictionaries = self.dictionaries.iter().flatten();
        let dictionaries = dictionaries.map(|known| known.items.bytes()).sum::<usize>();
        columns + dictionaries + self.images.iter().map(Vec::capacity).sum::<usize>()
    }
}

/// Why runs are not streamed.
pub enum NotStreamed {
    /// One of them holds a column in another way than sealed. The memory comes back, with that of
    /// the images.
    Unsealed(Box<StreamMemory>),
    /// This one of them is damaged, is of other rows, or holds a column of another kind.
    Unreadable(usize, Error),
}

/// Rows of sealed runs that can be read once they are [filled](Self::fill).
pub struct Streamed {
    memory: StreamMemory,
    columns: Vec<Kept>,
    runs: Vec<OpenRun>,
    /// The number of vectors of all runs, and the number of vectors of which some column was
    /// decoded.
    vectors: usize,
    vectors_seen: usize,
    /// The number of decoded vectors of single columns.
    decoded: usize,
}

struct OpenRun {
    run: SealedRun,
    /// The range of each column's lane in the image; `None` for a column that is not read or that
    /// the image does not contain.
    lanes: Vec<Option<Range<usize>>>,
    /// For each column, a bit for each vector of the image that was decoded; last, for each vector
    /// of which any column was.
    filled: Vec<Vec<u64>>,
    /// For each column, the rows of each vector that were decoded before the vector is filled. Empty until a vector of
    /// the column is filled in part.
    parts: Vec<Vec<Range<u16>>>,
}

impl Streamed {
    /// Opens runs for reading the columns of these kinds at places below `places`. A column that an
    /// image does not have yet is `missing` in all of its rows.
    ///
    /// # Errors
    /// Why they cannot be read so.
    pub fn open(
        mut memory: StreamMemory,
        kinds: &[LaneKind],
        missing: &[Option<Vec<u8>>],
        places: usize,
        runs: Vec<SealedRun>,
    ) -> std::result::Result<Streamed, NotStreamed> {
        let mut open = Vec::with_capacity(runs.len());
        let mut lanes = Vec::new();
        for (index, run) in runs.iter().enumerate() {
            let of_run = run.lanes(kinds, places);
            match of_run.map_err(|error| NotStreamed::Unreadable(index, error))? {
                Some(of_run) => lanes.push(of_run),
                None => return Err(NotStreamed::Unsealed(Box::new(memory.with_images(runs)))),
            }
        }
        let mut columns = Vec::with_capacity(kinds.len());
        memory.columns.resize_with(kinds.len(), Room::new);
        memory.dictionaries.resize_with(kinds.len(), || None);
        for (index, &kind) in kinds.iter().enumerate() {
            if kind == LaneKind::Absent {
                columns.push(Kept::Absent);
                continue;
            }
            let mut of_column = Vec::with_capacity(runs.len());
            for (number, (run, lanes)) in runs.iter().zip(&lanes).enumerate() {
                let lane = lanes[index].as_ref().map(|place| run.lane(place, kind));
                let lane = lane.transpose();
                of_column.push(lane.map_err(|error| NotStreamed::Unreadable(number, error))?);
            }
            let room = &mut memory.columns[index];
            let known = memory.dictionaries[index].take();
            let missing = missing.get(index).and_then(Option::as_deref);
            let kept = keep(kind, places, &runs, &of_column, missing, known, room);
            let unreadable = |(number, error)| NotStreamed::Unreadable(number, error);
            columns.push(kept.map_err(unreadable)?);
        }
        for (run, lanes) in runs.into_iter().zip(lanes) {
            let vectors = run.rows.end.div_ceil(VECTOR_ROWS);
            open.push(OpenRun {
                run,
                lanes,
                filled: vec![vec![0; bits::words(vectors)]; kinds.len() + 1],
                parts: vec![Vec::new(); kinds.len()],
            });
        }
        let vectors = open.iter().map(OpenRun::vectors).sum();
        let is_whole = |kept: &&Kept| matches!(kept, Kept::Whole(_));
        Ok(Streamed {
            decoded: columns.iter().filter(is_whole).count() * vectors,
            memory,
            columns,
            vectors,
            vectors_seen: 0,
            runs: open,
        })
    }

    /// The memory, for other rows. No lane may be read any more.
    pub fn into_memory(mut self) -> StreamMemory {
        let known = self.memory.dictionaries.iter_mut();
        for (known, kept) in known.zip(self.columns) {
            if let Kept::Codes { dictionary, .. } = kept {
                *known = Some(dictionary);
            }
        }
        let runs = self.runs.into_iter().map(|open| open.run);
        self.memory.with_images(runs)
    }

    /// The images that were read for this alone, which have been verified, by the index of the run.
    pub fn own_images(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let runs = self.runs.iter().enumerate();
        runs.filter_map(|(index, open)| match &open.run.image {
            ImageBytes::Own(image) => Some((index, &**image)),
            ImageBytes::Kept { .. } => None,
        })
    }

    /// One column, of which the places that were filled may be read as long as the value lives; all
    /// NULL past the last.
    pub fn lane(&self, column: usize) -> Lane {
        let Some(kept) = self.columns.get(column) else {
            return Lane::NULL;
        };
        let room = &self.memory.columns[column];
        let values = room.values.pointer();
        let data = match kept {
            Kept::Absent => return Lane::NULL,
            Kept::Whole(column) => return column.lane(),
            Kept::Values {
                kind: LaneKind::Fixed { stride, .. },
            } => LaneData::Fixed {
                values: values.cast(),
                stride: (*stride).into(),
            },
            Kept::Values { .. } => LaneData::Bool(values),
            Kept::Codes { dictionary, .. } if dictionary.items.is_empty() => return Lane::NULL,
            Kept::Codes { dictionary, .. } => LaneData::Codes {
                codes: values.cast(),
                slots: dictionary.items.slots().as_ptr(),
                heap: dictionary.items.heap().as_ptr(),
            },
        };
        Lane::new(data, room.validity())
    }

    /// The dictionary of a column of codes.
    pub fn dictionary(&self, column: usize) -> Option<DictionaryView> {
        match self.columns.get(column)? {
            Kept::Codes { dictionary, .. } => Some(DictionaryView {
                instance: dictionary.instance,
                parent: 0,
                inherited: 0,
                items: dictionary.items.len() as u32,
            }),
            Kept::Whole(column) => column.dictionary(),
            Kept::Absent | Kept::Values { .. } => None,
        }
    }

    /// Decodes what some columns have at these places, unless that was done before: vectors, or the blocks of a vector
    /// that have these rows. `None`: all columns.
    ///
    /// # Errors
    /// If a code names no item.
    pub fn fill(&mut self, places: Range<usize>, columns: Option<&[usize]>) -> Result<()> {
        match columns {
            Some(columns) => columns
                .iter()
                .try_for_each(|&column| self.fill_column(&places, column)),
            None => {
                (0..self.columns.len()).try_for_each(|column| self.fill_column(&places, column))
            }
        }
    }

    /// Reads a column at a place that was not filled. Returns `None` if the place was filled, or
    /// must be filled to be read.
    ///
    /// # Errors
    /// If the row's vector is damaged, or a code is not below the number of items.
    pub fn point(&self, column: usize, place: usize) -> Result<Option<Constant<'_>>> {
        let (kind, items) = match self.columns.get(column) {
            Some(Kept::Values { kind }) => (*kind, 0),
            Some(Kept::Codes { kind, dictionary }) => (*kind, dictionary.items.len()),
            Some(Kept::Absent | Kept::Whole(_)) | None => return Ok(None),
        };
        for open in &self.runs {
            let row = open.rows_at(&(place..place + 1)).next();
            let (Some(row), Some(lane_at)) = (row, &open.lanes[column]) else {
                continue;
            };
            if bits::get(&open.filled[column], row / VECTOR_ROWS) {
                return Ok(None);
            }
            let point = lane(&open.run.image, lane_at, kind)?.point(row)?;
            if let Some(Constant::Code(code)) = point
                && code as usize >= items
            {
                return Err(Error::Malformed("a code names no item"));
            }
            return Ok(point);
        }
        Ok(None)
    }

    fn fill_column(&mut self, places: &Range<usize>, column: usize) -> Result<()> {
        let (Some(kept), Some(room)) = (
            self.columns.get(column),
            self.memory.columns.get_mut(column),
        ) else {
            return Ok(());
        };
        if let Kept::Absent = kept {
            return Ok(());
        }
        for open in &mut self.runs {
            let rows = open.rows_at(places);
            for vector in rows.start / VECTOR_ROWS..rows.end.div_ceil(VECTOR_ROWS) {
                if bits::get(&open.filled[column], vector) {
                    continue;
                }
                let wanted = rows_of_vector(&rows, vector);
                if open.has_part(column, vector, &wanted) {
                    continue;
                }
                if open.lanes[column].is_some() && !matches!(kept, Kept::Whole(_)) {
                    let decoded = self.memory.vector.get_or_insert_default();
                    self.decoded += 1;
                    if !open.decode(column, (vector, wanted), kept, room, decoded)? {
                        continue;
                    }
                }
                let bit = 1 << (vector % 64);
                open.filled[column][vector / 64] |= bit;
                if let Some(seen) = open.filled.last_mut() {
                    self.vectors_seen += usize::from(seen[vector / 64] & bit == 0);
                    seen[vector / 64] |= bit;
                }
            }
        }
        Ok(())
    }

    /// Reads the values of a column at these places as repeats, if the bytes consist of repeats and
    /// were not decoded yet. Returns false otherwise, with `repeats` unspecified.
    pub fn repeats(&self, column: usize, places: Range<usize>, repeats: &mut ValueRepeats) -> bool {
        let Some(Kept::Values { kind } | Kept::Codes { kind, .. }) = self.columns.get(column)
        else {
            return false;
        };
        let mut with_rows = self.runs.iter().filter_map(|open| {
            let rows = open.rows_at(&places);
            (!rows.is_empty()).then_some((open, rows))
        });
        let (Some((open, rows)), None) = (with_rows.next(), with_rows.next()) else {
            return false;
        };
        let vector = rows.start / VECTOR_ROWS;
        let Some(place) = &open.lanes[column] else {
            return false;
        };
        let is_of_vector = rows.start.is_multiple_of(VECTOR_ROWS) && rows.len() == places.len();
        if !is_of_vector || bits::get(&open.filled[column], vector) {
            return false;
        }
        let Ok(lane) = lane(&open.run.image, place, *kind) else {
            return false;
        };
        let items = match &self.columns[column] {
            Kept::Codes { dictionary, .. } => dictionary.items.len(),
            _ => 0,
        };
        repeats.read(&lane, vector, rows.len(), items)
    }

    /// Whether of half of the vectors or more something was decoded.
    pub fn is_mostly_filled(&self) -> bool {
        2 * self.vectors_seen >= self.vectors
    }

    /// The number of vectors of single columns that were decoded.
    pub fn decoded(&self) -> usize {
        self.decoded
    }

    /// An inexact zone of the rows at these places, without decoding them. Returns `None` if it is
    /// not known.
    pub fn zone(&self, column: usize, places: Range<usize>) -> Option<Zone> {
        let (Kept::Values { kind } | Kept::Codes { kind, .. }) = self.columns.get(column)? else {
            return None;
        };
        let mut zone = Zone::empty(*kind);
        for open in &self.runs {
            let rows = open.rows_at(&places);
            let (image, place) = (&open.run.image, open.lanes[column].as_ref()?);
            for vector in rows.start / VECTOR_ROWS..rows.end.div_ceil(VECTOR_ROWS) {
                let find = || lane(image, place, *kind).ok()?.zone(vector);
                zone = zone.union(image.zone((column, vector), *kind, find)?);
            }
        }
        Some(Zone {
            exact: false,
            sorted: false,
            ..zone
        })
    }
}

/// The rows of a vector, counted from its first, that are among these rows of the image.
fn rows_of_vector(rows: &Range<usize>, vector: usize) -> Range<usize> {
    let first = vector * VECTOR_ROWS;
    rows.start.max(first) - first..rows.end.min(first + VECTOR_ROWS) - first
}

impl StreamMemory {
    fn with_images(mut self, runs: impl IntoIterator<Item = SealedRun>) -> StreamMemory {
        for run in runs {
            if let ImageBytes::Own(image) = run.image {
                self.images.push(image);
            }
        }
        self
    }
}

impl OpenRun {
    /// Vectors that have some of the run's rows.
    fn vectors(&self) -> usize {
        self.run.rows.end.div_ceil(VECTOR_ROWS) - self.run.rows.start / VECTOR_ROWS
    }

    /// Whether these rows of a vector were decoded without the others.
    fn has_part(&self, column: usize, vector: usize, wanted: &Range<usize>) -> bool {
        let part = self.parts[column].get(vector);
        part.is_some_and(|part| {
            usize::from(part.start) <= wanted.start && wanted.end <= usize::from(part.end)
        })
    }

    /// Decodes the wanted rows of a vector, alone if they are few. Returns whether the whole vector was decoded.
    fn decode(
        &mut self,
        column: usize,
        (vector, wanted): (usize, Range<usize>),
        kept: &Kept,
        room: &mut Room,
        decoded: &mut DecodedVector,
    ) -> Result<bool> {
        let Some(lane) = &self.lanes[column] else {
            return Ok(true);
        };
        let parts = &mut self.parts[column];
        let is_untouched = parts.get(vector).is_none_or(Range::is_empty);
        if is_untouched
            && wanted.len() <= PART_ROWS_MAX
            && let Some(part) = fill_part(&self.run, lane, (vector, wanted), kept, room, decoded)?
        {
            parts.resize(parts.len().max(vector + 1), 0..0);
            parts[vector] = part.start as u16..part.end as u16;
            return Ok(part.len() == VECTOR_ROWS);
        }
        fill(&self.run, lane, vector, kept, room, decoded)?;
        Ok(true)
    }

    /// The rows of the image at these places.
    fn rows_at(&self, places: &Range<usize>) -> Range<usize> {
        let (rows, first) = (&self.run.rows, self.run.place);
        let row = |place: usize| {
            let past = place.saturating_sub(first).min(rows.len());
            rows.start + past
        };
        let (start, end) = (row(places.start), row(places.end));
        if start >= end { 0..0 } else { start..end }
    }
}

mod kept;
mod room;
mod sealed_run;
#[cfg(test)]
mod tests;
