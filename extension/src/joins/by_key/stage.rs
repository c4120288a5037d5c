//! A hash join under execution: each vector of the lanes table is given what it finds on the small sides.
//!
//! ```text
//! find        each side in turn: the first small row of each left row that the sides before it left over
//! find_next   the last side that has another small row for some left rows goes on for these; the sides after it begin anew
//! ```
//! So each left row meets each combination of its small rows once. Left rows for which some side has nothing to give
//! leave all sides at once, so a side that begins anew always finds what it found before. That does not hold where a
//! side has a key over a side before it: what it finds depends on the small row found there. Then a side before goes on
//! until all sides after it find something.

use lanes_columnar::join::given::Given;
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
use crate::expressions::translate::{Translation, Translator};
use crate::pg::explain::Explain;
use crate::pg::{self, ports};

/// What a join did, for EXPLAIN.
#[derive(Clone, Copy, Default, Debug)]
pub struct JoinCounters {
    /// Rows of the small sides.
    pub rows: u64,
    /// Batches in which they were joined.
    pub batches: u64,
    /// Most bytes of a batch.
    pub bytes: usize,
}

impl JoinCounters {
    /// Shows what a hash join did.
    pub fn explain(&self, explain: &Explain) {
        explain.integer(c"Small Side Rows", self.rows);
        if self.batches > 1 {
            explain.integer(c"Batches", self.batches);
        }
        explain.kilobytes(c"Small Side Memory", self.bytes);
    }
}

/// A batch of the small side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Batch {
    /// It is ready: the lanes table's rows can look for theirs.
    Ready,
    /// There is none: no row of the lanes table can find anything any more.
    None,
    /// It takes more memory than it may, and cannot be divided.
    TooLarge,
}

/// A join under execution.
pub struct HashStage {
    sides: Vec<JoinedSide>,
    has_given_keys: bool,
    /// The side that may be read in batches.
    divided: Option<usize>,
    /// The attributes that keys look at.
    looked_at: Vec<usize>,
    /// What is grouped by, then conditions, each with its side.
    codes: Vec<(usize, GroupCodes)>,
    outputs: Vec<Place>,
    /// Outputs that are numbers the engine wants, and their numbers in this batch, where the side does not keep them.
    wanted: Vec<(Place, Option<SeriesColumn>)>,
    given: Vec<Given>,
    operands: Vec<Operand>,
    counters: JoinCounters,
}

/// Where an output is found.
#[derive(Clone, Copy)]
struct Place {
    side: usize,
    /// Its place among the outputs of that side.
    output: usize,
}

impl HashStage {
    /// A join about to begin. `translator` has translated what else the query wants of it; `grouped` are expressions over
    /// the small sides that are grouped by, `conditions` are [conditions](super::conditions) on them. The frame is given
    /// their codes before all else, in this order.
    ///
    /// # Errors
    /// What cannot be done by vectors.
    ///
    /// # Safety
    /// A node in execution, with a plan of its own and the small sides as its children.
    pub unsafe fn begin(
        plan: &HashJoinPlan,
        node: *mut pg_sys::CustomScanState,
        translator: &mut Translator,
        grouped: &[*mut pg_sys::Node],
        conditions: &[*mut pg_sys::Node],
    ) -> Translation<HashStage> {
        pg::malloc::keep_memory_of_joins();
        let before = translator.asked();
        let outputs: Vec<Place> = (0..plan.outputs.len())
            .map(|output| Place {
                side: plan.outputs[output].dimension,
                output: plan.place_in_dimension(output),
            })
            .collect();
        let wanted: Vec<Place> = translator.given().iter().map(|&of| outputs[of]).collect();
        // SAFETY: the caller's promise.
        unsafe {
            let mut sides: Vec<JoinedSide> = Vec::new();
            for _ in &plan.dimensions {
                let side = JoinedSide::begin(plan, node, &sides, translator)?;
                sides.push(side);
            }
            let mut codes = Vec::new();
            for (place, expression) in grouped.iter().chain(conditions).enumerate() {
                let side = plan.dimension_of(*expression)?;
                let keys = plan.dimensions[side].left_keys.len();
                let state = &raw mut (*node).ss.ps;
                let of_expression = match place < grouped.len() {
                    true => GroupCodes::of(*expression, plan, keys, state),
                    false => GroupCodes::of_condition(*expression, plan, keys, state),
                };
                codes.push((side, of_expression));
            }
            let numbers = codes.iter().map(|(_, codes)| Some(codes.codes().number));
            let of_outputs = wanted
                .iter()
                .map(|place| sides[place.side].small.number(place.output));
            let given: Option<Vec<Given>> = numbers
                .chain(of_outputs)
                .map(|number| number.map(Given::new))
                .collect();
            let given = given.ok_or("a joined column that is no number")?;
            Ok(HashStage {
                has_given_keys: sides.iter().any(JoinedSide::has_given_keys),
                sides,
                divided: plan.divided,
                looked_at: translator.asked_since(&before).attributes(),
                codes,
                outputs,
                wanted: wanted.into_iter().map(|place| (place, None)).collect(),
                operands: given.iter().map(Given::operand).collect(),
                given,
                counters: JoinCounters::default(),
            })
        }
    }

    /// Goes on to the next batch of the small sides. The lanes table is to be read from its beginning for it, with
    /// these key sets as a filter.
    ///
    /// # Safety
    /// The node is in execution.
    pub unsafe fn next_batch(&mut self) -> Batch {
        if !self.has_more() {
            return Batch::None;
        }
        let is_first = self.counters.batches == 0;
        for (index, side) in self.sides.iter_mut().enumerate() {
            let is_divided = self.divided == Some(index);
            if !is_first && !is_divided {
                continue;
            }
            // SAFETY: the caller's promise.
            match unsafe { side.next_batch(is_divided) } {
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

    /// Whether a small side has rows that are not in this batch.
    pub fn has_more(&self) -> bool {
        self.sides.iter().any(|side| side.small.has_more())
    }

    /// The keys of the batch by attribute, for zone maps.
    pub fn key_sets(&self) -> Vec<(usize, KeySet)> {
        self.sides.iter().flat_map(JoinedSide::key_sets).collect()
    }

    /// The attributes that keys look at.
    pub fn looked_at(&self) -> &[usize] {
        &self.looked_at
    }

    /// Finds the first small rows of each selected row; rows that the join does not give leave the selection.
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

    /// Goes on to the next small rows of each selected row; rows that have no more leave the selection.
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
                // Some side after it has nothing for these small rows.
                side = last;
                ports::CHECK_FOR_INTERRUPTS();
            } else if side == 0 {
                return Ok(());
            } else {
                side -= 1;
            }
        }
    }

    /// Once all left rows have found theirs: goes on to the next small rows of the batch that none has found. They are
    /// the first rows of a vector, whose lanes are all NULL; gives how many they are, 0 at the end.
    pub fn next_unmatched(&mut self) -> usize {
        match &mut self.sides[..] {
            [side] => side.next_unmatched(),
            _ => 0,
        }
    }

    /// Takes what the engine wants of the small rows that were found.
    ///
    /// # Safety
    /// The node is in execution.
    pub unsafe fn gather(&mut self, selection: &Selection) {
        for (side, codes) in &mut self.codes {
            if codes.are_known() {
                continue;
            }
            let side = &self.sides[*side];
            // SAFETY: the caller's promise; a row that was found.
            let know = |small_row| unsafe { codes.know(small_row, &side.small) };
            side.join.found().each(selection, know);
        }
        let codes = self.codes.iter();
        let codes = codes.map(|(side, codes)| (*side, Some(codes.codes())));
        let numbers = self.wanted.iter().map(|(place, numbers)| {
            let kept = || self.sides[place.side].small.kept_numbers(place.output);
            (place.side, numbers.as_ref().or_else(kept))
        });
        for (given, (side, column)) in self.given.iter_mut().zip(codes.chain(numbers)) {
            if let Some(column) = column {
                given.gather_found(column, self.sides[side].join.found(), selection);
            }
        }
    }

    /// What the rows of the vector were given: the codes, then numbers.
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

    /// A small side.
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

    /// What was done so far.
    pub fn counters(&self) -> JoinCounters {
        self.counters
    }

    /// The values of the expressions that were grouped by, by code; those of conditions follow.
    pub fn into_values(self) -> Vec<Vec<Option<pg_sys::Datum>>> {
        let codes = self.codes.into_iter();
        codes.map(|(_, codes)| codes.values()).collect()
    }
}
