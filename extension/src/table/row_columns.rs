//! Rows of slots as columns. Their memory is kept for the next row: otherwise a statement that
//! writes row by row would spend much of its time on allocation.

use std::cell::Cell;
use std::rc::Rc;

use lanes_columnar::column::Column;
use lanes_columnar::kind::LaneKind;

use super::kept;
use super::shape::TableShape;
use crate::pg::datum::{RowIntake, RowOutlet};
use crate::pg::slot::Slot;
use crate::pg::table::OpenTable;

/// The most bytes of columns that are kept.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Columns of some rows of a table.
pub struct RowColumns {
    // Taken out when the value is dropped.
    parts: Option<Parts>,
}

struct Parts {
    shape: Rc<TableShape>,
    intake: RowIntake,
    columns: Vec<Column>,
}

thread_local! {
    static SPARE: Cell<Option<Parts>> = const { Cell::new(None) };
}

impl RowColumns {
    /// Columns of a table, without rows.
    pub fn of(table: OpenTable<'_>) -> RowColumns {
        let shape = kept::shape(table);
        let spare = SPARE
            .take()
            .filter(|spare| Rc::ptr_eq(&spare.shape, &shape));
        let parts = spare.unwrap_or_else(|| Parts {
            intake: RowIntake::new(table.descriptor(), &shape.kinds),
            columns: shape.columns(),
            shape,
        });
        RowColumns { parts: Some(parts) }
    }

    /// Columns of a table with the row of a filled slot of it.
    pub fn of_slot(table: OpenTable<'_>, slot: Slot<'_>) -> RowColumns {
        let mut row = RowColumns::of(table);
        row.push(slot);
        row
    }

    fn parts(&self) -> &Parts {
        self.parts.as_ref().expect("there until it is dropped")
    }

    /// Appends the row of a filled slot of the table.
    pub fn push(&mut self, slot: Slot<'_>) {
        let parts = self.parts.as_mut().expect("there until it is dropped");
        parts.intake.push_slot(&mut parts.columns, slot);
    }

    /// Appends a row of lanes of the table. Columns that are not wanted become NULL; columns are
    /// counted from 0.
    pub fn push_row(&mut self, outlet: &RowOutlet, row: usize, wanted: impl Fn(usize) -> bool) {
        let parts = self.parts.as_mut().expect("there until it is dropped");
        let columns = &mut parts.columns;
        parts.intake.push_wanted(columns, outlet, row, wanted);
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        let parts = self.parts.as_mut().expect("there until it is dropped");
        parts.columns.iter_mut().for_each(Column::clear);
    }

    /// The kinds of the columns.
    pub fn kinds(&self) -> &[LaneKind] {
        &self.parts().shape.kinds
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.parts().columns
    }
}

impl Drop for RowColumns {
    fn drop(&mut self) {
        // An ERROR may have left columns of different lengths.
        if std::thread::panicking() {
            return;
        }
        let bytes: usize = self.columns().iter().map(Column::byte_len).sum();
        self.clear();
        let parts = self.parts.take().filter(|_| bytes <= KEPT_BYTES_MAX);
        let _ = SPARE.try_with(|spare| spare.set(parts));
    }
}
