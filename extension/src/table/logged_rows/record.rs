//! The form of a record of rows for logical decoding.
//!
//! A record holds images in the form of the table's data pages ([`lanes_columnar::image`]), so
//! logging a run costs no second encoding. Decoding has no catalog to consult when it reads a
//! record, so the record contains the kind of each column. Integers have the machine's byte order,
//! as in all WAL.
//!
//! | bytes | record |
//! |---|---|
//! | 1 | version, 1 |
//! | 1 | 0 |
//! | 2 | attributes, dropped ones included |
//! | 4 | bytes of the old rows' image; 0: there is none |
//! | 12 | tablespace, database and number of the table's file |
//! | 4 | the transaction or subtransaction that the rows belong to |
//! | 4 | its top-level transaction |
//! | 4 for each attribute | length, alignment, flags |
//! | the rest | the new rows' image, if any; the old rows' image |

use lanes_columnar::kind::{LaneKind, Number};
use pgrx::pg_sys;

use crate::pg::datum::{self, Outlet};
use crate::pg::descriptor::{Attribute, Descriptor};
use crate::pg::row_log::{Belonging, TupleAttribute};

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 28;
const ATTRIBUTE_BYTES: usize = 4;

/// Flags of an attribute.
const BY_VALUE: u8 = 1;
const DROPPED: u8 = 2;
const BOOL: u8 = 4;
const PACKED: u8 = 8;
const DICTIONARY: u8 = 16;

/// The forms of a table's columns, which decoding cannot read from the catalog.
pub fn attributes(descriptor: Descriptor<'_>) -> Vec<LoggedAttribute> {
    let kinds = datum::kinds(descriptor);
    let attributes = descriptor.attributes().zip(kinds);
    attributes
        .map(|(attribute, kind)| LoggedAttribute::of(attribute, kind))
        .collect()
}

/// A column of a record's images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedAttribute {
    length: i16,
    align: u8,
    flags: u8,
}

impl LoggedAttribute {
    fn of(attribute: &Attribute, kind: LaneKind) -> LoggedAttribute {
        let flags = match kind {
            LaneKind::Absent => DROPPED,
            LaneKind::Bool => BOOL,
            LaneKind::Fixed { .. } => 0,
            LaneKind::Varlena { dictionary, packed } => {
                (u8::from(dictionary) * DICTIONARY) | (u8::from(packed) * PACKED)
            }
        };
        LoggedAttribute {
            length: attribute.attlen,
            align: attribute.attalign as u8,
            flags: flags | (u8::from(attribute.attbyval) * BY_VALUE),
        }
    }

    fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The kind of its lane; `None`: the record is damaged.
    pub fn kind(self) -> Option<LaneKind> {
        let align: u16 = match self.align {
            b'c' => 1,
            b's' => 2,
            b'i' => 4,
            b'd' => 8,
            _ => return None,
        };
        if self.has(DROPPED) {
            return Some(LaneKind::Absent);
        }
        match self.length {
            -1 if !self.has(BOOL | BY_VALUE) => Some(LaneKind::Varlena {
                dictionary: self.has(DICTIONARY),
                packed: self.has(PACKED),
            }),
            1 if self.has(BOOL) && self.has(BY_VALUE) => Some(LaneKind::Bool),
            width @ 1.. if !self.has(BOOL) => {
                let is_sound = !self.has(BY_VALUE) || matches!(width, 1 | 2 | 4 | 8);
                is_sound.then(|| LaneKind::Fixed {
                    width: width as u16,
                    stride: (width as u16).next_multiple_of(align),
                    number: Number::Opaque,
                })
            }
            _ => None,
        }
    }

    pub fn outlet(self) -> Outlet {
        match self.length {
            _ if self.has(DROPPED) => Outlet::Null,
            _ if self.has(BOOL) => Outlet::Bool,
            width if self.has(BY_VALUE) => Outlet::Value(width as usize),
            _ => Outlet::Pointer,
        }
    }

    pub fn in_tuple(self) -> TupleAttribute {
        TupleAttribute {
            length: self.length,
            align: self.align,
            by_value: self.has(BY_VALUE),
            packed: self.has(PACKED),
        }
    }
}

/// The record up to its images.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    pub rows: Belonging,
    pub attributes: Vec<LoggedAttribute>,
    /// The bytes of the old rows' image.
    pub old_bytes: usize,
}

impl Head {
    /// The bytes before the images.
    pub fn to_bytes(&self) -> Vec<u8> {
        let count = self.attributes.len();
        let mut bytes = Vec::with_capacity(HEAD_BYTES + count * ATTRIBUTE_BYTES);
        bytes.extend([VERSION, 0]);
        bytes.extend((count as u16).to_ne_bytes());
        let (space, database, number) = self.rows.file;
        let (xid, top_xid) = (self.rows.xid, self.rows.top_xid);
        let old_bytes = self.old_bytes as u32;
        for part in [old_bytes, space, database, number, xid, top_xid] {
            bytes.extend(part.to_ne_bytes());
        }
        for attribute in &self.attributes {
            bytes.extend(attribute.length.to_ne_bytes());
            bytes.extend([attribute.align, attribute.flags]);
        }
        bytes
    }

    /// Parses the head of a record; also returns the images of the new and of the old rows, empty where there are none.
    pub fn parse(record: &[u8]) -> Result<(Head, &[u8], &[u8]), String> {
        let (head, rest) = record
            .split_at_checked(HEAD_BYTES)
            .ok_or("it is too short")?;
        if head[0] != VERSION {
            return Err(format!("its version is {}, not {VERSION}", head[0]));
        }
        let part = |at: usize| {
            let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
            u32::from_ne_bytes(bytes)
        };
        let count = usize::from(u16::from_ne_bytes([head[2], head[3]]));
        if count > pg_sys::MaxHeapAttributeNumber as usize {
            return Err(format!("it has {count} attributes"));
        }
        let (attributes, images) = rest
            .split_at_checked(count * ATTRIBUTE_BYTES)
            .ok_or("it is too short for its attributes")?;
        let old_bytes = part(4) as usize;
        let (new, old) = images
            .len()
            .checked_sub(old_bytes)
            .and_then(|new_bytes| images.split_at_checked(new_bytes))
            .ok_or("it is too short for its images")?;
        let attributes = attributes.chunks_exact(ATTRIBUTE_BYTES);
        let head = Head {
            rows: Belonging {
                file: (part(8), part(12), part(16)),
                xid: part(20),
                top_xid: part(24),
            },
            attributes: attributes
                .map(|bytes| LoggedAttribute {
                    length: i16::from_ne_bytes([bytes[0], bytes[1]]),
                    align: bytes[2],
                    flags: bytes[3],
                })
                .collect(),
            old_bytes,
        };
        Ok((head, new, old))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(old_bytes: usize) -> Head {
        let attribute = |length, align, flags| LoggedAttribute {
            length,
            align,
            flags,
        };
        Head {
            rows: Belonging {
                xid: 8,
                top_xid: 7,
                file: (1, 2, 3),
            },
            attributes: vec![
                attribute(4, b'i', BY_VALUE),
                attribute(-1, b'i', DICTIONARY | PACKED),
                attribute(1, b'c', BOOL | BY_VALUE),
                attribute(16, b'c', 0),
                attribute(8, b'd', DROPPED | BY_VALUE),
            ],
            old_bytes,
        }
    }

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let mut record = head(2).to_bytes();
        record.extend([1, 2, 3, 4, 5]);
        let (read, new, old) = Head::parse(&record).unwrap();
        assert_eq!(read, head(2));
        assert_eq!((new, old), (&[1, 2, 3][..], &[4, 5][..]));
        let kinds = read.attributes.iter().map(|one| one.kind());
        let varlena = LaneKind::Varlena {
            dictionary: true,
            packed: true,
        };
        let fixed = |width, stride| LaneKind::Fixed {
            width,
            stride,
            number: Number::Opaque,
        };
        let expected = [
            fixed(4, 4),
            varlena,
            LaneKind::Bool,
            fixed(16, 16),
            LaneKind::Absent,
        ];
        assert!(kinds.eq(expected.map(Some)));
    }

    #[test]
    fn a_record_that_is_cut_or_of_another_version_is_an_error() {
        let mut record = head(2).to_bytes();
        record.extend([4, 5]);
        for end in 0..record.len() {
            assert!(Head::parse(&record[..end]).is_err(), "{end} bytes");
        }
        record[0] = VERSION + 1;
        assert!(Head::parse(&record).is_err());
    }

    #[test]
    fn an_attribute_that_no_type_has_is_no_kind() {
        for (length, align, flags) in [
            (0, b'i', 0),
            (-2, b'c', 0),
            (-1, b'i', BY_VALUE),
            (3, b'c', BY_VALUE),
            (4, b'x', 0),
            (8, b'd', BOOL),
        ] {
            let attribute = LoggedAttribute {
                length,
                align,
                flags,
            };
            assert_eq!(attribute.kind(), None, "{attribute:?}");
        }
    }
}
