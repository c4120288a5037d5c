//! Which row of a small side each row of a vector has found.
//!
//! Where the keys of the vector come in stretches, a stretch is looked up once, and whoever takes
//! what was found may do so once a stretch too.

use crate::aggregate::key::Ids;
use crate::aggregate::stretches::{StretchList, Stretches};
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
    /// Stretches of rows that found one small row each. The group of a stretch is that row, or [`NO_ROW`].
    stretches: StretchList,
    has_stretches: bool,
}

impl Default for Found {
    fn default() -> Found {
        Found {
            rows: Box::new([NO_ROW; VECTOR_ROWS]),
            stretches: StretchList::default(),
            has_stretches: false,
        }
    }
}

impl Found {
    /// The small row of each row of the vector.
    #[inline]
    pub fn rows(&self) -> &[u32; VECTOR_ROWS] {
        &self.rows
    }

    /// The small row of each row of the vector, to be written. What was found has no stretches then.
    pub(super) fn rows_mut(&mut self) -> &mut [u32; VECTOR_ROWS] {
        self.has_stretches = false;
        &mut self.rows
    }

    /// What was found as stretches of rows with one small row, if it was found so. A stretch that found nothing has
    /// [`NO_ROW`].
    pub(super) fn stretches(&self) -> Option<Stretches<'_>> {
        self.has_stretches.then(|| self.stretches.stretches())
    }

    /// Calls `take` with the small row of the selected rows, at least once for each that differs from the one before.
    #[inline]
    pub fn each(&self, selection: &Selection, mut take: impl FnMut(u32)) {
        if let Some(stretches) = self.stretches() {
            for (small_row, rows) in stretches.iter() {
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
        self.has_stretches = true;
        match ids {
            Ids::One(id) => self
                .stretches
                .copy(Stretches::one(&[0, rows as u32], &[*id])),
            Ids::Stretches(stretches) => self.stretches.copy(*stretches),
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
        self.stretches.map_groups(first);
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
            && unsafe { self.stretches.cut_numbers::<T>(*values, rows, &all, first) }
        {
            self.has_stretches = true;
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

    /// Finds the small row of each of these stretches, which is its group. Rows of stretches that
    /// found nothing leave the selection.
    pub(super) fn find_stretches(&mut self, stretches: Stretches<'_>, selection: &mut Selection) {
        self.stretches.copy(stretches);
        self.has_stretches = true;
        self.spread(selection);
    }

    /// Writes the stretches row by row. Rows of stretches that found nothing leave the selection.
    fn spread(&mut self, selection: &mut Selection) {
        let mut matched = Selection::NONE;
        for (small_row, rows) in self.stretches.stretches().iter() {
            if small_row != NO_ROW {
                matched.insert(rows.start, rows.end);
                self.rows[rows].fill(small_row);
            }
        }
        selection.keep(&matched);
    }
}
