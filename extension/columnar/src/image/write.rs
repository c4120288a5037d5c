//! Writing an image: the smallest form of each column is chosen first, then all is written once.

use super::offsets::{self, Offsets};
use super::{
    ALL_NULL, BOOLS, CHECKED_OFFSET, CHECKSUM_OFFSET, DICTIONARY, HAS_VALIDITY, ITEMS, OFFSETS,
    ONE_BOOL, ONE_ITEM, ONE_VALUE, SEALED, VALUES, VERSION, WIDTH_SHIFT, checksum, code_width,
};
use crate::bits;
use crate::body::Body;
use crate::column::Column;
use crate::encoding::{EncodedLane, encode_lane};
use crate::error::{Error, Result};
use crate::items::Items;
use crate::limits::{COLUMNS_MAX, IMAGE_BYTES_MAX, IMAGE_ROWS_MAX};
use crate::part::StoredColumn;

const VARINT_BYTES_MAX: usize = 5;

/// How one column will be written.
#[derive(Clone, Copy)]
struct Plan {
    /// The encoding byte, without the width of lengths.
    encoding: u8,
    /// Bytes of an item's length, where there are items, or of an offset.
    length_width: usize,
    /// The base of the offsets.
    base: i64,
    /// Bytes of the body.
    bytes: usize,
}

impl Plan {
    /// A column without offsets and without NULLs in its body.
    fn of(encoding: u8, length_width: usize, bytes: usize) -> Plan {
        Plan {
            encoding,
            length_width,
            base: 0,
            bytes,
        }
    }
}

/// Appends the image of `rows` rows to `out`.
///
/// # Errors
/// If a column has another number of rows, or there is too much for one image. `out` is then
/// unchanged.
pub fn encode(columns: &[Column], rows: usize, out: &mut Vec<u8>) -> Result<()> {
    if rows > IMAGE_ROWS_MAX {
        return Err(Error::TooManyRows { rows: rows as u64 });
    }
    if columns.len() > COLUMNS_MAX {
        return Err(Error::TooManyColumns {
            columns: columns.len() as u64,
        });
    }
    let mut plans = Vec::with_capacity(columns.len());
    let mut bytes_max = CHECKED_OFFSET + 2 * VARINT_BYTES_MAX;
    for (index, column) in columns.iter().enumerate() {
        require_rows(column, index, rows)?;
        let plan = plan(column);
        bytes_max += 1 + VARINT_BYTES_MAX + plan.bytes;
        if bytes_max > IMAGE_BYTES_MAX {
            return Err(Error::ImageTooLarge { bytes: bytes_max });
        }
        plans.push(plan);
    }

    out.reserve(bytes_max);
    let outline = plans.iter().map(|plan| {
        let width = (plan.length_width.trailing_zeros() as u8) << WIDTH_SHIFT;
        (plan.encoding | width, plan.bytes)
    });
    write_image(rows, outline, out, |out| {
        for (column, plan) in columns.iter().zip(&plans) {
            let body_start = out.len();
            write_body(column, plan, out);
            debug_assert_eq!(out.len() - body_start, plan.bytes);
        }
    });
    Ok(())
}

/// Fails if a column has another number of rows.
fn require_rows(column: &Column, index: usize, expected: usize) -> Result<()> {
    match column.rows() == expected {
        true => Ok(()),
        false => Err(Error::RowsDiffer {
            column: index,
            rows: column.rows(),
            expected,
        }),
    }
}

/// Appends the image of `rows` rows that are sealed: each column is a lane of [`crate::encoding`].
/// `starts` are the rows at which another series begins, see [`crate::encoding::key_starts`]. What
/// became of each column.
///
/// # Errors
/// As for [`encode`].
pub fn encode_sealed(
    columns: &[Column],
    rows: usize,
    starts: &[u32],
    out: &mut Vec<u8>,
) -> Result<Vec<StoredColumn>> {
    if rows > IMAGE_ROWS_MAX {
        return Err(Error::TooManyRows { rows: rows as u64 });
    }
    let mut lanes = Vec::with_capacity(columns.len());
    for (index, column) in columns.iter().enumerate() {
        require_rows(column, index, rows)?;
        lanes.push(encode_lane(column, starts)?);
    }
    let stored = columns.iter().zip(&lanes).map(|(column, lane)| {
        let opened = EncodedLane::reopen(lane, column.kind())?;
        Ok(StoredColumn {
            raw: column.value_bytes(0..rows),
            bytes: lane.len() as u32,
            encoding: opened.main_encoding(),
        })
    });
    let stored = stored.collect::<Result<_>>()?;
    let bytes = lanes.iter().map(Vec::len).sum::<usize>();
    if bytes > IMAGE_BYTES_MAX {
        return Err(Error::ImageTooLarge { bytes });
    }
    let outline = lanes.iter().map(|lane| (SEALED, lane.len()));
    write_image(rows, outline, out, |out| {
        lanes.iter().for_each(|lane| out.extend_from_slice(lane));
    });
    Ok(stored)
}

/// Appends an image of columns with these encoding bytes and bytes of body, which `bodies` appends.
fn write_image(
    rows: usize,
    outline: impl ExactSizeIterator<Item = (u8, usize)>,
    out: &mut Vec<u8>,
    bodies: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    out.push(VERSION);
    out.extend_from_slice(&[0; size_of::<u32>()]);
    write_varint(rows, out);
    write_varint(outline.len(), out);
    for (encoding, bytes) in outline {
        out.push(encoding);
        write_varint(bytes, out);
    }
    bodies(out);
    let checksum = checksum(&out[start + CHECKED_OFFSET..]);
    out[start + CHECKSUM_OFFSET..start + CHECKED_OFFSET].copy_from_slice(&checksum.to_le_bytes());
}

/// The rows of `column` that are not NULL.
fn valid_rows(column: &Column) -> impl Iterator<Item = usize> + Clone {
    let validity = column.validity();
    (0..column.rows()).filter(move |&row| validity.is_none_or(|words| bits::get(words, row)))
}

/// Whether all rows that are not NULL are like the first of them.
fn is_constant(column: &Column, mut is_same: impl FnMut(usize, usize) -> bool) -> bool {
    let mut rows = valid_rows(column);
    match rows.next() {
        None => true,
        Some(first) => rows.all(|row| is_same(first, row)),
    }
}

/// The smallest form of a column.
fn plan(column: &Column) -> Plan {
    let rows = column.rows();
    if column.null_count() == rows {
        return Plan::of(ALL_NULL, 1, 0);
    }
    let plan = match column.body() {
        // All NULL, so it has been dealt with.
        Body::Absent => Plan::of(ALL_NULL, 1, 0),
        Body::Bool(bitmap) => {
            let words = bitmap.words();
            if is_constant(column, |a, b| bits::get(words, a) == bits::get(words, b)) {
                Plan::of(ONE_BOOL, 1, 1)
            } else {
                Plan::of(BOOLS, 1, rows.div_ceil(8))
            }
        }
        Body::Fixed {
            width,
            stride,
            values,
        } => plan_values(column, *width, *stride, values),
        Body::Plain(items) => plan_items(column, items),
        Body::Coded { codes, dictionary } => plan_codes(column, codes, dictionary.items()),
    };
    match column.validity() {
        None => plan,
        Some(_) => Plan {
            encoding: plan.encoding | HAS_VALIDITY,
            bytes: plan.bytes + rows.div_ceil(8),
            ..plan
        },
    }
}

/// The smallest form of values of fixed width, some of which are not NULL.
fn plan_values(column: &Column, width: usize, stride: usize, values: &[u8]) -> Plan {
    let rows = column.rows();
    let value = |row: usize| &values[row * stride..row * stride + width];
    if is_constant(column, |a, b| value(a) == value(b)) {
        return Plan::of(ONE_VALUE, 1, width);
    }
    match offsets::plan(column.kind(), values, column.validity()) {
        Some(offsets) => Plan {
            base: offsets.base,
            ..Plan::of(OFFSETS, offsets.width, width + rows * offsets.width)
        },
        None => Plan::of(VALUES, 1, rows * width),
    }
}

/// The smallest form of items without a dictionary, some of which are not NULL.
fn plan_items(column: &Column, items: &Items) -> Plan {
    let is_same = |a, b| {
        items.slot(a) == items.slot(b) && items.length(a) == items.length(b)
            || items.item(a) == items.item(b)
    };
    if is_constant(column, is_same) {
        let first = valid_rows(column).next().unwrap_or(0);
        return Plan::of(ONE_ITEM, 1, items.length(first));
    }
    let (width, bytes) = lengths(items, valid_rows(column));
    Plan::of(ITEMS, width, bytes)
}

/// The smallest form of codes of the items of a dictionary, some of which are not NULL.
fn plan_codes(column: &Column, codes: &[u32], items: &Items) -> Plan {
    let rows = column.rows();
    if is_constant(column, |a, b| codes[a] == codes[b]) {
        let first = valid_rows(column).next().unwrap_or(0);
        return Plan::of(ONE_ITEM, 1, items.length(codes[first] as usize));
    }
    let (width, item_bytes) = lengths(items, 0..items.len());
    let bytes = varint_len(items.len()) + item_bytes + rows * code_width(items.len());
    // Most dictionaries are so much shorter that it takes no look at each row.
    let shortest = (0..items.len()).map(|item| items.length(item)).min();
    if bytes <= (rows - column.null_count()) * (1 + shortest.unwrap_or(0)) {
        return Plan::of(DICTIONARY, width, bytes);
    }
    let (plain_width, plain_bytes) =
        lengths(items, valid_rows(column).map(|row| codes[row] as usize));
    if bytes <= plain_bytes {
        Plan::of(DICTIONARY, width, bytes)
    } else {
        Plan::of(ITEMS, plain_width, plain_bytes)
    }
}

/// The width that the lengths of these items need, and the bytes of lengths and items together.
fn lengths(items: &Items, entries: impl Iterator<Item = usize>) -> (usize, usize) {
    let (mut count, mut longest, mut total) = (0_usize, 0, 0);
    for entry in entries {
        let length = items.length(entry);
        count += 1;
        longest = longest.max(length);
        total += length;
    }
    let width = match longest {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    };
    (width, count * width + total)
}

/// Appends the body of a column.
fn write_body(column: &Column, plan: &Plan, out: &mut Vec<u8>) {
    if plan.encoding & HAS_VALIDITY != 0
        && let Some(validity) = column.validity()
    {
        write_bitmap(validity, column.rows(), out);
    }
    let encoding = plan.encoding & !HAS_VALIDITY;
    let first = || valid_rows(column).next().unwrap_or(0);
    match (encoding, column.body()) {
        (ALL_NULL, _) | (_, Body::Absent) => {}
        (ONE_BOOL, Body::Bool(bitmap)) => out.push(bits::get(bitmap.words(), first()).into()),
        (_, Body::Bool(bitmap)) => write_bitmap(bitmap.words(), column.rows(), out),
        (
            _,
            Body::Fixed {
                width,
                stride,
                values,
            },
        ) => write_values(column, plan, (*width, *stride), values, out),
        (ONE_ITEM, Body::Plain(items)) => out.extend_from_slice(items.item(first())),
        (_, Body::Plain(items)) => write_items(items, plan, valid_rows(column), out),
        (ONE_ITEM, Body::Coded { codes, dictionary }) => {
            out.extend_from_slice(dictionary.items().item(codes[first()] as usize));
        }
        (ITEMS, Body::Coded { codes, dictionary }) => {
            let entries = valid_rows(column).map(|row| codes[row] as usize);
            write_items(dictionary.items(), plan, entries, out);
        }
        (_, Body::Coded { codes, dictionary }) => {
            let items = dictionary.items();
            write_varint(items.len(), out);
            write_items(items, plan, 0..items.len(), out);
            match code_width(items.len()) {
                1 => out.extend(codes.iter().map(|&code| code as u8)),
                2 => out.extend(codes.iter().flat_map(|&code| (code as u16).to_le_bytes())),
                _ => out.extend(codes.iter().flat_map(|&code| code.to_le_bytes())),
            }
        }
    }
}

/// Appends values of a fixed width, which lie at a distance of a stride in the column.
fn write_values(
    column: &Column,
    plan: &Plan,
    (width, stride): (usize, usize),
    values: &[u8],
    out: &mut Vec<u8>,
) {
    match plan.encoding & !HAS_VALIDITY {
        ONE_VALUE => {
            let start = valid_rows(column).next().unwrap_or(0) * stride;
            out.extend_from_slice(&values[start..start + width]);
        }
        OFFSETS => {
            let offsets = Offsets {
                base: plan.base,
                width: plan.length_width,
            };
            out.extend_from_slice(&offsets.base.to_le_bytes()[..width]);
            offsets::write(values, width, offsets, out);
        }
        _ if width == stride => out.extend_from_slice(values),
        _ => {
            for value in values.chunks_exact(stride) {
                out.extend_from_slice(&value[..width]);
            }
        }
    }
}

/// Appends the lengths of items, then their bytes.
fn write_items(
    items: &Items,
    plan: &Plan,
    entries: impl Iterator<Item = usize> + Clone,
    out: &mut Vec<u8>,
) {
    for entry in entries.clone() {
        let length = (items.length(entry) as u32).to_le_bytes();
        out.extend_from_slice(&length[..plan.length_width]);
    }
    for entry in entries {
        out.extend_from_slice(items.item(entry));
    }
}

fn write_bitmap(words: &[u64], rows: usize, out: &mut Vec<u8>) {
    let start = out.len();
    for word in &words[..bits::words(rows)] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.truncate(start + rows.div_ceil(8));
}

fn varint_len(value: usize) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => VARINT_BYTES_MAX,
    }
}

/// Values here are below 2^32: rows, columns and bytes of an image.
fn write_varint(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
