//! A zone as bytes of a part's index.

use super::{VERSION_WITHOUT_SUMS, take};
use crate::error::{Error, Result};
use crate::zone_map::{Bound, Zone};

const KIND_MASK: u8 = 0b11;
const SIGNED: u8 = 1;
const FLOAT: u8 = 2;
const SORTED: u8 = 1 << 2;
const HAS_NAN: u8 = 1 << 3;
const HAS_INFINITE: u8 = 1 << 4;
const HAS_SUM: u8 = 1 << 5;

pub(super) fn write_zone(zone: &Zone, out: &mut Vec<u8>) {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let has_sum = zone.has_sum && zone.non_null > 0;
    let flags = flag(zone.sorted, SORTED)
        | flag(zone.has_nan, HAS_NAN)
        | flag(zone.has_infinite, HAS_INFINITE)
        | flag(has_sum, HAS_SUM);
    let bounds = match (zone.minimum, zone.maximum) {
        (Bound::Signed(minimum), Bound::Signed(maximum)) => {
            Some((SIGNED, minimum.to_le_bytes(), maximum.to_le_bytes()))
        }
        (Bound::Float(minimum), Bound::Float(maximum)) => {
            Some((FLOAT, minimum.to_le_bytes(), maximum.to_le_bytes()))
        }
        _ => None,
    };
    out.push(flags | bounds.map_or(0, |(kind, ..)| kind));
    out.extend_from_slice(&zone.non_null.to_le_bytes());
    if let Some((_, minimum, maximum)) = bounds {
        out.extend_from_slice(&minimum);
        out.extend_from_slice(&maximum);
    }
    if has_sum {
        out.extend_from_slice(&zone.sum.to_le_bytes());
    }
}

pub(super) fn read_zone(left: &mut &[u8], version: u8) -> Result<Zone> {
    let [flags] = take(left)?;
    let non_null = u32::from_le_bytes(take(left)?);
    let (minimum, maximum) = match flags & KIND_MASK {
        0 => (Bound::Unknown, Bound::Unknown),
        SIGNED => (
            Bound::Signed(i64::from_le_bytes(take(left)?)),
            Bound::Signed(i64::from_le_bytes(take(left)?)),
        ),
        FLOAT => (
            Bound::Float(f64::from_le_bytes(take(left)?)),
            Bound::Float(f64::from_le_bytes(take(left)?)),
        ),
        _ => return Err(Error::Malformed("a zone of an unknown sort")),
    };
    let is_summed = flags & HAS_SUM != 0;
    if is_summed && version <= VERSION_WITHOUT_SUMS {
        return Err(Error::Malformed("a sum in a version without"));
    }
    let sum = match is_summed {
        true => i128::from_le_bytes(take(left)?),
        false => 0,
    };
    Ok(Zone {
        codes: None,
        minimum,
        maximum,
        non_null,
        sum,
        // A zone without values has the sum 0.
        has_sum: is_summed || non_null == 0,
        sorted: flags & SORTED != 0,
        has_nan: flags & HAS_NAN != 0,
        has_infinite: flags & HAS_INFINITE != 0,
        exact: false,
    })
}
