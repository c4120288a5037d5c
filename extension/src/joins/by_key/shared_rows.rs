//! Rows of the child's own small sides. Many rows that the child returns share one of them.
//!
//! Each such row gets a *place* when it is first found. Its columns are evaluated and copied
//! once, at that time.

use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::selection::Selection;
use pgrx::pg_sys;

use super::small_column::Column;
use super::small_expression::SmallExpression;
use super::stage::HashStage;
use crate::pg::exec::memory::Memory;

/// Marks a row without a place, and a row of the vector that has not been looked up.
const NO_PLACE: u32 = u32::MAX;

/// The rows of one small side of the child that have been found so far.
pub struct SharedRows {
    /// The index of the small side in the child.
    pub dimension: usize,
    columns: Vec<SharedColumn>,
    /// The place of each row of the child's batch.
    places: Vec<u32>,
    /// The number of places.
    count: u32,
    /// The place for each row of the current vector that has been looked up.
    found: Box<[u32; VECTOR_ROWS]>,
    /// The place for each kept row.
    kept: Vec<u32>,
    /// Memory that values are copied to.
    memory: Option<Memory>,
    bytes: usize,
}

/// A column of shared rows.
struct SharedColumn {
    expression: SmallExpression,
    column: Column,
    /// Values by place; `None` is NULL.
    values: Vec<Option<pg_sys::Datum>>,
}

impl SharedRows {
    /// Shared rows without any columns.
    pub fn of(dimension: usize) -> SharedRows {
        SharedRows {
            dimension,
            columns: Vec::new(),
            places: Vec::new(),
            count: 0,
            found: Box::new([NO_PLACE; VECTOR_ROWS]),
            kept: Vec::new(),
            memory: None,
            bytes: 0,
        }
    }

    /// Adds a column of an SQL type; returns its index.
    pub fn add(&mut self, expression: SmallExpression, type_of: pg_sys::Oid) -> usize {
        self.columns.push(SharedColumn {
            expression,
            column: Column::of(type_of),
            values: Vec::new(),
        });
        self.columns.len() - 1
    }

    /// Drops all values and kept rows. From now on values are copied to `memory`, which is
    /// empty.
    pub fn begin(&mut self, memory: Memory) {
        self.memory = Some(memory);
        self.forget_rows();
        self.count = 0;
        self.kept.clear();
        self.bytes = 0;
        for column in &mut self.columns {
            column.values.clear();
        }
    }

    /// Starts a new batch of the child, which has other rows. Existing places keep their values.
    pub fn forget_rows(&mut self) {
        self.places.clear();
    }

    /// Looks up the places of the small rows that the selected rows of the child have found.
    pub fn look_up(&mut self, stage: &HashStage, selection: &Selection) {
        let found = stage.found_of(self.dimension);
        // Consecutive rows mostly share a small row.
        let mut last = (u32::MAX, NO_PLACE);
        selection.for_each(|row| {
            if found[row] != last.0 {
                let index = found[row] as usize;
                if index >= self.places.len() {
                    self.places.resize(index + 1, NO_PLACE);
                }
                if self.places[index] == NO_PLACE {
                    self.places[index] = self.evaluate(stage, found[row]);
                }
                last = (found[row], self.places[index]);
            }
            self.found[row] = last.1;
        });
    }

    /// Gives a small row a new place, and evaluates its columns.
    fn evaluate(&mut self, stage: &HashStage, small_row: u32) -> u32 {
        let small = stage.small_of(self.dimension);
        for shared in &mut self.columns {
            let layout = shared.column.layout;
            let value = shared.expression.value(small_row, small);
            shared.values.push(value.map(|value| {
                self.bytes += layout.copied_bytes(value);
                self.memory
                    .map_or(value, |memory| memory.copy(value, layout))
            }));
            shared.expression.reset();
            self.bytes += size_of::<Option<pg_sys::Datum>>();
        }
        self.count += 1;
        self.count - 1
    }

    /// The place for a row of the current vector.
    pub fn place(&self, row: usize) -> u32 {
        self.found[row]
    }

    /// The places for all rows of the current vector.
    pub fn places(&self) -> &[u32; VECTOR_ROWS] {
        &self.found
    }

    /// Keeps the places of the selected rows of the vector.
    pub fn keep_all(&mut self, selection: &Selection) {
        let before = self.kept.len();
        selection.for_each(|row| self.kept.push(self.found[row]));
        self.bytes += (self.kept.len() - before) * size_of::<u32>();
    }

    /// Keeps the place of one row of the vector.
    pub fn keep(&mut self, row: usize) {
        self.kept.push(self.found[row]);
        self.bytes += size_of::<u32>();
    }

    /// The number of kept rows.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// The value of a column at a place.
    pub fn value(&self, column: usize, place: u32) -> Option<pg_sys::Datum> {
        self.columns[column].values[place as usize]
    }

    /// The place of a kept row; `None` past the last one.
    pub fn place_of_kept(&self, row: u32) -> Option<u32> {
        self.kept.get(row as usize).copied()
    }

    /// The value of a column in a kept row; NULL past the last one.
    pub fn value_of_kept(&self, column: usize, row: u32) -> Option<pg_sys::Datum> {
        self.value(column, self.place_of_kept(row)?)
    }

    /// Bytes of memory that values and kept rows take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
