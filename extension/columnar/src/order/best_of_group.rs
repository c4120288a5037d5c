//! The first row of each group.

use super::entry::{Entry, Keys, SortKey};
use super::rank::Rank;
use crate::aggregate::Grouping;
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::number::Number;
use crate::vector::selection::Selection;
use crate::with_number;

/// For each group, the row that comes first in an order.
pub struct BestOfGroup {
    keys: Keys,
    /// The rank of the first key of each group's row; the last of all ranks while the group has no
    /// row.
    firsts: Vec<Rank>,
    best: Vec<Option<Entry>>,
    /// No group's row has a greater rank of the first key, if that is known.
    last: Option<Rank>,
    /// The note that `accept` gave for each group's row.
    notes: Vec<u32>,
}

impl BestOfGroup {
    /// No row yet. Without keys, a group's row is the one of the lowest number. The first key is a
    /// number.
    pub fn new(keys: Vec<SortKey>) -> BestOfGroup {
        BestOfGroup {
            keys: Keys::new(keys),
            firsts: Vec::new(),
            best: Vec::new(),
            last: None,
            notes: Vec::new(),
        }
    }

    /// Whether offering vectors from the last to the first is faster. The result does not depend on
    /// the order.
    pub fn is_backward(&self) -> bool {
        self.keys.reversed()
    }

    /// Offers the selected rows of a vector whose first row has the number `first_row`. A row that
    /// would become its group's row does so only if `accept` returns a note for it.
    ///
    /// # Errors
    /// The errors of the keys.
    pub fn offer(
        &mut self,
        frame: &Frame<'_>,
        first_row: u64,
        selection: &Selection,
        grouping: &Grouping<'_>,
        groups: usize,
        accept: impl FnMut(usize) -> Option<u32>,
    ) -> Evaluation<()> {
        let has_new = groups > self.best.len();
        if has_new {
            self.firsts.resize(groups, Rank::LAST);
            self.best.resize(groups, None);
            self.notes.resize(groups, 0);
        }
        self.keys.evaluate(frame, selection)?;
        match self.keys.first_number() {
            None => self.offer_each(
                |_, _| Rank::default(),
                first_row,
                selection,
                grouping,
                accept,
            ),
            Some(number) => with_number!(number, T => {
                if !has_new && self.is_beaten::<T>(selection, frame.rows) {
                    return Ok(());
                }
                let rank = |keys: &Keys, row| keys.first_rank_as::<T>(row);
                self.offer_each(rank, first_row, selection, grouping, accept);
            }),
        }
        Ok(())
    }

    /// Whether each selected row comes after the row that its group has. Where rows come in their order, that is soon
    /// so for all vectors.
    fn is_beaten<T: Number>(&mut self, selection: &Selection, rows: usize) -> bool {
        let groups = self.firsts.len();
        if self.last.is_none() && groups <= VECTOR_ROWS {
            self.last = self.firsts.iter().copied().max();
        }
        let Some(last) = self.last else { return false };
        let first = self.keys.least_first_rank::<T>(selection, rows);
        first.is_some_and(|first| first > last)
    }

    fn offer_each(
        &mut self,
        rank: impl Fn(&Keys, usize) -> Rank,
        first_row: u64,
        selection: &Selection,
        grouping: &Grouping<'_>,
        mut accept: impl FnMut(usize) -> Option<u32>,
    ) {
        let (keys, firsts) = (&self.keys, &mut self.firsts);
        let (best, notes) = (&mut self.best, &mut self.notes);
        // Groups get other rows.
        self.last = None;
        let mut offer = |row: usize, group: u32| {
            let group = group as usize;
            let rank = rank(keys, row);
            if rank > firsts[group] {
                return;
            }
            let entry = keys.entry(row, first_row);
            if best[group].as_ref().is_none_or(|best| entry < *best)
                && let Some(note) = accept(row)
            {
                (firsts[group], best[group]) = (rank, Some(entry));
                notes[group] = note;
            }
        };
        match grouping {
            Grouping::One(group) => selection.for_each(|row| offer(row, *group)),
            Grouping::Stretches(stretches) => {
                for (group, rows) in stretches.iter() {
                    let rows = selection.within(rows.start, rows.end);
                    rows.for_each(|row| offer(row, group));
                }
            }
            Grouping::Each(ids) => selection.for_each(|row| offer(row, ids[row])),
        }
    }

    /// The rows in ascending order of their numbers, each with its note. A row may belong to
    /// several groups.
    pub fn rows(&self) -> Vec<(u64, u32)> {
        let found = self.best.iter().zip(&self.notes);
        let row = |(entry, note): (&Option<Entry>, &u32)| {
            let entry = entry.as_ref()?;
            Some((self.keys.row(entry), *note))
        };
        let mut rows: Vec<(u64, u32)> = found.filter_map(row).collect();
        rows.sort_unstable();
        rows
    }

    /// Bytes that the rows take.
    pub fn bytes(&self) -> usize {
        self.best.capacity() * size_of::<Option<Entry>>()
            + self.notes.capacity() * size_of::<u32>()
            + self.firsts.capacity() * size_of::<Rank>()
    }
}
