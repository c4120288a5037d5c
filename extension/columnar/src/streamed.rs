//! Sealed rows decoded a vector at a time, when somebody is about to look at them, into memory that later rows use again.
//!
//! ```text
//! images of runs ──► Streamed::open ──► lane(column)     one lane over all places, good as long as the value lives
//!                         │        ├──► zone(column, places)   what is known of them without decoding
//!                         │        └──► fill(places)     decodes the vectors that have them: now they may be read
//!                         └── into_memory() ──► the next Streamed::open
//! ```
//!
//! A *place* is a row counted from the first that the lanes have room for. The places of the runs ascend without overlap; what
//! lies between them is a gap, of which nothing may be believed but that reading it stays within bounds.
//!
//! | column | is kept as | decoded |
//! |---|---|---|
//! | of fixed width, bools | values at their places | by vector |
//! | items, one run, all of it codes of a dictionary | codes at their places; the items of that dictionary | by vector |
//! | other items | a column: dictionaries of several runs have to become one, and items lie where those before them end | when opened |
//! | those that an image does not have yet | a column too | when opened |
//! | of kind [`LaneKind::Absent`] | nothing | never |
//!
//! # Invariants
//! Lanes do not move while the value lives: all room is there before the first lane is asked for. Codes at places that were filled,
//! and in gaps, are below the number of items, whatever the bytes say: a vector with a code beyond is refused. A vector is
//! decoded once.

use std::ops::{Deref, Range};

use crate::bits;
use crate::buffer::Buffer;
use crate::column::Column;
use crate::dictionary::next_instance;
use crate::encoding::{DecodedVector, EncodedLane, ItemList};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::kind::LaneKind;
use crate::lane::{DictionaryView, Lane, LaneData};
use crate::limits::{LANE_ALIGN, VECTOR_ROWS};
use crate::zone_map::Zone;

/// A sealed run some rows of which are wanted.
pub struct SealedRun {
    /// Its image.
    pub image: ImageBytes,
    /// How many rows it has to hold.
    pub image_rows: usize,
    /// Those of them that have places.
    pub rows: Range<usize>,
    /// The place of the first of them.
    pub place: usize,
}

/// The bytes of an image.
pub enum ImageBytes {
    /// Read for this alone.
    Own(Vec<u8>),
    /// Kept by somebody else, and verified.
    Kept(KeptBytes),
}

/// Bytes that somebody else keeps.
pub struct KeptBytes(*const [u8]);

impl ImageBytes {
    /// Bytes that somebody else keeps, the checksum of which was verified.
    ///
    /// # Safety
    /// They are neither changed nor freed before this value is dropped.
    pub unsafe fn kept(bytes: &[u8]) -> ImageBytes {
        ImageBytes::Kept(KeptBytes(bytes))
    }

    fn parse(&self) -> Result<Image<'_>> {
        match self {
            ImageBytes::Own(_) => Image::parse(self),
            ImageBytes::Kept(_) => Image::reparse(self),
        }
    }
}

impl Deref for ImageBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            ImageBytes::Own(bytes) => bytes,
            // SAFETY: whoever made this promised that they are there.
            ImageBytes::Kept(KeptBytes(bytes)) => unsafe { &**bytes },
        }
    }
}

/// Memory of rows that were read, for the next ones.
#[derive(Default)]
pub struct StreamMemory {
    columns: Vec<Room>,
    vector: DecodedVector,
    images: Vec<Vec<u8>>,
}

impl StreamMemory {
    /// An empty vector for an image, with memory where an earlier one left some.
    pub fn image(&mut self) -> Vec<u8> {
        let mut image = self.images.pop().unwrap_or_default();
        image.clear();
        image
    }
}

/// Rows of sealed runs that can be read once they are [filled](Self::fill).
pub struct Streamed {
    memory: StreamMemory,
    columns: Vec<Kept>,
    runs: Vec<OpenRun>,
    /// Vectors of all runs, and how many of them were decoded.
    vectors: usize,
    vectors_filled: usize,
}

struct OpenRun {
    run: SealedRun,
    /// Where in the image the lane of each column lies; `None`: nobody reads it, or the image does not have it.
    lanes: Vec<Option<Range<usize>>>,
    /// A bit for each vector of the image that was decoded.
    filled: Vec<u64>,
}

/// How a column is kept.
enum Kept {
    Absent,
    Values {
        kind: LaneKind,
    },
    Codes {
        kind: LaneKind,
        items: ItemList,
        instance: u64,
    },
    Whole(Column),
}

/// Room for the values and the marks of NULLs of one column.
struct Room {
    values: Buffer<u64>,
    validity: Buffer<u64>,
    /// Whether any row may be NULL.
    has_nulls: bool,
}

impl Room {
    fn new() -> Room {
        Room {
            values: Buffer::new(),
            validity: Buffer::new(),
            has_nulls: false,
        }
    }

    /// Makes room for the values of so many places. What lies there is what lay there before, or 0.
    fn prepare(&mut self, kind: LaneKind, places: usize, has_nulls: bool) {
        let bytes = match kind {
            LaneKind::Bool => places.div_ceil(8),
            LaneKind::Fixed { stride, .. } => places * usize::from(stride),
            LaneKind::Varlena { .. } => places * size_of::<u32>(),
            LaneKind::Absent => 0,
        };
        let words = bytes.div_ceil(LANE_ALIGN) * (LANE_ALIGN / size_of::<u64>());
        self.values
            .extend_zeros(words.saturating_sub(self.values.len()));
        self.has_nulls = has_nulls;
        if has_nulls {
            let words = bits::words(places);
            self.validity
                .extend_zeros(words.saturating_sub(self.validity.len()));
        }
    }

    fn zero_codes(&mut self, places: Range<usize>) {
        const ZEROS: [u32; VECTOR_ROWS] = [0; VECTOR_ROWS];
        for place in places.clone().step_by(VECTOR_ROWS) {
            let count = (places.end - place).min(VECTOR_ROWS);
            write_bytes(&mut self.values, place * size_of::<u32>(), &ZEROS[..count]);
        }
    }

    fn validity(&self) -> *const u64 {
        match self.has_nulls {
            true => self.validity.pointer(),
            false => std::ptr::null(),
        }
    }
}

impl Streamed {
    /// Opens runs for reading the columns of these kinds at places below `places`. A column that an image does not have yet is
    /// `missing` in all of its rows. Gives the memory and the runs' images back if a run holds a column in another way than sealed.
    ///
    /// # Errors
    /// If an image is damaged, is of other rows, or holds a column of another kind.
    pub fn open(
        mut memory: StreamMemory,
        kinds: &[LaneKind],
        missing: &[Option<Vec<u8>>],
        places: usize,
        runs: Vec<SealedRun>,
    ) -> Result<std::result::Result<Streamed, StreamMemory>> {
        let mut open = Vec::with_capacity(runs.len());
        let mut lanes = Vec::new();
        for run in &runs {
            let image = run.image.parse()?;
            if image.rows() != run.image_rows
                || run.rows.start > run.rows.end
                || run.rows.end > image.rows()
                || run.place + run.rows.len() > places
            {
                return Err(Error::Malformed("a sealed image does not have these rows"));
            }
            let mut of_run = Vec::with_capacity(kinds.len());
            for (index, &kind) in kinds.iter().enumerate() {
                let is_there = kind != LaneKind::Absent && index < image.columns();
                let place = image.sealed_lane(index).filter(|_| is_there);
                if is_there && place.is_none() {
                    return Ok(Err(memory.with_images(runs)));
                }
                of_run.push(place);
            }
            lanes.push(of_run);
        }
        let mut columns = Vec::with_capacity(kinds.len());
        memory.columns.resize_with(kinds.len(), Room::new);
        for (index, &kind) in kinds.iter().enumerate() {
            if kind == LaneKind::Absent {
                columns.push(Kept::Absent);
                continue;
            }
            let lanes = runs.iter().zip(&lanes);
            let lanes = lanes.map(|(run, lanes)| {
                let place = lanes[index].as_ref();
                place.map(|place| lane(&run.image, place, kind)).transpose()
            });
            let lanes = lanes.collect::<Result<Vec<_>>>()?;
            let mut rows = runs.iter().zip(&lanes);
            if rows.any(|(run, lane)| lane.is_some_and(|lane| lane.rows() != run.image_rows)) {
                return Err(Error::Malformed("a sealed lane has other rows"));
            }
            let room = &mut memory.columns[index];
            let missing = missing.get(index).and_then(Option::as_deref);
            columns.push(keep(kind, places, &runs, &lanes, missing, room)?);
        }
        for (run, lanes) in runs.into_iter().zip(lanes) {
            let vectors = run.rows.end.div_ceil(VECTOR_ROWS);
            open.push(OpenRun {
                run,
                lanes,
                filled: vec![0; bits::words(vectors)],
            });
        }
        Ok(Ok(Streamed {
            memory,
            columns,
            vectors: open.iter().map(OpenRun::vectors).sum(),
            vectors_filled: 0,
            runs: open,
        }))
    }

    /// The memory, for other rows. No lane may be read any more.
    pub fn into_memory(self) -> StreamMemory {
        let runs = self.runs.into_iter().map(|open| open.run);
        self.memory.with_images(runs)
    }

    /// The images that were read for this alone, which have been verified, with the place of the first row of each.
    pub fn own_images(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.runs.iter().filter_map(|open| match &open.run.image {
            ImageBytes::Own(image) => Some((open.run.place, &**image)),
            ImageBytes::Kept(_) => None,
        })
    }

    /// One column, of which the places that were filled may be read as long as the value lives; all NULL past the last.
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
            Kept::Codes { items, .. } if items.is_empty() => return Lane::NULL,
            Kept::Codes { items, .. } => LaneData::Codes {
                codes: values.cast(),
                slots: items.slots().as_ptr(),
                heap: items.heap().as_ptr(),
            },
        };
        Lane {
            data,
            validity: room.validity(),
        }
    }

    /// The dictionary of a column of codes.
    pub fn dictionary(&self, column: usize) -> Option<DictionaryView> {
        match self.columns.get(column)? {
            Kept::Codes {
                items, instance, ..
            } => Some(DictionaryView {
                instance: *instance,
                parent: 0,
                inherited: 0,
                items: items.len() as u32,
            }),
            Kept::Whole(column) => column.dictionary(),
            Kept::Absent | Kept::Values { .. } => None,
        }
    }

    /// Decodes the vectors that have rows at these places, unless that was done before.
    ///
    /// # Errors
    /// If a code names no item.
    pub fn fill(&mut self, places: Range<usize>) -> Result<()> {
        for open in &mut self.runs {
            let rows = open.rows_at(&places);
            for vector in rows.start / VECTOR_ROWS..rows.end.div_ceil(VECTOR_ROWS) {
                if bits::get(&open.filled, vector) {
                    continue;
                }
                let columns = self.columns.iter().zip(&mut self.memory.columns);
                for ((kept, room), lane) in columns.zip(&open.lanes) {
                    let decoded = &mut self.memory.vector;
                    if let Some(lane) = lane {
                        fill(&open.run, lane, vector, kept, room, decoded)?;
                    }
                }
                open.filled[vector / 64] |= 1 << (vector % 64);
                self.vectors_filled += 1;
            }
        }
        Ok(())
    }

    /// Whether half of the vectors or more were decoded.
    pub fn is_mostly_filled(&self) -> bool {
        2 * self.vectors_filled >= self.vectors
    }

    /// What is known of the rows at these places before they are decoded: a zone that is not exact. `None`: nothing.
    pub fn zone(&self, column: usize, places: Range<usize>) -> Option<Zone> {
        let (Kept::Values { kind } | Kept::Codes { kind, .. }) = self.columns.get(column)? else {
            return None;
        };
        let mut zone = Zone::empty(*kind);
        for open in &self.runs {
            let rows = open.rows_at(&places);
            let lane = lane(&open.run.image, open.lanes[column].as_ref()?, *kind).ok()?;
            for vector in rows.start / VECTOR_ROWS..rows.end.div_ceil(VECTOR_ROWS) {
                zone = zone.union(lane.zone(vector)?);
            }
        }
        Some(Zone {
            exact: false,
            sorted: false,
            ..zone
        })
    }
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

/// The lane at a place of an image whose checksum vouches for it.
fn lane<'a>(image: &'a [u8], place: &Range<usize>, kind: LaneKind) -> Result<EncodedLane<'a>> {
    EncodedLane::reopen(&image[place.clone()], kind)
}

/// How a column is going to be kept; it is decoded if that has to be done at once.
fn keep(
    kind: LaneKind,
    places: usize,
    runs: &[SealedRun],
    lanes: &[Option<EncodedLane<'_>>],
    missing: Option<&[u8]>,
    room: &mut Room,
) -> Result<Kept> {
    let has_nulls = lanes.iter().flatten().any(EncodedLane::may_have_nulls);
    let is_whole = lanes.iter().any(Option::is_none);
    if !is_whole && !matches!(kind, LaneKind::Varlena { .. }) {
        room.prepare(kind, places, has_nulls);
        return Ok(Kept::Values { kind });
    }
    if let ([run], [Some(lane)]) = (runs, lanes)
        && let Some(items) = lane.dictionary()
    {
        room.prepare(kind, places, has_nulls);
        // Codes of another dictionary may lie where the run has no rows.
        room.zero_codes(0..run.place);
        room.zero_codes(run.place + run.rows.len()..places);
        return Ok(Kept::Codes {
            kind,
            items,
            instance: next_instance(),
        });
    }
    let mut column = Column::new(kind);
    for (run, lane) in runs.iter().zip(lanes) {
        column.push_repeated(None, run.place - column.rows());
        match lane {
            Some(lane) => lane.decode(run.rows.clone(), &mut column)?,
            None => column.push_repeated(missing, run.rows.len()),
        }
    }
    column.push_repeated(None, places - column.rows());
    Ok(Kept::Whole(column))
}

/// Decodes a vector of a column to its place.
fn fill(
    run: &SealedRun,
    place: &Range<usize>,
    vector: usize,
    kept: &Kept,
    room: &mut Room,
    decoded: &mut DecodedVector,
) -> Result<()> {
    let (kind, items) = match kept {
        Kept::Absent | Kept::Whole(_) => return Ok(()),
        Kept::Values { kind } => (*kind, 0),
        Kept::Codes { kind, items, .. } => (*kind, items.len()),
    };
    let lane = lane(&run.image, place, kind)?;
    lane.try_decode_vector(vector, decoded)?;
    let first = vector * VECTOR_ROWS;
    // Those rows of the vector that have places.
    let rows = run.rows.start.max(first)..run.rows.end.min(first + lane.vector_rows(vector));
    let at = run.place + (rows.start - run.rows.start);
    let rows = rows.start - first..rows.end - first;
    match kept {
        Kept::Codes { .. } => {
            let codes = decoded.codes();
            // The greatest of them, which takes one pass without branches.
            if codes
                .iter()
                .max()
                .is_some_and(|&code| code as usize >= items)
            {
                return Err(Error::Malformed("a code names no item"));
            }
            match codes.get(rows.clone()) {
                Some(codes) => write_bytes(&mut room.values, at * size_of::<u32>(), codes),
                // All of them are NULL, under which a code has to be one all the same.
                None => room.zero_codes(at..at + rows.len()),
            }
        }
        _ => match (decoded.lane(None).data, kind) {
            (LaneData::Bool(words), _) => {
                // SAFETY: a bitmap of a decoded vector covers all of its rows.
                let words = unsafe { std::slice::from_raw_parts(words, bits::words(VECTOR_ROWS)) };
                write_bits(&mut room.values, at, rows.len(), |done, count| {
                    bits::read(words, rows.start + done, count)
                });
            }
            (LaneData::Fixed { values, .. }, LaneKind::Fixed { stride, .. }) => {
                let stride = usize::from(stride);
                // SAFETY: the values of all rows of the vector lie there, a stride from each to the next.
                let values = unsafe {
                    std::slice::from_raw_parts(values.add(rows.start * stride), rows.len() * stride)
                };
                write_bytes(&mut room.values, at * stride, values);
            }
            // All of them are NULL.
            _ => {}
        },
    }
    if room.has_nulls {
        let validity = &mut room.validity;
        write_bits(validity, at, rows.len(), |done, count| {
            decoded.validity_bits(rows.start + done, count)
        });
    }
    Ok(())
}

/// Copies numbers to a place of a buffer, in bytes from its beginning.
fn write_bytes<T: crate::buffer::Plain>(into: &mut Buffer<u64>, at: usize, from: &[T]) {
    let bytes = size_of_val(from);
    assert!(at + bytes <= into.byte_len(), "values beyond their room");
    // SAFETY: both are plain integers without padding, the bytes are within the buffer, and what is borrowed elsewhere is not in it.
    unsafe {
        into.as_mut_ptr()
            .cast::<u8>()
            .add(at)
            .copy_from_nonoverlapping(from.as_ptr().cast(), bytes);
    }
}

/// Sets `count` bits from bit `at` on to what `value(done, bits)` gives: `bits` bits, after the first `done`.
fn write_bits(
    into: &mut [u64],
    at: usize,
    count: usize,
    mut value: impl FnMut(usize, usize) -> u64,
) {
    bits::each_word(at, count, |index, shift, bits, done| {
        let mask = bits::low_bits(bits) << shift;
        into[index] = into[index] & !mask | value(done, bits) << shift;
    });
}

#[cfg(test)]
mod tests;
