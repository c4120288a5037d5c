//! The byte form of an encoded lane.
//!
//! All integers are little-endian. A *varint* is LEB128 of at most 10 bytes; a *signed* is a varint
//! of the zigzag form. Nothing is aligned.
//!
//! | bytes | lane |
//! |---|---|
//! | 1 | version, 1 |
//! | 4 | checksum: low half of XXH3-64 of all bytes after it |
//! | 1 | bits 0-6 the class, see below; bit 7: some row is NULL |
//! | 2 | bytes of a value; 0 for classes without a width |
//! | 4 | rows |
//! | 4 | patterns |
//! | 4 | items of the dictionary |
//! | 4 each | where each section ends, counted from the end of this list |
//! | | the sections: each pattern, each vector of 2,048 rows, then the dictionary if the class has one |
//! | 16 | zeros, so that kernels may load whole words |
//!
//! | | class | of kinds | a vector, after its marks of NULLs |
//! |---|---|---|---|
//! | 0 | all NULL | any | there are no sections |
//! | 1 | bools | bool | 1 byte: 0 all false, 1 all true, 2 a bitmap follows |
//! | 2 | integers | fixed width 1, 2, 4, 8 without padding, no floats | blocks |
//! | 3 | floats | floats of 4 and 8 bytes | blocks |
//! | 4 | bytes | all other fixed widths | 1 byte: 0 one value follows, 1 a value a row follows |
//! | 5 | dictionary | varlena | blocks of codes |
//! | 6 | items | varlena | varint: bytes of the blocks; blocks of lengths (0 for NULL); the items' bytes |
//! | 7 | dictionary | varlena | as 5, the items' bytes marked |
//! | 8 | items | varlena | as 6, the items' bytes marked |
//!
//! A vector has *marks of NULLs* only if bit 7 of the class is set:
//!
//! | first byte | marks of NULLs |
//! |---|---|
//! | 0 | the vector has no NULL |
//! | 1 | all rows are NULL, and nothing follows |
//! | 2 | a bitmap follows, 1 = not NULL |
//!
//! A *bitmap* has one bit for each row, lowest first. It takes whole bytes, and the unused bits are
//! 0. A row that is NULL has any value, code 0 or a length of 0.
//!
//! The *dictionary* consists of a varint, which is the number of bytes of the blocks that follow;
//! blocks of the items' lengths, for 2,048 items at a time; and the items' bytes. The code of every
//! row is below the number of items.
//!
//! *Marked* bytes begin with 1 byte. If it is 0, the bytes follow. If it is 1, a varint with their
//! number follows, and then an LZ4 block that contains them and fills the section. Lanes are written
//! with the classes 7 and 8. Classes 5 and 6 are only read.
//!
//! # Blocks
//! Blocks follow each other until all rows are covered. Each row has a *number*, modulo 2^64, of
//! which the lane has the low bits. An integer or a code is its own number. A float is its number
//! divided by a power of ten, whose exponent the block has; if the exponent is 15, the number is the
//! float's bits.
//!
//! | bytes | block |
//! |---|---|
//! | 1 | bits 0-2 form; bit 3: the block takes all rows that are left; bits 4-7: power of ten (floats only) |
//! | varint | its rows, at least 1, unless bit 3 is set |
//! | | the content, by the form |
//!
//! | | form | what follows |
//! |---|---|---|
//! | 0 | constant | signed: the number of every row |
//! | 1 | level | signed base; packed residuals: number = base + residual × factor |
//! | 2 | delta | signed first number; signed base; packed residuals of the differences to the row before |
//! | 3 | delta of delta | signed first number; signed first difference; signed base; packed residuals of the changes of the difference |
//! | 4 | pattern | varint: the index of the pattern; varint: the row of the pattern with which the block begins |
//! | 5 | few | varint: the number of distinct numbers, minus 1; for each of them a signed: its difference to the one before; packed residuals: the index of each row's number among them |
//! | 6 | delta, rising | as 2, with a varint after the first number: the last number minus the first |
//! | 7 | delta of delta, rising | as 3, with the same varint |
//!
//! In a *rising* block no number is less than the one before, so the first and the last number are
//! its bounds. Only blocks of whole vectors have these forms. In shorter blocks the additional
//! varint would take too much space.
//!
//! Forms 5 to 7 and the marked classes were added after the first lanes of this version. A reader
//! that does not know them refuses lanes that contain them.
//!
//! Form 4 is not allowed in a pattern. *Packed residuals*:
//!
//! | bytes | |
//! |---|---|
//! | 1 | bits 0-6 width in bits, at most 64; bit 7: there are extras |
//! | varint × 4 | extras: factor; number of patches; number of outliers; bytes of both |
//! | | `width` bits a residual, without gaps, lowest first, in whole bytes |
//! | varint, signed each | patches: gap to the last patched residual (the first: its place); a number `p`: `p × 2^width × factor` is added |
//! | varint, value each | outliers (floats only): gap to the last such row (the first: its place); the float's bytes |

use std::ops::Range;

use super::bytes::{ByteReader, malformed};
use crate::error::Result;
use crate::kind::{LaneKind, Number};
use crate::limits::VECTOR_ROWS;

pub(super) const VERSION: u8 = 1;
pub(super) const CHECKSUM_AT: usize = 1;
pub(super) const CHECKED_AT: usize = CHECKSUM_AT + size_of::<u32>();
pub(super) const HEADER_BYTES: usize = CHECKED_AT + 15;
/// Zeros at the end of a lane.
pub(super) const SLACK_BYTES: usize = 16;

pub(super) const HAS_NULLS: u8 = 0x80;

pub(super) const NO_NULLS: u8 = 0;
pub(super) const ALL_NULLS: u8 = 1;
pub(super) const SOME_NULLS: u8 = 2;

pub(super) const ALL_FALSE: u8 = 0;
pub(super) const ALL_TRUE: u8 = 1;
pub(super) const BITMAP: u8 = 2;

pub(super) const ONE_VALUE: u8 = 0;
pub(super) const VALUES: u8 = 1;

pub(super) const FORM_MASK: u8 = 0x07;
pub(super) const REST: u8 = 0x08;
pub(super) const POWER_SHIFT: u32 = 4;
/// The power of ten that stands for the bits of floats.
pub(super) const POWER_BITS: u8 = 15;

pub(super) const CONSTANT: u8 = 0;
pub(super) const LEVEL: u8 = 1;
pub(super) const DELTA: u8 = 2;
pub(super) const DELTA_OF_DELTA: u8 = 3;
pub(super) const PATTERN: u8 = 4;
pub(super) const FEW: u8 = 5;
pub(super) const RISING_DELTA: u8 = 6;
pub(super) const RISING_DELTA_OF_DELTA: u8 = 7;

pub(super) const AS_THEY_ARE: u8 = 0;
pub(super) const COMPRESSED: u8 = 1;

/// The distance from a class of items to the class with marked bytes.
const MARKED: u8 = 2;

pub(super) const WIDTH_MASK: u8 = 0x7f;
pub(super) const EXTRAS: u8 = 0x80;

/// The class of a lane's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Null = 0,
    Bools = 1,
    Integers = 2,
    Floats = 3,
    Bytes = 4,
    Dictionary = 5,
    Items = 6,
}

impl Class {
    /// The class, and whether the bytes of its items are marked.
    fn of_byte(byte: u8) -> Option<(Class, bool)> {
        use Class::{Bools, Bytes, Dictionary, Floats, Integers, Items, Null};
        let plain =
            [Null, Bools, Integers, Floats, Bytes, Dictionary, Items].map(|class| (class, false));
        let marked = [Dictionary, Items].map(|class| (class, true));
        let mut all = plain.into_iter().chain(marked);
        all.find(|&(class, is_marked)| class.byte(is_marked) == byte)
    }

    fn byte(self, is_marked: bool) -> u8 {
        self as u8 + if is_marked { MARKED } else { 0 }
    }

    /// The class of values of fixed width.
    pub(super) fn of_fixed(width: u16, stride: u16, number: Number) -> Class {
        match (number, width) {
            (Number::Float, _) => Class::Floats,
            (_, 1 | 2 | 4 | 8) if width == stride => Class::Integers,
            _ => Class::Bytes,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Class::Null => "NULLs",
            Class::Bools => "bools",
            Class::Integers => "integers",
            Class::Floats => "floats",
            Class::Bytes => "values of fixed width",
            Class::Dictionary | Class::Items => "items",
        }
    }

    /// Whether such a lane can be read as a column of this kind.
    fn fits(self, kind: LaneKind, own_width: u16) -> bool {
        match (self, kind) {
            (Class::Null, _) | (_, LaneKind::Absent) => true,
            (Class::Bools, LaneKind::Bool) => own_width == 0,
            (
                class,
                LaneKind::Fixed {
                    width,
                    stride,
                    number,
                },
            ) => own_width == width && class == Class::of_fixed(width, stride, number),
            (Class::Dictionary | Class::Items, LaneKind::Varlena { .. }) => own_width == 0,
            _ => false,
        }
    }
}

/// The fixed part of the head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) class: Class,
    /// Whether the bytes of items have a mark that says whether they are compressed.
    pub(super) is_marked: bool,
    pub(super) has_nulls: bool,
    pub(super) width: u16,
    pub(super) rows: u32,
    pub(super) patterns: u32,
    pub(super) items: u32,
}

impl Header {
    pub(super) fn vectors(&self) -> usize {
        (self.rows as usize).div_ceil(VECTOR_ROWS)
    }

    /// The number of sections.
    pub(super) fn sections(&self) -> usize {
        match self.class {
            Class::Null => 0,
            class => {
                self.patterns as usize + self.vectors() + usize::from(class == Class::Dictionary)
            }
        }
    }

    /// Where the sections begin.
    pub(super) fn payload_at(&self) -> usize {
        HEADER_BYTES + self.sections() * size_of::<u32>()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.extend_from_slice(&[0; size_of::<u32>()]);
        let nulls = if self.has_nulls { HAS_NULLS } else { 0 };
        out.push(self.class.byte(self.is_marked) | nulls);
        out.extend_from_slice(&self.width.to_le_bytes());
        for number in [self.rows, self.patterns, self.items] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Reads the fixed part, which must suit the kind, and checks that the list of sections is
    /// there.
    pub(super) fn read(lane: &[u8], kind: LaneKind) -> Result<Header> {
        let Some((head, _)) = lane.split_first_chunk::<HEADER_BYTES>() else {
            return malformed("it is cut short");
        };
        if head[0] != VERSION {
            return malformed("its version is not known");
        }
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let Some((class, is_marked)) = Class::of_byte(head[CHECKED_AT] & !HAS_NULLS) else {
            return malformed("its class is not known");
        };
        let header = Header {
            class,
            is_marked,
            has_nulls: head[CHECKED_AT] & HAS_NULLS != 0,
            width: u16::from_le_bytes([head[CHECKED_AT + 1], head[CHECKED_AT + 2]]),
            rows: number(CHECKED_AT + 3),
            patterns: number(CHECKED_AT + 7),
            items: number(CHECKED_AT + 11),
        };
        if !class.fits(kind, header.width) {
            return Err(crate::error::Error::KindDiffers {
                kind,
                found: class.name(),
            });
        }
        if header.patterns > header.rows
            || header.items > header.rows
            || header.rows as usize > super::LANE_ROWS_MAX
            || header.payload_at() + SLACK_BYTES > lane.len()
        {
            return malformed("its sections are cut short");
        }
        Ok(header)
    }
}

/// The checksum that belongs to a lane's bytes.
pub(super) fn checksum(lane: &[u8]) -> u32 {
    xxhash_rust::xxh3::xxh3_64(&lane[CHECKED_AT..]) as u32
}

/// Where section `index` lies: from `start` to `end` of the lane. `index` is below
/// [`Header::sections`].
pub(super) fn section<'a>(lane: &'a [u8], header: &Header, index: usize) -> Result<ByteReader<'a>> {
    let place = section_place(lane, header, index);
    ByteReader::new(lane, place.start, place.end)
}

/// The bytes of a section as the head of its lane says. They may lie past the end of a damaged lane.
pub(super) fn section_place(lane: &[u8], header: &Header, index: usize) -> Range<usize> {
    let end_of = |index: usize| {
        let at = HEADER_BYTES + index * size_of::<u32>();
        u32::from_le_bytes([lane[at], lane[at + 1], lane[at + 2], lane[at + 3]]) as usize
    };
    let payload = header.payload_at();
    let start = if index == 0 { 0 } else { end_of(index - 1) };
    payload + start..payload + end_of(index)
}
