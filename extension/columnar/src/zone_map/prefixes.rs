//! One pass over values of 16 bytes, of which a zone knows the prefixes.

use super::{Bound, Zone};
use crate::bits;
use crate::bytes16::Bytes16;

/// The zone of a vector's values, some of which are not NULL.
///
/// # Safety
/// There are values of 16 bytes at the address, one for each row.
pub(super) unsafe fn bytes16(
    values: *const u8,
    rows: usize,
    valid: Option<&[u64]>,
    zone: Zone,
) -> Zone {
    // SAFETY: this function's contract.
    let prefix = |row: usize| unsafe { Bytes16::read(values.add(row * 16)) }.prefix();
    let (least, greatest) = bounds((0..rows).map(prefix), valid);
    Zone {
        minimum: Bound::Signed(least),
        maximum: Bound::Signed(greatest),
        sorted: false,
        ..zone
    }
}

/// The least and the greatest prefix of the rows that are not NULL.
pub(crate) fn bounds(prefixes: impl Iterator<Item = i64>, valid: Option<&[u64]>) -> (i64, i64) {
    let mut bounds = (i64::MAX, i64::MIN);
    for (row, prefix) in prefixes.enumerate() {
        if valid.is_none_or(|valid| bits::get(valid, row)) {
            bounds = (bounds.0.min(prefix), bounds.1.max(prefix));
        }
    }
    bounds
}
