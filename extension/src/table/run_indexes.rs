//! The indexes of a table to which whole runs are appended: by `lanes.append`, and from object storage.
//!
//! A run is in the directory before its first index entry is made, so the WAL of the rows precedes that of the entries.
//! After an ERROR, such as that of a key that is there already, or a crash, the run belongs to a transaction that
//! aborted: its entries lead to rows that nobody sees, and VACUUM removes both.

use lanes_columnar::column::Column;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::{kept, tid};
use crate::error;
use crate::pg::datum::RowOutlet;
use crate::pg::open_indexes::OpenIndexes;
use crate::pg::slot::RowHeader;
use crate::pg::table::OpenTable;
use crate::pg::transaction;

/// The open indexes of a table, if it has any.
pub struct RunIndexes(Option<OpenIndexes>);

impl RunIndexes {
    /// Opens the indexes of a table, in the current memory context.
    pub fn open(table: OpenTable<'_>) -> RunIndexes {
        RunIndexes(kept::indexes(table).any.then(|| OpenIndexes::open(table)))
    }

    /// Makes the index entries of a run that the current transaction has appended, by the number of its first row. The
    /// columns are those of the run. Deferrable constraints are checked at once.
    pub fn enter(
        &self,
        table: OpenTable<'_>,
        columns: &[Column],
        rows: usize,
        command: pg_sys::CommandId,
        first_row: u64,
    ) {
        let Some(indexes) = self.0 else {
            return;
        };
        let shape = kept::shape(table);
        let outlet = RowOutlet::new(&shape.outlets, columns.iter().map(Column::lane));
        let header = RowHeader::new(transaction::current_xid(), command);
        let id_of = |row| tid::from_row(first_row + row as u64);
        if indexes.enter_guarded(&outlet, rows, header, id_of) {
            error::raise(
                PgSqlErrorCode::ERRCODE_EXCLUSION_VIOLATION,
                format!(
                    "rows of table \"{}\" may violate a deferrable exclusion constraint",
                    table.name()
                ),
                "Drop the constraint before the rows come, and add it again afterwards.",
            );
        }
    }

    /// Closes them.
    pub fn close(self) {
        if let Some(indexes) = self.0 {
            indexes.close();
        }
    }
}
