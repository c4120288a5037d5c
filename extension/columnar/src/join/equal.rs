//! Equality joins: which rows of a small side have the keys of each row of a vector.
//!
//! ```text
//! small rows  ── push ──► id of the key ──► first row of the id ──► next row ──► …
//! left vector ── find ──► id of the key, never a new one ──► the first row of each left row, then the next, …
//! ```
//! The small side is taken in first, row by row or by vectors. A left key that it does not have gets no id, so the
//! memory follows the small side alone. A NULL equals nothing.
//!
//! Integers that lie close together are looked up in an array instead of a hash table (`Dense`). A [`KeySet`] tells
//! what zone maps rule out.

use super::chains::Chains;
use super::equal_key::EqualKey;
pub use super::equal_key::SmallKey;
use super::found::{Found, NO_ROW};
use super::key_set::KeySet;
use super::many_keys::{KEYS_MIN, ManyKeys};
use crate::aggregate::key::{Key, KeyReader, spread};
use crate::aggregate::key_values::UNKNOWN;
use crate::aggregate::pairs::Pairs;
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::number::NumberType;
use crate::vector::selection::Selection;
use crate::vector::value::Value;
use crate::with_number;

/// An array from integers to the first rows that have them.
struct Dense {
    value: Value,
    minimum: i64,
    first: Vec<u32>,
}

/// A [`Dense`] array may have this many elements for each different integer.
const DENSE_FACTOR: usize = 8;
/// A [`Dense`] array may have this many elements, however few integers there are.
const DENSE_MIN: usize = 4_096;

/// An equality join under execution.
pub struct EqualJoin {
    keys: Vec<EqualKey>,
    /// How the keys are read from vectors of the small side, where its rows come by these.
    small: Vec<KeyReader>,
    pairs: Vec<Pairs>,
    rows: Chains,
    dense: Option<Dense>,
    /// All keys, if they are many; then there are no pairs.
    many: Option<Box<ManyKeys>>,
    found: Found,
    ids: Box<[u32; VECTOR_ROWS]>,
}

impl EqualJoin {
    /// A small side without rows. `keys` are those of the left side: numbers, columns of text and of 16 bytes, one at
    /// least.
    pub fn new(keys: Vec<Key>) -> EqualJoin {
        let pairs = keys.len().saturating_sub(1);
        EqualJoin {
            keys: keys.into_iter().map(EqualKey::new).collect(),
            small: Vec::new(),
            pairs: (0..pairs).map(|_| Pairs::default()).collect(),
            rows: Chains::default(),
            dense: None,
            many: None,
            found: Found::default(),
            ids: Box::new([UNKNOWN; VECTOR_ROWS]),
        }
    }

    /// Takes in the next row of the small side, which has a value for each key; gives its number.
    ///
    /// # Panics
    /// If the values are fewer than the keys.
    pub fn push(&mut self, row: &[SmallKey<'_>]) -> u32 {
        let number = match self.id(row) {
            Some(id) => self.rows.push_of(id),
            None => self.rows.push(),
        };
        self.widen_if_many();
        number
    }

    /// Takes in a small row only if no earlier one has its keys. That is enough for SEMI and ANTI joins.
    ///
    /// # Panics
    /// If the values are fewer than the keys.
    pub fn push_key(&mut self, row: &[SmallKey<'_>]) {
        if let Some(id) = self.id(row)
            && self.rows.is_new(id)
        {
            self.rows.push_of(id);
            self.widen_if_many();
        }
    }

    /// Says how the keys are read from vectors of the small side. Numbers are as wide as those of
    /// the left keys, or both are integers.
    pub fn take_vectors(&mut self, keys: Vec<Key>) {
        let readers = keys.into_iter();
        self.small = readers.map(|key| KeyReader::new(key).cutting()).collect();
    }

    /// Takes in the selected rows of a vector of the small side, none of which has NULL as a key: all of them, or only
    /// those [with new keys](Self::push_key).
    ///
    /// # Errors
    /// The first error that evaluating a key of a selected row raises.
    pub fn push_vector(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
        keys_alone: bool,
    ) -> Evaluation<()> {
        match &mut self.many {
            Some(many) => {
                let (small, ids) = (&mut self.small, &mut self.ids);
                many.push(&mut self.keys, small, frame, selection, ids)?;
            }
            None => self.pair_vector(frame, selection)?,
        }
        let (rows, ids) = (&mut self.rows, &self.ids);
        rows.next.reserve(selection.count());
        selection.for_each(|row| {
            if !keys_alone || rows.is_new(ids[row]) {
                rows.push_of(ids[row]);
            }
        });
        self.widen_if_many();
        Ok(())
    }

    /// Writes the ids of the keys of the selected rows, which are a pair of ids at a time.
    fn pair_vector(&mut self, frame: &Frame<'_>, selection: &Selection) -> Evaluation<()> {
        for (index, (key, reader)) in self.keys.iter_mut().zip(&mut self.small).enumerate() {
            let own = reader.assign(&mut key.values, frame, selection)?;
            let (ids, others) = (&mut self.ids, self.found.rows_mut());
            let Some(step) = index.checked_sub(1) else {
                spread(&own, selection, ids);
                continue;
            };
            spread(&own, selection, others);
            let pairs = &mut self.pairs[step];
            selection.for_each(|row| ids[row] = pairs.id(ids[row], others[row]));
        }
        Ok(())
    }

    /// The id of a row's keys; none if one of them is NULL.
    fn id(&mut self, row: &[SmallKey<'_>]) -> Option<u32> {
        assert_eq!(row.len(), self.keys.len(), "a value for each key");
        if row.iter().any(|key| matches!(key, SmallKey::Null)) {
            return None;
        }
        if let Some(many) = &mut self.many {
            let keys = self.keys.iter_mut().zip(row);
            return Some(many.id(keys.map(|(key, value)| {
                // Numbers are their own words, other values have ids.
                key.word(value).unwrap_or_else(|| key.id(value).into())
            })));
        }
        let mut id = UNKNOWN;
        for (index, (key, value)) in self.keys.iter_mut().zip(row).enumerate() {
            let own = key.id(value);
            id = match index {
                0 => own,
                _ => self.pairs[index - 1].id(id, own),
            };
        }
        Some(id)
    }

    /// Forgets all rows of the small side.
    pub fn clear(&mut self) {
        if let Some(dense) = self.dense.take()
            && let Some(value) = self.keys[0].reader.integer_mut()
        {
            *value = dense.value;
        }
        self.keys.iter_mut().for_each(EqualKey::forget);
        self.small.iter_mut().for_each(KeyReader::forget);
        self.pairs = self.keys.iter().skip(1).map(|_| Pairs::default()).collect();
        self.rows = Chains::default();
        self.many = None;
    }

    /// There are no more rows of the small side. What makes looking up keys faster may take `room` bytes of memory.
    pub fn finish(&mut self, room: usize) {
        for key in &mut self.keys {
            key.values.close();
        }
        self.make_dense();
        if self.dense.is_none()
            && let Some(many) = &mut self.many
        {
            many.finish(room);
        }
    }

    /// Moves the keys to a table of their own if they are many.
    #[inline]
    fn widen_if_many(&mut self) {
        if self.many.is_none() && self.rows.ends.len() >= KEYS_MIN {
            self.widen();
        }
    }

    #[cold]
    fn widen(&mut self) {
        if !ManyKeys::may_take(&self.keys) {
            return;
        }
        let pairs = std::mem::take(&mut self.pairs);
        let id_of = |mut id: u32, key: usize| {
            for (step, pairs) in pairs.iter().enumerate().rev() {
                let (before, own) = pairs.pair(id);
                if key == step + 1 {
                    return own;
                }
                id = before;
            }
            id
        };
        let many = ManyKeys::take(&mut self.keys, self.rows.ends.len(), id_of);
        for (place, reader) in self.small.iter_mut().enumerate() {
            if many.is_direct(place) {
                reader.forget();
            }
        }
        self.many = Some(Box::new(many));
    }

    /// Makes an array of the integers of the only key, if they lie close together.
    fn make_dense(&mut self) {
        let [key] = &mut self.keys[..] else {
            return;
        };
        let Some(value) = key.reader.integer_mut() else {
            return;
        };
        let integers: Vec<(i64, u32)> = match &self.many {
            Some(many) => many.words(0).map(|(word, id)| (word as i64, id)).collect(),
            None => key.values.integers().unwrap_or_default(),
        };
        let bounds = integers.iter().map(|(integer, _)| *integer);
        let Some((minimum, maximum)) = bounds.clone().min().zip(bounds.max()) else {
            return;
        };
        let most = (integers.len() * DENSE_FACTOR).max(DENSE_MIN);
        let Some(length) = maximum
            .checked_sub(minimum)
            .filter(|span| *span < most as i64)
        else {
            return;
        };
        let mut first = vec![NO_ROW; length as usize + 1];
        for (integer, id) in integers {
            first[(integer - minimum) as usize] = self.rows.ends[id as usize].0;
        }
        let null = Value::Scalar(value.number(), 0);
        let value = std::mem::replace(value, null);
        self.dense = Some(Dense {
            value,
            minimum,
            first,
        });
    }

    /// How many rows the small side has.
    pub fn rows(&self) -> usize {
        self.rows.next.len()
    }

    /// The different values of a key, unless they are texts. Asked after [`Self::finish`].
    pub fn key_set(&self, key: usize) -> Option<KeySet> {
        let EqualKey { reader, values, .. } = &self.keys[key];
        let many = self.many.as_ref().filter(|many| many.is_direct(key));
        if let Some(values) = values.all_bytes16() {
            return Some(KeySet::of_bytes16(values));
        }
        let numbers: Vec<i64> = match many {
            Some(many) => many.words(key).map(|(word, _)| word as i64).collect(),
            None => values
                .integers()?
                .into_iter()
                .map(|(bits, _)| bits)
                .collect(),
        };
        let numbers = numbers.into_iter();
        Some(match reader.number() {
            // The one NaN has the bits of 64.
            Some(NumberType::F32) => KeySet::of_floats(numbers.map(|bits| {
                u32::try_from(bits).map_or(f64::NAN, |bits| f32::from_bits(bits).into())
            })),
            Some(NumberType::F64) => {
                KeySet::of_floats(numbers.map(|bits| f64::from_bits(bits as u64)))
            }
            _ => KeySet::of_integers(numbers),
        })
    }

    /// The type of the numbers that a left key has; none if it has none.
    pub fn number(&self, key: usize) -> Option<NumberType> {
        self.keys[key].reader.number()
    }

    /// Bytes of the small side's texts, each once.
    pub fn text_bytes(&self) -> usize {
        self.keys.iter().map(|key| key.values.item_bytes()).sum()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let keys = self.keys.iter();
        let keys = keys.map(|key| key.reader.bytes() + key.values.bytes());
        let dense = self.dense.as_ref().map_or(0, |dense| dense.first.len() * 4);
        keys.sum::<usize>()
            + self.pairs.iter().map(Pairs::bytes).sum::<usize>()
            + self.rows.ends.capacity() * 8
            + self.rows.next.capacity() * 4
            + self.many.as_ref().map_or(0, |many| many.bytes())
            + dense
    }

    /// Finds the first row of each selected left row; left rows that find none leave the selection.
    ///
    /// # Errors
    /// The first error that evaluating a key of a selected row raises.
    pub fn find(&mut self, frame: &Frame<'_>, selection: &mut Selection) -> Evaluation<()> {
        if let Some(dense) = &mut self.dense {
            let number = dense.value.number();
            let operand = dense.value.evaluate(frame, selection)?;
            let first = |integer: i64| {
                let place = integer.wrapping_sub(dense.minimum) as u64;
                dense.first.get(place as usize).copied().unwrap_or(NO_ROW)
            };
            let found = &mut self.found;
            with_number!(number, T => {
                found.find_numbers::<T>(&operand, first, selection, frame.rows);
            });
            return Ok(());
        }
        if let Some(many) = &mut self.many {
            let (keys, found, ends) = (&mut self.keys, &mut self.found, &self.rows.ends);
            return many.find(keys, frame, selection, found, |id| ends[id as usize].0);
        }
        if let [key] = &mut self.keys[..] {
            let ids = key.reader.assign(&mut key.values, frame, selection)?;
            let ends = &self.rows.ends;
            let first = |id: u32| ends.get(id as usize).map_or(NO_ROW, |(first, _)| *first);
            self.found.find_ids(&ids, first, selection, frame.rows);
            return Ok(());
        }
        for (index, key) in self.keys.iter_mut().enumerate() {
            let own = key.reader.assign(&mut key.values, frame, selection)?;
            let (found, ids) = (self.found.rows_mut(), &mut self.ids);
            spread(&own, selection, found);
            let all = *selection;
            all.for_each(|row| {
                let own = found[row];
                let id = match index {
                    _ if own == UNKNOWN => UNKNOWN,
                    0 => own,
                    _ => self.pairs[index - 1].known(ids[row], own),
                };
                ids[row] = id;
                if id == UNKNOWN {
                    selection.remove(row);
                }
            });
        }
        let (found, ids) = (self.found.rows_mut(), &self.ids);
        selection.for_each(|row| found[row] = self.rows.ends[ids[row] as usize].0);
        Ok(())
    }

    /// Goes on to the next row of each selected left row; left rows that have no more leave the selection.
    pub fn find_next(&mut self, selection: &mut Selection) {
        if !self.rows.has_several {
            *selection = Selection::NONE;
            return;
        }
        let all = *selection;
        let found = self.found.rows_mut();
        all.for_each(|row| {
            let next = self.rows.next[found[row] as usize];
            found[row] = next;
            if next == NO_ROW {
                selection.remove(row);
            }
        });
    }

    /// Goes on to the next row that is not `done` for each selected left row that is at such a row; left rows that have
    /// no more leave the selection. Rows that are done have to stay so until [`Self::clear`].
    ///
    /// # Panics
    /// If there are fewer marks than small rows.
    pub fn pass_over(&mut self, done: &[bool], selection: &mut Selection) {
        let all = *selection;
        let found = self.found.rows_mut();
        all.for_each(|row| {
            let open = self.rows.first_open(found[row], done);
            found[row] = open;
            if open == NO_ROW {
                selection.remove(row);
            }
        });
    }

    /// Marks all rows whose keys are those of a marked row that was the first of its keys.
    ///
    /// # Panics
    /// If there are fewer marks than small rows.
    pub fn spread_to_equal_keys(&self, marks: &mut [bool]) {
        self.rows.spread(marks);
    }

    /// Marks left rows without a match: each is joined the number after that of the last small row. That number stands
    /// for a small row of NULLs.
    pub fn find_nothing(&mut self, rows: &Selection) {
        let after_last = self.rows.next.len() as u32;
        if !rows.is_empty() {
            let found = self.found.rows_mut();
            rows.for_each(|row| found[row] = after_last);
        }
    }

    /// Gives the first rows of the vector these small rows, which no left row has found: there is a row of NULLs for
    /// each.
    ///
    /// # Panics
    /// If they are more than a vector has rows.
    pub fn give(&mut self, small_rows: impl Iterator<Item = u32>) {
        let found = self.found.rows_mut();
        for (row, small_row) in small_rows.enumerate() {
            found[row] = small_row;
        }
    }

    /// What the left rows have found.
    pub fn found(&self) -> &Found {
        &self.found
    }
}
