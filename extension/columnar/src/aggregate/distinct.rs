//! `DISTINCT` in an aggregate: of the rows of a group that have equal values, the first one counts.
//!
//! ```text
//! a value ──────── KeyReader ─┐
//! several values ─ Groups ────┼─► an id for each row ──► (group, id) met before? ──► the rows that are new
//! a code ─────────────────────┘
//! ```
//! Pairs have a bit each while that is not much memory. If there are many of which most combinations do not occur, a
//! `KeyTable` has them.
//!
//! Values are equal as keys of groups are: all NaNs, and zeros of both signs. If rows of several values are counted,
//! NULLs are equal too, as in `count(DISTINCT (a, b))`.

use super::Argument;
use super::accumulator::{Grouping, Input};
use super::group::Groups;
use super::key::{Ids, Key, KeyReader, spread};
use super::key_table::{KeyTable, RowWords};
use super::key_values::{KeyValue, KeyValues};
use super::met_pairs::MetPairs;
use super::wide_groups::GROUPS_MIN;
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::selection::Selection;
use crate::vector::value::Value;

/// The argument of an aggregate, each value of which counts once in a group.
pub struct Distinct {
    /// The argument of the aggregate without DISTINCT.
    pub(super) argument: Argument,
    pub(super) seen: Seen,
}

/// The values that each group has had.
pub(super) struct Seen {
    source: Source,
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

/// Where the ids of a row's values come from.
enum Source {
    /// One value.
    Value(Box<(KeyReader, KeyValues)>),
    /// Several values. NULLs among them are equal.
    Values(Box<Groups>),
    /// The argument is a number of 64 bits that is the id.
    Codes(Box<[u32; VECTOR_ROWS]>),
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
        let value = (KeyReader::new(key), KeyValues::default());
        Distinct::of(argument, Source::Value(Box::new(value)))
    }

    /// Rows of several values: `count(DISTINCT (a, b))`.
    pub fn of_rows(keys: Vec<Key>) -> Box<Distinct> {
        let values = Source::Values(Box::new(Groups::new(keys)));
        Distinct::of(Argument::Nothing, values)
    }

    /// Numbers of 64 bits that are small codes of values: equal values have one code.
    pub fn of_codes(codes: Value) -> Box<Distinct> {
        let ids = Source::Codes(Box::new([0; VECTOR_ROWS]));
        Distinct::of(Argument::Number(codes), ids)
    }

    fn of(argument: Argument, source: Source) -> Box<Distinct> {
        Box::new(Distinct {
            argument,
            seen: Seen {
                source,
                pairs: MetPairs::default(),
                has_groups: false,
                wide: None,
                #[cfg(test)]
                wide_from: None,
            },
        })
    }

    /// Forgets all groups.
    pub(super) fn clear(&mut self) {
        if let Argument::Number(Value::External(value)) = &mut self.argument {
            value.forget();
        }
        self.seen.clear();
    }
}

impl Source {
    /// The ids of the selected rows' values, and the number of values so far if it is known.
    fn ids(
        &mut self,
        input: &Input,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<(Ids<'_>, Option<usize>)> {
        match self {
            Source::Value(value) => {
                let (reader, values) = &mut **value;
                let ids = reader.assign(values, frame, selection)?;
                Ok((ids, Some(values.len())))
            }
            Source::Values(groups) => {
                groups.end_vector();
                let assigned = groups.assign(frame, selection)?;
                let ids = match assigned.grouping {
                    Grouping::One(id) => Ids::One(id),
                    Grouping::Stretches(stretches) => Ids::Stretches(stretches),
                    Grouping::Each(ids) => Ids::Each(ids),
                };
                Ok((ids, Some(assigned.groups)))
            }
            Source::Codes(ids) => {
                if let Input::Number(codes) = input {
                    // SAFETY: the codes are numbers of 64 bits, and no selected row is NULL.
                    selection.for_each(|row| ids[row] = unsafe { codes.get::<i64>(row) } as u32);
                }
                Ok((Ids::Each(&ids[..]), None))
            }
        }
    }

    /// Whether the ids are those of integers, which can be words themselves.
    fn is_integer(&self) -> bool {
        matches!(self, Source::Value(value) if value.0.is_integer())
    }

    /// Whether integers lie too far apart to have their ids in an array.
    fn has_scattered_numbers(&self) -> bool {
        matches!(self, Source::Value(value) if value.1.has_scattered_numbers())
    }

    /// The integer that has an id; the id if the values are no integers.
    fn word(&self, id: u32) -> u64 {
        match self {
            Source::Value(value) if value.0.is_integer() => match value.1.value(id) {
                KeyValue::Number(scalar) => scalar.0,
                _ => id.into(),
            },
            _ => id.into(),
        }
    }

    /// Forgets all values.
    fn clear(&mut self) {
        match self {
            Source::Value(value) => {
                value.0.forget();
                value.1 = KeyValues::default();
            }
            Source::Values(groups) => groups.clear(),
            Source::Codes(_) => {}
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Source::Value(value) => value.0.bytes() + value.1.bytes(),
            Source::Values(groups) => groups.bytes(),
            Source::Codes(ids) => size_of_val(&ids[..]),
        }
    }
}

impl Seen {
    /// The selected rows with a value that their group did not have before. The argument of none of
    /// them is NULL, and the grouping has no stretches.
    ///
    /// # Errors
    /// The error of evaluating a value.
    pub(super) fn new_rows(
        &mut self,
        input: &Input,
        frame: &Frame<'_>,
        selection: &Selection,
        grouping: &Grouping<'_>,
    ) -> Evaluation<Selection> {
        self.widen_if_many();
        if let Some(wide) = &mut self.wide {
            return wide.new_rows(&mut self.source, input, frame, selection, grouping);
        }
        let mut new = Selection::NONE;
        self.has_groups |= !matches!(grouping, Grouping::One(0));
        let (ids, values) = self.source.ids(input, frame, selection)?;
        if !self.has_groups && values == Some(self.pairs.len()) {
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
            // Stretches are looked up below.
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
        let is_hashed = || self.pairs.is_hashed() || self.source.has_scattered_numbers();
        let is_many = self.pairs.len() >= GROUPS_MIN && is_hashed();
        #[cfg(test)]
        let is_many = self
            .wide_from
            .map_or(is_many, |from| self.pairs.len() >= from);
        if !is_many || self.wide.is_some() {
            return;
        }
        let is_integer = self.source.is_integer();
        let met = std::mem::take(&mut self.pairs).into_pairs();
        if let Source::Value(value) = &mut self.source
            && is_integer
        {
            value.1.free_number_ids();
        }
        let mut wide = Wide {
            table: KeyTable::new(2),
            rows: RowWords::new(2),
            ids: Box::new([0; VECTOR_ROWS]),
        };
        for pairs in met.chunks(VECTOR_ROWS) {
            for (row, (group, value)) in pairs.iter().enumerate() {
                wide.rows.words[0][row] = (*group).into();
                wide.rows.words[1][row] = self.source.word(*value);
            }
            let all = Selection::first(pairs.len());
            wide.table
                .ids(&mut wide.rows, &all, pairs.len(), &mut wide.ids);
        }
        if is_integer {
            self.source.clear();
        }
        self.wide = Some(Box::new(wide));
    }

    /// Forgets all groups.
    fn clear(&mut self) {
        self.source.clear();
        (self.pairs, self.wide, self.has_groups) = Default::default();
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        let wide = self.wide.as_ref().map_or(0, |wide| wide.table.bytes());
        self.source.bytes() + self.pairs.bytes() + wide
    }
}

impl Wide {
    /// See [`Seen::new_rows`].
    fn new_rows(
        &mut self,
        source: &mut Source,
        input: &Input,
        frame: &Frame<'_>,
        selection: &Selection,
        grouping: &Grouping<'_>,
    ) -> Evaluation<Selection> {
        let Wide { table, rows, ids } = self;
        rows.has_nulls = false;
        match source {
            Source::Value(value) if value.0.is_integer() => {
                rows.read_numbers(1, &mut value.0, frame, selection)?;
            }
            _ => {
                let (values, _) = source.ids(input, frame, selection)?;
                spread(&values, selection, ids);
                let words = &mut rows.words[1];
                selection.for_each_of(frame.rows, |row| words[row] = ids[row].into());
            }
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
