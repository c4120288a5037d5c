//! The decimals of a vector.

use std::ptr::NonNull;

use super::{Decimal, power_of_ten};
use crate::decimal_lane::KnownVector;
use crate::limits::VECTOR_ROWS;
use crate::vector::selection::Selection;

/// A decimal for each row of a vector, or NULL.
///
/// All values are written with one scale, the greatest of the vector, so that they can be added and
/// compared as integers. If the rows have several scales, each row's own one is kept beside.
pub struct Decimals {
    values: Box<[i64; VECTOR_ROWS]>,
    /// The values, if the lane that was read last keeps them.
    kept: Option<NonNull<[i64; VECTOR_ROWS]>>,
    /// The scale of all values.
    scale: u8,
    /// Each row's own scale, if they differ.
    own_scales: Box<[u8; VECTOR_ROWS]>,
    has_own_scales: bool,
    /// Whether all rows of all vectors have one value.
    is_same: bool,
    valid: Selection,
    /// No value of a valid row is greater in magnitude.
    magnitude: u64,
}

impl Default for Decimals {
    fn default() -> Self {
        Decimals {
            values: Box::new([0; VECTOR_ROWS]),
            kept: None,
            scale: 0,
            own_scales: Box::new([0; VECTOR_ROWS]),
            has_own_scales: false,
            is_same: false,
            valid: Selection::NONE,
            magnitude: 0,
        }
    }
}

impl Decimals {
    /// The value of each row, with the vector's scale. Those of rows that are not valid mean nothing.
    pub fn values(&self) -> &[i64; VECTOR_ROWS] {
        match &self.kept {
            None => &self.values,
            // SAFETY: what reads the decimals of a vector does so before the vector's lanes are left.
            Some(kept) => unsafe { kept.as_ref() },
        }
    }

    /// The scale of all values.
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Each row's own scale, if they differ.
    pub fn own_scales(&self) -> Option<&[u8; VECTOR_ROWS]> {
        self.has_own_scales.then_some(&*self.own_scales)
    }

    /// The scale of a row.
    pub fn scale_of(&self, row: usize) -> u8 {
        match self.has_own_scales {
            true => self.own_scales[row],
            false => self.scale,
        }
    }

    /// The decimal of a row that is not NULL, with its own scale.
    pub(crate) fn decimal(&self, row: usize) -> Decimal {
        let (value, scale) = (self.values()[row], self.scale_of(row));
        Decimal {
            // Where the rows have scales of their own, the digits after a row's scale are zeros.
            value: match self.scale - scale {
                0 => value,
                zeros => value / power_of_ten(zeros),
            },
            scale,
        }
    }

    /// The rows that are not NULL.
    pub fn valid(&self) -> &Selection {
        &self.valid
    }

    /// No valid row's value is greater in magnitude.
    pub fn magnitude(&self) -> u64 {
        self.magnitude
    }

    /// The value of all rows, if they are the [same](Self::same).
    pub(super) fn same_value(&self) -> Option<i64> {
        self.is_same.then(|| self.values[0])
    }

    /// The values, to be written. The caller sets everything else by [`set`](Self::set).
    pub(super) fn values_mut(&mut self) -> &mut [i64; VECTOR_ROWS] {
        &mut self.values
    }

    /// The rows' own scales, to be written.
    pub(super) fn own_scales_mut(&mut self) -> &mut [u8; VECTOR_ROWS] {
        &mut self.own_scales
    }

    /// Says what the values that were written are.
    pub(super) fn set(
        &mut self,
        scale: u8,
        has_own_scales: bool,
        valid: Selection,
        magnitude: u64,
    ) {
        (self.scale, self.has_own_scales) = (scale, has_own_scales);
        (self.valid, self.magnitude, self.kept) = (valid, magnitude, None);
    }

    /// Reads the rows of a vector that begins at a row of a kept vector.
    ///
    /// # Safety
    /// The decimals are read only while the owner of the kept vector lives.
    pub(super) unsafe fn take_kept(&mut self, kept: KnownVector, first: usize, rows: &Selection) {
        self.set(kept.scale, false, *rows, kept.magnitude);
        if first == 0 {
            self.kept = NonNull::new(kept.values.cast_mut());
            return;
        }
        // SAFETY: this function's contract.
        let values = unsafe { &*kept.values };
        let count = VECTOR_ROWS - first;
        self.values[..count].copy_from_slice(&values[first..]);
    }

    /// One decimal for all rows of any vector, none of which is selected yet.
    pub(super) fn same(decimal: Option<Decimal>) -> Decimals {
        let mut decimals = Decimals {
            is_same: true,
            ..Decimals::default()
        };
        decimals
            .values
            .fill(decimal.map_or(0, |decimal| decimal.value));
        decimals
    }

    /// Selects rows of what is the [same](Self::same) decimal everywhere, or NULL.
    pub(super) fn select_same(&mut self, decimal: Option<Decimal>, selection: &Selection) {
        match decimal {
            None => self.set_none(),
            Some(Decimal { value, scale }) => {
                self.set(scale, false, *selection, value.unsigned_abs());
            }
        }
    }

    /// Makes all rows NULL.
    pub(super) fn set_none(&mut self) {
        self.set(0, false, Selection::NONE, 0);
    }

    /// Takes a decimal for each of some rows; `None` if one of them does not fit.
    #[inline(always)]
    pub(super) fn take_rows(
        &mut self,
        rows: &Selection,
        mut decimal: impl FnMut(usize) -> Option<Decimal>,
    ) -> Option<()> {
        let (mut fit, mut least, mut greatest) = (true, u8::MAX, 0);
        let (values, own_scales) = (&mut self.values, &mut self.own_scales);
        rows.for_each(|row| match decimal(row) {
            Some(Decimal { value, scale }) => {
                values[row] = value;
                own_scales[row] = scale;
                (least, greatest) = (least.min(scale), greatest.max(scale));
            }
            None => fit = false,
        });
        fit.then(|| self.set(greatest, least < greatest, *rows, 0))?;
        self.align()?;
        self.measure();
        Some(())
    }

    /// Takes the decimals of some rows most of which have one scale: the magnitude and the number that `simple` finds
    /// with that scale or, failing that, the decimal that `other` finds. `None` if one of them does not fit.
    #[inline(always)]
    pub(super) fn take_rows_of_scale(
        &mut self,
        rows: &Selection,
        scale: u8,
        simple: impl Fn(usize) -> Option<(u64, i64)>,
        mut other: impl FnMut(usize) -> Option<Decimal>,
    ) -> Option<()> {
        let (values, own_scales) = (&mut self.values, &mut self.own_scales);
        let (mut fit, mut greatest, mut magnitude) = (true, scale, 0);
        let (mut has_own_scales, mut places) = (false, [0; 64]);
        // A list of the rows of a word, so that there is one loop, into which the compiler puts everything.
        for (word, bits) in rows.words.iter().enumerate() {
            let count = list(*bits, word * 64, &mut places);
            for row in &places[..count] {
                let row = *row as usize;
                if let Some((of_row, value)) = simple(row) {
                    values[row] = value;
                    magnitude = magnitude.max(of_row);
                    continue;
                }
                let Some(decimal) = other(row) else {
                    fit = false;
                    continue;
                };
                if decimal.scale != scale && !has_own_scales {
                    own_scales.fill(scale);
                    has_own_scales = true;
                }
                (values[row], own_scales[row]) = (decimal.value, decimal.scale);
                greatest = greatest.max(decimal.scale);
                magnitude = magnitude.max(decimal.value.unsigned_abs());
            }
        }
        fit.then(|| self.set(greatest, has_own_scales, *rows, magnitude))?;
        if has_own_scales {
            self.align()?;
            self.measure();
        }
        Some(())
    }

    /// Takes a number for each of some rows, with one scale. None is greater than a magnitude. False: some row has
    /// none.
    #[inline(always)]
    pub(super) fn take_known(
        &mut self,
        rows: &Selection,
        (scale, magnitude): (u8, u64),
        known: impl Fn(usize) -> Option<i64>,
    ) -> bool {
        let values = &mut self.values;
        let mut are_known = true;
        rows.for_each(|row| match known(row) {
            Some(value) => values[row] = value,
            None => are_known = false,
        });
        self.set(scale, false, *rows, magnitude);
        are_known
    }

    /// Copies the valid rows of others, with their own scales. [`finish_copies`](Self::finish_copies) follows.
    pub(super) fn copy_rows(&mut self, from: &Decimals) {
        let (values, own_scales) = (&mut self.values, &mut self.own_scales);
        from.valid.for_each(|row| {
            let Decimal { value, scale } = from.decimal(row);
            (values[row], own_scales[row]) = (value, scale);
        });
    }

    /// Goes on with the rows that were copied, of which none has a greater scale; `None` if they do not fit.
    pub(super) fn finish_copies(&mut self, valid: Selection, greatest: u8) -> Option<()> {
        self.set(greatest, true, valid, 0);
        self.align()?;
        self.measure();
        Some(())
    }

    /// Brings values that were written with their rows' own scales to the greatest of these.
    pub(super) fn align(&mut self) -> Option<()> {
        if !self.has_own_scales {
            return Some(());
        }
        let (values, own_scales, scale) = (&mut self.values, &self.own_scales, self.scale);
        let mut fit = true;
        self.valid.for_each(|row| {
            let factor = power_of_ten(scale - own_scales[row]);
            let (value, overflows) = values[row].overflowing_mul(factor);
            values[row] = value;
            fit &= !overflows;
        });
        fit.then_some(())
    }

    /// Finds the greatest magnitude.
    pub(super) fn measure(&mut self) {
        let values = &self.values;
        let mut magnitude = 0;
        self.valid
            .for_each(|row| magnitude = magnitude.max(values[row].unsigned_abs()));
        self.magnitude = magnitude;
    }

    /// The factor that brings the values to a greater scale; `None` if a product does not fit.
    pub(crate) fn factor_to(&self, scale: u8) -> Option<i64> {
        let factor = power_of_ten(scale - self.scale);
        fits(self.magnitude.checked_mul(factor as u64)?).map(|_| factor)
    }
}

/// Writes the rows of a word whose bits are set, and returns how many there are.
#[inline(always)]
fn list(mut bits: u64, first: usize, places: &mut [u16; 64]) -> usize {
    let count = bits.count_ones() as usize;
    if count == 64 {
        let rows = places.iter_mut().zip(first as u16..);
        rows.for_each(|(place, row)| *place = row);
        return count;
    }
    for place in &mut places[..count] {
        *place = first as u16 + bits.trailing_zeros() as u16;
        bits &= bits - 1;
    }
    count
}

/// The magnitude, if an integer of 64 bits can have it with either sign.
pub(super) fn fits(magnitude: u64) -> Option<u64> {
    (magnitude <= i64::MAX as u64).then_some(magnitude)
}
