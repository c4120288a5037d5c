//! Rows fetched by their numbers, with the attributes that the plan needs.
//!
//! A node that finds rows in one pass over a table, such as the first rows of an order, keeps their numbers. After the
//! pass it fetches the rows, segment by segment, and returns them in the order that the query wants.

use std::ops::Range;

use lanes_columnar::limits::{VECTOR_ROWS, segment_of};
use pgrx::pg_sys;

use super::vector_source::VectorSource;
use crate::pg::exec::memory::{Memory, ValueLayout};
use crate::pg::exec::slot::SlotWriter;
use crate::pg::exec::table::QueryTable;
use crate::pg::ports;
use crate::table::tid;

/// How many rows are fetched at a time where the rows are not needed all at once.
pub const ROWS_FETCHED: usize = 4_096;

/// Up to this many rows of a vector are read singly; for more, the vector is decoded.
const SINGLE_ROWS_MAX: usize = 8;

/// An attribute that is fetched.
#[derive(Clone, Copy)]
struct Attribute {
    index: usize,
    layout: ValueLayout,
}

/// Fetched rows.
pub struct KeptRows {
    attributes: Vec<Attribute>,
    table: pg_sys::Oid,
    /// The rows' numbers, in the order in which the rows are returned.
    rows: Vec<u64>,
    /// The values and whether they are NULL, row after row.
    values: Vec<(pg_sys::Datum, bool)>,
    next: usize,
    /// Contains the values that are passed by reference.
    memory: Memory,
}

impl KeptRows {
    /// No rows yet. `parent` outlives the rows.
    pub fn new(table: QueryTable, attributes: &[usize], parent: Memory) -> KeptRows {
        let attribute = |&index: &usize| Attribute {
            index,
            layout: table.layout(index),
        };
        KeptRows {
            attributes: attributes.iter().map(attribute).collect(),
            table: table.oid(),
            rows: Vec::new(),
            values: Vec::new(),
            next: 0,
            memory: parent.child(c"LanesKeptRows"),
        }
    }

    /// Bytes of a row, without the values that are passed by reference.
    pub fn row_bytes(&self) -> usize {
        size_of::<u64>() + self.attributes.len() * size_of::<(pg_sys::Datum, bool)>()
    }

    /// Bytes of all rows.
    pub fn bytes(&self) -> usize {
        self.memory.allocated_bytes() + self.rows.capacity() * self.row_bytes()
    }

    /// Fetches visible rows, which are returned in this order. The rows fetched before are gone.
    pub fn fetch(&mut self, source: &mut VectorSource, rows: Vec<u64>) {
        source.want_only(self.attributes.iter().map(|a| a.index).collect());
        let mut by_number: Vec<usize> = (0..rows.len()).collect();
        by_number.sort_unstable_by_key(|&index| rows[index]);
        let values = rows.len() * self.attributes.len();
        self.values.clear();
        self.values.resize(values, (pg_sys::Datum::null(), true));
        self.next = 0;
        self.rows = rows;
        self.memory.reset();
        let segment = |index: usize| segment_of(self.rows[index]);
        let segments: Vec<Range<usize>> = stretches(&by_number, segment);
        for stretch in segments {
            ports::CHECK_FOR_INTERRUPTS();
            self.fetch_segment(source, &by_number[stretch]);
        }
    }

    /// Fetches rows of one segment, which are given by their indexes in ascending order of their numbers.
    fn fetch_segment(&mut self, source: &mut VectorSource, of_segment: &[usize]) {
        let (Some(first), Some(last)) = (of_segment.first(), of_segment.last()) else {
            return;
        };
        let Some(first_row) = source.open_rows(self.rows[*first], self.rows[*last] + 1) else {
            return;
        };
        let place = |rows: &[u64], index: usize| (rows[index] - first_row) as usize;
        let vectors = stretches(of_segment, |index| place(&self.rows, index) / VECTOR_ROWS);
        for stretch in vectors {
            let of_vector = &of_segment[stretch];
            let is_single = of_vector.len() <= SINGLE_ROWS_MAX;
            if let (Some(&first), Some(&last), false) =
                (of_vector.first(), of_vector.last(), is_single)
            {
                let places = place(&self.rows, first)..place(&self.rows, last) + 1;
                source.fill_places(places, None);
            }
            for &index in of_vector {
                self.fetch_row(source, index, place(&self.rows, index), is_single);
            }
        }
    }

    /// Fetches the row at a place of the window that is open. A single row's lanes may not be filled yet.
    fn fetch_row(
        &mut self,
        source: &mut VectorSource,
        index: usize,
        place: usize,
        is_single: bool,
    ) {
        let width = self.attributes.len();
        for (at, attribute) in self.attributes.iter().enumerate() {
            let target = &mut self.values[index * width + at];
            if is_single {
                let memory = self.memory;
                if let Some(value) = memory.enter(|| source.point(attribute.index, place)) {
                    *target = value;
                    continue;
                }
                source.fill_places(place..place + 1, Some(&[attribute.index]));
            }
            let (value, is_null) = source.outlet().value(place, attribute.index);
            if !is_null {
                *target = (self.memory.copy(value, attribute.layout), false);
            }
        }
    }

    /// Writes the next row; false at the end. The values live until the next fetch.
    pub fn write_next(&mut self, row: &mut SlotWriter<'_>) -> bool {
        let table = self.table;
        let Some((number, values)) = self.next_row() else {
            return false;
        };
        for (attribute, value, is_null) in values {
            row.set_pair(attribute, (value, is_null));
        }
        row.set_row(tid::from_row(number), table);
        true
    }

    /// The number of the next row, and its attributes with their values, which live until the next fetch.
    pub fn next_row(
        &mut self,
    ) -> Option<(u64, impl Iterator<Item = (usize, pg_sys::Datum, bool)>)> {
        let row = *self.rows.get(self.next)?;
        let width = self.attributes.len();
        let values = &self.values[self.next * width..][..width];
        self.next += 1;
        let attributes = self.attributes.iter().zip(values);
        let values =
            attributes.map(|(attribute, (value, is_null))| (attribute.index, *value, *is_null));
        Some((row, values))
    }

    /// Drops the rows.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.next = 0;
    }

    /// Frees the memory. No slot contains a row.
    pub fn free(self) {
        self.memory.delete();
    }
}

/// The stretches of consecutive elements that have the same `of`.
fn stretches<T: PartialEq>(elements: &[usize], of: impl Fn(usize) -> T) -> Vec<Range<usize>> {
    let mut first = 0;
    let stretch = |same: &[usize]| {
        let stretch = first..first + same.len();
        first = stretch.end;
        stretch
    };
    elements
        .chunk_by(|a, b| of(*a) == of(*b))
        .map(stretch)
        .collect()
}
