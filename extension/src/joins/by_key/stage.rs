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
//! on the small row found there. Then the earlier side moves on until all later sides find a
//! row.

use lanes_columnar::join::joined_column::JoinedColumn;
use lanes_columnar::join::key_set::KeySet;
use lanes_columnar::join::series::SeriesColumn;
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::Operand;
use pgrx::pg_sys;

use super::group_codes::GroupCodes;
use super::joined_side::JoinedSide;
use super::plan::HashJoinPlan;
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
    has_given_keys: bool,
    /// The side that may be read in batches.
    divided: Option<usize>,
    /// The attributes that the keys need.
    looked_at: Vec<usize>,
    /// The codes of grouping expressions, then those of conditions and counted values, each with its side.
    codes: Vec<(usize, GroupCodes)>,
    outputs: Vec<Place>,
    /// Outputs that the engine needs as numbers. The numbers of this batch are here if the side
    /// does not keep them itself.
    wanted: Vec<(Place, Option<SeriesColumn>)>,
    joined: Vec<JoinedColumn>,
    operands: Vec<Operand>,
    counters: JoinCounters,
}

/// Makes the codes of an expression.
type NewCodes = fn(*mut pg_sys::Node, &HashJoinPlan, usize, ExecNode<'_>) -> GroupCodes;

/// The side and index of an output.
#[derive(Clone, Copy)]
struct Place {
    side: usize,
    /// The index among the outputs of its side.
    output: usize,
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
        let outputs: Vec<Place> = (0..plan.outputs.len())
            .map(|output| Place {
                side: plan.outputs[output].dimension,
                output: plan.place_in_dimension(output),
            })
            .collect();
        let wanted: Vec<Place> = translator.given().iter().map(|&of| outputs[of]).collect();
        let mut sides: Vec<JoinedSide> = Vec::new();
        for _ in &plan.dimensions {
            let side = JoinedSide::begin(plan, node, open, &sides, translator)?;
            sides.push(side);
        }
        let mut codes = Vec::new();
        let mut add = |expressions: &[*mut pg_sys::Node], of: NewCodes| -> Translation<()> {
            for expression in expressions {
                let side = plan.dimension_of(*expression)?;
                let keys = plan.dimensions[side].left_keys.len();
                codes.push((side, of(*expression, plan, keys, node)));
            }
            Ok(())
        };
        add(grouped, GroupCodes::of)?;
        if let Some(coded) = translator.coded() {
            add(&coded.conditions, GroupCodes::of_condition)?;
            add(&coded.values, GroupCodes::of_value)?;
        }
        let numbers = codes.iter().map(|(_, codes)| Some(codes.codes().number));
        let of_outputs = wanted
            .iter()
            .map(|place| sides[place.side].small.number(place.output));
        let joined: Option<Vec<JoinedColumn>> = numbers
            .chain(of_outputs)
            .map(|number| number.map(JoinedColumn::new))
            .collect();
        let joined = joined.ok_or("a joined column that is no number")?;
        Ok(HashStage {
            has_given_keys: sides.iter().any(JoinedSide::has_given_keys),
            sides,
            divided: plan.divided,
            looked_at: translator.asked_since(&before).attributes(),
            codes,
            outputs,
            wanted: wanted.into_iter().map(|place| (place, None)).collect(),
            operands: joined.iter().map(JoinedColumn::operand).collect(),
            joined,
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
        for (side, codes) in &mut self.codes {
            let side = &self.sides[*side];
            codes.begin(side.join.rows(), side.needs_match(), &side.small);
        }
        for (place, numbers) in &mut self.wanted {
            *numbers = self.sides[place.side].small.numbers(place.output);
        }
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

    /// The attributes that the keys need.
    pub fn looked_at(&self) -> &[usize] {
        &self.looked_at
    }

    /// Finds the first small rows of each selected row, and deselects the rows that the join
    /// does not return.
    ///
    /// # Errors
    /// The first error that evaluating a key of a selected row raises.
    pub fn find(&mut self, frame: &Frame<'_>, selection: &mut Selection) -> Evaluation<()> {
        self.find_from(0, frame, selection)?;
        if self.has_given_keys {
            return match selection.is_empty() {
                true => self.find_next(frame, selection),
                false => Ok(()),
            };
        }
        if self.sides.len() > 1 {
            for side in &mut self.sides {
                side.matched.keep(selection);
            }
        }
        Ok(())
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
                false => rest[0].find(before, frame, selection)?,
            }
        }
        Ok(())
    }

    /// Moves each selected row on to its next small rows, and deselects the rows that have no
    /// more.
    ///
    /// # Errors
    /// As for [`Self::find`].
    pub fn find_next(&mut self, frame: &Frame<'_>, selection: &mut Selection) -> Evaluation<()> {
        let last = self.sides.len() - 1;
        let mut side = last;
        loop {
            self.sides[side].find_next(selection);
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

    /// Moves on to the next small rows of the batch that no left row has found; returns their
    /// number, 0 at the end. They become the first rows of a vector whose lanes are all NULL.
    /// All left rows have found their rows already.
    pub fn next_unmatched(&mut self) -> usize {
        match &mut self.sides[..] {
            [side] => side.next_unmatched(),
            _ => 0,
        }
    }

    /// Looks up the codes and numbers of the small rows that were found.
    pub fn gather(&mut self, selection: &Selection) {
        for (side, codes) in &mut self.codes {
            if codes.are_known() {
                continue;
            }
            let side = &self.sides[*side];
            let evaluate = |small_row| codes.evaluate(small_row, &side.small);
            side.join.found().each(selection, evaluate);
        }
        let codes = self.codes.iter();
        let codes = codes.map(|(side, codes)| (*side, Some(codes.codes())));
        let numbers = self.wanted.iter().map(|(place, numbers)| {
            let kept = || self.sides[place.side].small.kept_numbers(place.output);
            (place.side, numbers.as_ref().or_else(kept))
        });
        for (joined, (side, column)) in self.joined.iter_mut().zip(codes.chain(numbers)) {
            if let Some(column) = column {
                joined.gather_found(column, self.sides[side].join.found(), selection);
            }
        }
    }

    /// The operands for the rows of the vector: codes, then numbers.
    pub fn operands(&self) -> &[Operand] {
        &self.operands
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
        let codes = self.codes.iter();
        codes.map(|(_, codes)| codes.values().to_vec()).collect()
    }
}
