//! The right side in memory: rows by key, then by time, then by arrival.

use super::room::Taken;
use crate::vector::number::{Number, NumberType};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;
use crate::vector::{Evaluation, EvaluationError};
use crate::with_number;

/// A column of the right side, its numbers in 64 bits (see [`crate::vector::number::Scalar`]).
pub struct SeriesColumn {
    /// The numbers' type.
    pub number: NumberType,
    /// A number for each row; the numbers of NULLs have no meaning.
    pub values: Vec<u64>,
    /// Which rows are not NULL; `None` if no row is NULL.
    pub valid: Option<Vec<bool>>,
    /// The rows that have an error instead, which is raised only for left rows that find them;
    /// `None` if no row has one.
    pub failed: Option<Vec<Option<EvaluationError>>>,
}

impl SeriesColumn {
    /// No row yet.
    pub fn new(number: NumberType) -> SeriesColumn {
        SeriesColumn {
            number,
            values: Vec::new(),
            valid: None,
            failed: None,
        }
    }

    /// Takes in the selected rows of a vector of `rows` rows, the operand's.
    pub fn push(&mut self, operand: Operand, selection: &Selection, rows: usize) {
        let before = self.values.len();
        with_number!(self.number, T => {
            append::<T, _>(&mut self.values, operand, selection, rows, |bits| bits);
        });
        let valid = operand.valid(selection);
        if valid != *selection && self.valid.is_none() {
            let mut all = Vec::with_capacity(self.values.capacity());
            all.resize(before, true);
            self.valid = Some(all);
        }
        if let Some(all) = &mut self.valid {
            selection.for_each(|row| all.push(valid.contains(row)));
        }
        if let Some(all) = &mut self.failed {
            all.resize(self.values.len(), None);
        }
    }

    fn bytes(&self) -> usize {
        let failed = self.failed.as_ref().map_or(0, Vec::capacity);
        self.values.capacity() * 8
            + self.valid.as_ref().map_or(0, Vec::capacity)
            + failed * size_of::<Option<EvaluationError>>()
    }
}

/// Gathers rows in the order of their arrival.
pub struct SeriesBuilder {
    ids: Vec<u32>,
    times: Vec<i64>,
    columns: Vec<SeriesColumn>,
    /// Bytes that rows and keys may take.
    limit: usize,
}

/// Bytes that the longest list takes for a row, beside errors: while a list grows, the shorter one
/// lives on.
const LIST_BYTES: usize = 8;
/// Bytes that it takes to put a row in order: another list of times, and of one column at a time.
const ORDERING_BYTES: usize = 16;
/// The bytes of a key: the start of its rows, twice, whether they are sorted, and two cursors of
/// the searches for them.
const KEY_BYTES: usize = 4 + 4 + 1 + 2 * 12;

/// Rows by key, then by time, then by arrival.
pub struct Series {
    /// The start of the rows of each key, and finally the end of the rows of the last key.
    starts: Vec<u32>,
    /// Their times.
    pub times: Vec<i64>,
    /// Their columns.
    pub columns: Vec<SeriesColumn>,
}

impl SeriesBuilder {
    /// A builder without rows, for columns of these types and at most so many bytes.
    pub fn new(columns: &[NumberType], limit: usize) -> SeriesBuilder {
        SeriesBuilder {
            limit,
            ids: Vec::new(),
            times: Vec::new(),
            columns: columns
                .iter()
                .map(|number| SeriesColumn::new(*number))
                .collect(),
        }
    }

    /// Bytes that a row takes until rows are in order.
    fn row_bytes(&self) -> usize {
        let column = |column: &SeriesColumn| {
            let failed = column.failed.as_ref();
            8 + 1 + failed.map_or(0, |_| size_of::<Option<EvaluationError>>())
        };
        4 + 8 + self.columns.iter().map(column).sum::<usize>() + ORDERING_BYTES
    }

    /// Reserves memory for another `rows` rows of `keys` keys, which take `key_bytes` elsewhere.
    ///
    /// # Errors
    /// If the memory would exceed the limit. Nothing is reserved then.
    pub fn make_room(&mut self, rows: usize, keys: usize, key_bytes: usize) -> Evaluation<()> {
        let taken = Taken {
            rows: self.ids.len(),
            room: self.ids.capacity(),
            row_bytes: self.row_bytes(),
            list_bytes: LIST_BYTES,
            beside: key_bytes + keys * KEY_BYTES,
        };
        let room = taken.room_for(taken.rows + rows, self.limit);
        let room = room.ok_or(EvaluationError::TooMuchMemory)?;
        if room > taken.room {
            let more = room - taken.rows;
            self.ids.reserve_exact(more);
            self.times.reserve_exact(more);
            for column in &mut self.columns {
                column.values.reserve_exact(more);
                if let Some(valid) = &mut column.valid {
                    valid.reserve_exact(more);
                }
                if let Some(failed) = &mut column.failed {
                    failed.reserve_exact(more);
                }
            }
        }
        Ok(())
    }

    /// Adds the selected rows of a vector of `rows` rows, for which memory is reserved. None of
    /// them has NULL as its time.
    ///
    /// # Errors
    /// If there are too many rows.
    ///
    /// # Panics
    /// If there is not one operand for each column.
    pub fn add(
        &mut self,
        ids: &[u32],
        (time_type, times): (NumberType, Operand),
        columns: &[Operand],
        selection: &Selection,
        rows: usize,
    ) -> Evaluation<()> {
        assert_eq!(columns.len(), self.columns.len());
        if selection.is_full(rows) {
            self.ids.extend_from_slice(&ids[..rows]);
        } else {
            selection.for_each(|row| self.ids.push(ids[row]));
        }
        if self.ids.len() >= u32::MAX as usize {
            return Err(EvaluationError::Argument(
                "the right side of the join has too many rows",
            ));
        }
        with_number!(time_type, T => {
            append::<T, _>(&mut self.times, times, selection, rows, |bits| bits as i64);
        });
        for (column, operand) in self.columns.iter_mut().zip(columns) {
            column.push(*operand, selection, rows);
        }
        Ok(())
    }

    /// Says which of the rows that were taken in last have an error in a column; they were
    /// selected.
    pub fn fail(
        &mut self,
        column: usize,
        failures: &[(usize, EvaluationError)],
        selection: &Selection,
    ) {
        let (rows, taken) = (self.ids.len(), selection.count());
        let all = self.columns[column].failed.get_or_insert_default();
        all.resize(rows, None);
        for (row, failure) in failures {
            let before = selection.within(0, *row).count();
            all[rows - taken + before] = Some(*failure);
        }
    }

    /// Puts the rows in order; ids are below `keys`.
    pub fn finish(self, keys: usize) -> Series {
        let mut starts = vec![0_u32; keys + 1];
        for id in &self.ids {
            starts[*id as usize + 1] += 1;
        }
        for key in 0..keys {
            starts[key + 1] += starts[key];
        }
        // From here on a place a row instead of its key.
        let mut next = starts.clone();
        let mut places = self.ids;
        let mut times = vec![0; places.len()];
        let mut unsorted = vec![false; keys];
        for (place, time) in places.iter_mut().zip(&self.times) {
            let key = *place as usize;
            let at = next[key];
            next[key] += 1;
            *place = at;
            times[at as usize] = *time;
            if at > starts[key] && times[at as usize - 1] > *time {
                unsorted[key] = true;
            }
        }
        let columns = self.columns.into_iter().map(|column| SeriesColumn {
            number: column.number,
            values: scattered(&column.values, &places),
            valid: column.valid.map(|valid| scattered(&valid, &places)),
            failed: column.failed.map(|failed| scattered(&failed, &places)),
        });
        let mut series = Series {
            starts,
            times,
            columns: columns.collect(),
        };
        for key in (0..keys).filter(|key| unsorted[*key]) {
            series.sort(key);
        }
        series
    }
}

/// Appends the selected numbers of an operand, in 64 bits.
fn append<T: Number, A: Copy>(
    all: &mut Vec<A>,
    operand: Operand,
    selection: &Selection,
    rows: usize,
    of_bits: impl Fn(u64) -> A,
) {
    if selection.is_full(rows) {
        // SAFETY: an operand has a number for each row of its vector.
        all.extend((0..rows).map(|row| of_bits(unsafe { operand.get::<T>(row) }.to_scalar().0)));
    } else {
        // SAFETY: as above.
        selection.for_each(|row| all.push(of_bits(unsafe { operand.get::<T>(row) }.to_scalar().0)));
    }
}

fn scattered<T: Copy + Default>(values: &[T], places: &[u32]) -> Vec<T> {
    let mut out = vec![T::default(); values.len()];
    for (value, place) in values.iter().zip(places) {
        out[*place as usize] = *value;
    }
    out
}

impl Series {
    /// Where the rows of a key begin and end.
    #[inline]
    pub fn range(&self, key: u32) -> std::ops::Range<u32> {
        match self.starts.get(key as usize + 1) {
            Some(end) => self.starts[key as usize]..*end,
            None => 0..0,
        }
    }

    /// The number of keys.
    pub fn keys(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let columns = self.columns.iter().map(SeriesColumn::bytes);
        self.starts.capacity() * 4 + self.times.capacity() * 8 + columns.sum::<usize>()
    }

    /// Sorts the rows of a key by time. Rows of one time keep the order of their arrival.
    fn sort(&mut self, key: usize) {
        let range = self.starts[key] as usize..self.starts[key + 1] as usize;
        let mut order: Vec<u32> = (0..range.len() as u32).collect();
        let times = &self.times[range.clone()];
        order.sort_by_key(|row| times[*row as usize]);
        reorder(&mut self.times[range.clone()], &order);
        for column in &mut self.columns {
            reorder(&mut column.values[range.clone()], &order);
            if let Some(valid) = &mut column.valid {
                reorder(&mut valid[range.clone()], &order);
            }
            if let Some(failed) = &mut column.failed {
                reorder(&mut failed[range.clone()], &order);
            }
        }
    }
}

fn reorder<T: Copy>(values: &mut [T], order: &[u32]) {
    let before = values.to_vec();
    for (value, from) in values.iter_mut().zip(order) {
        *value = before[*from as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::number::Scalar;

    /// Fills a builder with rows of one key until no more fit. Returns the bytes that it took, and
    /// the result for the rows.
    fn filled(limit: usize, key_bytes: impl Fn(usize) -> usize) -> (usize, Series) {
        let mut builder = SeriesBuilder::new(&[NumberType::F64, NumberType::I64], limit);
        let (selection, ids) = (Selection::first(100), [0; 100]);
        let columns = [Operand::Same(Scalar(7)), Operand::Null];
        let times = (NumberType::I64, Operand::Same(Scalar(1)));
        let room = |builder: &mut SeriesBuilder| {
            let key_bytes = key_bytes(builder.ids.len() + 100);
            builder.make_room(100, 1, key_bytes)
        };
        while room(&mut builder).is_ok() {
            let added = builder.add(&ids, times, &columns, &selection, 100);
            added.expect("these are few rows");
        }
        let columns = builder.columns.iter().map(SeriesColumn::bytes);
        let lists = builder.ids.capacity() * 4 + builder.times.capacity() * 8;
        (lists + columns.sum::<usize>(), builder.finish(1))
    }

    #[test]
    fn no_more_memory_is_taken_than_may_be() {
        let row_bytes = 4 + 2 * (8 + 1) + 8 + ORDERING_BYTES;
        for limit in [0, 3_000, 100_000, 1 << 20, 5_000_000] {
            for key_bytes in [0, 30, 200] {
                let (bytes, series) = filled(limit, |rows| rows * key_bytes);
                // Times, and one column at a time, are there twice while rows are put in order.
                let beside = series.len() * (ORDERING_BYTES + key_bytes);
                assert!(bytes + beside <= limit.max(1), "{bytes} of {limit}");
                assert!(series.bytes() <= limit.max(64), "{limit}");
                let most = limit / (row_bytes + key_bytes);
                assert!(series.len() * 2 + 200 >= most, "{limit}");
            }
        }
    }
}
