//! A table opened for reading: its metapage, runs and tombstones as of one moment, and views of its
//! rows.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use lanes_columnar::arena::{RelationKey, RunEntry, Segment};
use lanes_columnar::column::Column;
use lanes_columnar::lane::{DictionaryView, Lane};
use lanes_columnar::limits::{VECTOR_ROWS, segment_first_row, segment_of};
use lanes_columnar::repeats::ValueRepeats;
use lanes_columnar::streamed::StreamMemory;
use lanes_columnar::zone_map::Zone;
use pgrx::pg_sys;

use super::decode::{self, DecodedRows, Remote};
use super::kept::{self, Extent};
use super::resident;
use super::runs::Runs;
use super::shape::{self, TableShape};
use super::stream::{NotStreamed, SealedRows, Stream};
use crate::pg::datum::RowOutlet;
use crate::pg::descriptor::Descriptor;
use crate::pg::shmem::ArenaLocks;
use crate::pg::table::OpenTable;
use crate::storage::metapage::Meta;
use crate::storage::part::Parts;
use crate::storage::tombstone::Tombstones;
use crate::{error, gucs};

/// An open table. It holds pins in the arena, which are released when it is dropped, and no locks.
pub struct Reader<'a> {
    pub table: OpenTable<'a>,
    /// The descriptor that `shape` was made of.
    pub descriptor: Descriptor<'a>,
    pub shape: Rc<TableShape>,
    /// `None`: nothing was ever written.
    pub content: Option<Content>,
}

/// The content of a table.
#[derive(Clone)]
pub struct Content {
    pub meta: Meta,
    pub runs: Runs,
    pub tombstones: Rc<RefCell<Tombstones>>,
    pub parts: Rc<Parts>,
    /// The index of the run that was looked up last.
    pub near: Rc<Cell<usize>>,
    /// The segment in the arena from which a row was read last.
    pub near_rows: Rc<RefCell<Option<Rc<SegmentView>>>>,
}

impl<'a> Reader<'a> {
    /// Reads the metapage, runs, tombstones and parts of a table. Rows that this backend has
    /// [gathered](super::pending_rows) are not among them unless the caller writes them first.
    pub fn open(table: OpenTable<'a>) -> Reader<'a> {
        Self::open_as(table, table.descriptor())
    }

    /// Opens a table for rows of another descriptor. While ALTER TABLE rewrites a table, its
    /// relation has the new descriptor already but its file has the old rows, which PostgreSQL
    /// wants in a slot of the old descriptor.
    pub fn open_as(table: OpenTable<'a>, descriptor: Descriptor<'a>) -> Reader<'a> {
        Self::open_to(table, descriptor, Extent::All)
    }

    /// Reads as much of a table as `extent` says, for rows of a descriptor.
    pub fn open_to(table: OpenTable<'a>, descriptor: Descriptor<'a>, extent: Extent) -> Reader<'a> {
        let (shape, content) = kept::open(table, descriptor, extent);
        Reader {
            table,
            descriptor,
            shape,
            content,
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
    /// The entry numbers of all rows are below this number. The last part may have fewer rows than
    /// entry numbers.
    pub fn end_number(&self) -> u64 {
        let last = self.parts.live().last();
        let end = last.map_or(0, |part| part.entry.end_row);
        self.runs.end_row().max(end)
    }

    /// The run that holds a row, and its index.
    pub fn run_of(&self, row: u64) -> Option<(usize, RunEntry)> {
        // Rows are mostly asked for in ascending order.
        let near = self.near.get();
        for index in near..self.runs.len().min(near + 2) {
            let run = self.runs.get(index);
            if (run.first_row..run.end_row()).contains(&row) {
                self.near.set(index);
                return Some((index, run));
            }
        }
        let index = self.runs.find(row)?;
        self.near.set(index);
        Some((index, self.runs.get(index)))
    }
}

/// A view of consecutive rows of one segment: their lanes, and what keeps the lanes alive.
pub struct SegmentView {
    pub first_row: u64,
    /// Rows before this one may be read again later without change. It is `first_row` if the view
    /// is read only once.
    end_row: u64,
    outlet: Box<RowOutlet>,
    /// The dictionary that the codes of each attribute belong to. A segment may grow, so the
    /// dictionaries are read before the lanes: each code of a lane then has an entry in its
    /// dictionary.
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

/// The rows that a view of this backend decoded last.
struct LastDecoded {
    key: RelationKey,
    sealings: u64,
    rows: Rc<DecodedRows>,
}

thread_local! {
    static LAST_DECODED: RefCell<Option<LastDecoded>> = const { RefCell::new(None) };
}

impl LastDecoded {
    /// The rows of a table, if they were the last to be decoded and the table was not sealed since.
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

/// Where the rows of a [`ViewRequest`] come from when the arena does not hold them yet.
pub enum Access<'a> {
    /// The segment is loaded into the arena. The rows are decoded for this backend alone where the
    /// arena has no room for the segment.
    Resident,
    /// One row is read, by its number. The rows that this backend decoded last are searched before
    /// the segment is loaded: loading may decode all of the segment for nothing.
    OneRow,
    /// The rows are read once, and few of them or not again. Sealed rows are streamed unless
    /// `lanes.decode_after` is 0; other rows are read as with [`Access::Resident`].
    Once(&'a mut StreamMemory),
    /// The rows are not loaded into the arena.
    Streamed(Streaming<'a>),
    /// Rows in object storage are not recalled; they are all NULL in the view.
    LocalOnly,
}

/// How rows are read without being loaded into the arena.
pub struct Streaming<'a> {
    /// The attributes to read; `None` stands for all attributes.
    pub attributes: Option<&'a [usize]>,
    /// The sealed rows. They must be [filled](SegmentView::fill) before they are read. Without
    /// them the rows are decoded at once.
    pub sealed: Option<SealedRows>,
    /// Whether the arena keeps the images of the sealed rows.
    pub keep_images: bool,
    /// Memory that an earlier view released.
    pub memory: &'a mut StreamMemory,
}

/// A request for a view of consecutive rows of one segment.
pub struct ViewRequest<'a> {
    pub reader: &'a Reader<'a>,
    /// The reader's content, which holds the rows.
    pub content: &'a Content,
    /// The numbers of the rows.
    pub rows: Range<u64>,
    pub access: Access<'a>,
}

impl ViewRequest<'_> {
    /// Opens the view.
    pub fn open(self) -> SegmentView {
        let segment = segment_of(self.rows.start);
        debug_assert_eq!(segment, segment_of(self.rows.end - 1));
        match self.access {
            Access::Resident => self.load(),
            Access::OneRow => self.find_row(),
            Access::Once(_) => self.read_once(),
            Access::Streamed(_) => self.stream(),
            Access::LocalOnly => {
                let decoded = self.decode(&self.reader.shape, Remote::Leave);
                SegmentView::of_decoded(self.reader, Rc::new(decoded))
            }
        }
    }

    /// The view of rows that the arena holds, if it holds all of them.
    fn in_arena(&self) -> Option<SegmentView> {
        let segment = segment_of(self.rows.start);
        SegmentView::in_arena(self.reader, self.content, segment, self.rows.end)
    }

    /// Loads the segment into the arena, or decodes the rows for this backend alone.
    fn load(&self) -> SegmentView {
        let (reader, runs) = (self.reader, &self.content.runs);
        let segment = segment_of(self.rows.start);
        let to = self.rows.end;
        if resident::make_resident(reader.table, &reader.shape, runs, segment, to)
            && let Some(view) = self.in_arena()
        {
            return view;
        }
        SegmentView::of_decoded(reader, self.decode_and_remember())
    }

    fn find_row(&self) -> SegmentView {
        if let Some(view) = self.in_arena() {
            return view;
        }
        let sealings = self.content.meta.sealings;
        match LastDecoded::get(&self.arena_key(), sealings, self.rows.clone()) {
            Some(rows) => SegmentView::of_decoded(self.reader, rows),
            None => self.load(),
        }
    }

    fn read_once(mut self) -> SegmentView {
        let streams = gucs::decode_after() > 0;
        let (from, to) = (self.rows.start, self.rows.end);
        let sealed = streams.then(|| SealedRows::find(&self.content.runs, from, to));
        let sealed = sealed.flatten();
        match std::mem::replace(&mut self.access, Access::Resident) {
            Access::Once(memory) if sealed.is_some() => {
                self.access = Access::Streamed(Streaming {
                    attributes: None,
                    sealed,
                    keep_images: false,
                    memory,
                });
                self.stream()
            }
            _ => self.load(),
        }
    }

    /// Streams the rows, or decodes them for this backend alone if they cannot be streamed.
    fn stream(mut self) -> SegmentView {
        if let Some(view) = self.in_arena() {
            return view;
        }
        let reader = self.reader;
        let Access::Streamed(streaming) = std::mem::replace(&mut self.access, Access::Resident)
        else {
            unreachable!("only requests to stream are streamed");
        };
        let narrow = streaming.attributes.map(|only| reader.shape.only(only));
        let shape = narrow.as_ref().unwrap_or(&reader.shape);
        let (table, runs) = (reader.table, &self.content.runs);
        if let Some(sealed) = streaming.sealed {
            match sealed.open(table, shape, runs, streaming.memory, streaming.keep_images) {
                Ok(stream) => {
                    let segment = segment_of(self.rows.start);
                    return SegmentView::of_stream(reader, segment, stream);
                }
                Err(NotStreamed::Otherwise) => {}
                Err(NotStreamed::Unreadable(failure)) => error::corrupt(&failure),
            }
        }
        let decoded = self.decode(shape, Remote::Recall);
        SegmentView::of_decoded(reader, Rc::new(decoded))
    }

    fn decode(&self, shape: &TableShape, remote: Remote) -> DecodedRows {
        let (table, runs) = (self.reader.table, &self.content.runs);
        decode::decode_rows(table, shape, runs, self.rows.start, self.rows.end, remote)
    }

    /// Decodes the rows from pages and remembers them: rows that are fetched one by one by TID
    /// mostly lie in the run of the row before.
    fn decode_and_remember(&self) -> Rc<DecodedRows> {
        let sealings = self.content.meta.sealings;
        let key = self.arena_key();
        if let Some(rows) = LastDecoded::get(&key, sealings, self.rows.clone()) {
            return rows;
        }
        let rows = Rc::new(self.decode(&self.reader.shape, Remote::Recall));
        LAST_DECODED.set(rows.is_small().then(|| LastDecoded {
            key,
            sealings,
            rows: rows.clone(),
        }));
        rows
    }

    fn arena_key(&self) -> RelationKey {
        let reader = self.reader;
        shape::arena_key(reader.table, &self.content.meta, reader.shape.fingerprint)
    }
}

impl SegmentView {
    /// The view of decoded rows.
    pub fn of_decoded(reader: &Reader<'_>, decoded: Rc<DecodedRows>) -> SegmentView {
        let dictionaries = decoded.columns.iter().map(Column::dictionary);
        let dictionaries = dictionaries.map(Option::unwrap_or_default).collect();
        let lanes = decoded.columns.iter().map(Column::lane);
        let outlet = RowOutlet::new(&reader.shape.outlets, lanes);
        SegmentView {
            first_row: decoded.first_row,
            end_row: decoded.first_row,
            outlet: Box::new(outlet),
            dictionaries,
            source: Source::Private(decoded),
        }
    }

    /// The view of sealed rows, of this reader's shape or of some of its attributes.
    fn of_stream(reader: &Reader<'_>, segment: u32, stream: Stream) -> SegmentView {
        let attributes = 0..reader.shape.kinds.len();
        let dictionaries = attributes.clone();
        let dictionaries =
            dictionaries.map(|index| stream.rows.dictionary(index).unwrap_or_default());
        let dictionaries = dictionaries.collect();
        let lanes = attributes.map(|index| stream.rows.lane(index));
        let outlet = RowOutlet::new(&reader.shape.outlets, lanes);
        SegmentView {
            first_row: segment_first_row(segment),
            end_row: segment_first_row(segment),
            outlet: Box::new(outlet),
            dictionaries,
            source: Source::Streamed(Box::new(stream)),
        }
    }

    /// The segment as it lies in the arena; `None`: it was evicted since it was loaded.
    fn in_arena(
        reader: &Reader<'_>,
        content: &Content,
        segment: u32,
        to: u64,
    ) -> Option<SegmentView> {
        let first_row = segment_first_row(segment);
        let pinned = content.runs.cached()?.pin_segment(segment)?;
        let end_row = first_row + u64::from(pinned.rows_resident());
        if pinned.columns() != reader.shape.kinds.len() || end_row < to {
            return None;
        }
        pinned.make_wanted_room();
        let dictionaries = (0..pinned.columns())
            .map(|column| pinned.dictionary(column).unwrap_or_default())
            .collect();
        let lanes = (0..pinned.columns()).map(|column| pinned.lane(column));
        // The pin keeps the lanes alive for as long as the view lives.
        let outlet = RowOutlet::new(&reader.shape.outlets, lanes);
        Some(SegmentView {
            first_row,
            end_row,
            outlet: Box::new(outlet),
            dictionaries,
            source: Source::Arena(pinned),
        })
    }

    /// The rows that the view keeps unchanged while it lives. There are none if it serves one look.
    pub fn lasting_rows(&self) -> Range<u64> {
        self.first_row..self.end_row
    }

    /// Whether its rows were decoded for this backend alone.
    pub fn is_private(&self) -> bool {
        !matches!(self.source, Source::Arena(_))
    }

    /// Makes the rows at some places ready to be read in some attributes. Only streamed views need
    /// this. `None` stands for all attributes for which the view was opened.
    pub fn fill(&mut self, places: Range<usize>, attributes: Option<&[usize]>) {
        if let Source::Streamed(stream) = &mut self.source {
            match stream.rows.fill(places, attributes) {
                Ok(()) => stream.note_look(),
                Err(failure) => damaged(self.first_row, &failure),
            }
        }
    }

    /// Reads a value that is passed by value, or a NULL, without decoding its vector. `None`: the
    /// place has to be [filled](Self::fill), or it was filled already.
    pub fn point(&self, attribute: usize, place: usize) -> Option<(pg_sys::Datum, bool)> {
        let Source::Streamed(stream) = &self.source else {
            return None;
        };
        match stream.rows.point(attribute, place) {
            Ok(point) => self.outlet.datum_of(attribute, point?),
            Err(failure) => damaged(self.first_row, &failure),
        }
    }

    /// Appends the values of an attribute at these places as runs of equal values, if the sealed
    /// bytes contain them in that form; false: they do not.
    pub fn repeats(
        &self,
        attribute: usize,
        places: Range<usize>,
        repeats: &mut ValueRepeats,
    ) -> bool {
        match &self.source {
            Source::Streamed(stream) => stream.rows.repeats(attribute, places, repeats),
            Source::Arena(_) | Source::Private(_) => false,
        }
    }

    /// How many vectors of single attributes were decoded for this view.
    pub fn columns_decoded(&self) -> u64 {
        match &self.source {
            Source::Streamed(stream) => stream.rows.decoded() as u64,
            Source::Arena(_) | Source::Private(_) => 0,
        }
    }

    /// Releases the memory of a streamed view, so that another view can use it.
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

    /// The dictionary that the codes of each attribute belong to; empty where there are no codes.
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

    /// The lanes, at an address that stays valid while the view lives.
    pub fn outlet(&self) -> &RowOutlet {
        &self.outlet
    }

    /// The place of a row in the lanes.
    pub fn place(&self, row: u64) -> usize {
        (row - self.first_row) as usize
    }
}
