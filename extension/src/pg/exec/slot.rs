//! Slots: PostgreSQL's rows.

use std::marker::PhantomData;

use pgrx::pg_sys;

use crate::pg::datum::RowOutlet;
use crate::pg::descriptor::Descriptor;
use crate::pg::functions::executor as functions;
use crate::pg::tree::View;
use crate::pg::tree::view::nullable_fields;
use crate::pg::{executor, ports};

/// A slot, or null, which has no row.
#[derive(Clone, Copy)]
pub struct SlotOf<'p> {
    raw: *mut pg_sys::TupleTableSlot,
    lifetime: PhantomData<&'p ()>,
}

/// A slot that outlives this handle.
pub type Slot = SlotOf<'static>;

nullable_fields!(SlotOf: pg_sys::TupleTableSlot);

impl SlotOf<'static> {
    /// Frees a slot that was made by itself. No copy of the handle is used afterwards.
    pub fn free(self) {
        functions::ExecDropSingleTupleTableSlot(self);
    }

    /// The slot as PostgreSQL's functions take it.
    #[inline]
    pub fn as_raw(self) -> *mut pg_sys::TupleTableSlot {
        self.raw
    }

    /// The descriptor of the slot's rows.
    #[inline]
    pub fn descriptor(self) -> Descriptor<'static> {
        // SAFETY: a live slot has a descriptor.
        unsafe { Descriptor::at((*self.raw).tts_tupleDescriptor) }
    }

    /// Whether the slot contains no row.
    #[inline]
    pub fn is_empty(self) -> bool {
        let is_marked = |flags: u16| u32::from(flags) & pg_sys::TTS_FLAG_EMPTY != 0;
        // SAFETY: the slot is live, or null.
        self.raw.is_null() || is_marked(unsafe { (*self.raw).tts_flags })
    }

    /// Removes the slot's row.
    #[inline]
    pub fn clear(self) {
        // SAFETY: the slot is live.
        unsafe { ports::ExecClearTuple(self.raw) }
    }

    /// Makes all columns of the slot's row readable.
    #[inline]
    pub fn read_all(self) {
        // SAFETY: the slot is live; the caller has one with a row.
        unsafe { ports::slot_getallattrs(self.raw) }
    }

    /// How many columns the slot has.
    #[inline]
    pub fn width(self) -> usize {
        self.descriptor().len()
    }

    /// A column of a row that was [read](Self::read_all), counted from 0; `None` is NULL.
    #[inline]
    pub fn value(self, column: usize) -> Option<pg_sys::Datum> {
        // SAFETY: a live slot has arrays with an element for each valid column.
        unsafe {
            assert!(column < (*self.raw).tts_nvalid as usize, "an unread column");
            (!*(*self.raw).tts_isnull.add(column)).then(|| *(*self.raw).tts_values.add(column))
        }
    }

    /// A column counted from 1; `None` is NULL. Columns up to `last` are read on the first call for a row.
    #[inline]
    pub fn attribute(self, last: i16, column: i16) -> Option<pg_sys::Datum> {
        // SAFETY: the slot is live; the caller has one with a row that has these columns.
        unsafe { executor::attribute(self.raw, last, column) }
    }

    /// The place of the row in its table, in the order of tuple ids.
    #[inline]
    pub fn place(self) -> u64 {
        // SAFETY: the slot is live.
        unsafe { executor::place(self.raw) }
    }

    /// Sets a column, counted from 0, of a virtual slot whose row somebody else has stored.
    #[inline]
    pub fn set(self, column: usize, (value, is_null): (pg_sys::Datum, bool)) {
        assert!(column < self.width(), "a slot has no column {column}");
        // SAFETY: a live virtual slot has arrays with an element for each column.
        unsafe {
            *(*self.raw).tts_values.add(column) = value;
            *(*self.raw).tts_isnull.add(column) = is_null;
        }
    }

    /// Removes the slot's row, and returns a writer for the next one. The slot is virtual.
    #[inline]
    pub fn writer<'a>(self) -> SlotWriter<'a> {
        self.clear();
        // SAFETY: a live virtual slot has arrays with an element for each column; the slot is empty, so nobody else
        // reads them until the row is stored.
        unsafe {
            let width = self.width();
            SlotWriter {
                slot: self,
                values: std::slice::from_raw_parts_mut((*self.raw).tts_values, width),
                nulls: std::slice::from_raw_parts_mut((*self.raw).tts_isnull, width),
                row: PhantomData,
            }
        }
    }
}

/// The row that a virtual slot is about to contain.
pub struct SlotWriter<'a> {
    slot: Slot,
    values: &'a mut [pg_sys::Datum],
    nulls: &'a mut [bool],
    row: PhantomData<&'a mut pg_sys::TupleTableSlot>,
}

impl SlotWriter<'_> {
    /// How many columns the row has.
    #[inline]
    pub fn width(&self) -> usize {
        self.values.len()
    }

    /// Sets a column, counted from 0; `None` is NULL.
    #[inline]
    pub fn set(&mut self, column: usize, value: Option<pg_sys::Datum>) {
        self.nulls[column] = value.is_none();
        self.values[column] = value.unwrap_or(pg_sys::Datum::null());
    }

    /// Sets a column and whether it is NULL.
    #[inline]
    pub fn set_pair(&mut self, column: usize, (value, is_null): (pg_sys::Datum, bool)) {
        self.values[column] = value;
        self.nulls[column] = is_null;
    }

    /// Sets all columns from this one on to NULL.
    #[inline]
    pub fn clear_from(&mut self, column: usize) {
        self.nulls[column..].fill(true);
    }

    /// Copies all columns of a row of as many columns.
    #[inline]
    pub fn copy_from(&mut self, values: &[pg_sys::Datum], nulls: &[bool]) {
        self.values.copy_from_slice(values);
        self.nulls.copy_from_slice(nulls);
    }

    /// Copies the first columns of the row that another slot contains. That slot may have further, junk columns.
    #[inline]
    pub fn copy_slot(&mut self, from: Slot) {
        from.read_all();
        let width = self.width();
        assert!(width <= from.width(), "a row with too few columns");
        // SAFETY: a live slot whose columns were all read has a value and a mark for each of its columns.
        unsafe {
            let values = std::slice::from_raw_parts((*from.raw).tts_values, width);
            let nulls = std::slice::from_raw_parts((*from.raw).tts_isnull, width);
            self.copy_from(values, nulls);
        }
    }

    /// Reads an attribute of a table from its lanes into the column of the same number.
    ///
    /// The lanes contain the place, and stay alive until the slot is cleared or written again.
    #[inline]
    pub fn read_lane(&mut self, outlet: &RowOutlet, place: usize, attribute: usize) {
        let (value, is_null) = outlet.value(place, attribute);
        self.values[attribute] = value;
        self.nulls[attribute] = is_null;
    }

    /// Sets the row's tuple id and table, which `ctid` and `tableoid` return.
    #[inline]
    pub fn set_row(&mut self, tid: pg_sys::ItemPointerData, table: pg_sys::Oid) {
        // SAFETY: `Slot::writer` was called for a live slot.
        unsafe { (*self.slot.raw).tts_tid = tid };
        self.set_table(table);
    }

    /// Sets the row's table, which `tableoid` returns.
    #[inline]
    pub fn set_table(&mut self, table: pg_sys::Oid) {
        // SAFETY: `Slot::writer` was called for a live slot.
        unsafe { (*self.slot.raw).tts_tableOid = table }
    }

    /// Makes the written columns the slot's row.
    #[inline]
    pub fn store(self) -> Slot {
        // SAFETY: a live virtual slot that is empty; each column has a value and a mark.
        unsafe { ports::ExecStoreVirtualTuple(self.slot.raw) };
        self.slot
    }
}

/// A row of datums outside of any slot.
pub struct RowValues {
    pub values: Vec<pg_sys::Datum>,
    pub nulls: Vec<bool>,
}

impl RowValues {
    /// A row of NULLs.
    pub fn new(width: usize) -> RowValues {
        RowValues {
            values: vec![pg_sys::Datum::null(); width],
            nulls: vec![true; width],
        }
    }
}
