//! The values of a column, without the marks of its NULLs.

use crate::bits::Bitmap;
use crate::buffer::Buffer;
use crate::dictionary::Dictionary;
use crate::items::Items;
use crate::kind::LaneKind;
use crate::lane::LaneData;

/// Values by physical form. Every variant has an entry a row, also where the row is NULL: anything
/// of the right width, or a code within the dictionary (code 0 while that is still empty).
pub(crate) enum Body {
    Absent,
    Bool(Bitmap),
    Fixed {
        width: usize,
        stride: usize,
        values: Buffer<u8>,
    },
    Plain(Items),
    Coded {
        codes: Buffer<u32>,
        dictionary: Dictionary,
    },
}

impl Body {
    pub(crate) fn new(kind: LaneKind) -> Self {
        match kind {
            LaneKind::Absent => Body::Absent,
            LaneKind::Bool => Body::Bool(Bitmap::new()),
            LaneKind::Fixed { width, stride, .. } => Body::Fixed {
                width: usize::from(width),
                stride: usize::from(stride),
                values: Buffer::new(),
            },
            LaneKind::Varlena {
                dictionary: false,
                packed,
            } => Body::Plain(Items::new(packed)),
            LaneKind::Varlena {
                dictionary: true,
                packed,
            } => Body::Coded {
                codes: Buffer::new(),
                dictionary: Dictionary::new(packed),
            },
        }
    }

    /// Makes room for the entries of more rows, as far as these are of one size.
    pub(crate) fn reserve(&mut self, rows: usize) {
        match self {
            Body::Absent | Body::Bool(_) => {}
            Body::Plain(items) => items.reserve(rows),
            Body::Fixed { stride, values, .. } => values.reserve(rows * *stride),
            Body::Coded { codes, .. } => codes.reserve(rows),
        }
    }

    pub(crate) fn byte_len(&self) -> usize {
        match self {
            Body::Absent => 0,
            Body::Bool(bitmap) => bitmap.byte_len(),
            Body::Fixed { values, .. } => values.byte_len(),
            Body::Plain(items) => items.byte_len(),
            Body::Coded { codes, dictionary } => codes.byte_len() + dictionary.byte_len(),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Body::Absent => {}
            Body::Bool(bitmap) => bitmap.clear(),
            Body::Fixed { values, .. } => values.clear(),
            Body::Plain(items) => items.truncate(0),
            Body::Coded { codes, dictionary } => {
                codes.clear();
                dictionary.clear();
            }
        }
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        match self {
            Body::Absent => {}
            Body::Bool(bitmap) => bitmap.truncate(rows),
            Body::Fixed { values, stride, .. } => values.truncate(rows * *stride),
            Body::Plain(items) => items.truncate(rows),
            Body::Coded { codes, .. } => codes.truncate(rows),
        }
    }

    /// Appends the entries of `rows` NULLs.
    pub(crate) fn push_nothing(&mut self, rows: usize) {
        match self {
            Body::Absent => {}
            Body::Bool(bitmap) => bitmap.extend_repeated(false, rows),
            Body::Fixed { stride, values, .. } => values.extend_zeros(rows * *stride),
            Body::Plain(items) => items.push_empty(rows),
            Body::Coded { codes, .. } => codes.extend_zeros(rows),
        }
    }

    /// Appends `rows >= 1` times a value whose width has been checked: one byte for a bool.
    pub(crate) fn push_repeated(&mut self, value: &[u8], rows: usize) {
        match self {
            Body::Absent => {}
            Body::Bool(bitmap) => bitmap.extend_repeated(value[0] != 0, rows),
            Body::Fixed { stride, values, .. } => {
                values.reserve(rows * *stride);
                for _ in 0..rows {
                    values.extend_from_slice(value);
                    values.extend_zeros(*stride - value.len());
                }
            }
            Body::Plain(items) => {
                items.push(value);
                items.push_shared(items.len() - 1, rows - 1);
            }
            Body::Coded { codes, dictionary } => {
                let code = dictionary.intern(value);
                codes.extend_repeated(code, rows);
            }
        }
    }

    pub(crate) fn data(&self) -> LaneData {
        match self {
            Body::Absent => LaneData::Null,
            Body::Bool(bitmap) => LaneData::Bool(bitmap.pointer()),
            Body::Fixed { stride, values, .. } => LaneData::Fixed {
                values: values.pointer(),
                stride: *stride as u32,
            },
            Body::Plain(items) => LaneData::Offsets {
                slots: items.slots().pointer(),
                heap: items.heap().pointer(),
            },
            // Without an item every row is NULL, and there is no slot for their code 0.
            Body::Coded { dictionary, .. } if dictionary.items().len() == 0 => LaneData::Null,
            Body::Coded { codes, dictionary } => LaneData::Codes {
                codes: codes.pointer(),
                slots: dictionary.items().slots().pointer(),
                heap: dictionary.items().heap().pointer(),
            },
        }
    }
}
