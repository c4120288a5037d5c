//! One small side of a hash join under execution.

use lanes_columnar::aggregate::Key;
use lanes_columnar::join::equal::EqualJoin;
use lanes_columnar::join::key_set::KeySet;
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::{Operand, Value};

use super::given_key::GivenKey;
use super::key_types;
use super::marked_rows::MarkedRows;
use super::match_condition::MatchCondition;
use super::plan::{HashJoinPlan, JoinKind};
use super::small_columns::SmallColumns;
use super::small_side::SmallSide;
use super::stage::Batch;
use super::vector_child::OpenVectors;
use crate::expressions::aggregate_call;
use crate::expressions::translate::{Translation, Translator};
use crate::pg::exec::node::ExecNode;
use crate::pg::ports;

/// A small side, its keys, and the small rows that the rows of the current vector have found.
pub struct JoinedSide {
    pub join: EqualJoin,
    pub small: SmallSide,
    kind: JoinKind,
    /// The rows of the vector that have found a small row of the batch.
    pub matched: Selection,
    /// The small rows of the batch that some left row has found, if the join returns these or the others.
    marked: MarkedRows,
    /// The attribute of the lanes table that each key is, if the key is a plain column.
    key_attributes: Vec<Option<usize>>,
    /// The keys over earlier sides, and the operands that hold their codes.
    given_keys: Vec<GivenKey>,
    operands: Vec<Operand>,
    /// What else a small row has to meet to be a match.
    conditions: Vec<MatchCondition>,
}

impl JoinedSide {
    /// Prepares the side that follows the sides `before`. Its plan is the child of the same
    /// index.
    ///
    /// # Errors
    /// Why the join cannot be vectorised.
    pub fn begin(
        plan: &HashJoinPlan,
        node: ExecNode<'_>,
        open: OpenVectors,
        before: &[JoinedSide],
        translator: &mut Translator,
    ) -> Translation<JoinedSide> {
        let child = before.len();
        let dimension = &plan.dimensions[child];
        let (mut keys, mut key_attributes) = (Vec::new(), Vec::new());
        let (mut given_keys, mut is_given) = (Vec::new(), Vec::new());
        for (index, left) in dimension.left_keys.iter().enumerate() {
            let is_small = plan.is_small(*left);
            is_given.push(is_small);
            if is_small {
                let place = given_keys.len();
                given_keys.push(GivenKey::of(*left, index, plan, before, node)?);
                key_attributes.push(None);
                keys.push(Key::Number(Value::Joined(NumberType::I64, place)));
                continue;
            }
            let (key, _) =
                aggregate_call::key(translator, crate::pg::tree::plan_node((*left).cast()))?;
            key_attributes.push(key.column());
            keys.push(key);
        }
        let small = SmallSide::of(node, child, &is_given, open);
        let keys = keys.into_iter().zip(is_given).enumerate();
        let keys: Vec<_> = keys
            .map(|(index, (key, is_given))| match is_given {
                true => key,
                false => key_types::widened(key, small.key_number(index)),
            })
            .collect();
        let conditions = dimension.conditions.iter();
        let conditions =
            conditions.map(|condition| MatchCondition::of(*condition, plan, node, translator));
        Ok(JoinedSide {
            conditions: conditions.collect::<Translation<_>>()?,
            small,
            join: EqualJoin::new(keys),
            kind: dimension.kind,
            matched: Selection::NONE,
            marked: MarkedRows::default(),
            key_attributes,
            operands: given_keys.iter().map(GivenKey::operand).collect(),
            given_keys,
        })
    }

    /// Whether its matches depend on the rows that earlier sides have found. Its place among the sides is given.
    pub fn depends_on_others(&self, place: usize, columns: &SmallColumns) -> bool {
        let mut conditions = self.conditions.iter();
        let reads_before = conditions.any(|condition| condition.reads_before(place, columns));
        !self.given_keys.is_empty() || reads_before
    }

    /// Prepares the keys over earlier sides, once all sides have started a batch.
    pub fn begin_keys(&mut self, before: &[JoinedSide]) {
        for key in &mut self.given_keys {
            key.begin(before);
        }
    }

    /// Reads the next batch. A side that is not divisible has a single batch. The result is
    /// [`Batch::None`] if the batch is empty and left rows need a match.
    pub fn next_batch(&mut self, is_divisible: bool) -> Batch {
        self.join.clear();
        if !self.small.read(&mut self.join, self.kind, is_divisible) {
            return Batch::TooLarge;
        }
        let rows = self.join.rows();
        if self.kind.keeps_small_rows() {
            self.marked.begin(rows, self.kind == JoinKind::RightSemi);
        }
        match rows > 0 || !self.kind.needs_match() {
            true => Batch::Ready,
            false => Batch::None,
        }
    }

    /// Whether a left row without a match is dropped.
    pub fn needs_match(&self) -> bool {
        self.kind.needs_match()
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

    /// Finds the first small row of each selected row, and deselects the rows that the join does
    /// not return. The sides `before` have found their rows already.
    ///
    /// # Errors
    /// The first error that evaluating a key of a selected row raises.
    pub fn find(
        &mut self,
        before: &[JoinedSide],
        (frame, columns): (&Frame<'_>, &mut SmallColumns),
        selection: &mut Selection,
    ) -> Evaluation<()> {
        self.matched = *selection;
        for key in &mut self.given_keys {
            key.gather(before, &mut self.small, selection);
        }
        let of_keys = Frame {
            joined: &self.operands,
            ..*frame
        };
        self.join.find(&of_keys, &mut self.matched)?;
        if self.kind.wants_small_rows_alone() {
            *selection = Selection::NONE;
            return self.mark_all(before, frame, columns);
        }
        self.meet_conditions(before, frame, columns)?;
        self.note_matches();
        match self.kind {
            JoinKind::RightSemi | JoinKind::RightAnti => {}
            JoinKind::Inner | JoinKind::Semi | JoinKind::Right => *selection = self.matched,
            JoinKind::Anti => {
                *selection = selection.and_not(&self.matched);
                if !self.small.wants_keys_alone(self.kind) {
                    self.join.find_nothing(selection);
                }
            }
            JoinKind::Left | JoinKind::Full => {
                self.join.find_nothing(&selection.and_not(&self.matched));
            }
        }
        Ok(())
    }

    /// Moves each row that has another small row on to it, and deselects the other rows.
    ///
    /// # Errors
    /// The first error that a condition raises.
    pub fn find_next(
        &mut self,
        before: &[JoinedSide],
        (frame, columns): (&Frame<'_>, &mut SmallColumns),
        selection: &mut Selection,
    ) -> Evaluation<()> {
        match self.kind.wants_keys_alone() {
            true => self.matched = Selection::NONE,
            false => {
                self.join.find_next(&mut self.matched);
                self.meet_conditions(before, frame, columns)?;
                self.note_matches();
            }
        }
        *selection = self.matched;
        Ok(())
    }

    /// Moves the matched rows on until their small rows meet the conditions. Rows without such a small row are no
    /// longer matched.
    fn meet_conditions(
        &mut self,
        before: &[JoinedSide],
        frame: &Frame<'_>,
        columns: &mut SmallColumns,
    ) -> Evaluation<()> {
        if self.conditions.is_empty() {
            return Ok(());
        }
        let (mut asked, mut met) = (self.matched, Selection::NONE);
        while !asked.is_empty() {
            let mut meeting = asked;
            self.narrow(before, frame, columns, &mut meeting)?;
            met = met.or(&meeting);
            asked = asked.and_not(&meeting);
            self.join.find_next(&mut asked);
            ports::CHECK_FOR_INTERRUPTS();
        }
        self.matched = met;
        Ok(())
    }

    /// Deselects the rows that do not meet the conditions with their current small rows.
    fn narrow(
        &mut self,
        before: &[JoinedSide],
        frame: &Frame<'_>,
        columns: &mut SmallColumns,
        meeting: &mut Selection,
    ) -> Evaluation<()> {
        let mut conditions = std::mem::take(&mut self.conditions);
        let own = &*self;
        let side = |index: usize| before.get(index).unwrap_or(own);
        let result = conditions
            .iter_mut()
            .try_for_each(|condition| match meeting.is_empty() {
                true => Ok(()),
                false => condition.narrow(side, frame, columns, meeting),
            });
        self.conditions = conditions;
        result
    }

    /// Marks all small rows that the matched rows find. A small row that is marked is not looked at again. No row is
    /// matched afterwards.
    fn mark_all(
        &mut self,
        before: &[JoinedSide],
        frame: &Frame<'_>,
        columns: &mut SmallColumns,
    ) -> Evaluation<()> {
        let mut asked = std::mem::replace(&mut self.matched, Selection::NONE);
        if self.conditions.is_empty() {
            // The first row of each key stands for the others, until the rows are returned.
            let marks = self.marked.marks();
            let found = self.join.found();
            found.each(&asked, |small_row| marks[small_row as usize] = true);
            return Ok(());
        }
        self.join.pass_over(self.marked.marks(), &mut asked);
        while !asked.is_empty() {
            let mut meeting = asked;
            self.narrow(before, frame, columns, &mut meeting)?;
            self.marked.mark_found(self.join.found().rows(), &meeting);
            self.join.find_next(&mut asked);
            self.join.pass_over(self.marked.marks(), &mut asked);
            ports::CHECK_FOR_INTERRUPTS();
        }
        Ok(())
    }

    fn note_matches(&mut self) {
        if self.kind.keeps_small_rows() {
            self.marked
                .mark_found(self.join.found().rows(), &self.matched);
        }
    }

    /// Moves on to the next small rows of the batch that the join returns without a left row;
    /// returns their number, 0 at the end. All left rows have found their rows already.
    pub fn next_small_rows(&mut self) -> usize {
        let has_firsts = self.kind.wants_small_rows_alone() && self.conditions.is_empty();
        if has_firsts && self.marked.is_at_start() {
            self.join.spread_to_equal_keys(self.marked.marks());
        }
        let rows = self.marked.next(VECTOR_ROWS);
        self.join.give(rows.iter().copied());
        rows.len()
    }

    /// Gives the first rows of the vector the small rows of the selected rows.
    pub fn give_selected(&mut self, selection: &Selection) {
        let mut rows = Vec::with_capacity(VECTOR_ROWS);
        let found = self.join.found().rows();
        selection.for_each(|row| rows.push(found[row]));
        self.join.give(rows.into_iter());
    }

    /// Bytes of memory that the batch takes.
    pub fn bytes(&self) -> usize {
        let given_keys = self.given_keys.iter().map(GivenKey::bytes);
        self.join.bytes() + self.small.bytes() + given_keys.sum::<usize>()
    }
}
