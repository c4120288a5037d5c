//! Random columns of 16 bytes.

use std::ptr::null;

use super::lanes::{Cell, Column, Source};
use crate::kind::{LaneKind, Number};
use crate::lane::LaneData;

/// One of so many values. They come in groups that have their first 8 bytes in common.
pub(crate) fn bytes16(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(
        &(number / 4)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .to_be_bytes(),
    );
    bytes[8..].copy_from_slice(&(number % 4).to_be_bytes());
    bytes
}

impl Column {
    pub(crate) fn bytes16(values: &[Option<[u8; 16]>], source: &mut Source) -> Column {
        let cells = values.iter().map(|v| v.map_or(Cell::Null, Cell::Bytes16));
        let data = LaneData::Fixed {
            values: null(),
            stride: 16,
        };
        let mut column = Column::new(data, cells.collect(), source);
        column.kind = LaneKind::Fixed {
            width: 16,
            stride: 16,
            number: Number::Bytes16,
        };
        for value in values {
            // Under a NULL lies anything.
            let bytes = value.unwrap_or_else(|| bytes16(source.below(20)));
            let words = bytes.as_chunks::<8>().0;
            column
                .words
                .extend(words.iter().map(|word| u64::from_ne_bytes(*word)));
        }
        column
    }
}
