//! A row that the plan of a small side returns, in a slot or in a vector.

use pgrx::pg_sys;

use super::column_child::{ColumnChild, ColumnSource, VectorRows};
use super::shared_rows::SharedRows;

/// A row that the child returns.
pub trait Row {
    /// The value of a column.
    fn value(&mut self, column: usize) -> Option<pg_sys::Datum>;

    /// The place of the shared row that a column belongs to, if there is one.
    fn place(&self, _column: usize) -> Option<u32> {
        None
    }
}

/// A row in a slot whose attributes have all been deformed.
pub struct SlotRow(pub *mut pg_sys::TupleTableSlot);

impl Row for SlotRow {
    fn value(&mut self, column: usize) -> Option<pg_sys::Datum> {
        // SAFETY: a live slot that has the column.
        unsafe { (!*(*self.0).tts_isnull.add(column)).then(|| *(*self.0).tts_values.add(column)) }
    }
}

/// A row of a vector.
pub struct VectorRow<'a> {
    pub child: &'a mut ColumnChild,
    pub shared: &'a [SharedRows],
    pub rows: &'a VectorRows,
    pub row: usize,
}

impl Row for VectorRow<'_> {
    fn value(&mut self, column: usize) -> Option<pg_sys::Datum> {
        match self.child.sources[column] {
            // SAFETY: the row is one of the last rows that the child returned.
            ColumnSource::Attribute(attribute) => unsafe {
                self.child.attribute(attribute, self.rows, self.row)
            },
            ColumnSource::Shared { of, column } => {
                let shared = &self.shared[of];
                shared.value(column, shared.place(self.row))
            }
        }
    }

    fn place(&self, column: usize) -> Option<u32> {
        match self.child.sources[column] {
            ColumnSource::Attribute(_) => None,
            ColumnSource::Shared { of, .. } => Some(self.shared[of].place(self.row)),
        }
    }
}
