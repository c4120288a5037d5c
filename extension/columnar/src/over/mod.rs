//! SQL's window functions, partition by partition.
//!
//! ```text
//! rows as they come ── arrange: by partition, then by order keys ──► positions
//! positions ── frames: the peers and the frame of each ──► ranks | rows of the frame | aggregates ──► a value a position
//! ```
//! All rows are in memory. A *row* is a number in the order in which rows came, a *position* is a
//! number in the order of partitions and order keys. Rows that tie stay in the order in which they
//! came.
//!
//! | module | content |
//! |---|---|
//! | [`numbers`] | a column of numbers, some of which are NULL |
//! | [`arrange`] | the order of the rows |
//! | `keyed` | rows sorted together with their only key |
//! | [`first_rows`] | rows that can be among the first ones of their partitions |
//! | [`frames`], [`distance`] | peers and frames |
//! | [`ranks`] | `row_number`, `rank`, `dense_rank`, `percent_rank`, `cume_dist`, `ntile` |
//! | [`aggregates`] | `count`, `sum`, `avg`, `min`, `max` |
//! | `sliding_sums` | sums of floats over frames of a fixed number of rows |
//!
//! `lag`, `lead`, `first_value`, `last_value` and `nth_value` find a row: its value is the result,
//! of whatever type it is.
//!
//! Sums of floats are added in the order of the frame, from its first row on whenever that changes.
//! So they are those of PostgreSQL to the last bit.

pub mod aggregates;
pub mod arrange;
pub mod distance;
pub mod first_rows;
pub mod frames;
mod keyed;
pub mod numbers;
pub mod ranks;
mod sliding_sums;

use self::arrange::{Arrangement, SortKey};
use self::frames::Frame;
use self::numbers::NumberColumn;
use crate::buffer::reserve_huge;
use crate::interrupt::Steps;
use crate::vector::Evaluation;
use crate::vector::number::NumberType;

/// A window function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    /// `row_number`
    RowNumber,
    /// `rank`
    Rank,
    /// `dense_rank`
    DenseRank,
    /// `percent_rank`
    PercentRank,
    /// `cume_dist`
    CumeDist,
    /// `ntile`, of at least one bucket.
    Ntile(i64),
    /// The row so many positions behind the current one: `lead`, and with a negative number `lag`.
    Offset(i64),
    /// `first_value`
    First,
    /// `last_value`
    Last,
    /// `nth_value`, of a number that is at least one.
    Nth(i64),
    /// `count`
    Count,
    /// `sum`
    Sum,
    /// `avg`
    Average,
    /// `min`
    Minimum,
    /// `max`
    Maximum,
}

/// A call of a window function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// The function.
    pub function: Function,
    /// The frame.
    pub frame: Frame,
    /// How many of the order keys are those of the call's window. Rows that are equal in these are
    /// peers.
    pub order_keys: usize,
}

/// No position in [`Output::Positions`].
pub const NO_ROW: u32 = u32::MAX;

/// The results of a call, by position.
pub enum Output {
    /// Numbers.
    Numbers(NumberColumn),
    /// The position whose value is the result, or [`NO_ROW`].
    Positions(Vec<u32>),
    /// For each position the exact sum of integers, and how many were added.
    Sums(Vec<(i128, u64)>),
}

impl Output {
    /// Bytes of memory that the results of a function take for each row, while they are computed.
    pub const fn row_bytes(function: Function, number: NumberType) -> usize {
        let results = match function {
            Function::Sum if matches!(number, NumberType::I64) => size_of::<(i128, u64)>(),
            Function::Average if !number.is_float() => size_of::<(i128, u64)>(),
            Function::Offset(_) | Function::First | Function::Last | Function::Nth(_) => {
                size_of::<u32>()
            }
            // A moving frame may wait with each of its rows.
            Function::Minimum | Function::Maximum => size_of::<u64>() + size_of::<(usize, u64)>(),
            _ => size_of::<u64>(),
        };
        // The argument, in the order of positions.
        results + size_of::<u64>()
    }
}

/// Computes a call for all rows. `argument` is the column of its argument with its type, by row.
///
/// # Errors
/// A sum is out of range.
pub fn compute(
    call: &Call,
    order: &Arrangement,
    keys: &[SortKey],
    argument: Option<(&NumberColumn, NumberType)>,
) -> Evaluation<Output> {
    let keys = &keys[..call.order_keys];
    match call.function {
        Function::RowNumber
        | Function::Rank
        | Function::DenseRank
        | Function::PercentRank
        | Function::CumeDist
        | Function::Ntile(_) => Ok(Output::Numbers(ranks::rank(call.function, order, keys))),
        Function::Offset(offset) => Ok(Output::Positions(offset_positions(order, offset))),
        Function::First | Function::Last | Function::Nth(_) => {
            Ok(Output::Positions(frame_positions(call, order, keys)?))
        }
        _ => aggregates::aggregate(call, order, keys, argument),
    }
}

/// For each position the one so many positions behind it in the same partition.
fn offset_positions(order: &Arrangement, offset: i64) -> Vec<u32> {
    let mut found = Vec::new();
    reserve_huge(&mut found, order.rows.len());
    let steps = Steps::default();
    for partition in order.partitions() {
        for position in partition.clone() {
            steps.step();
            let other = (position as i64).saturating_add(offset);
            let other = usize::try_from(other).unwrap_or(usize::MAX);
            found.push(match partition.contains(&other) {
                true => other as u32,
                false => NO_ROW,
            });
        }
    }
    found
}

/// For each position one of its frame.
fn frame_positions(call: &Call, order: &Arrangement, keys: &[SortKey]) -> Evaluation<Vec<u32>> {
    let mut found = Vec::with_capacity(order.rows.len());
    frames::each(order, keys, call.frame, |frame| {
        let position = match call.function {
            Function::First => Some(frame.start),
            Function::Last => frame.end.checked_sub(1),
            Function::Nth(number) => usize::try_from(number - 1)
                .ok()
                .and_then(|behind| frame.start.checked_add(behind)),
            _ => None,
        };
        let position = position.filter(|position| frame.contains(position));
        found.push(position.map_or(NO_ROW, |position| position as u32));
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests;
