//! A column to an encoded lane.

use std::collections::HashMap;
use std::ops::Range;

use super::LANE_ROWS_MAX;
use super::block_write::BlockWriter;
use super::bytes::write_bitmap;
use super::format::{
    ALL_FALSE, ALL_NULLS, ALL_TRUE, BITMAP, CHECKED_AT, CHECKSUM_AT, Class, Header, NO_NULLS,
    ONE_VALUE, SLACK_BYTES, SOME_NULLS, VALUES, checksum,
};
use super::item_bytes::write_items;
use super::pattern;
use super::words::{self, Widening};
use crate::bits;
use crate::body::Body;
use crate::column::Column;
use crate::error::{Error, Result};
use crate::items::Items;
use crate::kind::LaneKind;
use crate::limits::{IMAGE_BYTES_MAX, VECTOR_ROWS};

/// Dictionaries of more items stay in the order in which these came: sorting them would be felt,
/// and others will hardly have the same.
const SORTED_ITEMS_MAX: usize = 4096;

/// Encodes a column. `starts` are the rows at which a new key starts, ascending (see
/// [`key_starts`](super::key_starts)). An empty list is always correct, but may cost bytes.
///
/// # Errors
/// If there are more than [`LANE_ROWS_MAX`] rows, or the result has more than [`IMAGE_BYTES_MAX`]
/// bytes.
pub fn encode_lane(column: &Column, starts: &[u32]) -> Result<Vec<u8>> {
    let rows = column.rows();
    if rows > LANE_ROWS_MAX {
        return Err(Error::TooManyRows { rows: rows as u64 });
    }
    let bytes = column.byte_len();
    if bytes > IMAGE_BYTES_MAX {
        return Err(Error::ImageTooLarge { bytes });
    }
    let validity = column.validity();
    let mut writer = LaneWriter {
        validity,
        rows,
        sections: Vec::new(),
        ends: Vec::new(),
        patterns: 0,
        items: 0,
    };
    let (class, width) = match column.body() {
        _ if column.null_count() == rows => (Class::Null, 0),
        Body::Absent => (Class::Null, 0),
        Body::Bool(bitmap) => {
            writer.bools(bitmap.words());
            (Class::Bools, 0)
        }
        Body::Fixed {
            width,
            stride,
            values,
        } => (
            writer.fixed(column, *width, *stride, values, starts),
            *width,
        ),
        Body::Coded { codes, dictionary } => {
            writer.coded(codes, dictionary.items(), starts);
            (Class::Dictionary, 0)
        }
        Body::Plain(items) if writer.has_shared(items) => {
            writer.shared(items, starts);
            (Class::Dictionary, 0)
        }
        Body::Plain(items) => {
            writer.items(items);
            (Class::Items, 0)
        }
    };
    let header = Header {
        class,
        is_marked: matches!(class, Class::Dictionary | Class::Items),
        has_nulls: validity.is_some() && class != Class::Null,
        width: width as u16,
        rows: rows as u32,
        patterns: writer.patterns,
        items: writer.items,
    };
    writer.finish(&header)
}

/// The sections of a lane, as they come into being.
struct LaneWriter<'a> {
    validity: Option<&'a [u64]>,
    rows: usize,
    sections: Vec<u8>,
    ends: Vec<usize>,
    patterns: u32,
    items: u32,
}

impl LaneWriter<'_> {
    fn end_section(&mut self) {
        self.ends.push(self.sections.len());
    }

    fn vectors(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let rows = self.rows;
        (0..rows)
            .step_by(VECTOR_ROWS)
            .map(move |first| first..(first + VECTOR_ROWS).min(rows))
    }

    /// Writes the marks of the NULLs of a vector. Returns whether any row is not NULL.
    fn nulls(&mut self, rows: &Range<usize>) -> bool {
        let Some(validity) = self.validity else {
            return true;
        };
        let valid = bits::count_ones(validity, rows.start, rows.len());
        if valid == rows.len() {
            self.sections.push(NO_NULLS);
        } else if valid == 0 {
            self.sections.push(ALL_NULLS);
        } else {
            self.sections.push(SOME_NULLS);
            // Vectors begin at whole words.
            write_bitmap(&validity[rows.start / 64..], rows.len(), &mut self.sections);
        }
        valid > 0
    }

    fn bools(&mut self, values: &[u64]) {
        for rows in self.vectors() {
            if self.nulls(&rows) {
                match bits::count_ones(values, rows.start, rows.len()) {
                    0 => self.sections.push(ALL_FALSE),
                    ones if ones == rows.len() => self.sections.push(ALL_TRUE),
                    _ => {
                        self.sections.push(BITMAP);
                        write_bitmap(&values[rows.start / 64..], rows.len(), &mut self.sections);
                    }
                }
            }
            self.end_section();
        }
    }

    fn fixed(
        &mut self,
        column: &Column,
        width: usize,
        stride: usize,
        values: &[u8],
        starts: &[u32],
    ) -> Class {
        let class = match column.kind() {
            LaneKind::Fixed {
                width,
                stride,
                number,
            } => Class::of_fixed(width, stride, number),
            _ => Class::Bytes,
        };
        let (widening, float_width) = match class {
            Class::Floats => (Widening::Zero, width),
            Class::Integers => (Widening::Signed, 0),
            _ => {
                self.byte_values(values, width, stride);
                return class;
            }
        };
        let words = words::numbers(values, width, widening, self.validity);
        self.numbers(&words, float_width, starts);
        class
    }

    fn byte_values(&mut self, values: &[u8], width: usize, stride: usize) {
        for rows in self.vectors() {
            if self.nulls(&rows) {
                let value = |row: usize| &values[row * stride..row * stride + width];
                let mut valid = rows
                    .clone()
                    .filter(|&row| self.validity.is_none_or(|bits| bits::get(bits, row)));
                let first = value(valid.next().unwrap_or(rows.start));
                if valid.all(|row| value(row) == first) {
                    self.sections.push(ONE_VALUE);
                    self.sections.extend_from_slice(first);
                } else {
                    self.sections.push(VALUES);
                    for row in rows {
                        self.sections.extend_from_slice(value(row));
                    }
                }
            }
            self.end_section();
        }
    }

    /// Vectors of blocks, and the patterns that they name.
    fn numbers(&mut self, words: &[u64], float_width: usize, starts: &[u32]) {
        let cut = pattern::cut(words, starts);
        let mut blocks = BlockWriter::new(float_width);
        for rows in &cut.patterns {
            // A pattern contains its number of rows.
            blocks.write(&words[rows.clone()], false, &mut self.sections);
            self.end_section();
        }
        self.patterns = cut.patterns.len() as u32;
        let mut chunks = &cut.chunks[..];
        for rows in self.vectors() {
            // Chunks that end before this vector are done with.
            while let [first, rest @ ..] = chunks
                && first.rows.end <= rows.start
            {
                chunks = rest;
            }
            if self.nulls(&rows) {
                let count = chunks.partition_point(|chunk| chunk.rows.start < rows.end);
                blocks.write_vector(words, rows, &chunks[..count], &mut self.sections);
            }
            self.end_section();
        }
    }

    /// Whether rows share the bytes of items, so that written one by one they might take any
    /// amount.
    fn has_shared(&self, items: &Items) -> bool {
        let bytes: usize = (0..self.rows).map(|row| items.length(row)).sum();
        bytes > items.heap().len()
    }

    /// Items of which rows share the bytes: each is written once.
    fn shared(&mut self, items: &Items, starts: &[u32]) {
        let mut codes = Vec::with_capacity(self.rows);
        let mut known = HashMap::new();
        for row in 0..self.rows {
            let place = (items.slot(row), items.length(row));
            codes.push(*known.entry(place).or_insert(row) as u32);
        }
        self.coded(&codes, items, starts);
    }

    fn coded(&mut self, codes: &[u32], items: &Items, starts: &[u32]) {
        // Only items that rows have are kept.
        const UNUSED: u32 = u32::MAX;
        let mut own = vec![UNUSED; items.len()];
        let mut used = Vec::new();
        let mut words = vec![0; codes.len()];
        let (mut last, mut changes) = (UNUSED, 0);
        for (row, (&code, word)) in codes.iter().zip(&mut words).enumerate() {
            if self.validity.is_none_or(|bits| bits::get(bits, row)) {
                let own = &mut own[code as usize];
                if *own == UNUSED {
                    *own = used.len() as u32;
                    used.push(code as usize);
                }
                changes += usize::from(*own != last);
                last = *own;
                *word = u64::from(*own);
            }
        }
        // Keys, each of which appears in one stretch, keep their order of appearance. Items that
        // come and go are sorted: segments with equal items then have equal dictionaries, which are
        // read once.
        if changes > used.len() && used.len() <= SORTED_ITEMS_MAX {
            let mut order: Vec<usize> = (0..used.len()).collect();
            order.sort_unstable_by_key(|&own| items.item(used[own]));
            let mut place_of = vec![0; used.len()];
            for (place, &own) in order.iter().enumerate() {
                place_of[own] = place as u64;
            }
            words.iter_mut().for_each(|word| {
                *word = place_of.get(*word as usize).copied().unwrap_or_default();
            });
            used = order.into_iter().map(|own| used[own]).collect();
        }
        words::fill_nulls(&mut words, self.validity);
        self.numbers(&words, 0, starts);
        self.items = used.len() as u32;
        let used = used.iter().map(|&index| items.item(index));
        write_items(used, &mut self.sections);
        self.end_section();
    }

    fn items(&mut self, items: &Items) {
        for rows in self.vectors() {
            if self.nulls(&rows) {
                // The item of a NULL row is already empty.
                let items = rows.map(|row| items.item(row));
                write_items(items, &mut self.sections);
            }
            self.end_section();
        }
    }

    fn finish(self, header: &Header) -> Result<Vec<u8>> {
        let bytes = header.payload_at() + self.sections.len() + SLACK_BYTES;
        if bytes > IMAGE_BYTES_MAX {
            return Err(Error::ImageTooLarge { bytes });
        }
        let mut lane = Vec::with_capacity(bytes);
        header.write(&mut lane);
        for end in &self.ends {
            lane.extend_from_slice(&(*end as u32).to_le_bytes());
        }
        debug_assert_eq!(lane.len(), header.payload_at());
        lane.extend_from_slice(&self.sections);
        lane.extend_from_slice(&[0; SLACK_BYTES]);
        let checksum = checksum(&lane);
        lane[CHECKSUM_AT..CHECKED_AT].copy_from_slice(&checksum.to_le_bytes());
        Ok(lane)
    }
}
