//! Aggregation without new groups. Rows of groups that are not known yet are returned to the
//! caller, who puts them aside.
//!
//! ```text
//! groups take too much memory ── close ──► rows of known groups: added as before
//!                                          other rows: returned, with a hash of their keys
//! all rows read ── clear ──► rows that were put aside: groups of their own
//! ```

use super::accumulator::Grouping;
use super::group::Groups;
use super::key::spread;
use super::key_values::UNKNOWN;
use super::{Aggregate, Aggregation, Argument};
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::selection::Selection;

impl Aggregation {
    /// Whether some groups may be aggregated after others: there are keys, and no aggregate objects.
    pub fn can_wait(&self) -> bool {
        let mut aggregates = self.aggregates.iter();
        let can_wait = |aggregate: &Aggregate| {
            let is_distinct = matches!(aggregate.argument, Argument::Distinct(_));
            !is_distinct && aggregate.accumulator.can_wait()
        };
        !self.single && aggregates.all(can_wait)
    }

    /// Stops adding groups. From now on rows are added by [`Self::add_known`] alone.
    pub fn close(&mut self) {
        let keys = self.groups.keys.iter_mut();
        keys.for_each(|key| key.values.close());
        // Most rows that follow belong to other groups.
        if let Some(wide) = &mut self.groups.wide {
            wide.table.expect_unknown();
        }
    }

    /// Adds the selected rows of known groups, and returns the other rows.
    ///
    /// # Errors
    /// As for [`Self::add`].
    pub fn add_known(&mut self, frame: &Frame<'_>, selection: &Selection) -> Evaluation<Selection> {
        let known = self.groups.find(frame, selection)?;
        if !known.is_empty() {
            self.spread.is_done = false;
            let grouping = Grouping::Each(&self.groups.ids[..]);
            for aggregate in &mut self.aggregates {
                aggregate.add(frame, &known, &grouping, &mut self.spread)?;
            }
        }
        Ok(selection.and_not(&known))
    }

    /// Writes a hash of the keys of each selected row. Rows of one group have equal hashes, wherever they are stored.
    ///
    /// # Errors
    /// The error of evaluating a key.
    pub fn hash_keys(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
        hashes: &mut [u64; VECTOR_ROWS],
    ) -> Evaluation<()> {
        selection.for_each(|row| hashes[row] = 0);
        let mut keys = self.groups.keys.iter_mut();
        keys.try_for_each(|key| key.reader.hash(frame, selection, hashes))
    }

    /// Removes all groups and their rows, and adds new groups again.
    pub fn clear(&mut self) {
        self.groups.clear();
        for aggregate in &mut self.aggregates {
            aggregate.accumulator.clear();
            if let Argument::Distinct(distinct) = &mut aggregate.argument {
                distinct.clear();
            }
        }
    }
}

impl Groups {
    /// Writes the group ids of selected rows, and returns the rows whose groups are known. All keys are closed.
    fn find(&mut self, frame: &Frame<'_>, selection: &Selection) -> Evaluation<Selection> {
        let (ids, others) = (&mut self.ids, &mut self.others);
        if let Some(wide) = &mut self.wide {
            return wide.find(&mut self.keys, frame, selection, ids);
        }
        let Some((first, rest)) = self.keys.split_first_mut() else {
            return Ok(*selection);
        };
        spread(&first.assign(frame, selection)?, selection, ids);
        for (key, pairs) in rest.iter_mut().zip(&self.pairs) {
            spread(&key.assign(frame, selection)?, selection, others);
            selection.for_each(|row| {
                ids[row] = match (ids[row], others[row]) {
                    (UNKNOWN, _) | (_, UNKNOWN) => UNKNOWN,
                    (left, right) => pairs.known(left, right),
                };
            });
        }
        let mut known = Selection::NONE;
        selection.for_each(|row| {
            known.words[row / 64] |= u64::from(ids[row] != UNKNOWN) << (row % 64);
        });
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::aggregate::Key;
    use crate::aggregate::accumulator::{Answer, Count};
    use crate::column::Column;
    use crate::rows_aside::{RowsBack, RowsOut};
    use crate::test_support::{FLOAT8, TEXT};
    use crate::vector::number::NumberType;
    use crate::vector::value::Value;

    /// A text as an item with a short header.
    fn item(text: &str) -> Vec<u8> {
        let mut item = vec![(text.len() as u8 + 1) << 1 | 1];
        item.extend_from_slice(text.as_bytes());
        item
    }

    type Row = (Option<u8>, Option<i8>);

    /// The values by which a row is grouped. Zeros of both signs are one group, and so are all
    /// NaNs.
    fn float(value: i8) -> f64 {
        match value {
            0 => -0.0,
            1 => 0.0,
            2 => f64::NAN,
            3 => -f64::NAN,
            other => f64::from(other),
        }
    }

    fn columns(rows: &[Row]) -> Vec<Column> {
        let (mut texts, mut floats) = (Column::new(TEXT), Column::new(FLOAT8));
        for (text, value) in rows {
            match text {
                Some(text) => texts.push_item(&item(&format!("text {text}"))),
                None => texts.push_null(),
            }
            match value {
                Some(value) => floats.push_fixed(&float(*value).to_ne_bytes()),
                None => floats.push_null(),
            }
        }
        vec![texts, floats]
    }

    fn with_frame<T>(columns: &[Column], rows: usize, work: impl FnOnce(&Frame<'_>) -> T) -> T {
        let lanes: Vec<_> = columns.iter().map(Column::lane).collect();
        let dictionaries: Vec<_> = columns
            .iter()
            .map(|column| column.dictionary().unwrap_or_default())
            .collect();
        work(&Frame {
            lanes: &lanes,
            dictionaries: &dictionaries,
            ..Frame::of_nulls(rows, &[])
        })
    }

    fn aggregation(keys: u8) -> Aggregation {
        let text = || Key::Text(0);
        let float = || Key::Number(Value::Column(NumberType::F64, 1));
        let keys = match keys {
            0 => vec![text()],
            1 => vec![float()],
            2 => vec![text(), float()],
            _ => vec![float(), text()],
        };
        let count = Aggregate {
            filter: None,
            argument: Argument::Nothing,
            accumulator: Box::<Count>::default(),
        };
        Aggregation::new(keys, vec![count])
    }

    fn counts(aggregation: &Aggregation, keys: u8, into: &mut BTreeMap<String, u64>) {
        for group in 0..aggregation.groups() {
            let keys: Vec<_> = (0..if keys < 2 { 1 } else { 2 })
                .map(|key| match aggregation.key(group, key) {
                    crate::aggregate::KeyValue::Number(scalar) => {
                        format!("{:?}", f64::from_bits(scalar.0) + 0.0)
                    }
                    other => format!("{other:?}"),
                })
                .collect();
            let Answer::Count(count) = aggregation.answer(group, 0) else {
                panic!("a count");
            };
            let before = into.insert(format!("{keys:?}"), count);
            assert_eq!(before, None, "a group was aggregated twice");
        }
    }

    proptest! {
        #[test]
        fn groups_that_wait_are_aggregated_once_and_completely(
            vectors in prop::collection::vec(prop::collection::vec(
                (prop::option::weighted(0.9, 0..9_u8), prop::option::weighted(0.9, -4..6_i8)), 1..150), 1..6),
            keys in 0..4_u8, closes in 0..5_usize, bits in 0..4_u32, wide_from in prop::option::of(0..20_usize),
        ) {
            let mut expected = BTreeMap::new();
            let mut whole = aggregation(keys);
            for rows in &vectors {
                let selection = Selection::first(rows.len());
                with_frame(&columns(rows), rows.len(), |frame| whole.add(frame, &selection)).unwrap();
            }
            counts(&whole, keys, &mut expected);

            let mut parts = aggregation(keys);
            parts.widen_from(wide_from);
            prop_assert!(parts.can_wait());
            let kinds = [(0, TEXT), (1, FLOAT8)];
            let mut partitions: Vec<_> = (0..1 << bits).map(|_| RowsOut::new(&kinds)).collect();
            let mut hashes = Box::new([0; VECTOR_ROWS]);
            for (index, rows) in vectors.iter().enumerate() {
                let selection = Selection::first(rows.len());
                with_frame(&columns(rows), rows.len(), |frame| {
                    if index < closes {
                        return parts.add(frame, &selection).unwrap();
                    }
                    parts.close();
                    let unknown = parts.add_known(frame, &selection).unwrap();
                    parts.hash_keys(frame, &unknown, &mut hashes).unwrap();
                    unknown.for_each(|row| {
                        partitions[(hashes[row] & ((1 << bits) - 1)) as usize].push(frame, row);
                    });
                });
            }
            let mut found = BTreeMap::new();
            counts(&parts, keys, &mut found);
            let mut back = RowsBack::new(&kinds);
            for mut partition in partitions {
                parts.clear();
                let mut image = Vec::new();
                partition.take(&mut image).unwrap();
                back.read(&image).unwrap();
                let selection = Selection::first(back.rows());
                parts.add(&back.frame(&[]), &selection).unwrap();
                counts(&parts, keys, &mut found);
            }
            prop_assert_eq!(found, expected);
        }
    }
}
