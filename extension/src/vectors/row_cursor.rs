//! Rows of a vector, one by one.

use lanes_columnar::vector::selection::Selection;

/// Selected rows of a vector that are returned one by one.
pub struct RowCursor {
    rows: Selection,
    next: usize,
}

impl RowCursor {
    /// A cursor without rows.
    pub const EMPTY: RowCursor = RowCursor {
        rows: Selection::NONE,
        next: 0,
    };

    /// A cursor before the first of these rows.
    pub fn new(rows: Selection) -> RowCursor {
        RowCursor { rows, next: 0 }
    }

    /// The next row.
    #[inline]
    pub fn next_row(&mut self) -> Option<usize> {
        let row = self.rows.next(self.next)?;
        self.next = row + 1;
        Some(row)
    }
}
