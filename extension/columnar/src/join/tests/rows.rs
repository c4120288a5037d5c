//! Random rows of a side, with their lanes.

use crate::join::cursor::Bound;
use crate::lane::LaneData;
use crate::vector::number::{NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::tests::lanes::{Cell, Column, Source, TYPES, integer_range};
use crate::vector::tests::number_tree::operand_number;
use crate::vector::value::Operand;

/// The operand that a column is, from its first row on.
pub(super) fn operand(column: &Column) -> Operand {
    let lane = column.lane();
    match lane.data {
        LaneData::Fixed { values, .. } => Operand::Each {
            values,
            validity: lane.validity,
        },
        _ => Operand::Null,
    }
}

/// The number of a row in a column.
pub(super) fn number(column: &Column, row: usize) -> Option<Scalar> {
    match &column.cells[row] {
        Cell::Number(scalar) => Some(*scalar),
        _ => None,
    }
}

/// The number of a row in an operand.
pub(super) fn joined(number: NumberType, operand: &Operand, row: usize) -> Option<Scalar> {
    let alone = Selection::first(row + 1).within(row, row + 1);
    let valid = !operand.valid(&alone).is_empty();
    valid.then(|| operand_number(number, operand, row))
}

/// A type of times.
pub(super) fn time_type(source: &mut Source) -> NumberType {
    TYPES[source.below(3) as usize]
}

/// A time: often one that others have too, now and then an extreme one.
pub(super) fn time(source: &mut Source, number: NumberType, variety: u64) -> i64 {
    let (least, greatest) = integer_range(number);
    match source.below(40) {
        0 => least,
        1 => least + 1,
        2 => greatest,
        3 => greatest - 1,
        _ => source.below(variety) as i64 - variety as i64 / 2,
    }
}

/// A bound for each row of a vector, perhaps one for all; no row has NULL.
pub(super) struct Bounds {
    number: NumberType,
    column: Column,
    same: bool,
    inclusive: bool,
}

impl Bounds {
    /// Random bounds. In order, or in none.
    pub(super) fn random(source: &mut Source, rows: usize, variety: u64) -> Bounds {
        let number = time_type(source);
        let mut times: Vec<i64> = (0..rows).map(|_| time(source, number, variety)).collect();
        if source.one_in(2) {
            times.sort_unstable();
        }
        let same = source.one_in(8);
        if same {
            let first = times[0];
            times.fill(first);
        }
        let values: Vec<_> = times.iter().map(|t| Some(Scalar(*t as u64))).collect();
        Bounds {
            number,
            column: Column::numbers(number, &values, source),
            same,
            inclusive: source.one_in(2),
        }
    }

    pub(super) fn bound(&self) -> Bound {
        let times = match (self.same, number(&self.column, 0)) {
            (true, Some(time)) => Operand::Same(time),
            _ => operand(&self.column),
        };
        Bound {
            number: self.number,
            times,
            inclusive: self.inclusive,
        }
    }

    fn time(&self, row: usize) -> i64 {
        number(&self.column, row).unwrap().0 as i64
    }

    /// Whether a time is within, if this is an upper bound.
    pub(super) fn above(&self, row: usize, time: i64) -> bool {
        time < self.time(row) || self.inclusive && time == self.time(row)
    }

    /// Whether a time is within, if this is a lower bound.
    pub(super) fn below(&self, row: usize, time: i64) -> bool {
        time > self.time(row) || self.inclusive && time == self.time(row)
    }
}

/// A row of the right side as the oracle has it.
#[derive(Clone, Debug)]
pub(super) struct RightRow {
    pub(super) id: u32,
    pub(super) time: i64,
    pub(super) values: Vec<Option<Scalar>>,
}

/// Random numbers, NULLs among them or not, or nothing else; some floats are but zeros of either
/// sign, which are equal.
pub(super) fn numbers(source: &mut Source, number: NumberType, rows: usize, rarity: u64) -> Column {
    let nulls = [0, 3, 3, 1][source.below(4) as usize];
    let zeros = number.is_float() && source.one_in(5);
    let values: Vec<_> = (0..rows)
        .map(|_| {
            let value = match (zeros, source.one_in(2)) {
                (true, true) => Scalar(0),
                (true, false) => Scalar(1 << (number.width() * 8 - 1)),
                _ => source.number(number, rarity),
            };
            (nulls == 0 || !source.one_in(nulls)).then_some(value)
        })
        .collect();
    if nulls == 1 && source.one_in(2) {
        return Column::absent(rows, source);
    }
    Column::numbers(number, &values, source)
}
