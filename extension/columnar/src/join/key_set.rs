//! The keys of a small side in order, by which zone maps can prove that a vector has none of them.

use crate::bytes16::Bytes16;
use crate::zone_map::{Bound, Zone};

/// Different keys in ascending order: integers, floats, or the prefixes of 16 bytes, each as an
/// integer in the same order.
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    places: Vec<i64>,
}

impl KeySet {
    /// The set of some integers.
    pub fn of_integers(integers: impl Iterator<Item = i64>) -> KeySet {
        let mut places: Vec<i64> = integers.collect();
        places.sort_unstable();
        places.dedup();
        KeySet { places }
    }

    /// The set of some floats.
    pub fn of_floats(floats: impl Iterator<Item = f64>) -> KeySet {
        KeySet::of_integers(floats.map(place_of_float))
    }

    /// The set of some values of 16 bytes.
    pub fn of_bytes16(values: impl Iterator<Item = Bytes16>) -> KeySet {
        KeySet::of_integers(values.map(Bytes16::prefix))
    }

    /// Whether a zone shows that no row in it has any of these keys.
    pub fn is_ruled_out(&self, zone: &Zone) -> bool {
        if zone.non_null == 0 {
            return true;
        }
        match (place(zone.minimum), place(zone.maximum)) {
            (Some(minimum), Some(maximum)) => {
                self.first_from(minimum).is_none_or(|key| key > maximum)
            }
            _ => false,
        }
    }

    /// The [`place`] of the least key that is at this place or after it.
    pub fn first_from(&self, from: i64) -> Option<i64> {
        let next = self.places.partition_point(|place| *place < from);
        self.places.get(next).copied()
    }

    /// Whether each [`place`] from one to another is that of a key.
    pub fn has_all(&self, from: i64, until: i64) -> bool {
        let first = self.places.partition_point(|place| *place < from);
        let keys = self.places[first..].partition_point(|place| *place <= until);
        i128::from(until) - i128::from(from) < keys as i128
    }

    /// The [`place`] of the greatest key that is at this place or before it.
    pub fn last_until(&self, until: i64) -> Option<i64> {
        let next = self.places.partition_point(|place| *place <= until);
        self.places[..next].last().copied()
    }
}

/// The integer that stands for a bound in the order of its kind. Places of two kinds do not
/// compare.
pub fn place(bound: Bound) -> Option<i64> {
    match bound {
        Bound::Unknown => None,
        Bound::Signed(integer) => Some(integer),
        Bound::Float(float) => Some(place_of_float(float)),
    }
}

/// An integer in PostgreSQL's order of floats: -0 equals 0, NaN equals itself and is the greatest.
pub fn place_of_float(value: f64) -> i64 {
    if value.is_nan() {
        return i64::MAX;
    }
    let bits = if value == 0.0 {
        0
    } else {
        value.to_bits() as i64
    };
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

#[cfg(test)]
mod tests {
    use super::KeySet;

    #[test]
    fn a_range_is_covered_if_each_of_its_integers_is_a_key() {
        let keys = KeySet::of_integers([7, 5, 6, 6, 9, i64::MIN, i64::MAX].into_iter());
        for (from, until, expected) in [
            (5, 7, true),
            (6, 6, true),
            (5, 8, false),
            (5, 9, false),
            (8, 8, false),
            (i64::MIN, i64::MIN, true),
            (i64::MIN, i64::MAX, false),
        ] {
            assert_eq!(keys.has_all(from, until), expected, "{from} to {until}");
        }
        assert!(!KeySet::default().has_all(0, 0));
    }
}
