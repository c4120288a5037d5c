//! One row of a lane, without the others of its vector.
//!
//! | form | what is read |
//! |---|---|
//! | constant, level, few | the bits of the row alone |
//! | delta | the sum of the differences up to the row |
//! | delta of delta | the changes of the difference up to the row, each as often as it counts |
//! | pattern | the row of the pattern, as above |
//!
//! Differences and changes of no bits are all the same, so they are multiplied and not read.

use super::block::{Block, FEW_MAX, Form};
use super::blocks::Blocks;
use super::bytes::malformed;
use super::format::{ALL_FALSE, ALL_TRUE, Class, ONE_VALUE};
use super::lane::{EncodedLane, WORDS};
use super::packed::Packed;
use super::repeats::Constant;
use crate::bits;
use crate::error::Result;
use crate::limits::VECTOR_ROWS;

impl<'a> EncodedLane<'a> {
    /// Reads one row. Returns `None` for a lane of items without a dictionary, whose vectors are
    /// decoded as a whole.
    ///
    /// # Errors
    /// If the row does not exist, or its vector is damaged.
    pub fn point(&self, row: usize) -> Result<Option<Constant<'a>>> {
        if row >= self.rows() {
            return malformed("it does not have the row asked for");
        }
        if self.is_null() {
            return Ok(Some(Constant::Null));
        }
        let (vector, row) = (row / VECTOR_ROWS, row % VECTOR_ROWS);
        let rows = self.vector_rows(vector);
        let mut validity = [0; WORDS];
        let (mut reader, some_nulls) = self.vector_body(vector, &mut validity)?;
        match some_nulls {
            None => return Ok(Some(Constant::Null)),
            Some(true) if !bits::get(&validity, row) => return Ok(Some(Constant::Null)),
            Some(_) => {}
        }
        Ok(Some(match self.header.class {
            Class::Null => Constant::Null,
            Class::Items => return Ok(None),
            Class::Bools => match reader.byte()? {
                ALL_FALSE => Constant::Bits(0),
                ALL_TRUE => Constant::Bits(1),
                _ => {
                    let byte = reader.bytes(rows.div_ceil(8))?[row / 8];
                    Constant::Bits(u64::from(byte >> (row % 8) & 1))
                }
            },
            Class::Bytes => {
                let width = usize::from(self.header.width);
                match reader.byte()? {
                    ONE_VALUE => Constant::Bytes(reader.bytes(width)?),
                    _ => Constant::Bytes(&reader.bytes(rows * width)?[row * width..][..width]),
                }
            }
            Class::Integers | Class::Floats => {
                Constant::Bits(self.number_at(Blocks::new(reader, rows, self.block_layout()), row)?)
            }
            Class::Dictionary => {
                let blocks = Blocks::new(reader, rows, self.block_layout());
                Constant::Code(self.number_at(blocks, row)? as u32)
            }
        }))
    }

    fn number_at(&self, blocks: Blocks<'a>, row: usize) -> Result<u64> {
        let float_width = blocks.layout.float_width;
        let mut first = 0;
        for block in blocks {
            let block = block?;
            let within = row - first;
            if within >= block.rows {
                first += block.rows;
                continue;
            }
            let Form::Pattern { index, first } = block.form else {
                return Ok(block.value_at(within, float_width));
            };
            let pattern = self.pattern(index)?;
            if first + within >= pattern.rows {
                return malformed("a block is outside its pattern");
            }
            return Ok(pattern.value_at(first + within, float_width));
        }
        malformed("the rows of its blocks do not add up")
    }
}

impl Block<'_> {
    /// The value of one of the rows of a block that is not taken from a pattern. Floats become
    /// their bits.
    fn value_at(&self, row: usize, float_width: usize) -> u64 {
        let mut outlier = None;
        if let Some(packed) = self.packed() {
            packed.each_outlier(float_width, |place, bits| {
                if place == row {
                    outlier = Some(bits);
                }
            });
        }
        outlier.unwrap_or_else(|| self.value(self.number_of(row), float_width))
    }

    /// The number of one of the rows, as if there were no outliers.
    pub(super) fn number_of(&self, row: usize) -> u64 {
        match &self.form {
            Form::Constant(number) => *number,
            Form::Pattern { .. } => 0,
            Form::Level(packed) => packed.number(row),
            Form::Delta { first, packed, .. } => first.wrapping_add(packed.sum(row)),
            Form::DeltaOfDelta {
                first,
                step,
                packed,
                ..
            } => {
                let steps = step.wrapping_mul(row as u64);
                let changes = packed.sum_of_sums(row.saturating_sub(1));
                first.wrapping_add(steps).wrapping_add(changes)
            }
            Form::Few {
                table,
                count,
                packed,
            } => {
                let place = packed.number(row) as usize % FEW_MAX;
                let (mut table, mut number) = (*table, 0_u64);
                if place >= *count {
                    return 0;
                }
                for _ in 0..=place {
                    number = number.wrapping_add(table.signed().unwrap_or_default() as u64);
                }
                number
            }
        }
    }

    fn packed(&self) -> Option<&Packed<'_>> {
        match &self.form {
            Form::Constant(_) | Form::Pattern { .. } => None,
            Form::Level(packed)
            | Form::Delta { packed, .. }
            | Form::DeltaOfDelta { packed, .. }
            | Form::Few { packed, .. } => Some(packed),
        }
    }

    /// Whether the numbers of consecutive rows are known to go one way only.
    pub(super) fn is_monotonic(&self) -> bool {
        match &self.form {
            Form::Constant(_) => true,
            Form::Delta { rise, packed, .. } => rise.is_some() || packed.is_uniform(),
            Form::DeltaOfDelta { rise, packed, .. } => {
                rise.is_some() || packed.is_uniform() && packed.number(0) == 0
            }
            Form::Level(_) | Form::Pattern { .. } | Form::Few { .. } => false,
        }
    }
}
