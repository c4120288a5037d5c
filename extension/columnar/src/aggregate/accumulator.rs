//! The states of one aggregate, one a group.

use std::ops::Range;

use super::stretches::Stretches;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::number::Scalar;
use crate::vector::selection::Selection;
use crate::vector::value::Operand;
use crate::zone_map::Zone;

/// To which groups the selected rows of a vector belong.
#[derive(Clone, Copy, Debug)]
pub enum Grouping<'a> {
    /// All to one.
    One(u32),
    /// Stretches of rows, a group each. Accumulators that do not take stretches never see it: few stretches reach them as `One` each, many or
    /// short ones as `Each`.
    Stretches(Stretches<'a>),
    /// Each row has its own id; those of rows that are not selected mean nothing.
    Each(&'a [u32]),
}

/// What an aggregate gets.
#[derive(Clone, Copy)]
pub enum Input {
    /// Rows only.
    Nothing,
    /// A number a row.
    Number(Operand),
    /// Rows that are TRUE; the others selected are FALSE.
    Truth(Selection),
    /// Two numbers a row, either of which may be NULL.
    Pair(Operand, Operand),
    /// A number, a parameter and a time a row, each of which may be NULL.
    Timed(Operand, Operand, Operand),
}

/// What an aggregate answers for a group.
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
    /// A truth.
    Truth(bool),
    /// A number too large for its type.
    OutOfRange,
    /// What [`Accumulator::list`] returns.
    List,
    /// The bits of a value whose type the accumulator's owner knows.
    Bits(u64),
    /// Count and exact sum: of an average of integers.
    Average {
        /// Numbers that were added.
        count: u64,
        /// Their sum.
        sum: i128,
    },
    /// Count, sum and sum of squares: of the variance of integers.
    IntegerMoments {
        /// Numbers that were added.
        count: u64,
        /// Their sum.
        sum: i128,
        /// The sum of their squares.
        squares: i128,
    },
    /// Count, sum, and sum of squares of differences from the mean: of floats.
    Moments {
        /// Numbers that were added.
        count: f64,
        /// Their sum.
        sum: f64,
        /// Sum of squares of differences from the mean.
        squares: f64,
    },
}

/// The states of one aggregate. Rows that reach it are selected, pass its filter, and (but for
/// [`Input::Pair`] and [`Input::Timed`]) are not NULL.
pub trait Accumulator {
    /// Makes room for so many groups; new ones are empty.
    fn resize(&mut self, groups: usize);

    /// Adds the selected rows.
    ///
    /// # Errors
    /// Those of the aggregate.
    fn add(
        &mut self,
        grouping: &Grouping<'_>,
        input: &Input,
        selection: &Selection,
        rows: usize,
    ) -> Evaluation<()>;

    /// Adds the selected rows of stretches, of some of which perhaps none is selected. False, and nothing is added, if it had better
    /// be done otherwise. Rows of short stretches are added as if each had an id.
    ///
    /// # Errors
    /// Those of the aggregate.
    fn add_stretches(
        &mut self,
        _runs: Stretches<'_>,
        _input: &Input,
        _selection: &Selection,
    ) -> Evaluation<bool> {
        Ok(false)
    }

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

    /// The states, if they are nothing but the numbers of rows: then [`Input::Nothing`] need not be added row by row.
    fn counts(&mut self) -> Option<&mut [u64]> {
        None
    }

    /// Whether [`add_zone`](Self::add_zone) may take something in.
    fn can_use_zones(&self) -> bool {
        false
    }

    /// Whether [`set_zone_hint`](Self::set_zone_hint) makes a difference.
    fn uses_zone_hints(&self) -> bool {
        false
    }

    /// What is known, if anything, of the numbers of the vector whose rows are added next: not more than that none of those that
    /// are not NULL lies outside the zone.
    fn set_zone_hint(&mut self, _zone: Option<Zone>) {}

    /// Adds all rows of an exact zone, of which at least one is not NULL; false, and nothing is added, if the zone does
    /// not tell enough.
    fn add_zone(&mut self, _group: usize, _zone: &Zone) -> bool {
        false
    }

    /// Whether [`add_zone`](Self::add_zone) takes it in.
    fn is_answered_by(&self, _zone: &Zone) -> bool {
        false
    }

    /// There are no more rows.
    fn finish(&mut self) {}

    /// Forgets all groups.
    fn clear(&mut self);

    /// Whether some groups may be aggregated after others. The rows of the others then wait in a file. That bounds the
    /// memory only if the state of a group is small.
    fn can_wait(&self) -> bool {
        true
    }

    /// The result for a group.
    fn answer(&self, group: usize) -> Answer;

    /// The result for a group whose [`answer`](Self::answer) is [`Answer::List`].
    fn list(&self, _group: usize) -> &[u32] {
        &[]
    }

    /// Writes the results for some groups one after the other. False, and nothing is written, if some result may be neither a
    /// number nor a count.
    fn numbers(&self, _groups: Range<usize>, _out: &mut Numbers<'_>) -> bool {
        false
    }

    /// Bytes that the states take.
    fn bytes(&self) -> usize;
}

/// Room for results that are numbers.
pub struct Numbers<'a> {
    /// In 64 bits, as a [`Scalar`] has them.
    pub values: &'a mut [u64],
    /// A bit for each that is not NULL; the others are zero.
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
#[inline]
pub(super) fn each_row(
    grouping: &Grouping<'_>,
    selection: &Selection,
    mut take: impl FnMut(usize, usize) -> Evaluation<()>,
) -> Evaluation<()> {
    match grouping {
        Grouping::One(group) => selection.try_for_each(|row| take(row, *group as usize)),
        Grouping::Each(ids) => selection.try_for_each(|row| take(row, ids[row] as usize)),
        Grouping::Stretches(_) => Ok(()),
    }
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

    fn add(
        &mut self,
        grouping: &Grouping<'_>,
        _input: &Input,
        selection: &Selection,
        rows: usize,
    ) -> Evaluation<()> {
        add_counts(&mut self.counts, grouping, selection, rows);
        Ok(())
    }

    fn add_stretches(
        &mut self,
        stretches: Stretches<'_>,
        _input: &Input,
        selection: &Selection,
    ) -> Evaluation<bool> {
        for (group, count) in stretches.counts(selection) {
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
