//! Reading a block: parsing, verifying and decoding it to numbers. Nothing here trusts the bytes,
//! so decoding stays within bounds whatever they contain.

use super::bytes::{ByteReader, malformed};
use super::format::{
    CONSTANT, DELTA, DELTA_OF_DELTA, FEW, FORM_MASK, LEVEL, PATTERN, POWER_BITS, POWER_SHIFT, REST,
    RISING_DELTA, RISING_DELTA_OF_DELTA,
};
use super::kernel;
use super::packed::Packed;
use crate::error::Result;
use crate::limits::VECTOR_ROWS;

/// Distinct numbers that a block of form "few" may have.
pub(super) const FEW_MAX: usize = 256;

/// How the blocks of a lane are to be read.
#[derive(Clone, Copy)]
pub(super) struct BlockLayout {
    /// Bytes of a float; 0 for classes other than floats.
    pub(super) float_width: usize,
    /// Patterns that blocks may name.
    pub(super) patterns: usize,
}

impl BlockLayout {
    /// Blocks of lengths or codes.
    pub(super) const NUMBERS: BlockLayout = BlockLayout {
        float_width: 0,
        patterns: 0,
    };

    /// The layout of the blocks of a pattern.
    pub(super) fn in_pattern(self) -> BlockLayout {
        BlockLayout {
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

/// The form of a block.
pub(super) enum Form<'a> {
    Constant(u64),
    Level(Packed<'a>),
    Delta {
        first: u64,
        /// By how much the last number is greater than the first, in a rising block: no number of
        /// it is less than the number before.
        rise: Option<u64>,
        packed: Packed<'a>,
    },
    DeltaOfDelta {
        first: u64,
        /// By how much the last number is greater than the first, in a rising block.
        rise: Option<u64>,
        step: u64,
        packed: Packed<'a>,
    },
    Pattern {
        index: usize,
        first: usize,
    },
    Few {
        /// Where the distinct numbers are.
        table: ByteReader<'a>,
        count: usize,
        packed: Packed<'a>,
    },
}

impl<'a> Form<'a> {
    /// Reads what a block of at least one row and of the form of this number contains.
    #[inline]
    fn parse(
        reader: &mut ByteReader<'a>,
        form: u8,
        rows: usize,
        layout: BlockLayout,
    ) -> Result<Self> {
        let width = layout.float_width;
        match form {
            CONSTANT => Ok(Form::Constant(reader.signed()? as u64)),
            LEVEL => {
                let base = reader.signed()? as u64;
                Ok(Form::Level(Packed::parse(reader, base, rows, width)?))
            }
            DELTA | RISING_DELTA => {
                let first = reader.signed()? as u64;
                let rise = (form == RISING_DELTA)
                    .then(|| reader.varint())
                    .transpose()?;
                let base = reader.signed()? as u64;
                Ok(Form::Delta {
                    first,
                    rise,
                    packed: Packed::parse(reader, base, rows - 1, width)?,
                })
            }
            DELTA_OF_DELTA | RISING_DELTA_OF_DELTA if rows >= 2 => {
                let first = reader.signed()? as u64;
                let is_rising = form == RISING_DELTA_OF_DELTA;
                let rise = is_rising.then(|| reader.varint()).transpose()?;
                let step = reader.signed()? as u64;
                let base = reader.signed()? as u64;
                Ok(Form::DeltaOfDelta {
                    first,
                    rise,
                    step,
                    packed: Packed::parse(reader, base, rows - 2, width)?,
                })
            }
            PATTERN => {
                let (index, first) = (reader.count()?, reader.count()?);
                if index >= layout.patterns || first >= VECTOR_ROWS || first + rows > VECTOR_ROWS {
                    return malformed("a block is outside its pattern");
                }
                Ok(Form::Pattern { index, first })
            }
            FEW => Form::parse_few(reader, rows, width),
            _ => malformed("the form of a block is not known"),
        }
    }

    /// Reads the distinct numbers of a block of form "few", and the place of each row among them.
    #[inline]
    fn parse_few(reader: &mut ByteReader<'a>, rows: usize, float_width: usize) -> Result<Self> {
        let count = reader.count()?;
        if count >= FEW_MAX {
            return malformed("a block has too many distinct numbers");
        }
        let table = *reader;
        for _ in 0..=count {
            reader.varint()?;
        }
        let packed = Packed::parse(reader, 0, rows, float_width)?;
        if packed.width > FEW_MAX.ilog2() || packed.patches > 0 || packed.factor != 1 {
            return malformed("places among few numbers do not suit them");
        }
        Ok(Form::Few {
            table,
            count: count + 1,
            packed,
        })
    }
}

impl<'a> Block<'a> {
    /// Reads one block of at most `rows_left` rows, which is at least 1.
    pub(super) fn parse(
        reader: &mut ByteReader<'a>,
        rows_left: usize,
        layout: BlockLayout,
    ) -> Result<Self> {
        let tag = reader.byte()?;
        let rows = match tag & REST {
            0 => reader.count()?,
            _ => rows_left,
        };
        if rows == 0 || rows > rows_left {
            return malformed("the rows of its blocks do not add up");
        }
        let power = tag >> POWER_SHIFT;
        if layout.float_width == 0 && power != 0 {
            return malformed("a power of ten where there are no floats");
        }
        let form = Form::parse(reader, tag & FORM_MASK, rows, layout)?;
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
        packed.verify(residuals, self.rows, float_width)?;
        match &self.form {
            Form::Delta {
                first,
                rise: Some(rise),
                ..
            }
            | Form::DeltaOfDelta {
                first,
                rise: Some(rise),
                ..
            } => self.verify_rise(*first, *rise),
            _ => Ok(()),
        }
    }

    /// Checks that the first and the last number are the bounds that a rising block states.
    fn verify_rise(&self, first: u64, rise: u64) -> Result<()> {
        let mut numbers = [0; VECTOR_ROWS];
        let numbers = &mut numbers[..self.rows];
        let packed = self.decode_numbers(numbers);
        let is_bounded = packed.is_none_or(|packed| packed.outliers == 0);
        let is_rising = numbers.is_sorted_by_key(|&number| number as i64);
        let last = numbers.last().copied().unwrap_or(first);
        if !is_bounded || !is_rising || last.wrapping_sub(first) != rise {
            return malformed("a rising block does not rise as it says");
        }
        Ok(())
    }

    /// The value of every row if the block is constant.
    pub(super) fn constant(&self, float_width: usize) -> Option<u64> {
        let Form::Constant(number) = self.form else {
            return None;
        };
        Some(self.value(number, float_width))
    }

    /// Whether numbers are the bits of floats, whose order is another.
    pub(super) fn is_bits(&self) -> bool {
        self.power == POWER_BITS
    }

    /// The bits of the float that a number stands for.
    pub(super) fn float_bits(&self, number: i64, float_width: usize) -> u64 {
        self.value(number as u64, float_width)
    }

    /// The form's name, as views show it.
    pub(super) fn name(&self, float_width: usize) -> &'static str {
        match (&self.form, self.is_decimal(float_width)) {
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

    /// Writes the values of all rows of a block that is not a pattern. `out` has as many elements.
    /// Floats become their bits.
    pub(super) fn decode(&self, out: &mut [u64], float_width: usize) {
        if let Some(constant) = self.constant(float_width) {
            return out.fill(constant);
        }
        let packed = match self.is_decimal(float_width) {
            true => self.decode_decimals(out),
            false => self.decode_numbers(out),
        };
        let Some(packed) = packed else {
            return out.fill(0);
        };
        if self.is_decimal(float_width) && float_width == size_of::<f32>() {
            kernel::floats_in_place(out);
        }
        packed.each_outlier(float_width, |place, bits| {
            if let Some(value) = out.get_mut(place) {
                *value = bits;
            }
        });
    }

    /// Writes the low halves of the values of all rows like [`decode`](Self::decode). `room` is
    /// memory for as many rows.
    pub(super) fn decode_narrow(&self, out: &mut [u32], room: &mut [u64], float_width: usize) {
        if let Some(constant) = self.constant(float_width) {
            return out.fill(constant as u32);
        }
        let packed = if self.is_decimal(float_width) {
            let packed = self.decode_decimals(room);
            kernel::narrow_floats(room, out);
            packed
        } else {
            self.decode_numbers_narrow(out, room)
        };
        let Some(packed) = packed else {
            return out.fill(0);
        };
        packed.each_outlier(float_width, |place, bits| {
            if let Some(value) = out.get_mut(place) {
                *value = bits as u32;
            }
        });
    }

    /// Whether numbers are floats over a power of ten.
    fn is_decimal(&self, float_width: usize) -> bool {
        float_width != 0 && !self.is_bits()
    }

    /// Writes the numbers of all rows, divided by the block's power of ten, as floats of 8 bytes;
    /// otherwise as [`decode_numbers`](Self::decode_numbers).
    fn decode_decimals(&self, out: &mut [u64]) -> Option<&Packed<'a>> {
        if let Form::Level(packed) = &self.form {
            packed.unpack_decimals(out, self.power);
            return Some(packed);
        }
        let packed = self.decode_numbers(out)?;
        kernel::decimals_to_f64(out, self.power);
        Some(packed)
    }

    /// Writes the low halves of the numbers; otherwise as [`decode_numbers`](Self::decode_numbers).
    fn decode_numbers_narrow(&self, out: &mut [u32], room: &mut [u64]) -> Option<&Packed<'a>> {
        if let Form::Level(packed) = &self.form
            && packed.unpack_narrow(out)
        {
            return Some(packed);
        }
        let packed = self.decode_numbers(room)?;
        kernel::narrow(room, out);
        Some(packed)
    }

    /// Writes the numbers of all rows, unless they are constant or from a pattern.
    fn decode_numbers(&self, out: &mut [u64]) -> Option<&Packed<'a>> {
        Some(match &self.form {
            Form::Constant(_) | Form::Pattern { .. } => return None,
            Form::Level(packed) => {
                packed.unpack(out);
                packed
            }
            Form::Delta { first, packed, .. } => {
                let [start, deltas @ ..] = out else {
                    return None;
                };
                *start = *first;
                packed.unpack_sums(deltas, *first);
                packed
            }
            Form::DeltaOfDelta {
                first,
                step,
                packed,
                ..
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

    /// The value of a number.
    pub(super) fn value(&self, number: u64, float_width: usize) -> u64 {
        if !self.is_decimal(float_width) {
            return number;
        }
        let value = kernel::decimal_to_f64(number as i64, self.power);
        match float_width {
            4 => (value as f32).to_bits().into(),
            _ => value.to_bits(),
        }
    }
}
