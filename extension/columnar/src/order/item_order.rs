//! The order of items: texts, bytes and numerics.
//!
//! An item has an *abbreviation*, a number that says as much of its place in the order as fits: of
//! two items with different abbreviations, the one with the smaller comes first. Items with equal
//! ones are compared as a whole.

use std::cmp::Ordering;

use super::numeric_order;

/// Compares two texts under a collation, given by its number.
pub type Collate = fn(&[u8], &[u8], u32) -> Ordering;

/// How the payloads of items are ordered.
#[derive(Clone, Copy, Debug)]
pub enum ItemOrder {
    /// By their bytes.
    Bytes,
    /// As numerics of PostgreSQL.
    Numeric,
    /// As texts under a collation.
    Collated(Collate, u32),
}

/// An order of items, and whether blanks at the end of an item count.
#[derive(Clone, Copy, Debug)]
pub struct ItemSort {
    /// The order.
    pub order: ItemOrder,
    /// Blanks at the end do not count, as in `char(n)`.
    pub is_padded: bool,
}

impl ItemSort {
    /// What of a payload counts.
    #[inline]
    pub(crate) fn counted(self, payload: &[u8]) -> &[u8] {
        if !self.is_padded {
            return payload;
        }
        let blanks = payload.iter().rev().take_while(|byte| **byte == b' ');
        &payload[..payload.len() - blanks.count()]
    }

    /// The abbreviation of what counts of a payload.
    #[inline]
    pub(super) fn abbreviation(self, counted: &[u8]) -> u64 {
        match self.order {
            ItemOrder::Bytes => match counted.first_chunk() {
                Some(first) => u64::from_be_bytes(*first),
                None => {
                    let mut first = [0; 8];
                    first[..counted.len()].copy_from_slice(counted);
                    u64::from_be_bytes(first)
                }
            },
            ItemOrder::Numeric => numeric_order::abbreviation(counted),
            ItemOrder::Collated(..) => 0,
        }
    }

    /// Compares what counts of two payloads.
    #[inline]
    pub(crate) fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self.order {
            ItemOrder::Bytes => a.cmp(b),
            ItemOrder::Numeric => numeric_order::compare(a, b),
            ItemOrder::Collated(collate, collation) => collate(a, b, collation),
        }
    }
}
