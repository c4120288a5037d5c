//! A hash join under execution: each vector of the lanes table is given what it finds on the small side.

use lanes_columnar::join::equal::EqualJoin;
use lanes_columnar::join::given::Given;
use lanes_columnar::join::key_set::KeySet;
use lanes_columnar::join::series::SeriesColumn;
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::Operand;
use pgrx::pg_sys;

use super::group_codes::GroupCodes;
use super::key_types;
use super::plan::{HashJoinPlan, JoinKind};
use super::small_side::SmallSide;
use crate::custom_scan::aggregate_call;
use crate::custom_scan::translate::{Translation, Translator};

/// What a join did, for EXPLAIN.
#[derive(Clone, Copy, Default, Debug)]
pub struct JoinCounters {
    /// Rows of the small side.
    pub rows: u64,
    /// Batches in which they were joined.
    pub batches: u64,
    /// Most bytes of a batch.
    pub bytes: usize,
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
    join: EqualJoin,
    small: SmallSide,
    kind: JoinKind,
    /// The rows of the vector whose small row is one of the batch.
    matched: Selection,
    /// The lanes table's attributes that are keys, where one is a column itself.
    key_attributes: Vec<Option<usize>>,
    /// The attributes that keys look at.
    looked_at: Vec<usize>,
    codes: Vec<GroupCodes>,
    /// Outputs that are numbers the engine wants, and their numbers in this batch.
    wanted: Vec<(usize, Option<SeriesColumn>)>,
    given: Vec<Given>,
    operands: Vec<Operand>,
    counters: JoinCounters,
}

impl HashStage {
    /// A join about to begin. `translator` has translated what else the query wants of it; `grouped` are expressions over
    /// the small side that are grouped by, which the frame is given before all else.
    ///
    /// # Errors
    /// What cannot be done by vectors.
    ///
    /// # Safety
    /// A node in execution, with a plan of its own and the small side as its child.
    pub unsafe fn begin(
        plan: &HashJoinPlan,
        node: *mut pg_sys::CustomScanState,
        translator: &mut Translator,
        grouped: &[*mut pg_sys::Node],
    ) -> Translation<HashStage> {
        let before = translator.asked();
        let (mut keys, mut key_attributes) = (Vec::new(), Vec::new());
        let wanted = translator.given().to_vec();
        // SAFETY: the caller's promise.
        unsafe {
            for left in &plan.left_keys {
                let (key, _) = aggregate_call::key(translator, *left)?;
                key_attributes.push(key.column());
                keys.push(key);
            }
            let small = SmallSide::of(node, keys.len());
            let keys = keys.into_iter().enumerate();
            let keys: Vec<_> = keys
                .map(|(index, key)| key_types::widened(key, small.key_number(index)))
                .collect();
            let of_codes = grouped.iter().map(|expression| {
                GroupCodes::of(*expression, plan, keys.len(), &raw mut (*node).ss.ps)
            });
            let codes: Vec<GroupCodes> = of_codes.collect();
            let numbers = codes.iter().map(|codes| Some(codes.codes().number));
            let numbers = numbers.chain(wanted.iter().map(|output| small.number(*output)));
            let given: Option<Vec<Given>> = numbers.map(|number| number.map(Given::new)).collect();
            let given = given.ok_or("a joined column that is no number")?;
            Ok(HashStage {
                join: EqualJoin::new(keys),
                small,
                kind: plan.kind,
                matched: Selection::NONE,
                key_attributes,
                looked_at: translator.asked_since(&before).attributes(),
                codes,
                wanted: wanted.into_iter().map(|output| (output, None)).collect(),
                operands: given.iter().map(Given::operand).collect(),
                given,
                counters: JoinCounters::default(),
            })
        }
    }

    /// Goes on to the next batch of the small side. The lanes table is to be read from its beginning for it, with these key
    /// sets as a filter.
    ///
    /// # Safety
    /// The node is in execution.
    pub unsafe fn next_batch(&mut self) -> Batch {
        if !self.small.has_more() {
            return Batch::None;
        }
        self.join.clear();
        // SAFETY: the caller's promise.
        if !unsafe { self.small.read(&mut self.join, self.kind) } {
            return Batch::TooLarge;
        }
        let rows = self.join.rows();
        self.codes
            .iter_mut()
            .for_each(|codes| codes.begin(rows + 1));
        for (output, numbers) in &mut self.wanted {
            *numbers = self.small.numbers(*output);
        }
        let bytes = self.join.bytes() + self.small.bytes();
        self.counters = JoinCounters {
            rows: self.small.rows(),
            batches: self.small.batches(),
            bytes: self.counters.bytes.max(bytes),
        };
        match rows > 0 || !self.kind.needs_match() {
            true => Batch::Ready,
            false => Batch::None,
        }
    }

    /// Whether the small side has rows that are not in this batch.
    pub fn has_more(&self) -> bool {
        self.small.has_more()
    }

    /// The keys of the batch by attribute, for zone maps.
    pub fn key_sets(&self) -> Vec<(usize, KeySet)> {
        if !self.kind.needs_match() {
            return Vec::new();
        }
        let attributes = self.key_attributes.iter().enumerate();
        let sets = attributes
            .filter_map(|(key, attribute)| Some(((*attribute)?, self.join.key_set(key)?)));
        sets.collect()
    }

    /// The attributes that keys look at.
    pub fn looked_at(&self) -> &[usize] {
        &self.looked_at
    }

    /// Finds the first small row of each selected row; rows that the join does not give leave the selection.
    ///
    /// # Errors
    /// The first error that evaluating a key of a selected row raises.
    pub fn find(&mut self, frame: &Frame<'_>, selection: &mut Selection) -> Evaluation<()> {
        self.matched = *selection;
        self.join.find(frame, &mut self.matched)?;
        match self.kind {
            JoinKind::Inner | JoinKind::Semi => *selection = self.matched,
            JoinKind::Anti => *selection = selection.and_not(&self.matched),
            JoinKind::Left => self.join.find_nothing(&selection.and_not(&self.matched)),
        }
        Ok(())
    }

    /// Goes on to the next small row of each selected row; rows that have no more leave the selection.
    pub fn find_next(&mut self, selection: &mut Selection) {
        match self.kind.wants_keys_alone() {
            true => self.matched = Selection::NONE,
            false => self.join.find_next(&mut self.matched),
        }
        *selection = self.matched;
    }

    /// Takes what the engine wants of the small rows that were found.
    ///
    /// # Safety
    /// The node is in execution.
    pub unsafe fn gather(&mut self, selection: &Selection) {
        let found = self.join.found();
        if !self.codes.is_empty() {
            let mut last = None;
            selection.for_each(|row| {
                let small_row = found[row];
                if last != Some(small_row) {
                    last = Some(small_row);
                    for codes in &mut self.codes {
                        // SAFETY: the caller's promise; a row that was found.
                        unsafe { codes.know(small_row, &self.small) }
                    }
                }
            });
        }
        let numbers = self.wanted.iter().map(|(_, numbers)| numbers.as_ref());
        let columns = self.codes.iter().map(|codes| Some(codes.codes()));
        for (given, column) in self.given.iter_mut().zip(columns.chain(numbers)) {
            if let Some(column) = column {
                given.gather(column, found, selection);
            }
        }
    }

    /// What the rows of the vector were given: the codes, then numbers.
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }

    /// The number of the small row that a row of the vector has found.
    pub fn found(&self, row: usize) -> u32 {
        self.join.found()[row]
    }

    /// The value of an output for a row of the vector.
    pub fn value(&self, output: usize, row: usize) -> Option<pg_sys::Datum> {
        self.small_value(output, self.found(row))
    }

    /// The value of an output in a small row of the batch.
    pub fn small_value(&self, output: usize, small_row: u32) -> Option<pg_sys::Datum> {
        self.small.value(output, small_row)
    }

    /// What was done so far.
    pub fn counters(&self) -> JoinCounters {
        self.counters
    }

    /// The values of the expressions that were grouped by, by code.
    pub fn into_values(self) -> Vec<Vec<Option<pg_sys::Datum>>> {
        self.codes.into_iter().map(GroupCodes::values).collect()
    }
}
