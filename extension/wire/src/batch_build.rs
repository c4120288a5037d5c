//! A batch being collected.

use crate::{BuildError, ColumnBuffer, ColumnSource, ColumnType, encode, limits};

/// Collects rows column by column and encodes them; reused from batch to batch.
///
/// ```
/// use lanes_wire::{BatchBuilder, BatchView, ColumnType};
///
/// let mut builder = BatchBuilder::new();
/// let ts = builder.add_column("ts", ColumnType::Timestamp)?;
/// let service = builder.add_column("service", ColumnType::Text)?;
/// builder.column(ts).extend_i64(&[1_700_000_000_000_000, 1_700_000_000_000_001])?;
/// builder.column(service).push_text("api")?;
/// builder.column(service).push_null();
/// let mut batch = Vec::new();
/// builder.finish(&mut batch)?;
/// builder.clear();
///
/// let view = BatchView::verify(&batch)?;
/// assert_eq!(view.rows(), 2);
/// assert_eq!(view.columns()[1].item(0), Some(&b"api"[..]));
/// assert!(view.columns()[1].is_null(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct BatchBuilder {
    columns: Vec<ColumnBuffer>,
}

impl BatchBuilder {
    /// A builder without columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column and returns its index for [`Self::column`]. Names must be distinct, with 1 to
    /// [`limits::NAME_BYTES_MAX`] bytes and without NUL.
    pub fn add_column(&mut self, name: &str, column_type: ColumnType) -> Result<usize, BuildError> {
        if self.columns.len() == limits::COLUMNS_MAX {
            return Err(BuildError::TooManyColumns);
        }
        if !(1..=limits::NAME_BYTES_MAX).contains(&name.len()) || name.contains('\0') {
            return Err(BuildError::ColumnName {
                name: name.to_owned(),
            });
        }
        if self.columns.iter().any(|column| column.name() == name) {
            return Err(BuildError::DuplicateColumn {
                name: name.to_owned(),
            });
        }
        self.columns.push(ColumnBuffer::new(name, column_type));
        Ok(self.columns.len() - 1)
    }

    /// The buffer of a column. Panics if `index` is not one that [`Self::add_column`] gave.
    pub fn column(&mut self, index: usize) -> &mut ColumnBuffer {
        &mut self.columns[index]
    }

    /// The columns' buffers, to fill several side by side.
    pub fn columns_mut(&mut self) -> &mut [ColumnBuffer] {
        &mut self.columns
    }

    /// Rows so far, by the first column.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, ColumnBuffer::rows)
    }

    /// Replaces `out` by the batch. Every column must have the same number of rows. The rows stay
    /// until [`Self::clear`].
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), BuildError> {
        for column in &mut self.columns {
            column.prepare();
        }
        let sources: Vec<ColumnSource<'_>> =
            self.columns.iter().map(ColumnBuffer::source).collect();
        let rows = self.rows();
        if let Some(column) = self.columns.iter().find(|column| column.rows() != rows) {
            return Err(BuildError::ColumnRows {
                name: column.name().to_owned(),
                rows: column.rows(),
                expected: rows,
            });
        }
        encode(rows, &sources, out)
    }

    /// Drops the rows; columns and memory stay.
    pub fn clear(&mut self) {
        for column in &mut self.columns {
            column.clear();
        }
    }
}
