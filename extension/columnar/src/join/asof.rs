//! The nearest row within bounds.

use super::cursor::{Bound, Cursors};
use super::reading::check_rows;
use super::series::Series;
use crate::limits::VECTOR_ROWS;
use crate::vector::selection::Selection;

/// Looks back for the latest row, or forward for the earliest.
pub struct Asof {
    backward: bool,
    cursors: Cursors,
    /// The place in the series that each row of the vector found.
    places: Box<[u32; VECTOR_ROWS]>,
}

impl Asof {
    /// Looks into a series. Of rows of one time it finds the one that arrived last when it looks
    /// back, first when it looks forward.
    pub fn new(series: &Series, backward: bool) -> Asof {
        Asof {
            backward,
            cursors: Cursors::new(series),
            places: Box::new([0; VECTOR_ROWS]),
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.cursors.bytes() + size_of::<[u32; VECTOR_ROWS]>()
    }

    /// Finds the nearest right row of each selected row that is within `near`, unless it is beyond
    /// `far`. When looking back, these are the upper and the lower bound. No selected row has NULL
    /// as a bound. Returns the rows that found one.
    ///
    /// Bounds and ids are those of the selection's vector, which has `rows` rows. They are read
    /// before the caller leaves the vector, as in every evaluation.
    ///
    /// # Panics
    /// If a row past the vector is selected, or has no id.
    pub fn find(
        &mut self,
        series: &Series,
        (ids, rows): (&[u32], usize),
        near: &Bound,
        far: Option<&Bound>,
        selection: &Selection,
    ) -> Selection {
        check_rows(selection, rows);
        let mut found = Selection::NONE;
        let times = &series.times[..];
        selection.for_each(|row| {
            // SAFETY: a row of the vector, for each of which an operand has a number.
            let time = unsafe { near.time(row) };
            let place = if self.backward {
                let after = self.cursors.after(times, ids[row], time, near.inclusive);
                (after.at > after.start).then(|| after.at - 1)
            } else {
                let after = self.cursors.after(times, ids[row], time, !near.inclusive);
                (after.at < after.end).then_some(after.at)
            };
            let Some(place) = place else {
                return;
            };
            let within = far.is_none_or(|far| {
                // SAFETY: as above.
                let limit = unsafe { far.time(row) };
                let time = times[place as usize];
                time == limit && far.inclusive || (time > limit) == self.backward && time != limit
            });
            if within {
                self.places[row] = place;
                found.words[row / 64] |= 1 << (row % 64);
            }
        });
        found
    }

    /// The places that [`Asof::find`] found, for the rows with a match.
    pub fn places(&self) -> &[u32; VECTOR_ROWS] {
        &self.places
    }
}
