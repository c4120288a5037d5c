//! Values of 16 bytes in the order of `memcmp`, for instance UUIDs.
//!
//! A zone contains only the first 8 bytes of such values, the [prefix](Bytes16::prefix). Equal
//! values have equal prefixes, and a lesser value has a prefix that is no greater. A zone can
//! therefore prove that a value is absent, but never that it is present.

use std::hash::{Hash, Hasher};

use lanes_simd::Comparison;

use crate::zone_map::Zone;

/// A value, as the number whose order is that of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bytes16(u128);

impl Bytes16 {
    /// The value of these bytes.
    #[inline]
    pub const fn of(bytes: [u8; 16]) -> Bytes16 {
        Bytes16(u128::from_be_bytes(bytes))
    }

    /// Its bytes.
    #[inline]
    pub const fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Reads the value at an address.
    ///
    /// # Safety
    /// 16 bytes are readable at the address, which may have any alignment.
    #[inline]
    pub unsafe fn read(at: *const u8) -> Bytes16 {
        // SAFETY: this function's contract.
        Bytes16::of(unsafe { at.cast::<[u8; 16]>().read() })
    }

    /// The first 8 bytes as a number of the same order. Zones are stored with it, so its meaning
    /// must never change.
    #[inline]
    pub const fn prefix(self) -> i64 {
        ((self.0 >> 64) as u64 ^ 1 << 63) as i64
    }

    /// Whether a zone shows that no row in it compares like this with the value.
    pub fn is_ruled_out(self, comparison: Comparison, zone: &Zone) -> bool {
        if zone.non_null == 0 {
            return true;
        }
        let (Some(least), Some(greatest)) = (zone.minimum.signed(), zone.maximum.signed()) else {
            return false;
        };
        // Rows with the value's own prefix may be less than the value, or greater.
        let prefix = self.prefix();
        match comparison {
            Comparison::Equal => prefix < least || greatest < prefix,
            Comparison::NotEqual => false,
            Comparison::Less | Comparison::LessOrEqual => prefix < least,
            Comparison::Greater | Comparison::GreaterOrEqual => greatest < prefix,
        }
    }
}

impl Hash for Bytes16 {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64((self.0 >> 64) as u64);
        state.write_u64(self.0 as u64);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kind::{LaneKind, Number};
    use crate::test_support::{build, cases};
    use crate::zone_map;

    #[test]
    fn a_prefix_is_what_it_was_when_zones_were_stored() {
        let prefix = |first: [u8; 8]| {
            let mut bytes = [7; 16];
            bytes[..8].copy_from_slice(&first);
            Bytes16::of(bytes).prefix()
        };
        assert_eq!(prefix([0; 8]), i64::MIN);
        assert_eq!(prefix([0xff; 8]), i64::MAX);
        assert_eq!(prefix([0x80, 0, 0, 0, 0, 0, 0, 0]), 0);
        assert_eq!(prefix([0x80, 0, 0, 0, 0, 0, 1, 2]), 258);
        assert_eq!(prefix([0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]), -2);
    }

    /// Values of which many have equal prefixes, or equal ends.
    fn any_value() -> impl Strategy<Value = [u8; 16]> {
        let half = || prop_oneof![0..3_u64, any::<u64>()];
        (half(), half()).prop_map(|(high, low)| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&high.to_be_bytes());
            bytes[8..].copy_from_slice(&low.to_be_bytes());
            bytes
        })
    }

    proptest! {
        #![proptest_config(cases(800))]

        #[test]
        fn a_zone_never_rules_out_a_row_that_passes(
            rows in prop::collection::vec(prop::option::weighted(0.8, any_value()), 0..20),
            value in any_value(),
        ) {
            let kind = LaneKind::Fixed { width: 16, stride: 16, number: Number::Bytes16 };
            let values: Vec<_> = rows.iter().map(|row| row.map(|row| row.to_vec())).collect();
            let column = build(kind, &values);
            // SAFETY: the column is of this kind and has these rows.
            let zone = unsafe { zone_map::compute(&column.lane(), kind, 0..rows.len()) };
            let rows: Vec<[u8; 16]> = rows.into_iter().flatten().collect();
            for comparison in Comparison::ALL {
                let passes = |row: &[u8; 16]| crate::vector::predicate::holds(comparison, row.cmp(&value));
                let is_ruled_out = Bytes16::of(value).is_ruled_out(comparison, &zone);
                prop_assert!(!is_ruled_out || !rows.iter().any(passes), "{:?}", comparison);
            }
            // The prefixes decide whenever they differ.
            let others = rows.iter().all(|row| row[..8] < value[..8]);
            prop_assert!(!others || Bytes16::of(value).is_ruled_out(Comparison::Equal, &zone));
            prop_assert!(!others || Bytes16::of(value).is_ruled_out(Comparison::Greater, &zone));
            let others = rows.iter().all(|row| row[..8] > value[..8]);
            prop_assert!(!others || Bytes16::of(value).is_ruled_out(Comparison::Equal, &zone));
            prop_assert!(!others || Bytes16::of(value).is_ruled_out(Comparison::LessOrEqual, &zone));
        }
    }
}
