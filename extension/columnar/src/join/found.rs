//! Which row of a small side each row of a vector has found.
//!
//! Where the keys of the vector come in runs, a run is looked up once, and whoever takes what was found may do so once a
//! run too.

use crate::aggregate::key::Ids;
use crate::aggregate::runs::{RunList, Runs};
use crate::limits::VECTOR_ROWS;
use crate::vector::number::Number;
use crate::vector::selection::Selection;
use crate::vector::value::Operand;

/// Stands for no row of the small side.
pub(super) const NO_ROW: u32 = u32::MAX;

/// What the rows of a vector have found.
pub struct Found {
    /// The small row of each. The entry of a row that is not selected means nothing.
    rows: Box<[u32; VECTOR_ROWS]>,
    /// Runs of rows that found one small row each. The group of a run is that row, or [`NO_ROW`].
    runs: RunList,
    has_runs: bool,
}

impl Default for Found {
    fn default() -> Found {
        Found {
            rows: Box::new([NO_ROW; VECTOR_ROWS]),
            runs: RunList::default(),
            has_runs: false,
        }
    }
}

impl Found {
    /// The small row of each row of the vector.
    #[inline]
    pub fn rows(&self) -> &[u32; VECTOR_ROWS] {
        &self.rows
    }

    /// The small row of each row of the vector, to be written. What was found has no runs then.
    pub(super) fn rows_mut(&mut self) -> &mut [u32; VECTOR_ROWS] {
        self.has_runs = false;
        &mut self.rows
    }

    /// What was found as runs of rows with one small row, if it was found so. A run that found nothing has
    /// [`NO_ROW`].
    pub(super) fn runs(&self) -> Option<Runs<'_>> {
        self.has_runs.then(|| self.runs.runs())
    }

    /// Calls `take` with the small row of the selected rows, at least once for each that differs from the one before.
    #[inline]
    pub fn each(&self, selection: &Selection, mut take: impl FnMut(u32)) {
        if let Some(runs) = self.runs() {
            for (small_row, rows) in runs.iter() {
                if selection.next(rows.start).is_some_and(|row| row < rows.end) {
                    take(small_row);
                }
            }
            return;
        }
        let mut last = None;
        selection.for_each(|row| {
            let small_row = self.rows[row];
            if last != Some(small_row) {
                last = Some(small_row);
                take(small_row);
            }
        });
    }

    /// Finds the first small row for the key of each row. Rows whose key has none leave the selection.
    pub(super) fn find_ids(
        &mut self,
        ids: &Ids<'_>,
        first: impl Fn(u32) -> u32,
        selection: &mut Selection,
        rows: usize,
    ) {
        self.has_runs = true;
        match ids {
            Ids::One(id) => self.runs.copy(Runs::one(&[0, rows as u32], &[*id])),
            Ids::Runs(runs) => self.runs.copy(*runs),
            Ids::Each(ids) => {
                let found = self.rows_mut();
                let all = *selection;
                all.for_each(|place| {
                    let row = first(ids[place]);
                    found[place] = row;
                    if row == NO_ROW {
                        selection.remove(place);
                    }
                });
                return;
            }
        }
        self.runs.map_groups(first);
        self.spread(selection);
    }

    /// Finds the first small row for the integer of each row. Rows that find none leave the selection.
    pub(super) fn find_numbers<T: Number>(
        &mut self,
        operand: &Operand,
        first: impl Fn(i64) -> u32,
        selection: &mut Selection,
        rows: usize,
    ) {
        let first = |row: usize| {
            // SAFETY: the operand has a `T` for each row of the vector.
            first(unsafe { operand.get::<T>(row) }.to_scalar().0 as i64)
        };
        *selection = operand.valid(selection);
        let all = *selection;
        if let Operand::Each { values, .. } = operand
            && !all.is_empty()
            // SAFETY: as above.
            && unsafe { self.runs.cut_numbers::<T>(*values, rows, &all, first) }
        {
            self.has_runs = true;
            self.spread(selection);
            return;
        }
        let found = self.rows_mut();
        let mut missing = [0_u64; VECTOR_ROWS / 64];
        all.for_each(|row| {
            let small = first(row);
            found[row] = small;
            missing[row / 64] |= u64::from(small == NO_ROW) << (row % 64);
        });
        for (word, missing) in selection.words.iter_mut().zip(missing) {
            *word &= !missing;
        }
    }

    /// Writes the runs row by row. Rows of runs that found nothing leave the selection.
    fn spread(&mut self, selection: &mut Selection) {
        let mut matched = Selection::NONE;
        for (small_row, rows) in self.runs.runs().iter() {
            if small_row != NO_ROW {
                matched.insert(rows.start, rows.end);
                self.rows[rows].fill(small_row);
            }
        }
        selection.keep(&matched);
    }
}
