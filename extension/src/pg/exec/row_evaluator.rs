//! An expression over columns of a table that PostgreSQL evaluates for rows of a vector.
//!
//! ```text
//! selected rows ──► a slot with the columns that the expression reads ──► the expression's state ──► datums ──► take
//!                   └──────────────── up to 256 rows within one error boundary ───────────────┘
//! ```
//! Slot and context are those of the node's [conditions](super::condition_test). The memory of the values is freed once
//! for many rows, and at the latest when they take a megabyte.

use lanes_columnar::lane::Lane;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::selection::Selection;
use pgrx::pg_sys::Datum;

use super::expression::{RowContext, RowExpression};
use super::scalar::{RunningNode, TableRow};
use crate::pg::datum::{self, Outlet};
use crate::pg::tree::Expr;
use crate::pg::{executor, ports};

/// The most rows within one boundary.
const BATCH: usize = 256;
/// Values of one batch take at most this many bytes, but for those of its last row.
const BATCH_BYTES: usize = 1 << 20;

/// A column that an expression reads.
#[derive(Clone, Copy)]
struct ReadColumn {
    attribute: usize,
    outlet: Outlet,
    lane: Lane,
}

/// Columns of a table, ready to be read into the row that expressions look at.
pub struct RowReader {
    row: TableRow,
    columns: Vec<ReadColumn>,
}

impl RowReader {
    /// A reader of these attributes of the node's table.
    ///
    /// # Errors
    /// If the node has no table.
    pub fn new(attributes: &[usize], node: RunningNode) -> Result<RowReader, String> {
        let row = node.table_row()?;
        let descriptor = row.slot.descriptor();
        let outlets = datum::outlets(descriptor, &datum::kinds(descriptor));
        let column = |&attribute: &usize| ReadColumn {
            attribute,
            outlet: outlets[attribute],
            lane: Lane::NULL,
        };
        let columns = attributes.iter().map(column).collect();
        Ok(RowReader { row, columns })
    }

    /// Goes on to another vector, whose lanes are filled.
    pub fn enter(&mut self, frame: &Frame<'_>) {
        for column in &mut self.columns {
            column.lane = frame.lane(column.attribute);
        }
    }

    /// Reads a row of the vector that was entered last, by its place in the lanes, into the node's slot.
    #[inline]
    pub(super) fn read(&self, place: usize) {
        for column in &self.columns {
            let value = column.outlet.filled_value(&column.lane, place);
            self.row.slot.set(column.attribute, value);
        }
    }

    /// The context that expressions over the slot are evaluated in.
    pub fn context(&self) -> RowContext {
        self.row.context
    }

    /// Counts rows that were evaluated.
    pub fn count(&self, rows: usize) {
        self.row.count(rows);
    }
}

/// An expression, ready to be evaluated for rows of vectors.
pub struct RowEvaluator {
    state: RowExpression,
    reader: RowReader,
    results: Box<[(Datum, bool); BATCH]>,
}

impl RowEvaluator {
    /// An expression that reads these attributes of the node's table and no other.
    ///
    /// # Errors
    /// If the node has no table.
    pub fn new(
        expression: Expr<'_>,
        attributes: &[usize],
        node: RunningNode,
    ) -> Result<RowEvaluator, String> {
        let reader = RowReader::new(attributes, node)?;
        Ok(RowEvaluator {
            state: node.initialised(expression),
            reader,
            results: Box::new([(Datum::null(), true); BATCH]),
        })
    }

    /// Evaluates the expression for each row, in order, and passes the results to `take`. A result by reference lives
    /// until `take` returns. The frame's lanes are filled, as for every evaluation.
    pub fn each(
        &mut self,
        frame: &Frame<'_>,
        rows: &Selection,
        mut take: impl FnMut(usize, Option<Datum>),
    ) {
        self.reader.enter(frame);
        let mut next = rows.next(0);
        while let Some(first) = next {
            ports::CHECK_FOR_INTERRUPTS();
            let count = self.batch(frame.place, rows, first);
            self.reader.count(count);
            // What `take` allocates is freed with the results.
            self.reader.context().memory().enter(|| {
                for (value, is_null) in &self.results[..count] {
                    let Some(row) = next else {
                        break;
                    };
                    take(row, (!is_null).then_some(*value));
                    next = rows.next(row + 1);
                }
            });
        }
    }

    /// Evaluates some rows from `first` on, at least one, and returns how many.
    fn batch(&mut self, place: usize, rows: &Selection, first: usize) -> usize {
        let context = self.reader.context();
        let memory = context.memory();
        let (state, reader, results) = (self.state, &self.reader, &mut self.results);
        executor::in_batch(context, || {
            let (mut count, mut next) = (0, Some(first));
            while let Some(row) = next {
                reader.read(place + row);
                results[count] = executor::evaluate_here(state, context);
                count += 1;
                let is_full = count == BATCH || executor::used_bytes(memory) >= BATCH_BYTES;
                if is_full || executor::is_interrupted() {
                    break;
                }
                next = rows.next(row + 1);
            }
            count
        })
    }
}
