//! Sums and extremes of [decimals](crate::vector::decimal).
//!
//! All states have one scale, the greatest so far, so that values are added and compared as
//! integers. Each group has the scale of its result beside it, which may be smaller.
//!
//! An accumulator refuses a vector that does not fit, before it has changed anything. The caller
//! then keeps the vector's rows in a state of another kind.

use super::accumulator::Grouping;
use super::extreme::End;
use crate::limits::VECTOR_ROWS;
use crate::vector::decimal::{Decimal, Decimals, power_of_ten};
use crate::vector::selection::Selection;

/// The greatest sum that is brought to another scale. A sum needs 2^63 rows to grow from here to
/// the end of 128 bits.
const SUM_MAX: u128 = 1 << 126;

/// Up to so many groups, the rows of a vector are summed [together](DecimalSums::add_packed).
const FEW_GROUPS: usize = 64;

/// The rows of a vector are spread among so many tables, so that no sum waits for the one before it.
const TABLES: usize = 4;

/// The bits of a sum that has a count in the bits above.
const SUM_BITS: u32 = 52;

/// Magnitudes below this one have sums of less than 2^51 in each table.
const PACKED_MAX: u64 = 1 << 42;

const _: () = assert!((VECTOR_ROWS / TABLES) as u64 * PACKED_MAX <= 1 << (SUM_BITS - 1));

/// The sum of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DecimalSum {
    /// The number of decimals that were added.
    pub count: u64,
    /// The sum times ten to the power of the scale.
    pub sum: i128,
    /// The greatest scale of the decimals that were added.
    pub scale: u8,
}

/// Counts and sums of decimals.
#[derive(Default)]
pub struct DecimalSums {
    /// The scale of all sums.
    scale: u8,
    /// The sums with that scale, and the scales of the groups' results.
    groups: Vec<DecimalSum>,
}

impl DecimalSums {
    /// Makes room for so many groups.
    pub fn resize(&mut self, groups: usize) {
        self.groups.resize(groups, DecimalSum::default());
    }

    /// Removes all groups.
    pub fn clear(&mut self) {
        *self = DecimalSums::default();
    }

    /// Adds the valid rows. The grouping has no stretches. False: they do not fit, and nothing was
    /// added.
    pub fn add(&mut self, grouping: &Grouping<'_>, decimals: &Decimals, rows: usize) -> bool {
        let scale = self.scale.max(decimals.scale());
        let Some(factor) = decimals.factor_to(scale) else {
            return false;
        };
        if !self.rescale(scale) {
            return false;
        }
        match *grouping {
            Grouping::One(group) => self.add_to_one(group as usize, decimals, factor, rows),
            Grouping::Each(ids) => self.add_each(ids, decimals, factor, rows),
            Grouping::Stretches(_) => return false,
        }
        true
    }

    /// Brings all sums to a scale that is no less than theirs; false if one does not fit.
    fn rescale(&mut self, scale: u8) -> bool {
        if scale == self.scale {
            return true;
        }
        let factor = i128::from(power_of_ten(scale - self.scale));
        let fits = |group: &DecimalSum| {
            let product = group.sum.checked_mul(factor);
            product.is_some_and(|product| product.unsigned_abs() < SUM_MAX)
        };
        if !self.groups.iter().all(fits) {
            return false;
        }
        let groups = self.groups.iter_mut();
        groups.for_each(|group| group.sum *= factor);
        self.scale = scale;
        true
    }

    fn add_to_one(&mut self, group: usize, decimals: &Decimals, factor: i64, rows: usize) {
        let valid = decimals.valid();
        let count = valid.count();
        if count == 0 {
            return;
        }
        // SAFETY: there is a value for each row of the vector, and a bit for each.
        let sum = unsafe {
            let values = decimals.values().as_ptr();
            lanes_simd::aggregate::sum::<i64>(values, rows, valid.as_ptr())
        };
        let scale = match decimals.own_scales() {
            None => decimals.scale(),
            Some(own) => greatest(own, valid),
        };
        let group = &mut self.groups[group];
        group.count += count as u64;
        group.sum += sum * i128::from(factor);
        group.scale = group.scale.max(scale);
    }

    fn add_each(&mut self, ids: &[u32], decimals: &Decimals, factor: i64, rows: usize) {
        let are_small = decimals.magnitude() * (factor as u64) < PACKED_MAX;
        if are_small && self.groups.len() <= FEW_GROUPS && decimals.own_scales().is_none() {
            self.add_packed(ids, decimals, factor, rows);
            return;
        }
        let (values, groups) = (decimals.values(), &mut self.groups);
        let mut add = |row: usize, scale: u8| {
            let group = &mut groups[ids[row] as usize];
            group.count += 1;
            group.sum += i128::from(values[row] * factor);
            group.scale = group.scale.max(scale);
        };
        let valid = decimals.valid();
        match (decimals.own_scales(), decimals.scale()) {
            (None, scale) => valid.for_each_of(rows, |row| add(row, scale)),
            (Some(own), _) => valid.for_each_of(rows, |row| add(row, own[row])),
        }
    }

    /// Adds rows of few groups, with one scale and small magnitudes. The sums of the vector, and the counts above them,
    /// are integers of 64 bits.
    fn add_packed(&mut self, ids: &[u32], decimals: &Decimals, factor: i64, rows: usize) {
        let (values, mut tables) = (decimals.values(), [0_i64; FEW_GROUPS * TABLES]);
        let ids = &ids[..rows.min(VECTOR_ROWS)];
        decimals.valid().for_each_of(ids.len(), |row| {
            // An id is less than the number of groups.
            let place = row % TABLES * FEW_GROUPS + ids[row] as usize % FEW_GROUPS;
            let added = values[row].wrapping_mul(factor).wrapping_add(1 << SUM_BITS);
            tables[place] = tables[place].wrapping_add(added);
        });
        for (index, group) in self.groups.iter_mut().enumerate() {
            for packed in tables.iter().skip(index).step_by(FEW_GROUPS) {
                let sum = packed << (64 - SUM_BITS) >> (64 - SUM_BITS);
                let count = packed.wrapping_sub(sum) as u64 >> SUM_BITS;
                if count > 0 {
                    group.count += count;
                    group.sum += i128::from(sum);
                    group.scale = group.scale.max(decimals.scale());
                }
            }
        }
    }

    /// The sum of a group; `None` if no decimal was added.
    pub fn sum(&self, group: usize) -> Option<DecimalSum> {
        let group = self.groups[group];
        let factor = power_of_ten(self.scale - group.scale);
        (group.count > 0).then(|| DecimalSum {
            sum: group.sum / i128::from(factor),
            ..group
        })
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.groups.capacity() * size_of::<DecimalSum>()
    }
}

/// The greatest of the scales of some rows.
fn greatest(scales: &[u8], rows: &Selection) -> u8 {
    let mut greatest = 0;
    rows.for_each(|row| greatest = greatest.max(scales[row]));
    greatest
}

/// The smallest or greatest decimal of each group. Of equal decimals the last one counts, as in
/// PostgreSQL's functions.
pub struct DecimalExtremes {
    end: End,
    /// The scale of all values.
    scale: u8,
    /// The values with that scale, and the groups' own scales.
    groups: Vec<Option<Decimal>>,
}

impl DecimalExtremes {
    /// States without groups.
    pub fn new(end: End) -> DecimalExtremes {
        DecimalExtremes {
            end,
            scale: 0,
            groups: Vec::new(),
        }
    }

    /// Makes room for so many groups.
    pub fn resize(&mut self, groups: usize) {
        self.groups.resize(groups, None);
    }

    /// Removes all groups.
    pub fn clear(&mut self) {
        *self = DecimalExtremes::new(self.end);
    }

    /// Compares the valid rows with their groups. The grouping has no stretches. False: they do not
    /// fit, and nothing was compared.
    pub fn add(&mut self, grouping: &Grouping<'_>, decimals: &Decimals, rows: usize) -> bool {
        let scale = self.scale.max(decimals.scale());
        let Some(factor) = decimals.factor_to(scale) else {
            return false;
        };
        if !self.rescale(scale) {
            return false;
        }
        let (end, groups) = (self.end, &mut self.groups);
        let mut offer = |value: i64, scale: u8, group: u32| {
            let best = &mut groups[group as usize];
            let is_beaten = best.is_some_and(|best| match end {
                End::Minimum => best.value < value,
                End::Maximum => best.value > value,
            });
            if !is_beaten {
                *best = Some(Decimal { value, scale });
            }
        };
        let (values, valid) = (decimals.values(), decimals.valid());
        if let (Grouping::One(group), None) = (grouping, decimals.own_scales()) {
            let (values, words) = (values.as_ptr(), valid.as_ptr());
            // SAFETY: there is a value for each row of the vector, and a bit for each.
            let found = unsafe {
                match end {
                    End::Minimum => lanes_simd::aggregate::minimum::<i64>(values, rows, words),
                    End::Maximum => lanes_simd::aggregate::maximum::<i64>(values, rows, words),
                }
            };
            let found = found.into_iter();
            found.for_each(|value| offer(value * factor, decimals.scale(), *group));
            return true;
        }
        each_row(grouping, valid, rows, |row, group| {
            offer(values[row] * factor, decimals.scale_of(row), group);
        })
    }

    /// Brings all values to a scale that is no less than theirs; false if one does not fit.
    fn rescale(&mut self, scale: u8) -> bool {
        let factor = power_of_ten(scale - self.scale);
        let mut known = self.groups.iter().flatten();
        if !known.all(|known| known.value.checked_mul(factor).is_some()) {
            return false;
        }
        if factor != 1 {
            let known = self.groups.iter_mut().flatten();
            known.for_each(|known| known.value *= factor);
            self.scale = scale;
        }
        true
    }

    /// The extreme of a group; `None` if it has no decimal.
    pub fn extreme(&self, group: usize) -> Option<Decimal> {
        self.groups[group].map(|Decimal { value, scale }| Decimal {
            value: value / power_of_ten(self.scale - scale),
            scale,
        })
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Option<Decimal>>()
    }
}

/// Passes each of some rows with its group; false for a grouping by stretches.
#[inline(always)]
fn each_row(
    grouping: &Grouping<'_>,
    selection: &Selection,
    rows: usize,
    mut take: impl FnMut(usize, u32),
) -> bool {
    match *grouping {
        Grouping::One(group) => selection.for_each_of(rows, |row| take(row, group)),
        Grouping::Each(ids) => selection.for_each_of(rows, |row| take(row, ids[row])),
        Grouping::Stretches(_) => return false,
    }
    true
}
