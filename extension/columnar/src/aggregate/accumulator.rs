//! The trait of the states of one aggregate, one state for each group.

use std::ops::Range;

use super::regression::PairMoments;
use super::stretches::Stretches;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::number::{Number, Scalar};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;
use crate::zone_map::Zone;

/// The groups of the selected rows of a vector.
#[derive(Clone, Copy, Debug)]
pub enum Grouping<'a> {
    /// All rows belong to one group.
    One(u32),
    /// Stretches of rows, each of one group. Accumulators that do not take stretches never get
    /// this. They get few stretches one by one as `One`, and many or short ones as `Each`.
    Stretches(Stretches<'a>),
    /// Each row has the id of its group. The ids of rows that are not selected have no meaning.
    Each(&'a [u32]),
}

/// The input of an aggregate.
#[derive(Clone, Copy)]
pub enum Input {
    /// Rows only.
    Nothing,
    /// A number a row.
    Number(Operand),
    /// The rows that are TRUE. The other selected rows are FALSE.
    Truth(Selection),
    /// Two numbers a row, each of which may be NULL.
    Pair(Operand, Operand),
    /// A number, a parameter and a time a row, each of which may be NULL.
    Timed(Operand, Operand, Operand),
}

/// The selected rows of a vector that an accumulator adds.
#[derive(Clone, Copy)]
pub struct Added<'a> {
    /// The argument of the aggregate.
    pub input: &'a Input,
    /// The selected rows.
    pub selection: &'a Selection,
    /// The number of rows of the vector.
    pub rows: usize,
}

impl Added<'_> {
    /// The numbers of all rows of the vector, if all are selected and each has its own.
    pub(super) fn whole_vector(&self) -> Option<*const u8> {
        match *self.input {
            Input::Number(Operand::Each { values, .. }) if self.selection.is_full(self.rows) => {
                Some(values)
            }
            _ => None,
        }
    }
}

/// The answer of an aggregate for a group.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Answer {
    /// NULL.
    Null,
    /// A count.
    Count(u64),
    /// An exact integer.
    Integer(i128),
    /// A number of the argument's type.
    Number(Scalar),
    /// Two doubles, the first divided by the second, which is not zero. The division may overflow or underflow.
    Quotient(f64, f64),
    /// A boolean.
    Truth(bool),
    /// A number too large for its type.
    OutOfRange,
    /// The answer is returned by [`Accumulator::list`].
    List,
    /// The answers are returned by [`Accumulator::several`].
    Several,
    /// The bits of a value whose type the accumulator's owner knows.
    Bits(u64),
    /// Count and exact sum, for an average of integers.
    Average {
        /// The number of numbers that were added.
        count: u64,
        /// Their sum.
        sum: i128,
    },
    /// Count, sum and sum of squares, for the variance of integers.
    IntegerMoments {
        /// The number of numbers that were added.
        count: u64,
        /// Their sum.
        sum: i128,
        /// The sum of their squares.
        squares: i128,
    },
    /// As [`Answer::IntegerMoments`], of integers of 64 bits.
    WideMoments {
        /// The number of numbers that were added.
        count: u64,
        /// Their sum.
        sum: i128,
        /// The digits of the sum of their squares to the base of 2^64, from the least one on.
        squares: [u64; 3],
    },
    /// Count, sum, and sum of squares of differences from the mean, for floats.
    Moments {
        /// The number of numbers that were added.
        count: f64,
        /// Their sum.
        sum: f64,
        /// The sum of squares of differences from the mean.
        squares: f64,
    },
    /// The moments of at least one pair of doubles.
    PairMoments(PairMoments),
}

/// The states of one aggregate. The rows that it gets are selected, pass its filter, and are not
/// NULL (except for [`Input::Pair`] and [`Input::Timed`]).
pub trait Accumulator {
    /// Makes room for so many groups. New groups are empty.
    fn resize(&mut self, groups: usize);

    /// Adds the selected rows.
    ///
    /// # Errors
    /// The errors of the aggregate.
    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()>;

    /// Adds the selected rows of stretches. Some stretches may have no selected rows. False:
    /// nothing was added, because another way is better. Rows of short stretches are added as if
    /// each had an id.
    ///
    /// # Errors
    /// The errors of the aggregate.
    fn add_stretches(&mut self, _runs: Stretches<'_>, _added: Added<'_>) -> Evaluation<bool> {
        Ok(false)
    }

    /// Notes that the rows that follow are of another vector. It is called for accumulators of
    /// [`Argument::Rows`](super::Argument::Rows) only.
    fn begin_vector(&mut self) {}

    /// Adds the selected rows of a frame, which the accumulator reads itself: the argument is
    /// [`Argument::Rows`](super::Argument::Rows). The grouping has no stretches.
    ///
    /// # Errors
    /// An error that the aggregate raises for a row.
    fn add_rows(
        &mut self,
        _grouping: &Grouping<'_>,
        _frame: &Frame<'_>,
        _selection: &Selection,
    ) -> Evaluation<()> {
        unreachable!("an accumulator of arguments")
    }

    /// The states, if they are nothing but numbers of rows. [`Input::Nothing`] need not be added
    /// row by row then.
    fn counts(&mut self) -> Option<&mut [u64]> {
        None
    }

    /// Whether [`add_zone`](Self::add_zone) can ever add something.
    fn can_use_zones(&self) -> bool {
        false
    }

    /// Whether [`set_zone_hint`](Self::set_zone_hint) makes a difference.
    fn uses_zone_hints(&self) -> bool {
        false
    }

    /// Passes on what is known of the numbers of the vector whose rows are added next: none that is
    /// not NULL lies outside the zone. `None`: nothing is known.
    fn set_zone_hint(&mut self, _zone: Option<Zone>) {}

    /// Adds all rows of an exact zone, at least one of which is not NULL. False: the zone is not
    /// enough, and nothing was added.
    fn add_zone(&mut self, _group: usize, _zone: &Zone) -> bool {
        false
    }

    /// Whether [`add_zone`](Self::add_zone) would add this zone.
    fn is_answered_by(&self, _zone: &Zone) -> bool {
        false
    }

    /// Notes that there are no more rows.
    fn finish(&mut self) {}

    /// Removes all groups.
    fn clear(&mut self);

    /// Whether some groups may be aggregated after others. Rows of the other groups are put into a
    /// file. That bounds the memory only if the state of a group is small.
    fn can_wait(&self) -> bool {
        true
    }

    /// The result for a group.
    fn answer(&self, group: usize) -> Answer;

    /// The result for a group, if its [`answer`](Self::answer) is [`Answer::List`].
    fn list(&self, _group: usize) -> &[u32] {
        &[]
    }

    /// The results for a group, if its [`answer`](Self::answer) is [`Answer::Several`].
    fn several(&self, _group: usize) -> &[Answer] {
        &[]
    }

    /// Writes the results for some groups one after the other. False: some result may be neither a
    /// number nor a count, and nothing was written.
    fn numbers(&self, _groups: Range<usize>, _out: &mut Numbers<'_>) -> bool {
        false
    }

    /// The bytes of memory that the states take.
    fn bytes(&self) -> usize;
}

/// Memory for results that are numbers.
pub struct Numbers<'a> {
    /// The results as 64 bits, in the form of [`Scalar`].
    pub values: &'a mut [u64],
    /// One bit for each result, set if it is not NULL. The bits after the last result are zero.
    pub validity: &'a mut [u64],
}

impl Numbers<'_> {
    /// Writes as many results as there are, and which of them are not NULL.
    pub(super) fn write(
        &mut self,
        results: impl Iterator<Item = Scalar>,
        mut are_valid: impl Iterator<Item = bool>,
    ) {
        let places = self.values.iter_mut().zip(results);
        places.for_each(|(place, result)| *place = result.0);
        for word in self.validity.iter_mut() {
            let of_word = are_valid.by_ref().take(64).enumerate();
            *word = of_word.fold(0, |word, (bit, is_valid)| word | u64::from(is_valid) << bit);
        }
    }
}

/// Calls `take` with each selected row and its group.
#[inline(always)]
pub(super) fn each_row(
    grouping: &Grouping<'_>,
    selection: &Selection,
    mut take: impl FnMut(usize, usize) -> Evaluation<()>,
) -> Evaluation<()> {
    let (group, ids) = match *grouping {
        Grouping::One(group) => (group, None),
        Grouping::Each(ids) => (0, Some(ids)),
        Grouping::Stretches(_) => return Ok(()),
    };
    selection.try_for_each(|row| take(row, ids.map_or(group, |ids| ids[row]) as usize))
}

/// Calls `take` with the number of each selected row, none of which is NULL, and its group.
///
/// # Safety
/// The operand is of type `T`, and the selected rows are rows of its vector.
#[inline(always)]
pub(super) unsafe fn each_number<T: Number>(
    grouping: &Grouping<'_>,
    operand: Operand,
    selection: &Selection,
    mut take: impl FnMut(T, usize) -> Evaluation<()>,
) -> Evaluation<()> {
    each_row(grouping, selection, |row, group| {
        // SAFETY: this function's contract.
        take(unsafe { operand.get::<T>(row) }, group)
    })
}

/// `count`.
#[derive(Default)]
pub struct Count {
    counts: Vec<u64>,
}

impl Accumulator for Count {
    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        add_counts(&mut self.counts, grouping, added.selection, added.rows);
        Ok(())
    }

    fn add_stretches(&mut self, stretches: Stretches<'_>, added: Added<'_>) -> Evaluation<bool> {
        for (group, count) in stretches.counts(added.selection) {
            self.counts[group] += count as u64;
        }
        Ok(true)
    }

    fn counts(&mut self) -> Option<&mut [u64]> {
        Some(&mut self.counts)
    }

    fn can_use_zones(&self) -> bool {
        true
    }

    fn add_zone(&mut self, group: usize, zone: &Zone) -> bool {
        self.counts[group] += u64::from(zone.non_null);
        true
    }

    fn is_answered_by(&self, _zone: &Zone) -> bool {
        true
    }

    fn answer(&self, group: usize) -> Answer {
        Answer::Count(self.counts[group])
    }

    fn numbers(&self, groups: Range<usize>, out: &mut Numbers<'_>) -> bool {
        let counts = self.counts[groups].iter();
        out.write(
            counts.clone().map(|count| Scalar(*count)),
            counts.map(|_| true),
        );
        true
    }

    fn clear(&mut self) {
        self.counts = Vec::new();
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u64>()
    }
}

/// Counts the selected rows of each group.
pub(super) fn add_counts(
    counts: &mut [u64],
    grouping: &Grouping<'_>,
    selection: &Selection,
    rows: usize,
) {
    match grouping {
        Grouping::One(group) => counts[*group as usize] += selection.count() as u64,
        // SAFETY: ids of selected rows are below the number of groups, for which there are counts.
        Grouping::Each(ids) => unsafe {
            let groups = ids.as_ptr();
            lanes_simd::group::group_count(groups, rows, selection.as_ptr(), counts.as_mut_ptr());
        },
        Grouping::Stretches(_) => {}
    }
}
