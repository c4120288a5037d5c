//! A hash join under execution. For each vector of the lanes table it finds the rows of the
//! small sides.
//!
//! ```text
//! find        for each side in turn: the first small row of each left row that the earlier sides have not dropped
//! find_next   the last side with another small row for some left rows moves on for these rows; later sides start anew
//! ```
//! So each left row meets each combination of its small rows once. A left row for which some
//! side finds nothing is dropped from all sides at once, so a side that starts anew always finds
//! the same rows again. The exception is a side with a key over an earlier side: its rows depend
//! on the small row found there. So do the rows of a side with a condition that reads an earlier
//! one. Then the earlier side moves on until all later sides find a row.

use lanes_columnar::join::key_set::KeySet;
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::Scalar;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::Operand;
use pgrx::pg_sys;

use super::joined_side::JoinedSide;
use super::match_condition::MatchCondition;
use super::plan::HashJoinPlan;
use super::small_columns::{Place, SmallColumns};
use super::small_side::SmallSide;
use super::vector_child::OpenVectors;
use crate::expressions::translate::{Translation, Translator};
use crate::pg::exec::node::ExecNode;
use crate::pg::explain::Explain;
use crate::pg::{self, ports};

/// Statistics of a join, for EXPLAIN.
#[derive(Clone, Copy, Default, Debug)]
pub struct JoinCounters {
    /// The number of rows of the small sides.
    pub rows: u64,
    /// The number of batches in which they were joined.
    pub batches: u64,
    /// The largest number of bytes that a batch took.
    pub bytes: usize,
}

impl JoinCounters {
    /// The larger of each of the statistics of two processes, which read the same small sides.
    pub fn max(self, other: JoinCounters) -> JoinCounters {
        JoinCounters {
            rows: self.rows.max(other.rows),
            batches: self.batches.max(other.batches),
            bytes: self.bytes.max(other.bytes),
        }
    }

    /// Adds the statistics to EXPLAIN's output.
    pub fn explain(&self, explain: &Explain) {
        explain.integer(c"Small Side Rows", self.rows);
        if self.batches > 1 {
            explain.integer(c"Batches", self.batches);
        }
        explain.kilobytes(c"Small Side Memory", self.bytes);
    }
}

/// The outcome of reading a batch of the small sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Batch {
    /// The batch is ready for the rows of the lanes table.
    Ready,
    /// There are no more batches in which a row of the lanes table could find a match.
    None,
    /// The batch takes more memory than it may, and cannot be split.
    TooLarge,
}

/// A hash join under execution.
pub struct HashStage {
    sides: Vec<JoinedSide>,
    /// Whether the matches of some side depend on the small rows that earlier sides have found.
    has_dependent_sides: bool,
    /// Conditions on the rows that outer joins return.
    filters: Vec<MatchCondition>,
    /// The side that may be read in batches.
    divided: Option<usize>,
    /// The attributes that the keys and the conditions need.
    looked_at: Vec<usize>,
    columns: SmallColumns,
    outputs: Vec<Place>,
    counters: JoinCounters,
}

impl HashStage {
    /// Prepares a join. `translator` has already translated the other expressions of the query.
    /// `grouped` are the grouping expressions over small sides. The frame holds their codes first, and then those of the
    /// translator's [coded expressions](Translator::with_coded).
    ///
    /// # Errors
    /// Why the join cannot be vectorised.
    pub fn begin(
        plan: &HashJoinPlan,
        node: ExecNode<'_>,
        open: OpenVectors,
        translator: &mut Translator,
        grouped: &[*mut pg_sys::Node],
    ) -> Translation<HashStage> {
        pg::malloc::keep_memory_of_queries();
        let before = translator.asked();
        let of_results = translator.given().len();
        let mut sides: Vec<JoinedSide> = Vec::new();
        for _ in &plan.dimensions {
            let side = JoinedSide::begin(plan, node, open, &sides, translator)?;
            sides.push(side);
        }
        let filters = plan.filters.iter();
        let filters = filters.map(|filter| MatchCondition::of(*filter, plan, node, translator));
        let filters = filters.collect::<Translation<_>>()?;
        let columns = SmallColumns::of(plan, &sides, node, translator, (grouped, of_results))?;
        let mut with_places = sides.iter().enumerate();
        Ok(HashStage {
            has_dependent_sides: with_places
                .any(|(place, side)| side.depends_on_others(place, &columns)),
            sides,
            filters,
            divided: plan.divided,
            looked_at: translator.asked_since(&before).attributes(),
            columns,
            outputs: Place::of_outputs(plan),
            counters: JoinCounters::default(),
        })
    }

    /// Reads the next batch of the small sides. The caller then scans the lanes table from its
    /// beginning, with the key sets as a filter.
    pub fn next_batch(&mut self) -> Batch {
        if !self.has_more() {
            return Batch::None;
        }
        let is_first = self.counters.batches == 0;
        for (index, side) in self.sides.iter_mut().enumerate() {
            let is_divided = self.divided == Some(index);
            if !is_first && !is_divided {
                continue;
            }
            match side.next_batch(is_divided) {
                Batch::Ready => {}
                Batch::TooLarge => return Batch::TooLarge,
                Batch::None => return Batch::None,
            }
        }
        for index in 0..self.sides.len() {
            let (before, rest) = self.sides.split_at_mut(index);
            rest[0].begin_keys(before);
        }
        self.columns.begin(&self.sides);
        let sides = self.sides.iter();
        self.counters = JoinCounters {
            rows: sides.clone().map(|side| side.small.rows()).sum(),
            batches: sides
                .clone()
                .map(|side| side.small.batches())
                .max()
                .unwrap_or(0),
            bytes: self.counters.bytes.max(sides.map(JoinedSide::bytes).sum()),
        };
        Batch::Ready
    }

    /// Whether there may be rows of a small side after this batch.
    pub fn has_more(&self) -> bool {
        self.sides.iter().any(|side| side.small.has_more())
    }

    /// The keys of the batch by attribute, for zone maps.
    pub fn key_sets(&self) -> Vec<(usize, KeySet)> {
        self.sides.iter().flat_map(JoinedSide::key_sets).collect()
    }

    /// The attributes that the keys and the conditions need.
    pub fn looked_at(&self) -> &[usize] {
        &self.looked_at
    }

    /// Finds the first small rows of each selected row, and deselects the rows that the join
    /// does not return.
    ///
    /// # Errors
    /// The first error that evaluating a key or a condition for a selected row raises.
    pub fn find(&mut self, frame: &Frame<'_>, selection: &mut Selection) -> Evaluation<()> {
        self.find_from(0, frame, selection)?;
        if self.has_dependent_sides {
            if selection.is_empty() {
                self.move_on(frame, selection)?;
            }
        } else if self.sides.len() > 1 {
            for side in &mut self.sides {
                side.matched.keep(selection);
            }
        }
        self.filter(frame, selection)
    }

    fn find_from(
        &mut self,
        first: usize,
        frame: &Frame<'_>,
        selection: &mut Selection,
    ) -> Evaluation<()> {
        for index in first..self.sides.len() {
            let (before, rest) = self.sides.split_at_mut(index);
            match selection.is_empty() {
                true => rest[0].matched = Selection::NONE,
                false => rest[0].find(before, (frame, &mut self.columns), selection)?,
            }
        }
        Ok(())
    }

    /// Moves each row that was found on to its next small rows, and selects the rows that have
    /// more.
    ///
    /// # Errors
    /// As for [`Self::find`].
    pub fn find_next(&mut self, frame: &Frame<'_>, selection: &mut Selection) -> Evaluation<()> {
        self.move_on(frame, selection)?;
        self.filter(frame, selection)
    }

    fn move_on(&mut self, frame: &Frame<'_>, selection: &mut Selection) -> Evaluation<()> {
        let last = self.sides.len() - 1;
        let mut side = last;
        loop {
            let (before, rest) = self.sides.split_at_mut(side);
            rest[0].find_next(before, (frame, &mut self.columns), selection)?;
            if !selection.is_empty() {
                self.find_from(side + 1, frame, selection)?;
                if !selection.is_empty() {
                    return Ok(());
                }
                // A later side has nothing for these small rows.
                side = last;
                ports::CHECK_FOR_INTERRUPTS();
            } else if side == 0 {
                return Ok(());
            } else {
                side -= 1;
            }
        }
    }

    /// Deselects the joined rows that the conditions on them reject, and moves on if none is left.
    fn filter(&mut self, frame: &Frame<'_>, selection: &mut Selection) -> Evaluation<()> {
        while !self.filters.is_empty() && !selection.is_empty() {
            self.narrow(frame, selection)?;
            if !selection.is_empty() {
                return Ok(());
            }
            self.move_on(frame, selection)?;
        }
        Ok(())
    }

    /// Deselects the joined rows that the conditions on them reject.
    fn narrow(&mut self, frame: &Frame<'_>, selection: &mut Selection) -> Evaluation<()> {
        let sides = &self.sides;
        for filter in &mut self.filters {
            if !selection.is_empty() {
                let side = |index: usize| &sides[index];
                filter.narrow(side, frame, &mut self.columns, selection)?;
            }
        }
        Ok(())
    }

    /// Moves on to the next small rows of the batch that the join returns without a left row, and that the conditions
    /// on joined rows do not reject; returns their number, 0 at the end. They become the first rows of a vector whose
    /// lanes are all NULL. All left rows have found their rows already.
    ///
    /// # Errors
    /// The first error that a condition raises.
    pub fn next_small_rows(&mut self, scalars: &[Option<Scalar>]) -> Evaluation<usize> {
        loop {
            let [side] = &mut self.sides[..] else {
                return Ok(0);
            };
            let rows = side.next_small_rows();
            if rows == 0 || self.filters.is_empty() {
                return Ok(rows);
            }
            let mut selection = Selection::first(rows);
            self.narrow(&Frame::of_nulls(rows, scalars), &mut selection)?;
            if !selection.is_empty() {
                self.sides[0].give_selected(&selection);
                return Ok(selection.count());
            }
            ports::CHECK_FOR_INTERRUPTS();
        }
    }

    /// Looks up the codes and numbers of the small rows that were found.
    pub fn gather(&mut self, selection: &Selection) {
        self.columns.gather_results(&self.sides, selection);
    }

    /// The operands for the rows of the vector: codes, then numbers.
    pub fn operands(&self) -> &[Operand] {
        self.columns.operands()
    }

    /// The number of the row of the first small side that a row of the vector has found.
    pub fn found(&self, row: usize) -> u32 {
        self.sides[0].join.found().rows()[row]
    }

    /// The numbers of the rows of a small side that the rows of the vector have found.
    pub fn found_of(&self, side: usize) -> &[u32] {
        self.sides[side].join.found().rows()
    }

    /// The small side at an index.
    pub fn small_of(&self, side: usize) -> &SmallSide {
        &self.sides[side].small
    }

    /// The value of an output for a row of the vector.
    pub fn value(&self, output: usize, row: usize) -> Option<pg_sys::Datum> {
        let place = self.outputs[output];
        let side = &self.sides[place.side];
        side.small
            .value(place.output, side.join.found().rows()[row])
    }

    /// The value of an output of the first small side in a small row of the batch.
    pub fn small_value(&self, output: usize, small_row: u32) -> Option<pg_sys::Datum> {
        self.sides[0].small.value(output, small_row)
    }

    /// The statistics so far.
    pub fn counters(&self) -> JoinCounters {
        self.counters
    }

    /// The values of the grouping expressions by code, followed by those of the conditions.
    pub fn values(&self) -> Vec<Vec<Option<pg_sys::Datum>>> {
        self.columns.values()
    }
}
