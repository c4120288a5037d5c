//! A side of a join by key: the stretches of its current vector, one after the other.

use std::cmp::Ordering;
use std::ops::Range;

use crate::aggregate::stretches::StretchList;
use crate::limits::VECTOR_ROWS;
use crate::vector::selection::Selection;

/// A vector of one side as stretches of rows of one key.
pub(super) struct Side {
    pub(super) stretches: StretchList,
    next: usize,
    pub(super) times: *const i64,
    /// Ids and times of the vector with the values of ignored rows replaced, if some rows do not
    /// count.
    own_ids: Box<[u32; VECTOR_ROWS]>,
    own_times: Box<[i64; VECTOR_ROWS]>,
    /// The key of the stretch before.
    latest: Option<u32>,
}

impl Side {
    /// Returns a side without a vector.
    pub(super) fn new() -> Side {
        let mut stretches = StretchList::default();
        stretches.end(0);
        Side {
            stretches,
            next: 0,
            times: std::ptr::null(),
            own_ids: Box::new([0; VECTOR_ROWS]),
            own_times: Box::new([0; VECTOR_ROWS]),
            latest: None,
        }
    }

    /// Begins with a vector of which some rows count: the others become like the one before them.
    /// False if its stretches are too short to pay.
    ///
    /// # Safety
    /// There are times for each of the rows, and they stay readable until the next vector.
    pub(super) unsafe fn enter(
        &mut self,
        times: *const i64,
        ids: &[u32],
        selection: &Selection,
        rows: usize,
    ) -> bool {
        self.times = times;
        if !selection.is_full(rows) && !selection.is_empty() {
            let mut counts = selection.next(0).unwrap_or_default();
            for (row, time) in self.own_times.iter_mut().enumerate().take(rows) {
                if selection.contains(row) {
                    counts = row;
                }
                // SAFETY: this function's contract.
                *time = unsafe { *times.add(counts) };
            }
            self.times = self.own_times.as_ptr();
        }
        self.enter_ids(ids, selection, rows)
    }

    /// Enters a vector without times.
    pub(super) fn enter_ids(&mut self, ids: &[u32], selection: &Selection, rows: usize) -> bool {
        self.next = 0;
        self.stretches.clear();
        if selection.is_full(rows) {
            return self.stretches.cut_ids(&ids[..rows]);
        }
        let Some(mut counts) = selection.next(0) else {
            self.stretches.end(rows);
            return true;
        };
        for (row, id) in self.own_ids.iter_mut().enumerate().take(rows) {
            if selection.contains(row) {
                counts = row;
            }
            *id = ids[counts];
        }
        self.stretches.cut_ids(&self.own_ids[..rows])
    }

    /// The current stretch.
    #[inline]
    pub(super) fn stretch(&self) -> Option<(u32, Range<usize>)> {
        let stretches = self.stretches.stretches();
        let id = *stretches.groups.get(self.next)?;
        let (from, to) = (stretches.starts[self.next], stretches.starts[self.next + 1]);
        Some((id, from as usize..to as usize))
    }

    /// Whether a key may follow the one before.
    #[inline]
    pub(super) fn follows(&self, id: u32, order: &impl Fn(u32, u32) -> Ordering) -> bool {
        let is_later = |latest| latest == id || order(latest, id).is_lt();
        self.latest.is_none_or(is_later)
    }

    /// Goes on to the next stretch.
    #[inline]
    pub(super) fn pass(&mut self, id: u32) {
        self.latest = Some(id);
        self.next += 1;
    }
}
