//! The durable byte form of one run: [`encode`] writes it, [`Image`] reads it.
//!
//! All integers are little-endian; a *varint* is LEB128, at most 5 bytes. Nothing is aligned.
//!
//! | bytes | image |
//! |---|---|
//! | 1 | version, 1 |
//! | 4 | checksum: low half of XXH3-64 of all bytes after it |
//! | varint | rows, at most 65,536 |
//! | varint | columns, at most 1,600 |
//! | for each column | encoding byte, then varint: bytes of its body |
//! | the rest | the bodies, in the order of the columns |
//!
//! | bits | encoding byte |
//! |---|---|
//! | 0-4 | encoding, see below; 10 to 31 are free |
//! | 5-6 | width of item lengths or offsets: 0 = 1 byte, 1 = 2 bytes, 2 = 4 bytes; 0 where there are none |
//! | 7 | the body begins with a validity bitmap: one bit a row, 1 = not NULL, whole bytes, rest 0 |
//!
//! | | encoding | body after the bitmap |
//! |---|---|---|
//! | 0 | all NULL | nothing |
//! | 1 | one bool | 1 byte, 0 or 1 |
//! | 2 | bools | one bit a row, whole bytes |
//! | 3 | one value | its `width` bytes |
//! | 4 | values | `width` bytes a row, without padding, anything under a NULL |
//! | 5 | one item | its bytes |
//! | 6 | items | a length for each row that is not NULL, then their bytes |
//! | 7 | dictionary | varint: items, at least 1; a length an item; their bytes; a code a row |
//! | 8 | offsets | for integers of 2, 4 or 8 bytes: the least of them; what each row's is above it, in fewer bytes |
//! | 9 | sealed | a lane of [`crate::encoding`], NULLs and all |
//!
//! Codes take 1 byte in a dictionary of up to 256 items, 2 of up to 65,536, else 4. Under a NULL
//! lies code 0 when written and anything when read.
//!
//! The reader trusts nothing. What a decoded column takes is bounded by the input and by the rows:
//! the bytes of its body, at most 64 bytes for each item in it, and at most `rows * (stride + 16)`
//! bytes. A small constant image may decode to many rows, and an item that it repeats is stored once.

use std::ops::Range;

use crate::bits;
use crate::column::Column;
use crate::encoding::EncodedLane;
use crate::error::{Error, Result};
use crate::kind::LaneKind;
use crate::limits::{COLUMNS_MAX, IMAGE_ROWS_MAX};

mod fetch;
mod offsets;
mod read;
mod write;

pub use write::{encode, encode_sealed};

use read::ImageReader;

const VERSION: u8 = 1;
const CHECKSUM_OFFSET: usize = 1;
const CHECKED_OFFSET: usize = CHECKSUM_OFFSET + size_of::<u32>();

const ALL_NULL: u8 = 0;
const ONE_BOOL: u8 = 1;
const BOOLS: u8 = 2;
const ONE_VALUE: u8 = 3;
const VALUES: u8 = 4;
const ONE_ITEM: u8 = 5;
const ITEMS: u8 = 6;
const DICTIONARY: u8 = 7;
const OFFSETS: u8 = 8;
const SEALED: u8 = 9;

const ENCODING_MASK: u8 = 0b0001_1111;
const WIDTH_SHIFT: u32 = 5;
const WIDTH_MASK: u8 = 0b11;
const HAS_VALIDITY: u8 = 0b1000_0000;

/// Bytes of a code into a dictionary of `items` items.
fn code_width(items: usize) -> usize {
    match items {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

fn checksum(checked: &[u8]) -> u32 {
    xxhash_rust::xxh3::xxh3_64(checked) as u32
}

/// An image whose checksum and outline are verified. Bodies are verified when they are decoded.
#[derive(Debug, Clone)]
pub struct Image<'a> {
    rows: usize,
    columns: Vec<Part<'a>>,
}

/// One column of an image.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    encoding: u8,
    /// Where in the image the body begins.
    start: usize,
    body: &'a [u8],
}

impl Part<'_> {
    /// Bytes of an item's length, or of an offset.
    fn length_width(&self) -> Result<usize> {
        match self.encoding >> WIDTH_SHIFT & WIDTH_MASK {
            0 => Ok(1),
            1 => Ok(2),
            2 => Ok(4),
            _ => Err(unknown(self)),
        }
    }
}

impl<'a> Image<'a> {
    /// Verifies the outline of an image, which must fill `bytes`.
    ///
    /// # Errors
    /// If the bytes are not an image, are damaged, or are of another version.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        if let Some((head, checked)) = bytes.split_first_chunk::<CHECKED_OFFSET>()
            && head[0] == VERSION
        {
            let [_, found @ ..] = *head;
            let (found, computed) = (u32::from_le_bytes(found), checksum(checked));
            if found != computed {
                return Err(Error::Checksum { found, computed });
            }
        }
        Image::reparse(bytes)
    }

    /// Parses bytes like [`parse`](Self::parse), but does not verify their checksum again.
    ///
    /// # Errors
    /// If the bytes are not an image, or are of another version.
    pub fn reparse(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = ImageReader::new(bytes);
        let [version] = reader.array()?;
        if version != VERSION {
            return Err(Error::Version { version });
        }
        reader.array::<{ CHECKED_OFFSET - 1 }>()?;
        let rows = reader.varint()?;
        if rows as usize > IMAGE_ROWS_MAX {
            return Err(Error::TooManyRows { rows: rows.into() });
        }
        let columns = reader.varint()?;
        if columns as usize > COLUMNS_MAX {
            return Err(Error::TooManyColumns {
                columns: columns.into(),
            });
        }
        let mut outline = reader.clone();
        for _ in 0..columns {
            reader.array::<1>()?;
            reader.varint()?;
        }
        let mut parts = Vec::with_capacity(columns as usize);
        for _ in 0..columns {
            let [encoding] = outline.array()?;
            let start = bytes.len() - reader.len();
            let body = reader.bytes(outline.varint()? as usize)?;
            parts.push(Part {
                encoding,
                start,
                body,
            });
        }
        if !reader.is_empty() {
            return Err(Error::Malformed("bytes after the last column"));
        }
        Ok(Image {
            rows: rows as usize,
            columns: parts,
        })
    }

    /// Rows in the run.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns that the table had when the run was written, dropped ones included.
    #[inline]
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Appends all rows of one column to `into`, whose kind must be `kind`. If the image does not
    /// contain the column, every row is `missing`. For a column of kind [`LaneKind::Absent`], every
    /// row is NULL.
    ///
    /// # Errors
    /// If the column is stored as another kind, or its body is malformed. `into` is then unchanged.
    pub fn decode(
        &self,
        column: usize,
        kind: LaneKind,
        missing: Option<&[u8]>,
        into: &mut Column,
    ) -> Result<()> {
        if into.kind() != kind {
            return Err(Error::KindDiffers {
                kind: into.kind(),
                found: "the kind that was asked for",
            });
        }
        let Some(part) = self.columns.get(column) else {
            return into.try_push_repeated(missing, self.rows);
        };
        if kind == LaneKind::Absent {
            return into.try_push_repeated(None, self.rows);
        }
        if part.encoding == SEALED {
            return self.decode_range(column, kind, missing, 0..self.rows, into);
        }
        self.decode_part(part, kind, into)
    }

    /// Where in the image the lane of a sealed column lies; `None` if the column is not sealed, or
    /// the image does not have it.
    pub fn sealed_lane(&self, column: usize) -> Option<Range<usize>> {
        let part = self.columns.get(column)?;
        (part.encoding == SEALED).then(|| part.start..part.start + part.body.len())
    }

    /// Appends a range of rows of a column of a sealed image, otherwise as
    /// [`decode`](Self::decode).
    ///
    /// # Errors
    /// The errors of [`decode`](Self::decode); also if the range is outside of the rows, or the
    /// column is not sealed.
    pub fn decode_range(
        &self,
        column: usize,
        kind: LaneKind,
        missing: Option<&[u8]>,
        rows: Range<usize>,
        into: &mut Column,
    ) -> Result<()> {
        let part = match self.columns.get(column) {
            Some(part) if kind != LaneKind::Absent => part,
            Some(_) => return into.try_push_repeated(None, rows.len()),
            None => return into.try_push_repeated(missing, rows.len()),
        };
        if part.encoding != SEALED {
            return Err(unknown(part));
        }
        // The checksum of the image vouches for the lane.
        let lane = EncodedLane::reopen(part.body, kind)?;
        if lane.rows() != self.rows {
            return Err(Error::Malformed("a sealed lane has other rows"));
        }
        lane.decode(rows, into)
    }

    /// Verifies everything that decoding a sealed image relies on, for bytes from an untrusted
    /// source: the form of the image and its lanes, and each item that is not NULL with `is_item`.
    ///
    /// # Errors
    /// If a column is not sealed or is malformed, or if `is_item` rejects an item.
    pub fn verify_sealed(&self, mut is_item: impl FnMut(usize, &[u8]) -> bool) -> Result<()> {
        for (column, part) in self.columns.iter().enumerate() {
            if part.encoding != SEALED {
                return Err(unknown(part));
            }
            let lane = EncodedLane::verify_items(part.body, |item| is_item(column, item))?;
            if lane.rows() != self.rows {
                return Err(Error::Malformed("a sealed lane has other rows"));
            }
        }
        Ok(())
    }

    /// Decodes a part that is not sealed, otherwise as [`decode`](Self::decode).
    fn decode_part(&self, part: &Part<'_>, kind: LaneKind, into: &mut Column) -> Result<()> {
        let rows = self.rows;
        let mut reader = ImageReader::new(part.body);
        let validity = match part.encoding & HAS_VALIDITY {
            0 => None,
            _ => Some(reader.bitmap(rows)?),
        };
        let validity = validity.as_deref();
        let encoding = part.encoding & ENCODING_MASK;
        let length_width = part.length_width()?;
        match (encoding, kind) {
            (ALL_NULL, _) => {
                reader.end()?;
                into.try_push_repeated(None, rows)
            }
            (ONE_BOOL, LaneKind::Bool) => {
                let value = reader.rest();
                if !matches!(value, [0] | [1]) {
                    return Err(Error::Malformed("a bool is neither 0 nor 1"));
                }
                into.extend_constant(value, validity, rows)
            }
            (BOOLS, LaneKind::Bool) => {
                let values = reader.bitmap(rows)?;
                reader.end()?;
                into.extend_bools(&values, validity, rows);
                Ok(())
            }
            (ONE_VALUE, LaneKind::Fixed { .. }) | (ONE_ITEM, LaneKind::Varlena { .. }) => {
                into.extend_constant(reader.rest(), validity, rows)
            }
            (VALUES, LaneKind::Fixed { width, .. }) => {
                let values = values_of_width(reader.rest(), rows, width.into())?;
                into.extend_fixed(values, validity, rows);
                Ok(())
            }
            (
                OFFSETS,
                LaneKind::Fixed {
                    width: width @ (2 | 4 | 8),
                    ..
                },
            ) => {
                let values = values_of_offsets(reader.rest(), rows, width.into(), length_width)?;
                into.extend_fixed(&values, validity, rows);
                Ok(())
            }
            (ITEMS, LaneKind::Varlena { .. }) => {
                decode_items(reader, length_width, validity, rows, into)
            }
            (DICTIONARY, LaneKind::Varlena { .. }) => {
                decode_codes(reader, length_width, validity, rows, into)
            }
            (ONE_BOOL | BOOLS, _) => Err(differs(kind, "bools")),
            (ONE_VALUE | VALUES | OFFSETS, _) => Err(differs(kind, "values of fixed width")),
            (ONE_ITEM | ITEMS | DICTIONARY, _) => Err(differs(kind, "items")),
            _ => Err(unknown(part)),
        }
    }
}

/// Values of a width, of which there is one a row.
fn values_of_width(values: &[u8], rows: usize, width: usize) -> Result<&[u8]> {
    if values.len() != rows * width {
        return Err(Error::WidthDiffers {
            width,
            bytes: values.len() / rows.max(1),
        });
    }
    Ok(values)
}

/// The values of integers that are stored as their distances from the least of them.
fn values_of_offsets(
    body: &[u8],
    rows: usize,
    width: usize,
    offset_width: usize,
) -> Result<Vec<u8>> {
    let base_bytes = body.len().saturating_sub(rows * offset_width);
    if base_bytes != width || offset_width >= width {
        return Err(Error::WidthDiffers {
            width,
            bytes: base_bytes,
        });
    }
    let (least, offsets) = body.split_at(width);
    // The sign is above the bytes that count.
    let mut base = [0; 8];
    base[..width].copy_from_slice(least);
    let base = i64::from_le_bytes(base);
    Ok(offsets::read(offsets, offset_width, base, width))
}

/// Decodes a body of items, one for each row that is not NULL.
fn decode_items(
    mut reader: ImageReader<'_>,
    length_width: usize,
    validity: Option<&[u64]>,
    rows: usize,
    into: &mut Column,
) -> Result<()> {
    let valid = validity.map_or(rows, |bits| bits::count_ones(bits, 0, rows));
    let items = reader.items(valid, length_width)?;
    reader.end()?;
    push_items(into, items, validity, rows);
    Ok(())
}

/// Decodes a body of the items of a dictionary and of a code for each row.
fn decode_codes(
    mut reader: ImageReader<'_>,
    length_width: usize,
    validity: Option<&[u64]>,
    rows: usize,
    into: &mut Column,
) -> Result<()> {
    let count = reader.varint()? as usize;
    let items = reader.items(count, length_width)?.collect::<Vec<_>>();
    let codes = reader.integers(rows, code_width(count))?;
    reader.end()?;
    into.extend_codes(&codes.collect::<Vec<_>>(), &items, validity)
}

/// Appends an item for each row that is not NULL.
fn push_items<'a>(
    into: &mut Column,
    mut items: impl Iterator<Item = &'a [u8]>,
    validity: Option<&[u64]>,
    rows: usize,
) {
    for row in 0..rows {
        if validity.is_none_or(|validity| bits::get(validity, row)) {
            into.push_item(items.next().unwrap_or_default());
        } else {
            into.push_null();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;

fn unknown(part: &Part<'_>) -> Error {
    Error::Encoding {
        encoding: part.encoding,
    }
}

fn differs(kind: LaneKind, found: &'static str) -> Error {
    Error::KindDiffers { kind, found }
}
