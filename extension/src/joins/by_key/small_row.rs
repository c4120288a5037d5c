//! A row that the plan of a small side returns, in a slot or in a vector.

use pgrx::pg_sys;

use super::shared_rows::SharedRows;
use super::vector_child::{ColumnSource, VectorChild, VectorRows};
use crate::pg::exec::slot::Slot;

/// A row that the child returns.
pub trait Row {
    /// The value of a column.
    fn value(&self, column: usize) -> Option<pg_sys::Datum>;

    /// The place of the shared row that a column belongs to, if there is one.
    fn place(&self, _column: usize) -> Option<u32> {
        None
    }
}

/// A row in a slot all of whose columns were read.
pub struct SlotRow(pub Slot);

impl Row for SlotRow {
    #[inline]
    fn value(&self, column: usize) -> Option<pg_sys::Datum> {
        self.0.value(column)
    }
}

/// A row of a vector.
pub struct VectorRow<'a> {
    pub child: &'a dyn VectorChild,
    pub shared: &'a [SharedRows],
    pub rows: &'a VectorRows,
    pub row: usize,
}

impl Row for VectorRow<'_> {
    fn value(&self, column: usize) -> Option<pg_sys::Datum> {
        match self.child.sources()[column] {
            ColumnSource::Attribute(attribute) => {
                let place = self.rows.place? + self.row;
                let (value, is_null) = self.child.outlet().value(place, attribute);
                (!is_null).then_some(value)
            }
            ColumnSource::Shared { of, column } => {
                let shared = &self.shared[of];
                shared.value(column, shared.place(self.row))
            }
        }
    }

    fn place(&self, column: usize) -> Option<u32> {
        match self.child.sources()[column] {
            ColumnSource::Attribute(_) => None,
            ColumnSource::Shared { of, .. } => Some(self.shared[of].place(self.row)),
        }
    }
}
