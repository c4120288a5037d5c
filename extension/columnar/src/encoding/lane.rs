//! An encoded lane, verified once and read a vector at a time.

use std::ops::Range;

use super::block::{Block, Form, Shape};
use super::bytes::{Reader, malformed};
use super::format::{
    ALL_FALSE, ALL_NULLS, ALL_TRUE, BITMAP, CHECKED_AT, CHECKSUM_AT, Class, Header, NO_NULLS,
    ONE_VALUE, SLACK_BYTES, SOME_NULLS, VALUES, checksum, section,
};
use super::items::ItemList;
use super::vector::DecodedVector;
use crate::column::Column;
use crate::error::{Error, Result};
use crate::items::Items;
use crate::kind::LaneKind;
use crate::limits::VECTOR_ROWS;

/// What all rows of a vector or of a run have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Constant<'a> {
    /// NULL.
    Null,
    /// A value of at most 8 bytes, in the low bytes: an integer's two's complement, a float's bits, a bool as 0 or 1.
    Bits(u64),
    /// A value of another fixed width.
    Bytes(&'a [u8]),
    /// A code of the lane's dictionary.
    Code(u32),
}

/// A lane's bytes, read in place. Cheap to copy and to make again.
#[derive(Clone, Copy)]
pub struct EncodedLane<'a> {
    bytes: &'a [u8],
    kind: LaneKind,
    header: Header,
}

impl<'a> EncodedLane<'a> {
    /// Verifies a whole lane: its checksum, and all that reading it relies on.
    ///
    /// # Errors
    /// If the lane is of another kind ([`Error::KindDiffers`]), damaged or of another version ([`Error::EncodedLane`]). A lane of
    /// any kind can be read as [`LaneKind::Absent`].
    pub fn open(bytes: &'a [u8], kind: LaneKind) -> Result<Self> {
        let lane = EncodedLane::reopen(bytes, kind)?;
        let found = &bytes[CHECKSUM_AT..CHECKED_AT];
        if found != checksum(bytes).to_le_bytes() {
            return malformed("its checksum does not match its bytes");
        }
        lane.verify()?;
        Ok(lane)
    }

    /// As [`open`](Self::open) for bytes that were verified before: only the head is looked at, in constant time. Bytes that never
    /// were verified give wrong answers, but nothing out of bounds, except that codes may exceed the dictionary.
    ///
    /// # Errors
    /// If the kind or the head does not suit.
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

    /// The items that the codes of this lane mean, if it has codes.
    pub fn dictionary(&self) -> Option<ItemList> {
        let LaneKind::Varlena { packed, .. } = self.kind else {
            return None;
        };
        if self.header.class != Class::Dictionary {
            return None;
        }
        let mut items = Items::new(packed);
        let section = self.section(self.header.sections() - 1);
        // Verified when opened.
        let _ = section.and_then(|mut reader| {
            let count = self.header.items as usize;
            each_item(&mut reader, count, |item| items.push(item))
        });
        Some(ItemList::new(items))
    }

    /// What every row of a vector has, if the bytes say that it is one value: without decoding.
    pub fn constant(&self, vector: usize) -> Option<Constant<'a>> {
        let mut runs = self.runs(vector)?;
        let (constant, rows) = runs.next()?;
        (rows == self.vector_rows(vector)).then_some(constant)
    }

    /// The runs of equal values of a vector with their rows, if the bytes say that there is nothing else in it: without
    /// decoding. Neighbours may be equal.
    pub fn runs(&self, vector: usize) -> Option<Runs<'a>> {
        let rows = self.vector_rows(vector);
        if rows == 0 {
            return None;
        }
        let one = |constant| Runs(RunsOf::One(Some((constant, rows))));
        if self.is_null() {
            return Some(one(Constant::Null));
        }
        let mut reader = self.vector_section(vector).ok()?;
        if self.header.has_nulls {
            match reader.byte().ok()? {
                NO_NULLS => {}
                ALL_NULLS => return Some(one(Constant::Null)),
                _ => return None,
            }
        }
        match self.header.class {
            Class::Bools => match reader.byte().ok()? {
                ALL_FALSE => Some(one(Constant::Bits(0))),
                ALL_TRUE => Some(one(Constant::Bits(1))),
                _ => None,
            },
            Class::Bytes => match reader.byte().ok()? {
                ONE_VALUE => Some(one(Constant::Bytes(
                    reader.bytes(self.header.width.into()).ok()?,
                ))),
                _ => None,
            },
            Class::Integers | Class::Floats | Class::Dictionary => {
                let shape = self.shape();
                let blocks = Blocks::new(reader, rows, shape);
                let mut all = blocks;
                let is_runs = all
                    .all(|block| block.is_ok_and(|block| matches!(block.form, Form::Constant(_))));
                let is_code = self.header.class == Class::Dictionary;
                is_runs.then_some(Runs(RunsOf::Blocks { blocks, is_code }))
            }
            Class::Null | Class::Items => None,
        }
    }

    /// The names of the encodings in use with how many vectors have them, most used first: for people to read.
    pub fn encodings(&self) -> Vec<(&'static str, usize)> {
        let mut found: Vec<(&'static str, usize)> = Vec::new();
        for vector in 0..self.vectors() {
            let mut names = self.vector_encodings(vector);
            names.sort_unstable();
            names.dedup();
            for name in names {
                match found.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, count)) => *count += 1,
                    None => found.push((name, 1)),
                }
            }
        }
        found.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
        found
    }

    fn vector_encodings(&self, vector: usize) -> Vec<&'static str> {
        let simple = match (self.is_null(), self.header.class) {
            (true, _) => "constant",
            (_, Class::Bools | Class::Bytes) if self.constant(vector).is_some() => "constant",
            (_, Class::Bools) => "bitmap",
            (_, Class::Items | Class::Bytes) => "plain",
            _ => {
                let Ok((reader, Some(_))) = self.vector_body(vector, &mut [0; WORDS]) else {
                    return vec!["constant"];
                };
                let shape = self.shape();
                return Blocks::new(reader, self.vector_rows(vector), shape)
                    .flatten()
                    .map(|block| block.name(shape.float_width))
                    .collect();
            }
        };
        vec![simple]
    }

    /// Decodes a vector. Past the last one there are no rows.
    pub fn decode_vector(&self, vector: usize, out: &mut DecodedVector) {
        let rows = self.vector_rows(vector);
        out.begin(self.kind, self.header.class, rows);
        // Verified when opened; if not, the rest is NULL.
        if rows > 0 && !self.is_null() && self.try_decode(vector, rows, out).is_err() {
            out.begin(self.kind, Class::Null, rows);
        }
    }

    fn try_decode(&self, vector: usize, rows: usize, out: &mut DecodedVector) -> Result<()> {
        let mut validity = [0; WORDS];
        let (mut reader, some_nulls) = self.vector_body(vector, &mut validity)?;
        let Some(some_nulls) = some_nulls else {
            out.begin(self.kind, Class::Null, rows);
            return Ok(());
        };
        if some_nulls {
            out.set_validity(&validity);
        }
        match self.header.class {
            Class::Null => {}
            Class::Bools => match reader.byte()? {
                ALL_FALSE => out.bools().fill(0),
                ALL_TRUE => out.bools().fill(u64::MAX),
                _ => reader.bitmap(rows, out.bools())?,
            },
            Class::Bytes => {
                let width = usize::from(self.header.width);
                match reader.byte()? {
                    ONE_VALUE => out.repeat_value(reader.bytes(width)?),
                    _ => out.put_values(reader.bytes(rows * width)?, width),
                }
            }
            Class::Integers | Class::Floats | Class::Dictionary => {
                self.decode_numbers(Blocks::new(reader, rows, self.shape()), out)?;
                out.narrow();
            }
            Class::Items => each_item(&mut reader, rows, |item| out.push_item(item))?,
        }
        Ok(())
    }

    fn decode_numbers(&self, blocks: Blocks<'a>, out: &mut DecodedVector) -> Result<()> {
        let float_width = blocks.shape.float_width;
        let mut at = 0;
        let mut decoded = None;
        for block in blocks {
            let block = block?;
            let (numbers, pattern) = out.numbers();
            let numbers = &mut numbers[at..at + block.rows];
            if let Form::Pattern { index, first } = block.form {
                if decoded != Some(index) {
                    self.decode_pattern(index, pattern)?;
                    decoded = Some(index);
                }
                numbers.copy_from_slice(&pattern[first..first + block.rows]);
            } else {
                block.decode(numbers, float_width);
            }
            at += block.rows;
        }
        Ok(())
    }

    /// Decodes a pattern; what it does not have stays as it was.
    fn decode_pattern(&self, index: usize, out: &mut [u64]) -> Result<()> {
        let block = self.pattern(index)?;
        if let Some(out) = out.get_mut(..block.rows) {
            block.decode(out, self.shape().float_width);
        }
        Ok(())
    }

    /// The one block of a pattern, whose rows the block says itself.
    fn pattern(&self, index: usize) -> Result<Block<'a>> {
        let mut reader = self.section(index)?;
        Block::parse(&mut reader, VECTOR_ROWS, self.shape().in_pattern())
    }

    /// Appends rows to a column of the kind that the lane was opened with.
    ///
    /// # Errors
    /// If the column is of another kind, or the range is not within the lane. The column is then unchanged.
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
        let items = self.dictionary();
        let items = items.as_ref().map(|items| items.iter().collect::<Vec<_>>());
        let rows_before = into.rows();
        let mut vector = DecodedVector::new();
        let mut first = rows.start;
        while first < rows.end {
            let index = first / VECTOR_ROWS;
            let end = ((index + 1) * VECTOR_ROWS).min(rows.end);
            self.decode_vector(index, &mut vector);
            let part = first - index * VECTOR_ROWS..end - index * VECTOR_ROWS;
            let appended = vector.append(part, items.as_deref().unwrap_or_default(), into);
            if let Err(error) = appended {
                into.truncate(rows_before);
                return Err(error);
            }
            first = end;
        }
        Ok(())
    }

    fn shape(&self) -> Shape {
        Shape {
            float_width: match self.header.class {
                Class::Floats => self.header.width.into(),
                _ => 0,
            },
            patterns: self.header.patterns as usize,
        }
    }

    fn section(&self, index: usize) -> Result<Reader<'a>> {
        section(self.bytes, &self.header, index)
    }

    fn vector_section(&self, vector: usize) -> Result<Reader<'a>> {
        self.section(self.header.patterns as usize + vector)
    }

    /// What follows a vector's marks of NULLs, and whether there are marks, which are then in `validity`; `None` if all are NULL.
    fn vector_body(
        &self,
        vector: usize,
        validity: &mut [u64; WORDS],
    ) -> Result<(Reader<'a>, Option<bool>)> {
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

    fn verify(&self) -> Result<()> {
        let (_, slack) = self.bytes.split_at(self.bytes.len() - SLACK_BYTES);
        if slack.iter().any(|&byte| byte != 0) {
            return malformed("it does not end in zeros");
        }
        let has_blocks = matches!(
            self.header.class,
            Class::Integers | Class::Floats | Class::Dictionary
        );
        if !has_blocks && self.header.patterns > 0
            || self.header.class != Class::Dictionary && self.header.items > 0
        {
            return malformed("patterns or items of a class that has none");
        }
        let mut end = self.header.payload_at();
        for index in 0..self.header.sections() {
            let section = self.section(index)?;
            end += section.remaining();
        }
        if end + SLACK_BYTES != self.bytes.len() {
            return malformed("bytes after its last section");
        }
        if self.header.class == Class::Null {
            return Ok(());
        }
        for index in 0..self.header.patterns as usize {
            self.verify_pattern(index)?;
        }
        if self.header.class == Class::Dictionary {
            let mut reader = self.section(self.header.sections() - 1)?;
            let count = self.header.items as usize;
            if count > self.rows() {
                return malformed("more items than rows");
            }
            each_item(&mut reader, count, |_| ())?;
        }
        let mut decoded = DecodedVector::new();
        for vector in 0..self.vectors() {
            self.verify_vector(vector, &mut decoded)?;
        }
        Ok(())
    }

    fn verify_pattern(&self, index: usize) -> Result<()> {
        let mut reader = self.section(index)?;
        let block = Block::parse(&mut reader, VECTOR_ROWS, self.shape().in_pattern())?;
        block.verify(self.shape().float_width)?;
        reader.end()
    }

    fn verify_vector(&self, vector: usize, decoded: &mut DecodedVector) -> Result<()> {
        let rows = self.vector_rows(vector);
        let mut validity = [0; WORDS];
        let (mut reader, some_nulls) = self.vector_body(vector, &mut validity)?;
        if some_nulls.is_none() {
            return reader.end();
        }
        match self.header.class {
            Class::Null => {}
            Class::Bools => match reader.byte()? {
                ALL_FALSE | ALL_TRUE => {}
                BITMAP => reader.bitmap(rows, &mut validity)?,
                _ => return malformed("the form of its bools is not known"),
            },
            Class::Bytes => {
                let width = usize::from(self.header.width);
                match reader.byte()? {
                    ONE_VALUE => reader.bytes(width)?,
                    VALUES => reader.bytes(rows * width)?,
                    _ => return malformed("the form of its values is not known"),
                };
            }
            Class::Integers | Class::Floats | Class::Dictionary => {
                let mut blocks = Blocks::new(reader, rows, self.shape());
                for block in blocks.by_ref() {
                    let block = block?;
                    block.verify(self.shape().float_width)?;
                    if let Form::Pattern { index, first } = block.form
                        && first + block.rows > self.pattern(index)?.rows
                    {
                        return malformed("a block is outside its pattern");
                    }
                }
                reader = blocks.reader;
                if self.header.class == Class::Dictionary {
                    self.decode_vector(vector, decoded);
                    let items = self.header.items;
                    if decoded.codes().iter().any(|&code| code >= items) {
                        return malformed("a code is outside the dictionary");
                    }
                }
            }
            Class::Items => each_item(&mut reader, rows, |_| ())?,
        }
        reader.end()
    }
}

const WORDS: usize = VECTOR_ROWS / 64;

/// Reads lengths and bytes of `count` items, which fill the section.
fn each_item<'a>(
    reader: &mut Reader<'a>,
    count: usize,
    mut visit: impl FnMut(&'a [u8]),
) -> Result<()> {
    let block_bytes = reader.count()?;
    let mut lengths_of = reader.part(block_bytes)?;
    let mut lengths = [0; VECTOR_ROWS];
    let mut left = count;
    while left > 0 {
        let rows = left.min(VECTOR_ROWS);
        let mut blocks = Blocks::new(lengths_of, rows, Shape::NUMBERS);
        let mut at = 0;
        for block in blocks.by_ref() {
            let block = block?;
            block.verify(0)?;
            block.decode(&mut lengths[at..at + block.rows], 0);
            at += block.rows;
        }
        lengths_of = blocks.reader;
        for &length in &lengths[..rows] {
            let Ok(length) = usize::try_from(length) else {
                return malformed("an item is too long");
            };
            visit(reader.bytes(length)?);
        }
        left -= rows;
    }
    lengths_of.end()?;
    reader.end()
}

/// The blocks of a vector.
#[derive(Clone, Copy)]
struct Blocks<'a> {
    reader: Reader<'a>,
    rows_left: usize,
    shape: Shape,
}

impl<'a> Blocks<'a> {
    fn new(reader: Reader<'a>, rows: usize, shape: Shape) -> Self {
        Blocks {
            reader,
            rows_left: rows,
            shape,
        }
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Result<Block<'a>>;

    fn next(&mut self) -> Option<Result<Block<'a>>> {
        if self.rows_left == 0 {
            return None;
        }
        let block = Block::parse(&mut self.reader, self.rows_left, self.shape);
        match &block {
            Ok(block) => self.rows_left -= block.rows,
            Err(_) => self.rows_left = 0,
        }
        Some(block)
    }
}

/// Runs of equal values with their rows, in order.
pub struct Runs<'a>(RunsOf<'a>);

enum RunsOf<'a> {
    One(Option<(Constant<'a>, usize)>),
    Blocks { blocks: Blocks<'a>, is_code: bool },
}

impl<'a> Iterator for Runs<'a> {
    type Item = (Constant<'a>, usize);

    fn next(&mut self) -> Option<(Constant<'a>, usize)> {
        match &mut self.0 {
            RunsOf::One(run) => run.take(),
            RunsOf::Blocks { blocks, is_code } => {
                let block = blocks.next()?.ok()?;
                let bits = block.constant(blocks.shape.float_width)?;
                let constant = if *is_code {
                    Constant::Code(bits as u32)
                } else {
                    Constant::Bits(bits)
                };
                Some((constant, block.rows))
            }
        }
    }
}
