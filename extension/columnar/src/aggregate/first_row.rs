//! The first row of each group in an order: what `(array_agg(x ORDER BY t DESC))[1]` needs of its rows.
//!
//! The argument, unless it may raise an error, is evaluated for rows that are the first ones of their groups at the end
//! of a vector, and for no other. Of rows that tie, the earliest is the first.

use std::cmp::Ordering;

use super::accumulator::{Grouping, each_row};
use super::ordered_rows::forget;
use crate::limits::VECTOR_ROWS;
use crate::order::Order;
use crate::order::rank::Rank;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::number::Scalar;
use crate::vector::operands;
use crate::vector::selection::Selection;
use crate::vector::value::Value;
use crate::with_number;

/// The first row of a group.
#[derive(Clone, Copy)]
enum First {
    /// There is no row.
    None,
    /// This row of the current vector.
    Row(u16),
    /// A row of an earlier vector with this argument; `None` is NULL.
    Of(Option<Scalar>),
}

const _: () = assert!(VECTOR_ROWS <= u16::MAX as usize);

/// The first row of each group.
pub struct FirstRow {
    keys: Vec<(Value, Order)>,
    argument: Value,
    /// Whether the argument is evaluated for all rows.
    can_fail: bool,
    /// By group, the ranks of the first row: one for each key.
    ranks: Vec<Rank>,
    first: Vec<First>,
    /// The ranks of a vector's rows, key by key.
    of_rows: Vec<Rank>,
    /// The groups whose first row is of the current vector.
    fresh: Vec<u32>,
}

impl FirstRow {
    /// No group yet. The argument may raise an error if it `can_fail`.
    pub fn new(keys: Vec<(Value, Order)>, argument: Value, can_fail: bool) -> FirstRow {
        FirstRow {
            of_rows: vec![Rank::LAST; keys.len() * VECTOR_ROWS],
            keys,
            argument,
            can_fail,
            ranks: Vec::new(),
            first: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// Makes room for so many groups.
    pub fn resize(&mut self, groups: usize) {
        self.first.resize(groups, First::None);
        self.ranks.resize(groups * self.keys.len(), Rank::LAST);
    }

    /// Adds the selected rows of a vector. The grouping is not [`Grouping::Stretches`].
    ///
    /// # Errors
    /// The error that a key or an argument raises.
    pub fn add(
        &mut self,
        grouping: &Grouping<'_>,
        frame: &Frame<'_>,
        rows: &Selection,
    ) -> Evaluation<()> {
        self.rank(frame, rows)?;
        let keys = self.keys.len();
        let (first, ranks, fresh) = (&mut self.first, &mut self.ranks, &mut self.fresh);
        let of_rows = &self.of_rows;
        each_row(grouping, rows, |row, group| {
            let best = &mut ranks[group * keys..][..keys];
            let of_row = |key: usize| of_rows[key * VECTOR_ROWS + row];
            let order = (0..keys).map(|key| of_row(key).cmp(&best[key]));
            let order = order.fold(Ordering::Equal, Ordering::then);
            if order == Ordering::Less {
                let before = std::mem::replace(&mut first[group], First::Row(row as u16));
                if !matches!(before, First::Row(_)) {
                    fresh.push(group as u32);
                }
                for (key, best) in best.iter_mut().enumerate() {
                    *best = of_row(key);
                }
            }
            Ok(())
        })?;
        self.take(frame, rows)
    }

    /// Writes the ranks of a vector's selected rows.
    fn rank(&mut self, frame: &Frame<'_>, rows: &Selection) -> Evaluation<()> {
        let of_keys = self.of_rows.chunks_exact_mut(VECTOR_ROWS);
        for ((value, order), ranks) in self.keys.iter_mut().zip(of_keys) {
            let operand = value.evaluate(frame, rows)?;
            let valid = operand.valid(rows);
            if valid != *rows {
                rows.for_each(|row| ranks[row] = order.null());
            }
            with_number!(value.number(), T => valid.for_each(|row| {
                // SAFETY: the operand has a number of this type for each row of its vector.
                ranks[row] = order.rank(unsafe { operand.get::<T>(row) });
            }));
        }
        Ok(())
    }

    /// Evaluates the argument for the first rows that are of the current vector.
    fn take(&mut self, frame: &Frame<'_>, rows: &Selection) -> Evaluation<()> {
        let mut chosen = if self.can_fail {
            *rows
        } else {
            Selection::NONE
        };
        for group in &self.fresh {
            if let First::Row(row) = self.first[*group as usize] {
                chosen.insert(row.into(), usize::from(row) + 1);
            }
        }
        if chosen.is_empty() {
            return Ok(());
        }
        let operand = self.argument.evaluate(frame, &chosen)?;
        let number = self.argument.number();
        for group in self.fresh.drain(..) {
            let first = &mut self.first[group as usize];
            if let First::Row(row) = *first {
                *first = First::Of(operands::value(number, operand, row.into()));
            }
        }
        Ok(())
    }

    /// The argument of a group's first row, in which `None` is NULL; `None` if there is no row.
    pub fn of_group(&self, group: usize) -> Option<Option<Scalar>> {
        match self.first[group] {
            First::Of(argument) => Some(argument),
            First::None | First::Row(_) => None,
        }
    }

    /// Replaces the argument of each first row that is not NULL. Functions outside of this crate may give equal rows
    /// other results from now on.
    pub fn replace(&mut self, mut by: impl FnMut(Scalar) -> Scalar) {
        forget(&mut self.argument);
        for first in &mut self.first {
            if let First::Of(Some(argument)) = first {
                *argument = by(*argument);
            }
        }
    }

    /// Removes all groups. Functions outside of this crate may give equal rows other results from now on.
    pub fn clear(&mut self) {
        self.keys.iter_mut().for_each(|(value, _)| forget(value));
        forget(&mut self.argument);
        (self.ranks, self.first) = (Vec::new(), Vec::new());
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let ranks = self.ranks.capacity() + self.of_rows.capacity();
        ranks * size_of::<Rank>() + self.first.capacity() * size_of::<First>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Column;
    use crate::test_support::INT8;
    use crate::vector::number::NumberType;

    /// A row: its group, two keys, and the argument.
    type Row = (u32, [Option<i64>; 2], Option<i64>);

    /// Adds vectors of rows.
    fn first_of(vectors: &[&[Row]], orders: &[Order]) -> FirstRow {
        let keys = orders.iter().enumerate();
        let keys = keys.map(|(key, order)| (Value::Column(NumberType::I64, key), *order));
        let argument = Value::Column(NumberType::I64, 2);
        let mut first = FirstRow::new(keys.collect(), argument, false);
        first.resize(3);
        for rows in vectors {
            let mut columns = [Column::new(INT8), Column::new(INT8), Column::new(INT8)];
            for (_, [a, b], argument) in *rows {
                for (column, value) in columns.iter_mut().zip([a, b, argument]) {
                    match value {
                        Some(value) => column.push_fixed(&value.to_ne_bytes()),
                        None => column.push_null(),
                    }
                }
            }
            let lanes = columns.each_ref().map(Column::lane);
            let frame = Frame {
                lanes: &lanes,
                ..Frame::of_nulls(rows.len(), &[])
            };
            let ids: Vec<u32> = rows.iter().map(|(group, ..)| *group).collect();
            let all = Selection::first(rows.len());
            first.add(&Grouping::Each(&ids), &frame, &all).unwrap();
        }
        first
    }

    fn order(descending: bool, nulls_first: bool) -> Order {
        Order {
            descending,
            nulls_first,
        }
    }

    #[test]
    fn the_earliest_of_tied_rows_is_first() {
        let vectors: [&[_]; 2] = [
            &[
                (0, [Some(1), None], Some(10)),
                (1, [Some(5), None], Some(11)),
                (0, [Some(3), None], Some(12)),
                (0, [Some(3), None], Some(13)),
            ],
            &[
                (1, [Some(6), None], None),
                (0, [Some(3), None], Some(14)),
                (1, [None, None], Some(15)),
            ],
        ];
        let first = first_of(&vectors, &[order(true, false)]);
        assert_eq!(first.of_group(0), Some(Some(Scalar(12))));
        assert_eq!(first.of_group(1), Some(None));
        assert_eq!(first.of_group(2), None);
        let with_nulls = first_of(&vectors, &[order(true, true)]);
        assert_eq!(with_nulls.of_group(1), Some(Some(Scalar(15))));
    }

    #[test]
    fn the_second_key_decides_among_equal_first_keys() {
        let vectors: [&[_]; 1] = [&[
            (0, [Some(1), Some(4)], Some(10)),
            (0, [Some(1), Some(9)], Some(11)),
            (0, [Some(2), Some(1)], Some(12)),
        ]];
        let first = first_of(&vectors, &[order(false, false), order(true, false)]);
        assert_eq!(first.of_group(0), Some(Some(Scalar(11))));
    }
}
