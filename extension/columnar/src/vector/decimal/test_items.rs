//! Items and dictionaries of numerics, as PostgreSQL writes them, for tests.

use super::Decimal;
use crate::lane::{DictionaryView, Lane, LaneData};

/// The sign, the weight and the digits of a number.
fn parts(value: i64, scale: u16) -> (bool, i16, Vec<u16>) {
    // Digits of four places each, the last one filled up with zeros.
    let filled = i128::from(value.unsigned_abs()) * 10_i128.pow((4 - u32::from(scale) % 4) % 4);
    let (mut rest, mut digits) = (filled, Vec::new());
    while rest > 0 {
        digits.push((rest % 10_000) as u16);
        rest /= 10_000;
    }
    let weight = (digits.len() as i32 - i32::from(scale.div_ceil(4)) - 1) as i16;
    // Zeros at the end are left out.
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    digits.drain(..zeros);
    digits.reverse();
    (value < 0, weight, digits)
}

/// A `numeric` with a header of one byte and a short head, as PostgreSQL writes it.
pub(crate) fn short_item(value: i64, scale: u16) -> Vec<u8> {
    let (is_negative, weight, digits) = parts(value, scale);
    let head = 0x8000 | u16::from(is_negative) << 13 | scale << 7 | weight as u16 & 0x7F;
    let mut payload: Vec<u8> = head.to_le_bytes().into();
    payload.extend(digits.iter().flat_map(|digit| digit.to_le_bytes()));
    item(&payload)
}

/// A `numeric` with a header of one byte and a long head.
pub(super) fn long_item(value: i64, scale: u16) -> Vec<u8> {
    let (is_negative, weight, digits) = parts(value, scale);
    let sign = if is_negative { 0x4000 } else { 0 };
    let mut payload: Vec<u8> = (sign | scale).to_le_bytes().into();
    payload.extend(weight.to_le_bytes());
    payload.extend(digits.iter().flat_map(|digit| digit.to_le_bytes()));
    item(&payload)
}

/// A payload with a header of one byte.
pub(super) fn item(payload: &[u8]) -> Vec<u8> {
    let header = (payload.len() as u8 + 1) << 1 | 1;
    [&[header], payload].concat()
}

/// A lane with an item, or NULL, for each row.
pub(crate) struct Items {
    heap: Vec<u8>,
    slots: Vec<u64>,
    validity: Vec<u64>,
}

impl Items {
    pub(crate) fn new(cells: &[Option<Decimal>]) -> Items {
        let (mut heap, mut slots) = (Vec::new(), Vec::new());
        let mut validity = vec![0; cells.len().div_ceil(64).max(1)];
        for (row, cell) in cells.iter().enumerate() {
            slots.push(heap.len() as u64);
            if let Some(Decimal { value, scale }) = cell {
                // PostgreSQL reads long heads of any number, and writes short ones.
                heap.extend(match value % 11 {
                    3 => long_item(*value, (*scale).into()),
                    _ => short_item(*value, (*scale).into()),
                });
                validity[row / 64] |= 1 << (row % 64);
            }
        }
        Items {
            heap,
            slots,
            validity,
        }
    }

    pub(crate) fn lane(&self) -> Lane {
        let (slots, heap) = (self.slots.as_ptr(), self.heap.as_ptr());
        Lane::new(LaneData::Offsets { slots, heap }, self.validity.as_ptr())
    }
}

/// A dictionary of items, with room for the code of each row.
pub(super) struct Dictionary {
    items: Items,
    codes: Vec<u32>,
}

impl Dictionary {
    pub(super) fn new(cells: &[Option<Decimal>]) -> Dictionary {
        let mut distinct: Vec<Option<Decimal>> = Vec::new();
        let code = |cell: &Option<Decimal>| {
            let cell = Some(cell.unwrap_or_default());
            let known = distinct.iter().position(|one| *one == cell);
            known.unwrap_or_else(|| {
                distinct.push(cell);
                distinct.len() - 1
            }) as u32
        };
        let codes = cells.iter().map(code).collect();
        let mut items = Items::new(&distinct);
        // Whether a row is NULL, not a code.
        items.validity = Items::new(cells).validity;
        Dictionary { items, codes }
    }

    pub(super) fn lane(&self) -> Lane {
        let Items { slots, heap, .. } = &self.items;
        let (slots, heap) = (slots.as_ptr(), heap.as_ptr());
        let codes = self.codes.as_ptr();
        let data = LaneData::Codes { codes, slots, heap };
        Lane::new(data, self.items.validity.as_ptr())
    }

    pub(super) fn view(&self, instance: u64) -> DictionaryView {
        DictionaryView {
            instance,
            items: self.items.slots.len() as u32,
            ..DictionaryView::default()
        }
    }
}
