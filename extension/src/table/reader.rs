//! A table opened for reading: metapage, runs and tombstones as of one moment, and windows on its rows.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use lanes_columnar::arena::{RelationKey, RunEntry, Segment};
use lanes_columnar::column::Column;
use lanes_columnar::lane::{DictionaryView, Lane};
use lanes_columnar::limits::{VECTOR_ROWS, segment_first_row, segment_of};
use lanes_columnar::streamed::StreamMemory;
use lanes_columnar::value_runs::ValueRuns;
use lanes_columnar::zone_map::Zone;
use pgrx::pg_sys;

use super::runs::{self, DecodedRows, Remote, Runs, Shape};
use super::stream::{NotStreamed, SealedRows, Stream};
use crate::pg::datum::RowOutlet;
use crate::pg::ports;
use crate::pg::shmem::ArenaLocks;
use crate::storage::metapage::Meta;
use crate::storage::part::Parts;
use crate::storage::tombstone::Tombstones;
use crate::table_am::insert_buffer;
use crate::{error, gucs};

/// An open table. Holds no lock but pins in the arena, which dropping it releases.
pub struct Reader {
    pub relation: pg_sys::Relation,
    /// The descriptor that `shape` is of.
    pub descriptor: pg_sys::TupleDesc,
    pub shape: Shape,
    /// `None`: nothing was ever written.
    pub content: Option<Content>,
}

/// What a table holds.
pub struct Content {
    pub meta: Meta,
    pub runs: Runs,
    pub tombstones: Rc<RefCell<Tombstones>>,
    pub parts: Rc<Parts>,
}

impl Reader {
    /// # Safety
    /// `relation` is an open lanes table and stays open as long as the reader lives.
    pub unsafe fn open(relation: pg_sys::Relation) -> Reader {
        // SAFETY: the caller's promise.
        unsafe { Self::open_as(relation, (*relation).rd_att) }
    }

    /// The same, for rows of another descriptor: while ALTER TABLE rewrites a table, its relation has the new
    /// descriptor already and its file the old rows, which Postgres wants in a slot of the old one.
    ///
    /// # Safety
    /// As for [`Reader::open`]; `descriptor` is live and of this table.
    pub unsafe fn open_as(relation: pg_sys::Relation, descriptor: pg_sys::TupleDesc) -> Reader {
        // SAFETY: the caller's promise.
        unsafe {
            insert_buffer::flush_table((*relation).rd_id);
            let shape = Shape::of(descriptor);
            let content = loop {
                let Some(meta) = Meta::load(relation) else {
                    break None;
                };
                // Tombstones first: one that is read names a row whose run is then in the directory.
                let tombstones = Tombstones::of(relation, &meta);
                let runs = Runs::of(relation, &meta, shape.fingerprint);
                let parts = Parts::of(relation, &meta);
                // A VACUUM in between may have voided tombstones whose dead runs these `runs` do not know to be dead.
                if Meta::load(relation).is_some_and(|now| now.generation == meta.generation) {
                    break Some(Content {
                        meta,
                        runs,
                        tombstones,
                        parts,
                    });
                }
                ports::CHECK_FOR_INTERRUPTS();
            };
            Reader {
                relation,
                descriptor,
                shape,
                content,
            }
        }
    }

    /// The metapage as it was when the table was opened.
    pub fn meta(&self) -> Option<&Meta> {
        self.content.as_ref().map(|content| &content.meta)
    }

    /// The row after the last one.
    pub fn end_row(&self) -> u64 {
        self.content
            .as_ref()
            .map_or(0, |content| content.runs.end_row())
    }
}

impl Content {
    /// The run that holds a row, with its index.
    pub fn run_of(&self, row: u64) -> Option<(usize, RunEntry)> {
        let index = self.runs.find(row)?;
        Some((index, self.runs.get(index)))
    }
}

/// Some consecutive rows of a table with their lanes, and what keeps those alive.
pub struct Window {
    pub first_row: u64,
    outlet: Box<RowOutlet>,
    /// Which dictionary the codes of each attribute belong to. Of a segment, which may be growing, they are asked for
    /// before the lanes, which then have a slot for each of their codes.
    dictionaries: Vec<DictionaryView>,
    source: Source,
}

enum Source {
    Arena(Segment<ArenaLocks>),
    Private(#[expect(dead_code, reason = "held for what dropping it frees")] Rc<DecodedRows>),
    Streamed(Box<Stream>),
}

/// Raises the ERROR that sealed rows cannot be decoded.
fn damaged(first_row: u64, failure: &lanes_columnar::error::Error) -> ! {
    error::corrupt(&format!("the sealed rows from {first_row} on: {failure}"))
}

/// What [`Window::open`] decoded last in this backend.
struct LastDecoded {
    key: RelationKey,
    sealings: u64,
    rows: Rc<DecodedRows>,
}

thread_local! {
    static LAST_DECODED: RefCell<Option<LastDecoded>> = const { RefCell::new(None) };
}

impl LastDecoded {
    /// These rows of a table, if they were decoded last and it was not sealed since.
    fn get(key: &RelationKey, sealings: u64, rows: Range<u64>) -> Option<Rc<DecodedRows>> {
        LAST_DECODED.with_borrow(|last| {
            let last = last.as_ref()?;
            let covers = last.key == *key
                && last.sealings == sealings
                && last.rows.first_row <= rows.start
                && rows.end <= last.rows.first_row + last.rows.len() as u64;
            covers.then(|| last.rows.clone())
        })
    }
}

impl Window {
    /// Rows `[from, to)`, all of one segment: from the arena, or, where it has no room for them, from pages.
    ///
    /// # Safety
    /// `reader` is open on a table that holds these rows.
    pub unsafe fn open(reader: &Reader, content: &Content, from: u64, to: u64) -> Window {
        let segment = segment_of(from);
        debug_assert_eq!(segment, segment_of(to - 1));
        // SAFETY: the caller's promise.
        unsafe {
            if runs::make_resident(reader.relation, &reader.shape, &content.runs, segment, to)
                && let Some(window) = Self::in_arena(reader, content, segment, to)
            {
                return window;
            }
            Self::of_decoded(reader, Self::decoded(reader, content, from, to))
        }
    }

    /// The same for somebody who fetches rows one by one: where the arena has none of them, what this backend decoded last is
    /// looked at before the arena is asked for room, which may mean that all of the segment is decoded in vain.
    ///
    /// # Safety
    /// As for [`Window::open`].
    pub unsafe fn open_row(reader: &Reader, content: &Content, row: u64) -> Window {
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(window) = Self::in_arena(reader, content, segment_of(row), row + 1) {
                return window;
            }
            let key = runs::arena_key(reader.relation, &content.meta, reader.shape.fingerprint);
            match LastDecoded::get(&key, content.meta.sealings, row..row + 1) {
                Some(rows) => Self::of_decoded(reader, rows),
                None => Self::open(reader, content, row, row + 1),
            }
        }
    }

    /// The same without making them resident, of these attributes alone, if they are not resident already. `None`: all. If they
    /// were found `sealed`, they can be read once they are [filled](Window::fill); if `keep`, the arena is given their images.
    ///
    /// # Safety
    /// As for [`Window::open`].
    pub unsafe fn stream(
        reader: &Reader,
        content: &Content,
        (from, to): (u64, u64),
        wanted: Option<&[usize]>,
        (sealed, keep): (Option<SealedRows>, bool),
        memory: &mut StreamMemory,
    ) -> Window {
        if let Some(window) = Self::in_arena(reader, content, segment_of(from), to) {
            return window;
        }
        let narrow = wanted.map(|wanted| reader.shape.only(wanted));
        let shape = narrow.as_ref().unwrap_or(&reader.shape);
        let (relation, runs) = (reader.relation, &content.runs);
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(sealed) = sealed {
                match sealed.open(relation, shape, runs, memory, keep) {
                    Ok(stream) => return Self::of_stream(reader, segment_of(from), stream),
                    Err(NotStreamed::Otherwise) => {}
                    Err(NotStreamed::Unreadable(failure)) => error::corrupt(&failure),
                }
            }
            let decoded = runs::decode_rows(relation, shape, runs, from, to, Remote::Recall);
            Self::of_decoded(reader, Rc::new(decoded))
        }
    }

    /// The same for somebody who reads rows once, and not most of them or not again: sealed ones are streamed.
    ///
    /// # Safety
    /// As for [`Window::open`].
    pub unsafe fn open_once(
        reader: &Reader,
        content: &Content,
        from: u64,
        to: u64,
        memory: &mut StreamMemory,
    ) -> Window {
        let streams = gucs::decode_after() > 0;
        let sealed = streams.then(|| SealedRows::find(&content.runs, from, to));
        // SAFETY: the caller's promise.
        unsafe {
            match sealed.flatten() {
                None => Self::open(reader, content, from, to),
                sealed => Self::stream(reader, content, (from, to), None, (sealed, false), memory),
            }
        }
    }

    /// The same without rows that are in object storage, which are NULLs there.
    ///
    /// # Safety
    /// As for [`Window::open`].
    pub unsafe fn open_local(reader: &Reader, content: &Content, from: u64, to: u64) -> Window {
        let (relation, shape) = (reader.relation, &reader.shape);
        // SAFETY: the caller's promise.
        unsafe {
            let decoded =
                runs::decode_rows(relation, shape, &content.runs, from, to, Remote::Leave);
            Self::of_decoded(reader, Rc::new(decoded))
        }
    }

    /// A window on decoded rows.
    ///
    /// # Safety
    /// They are of this reader's shape.
    unsafe fn of_decoded(reader: &Reader, decoded: Rc<DecodedRows>) -> Window {
        let dictionaries = decoded.columns.iter().map(Column::dictionary);
        let dictionaries = dictionaries.map(Option::unwrap_or_default).collect();
        let lanes = decoded.columns.iter().map(Column::lane);
        let outlet = RowOutlet::new(&reader.shape.outlets, lanes);
        Window {
            first_row: decoded.first_row,
            outlet: Box::new(outlet),
            dictionaries,
            source: Source::Private(decoded),
        }
    }

    /// A window on sealed rows of this reader's shape, or of some of its attributes.
    fn of_stream(reader: &Reader, segment: u32, stream: Stream) -> Window {
        let attributes = 0..reader.shape.kinds.len();
        let dictionaries = attributes.clone();
        let dictionaries =
            dictionaries.map(|index| stream.rows.dictionary(index).unwrap_or_default());
        let dictionaries = dictionaries.collect();
        let lanes = attributes.map(|index| stream.rows.lane(index));
        let outlet = RowOutlet::new(&reader.shape.outlets, lanes);
        Window {
            first_row: segment_first_row(segment),
            outlet: Box::new(outlet),
            dictionaries,
            source: Source::Streamed(Box::new(stream)),
        }
    }

    /// The rows decoded from pages. The last ones are remembered: rows fetched one by one by TID mostly lie in the
    /// same run as the one before.
    unsafe fn decoded(reader: &Reader, content: &Content, from: u64, to: u64) -> Rc<DecodedRows> {
        // SAFETY: `open`'s caller promised these rows.
        let key =
            unsafe { runs::arena_key(reader.relation, &content.meta, reader.shape.fingerprint) };
        if let Some(rows) = LastDecoded::get(&key, content.meta.sealings, from..to) {
            return rows;
        }
        // SAFETY: as above.
        let rows = unsafe {
            runs::decode_rows(
                reader.relation,
                &reader.shape,
                &content.runs,
                from,
                to,
                Remote::Recall,
            )
        };
        let rows = Rc::new(rows);
        LAST_DECODED.set(rows.is_small().then(|| LastDecoded {
            key,
            sealings: content.meta.sealings,
            rows: rows.clone(),
        }));
        rows
    }

    /// The segment as it lies in the arena, if it is still there: it may have been evicted since it was loaded.
    fn in_arena(reader: &Reader, content: &Content, segment: u32, to: u64) -> Option<Window> {
        let first_row = segment_first_row(segment);
        let pinned = content.runs.cached()?.pin_segment(segment)?;
        if pinned.columns() != reader.shape.kinds.len()
            || first_row + (pinned.rows_resident() as u64) < to
        {
            return None;
        }
        let dictionaries = (0..pinned.columns())
            .map(|column| pinned.dictionary(column).unwrap_or_default())
            .collect();
        let lanes = (0..pinned.columns()).map(|column| pinned.lane(column));
        // The pin keeps the lanes alive for as long as the window.
        let outlet = RowOutlet::new(&reader.shape.outlets, lanes);
        Some(Window {
            first_row,
            outlet: Box::new(outlet),
            dictionaries,
            source: Source::Arena(pinned),
        })
    }

    /// Whether its rows were decoded for this backend alone.
    pub fn is_private(&self) -> bool {
        !matches!(self.source, Source::Arena(_))
    }

    /// Makes the rows at some places of the lanes of some attributes ready to be read, which only those of streamed windows need.
    /// `None`: of all attributes that the window was opened for.
    pub fn fill(&mut self, places: Range<usize>, attributes: Option<&[usize]>) {
        if let Source::Streamed(stream) = &mut self.source {
            match stream.rows.fill(places, attributes) {
                Ok(()) => stream.note_look(),
                Err(failure) => damaged(self.first_row, &failure),
            }
        }
    }

    /// Reads an attribute that is passed by value at a place, NULL or not, without its vector being decoded. `None`: it has
    /// to be [filled](Self::fill), or was.
    pub fn point(&self, attribute: usize, place: usize) -> Option<(pg_sys::Datum, bool)> {
        let Source::Streamed(stream) = &self.source else {
            return None;
        };
        match stream.rows.point(attribute, place) {
            Ok(point) => self.outlet.datum_of(attribute, point?),
            Err(failure) => damaged(self.first_row, &failure),
        }
    }

    /// What an attribute has at these places as runs of equal values, if sealed bytes tell so; false if not.
    pub fn runs(&self, attribute: usize, places: Range<usize>, runs: &mut ValueRuns) -> bool {
        match &self.source {
            Source::Streamed(stream) => stream.rows.runs(attribute, places, runs),
            Source::Arena(_) | Source::Private(_) => false,
        }
    }

    /// How many vectors of single attributes were decoded for this window.
    pub fn columns_decoded(&self) -> u64 {
        match &self.source {
            Source::Streamed(stream) => stream.rows.decoded() as u64,
            Source::Arena(_) | Source::Private(_) => 0,
        }
    }

    /// What memory of a streamed window can be used again.
    pub fn into_memory(self) -> Option<StreamMemory> {
        match self.source {
            Source::Streamed(stream) => Some(stream.rows.into_memory()),
            Source::Arena(_) | Source::Private(_) => None,
        }
    }

    /// The lanes of all attributes.
    pub fn lanes(&self) -> impl Iterator<Item = Lane> {
        self.outlet.lanes()
    }

    /// Which dictionary the codes of each attribute belong to; empty where there are no codes.
    pub fn dictionaries(&self) -> &[DictionaryView] {
        &self.dictionaries
    }

    /// The zone map of a vector of an attribute, where there is one.
    pub fn zone(&self, attribute: usize, vector: usize) -> Option<Zone> {
        match &self.source {
            Source::Arena(segment) => segment.zone(attribute, vector),
            Source::Private(_) => None,
            Source::Streamed(stream) => {
                let first = vector * VECTOR_ROWS;
                stream.rows.zone(attribute, first..first + VECTOR_ROWS)
            }
        }
    }

    /// The lanes, at an address that stays as long as the window lives.
    pub fn outlet(&self) -> *const RowOutlet {
        &raw const *self.outlet
    }

    /// The row's place in the lanes.
    pub fn place(&self, row: u64) -> usize {
        (row - self.first_row) as usize
    }
}
