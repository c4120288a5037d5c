//! `DISTINCT` in an aggregate: of the rows of a group that have equal values, the first one counts.
//!
//! ```text
//! values ── KeyReader ──► an id for each value ──► (group, id) met before? ──► the rows that are new
//! ```
//! Pairs have a bit each while that is not much memory. If there are many of which most combinations do not occur, a
//! `KeyTable` has them.
//!
//! Values are equal as keys of groups are: all NaNs, and zeros of both signs.

use super::Argument;
use super::accumulator::Grouping;
use super::key::{Ids, Key, KeyReader};
use super::key_table::{KeyTable, RowWords};
use super::key_values::{KeyValue, KeyValues};
use super::met_pairs::MetPairs;
use super::wide_groups::GROUPS_MIN;
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::selection::Selection;

/// The argument of an aggregate, each value of which counts once in a group.
pub struct Distinct {
    /// The argument of the aggregate without DISTINCT.
    pub(super) argument: Argument,
    pub(super) seen: Seen,
}

/// The values that each group has had.
pub(super) struct Seen {
    reader: KeyReader,
    values: KeyValues,
    pairs: MetPairs,
    /// Whether rows of other groups than the first came.
    has_groups: bool,
    /// The pairs of groups and values, if there are many; then there are no pairs in the other
    /// form.
    wide: Option<Box<Wide>>,
    /// From so many pairs on, pairs count as many.
    #[cfg(test)]
    pub(super) wide_from: Option<usize>,
}

/// Keys of two words: a group, and an integer or the id of another value.
struct Wide {
    table: KeyTable,
    rows: RowWords,
    ids: Box<[u32; VECTOR_ROWS]>,
}

impl Distinct {
    /// The values of `key` are those of `argument`.
    pub fn new(argument: Argument, key: Key) -> Box<Distinct> {
        Box::new(Distinct {
            argument,
            seen: Seen {
                reader: KeyReader::new(key),
                values: KeyValues::default(),
                pairs: MetPairs::default(),
                has_groups: false,
                wide: None,
                #[cfg(test)]
                wide_from: None,
            },
        })
    }
}

impl Seen {
    /// The selected rows with a value that their group did not have before. None of the selected
    /// rows is NULL, and the grouping has no stretches.
    ///
    /// # Errors
    /// The error of evaluating the argument.
    pub(super) fn new_rows(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
        grouping: &Grouping<'_>,
    ) -> Evaluation<Selection> {
        self.widen_if_many();
        if let Some(wide) = &mut self.wide {
            return wide.new_rows(
                (&mut self.reader, &mut self.values),
                frame,
                selection,
                grouping,
            );
        }
        let mut new = Selection::NONE;
        self.has_groups |= !matches!(grouping, Grouping::One(0));
        let ids = self.reader.assign(&mut self.values, frame, selection)?;
        if !self.has_groups && self.pairs.len() == self.values.len() {
            // The only group had each value.
            return Ok(new);
        }
        let pairs = &mut self.pairs;
        let mut last = None;
        let mut offer = |row: usize, group: u32, value: u32| {
            if last == Some((group, value)) {
                return;
            }
            last = Some((group, value));
            new.words[row / 64] |= u64::from(pairs.is_new(group, value)) << (row % 64);
        };
        let value = |row: usize| match &ids {
            Ids::One(id) => *id,
            Ids::Each(each) => each[row],
            // A reader that does not cut has stretches of buckets only, which are looked up below.
            Ids::Stretches(_) => 0,
        };
        match (&ids, grouping) {
            (Ids::One(value), Grouping::One(group)) => {
                selection
                    .next(0)
                    .into_iter()
                    .for_each(|row| offer(row, *group, *value));
            }
            (Ids::Stretches(stretches), _) => {
                for (value, rows) in stretches.iter() {
                    let rows = selection.within(rows.start, rows.end);
                    rows.for_each(|row| offer(row, group_of(grouping, row), value));
                }
            }
            _ => selection.for_each(|row| offer(row, group_of(grouping, row), value(row))),
        }
        Ok(new)
    }

    /// Moves the pairs to a table of keys if there are many, and most combinations of groups and
    /// values do not occur.
    fn widen_if_many(&mut self) {
        let is_hashed = || self.pairs.is_hashed() || self.values.has_scattered_numbers();
        let is_many = self.pairs.len() >= GROUPS_MIN && is_hashed();
        #[cfg(test)]
        let is_many = self
            .wide_from
            .map_or(is_many, |from| self.pairs.len() >= from);
        if !is_many || self.wide.is_some() {
            return;
        }
        let is_integer = self.reader.is_integer();
        let met = std::mem::take(&mut self.pairs).into_pairs();
        if is_integer {
            self.values.free_number_ids();
        }
        let mut wide = Wide {
            table: KeyTable::new(2),
            rows: RowWords::new(2),
            ids: Box::new([0; VECTOR_ROWS]),
        };
        for pairs in met.chunks(VECTOR_ROWS) {
            for (row, (group, value)) in pairs.iter().enumerate() {
                wide.rows.words[0][row] = (*group).into();
                wide.rows.words[1][row] = match self.values.value(*value) {
                    KeyValue::Number(scalar) if is_integer => scalar.0,
                    _ => (*value).into(),
                };
            }
            let all = Selection::first(pairs.len());
            wide.table
                .ids(&mut wide.rows, &all, pairs.len(), &mut wide.ids);
        }
        if is_integer {
            self.values = KeyValues::default();
            self.reader.forget();
        }
        self.wide = Some(Box::new(wide));
    }

    /// Forgets all groups.
    pub(super) fn clear(&mut self) {
        self.reader.forget();
        (self.values, self.pairs, self.wide) = Default::default();
        self.has_groups = false;
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        let wide = self.wide.as_ref().map_or(0, |wide| wide.table.bytes());
        self.reader.bytes() + self.values.bytes() + self.pairs.bytes() + wide
    }
}

impl Wide {
    /// See [`Seen::new_rows`].
    fn new_rows(
        &mut self,
        (reader, values): (&mut KeyReader, &mut KeyValues),
        frame: &Frame<'_>,
        selection: &Selection,
        grouping: &Grouping<'_>,
    ) -> Evaluation<Selection> {
        let Wide { table, rows, ids } = self;
        rows.has_nulls = false;
        match reader.is_integer() {
            true => rows.read_numbers(1, reader, frame, selection)?,
            false => rows.read_ids(1, (reader, values), frame, selection, ids)?,
        }
        let groups = &mut rows.words[0];
        selection.for_each_of(frame.rows, |row| {
            groups[row] = group_of(grouping, row).into()
        });
        // Ids are given in the order of the rows.
        let mut next = table.len() as u32;
        table.ids(rows, selection, frame.rows, ids);
        let mut new = Selection::NONE;
        selection.for_each(|row| {
            let is_new = ids[row] == next;
            next += u32::from(is_new);
            new.words[row / 64] |= u64::from(is_new) << (row % 64);
        });
        Ok(new)
    }
}

/// The group of a row.
#[inline]
fn group_of(grouping: &Grouping<'_>, row: usize) -> u32 {
    match grouping {
        Grouping::One(group) => *group,
        Grouping::Each(ids) => ids[row],
        Grouping::Stretches(_) => unreachable!("stretches are spread before"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::aggregate::accumulator::{Answer, Count};
    use crate::aggregate::{Aggregate, Aggregation};
    use crate::column::Column;
    use crate::test_support::FLOAT8;
    use crate::vector::number::NumberType;
    use crate::vector::value::Value;

    fn column(values: impl Iterator<Item = Option<f64>>) -> Column {
        let mut column = Column::new(FLOAT8);
        for value in values {
            match value {
                Some(value) => column.push_fixed(&value.to_ne_bytes()),
                None => column.push_null(),
            }
        }
        column
    }

    /// Few values, among them zeros of both signs, and NaNs of two.
    fn value(number: u8) -> f64 {
        match number {
            0 => 0.0,
            1 => -0.0,
            2 => f64::NAN,
            3 => -f64::NAN,
            other => f64::from(other),
        }
    }

    proptest! {
        #[test]
        fn each_value_of_a_group_counts_once(
            vectors in prop::collection::vec(
                prop::collection::vec((0..4_u8, prop::option::of(0..12_u8)), 1..200), 1..4),
            is_grouped: bool, is_sorted: bool, wide_from: Option<u8>,
        ) {
            let number = |attribute| Value::Column(NumberType::F64, attribute);
            let argument = Argument::Number(number(1));
            let count = Aggregate {
                filter: None,
                argument: Argument::Distinct(Distinct::new(argument, Key::Number(number(1)))),
                accumulator: Box::<Count>::default(),
            };
            let keys = is_grouped.then(|| Key::Number(number(0)));
            let mut aggregation = Aggregation::new(keys.into_iter().collect(), vec![count]);
            aggregation.widen_from(wide_from.map(usize::from));
            let mut expected = BTreeSet::new();
            for mut rows in vectors {
                if is_sorted {
                    rows.sort();
                }
                let columns = [
                    column(rows.iter().map(|(group, _)| Some(f64::from(*group)))),
                    column(rows.iter().map(|(_, number)| number.map(value))),
                ];
                let lanes = columns.each_ref().map(Column::lane);
                let frame = Frame { lanes: &lanes, ..Frame::of_nulls(rows.len(), &[]) };
                aggregation.add(&frame, &Selection::first(rows.len())).unwrap();
                for (group, number) in rows {
                    let group = if is_grouped { group } else { 0 };
                    let number = number.map(|number| match number {
                        1 => 0,
                        3 => 2,
                        other => other,
                    });
                    expected.insert((group, number));
                }
            }
            for index in 0..aggregation.groups() {
                let group = match is_grouped {
                    true => match aggregation.key(index, 0) {
                        crate::aggregate::KeyValue::Number(scalar) => f64::from_bits(scalar.0) as u8,
                        other => panic!("{other:?}"),
                    },
                    false => 0,
                };
                let values = expected.iter().filter(|(of, number)| *of == group && number.is_some());
                prop_assert_eq!(aggregation.answer(index, 0), Answer::Count(values.count() as u64));
            }
        }
    }
}
