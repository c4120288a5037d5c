//! Bounds of the values of a vector, as far as the bytes contain them without decoding.
//!
//! | form | bounds of the numbers |
//! |---|---|
//! | constant | the number |
//! | level | base; base + the greatest residual of that width × factor; either with the patches |
//! | delta | as if every difference were the least, or the greatest, that its width allows. Differences of one bit are counted, and patches summed, so those of a sorted key are exact |
//! | delta of delta | as for delta, with the differences bounded in the same way |
//! | either, rising | the first and the last |
//! | few | of its distinct numbers |
//! | pattern | its first and its last row, if the pattern only rises or only falls; otherwise those of the whole pattern |
//!
//! Numbers count modulo 2^64. Bounds that leave that range are useless and are not returned.
//!
//! The bounds of decimal floats are the bounds of their numbers, each divided by the power of ten,
//! which keeps the order. Of floats stored by their bits, only constants have bounds. Values of 16
//! bytes are stored as they are, and are read.

use super::block::{Block, Form};
use super::blocks::Blocks;
use super::format::{Class, ONE_VALUE};
use super::lane::{EncodedLane, WORDS};
use crate::bytes16::Bytes16;
use crate::kind::{LaneKind, Number};
use crate::zone_map::{Bound, CodeZone, Zone, prefix_bounds};

type Bounds = (i128, i128);

impl EncodedLane<'_> {
    /// An inexact zone of a vector of numbers, or of codes of the lane's dictionary. Its bounds
    /// hold but need not be tight, and it has no order and no sum. Returns `None` if the zone would
    /// require decoding, and for other lanes.
    pub fn zone(&self, vector: usize) -> Option<Zone> {
        let empty = Zone {
            sorted: false,
            has_sum: false,
            exact: false,
            ..Zone::empty(self.kind)
        };
        let rows = self.vector_rows(vector);
        if rows == 0 || self.is_null() {
            return Some(empty);
        }
        match (self.header.class, self.kind) {
            (
                Class::Integers,
                LaneKind::Fixed {
                    width,
                    number: Number::Signed,
                    ..
                },
            ) => self.integer_zone(vector, empty, 64 - 8 * u32::from(width)),
            (Class::Dictionary, _) => self.integer_zone(vector, empty, u32::BITS),
            (Class::Floats, _) => self.float_zone(vector, empty),
            (
                Class::Bytes,
                LaneKind::Fixed {
                    number: Number::Bytes16,
                    ..
                },
            ) => self.prefix_zone(vector, empty),
            _ => None,
        }
    }

    /// The zone of integers or codes, which do not use so many of the high bits of 64.
    fn integer_zone(&self, vector: usize, empty: Zone, unused_bits: u32) -> Option<Zone> {
        let rows = self.vector_rows(vector);
        let (reader, some) = self.vector_body(vector, &mut [0; WORDS]).ok()?;
        if some.is_none() {
            return Some(empty);
        }
        let mut zone = Zone {
            non_null: rows as u32,
            ..empty
        };
        let mut all: Option<Bounds> = None;
        for block in Blocks::new(reader, rows, self.block_layout()) {
            let (low, high) = self.bounds(&block.ok()?)?;
            let (least, greatest) = all.unwrap_or((low, high));
            all = Some((least.min(low), greatest.max(high)));
            if self.header.class == Class::Dictionary {
                let codes = u32::try_from(low).ok()?..=u32::try_from(high).ok()?;
                let codes = CodeZone::of_range(codes);
                zone.codes = Some(zone.codes.map_or(codes, |others| others.union(codes)));
            }
        }
        if zone.codes.is_some() {
            return Some(zone);
        }
        let (least, greatest) = all?;
        // The low bits of numbers beyond the column's width may be any value.
        let range = i128::from(i64::MIN >> unused_bits)..=i128::from(i64::MAX >> unused_bits);
        if !range.contains(&least) || !range.contains(&greatest) {
            return None;
        }
        zone.minimum = Bound::Signed(least as i64);
        zone.maximum = Bound::Signed(greatest as i64);
        Some(zone)
    }

    /// The zone of floats.
    fn float_zone(&self, vector: usize, empty: Zone) -> Option<Zone> {
        let rows = self.vector_rows(vector);
        let (reader, some) = self.vector_body(vector, &mut [0; WORDS]).ok()?;
        if some.is_none() {
            return Some(empty);
        }
        let layout = self.block_layout();
        let mut all: Option<(f64, f64)> = None;
        for block in Blocks::new(reader, rows, layout) {
            let block = block.ok()?;
            let (low, high) = match block.constant(layout.float_width) {
                Some(bits) => {
                    let value = float(bits, layout.float_width);
                    (value, value)
                }
                None => {
                    let pattern = match block.form {
                        Form::Pattern { index, .. } => Some(self.pattern(index).ok()?),
                        _ => None,
                    };
                    let numbers = pattern.as_ref().unwrap_or(&block);
                    if numbers.is_bits() {
                        return None;
                    }
                    let bounds = own_bounds(numbers)?;
                    let value = |bound: i128| {
                        let number = i64::try_from(bound).ok()?;
                        let bits = numbers.float_bits(number, layout.float_width);
                        Some(float(bits, layout.float_width))
                    };
                    (value(bounds.0)?, value(bounds.1)?)
                }
            };
            // A NaN is greater than all others.
            if !low.is_finite() || !high.is_finite() {
                return None;
            }
            let (least, greatest) = all.unwrap_or((low, high));
            all = Some((least.min(low), greatest.max(high)));
        }
        let (least, greatest) = all?;
        Some(Zone {
            minimum: Bound::Float(least),
            maximum: Bound::Float(greatest),
            non_null: rows as u32,
            ..empty
        })
    }

    /// The zone of the prefixes of values of 16 bytes, which are stored as they are.
    fn prefix_zone(&self, vector: usize, empty: Zone) -> Option<Zone> {
        let rows = self.vector_rows(vector);
        let mut validity = [0; WORDS];
        let (mut reader, some) = self.vector_body(vector, &mut validity).ok()?;
        let Some(some_nulls) = some else {
            return Some(empty);
        };
        let (values, valid) = match reader.byte().ok()? {
            ONE_VALUE => (reader.bytes(16).ok()?, None),
            _ => (
                reader.bytes(rows * 16).ok()?,
                some_nulls.then_some(&validity[..]),
            ),
        };
        let (values, _) = values.as_chunks::<16>();
        let prefixes = values.iter().map(|value| Bytes16::of(*value).prefix());
        let (least, greatest) = prefix_bounds(prefixes, valid);
        Some(Zone {
            minimum: Bound::Signed(least),
            maximum: Bound::Signed(greatest),
            non_null: rows as u32,
            ..empty
        })
    }

    /// The bounds of the numbers of a block.
    fn bounds(&self, block: &Block<'_>) -> Option<Bounds> {
        if let Form::Pattern { index, first } = block.form {
            let pattern = self.pattern(index).ok()?;
            let whole = own_bounds(&pattern)?;
            let last = first + block.rows - 1;
            let numbers = i128::from(i64::MIN)..=i128::from(i64::MAX);
            let is_within = numbers.contains(&whole.0) && numbers.contains(&whole.1);
            if !pattern.is_monotonic() || !is_within || last >= pattern.rows {
                return Some(whole);
            }
            let ends = [first, last].map(|row| i128::from(pattern.number_of(row) as i64));
            return Some((ends[0].min(ends[1]), ends[0].max(ends[1])));
        }
        own_bounds(block)
    }
}

/// A float by its bits.
fn float(bits: u64, width: usize) -> f64 {
    match width {
        4 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

/// The bounds of a block that is not taken from a pattern.
fn own_bounds(block: &Block<'_>) -> Option<Bounds> {
    let signed = |number: u64| i128::from(number as i64);
    Some(match &block.form {
        Form::Constant(number) => (signed(*number), signed(*number)),
        Form::Level(packed) => packed.bounds()?,
        Form::Delta {
            first,
            rise: Some(rise),
            ..
        }
        | Form::DeltaOfDelta {
            first,
            rise: Some(rise),
            ..
        } => from(signed(*first), (0, i128::from(*rise)))?,
        Form::Delta { first, packed, .. } => {
            from(signed(*first), packed.sum_bounds(block.rows - 1)?)?
        }
        Form::DeltaOfDelta {
            first,
            step,
            packed,
            ..
        } => {
            let changes = packed.sum_bounds(block.rows.saturating_sub(2))?;
            let steps = from(signed(*step), changes)?;
            after(signed(*first), block.rows as i128 - 1, steps)?
        }
        Form::Few {
            table,
            count,
            packed,
        } => {
            // There may be outliers.
            packed.bounds()?;
            let (mut table, mut number) = (*table, 0_u64);
            let mut bounds: Option<Bounds> = None;
            for _ in 0..*count {
                number = number.wrapping_add(table.signed().ok()? as u64);
                let next = signed(number);
                let (low, high) = bounds.unwrap_or((next, next));
                bounds = Some((low.min(next), high.max(next)));
            }
            bounds?
        }
        Form::Pattern { .. } => return None,
    })
}

/// The bounds of a number that begins at `first` and changes so many times by an amount within
/// `steps`.
fn after(first: i128, times: i128, (low, high): Bounds) -> Option<Bounds> {
    let low = low.min(0).checked_mul(times)?;
    let high = high.max(0).checked_mul(times)?;
    from(first, (low, high))
}

/// The bounds of what begins at `first` and changes by sums within `changes`.
fn from(first: i128, (low, high): Bounds) -> Option<Bounds> {
    Some((first.checked_add(low)?, first.checked_add(high)?))
}
