//! A condition over a row of a table and a row of another relation, which PostgreSQL evaluates for rows of a vector.
//!
//! The row of the table comes from lanes, as for [expressions](super::row_evaluator); the other row is in a slot, and
//! is the outer row of the condition.

use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::selection::Selection;

use super::expression::RowExpression;
use super::row_evaluator::RowReader;
use super::scalar::RunningNode;
use super::slot::Slot;
use crate::pg::{executor, ports};

/// The most rows within one boundary.
const BATCH: usize = 64;
/// Values of one batch take at most this many bytes, but for those of its last row.
const BATCH_BYTES: usize = 1 << 20;

/// A condition, ready to be evaluated.
pub struct PairEvaluator {
    state: RowExpression,
    reader: RowReader,
}

impl PairEvaluator {
    /// A condition that reads these attributes of the node's table, and the outer row.
    ///
    /// # Errors
    /// If the node has no table.
    pub fn new(
        state: RowExpression,
        attributes: &[usize],
        node: RunningNode,
    ) -> Result<PairEvaluator, String> {
        let mut attributes = attributes.to_vec();
        attributes.sort_unstable();
        attributes.dedup();
        let reader = RowReader::new(&attributes, node)?;
        Ok(PairEvaluator { state, reader })
    }

    /// The rows for which the condition holds, each with its other row, which `other` stores in a slot. The frame's
    /// lanes are filled.
    pub fn passing(
        &mut self,
        frame: &Frame<'_>,
        rows: &Selection,
        other: impl Fn(usize) -> Slot,
    ) -> Selection {
        self.reader.enter(frame);
        self.reader.count(rows.count());
        let mut passing = Selection::NONE;
        let mut next = rows.next(0);
        while let Some(first) = next {
            ports::CHECK_FOR_INTERRUPTS();
            next = self.batch(frame.place, (rows, first), &other, &mut passing);
        }
        passing
    }

    /// Evaluates the condition for some rows from `first` on, at least one, and returns the row after the last.
    fn batch(
        &self,
        place: usize,
        (rows, first): (&Selection, usize),
        other: &impl Fn(usize) -> Slot,
        passing: &mut Selection,
    ) -> Option<usize> {
        let (context, state, reader) = (self.reader.context(), self.state, &self.reader);
        let memory = context.memory();
        executor::in_batch(context, || {
            let mut next = Some(first);
            for _ in 0..BATCH {
                let Some(row) = next else {
                    break;
                };
                reader.read(place + row);
                context.set_outer_row(other(row));
                let (value, is_null) = executor::evaluate_here(state, context);
                let holds = !is_null && value.value() & 0xff != 0;
                passing.words[row / 64] |= u64::from(holds) << (row % 64);
                next = rows.next(row + 1);
                if executor::is_interrupted() || executor::used_bytes(memory) > BATCH_BYTES {
                    break;
                }
            }
            next
        })
    }
}
