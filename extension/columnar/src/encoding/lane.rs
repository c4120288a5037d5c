//! An encoded lane, verified once and read a vector at a time.

use std::ops::Range;

use super::block::{Block, BlockLayout, Form};
use super::blocks::Blocks;
use super::bytes::{ByteReader, malformed};
use super::format::{
    ALL_FALSE, ALL_NULLS, ALL_TRUE, CHECKED_AT, CHECKSUM_AT, Class, Header, NO_NULLS, ONE_VALUE,
    SOME_NULLS, checksum, section,
};
use super::item_bytes::{each_item, items_together};
use super::items::ItemList;
use super::kernel;
use super::vector::{DecodedVector, Room, Values};
use crate::bits::{self, Bitmap};
use crate::column::Column;
use crate::error::{Error, Result};
use crate::items::Items;
use crate::kind::LaneKind;
use crate::limits::VECTOR_ROWS;

/// A lane's bytes, read in place. Cheap to copy and to make again.
#[derive(Clone, Copy)]
pub struct EncodedLane<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) kind: LaneKind,
    pub(super) header: Header,
}

impl<'a> EncodedLane<'a> {
    /// Verifies a whole lane: its checksum, and all that reading it relies on.
    ///
    /// # Errors
    /// If the lane is of another kind ([`Error::KindDiffers`]), damaged or of another version
    /// ([`Error::EncodedLane`]). A lane of any kind can be read as [`LaneKind::Absent`].
    pub fn open(bytes: &'a [u8], kind: LaneKind) -> Result<Self> {
        let lane = EncodedLane::reopen(bytes, kind)?;
        let found = &bytes[CHECKSUM_AT..CHECKED_AT];
        if found != checksum(bytes).to_le_bytes() {
            return malformed("its checksum does not match its bytes");
        }
        lane.verify()?;
        Ok(lane)
    }

    /// Opens bytes that were verified before by [`open`](Self::open): it checks only the head, in
    /// constant time. Bytes that were never verified decode to wrong values, but stay within
    /// bounds, except that codes may exceed the dictionary.
    ///
    /// # Errors
    /// If the kind or the head does not fit.
    pub fn reopen(bytes: &'a [u8], kind: LaneKind) -> Result<Self> {
        let header = Header::read(bytes, kind)?;
        Ok(EncodedLane {
            bytes,
            kind,
            header,
        })
    }

    /// Rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.header.rows as usize
    }

    /// Vectors of [`VECTOR_ROWS`] rows, the last of which may have fewer.
    #[inline]
    pub fn vectors(&self) -> usize {
        self.header.vectors()
    }

    /// Rows of a vector; 0 past the last.
    #[inline]
    pub fn vector_rows(&self, vector: usize) -> usize {
        self.rows()
            .saturating_sub(vector * VECTOR_ROWS)
            .min(VECTOR_ROWS)
    }

    /// Bytes that the lane takes.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether every row is NULL.
    #[inline]
    pub fn is_null(&self) -> bool {
        self.header.class == Class::Null || self.kind == LaneKind::Absent
    }

    /// Whether some row may be NULL.
    #[inline]
    pub fn may_have_nulls(&self) -> bool {
        self.header.has_nulls || self.is_null()
    }

    /// The items that the codes of this lane mean, if it has codes.
    pub fn dictionary(&self) -> Option<ItemList> {
        let bytes = self.dictionary_section()?;
        let mut items = Items::new(self.kind.is_packed());
        let section = self.section(self.header.sections() - 1);
        // Verified when opened.
        let _ = section.and_then(|mut reader| {
            let count = self.header.items as usize;
            let mut room = Vec::new();
            each_item(
                &mut reader,
                count,
                self.header.is_marked,
                &mut room,
                |item| {
                    items.push(item);
                },
            )
        });
        Some(ItemList::new(items, bytes, self.header.is_marked))
    }

    /// The bytes of the dictionary, if this is a lane of codes.
    pub(super) fn dictionary_section(&self) -> Option<&'a [u8]> {
        if self.header.class != Class::Dictionary || !matches!(self.kind, LaneKind::Varlena { .. })
        {
            return None;
        }
        let mut section = self.section(self.header.sections() - 1).ok()?;
        section.bytes(section.remaining()).ok()
    }

    /// Decodes a vector. Past the last one there are no rows.
    pub fn decode_vector(&self, vector: usize, out: &mut DecodedVector) {
        let rows = self.vector_rows(vector);
        // Verified when opened; if not, all of it is NULL.
        if self.try_decode_vector(vector, out).is_err() {
            out.begin(self.kind, Class::Null, rows);
        }
    }

    /// Decodes a vector like [`decode_vector`](Self::decode_vector), of bytes that are verified by
    /// a checksum alone.
    ///
    /// # Errors
    /// If the vector is damaged.
    pub fn try_decode_vector(&self, vector: usize, out: &mut DecodedVector) -> Result<()> {
        self.try_decode_vector_to(vector, None, out).map(|_| ())
    }

    /// Decodes a vector like [`try_decode_vector`](Self::try_decode_vector), into `values` instead
    /// of `out` if the values fit there: they have that width and number, and not all are NULL.
    /// Returns whether `values` was written.
    ///
    /// # Errors
    /// If the vector is damaged. The contents of `values` are then unspecified.
    pub fn try_decode_vector_to(
        &self,
        vector: usize,
        values: Option<Values<'_>>,
        out: &mut DecodedVector,
    ) -> Result<bool> {
        let rows = self.vector_rows(vector);
        out.begin(self.kind, self.header.class, rows);
        match rows > 0 && !self.is_null() {
            true => self.try_decode(vector, rows, values, out),
            false => Ok(false),
        }
    }

    /// Decodes the blocks of a vector that have some of these rows, into `values`, which have room for the whole
    /// vector. Other elements of `values` stay as they are. `out` gets the marks of NULLs of all rows. Returns the rows
    /// that were decoded. Returns `None` if they can only be decoded with the whole vector: the lane has no blocks, its
    /// values do not fit `values`, or all of them are NULL.
    ///
    /// # Errors
    /// If the vector is damaged. The contents of `values` are then unspecified.
    pub fn try_decode_part_to(
        &self,
        vector: usize,
        wanted: Range<usize>,
        values: Values<'_>,
        out: &mut DecodedVector,
    ) -> Result<Option<Range<usize>>> {
        let (rows, class) = (self.vector_rows(vector), self.header.class);
        let has_blocks = matches!(class, Class::Integers | Class::Floats | Class::Dictionary);
        if !has_blocks || self.is_null() || wanted.end > rows {
            return Ok(None);
        }
        out.begin(self.kind, class, rows);
        let mut validity = [0; WORDS];
        let (reader, some_nulls) = self.vector_body(vector, &mut validity)?;
        match some_nulls {
            None => return Ok(None),
            Some(true) => out.set_validity(&validity),
            Some(false) => {}
        }
        let (room, is_there) = out.numbers(Some(values));
        if !is_there {
            return Ok(None);
        }
        let blocks = Blocks::new(reader, rows, self.block_layout());
        self.decode_numbers(blocks, wanted, room).map(Some)
    }

    fn try_decode(
        &self,
        vector: usize,
        rows: usize,
        values: Option<Values<'_>>,
        out: &mut DecodedVector,
    ) -> Result<bool> {
        let mut validity = [0; WORDS];
        let (mut reader, some_nulls) = self.vector_body(vector, &mut validity)?;
        let Some(some_nulls) = some_nulls else {
            out.begin(self.kind, Class::Null, rows);
            return Ok(false);
        };
        let mut is_there = false;
        if some_nulls {
            out.set_validity(&validity);
        }
        match self.header.class {
            Class::Null => {}
            Class::Bools => {
                let bools;
                (bools, is_there) = out.bools(values);
                match reader.byte()? {
                    ALL_FALSE => bools.fill(0),
                    ALL_TRUE => bools.fill(u64::MAX),
                    _ => reader.bitmap(rows, bools)?,
                }
            }
            Class::Bytes => {
                let width = usize::from(self.header.width);
                match reader.byte()? {
                    ONE_VALUE => out.repeat_value(reader.bytes(width)?),
                    _ => out.put_values(reader.bytes(rows * width)?, width),
                }
            }
            Class::Integers | Class::Floats | Class::Dictionary => {
                let room;
                (room, is_there) = out.numbers(values);
                let blocks = Blocks::new(reader, rows, self.block_layout());
                self.decode_numbers(blocks, 0..rows, room)?;
                out.narrow();
            }
            Class::Items => {
                let (items, room) = out.items();
                each_item(&mut reader, rows, self.header.is_marked, room, |item| {
                    items.push(item);
                })?;
            }
        }
        Ok(is_there)
    }

    /// Decodes the blocks that have some of these rows, and returns their rows.
    fn decode_numbers(
        &self,
        blocks: Blocks<'a>,
        wanted: Range<usize>,
        room: Room<'_>,
    ) -> Result<Range<usize>> {
        let float_width = blocks.layout.float_width;
        let mut at = 0;
        let mut first = None;
        let mut decoded = None;
        for block in blocks {
            if at >= wanted.end {
                break;
            }
            let block = block?;
            let rows = at..at + block.rows;
            at = rows.end;
            if at <= wanted.start {
                continue;
            }
            first = first.or(Some(rows.start));
            if let Form::Pattern { index, first } = block.form {
                if decoded != Some(index) {
                    self.decode_pattern(index, room.pattern)?;
                    decoded = Some(index);
                }
                let numbers = &room.pattern[first..first + block.rows];
                if room.is_narrow {
                    kernel::narrow(numbers, &mut room.narrow[rows]);
                } else {
                    room.wide[rows].copy_from_slice(numbers);
                }
            } else if room.is_narrow {
                block.decode_narrow(
                    &mut room.narrow[rows.clone()],
                    &mut room.wide[rows],
                    float_width,
                );
            } else {
                block.decode(&mut room.wide[rows], float_width);
            }
        }
        Ok(first.unwrap_or(at)..at)
    }

    /// Decodes a pattern. Elements of `out` past its rows are unchanged.
    fn decode_pattern(&self, index: usize, out: &mut [u64]) -> Result<()> {
        let block = self.pattern(index)?;
        if let Some(out) = out.get_mut(..block.rows) {
            block.decode(out, self.block_layout().float_width);
        }
        Ok(())
    }

    /// The one block of a pattern, which contains its number of rows.
    pub(super) fn pattern(&self, index: usize) -> Result<Block<'a>> {
        let mut reader = self.section(index)?;
        Block::parse(&mut reader, VECTOR_ROWS, self.block_layout().in_pattern())
    }

    /// Appends rows to a column of the kind that the lane was opened with.
    ///
    /// # Errors
    /// If the column is of another kind, the range is not within the lane, or a vector is damaged. The
    /// column is then unchanged.
    pub fn decode(&self, rows: Range<usize>, into: &mut Column) -> Result<()> {
        if rows.start > rows.end || rows.end > self.rows() {
            return malformed("it does not have the rows asked for");
        }
        if into.kind() != self.kind {
            return Err(Error::KindDiffers {
                kind: into.kind(),
                found: self.header.class.name(),
            });
        }
        let before = into.rows();
        if self.header.class == Class::Items && self.kind != LaneKind::Absent {
            let decoded = self.decode_items(rows, into);
            return decoded.inspect_err(|_| into.truncate(before));
        }
        let mut vector = DecodedVector::new();
        if self.header.class == Class::Dictionary && self.kind != LaneKind::Absent {
            return self.decode_codes(rows, &mut vector, into);
        }
        for (index, part) in parts(rows) {
            if let Err(damage) = self.try_decode_vector(index, &mut vector) {
                into.truncate(before);
                return Err(damage);
            }
            vector.append(part, into);
        }
        Ok(())
    }

    /// Appends items that have no codes. After an error some of them are appended.
    fn decode_items(&self, rows: Range<usize>, into: &mut Column) -> Result<()> {
        let (mut room, mut lengths) = (Vec::new(), [0; VECTOR_ROWS]);
        for (index, part) in parts(rows) {
            let mut validity = [0; WORDS];
            let (mut reader, some_nulls) = self.vector_body(index, &mut validity)?;
            let Some(some_nulls) = some_nulls else {
                into.push_repeated(None, part.len());
                continue;
            };
            let lengths = &mut lengths[..self.vector_rows(index)];
            let is_marked = self.header.is_marked;
            let mut bytes = items_together(&mut reader, is_marked, &mut room, lengths)?;
            let is_whole = part.len() == lengths.len();
            let validity = some_nulls.then_some(&validity[..]);
            if is_whole && into.extend_short_items(lengths, bytes, validity) {
                continue;
            }
            for (row, &length) in lengths.iter().enumerate() {
                // All lengths together are the number of bytes.
                let (item, rest) = bytes.split_at(length as usize);
                bytes = rest;
                if part.contains(&row) {
                    match validity.is_some_and(|validity| !bits::get(validity, row)) {
                        true => into.push_null(),
                        false => into.push_item(item),
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends items by their codes, all at once: each item is then searched for in the column only
    /// once.
    fn decode_codes(
        &self,
        rows: Range<usize>,
        vector: &mut DecodedVector,
        into: &mut Column,
    ) -> Result<()> {
        let count = rows.len();
        let (mut codes, mut validity) = (Vec::with_capacity(count), Bitmap::new());
        for (index, part) in parts(rows) {
            self.try_decode_vector(index, vector)?;
            match vector.codes().get(part.clone()) {
                Some(part) => codes.extend_from_slice(part),
                None => codes.resize(codes.len() + part.len(), 0),
            }
            vector.append_validity(part, &mut validity);
        }
        let mut items = Vec::new();
        let mut reader = self.section(self.header.sections() - 1)?;
        let item_count = self.header.items as usize;
        let mut room = Vec::new();
        each_item(
            &mut reader,
            item_count,
            self.header.is_marked,
            &mut room,
            |item| items.push(item),
        )?;
        let has_nulls = bits::count_ones(validity.words(), 0, count) < count;
        into.extend_codes(&codes, &items, has_nulls.then(|| validity.words()))
    }

    pub(super) fn block_layout(&self) -> BlockLayout {
        BlockLayout {
            float_width: match self.header.class {
                Class::Floats => self.header.width.into(),
                _ => 0,
            },
            patterns: self.header.patterns as usize,
        }
    }

    pub(super) fn section(&self, index: usize) -> Result<ByteReader<'a>> {
        section(self.bytes, &self.header, index)
    }

    pub(super) fn vector_section(&self, vector: usize) -> Result<ByteReader<'a>> {
        self.section(self.header.patterns as usize + vector)
    }

    /// The bytes after a vector's marks of NULLs, and whether there are marks, which are then in
    /// `validity`; `None` if all rows are NULL.
    pub(super) fn vector_body(
        &self,
        vector: usize,
        validity: &mut [u64; WORDS],
    ) -> Result<(ByteReader<'a>, Option<bool>)> {
        let mut reader = self.vector_section(vector)?;
        let mut some_nulls = Some(false);
        if self.header.has_nulls {
            match reader.byte()? {
                NO_NULLS => {}
                ALL_NULLS => some_nulls = None,
                SOME_NULLS => {
                    reader.bitmap(self.vector_rows(vector), validity)?;
                    some_nulls = Some(true);
                }
                _ => return malformed("its marks of NULLs are not known"),
            }
        }
        Ok((reader, some_nulls))
    }
}

/// The vectors that have some of these rows, and which rows of each.
fn parts(rows: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let vectors = rows.start / VECTOR_ROWS..rows.end.div_ceil(VECTOR_ROWS);
    vectors.map(move |index| {
        let first = index * VECTOR_ROWS;
        let end = rows.end.min(first + VECTOR_ROWS);
        (index, rows.start.max(first) - first..end - first)
    })
}

/// Words of a bitmap over one vector.
pub(super) const WORDS: usize = VECTOR_ROWS / 64;
