//! Rows that a scan found worth keeping, copied out of their lanes: only the attributes that the plan asks for.
//!
//! They are fetched by number when a pass over the table is over, segment by segment, and handed out in the order in
//! which they are wanted.

use lanes_columnar::limits::{VECTOR_ROWS, segment_of};
use pgrx::pg_sys;

use super::vector_source::VectorSource;
use crate::pg::{call_ports, ports};
use crate::table::tid;

/// Rows that are fetched at a time where all of them are not wanted at once.
pub const ROWS_FETCHED: usize = 4_096;

/// So many rows of a vector are read one by one; for more, the vector is decoded.
const SINGLE_ROWS_MAX: usize = 8;

/// An attribute that is kept.
#[derive(Clone, Copy)]
struct Attribute {
    index: usize,
    by_value: bool,
    length: i16,
}

/// Rows with their values.
pub struct KeptRows {
    attributes: Vec<Attribute>,
    table: pg_sys::Oid,
    /// Numbers, in the order in which rows are handed out.
    rows: Vec<u64>,
    /// As many as there are attributes, a row after the other.
    values: Vec<(pg_sys::Datum, bool)>,
    next: usize,
    /// Holds what is not kept by value.
    memory: pg_sys::MemoryContext,
}

impl KeptRows {
    /// No rows yet, in memory of the query's.
    ///
    /// # Safety
    /// `relation` is open; `parent` outlives the rows.
    pub unsafe fn new(
        relation: pg_sys::Relation,
        attributes: &[usize],
        parent: pg_sys::MemoryContext,
    ) -> KeptRows {
        // SAFETY: the caller's promise.
        unsafe {
            let attribute = |&index: &usize| {
                let attribute = ports::TupleDescAttr((*relation).rd_att, index);
                Attribute {
                    index,
                    by_value: attribute.attbyval,
                    length: attribute.attlen,
                }
            };
            KeptRows {
                attributes: attributes.iter().map(attribute).collect(),
                table: (*relation).rd_id,
                rows: Vec::new(),
                values: Vec::new(),
                next: 0,
                memory: pg_sys::AllocSetContextCreateInternal(
                    parent,
                    c"LanesKeptRows".as_ptr(),
                    pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
                ),
            }
        }
    }

    /// Bytes that a row takes, but for what is not kept by value.
    pub fn row_bytes(&self) -> usize {
        size_of::<u64>() + self.attributes.len() * size_of::<(pg_sys::Datum, bool)>()
    }

    /// Bytes that the rows take.
    pub fn bytes(&self) -> usize {
        // SAFETY: a live context.
        let copied = unsafe { pg_sys::MemoryContextMemAllocated(self.memory, true) };
        copied + self.rows.capacity() * self.row_bytes()
    }

    /// Fetches visible rows, to be handed out in this order, in place of those that there were.
    pub fn fetch(&mut self, source: &mut VectorSource, rows: Vec<u64>) {
        source.want_only(self.attributes.iter().map(|a| a.index).collect());
        let mut by_number: Vec<usize> = (0..rows.len()).collect();
        by_number.sort_unstable_by_key(|&index| rows[index]);
        let width = self.attributes.len();
        self.values.clear();
        self.values
            .resize(rows.len() * width, (pg_sys::Datum::null(), true));
        self.next = 0;
        // SAFETY: the context is ours; nobody looks at rows that were handed out before.
        let before = unsafe {
            pg_sys::MemoryContextReset(self.memory);
            pg_sys::MemoryContextSwitchTo(self.memory)
        };
        for of_segment in by_number.chunk_by(|a, b| segment_of(rows[*a]) == segment_of(rows[*b])) {
            ports::CHECK_FOR_INTERRUPTS();
            let (Some(first), Some(last)) = (of_segment.first(), of_segment.last()) else {
                continue;
            };
            let Some((outlet, first_row)) = source.open_rows(rows[*first], rows[*last] + 1) else {
                continue;
            };
            let (mut values, mut nulls) = (Vec::new(), Vec::new());
            let attributes = self.attributes.iter().map(|a| a.index + 1);
            let end = attributes.max().unwrap_or(0);
            values.resize(end, pg_sys::Datum::null());
            nulls.resize(end, true);
            let place = |index: usize| (rows[index] - first_row) as usize;
            let vector = |index: usize| place(index) / VECTOR_ROWS;
            for of_vector in of_segment.chunk_by(|a, b| vector(*a) == vector(*b)) {
                let is_single = of_vector.len() <= SINGLE_ROWS_MAX;
                if let (Some(&first), Some(&last), false) =
                    (of_vector.first(), of_vector.last(), is_single)
                {
                    source.fill_places(place(first)..place(last) + 1, None);
                }
                for &index in of_vector {
                    let place = place(index);
                    for (at, attribute) in self.attributes.iter().enumerate() {
                        if is_single {
                            if let Some(value) = source.point(attribute.index, place) {
                                self.values[index * width + at] = value;
                                continue;
                            }
                            source.fill_places(place..place + 1, Some(&[attribute.index]));
                        }
                        // SAFETY: the window holds the row and is open; the arrays reach to the last attribute.
                        let (value, is_null) = unsafe {
                            let (from, to) = (attribute.index, attribute.index + 1);
                            (*outlet).read(
                                place,
                                from,
                                to,
                                values.as_mut_ptr(),
                                nulls.as_mut_ptr(),
                            );
                            (values[from], nulls[from])
                        };
                        if !is_null {
                            // SAFETY: a value of the attribute's type.
                            let copy = unsafe {
                                call_ports::datumCopy(value, attribute.by_value, attribute.length)
                            };
                            self.values[index * width + at] = (copy, false);
                        }
                    }
                }
            }
        }
        self.rows = rows;
        // SAFETY: the context that was current.
        unsafe { pg_sys::MemoryContextSwitchTo(before) };
    }

    /// Writes the next row's values into a slot; false at the end.
    ///
    /// # Safety
    /// `slot` is an empty virtual slot of the table, which is cleared before the next fetch.
    pub unsafe fn write_next(&mut self, slot: *mut pg_sys::TupleTableSlot) -> bool {
        let table = self.table;
        let Some((row, values)) = self.next_row() else {
            return false;
        };
        // SAFETY: the slot has all attributes of the table.
        unsafe {
            for (attribute, value, is_null) in values {
                *(*slot).tts_values.add(attribute) = value;
                *(*slot).tts_isnull.add(attribute) = is_null;
            }
            (*slot).tts_tid = tid::from_row(row);
            (*slot).tts_tableOid = table;
        }
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

    /// Has no rows any more, until the next fetch.
    pub fn forget(&mut self) {
        self.rows.clear();
        self.next = 0;
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// No slot holds a row.
    pub unsafe fn free(self) {
        // SAFETY: a context of ours.
        unsafe { pg_sys::MemoryContextDelete(self.memory) }
    }
}
