//! The rows of an aggregate with ORDER BY: sort keys and arguments as columns, which are brought into order when there
//! are no more rows.
//!
//! ```text
//! vector ── keys, arguments ──► columns, and the group of each row ── no more rows ──► the rows of each group in order
//! ```
//! Rows that tie stay in the order in which they came.

use std::iter::repeat_n;

use super::accumulator::Grouping;
use crate::buffer::reserve_huge;
use crate::order::Order;
use crate::over::arrange::{self, Arrangement, SortKey};
use crate::over::numbers::NumberColumn;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::operands;
use crate::vector::selection::Selection;
use crate::vector::value::Value;

/// A key that the rows of a group are ordered by.
pub enum RowKey {
    /// A number.
    Number(Value, Order),
    /// The code of a value, a number of 64 bits that is not NULL. The order of the values is told by their
    /// [ranks](OrderedRows::rank).
    Code(Value),
}

/// Bytes that a row takes while rows are brought into order.
const SORTED_ROW_BYTES: usize = 28;

/// The rows.
#[derive(Default)]
pub struct OrderedRows {
    keys: Vec<(RowKey, SortKey)>,
    arguments: Vec<(Value, NumberColumn)>,
    /// The group of each row.
    of_rows: Vec<u32>,
    groups: usize,
    /// The rows in order, once there are no more.
    arranged: Option<Arrangement>,
}

impl RowKey {
    fn value(&mut self) -> &mut Value {
        match self {
            RowKey::Number(value, _) | RowKey::Code(value) => value,
        }
    }

    /// A column of such keys.
    fn column(&self) -> SortKey {
        match self {
            RowKey::Number(_, order) => SortKey::new(order.nulls_first, order.descending),
            RowKey::Code(_) => SortKey::new(false, false),
        }
    }
}

impl OrderedRows {
    /// No row yet.
    pub fn new(keys: Vec<RowKey>, arguments: Vec<Value>) -> OrderedRows {
        let keys = keys.into_iter().map(|key| {
            let column = key.column();
            (key, column)
        });
        let arguments = arguments.into_iter();
        OrderedRows {
            keys: keys.collect(),
            arguments: arguments
                .map(|value| (value, NumberColumn::default()))
                .collect(),
            ..OrderedRows::default()
        }
    }

    /// Notes that there are so many groups.
    pub fn resize(&mut self, groups: usize) {
        self.groups = groups;
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
        for (key, column) in &mut self.keys {
            let operand = key.value().evaluate(frame, rows)?;
            match key {
                RowKey::Number(value, order) => {
                    let (number, keys) = (value.number(), &mut column.keys);
                    operands::append_order_keys(number, operand, rows, order.descending, keys);
                }
                RowKey::Code(value) => {
                    operands::append(value.number(), operand, rows, rows, &mut column.keys);
                }
            }
        }
        for (value, column) in &mut self.arguments {
            let operand = value.evaluate(frame, rows)?;
            operands::append(value.number(), operand, rows, rows, column);
        }
        match *grouping {
            Grouping::One(group) => {
                let count = rows.count();
                let wanted = self.of_rows.len() + count;
                reserve_huge(&mut self.of_rows, wanted);
                self.of_rows.extend(repeat_n(group, count));
            }
            Grouping::Each(ids) => arrange::append_partitions(rows, ids, &mut self.of_rows),
            Grouping::Stretches(_) => {}
        }
        Ok(())
    }

    /// Replaces the codes of a key by the places of their values in its order. Values with equal places tie.
    pub fn rank(&mut self, key: usize, places: &[u32]) {
        let keys = &mut self.keys[key].1.keys;
        keys.replace(|code| places[code as usize].into());
    }

    /// Brings the rows into order. There are no more.
    pub fn arrange(&mut self) {
        let groups: Vec<u32> = (0..self.groups as u32).collect();
        let empty = |(key, column): &mut (RowKey, SortKey)| {
            let empty = key.column();
            std::mem::replace(column, empty)
        };
        let keys: Vec<_> = self.keys.iter_mut().map(empty).collect();
        let of_rows = std::mem::take(&mut self.of_rows);
        self.arranged = Some(Arrangement::new(&of_rows, &groups, &keys));
    }

    /// The rows of a group in their order. They were [arranged](Self::arrange).
    pub fn of_group(&self, group: usize) -> &[u32] {
        let arranged = self.arranged.as_ref();
        arranged.map_or(&[], |arranged| arranged.of_partition(group))
    }

    /// The values of an argument by row.
    pub fn argument(&self, argument: usize) -> &NumberColumn {
        &self.arguments[argument].1
    }

    /// Removes all rows and groups. Functions outside of this crate may give equal rows other codes from now on.
    pub fn clear(&mut self) {
        for (key, column) in &mut self.keys {
            forget(key.value());
            *column = key.column();
        }
        for (value, column) in &mut self.arguments {
            forget(value);
            *column = NumberColumn::default();
        }
        self.of_rows = Vec::new();
        (self.groups, self.arranged) = (0, None);
    }

    /// Bytes of memory, with what it takes to bring the rows into order.
    pub fn bytes(&self) -> usize {
        let keys = self.keys.iter().map(|(_, column)| column.keys.bytes());
        let arguments = self.arguments.iter().map(|(_, column)| column.bytes());
        let of_rows = self.of_rows.capacity() * size_of::<u32>();
        let sorted = self.of_rows.len() * SORTED_ROW_BYTES;
        keys.sum::<usize>() + arguments.sum::<usize>() + of_rows + sorted
    }
}

/// Lets an expression forget the results that it has kept.
pub(super) fn forget(value: &mut Value) {
    if let Value::External(value) = value {
        value.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Column;
    use crate::test_support::INT8;
    use crate::vector::number::NumberType;

    /// A row: its group, a key that may be NULL, the code of another key, and its number.
    type Row = (u32, Option<i64>, i64);

    const ROWS: [Row; 7] = [
        (1, Some(5), 0),
        (0, Some(7), 1),
        (0, None, 0),
        (1, Some(-5), 2),
        (0, Some(7), 2),
        (0, Some(9), 0),
        (1, Some(5), 1),
    ];

    /// The numbers of the rows of two groups, in order.
    fn ordered(keys: Vec<RowKey>, ranked: Option<(usize, &[u32])>) -> [Vec<u64>; 2] {
        let mut columns = [Column::new(INT8), Column::new(INT8), Column::new(INT8)];
        for (row, (_, key, code)) in ROWS.iter().enumerate() {
            match key {
                Some(key) => columns[0].push_fixed(&key.to_ne_bytes()),
                None => columns[0].push_null(),
            }
            columns[1].push_fixed(&code.to_ne_bytes());
            columns[2].push_fixed(&(row as i64).to_ne_bytes());
        }
        let lanes = columns.each_ref().map(Column::lane);
        let frame = Frame {
            lanes: &lanes,
            ..Frame::of_nulls(ROWS.len(), &[])
        };
        let mut rows = OrderedRows::new(keys, vec![Value::Column(NumberType::I64, 2)]);
        rows.resize(2);
        let ids = ROWS.map(|(group, ..)| group);
        let mut all = Selection::NONE;
        all.insert(0, ROWS.len());
        rows.add(&Grouping::Each(&ids), &frame, &all).unwrap();
        if let Some((key, places)) = ranked {
            rows.rank(key, places);
        }
        rows.arrange();
        let number = |row: &u32| rows.argument(0).values()[*row as usize];
        [0, 1].map(|group| rows.of_group(group).iter().map(number).collect())
    }

    fn by_number(descending: bool, nulls_first: bool) -> RowKey {
        let order = Order {
            descending,
            nulls_first,
        };
        RowKey::Number(Value::Column(NumberType::I64, 0), order)
    }

    #[test]
    fn ties_stay_in_the_order_of_rows() {
        let ascending = ordered(vec![by_number(false, false)], None);
        assert_eq!(ascending, [vec![1, 4, 5, 2], vec![3, 0, 6]]);
        let descending = ordered(vec![by_number(true, true)], None);
        assert_eq!(descending, [vec![2, 5, 1, 4], vec![0, 6, 3]]);
    }

    #[test]
    fn codes_are_ordered_by_the_places_of_their_values() {
        let code = || RowKey::Code(Value::Column(NumberType::I64, 1));
        let places = [2, 0, 0];
        let by_code = ordered(vec![code()], Some((0, &places)));
        assert_eq!(by_code, [vec![1, 4, 2, 5], vec![3, 6, 0]]);
        let keys = vec![by_number(false, true), code()];
        let by_both = ordered(keys, Some((1, &places)));
        assert_eq!(by_both, [vec![2, 1, 4, 5], vec![3, 6, 0]]);
    }
}
