//! From the keys of a row to the id of its group.
//!
//! ```text
//! ids of key 1 ─┐
//! ids of key 2 ─┴─ pair ─┐
//! ids of key 3 ──────────┴─ pair ── … ── group ids
//! ```
//! If all keys have stretches of rows, so do pairs, and each stretch is looked up once. Each step
//! has its own table of pairs of ids (`Pairs`).
//!
//! When there are many groups, they move to `super::wide_groups`.
//!
//! Buckets come last, whatever the order of the query is. The other keys of a row are mostly
//! related, such as a series and its labels, so there are few combinations of them. In the last
//! table, the minutes of each combination lie side by side.

use std::ops::Range;

use super::accumulator::Grouping;
use super::key::{Ids, Key, KeyReader, spread};
use super::key_values::{KeyValue, KeyValues};
use super::pairs::Pairs;
use super::stretches::{StretchList, Stretches};
use super::wide_groups::WideGroups;
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::selection::Selection;

/// The groups of a query.
pub(super) struct Groups {
    /// The keys, in the order in which they are paired.
    pub(super) keys: Vec<GroupKey>,
    /// The place of each of the query's keys in that order.
    pub(super) places: Vec<usize>,
    /// For each step after the first: the id of each pair, and the pair of each id.
    pub(super) pairs: Vec<Pairs>,
    pub(super) ids: Box<[u32; VECTOR_ROWS]>,
    /// The ids of a key after the first.
    pub(super) others: Box<[u32; VECTOR_ROWS]>,
    stretches: StretchList,
    combined: StretchList,
    /// The groups, if there are many; then there are no pairs.
    pub(super) wide: Option<Box<WideGroups>>,
    /// Whether the rows of the previous vector had an id each.
    had_each: bool,
    /// So many groups move to the wide form, whatever their keys are.
    #[cfg(test)]
    pub(super) wide_from: Option<usize>,
}

pub(super) struct GroupKey {
    pub(super) reader: KeyReader,
    pub(super) values: KeyValues,
    /// Whether equal values need one number in all groups.
    pub(super) shares_numbers: bool,
}

impl GroupKey {
    pub(super) fn assign(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<Ids<'_>> {
        self.reader.assign(&mut self.values, frame, selection)
    }
}

/// The groups of a vector's rows, and the number of groups so far.
pub(super) struct Assigned<'a> {
    pub(super) grouping: Grouping<'a>,
    pub(super) groups: usize,
}

impl Groups {
    pub(super) fn new(keys: Vec<Key>) -> Groups {
        let steps = keys.len().saturating_sub(1);
        let mut keys: Vec<_> = keys.into_iter().enumerate().collect();
        keys.sort_by_key(|(_, key)| matches!(key, Key::Bucket(..)));
        let mut places = vec![0; keys.len()];
        for (place, (key, _)) in keys.iter().enumerate() {
            places[*key] = place;
        }
        Groups {
            places,
            keys: keys
                .into_iter()
                .map(|(_, key)| GroupKey {
                    reader: KeyReader::new(key).cutting(),
                    values: KeyValues::default(),
                    shares_numbers: false,
                })
                .collect(),
            pairs: (0..steps).map(|_| Pairs::default()).collect(),
            ids: Box::new([0; VECTOR_ROWS]),
            others: Box::new([0; VECTOR_ROWS]),
            stretches: StretchList::default(),
            combined: StretchList::default(),
            wide: None,
            had_each: false,
            #[cfg(test)]
            wide_from: None,
        }
    }

    /// The number of groups; 1 from the start if there are no keys.
    pub(super) fn len(&self) -> usize {
        if let Some(wide) = &self.wide {
            return wide.table.len();
        }
        match (self.pairs.last(), self.keys.first()) {
            (Some(pairs), _) => pairs.len(),
            (None, Some(key)) => key.values.len(),
            (None, None) => 1,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let keys = self.keys.iter();
        let keys = keys.map(|key| key.reader.bytes() + key.values.bytes());
        keys.sum::<usize>()
            + self.stretches.bytes()
            + self.pairs.iter().map(Pairs::bytes).sum::<usize>()
            + self.wide.as_ref().map_or(0, |wide| wide.bytes())
    }

    /// Forgets all groups.
    pub(super) fn clear(&mut self) {
        if let Some(wide) = &mut self.wide {
            wide.table.clear();
        }
        for key in &mut self.keys {
            key.values = KeyValues::default();
            key.reader.forget();
        }
        let pairs = self.pairs.iter_mut();
        pairs.for_each(|pairs| *pairs = Pairs::default());
    }

    /// The number of a group's value of a key.
    pub(super) fn key_number(&self, group: usize, key: usize) -> u32 {
        match &self.wide {
            Some(wide) => wide.number(group as u32, self.places[key]),
            None => self.number_of(group as u32, self.places[key], self.pairs.len()),
        }
    }

    /// Writes the numbers of a key's values in some groups, one group after the other.
    pub(super) fn key_numbers(&self, key: usize, groups: Range<usize>, out: &mut [u32]) {
        let place = self.places[key];
        if let Some(wide) = &self.wide {
            let numbers = groups.map(|group| wide.number(group as u32, place));
            out.iter_mut().zip(numbers).for_each(|(out, id)| *out = id);
            return;
        }
        let Some((last, before)) = self.pairs.split_last() else {
            let numbers = groups.map(|group| group as u32);
            out.iter_mut().zip(numbers).for_each(|(out, id)| *out = id);
            return;
        };
        let out = out.iter_mut().zip(last.pairs(groups));
        if place == self.pairs.len() {
            out.for_each(|(out, (_, right))| *out = *right);
            return;
        }
        // Groups that follow each other mostly differ in the last key alone.
        let mut known = None;
        for (out, (left, _)) in out {
            *out = match known {
                Some((id, number)) if id == *left => number,
                _ => self.number_of(*left, place, before.len()),
            };
            known = Some((*left, *out));
        }
    }

    /// The number of the value that the key in a place has in a pair of the last of so many steps.
    pub(super) fn number_of(&self, mut id: u32, place: usize, steps: usize) -> u32 {
        // From the last step backwards. The right side of step s is the key in place s + 1.
        for step in (0..steps).rev() {
            let (left, right) = self.pairs[step].pair(id);
            if place == step + 1 {
                return right;
            }
            id = left;
        }
        id
    }

    /// The value of a key that has this number.
    pub(super) fn key_value(&self, number: u32, key: usize) -> KeyValue<'_> {
        let place = self.places[key];
        match &self.wide {
            Some(wide) if wide.is_direct(place) => wide.value(number, place),
            _ => self.keys[place].values.value(number),
        }
    }

    /// The number of numbers that the values of a key have.
    pub(super) fn key_values(&self, key: usize) -> usize {
        let place = self.places[key];
        match &self.wide {
            Some(wide) if wide.is_direct(place) => wide.table.len(),
            _ => self.keys[place].values.len(),
        }
    }

    /// Whether a zone gives the ids of a key's rows, so that the key's column is not read.
    pub(super) fn is_answered_by_zone(&self, key: usize, frame: &Frame<'_>) -> bool {
        self.keys[self.places[key]]
            .reader
            .id_by_zone(frame)
            .is_some()
    }

    /// Whether a key accepts stretches of equal values instead of values.
    pub(super) fn accepts_repeats(&self, key: usize) -> bool {
        let place = self.places[key];
        let is_word = |wide: &WideGroups| wide.is_direct(place);
        !self.wide.as_deref().is_some_and(is_word) && self.keys[place].reader.accepts_repeats()
    }

    /// Ends a vector, whose groups are not needed any more. The next vector may need other parts of
    /// a column.
    #[inline]
    pub(super) fn end_vector(&mut self) {
        if std::mem::take(&mut self.had_each) {
            self.widen_if_many();
        }
    }

    /// The groups of the selected rows.
    pub(super) fn assign(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<Assigned<'_>> {
        if let Some(wide) = &mut self.wide {
            wide.assign(&mut self.keys, frame, selection, &mut self.ids)?;
            return Ok(Assigned {
                grouping: Grouping::Each(&self.ids[..]),
                groups: wide.table.len(),
            });
        }
        let Some((first, rest)) = self.keys.split_first_mut() else {
            return Ok(Assigned {
                grouping: Grouping::One(0),
                groups: 1,
            });
        };
        if !rest.is_empty() {
            return self.assign_pairs(frame, selection);
        }
        let grouping = match first.assign(frame, selection)? {
            Ids::One(id) => Grouping::One(id),
            // The ids are borrowed, but the number of groups is still needed.
            Ids::Stretches(stretches) => Grouping::Stretches(Stretches {
                starts: unbound(stretches.starts),
                groups: unbound(stretches.groups),
                are_short: stretches.are_short,
            }),
            Ids::Each(ids) => Grouping::Each(unbound(ids)),
        };
        self.had_each = matches!(grouping, Grouping::Each(_));
        Ok(Assigned {
            grouping,
            groups: first.values.len(),
        })
    }

    /// The groups of the selected rows by two keys or more.
    #[inline]
    fn assign_pairs(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<Assigned<'_>> {
        let (ids, others) = (&mut self.ids, &mut self.others);
        let (list, combined) = (&mut self.stretches, &mut self.combined);
        let whole = [0, frame.rows as u32];
        let mut has_stretches = true;
        let mut groups = 0;
        let mut keys = self.keys.iter_mut();
        if let Some(first) = keys.next() {
            match first.assign(frame, selection)? {
                Ids::One(id) => list.copy(Stretches::one(&whole, &[id])),
                Ids::Stretches(stretches) => list.copy(stretches),
                each => {
                    has_stretches = false;
                    spread(&each, selection, ids);
                }
            }
        }
        for (key, pairs) in keys.zip(&mut self.pairs) {
            let right = key.assign(frame, selection)?;
            let stretches = match &right {
                Ids::One(id) => Some(Stretches::one(&whole, std::slice::from_ref(id))),
                Ids::Stretches(stretches) => Some(*stretches),
                Ids::Each(_) => None,
            };
            if let Some(stretches) = stretches
                && has_stretches
            {
                let pair = |left, right| pairs.id(left, right);
                combined.combine(list.stretches(), stretches, selection, pair);
                std::mem::swap(list, combined);
            } else {
                if has_stretches {
                    list.stretches().spread(&mut ids[..]);
                    has_stretches = false;
                }
                spread(&right, selection, others);
                pair_rows(pairs, ids, others, selection);
            }
            groups = pairs.len();
        }
        self.had_each = !has_stretches;
        let grouping = if has_stretches {
            list.stretches().grouping()
        } else {
            Grouping::Each(&**ids)
        };
        Ok(Assigned { grouping, groups })
    }
}

/// Replaces the ids of the selected rows by those of their pairs with the other ids.
#[inline]
fn pair_rows(
    pairs: &mut Pairs,
    ids: &mut [u32; VECTOR_ROWS],
    others: &[u32; VECTOR_ROWS],
    selection: &Selection,
) {
    if !pairs.is_hashed() {
        // A cell is found faster than a branch that is guessed wrong.
        selection.for_each(|row| ids[row] = pairs.id(ids[row], others[row]));
        return;
    }
    let mut last: Option<((u32, u32), u32)> = None;
    selection.for_each(|row| {
        let wanted = (ids[row], others[row]);
        let id = match last {
            Some((before, id)) if before == wanted => id,
            _ => pairs.id(wanted.0, wanted.1),
        };
        last = Some((wanted, id));
        ids[row] = id;
    });
}

/// Lengthens a borrow of a key's buffers, which stay where they are until the next vector.
fn unbound<'a, T>(slice: &[T]) -> &'a [T] {
    // SAFETY: the buffers are boxed or vectors that nobody touches before the next call of `assign`, which needs the
    // groups mutably and so ends every use of what it returned before.
    unsafe { std::slice::from_raw_parts(slice.as_ptr(), slice.len()) }
}
