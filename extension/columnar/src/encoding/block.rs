//! A block read: parsed, verified, decoded to numbers. Nothing here trusts the bytes, so that decoding cannot leave its bounds
//! whatever they are.

use super::bytes::{Reader, malformed};
use super::format::{
    CONSTANT, DELTA, DELTA_OF_DELTA, EXTRAS, FEW, FORM_MASK, LEVEL, PATTERN, POWER_BITS,
    POWER_SHIFT, REST, WIDTH_MASK,
};
use super::kernel;
use crate::error::Result;
use crate::limits::VECTOR_ROWS;

/// Distinct numbers that a block of form "few" may have.
pub(super) const FEW_MAX: usize = 256;

/// How the blocks of a lane are to be read.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Bytes of a float; 0 for classes other than floats.
    pub(super) float_width: usize,
    /// Patterns that blocks may name.
    pub(super) patterns: usize,
}

impl Shape {
    /// Blocks of lengths or codes.
    pub(super) const NUMBERS: Shape = Shape {
        float_width: 0,
        patterns: 0,
    };

    /// The same for the blocks of a pattern.
    pub(super) fn in_pattern(self) -> Shape {
        Shape {
            patterns: 0,
            ..self
        }
    }
}

/// One block.
pub(super) struct Block<'a> {
    pub(super) rows: usize,
    /// Power of ten, or [`POWER_BITS`].
    power: u8,
    pub(super) form: Form<'a>,
}

/// What a block is made of.
pub(super) enum Form<'a> {
    Constant(u64),
    Level(Packed<'a>),
    Delta {
        first: u64,
        packed: Packed<'a>,
    },
    DeltaOfDelta {
        first: u64,
        step: u64,
        packed: Packed<'a>,
    },
    Pattern {
        index: usize,
        first: usize,
    },
    Few {
        /// Where the distinct numbers are.
        table: Reader<'a>,
        count: usize,
        packed: Packed<'a>,
    },
}

/// Packed residuals.
pub(super) struct Packed<'a> {
    base: u64,
    factor: u64,
    width: u32,
    /// The packed bits and the slack behind them.
    bits: &'a [u8],
    patches: usize,
    outliers: usize,
    exceptions: Reader<'a>,
}

impl<'a> Block<'a> {
    /// Reads one block of at most `rows_left` rows, which is at least 1.
    pub(super) fn parse(reader: &mut Reader<'a>, rows_left: usize, shape: Shape) -> Result<Self> {
        let tag = reader.byte()?;
        let rows = match tag & REST {
            0 => reader.count()?,
            _ => rows_left,
        };
        if rows == 0 || rows > rows_left {
            return malformed("the rows of its blocks do not add up");
        }
        let power = tag >> POWER_SHIFT;
        if shape.float_width == 0 && power != 0 {
            return malformed("a power of ten where there are no floats");
        }
        let width = shape.float_width;
        let form = match tag & FORM_MASK {
            CONSTANT => Form::Constant(reader.signed()? as u64),
            LEVEL => {
                let base = reader.signed()? as u64;
                Form::Level(Packed::parse(reader, base, rows, width)?)
            }
            DELTA => {
                let first = reader.signed()? as u64;
                let base = reader.signed()? as u64;
                Form::Delta {
                    first,
                    packed: Packed::parse(reader, base, rows - 1, width)?,
                }
            }
            DELTA_OF_DELTA if rows >= 2 => {
                let first = reader.signed()? as u64;
                let step = reader.signed()? as u64;
                let base = reader.signed()? as u64;
                Form::DeltaOfDelta {
                    first,
                    step,
                    packed: Packed::parse(reader, base, rows - 2, width)?,
                }
            }
            PATTERN => {
                let (index, first) = (reader.count()?, reader.count()?);
                if index >= shape.patterns || first >= VECTOR_ROWS || first + rows > VECTOR_ROWS {
                    return malformed("a block is outside its pattern");
                }
                Form::Pattern { index, first }
            }
            FEW => {
                let count = reader.count()?;
                if count >= FEW_MAX {
                    return malformed("a block has too many distinct numbers");
                }
                let table = *reader;
                for _ in 0..=count {
                    reader.varint()?;
                }
                let packed = Packed::parse(reader, 0, rows, width)?;
                if packed.width > FEW_MAX.ilog2() || packed.patches > 0 || packed.factor != 1 {
                    return malformed("places among few numbers do not suit them");
                }
                Form::Few {
                    table,
                    count: count + 1,
                    packed,
                }
            }
            _ => return malformed("the form of a block is not known"),
        };
        Ok(Block { rows, power, form })
    }

    /// Checks what [`parse`](Self::parse) skips.
    pub(super) fn verify(&self, float_width: usize) -> Result<()> {
        let (packed, residuals) = match &self.form {
            Form::Constant(_) | Form::Pattern { .. } => return Ok(()),
            Form::Level(packed) | Form::Few { packed, .. } => (packed, self.rows),
            Form::Delta { packed, .. } => (packed, self.rows - 1),
            Form::DeltaOfDelta { packed, .. } => (packed, self.rows - 2),
        };
        packed.verify(residuals, self.rows, float_width)
    }

    /// The value of every row, if the block says that it is one.
    pub(super) fn constant(&self, float_width: usize) -> Option<u64> {
        let Form::Constant(number) = self.form else {
            return None;
        };
        let mut values = [number];
        self.finish(&mut values, float_width);
        Some(values[0])
    }

    /// The bits of the float that a number stands for; `None` if numbers are bits, whose order is another.
    pub(super) fn float_bits(&self, number: i64, float_width: usize) -> Option<u64> {
        let mut values = [number as u64];
        self.finish(&mut values, float_width);
        (self.power != POWER_BITS).then_some(values[0])
    }

    /// The form's name, as views show it.
    pub(super) fn name(&self, float_width: usize) -> &'static str {
        match (&self.form, float_width != 0 && self.power != POWER_BITS) {
            (Form::Constant(_), _) => "constant",
            (Form::Level(_), false) => "bit-packed",
            (Form::Delta { .. }, false) => "delta",
            (Form::DeltaOfDelta { .. }, false) => "delta-of-delta",
            (Form::Few { .. }, _) => "few",
            (Form::Level(_), true) => "decimal",
            (Form::Delta { .. }, true) => "decimal delta",
            (Form::DeltaOfDelta { .. }, true) => "decimal delta-of-delta",
            (Form::Pattern { .. }, _) => "pattern",
        }
    }

    /// Writes the values of all rows but those of a pattern: `out` has as many. Floats become their bits.
    pub(super) fn decode(&self, out: &mut [u64], float_width: usize) {
        if let Some(constant) = self.constant(float_width) {
            return out.fill(constant);
        }
        let Some(packed) = self.decode_numbers(out) else {
            return out.fill(0);
        };
        self.finish(out, float_width);
        packed.each_outlier(float_width, |place, bits| {
            if let Some(value) = out.get_mut(place) {
                *value = bits;
            }
        });
    }

    /// As [`decode`](Self::decode), the low halves of the values; `room` is for as many rows.
    pub(super) fn decode_narrow(&self, out: &mut [u32], room: &mut [u64], float_width: usize) {
        if let Some(constant) = self.constant(float_width) {
            return out.fill(constant as u32);
        }
        if let Form::Level(packed) = &self.form
            && packed.is_plain()
            && packed.width <= u32::BITS
            && float_width == 0
        {
            return kernel::unpack_narrow(packed.bits, packed.width, packed.base as u32, out);
        }
        let Some(packed) = self.decode_numbers(room) else {
            return out.fill(0);
        };
        if float_width == 0 || self.power == POWER_BITS {
            kernel::narrow(room, out);
        } else {
            kernel::decimals_to_f64(room, self.power);
            kernel::narrow_floats(room, out);
        }
        packed.each_outlier(float_width, |place, bits| {
            if let Some(value) = out.get_mut(place) {
                *value = bits as u32;
            }
        });
    }

    /// Writes the numbers of all rows, unless they are constant or a pattern's.
    fn decode_numbers(&self, out: &mut [u64]) -> Option<&Packed<'a>> {
        Some(match &self.form {
            Form::Constant(_) | Form::Pattern { .. } => return None,
            Form::Level(packed) => {
                packed.unpack(out);
                packed
            }
            Form::Delta { first, packed } => {
                let [start, deltas @ ..] = out else {
                    return None;
                };
                *start = *first;
                packed.unpack(deltas);
                kernel::sum_deltas(deltas, *first);
                packed
            }
            Form::DeltaOfDelta {
                first,
                step,
                packed,
            } => {
                let [start, second, changes @ ..] = out else {
                    return None;
                };
                *start = *first;
                *second = first.wrapping_add(*step);
                packed.unpack(changes);
                kernel::sum_deltas_of_deltas(changes, *second, *step);
                packed
            }
            Form::Few {
                table,
                count,
                packed,
            } => {
                let mut numbers = [0; FEW_MAX];
                let (mut table, mut number) = (*table, 0_u64);
                for slot in &mut numbers[..*count] {
                    number = number.wrapping_add(table.signed().unwrap_or_default() as u64);
                    *slot = number;
                }
                packed.unpack(out);
                for place in out.iter_mut() {
                    *place = numbers[*place as usize % FEW_MAX];
                }
                packed
            }
        })
    }

    /// Turns numbers into values.
    fn finish(&self, numbers: &mut [u64], float_width: usize) {
        if self.power == POWER_BITS {
            return;
        }
        match float_width {
            8 => kernel::decimals_to_f64(numbers, self.power),
            4 => kernel::decimals_to_f32(numbers, self.power),
            _ => {}
        }
    }
}

impl<'a> Packed<'a> {
    fn parse(
        reader: &mut Reader<'a>,
        base: u64,
        residuals: usize,
        float_width: usize,
    ) -> Result<Self> {
        let head = reader.byte()?;
        let width = u32::from(head & WIDTH_MASK);
        if width > 64 {
            return malformed("a width exceeds 64 bits");
        }
        let (mut factor, mut patches, mut outliers, mut exception_bytes) = (1, 0, 0, 0);
        if head & EXTRAS != 0 {
            factor = reader.varint()?;
            patches = reader.count()?;
            outliers = reader.count()?;
            exception_bytes = reader.count()?;
        }
        if float_width == 0 && outliers > 0 {
            return malformed("an outlier where there are no floats");
        }
        let bits = reader.bytes_and_slack(packed_len(residuals, width))?;
        let exceptions = *reader;
        reader.bytes(exception_bytes)?;
        Ok(Packed {
            base,
            factor,
            width,
            bits,
            patches,
            outliers,
            exceptions,
        })
    }

    /// Checks the places of patches and outliers.
    fn verify(&self, residuals: usize, rows: usize, float_width: usize) -> Result<()> {
        let mut reader = self.exceptions;
        let mut next = 0;
        for _ in 0..self.patches {
            let place = reader.count()?;
            reader.varint()?;
            if place >= residuals - next.min(residuals) {
                return malformed("a patch is outside its block");
            }
            next += place + 1;
        }
        let mut next = 0;
        for _ in 0..self.outliers {
            let place = reader.count()?;
            reader.bytes(float_width)?;
            if place >= rows - next.min(rows) {
                return malformed("an outlier is outside its block");
            }
            next += place + 1;
        }
        Ok(())
    }

    /// No residual times the factor and with the base added is less or greater; `None` if that takes decoding.
    pub(super) fn bounds(&self) -> Option<(i128, i128)> {
        let mut bounds = self.unpatched_bounds()?;
        let (least, greatest) = bounds;
        self.each_patch(|patch| {
            bounds.0 = bounds.0.min(least.checked_add(patch)?);
            bounds.1 = bounds.1.max(greatest.checked_add(patch)?);
            Some(())
        })?;
        Some(bounds)
    }

    /// What the first of so many residuals come to, times the factor and with the base added each, be it one of them or all: no less
    /// and no more than this. `None` if that takes decoding.
    pub(super) fn sum_bounds(&self, residuals: usize) -> Option<(i128, i128)> {
        let (least, greatest) = self.unpatched_bounds()?;
        let (down, up) = (|step: i128| step.min(0), |step: i128| step.max(0));
        let times = |step: i128, count: usize| step.checked_mul(count as i128);
        let mut bounds = (
            times(down(least), residuals)?,
            times(up(greatest), residuals)?,
        );
        if self.width == 1 {
            // Bits are counted in no time, and steps of 0 and 1 are what keys make.
            let ones = self.ones(residuals);
            let sum = |each: fn(i128) -> i128| {
                times(each(least), residuals - ones)?.checked_add(times(each(greatest), ones)?)
            };
            bounds = (sum(down)?, sum(up)?);
        }
        self.each_patch(|patch| {
            bounds.0 = bounds.0.checked_add(down(patch))?;
            bounds.1 = bounds.1.checked_add(up(patch))?;
            Some(())
        })?;
        Some(bounds)
    }

    /// As if there were no patches.
    fn unpatched_bounds(&self) -> Option<(i128, i128)> {
        if self.outliers > 0 {
            return None;
        }
        let base = i128::from(self.base as i64);
        let residual_max = (1_u128 << self.width) - 1;
        let span = residual_max.checked_mul(u128::from(self.factor))?;
        Some((base, base.checked_add_unsigned(span)?))
    }

    /// Calls `visit` with what each patch adds to a number; `None` if that leaves the range of numbers, or `visit` says so.
    #[inline]
    fn each_patch(&self, mut visit: impl FnMut(i128) -> Option<()>) -> Option<()> {
        if self.patches == 0 {
            return Some(());
        }
        let mut reader = self.exceptions;
        let unit = 1_i64.checked_shl(self.width).filter(|&unit| unit > 0)?;
        let unit = unit.checked_mul(i64::try_from(self.factor).ok()?)?;
        for _ in 0..self.patches {
            reader.count().ok()?;
            let high = reader.signed().ok()?;
            visit(i128::from(high) * i128::from(unit))?;
        }
        Some(())
    }

    /// How many of so many residuals of one bit are 1.
    fn ones(&self, residuals: usize) -> usize {
        let (bytes, rest) = (residuals / 8, residuals % 8);
        let whole: u32 = self.bits[..bytes]
            .iter()
            .map(|byte| byte.count_ones())
            .sum();
        let last = self.bits[bytes] & ((1 << rest) - 1);
        (whole + last.count_ones()) as usize
    }

    /// Whether the packed bits and the base are all there is.
    fn is_plain(&self) -> bool {
        self.factor == 1 && self.patches == 0
    }

    fn unpack(&self, out: &mut [u64]) {
        if self.factor == 1 {
            kernel::unpack(self.bits, self.width, self.base, out);
        } else {
            kernel::unpack(self.bits, self.width, 0, out);
            kernel::scale(out, self.factor, self.base);
        }
        let mut reader = self.exceptions;
        let mut next = 0_usize;
        for _ in 0..self.patches {
            let (Ok(gap), Ok(high)) = (reader.count(), reader.signed()) else {
                return;
            };
            let place = next.saturating_add(gap);
            let Some(residual) = out.get_mut(place) else {
                return;
            };
            let high = (high as u64).checked_shl(self.width).unwrap_or_default();
            *residual = residual.wrapping_add(high.wrapping_mul(self.factor));
            next = place + 1;
        }
    }

    /// The places and the bits of all outliers, in order; places may be outside of unverified blocks.
    fn each_outlier(&self, float_width: usize, mut visit: impl FnMut(usize, u64)) {
        if self.outliers == 0 {
            return;
        }
        let mut reader = self.exceptions;
        for _ in 0..2 * self.patches {
            if reader.varint().is_err() {
                return;
            }
        }
        let mut next = 0_usize;
        for _ in 0..self.outliers {
            let (Ok(gap), Ok(bytes)) = (reader.count(), reader.bytes(float_width)) else {
                return;
            };
            let place = next.saturating_add(gap);
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            visit(place, u64::from_le_bytes(whole));
            next = place.saturating_add(1);
        }
    }
}

/// Bytes of `count` packed residuals of `width` bits.
#[inline]
pub(super) fn packed_len(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}
