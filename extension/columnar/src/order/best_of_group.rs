//! The first row of each group.

use super::entry::{Entry, Keys, SortKey};
use crate::aggregate::Grouping;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::selection::Selection;

/// For each group, the row that comes first in an order.
pub struct BestOfGroup {
    keys: Keys,
    best: Vec<Option<Entry>>,
}

impl BestOfGroup {
    /// No row yet. Without keys, a group's row is the one of the lowest number.
    pub fn new(keys: Vec<SortKey>) -> BestOfGroup {
        BestOfGroup {
            keys: Keys::new(keys),
            best: Vec::new(),
        }
    }

    /// Offers the selected rows of a vector whose first row has the number `first_row`. A row that would be its
    /// group's is so if `accept` says so.
    ///
    /// # Errors
    /// Those of the keys.
    pub fn offer(
        &mut self,
        frame: &Frame<'_>,
        first_row: u64,
        selection: &Selection,
        grouping: &Grouping<'_>,
        groups: usize,
        mut accept: impl FnMut(usize) -> bool,
    ) -> Evaluation<()> {
        self.best.resize(groups.max(self.best.len()), None);
        self.keys.evaluate(frame, selection)?;
        let mut offer = |row: usize, group: u32| {
            let best = &mut self.best[group as usize];
            if best.is_some_and(|best| self.keys.first_rank(row) > best.ranks[0]) {
                return;
            }
            let entry = self.keys.entry(row, first_row);
            if best.is_none_or(|best| entry < best) && accept(row) {
                *best = Some(entry);
            }
        };
        match grouping {
            Grouping::One(group) => selection.for_each(|row| offer(row, *group)),
            Grouping::Runs(runs) => {
                for run in *runs {
                    let rows = selection.within(run.from, run.to);
                    rows.for_each(|row| offer(row, run.group));
                }
            }
            Grouping::Each(ids) => selection.for_each(|row| offer(row, ids[row])),
        }
        Ok(())
    }

    /// The rows by number, ascending.
    pub fn rows(&self) -> Vec<u64> {
        let found = self.best.iter().flatten();
        let mut rows: Vec<u64> = found.map(|entry| self.keys.row(entry)).collect();
        rows.sort_unstable();
        rows
    }

    /// Bytes that the rows take.
    pub fn bytes(&self) -> usize {
        self.best.capacity() * size_of::<Option<Entry>>()
    }
}
