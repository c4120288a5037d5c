//! `min` and `max`.

use std::cmp::Ordering;
use std::ops::Range;

use super::accumulator::{Accumulator, Added, Answer, Grouping, Input, Numbers, each_row};
use super::stretches::Stretches;
use super::zone_answer;
use crate::buffer::reserve_huge;
use crate::vector::Evaluation;
use crate::vector::number::Number;
use crate::vector::selection::Selection;
use crate::vector::value::Operand;
use crate::zone_map::Zone;

/// The extreme that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The smallest.
    Minimum,
    /// The greatest.
    Maximum,
}

/// The smallest or greatest number of each group. Of equal numbers (-0 and +0) the last one counts,
/// as in PostgreSQL's functions.
pub struct Extreme<T> {
    end: End,
    best: Vec<T>,
    seen: Vec<bool>,
    /// The number of groups that have no number yet.
    unseen: usize,
}

impl<T: Number> Extreme<T> {
    /// States without groups.
    pub fn new(end: End) -> Self {
        Extreme {
            end,
            best: Vec::new(),
            seen: Vec::new(),
            unseen: 0,
        }
    }

    /// Compares the number of each selected row with its group's. An empty group holds a value that
    /// every number beats or equals.
    fn offer_each(&mut self, ids: &[u32], values: *const T, selection: &Selection, rows: usize) {
        if self.unseen > 0 {
            let (seen, unseen) = (&mut self.seen, &mut self.unseen);
            selection.for_each(|row| {
                let seen = &mut seen[ids[row] as usize];
                *unseen -= usize::from(!*seen);
                *seen = true;
            });
        }
        let (ids, chosen, best) = (ids.as_ptr(), selection.as_ptr(), self.best.as_mut_ptr());
        // SAFETY: ids of selected rows are below the number of groups; there is a `T` for each row of the vector.
        unsafe {
            match self.end {
                End::Minimum => lanes_simd::group::group_minimum(ids, values, rows, chosen, best),
                End::Maximum => lanes_simd::group::group_maximum(ids, values, rows, chosen, best),
            }
        }
    }

    /// Compares the numbers of short stretches with their groups'. All rows are selected.
    ///
    /// # Safety
    /// There is a number for each row.
    unsafe fn offer_short(&mut self, stretches: Stretches<'_>, values: *const T) {
        if self.unseen > 0 {
            for group in stretches.groups {
                let seen = &mut self.seen[*group as usize];
                self.unseen -= usize::from(!*seen);
                *seen = true;
            }
        }
        let (starts, groups, count) = (
            stretches.starts.as_ptr(),
            stretches.groups.as_ptr(),
            stretches.len(),
        );
        let best = self.best.as_mut_ptr();
        // SAFETY: the caller's promise; groups of stretches are below the number of groups.
        unsafe {
            match self.end {
                End::Minimum => lanes_simd::stretches::minimum(values, starts, groups, count, best),
                End::Maximum => lanes_simd::stretches::maximum(values, starts, groups, count, best),
            }
        }
    }

    /// Compares the best of the selected numbers with a group's. A null pointer selects all rows.
    ///
    /// # Safety
    /// There are so many numbers, and a bit for each unless the pointer is null.
    unsafe fn offer_best(&mut self, group: u32, values: *const T, rows: usize, chosen: *const u64) {
        // SAFETY: the caller's promise.
        let best = unsafe {
            match self.end {
                End::Minimum => lanes_simd::aggregate::minimum::<T>(values, rows, chosen),
                End::Maximum => lanes_simd::aggregate::maximum::<T>(values, rows, chosen),
            }
        };
        if let Some(best) = best {
            self.offer(group as usize, best);
        }
    }

    /// The best of a zone's numbers, if its bound is enough to know it.
    fn best_of(&self, zone: &Zone) -> Option<T> {
        zone_answer::number::<T>(match self.end {
            End::Minimum => zone.minimum,
            End::Maximum => zone.maximum,
        })
    }

    #[inline]
    fn offer(&mut self, group: usize, value: T) {
        let worse = match self.end {
            End::Minimum => Ordering::Greater,
            End::Maximum => Ordering::Less,
        };
        if !self.seen[group] || value.order(self.best[group]) != worse {
            self.best[group] = value;
            self.unseen -= usize::from(!self.seen[group]);
            self.seen[group] = true;
        }
    }
}

impl<T: Number> Accumulator for Extreme<T> {
    fn resize(&mut self, groups: usize) {
        let nothing = match self.end {
            End::Minimum => T::GREATEST,
            End::Maximum => T::LEAST,
        };
        self.unseen += groups - self.seen.len();
        reserve_huge(&mut self.best, groups);
        self.best.resize(groups, nothing);
        self.seen.resize(groups, false);
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Number(operand) = *added.input else {
            return Ok(());
        };
        let (selection, rows) = (added.selection, added.rows);
        if let (Grouping::One(group), Operand::Each { values, .. }) = (grouping, operand) {
            // SAFETY: the operand has a `T` for each row of the vector.
            unsafe { self.offer_best(*group, values.cast(), rows, selection.as_ptr()) }
            return Ok(());
        }
        if let (Grouping::Each(ids), Operand::Each { values, .. }) = (grouping, operand) {
            self.offer_each(ids, values.cast(), selection, rows);
            return Ok(());
        }
        each_row(grouping, selection, |row, group| {
            // SAFETY: as above.
            self.offer(group, unsafe { operand.get::<T>(row) });
            Ok(())
        })
    }

    fn add_stretches(&mut self, stretches: Stretches<'_>, added: Added<'_>) -> Evaluation<bool> {
        let Some(values) = added.whole_vector() else {
            return Ok(false);
        };
        if stretches.are_short {
            // SAFETY: the operand has a `T` for each row of the vector.
            unsafe { self.offer_short(stretches, values.cast()) }
            return Ok(true);
        }
        for (group, rows) in stretches.iter() {
            // SAFETY: the operand has a `T` for each row of the vector.
            unsafe {
                let values = values.cast::<T>().add(rows.start);
                self.offer_best(group, values, rows.len(), std::ptr::null());
            }
        }
        Ok(true)
    }

    fn can_use_zones(&self) -> bool {
        true
    }

    fn add_zone(&mut self, group: usize, zone: &Zone) -> bool {
        self.best_of(zone).is_some_and(|best| {
            self.offer(group, best);
            true
        })
    }

    fn is_answered_by(&self, zone: &Zone) -> bool {
        self.best_of(zone).is_some()
    }

    fn answer(&self, group: usize) -> Answer {
        if self.seen[group] {
            Answer::Number(self.best[group].to_scalar())
        } else {
            Answer::Null
        }
    }

    fn numbers(&self, groups: Range<usize>, out: &mut Numbers<'_>) -> bool {
        let seen = self.seen[groups.clone()].iter();
        let best = self.best[groups].iter();
        out.write(best.map(|best| best.to_scalar()), seen.copied());
        true
    }

    fn clear(&mut self) {
        (self.best, self.seen, self.unseen) = (Vec::new(), Vec::new(), 0);
    }

    fn bytes(&self) -> usize {
        self.best.capacity() * size_of::<T>() + self.seen.capacity()
    }
}
