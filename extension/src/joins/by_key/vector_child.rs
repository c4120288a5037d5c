//! A small side's plan that returns its rows as vectors, without a slot for each row.

use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::selection::Selection;

use super::shared_rows::SharedRows;
use crate::pg::datum::RowOutlet;
use crate::pg::exec::child::Child;

/// The source of a column of the plan.
#[derive(Clone, Copy)]
pub enum ColumnSource {
    /// An attribute of the plan's lanes table.
    Attribute(usize),
    /// A column of the rows of one of the plan's own small sides: the index of the
    /// [`SharedRows`], and of the column among them.
    Shared { of: usize, column: usize },
}

/// The selected rows of one vector.
pub struct VectorRows {
    pub selection: Selection,
    /// The place of the vector's first row in its lanes. It is `None` for small rows without a
    /// match, which have no row of the lanes table.
    pub place: Option<usize>,
}

/// A plan under execution that returns vectors. Nodes implement it.
pub trait VectorChild {
    /// The source of each column.
    fn sources(&self) -> &[ColumnSource];

    /// Postpones the rows of the current vector from `from` on to the next batch.
    fn leave(&mut self, rows: VectorRows, from: usize);

    /// The postponed rows, or the next ones; `None` at the end. The places of their shared rows
    /// are known afterwards.
    fn next_rows(&mut self, shared: &mut [SharedRows]) -> Option<VectorRows>;

    /// The vector of the rows that were returned last.
    fn frame(&self, rows: &VectorRows) -> Frame<'_>;

    /// The lanes of the rows that were returned last.
    fn outlet(&self) -> &RowOutlet;
}

/// Opens a plan as one that returns vectors. `None`: it returns slots.
pub type OpenVectors = fn(Child) -> Option<(Box<dyn VectorChild>, Vec<SharedRows>)>;
