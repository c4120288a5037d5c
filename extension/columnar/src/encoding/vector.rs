//! One decoded vector, in memory that is used again for the next.

use std::ops::Range;

use super::format::Class;
use super::items::ItemList;
use crate::bits::{self, Bitmap};
use crate::buffer::Buffer;
use crate::column::Column;
use crate::items::Items;
use crate::kind::LaneKind;
use crate::lane::{Lane, LaneData};
use crate::limits::VECTOR_ROWS;

const WORDS: usize = VECTOR_ROWS / 64;

/// The rows of one vector of an encoded lane. Invariants: `words`, `narrow` and `pattern` have
/// [`VECTOR_ROWS`] numbers, `bits` and `validity` as many bits.
pub struct DecodedVector {
    kind: LaneKind,
    class: Class,
    rows: usize,
    has_nulls: bool,
    validity: Buffer<u64>,
    /// Numbers; of lanes of 8 bytes, the values.
    words: Buffer<u64>,
    /// Numbers of the pattern that was decoded last.
    pattern: Buffer<u64>,
    bits: Buffer<u64>,
    /// Codes, or values of 4 bytes.
    narrow: Buffer<u32>,
    /// Values of other widths.
    values: Buffer<u8>,
    items: Items,
    room: Vec<u8>,
}

/// Memory for the values of all rows of a vector, at their final place.
pub enum Values<'a> {
    /// Values of 8 bytes.
    Wide(&'a mut [u64]),
    /// Values of 4 bytes, or codes.
    Narrow(&'a mut [u32]),
    /// Bools, whole words of them.
    Bits(&'a mut [u64]),
}

/// Where the numbers of all rows are to be put.
pub(super) struct Room<'a> {
    /// Their low halves into `narrow`, where `wide` may be used on the way; else the numbers into
    /// `wide`.
    pub(super) is_narrow: bool,
    pub(super) wide: &'a mut [u64],
    pub(super) narrow: &'a mut [u32],
    /// For a pattern.
    pub(super) pattern: &'a mut [u64],
}

impl Default for DecodedVector {
    fn default() -> Self {
        DecodedVector::new()
    }
}

impl DecodedVector {
    /// No rows, and memory for a vector.
    pub fn new() -> Self {
        let zeros = |count| {
            let mut buffer = Buffer::new();
            buffer.extend_zeros(count);
            buffer
        };
        DecodedVector {
            kind: LaneKind::Absent,
            class: Class::Null,
            rows: 0,
            has_nulls: false,
            validity: zeros(WORDS),
            words: zeros(VECTOR_ROWS),
            pattern: zeros(VECTOR_ROWS),
            bits: zeros(WORDS),
            narrow: {
                let mut narrow = Buffer::new();
                narrow.extend_zeros(VECTOR_ROWS);
                narrow
            },
            values: Buffer::new(),
            items: Items::new(false),
            room: Vec::new(),
        }
    }

    /// Rows decoded.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The codes of a lane with a dictionary; empty for other lanes and if all rows are NULL.
    #[inline]
    pub fn codes(&self) -> &[u32] {
        match self.class {
            Class::Dictionary => &self.narrow[..self.rows],
            _ => &[],
        }
    }

    /// The vector as a lane of [`rows`](Self::rows) rows, good until this is decoded into again or
    /// dropped. The codes of a lane with a dictionary need its items, without which all rows are
    /// NULL.
    pub fn lane(&self, items: Option<&ItemList>) -> Lane {
        let data = match (self.class, self.kind) {
            (Class::Bools, _) => LaneData::Bool(self.bits.pointer()),
            (Class::Integers | Class::Floats | Class::Bytes, LaneKind::Fixed { stride, .. }) => {
                LaneData::Fixed {
                    values: match (self.class, stride) {
                        (Class::Integers | Class::Floats, 8) => self.words.pointer().cast(),
                        (Class::Integers | Class::Floats, 4) => self.narrow.pointer().cast(),
                        _ => self.values.pointer(),
                    },
                    stride: stride.into(),
                }
            }
            (Class::Dictionary, _) => match items {
                Some(items) if !items.is_empty() => LaneData::Codes {
                    codes: self.narrow.pointer(),
                    slots: items.slots().as_ptr(),
                    heap: items.heap().as_ptr(),
                },
                _ => return Lane::NULL,
            },
            (Class::Items, _) => LaneData::Offsets {
                slots: self.items.slots().pointer(),
                heap: self.items.heap().pointer(),
            },
            _ => return Lane::NULL,
        };
        let validity = match self.has_nulls {
            true => self.validity.pointer(),
            false => std::ptr::null(),
        };
        Lane::new(data, validity)
    }

    /// Removes all rows and prepares for so many rows of this class.
    pub(super) fn begin(&mut self, kind: LaneKind, class: Class, rows: usize) {
        self.class = if kind == LaneKind::Absent {
            Class::Null
        } else {
            class
        };
        if class == Class::Items
            && let LaneKind::Varlena { packed, .. } = kind
        {
            if self.kind == kind {
                self.items.truncate(0);
            } else {
                self.items = Items::new(packed);
            }
        }
        self.kind = kind;
        self.rows = rows;
        self.has_nulls = false;
        self.values.clear();
    }

    pub(super) fn set_validity(&mut self, validity: &[u64; WORDS]) {
        self.validity.copy_from_slice(validity);
        self.has_nulls = true;
    }

    /// Where bools are to be put: into `values` if these are for bools.
    pub(super) fn bools<'a>(&'a mut self, values: Option<Values<'a>>) -> (&'a mut [u64], bool) {
        match values {
            Some(Values::Bits(values)) if values.len() == bits::words(self.rows) => (values, true),
            _ => (&mut self.bits, false),
        }
    }

    /// The memory for numbers: `values` if the numbers of this lane fit there.
    pub(super) fn numbers<'a>(&'a mut self, values: Option<Values<'a>>) -> (Room<'a>, bool) {
        let is_narrow = self.is_narrow();
        let is_wide = self.class != Class::Dictionary && self.stride() == size_of::<u64>();
        let mut room = Room {
            is_narrow,
            wide: &mut self.words[..self.rows],
            narrow: &mut self.narrow[..self.rows],
            pattern: &mut self.pattern,
        };
        let is_there = match values {
            Some(Values::Wide(values)) if is_wide && values.len() == self.rows => {
                room.wide = values;
                true
            }
            Some(Values::Narrow(values)) if is_narrow && values.len() == self.rows => {
                room.narrow = values;
                true
            }
            _ => false,
        };
        (room, is_there)
    }

    /// Whether values are of 4 bytes.
    fn is_narrow(&self) -> bool {
        match self.class {
            Class::Dictionary => true,
            Class::Integers | Class::Floats => self.stride() == 4,
            _ => false,
        }
    }

    /// Where items are to be put, and room for their bytes on the way.
    pub(super) fn items(&mut self) -> (&mut Items, &mut Vec<u8>) {
        (&mut self.items, &mut self.room)
    }

    pub(super) fn repeat_value(&mut self, value: &[u8]) {
        let padding = self.stride() - value.len();
        for _ in 0..self.rows {
            self.values.extend_from_slice(value);
            self.values.extend_zeros(padding);
        }
    }

    pub(super) fn put_values(&mut self, values: &[u8], width: usize) {
        let padding = self.stride() - width;
        if padding == 0 {
            self.values.extend_from_slice(values);
            return;
        }
        for value in values.chunks_exact(width) {
            self.values.extend_from_slice(value);
            self.values.extend_zeros(padding);
        }
    }

    fn stride(&self) -> usize {
        match self.kind {
            LaneKind::Fixed { stride, .. } => stride.into(),
            _ => 0,
        }
    }

    /// Narrows the numbers to values of the lane's width, unless they have it already.
    pub(super) fn narrow(&mut self) {
        let words = &self.words[..self.rows];
        let (LaneKind::Fixed { width, .. }, false) = (self.kind, self.is_narrow()) else {
            return;
        };
        if width < 4 {
            self.values.extend_zeros(words.len() * usize::from(width));
        }
        match width {
            1 => narrow_to::<1>(words, &mut self.values),
            2 => narrow_to::<2>(words, &mut self.values),
            _ => {}
        }
    }

    /// Appends some of the rows to a column of the same kind. Codes are not appended: they need
    /// their items.
    pub(super) fn append(&self, rows: Range<usize>, into: &mut Column) {
        let count = rows.len();
        let validity = self.has_nulls.then(|| cut(&self.validity, &rows));
        let validity = validity.as_deref();
        match (self.class, self.kind) {
            (Class::Bools, _) => into.extend_bools(&cut(&self.bits, &rows), validity, count),
            (
                Class::Integers | Class::Floats | Class::Bytes,
                LaneKind::Fixed { width, stride, .. },
            ) => {
                let (width, stride) = (usize::from(width), usize::from(stride));
                let LaneData::Fixed { values, .. } = self.lane(None).data else {
                    return;
                };
                // SAFETY: there is a value for each row, at a distance of a stride.
                let values = unsafe {
                    std::slice::from_raw_parts(values.add(rows.start * stride), count * stride)
                };
                if width == stride {
                    return into.extend_fixed(values, validity, count);
                }
                let values = values
                    .chunks_exact(stride)
                    .flat_map(|value| &value[..width]);
                into.extend_fixed(&values.copied().collect::<Vec<_>>(), validity, count);
            }
            (Class::Items, _) => {
                for row in rows {
                    match self.has_nulls && !bits::get(&self.validity, row) {
                        true => into.push_null(),
                        false => into.push_item(self.items.item(row)),
                    }
                }
            }
            _ => into.push_repeated(None, count),
        }
    }

    /// A bit for each of at most 64 rows from `first` on, lowest first, set if the row is not NULL.
    pub(crate) fn validity_bits(&self, first: usize, count: usize) -> u64 {
        match (self.class, self.has_nulls) {
            (Class::Null, _) => 0,
            (_, false) => bits::low_bits(count),
            (_, true) => bits::read(&self.validity, first, count),
        }
    }

    /// Appends which of these rows are not NULL.
    pub(super) fn append_validity(&self, rows: Range<usize>, into: &mut Bitmap) {
        match (self.class, self.has_nulls) {
            (Class::Null, _) => into.extend_repeated(false, rows.len()),
            (_, false) => into.extend_repeated(true, rows.len()),
            (_, true) => into.extend_from(&cut(&self.validity, &rows), rows.len()),
        }
    }
}

/// A range of the bits of a bitmap, moved to bit 0.
fn cut(words: &[u64], rows: &Range<usize>) -> Vec<u64> {
    let mut cut = vec![0; bits::words(rows.len())];
    bits::each_word(0, rows.len(), |index, _, bits, done| {
        cut[index] = bits::read(words, rows.start + done, bits);
    });
    cut
}

fn narrow_to<const N: usize>(words: &[u64], values: &mut [u8]) {
    for (value, word) in values.as_chunks_mut::<N>().0.iter_mut().zip(words) {
        *value = *word.to_ne_bytes().first_chunk().unwrap_or(&[0; N]);
    }
}
