//! `LanesHashJoin` under execution: a slot for each joined row.

use std::ffi::CStr;

use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::selection::Selection;

use super::column_child;
use super::row_bound::RowBound;
use crate::custom_scan::callbacks::Callbacks;
use crate::custom_scan::node::{NextRow, Node, Planned};
use crate::custom_scan::{names, privilege, stand_in};
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::joins::by_key::coded;
use crate::joins::by_key::output::Output;
use crate::joins::by_key::stage::{Batch, HashStage, JoinCounters};
use crate::nodes::engine::plan::{self, EnginePlan};
use crate::pg::exec::child::Child;
use crate::pg::exec::node::{CustomPlan, ExecNode};
use crate::pg::exec::slot::SlotWriter;
use crate::pg::explain::Explain;
use crate::vectors::counters::Counters;
use crate::vectors::prune::Filter;
use crate::vectors::row_cursor::RowCursor;
use crate::vectors::vector_source::VectorSource;

static CALLBACKS: Callbacks = Callbacks::of::<HashJoinState>();

/// The node's state.
#[derive(Default)]
pub struct HashJoinState {
    counters: Counters,
    joined: JoinCounters,
    passed: u64,
    /// Whether PostgreSQL's own plan has taken over.
    has_handed_over: bool,
}

/// The join, from the first row on.
pub struct RunningHashJoin {
    pub source: VectorSource,
    translator: Translator,
    filter: Filter,
    pub stage: HashStage,
    outputs: Vec<Output>,
    /// Whether there is a batch whose joined rows have not all been returned.
    has_batch: bool,
    /// The bound of the rows that the query can return, if not all, and whether the first pass has found it.
    bound: Option<RowBound>,
    is_bound_found: bool,
    /// The attributes that the conditions read.
    of_quals: Vec<usize>,
    /// The plan that returns the rows instead.
    stand_in: Option<Child>,
    /// The rows of the current vector that have found their current small rows.
    selection: Selection,
    /// The rows of the selection that are still to be returned.
    rows: RowCursor,
    /// Whether the current rows are small rows alone, which have no row of the table.
    pub has_no_left: bool,
}

impl Node for HashJoinState {
    const NAME: &'static CStr = names::HASH_JOIN;
    const CALLBACKS: &'static Callbacks = &CALLBACKS;
    type Running = RunningHashJoin;

    fn children(plan: CustomPlan<'_>) -> usize {
        EnginePlan::of(plan).small_sides()
    }

    fn stand_in(running: &RunningHashJoin) -> Option<Child> {
        running.stand_in
    }

    fn plan(planned: &Planned) {
        plan::plan_engine(planned);
    }

    fn begin(&mut self, node: ExecNode<'_>) {
        let plan = EnginePlan::of(node.plan());
        privilege::check_execute(plan.expressions().into_iter());
    }

    fn start(&mut self, node: ExecNode<'_>) -> Translation<RunningHashJoin> {
        let plan = EnginePlan::of(node.plan());
        let table = node.open_table(plan.index);
        let Some(join) = &plan.hash_join else {
            return Err("no join".into());
        };
        let scalars = Scalars::of(node);
        let mut translator = Translator::of_joined(scalars, join.joined_columns(0))
            .with_coded(coded::of_conditions(join));
        let mut filter = Filter::of(&mut translator, plan.quals.iter().copied())?;
        let of_quals = translator.attributes();
        let bound = plan.row_limit.as_ref();
        let bound = bound.map(|limit| RowBound::begin(limit, &mut translator));
        let bound = bound.transpose()?;
        let outputs = Output::of(&plan.keys, join, node, &translator)?;
        let open = column_child::open;
        let mut stage = HashStage::begin(join, node, open, &mut translator, &[])?;
        let mut source = VectorSource::begin(table, filter.zones_wanted.clone());
        source.want_only(translator.attributes());
        let batch = stage.next_batch();
        // Only joins whose plan has a stand-in can be too large.
        self.has_handed_over = batch == Batch::TooLarge;
        let hand_over = || stand_in::begin(node, join.dimensions.len());
        if batch == Batch::Ready {
            filter.key_sets = stage.key_sets();
        }
        let is_one_batch = batch == Batch::Ready && !stage.has_more();
        Ok(RunningHashJoin {
            source,
            translator,
            filter,
            stage,
            outputs,
            has_batch: batch == Batch::Ready,
            bound: bound.filter(|_| is_one_batch),
            is_bound_found: false,
            of_quals,
            stand_in: self.has_handed_over.then(hand_over),
            selection: Selection::NONE,
            rows: RowCursor::EMPTY,
            has_no_left: false,
        })
    }

    fn next(
        &mut self,
        running: &mut RunningHashJoin,
        _node: ExecNode<'_>,
        row: &mut SlotWriter<'_>,
    ) -> Evaluation<NextRow> {
        let Some(number) = running.next_row(&mut self.passed)? else {
            return Ok(NextRow::End);
        };
        running.write(number, row);
        Ok(NextRow::Written)
    }

    fn note(&mut self, running: &mut RunningHashJoin) {
        self.counters = running.source.counters();
        self.joined = running.stage.counters();
    }

    fn end(running: RunningHashJoin) {
        running.source.end();
    }

    fn explain(&self, explain: &Explain) {
        let plan = EnginePlan::of(explain.plan());
        explain.table(plan.index);
        plan.explain(explain);
        if explain.is_analyze() {
            self.counters.explain(explain);
            self.joined.explain(explain);
            if self.has_handed_over {
                explain.text(c"Handed Over", stand_in::SMALL_SIDE_TOO_LARGE);
            }
            explain.integer(c"Vector Rows Passed", self.passed);
        }
    }
}

impl HashJoinState {
    /// The next joined rows, all of one vector; `None` at the end.
    ///
    /// # Errors
    /// The error that a key or a condition raises.
    pub fn next_rows(&mut self, running: &mut RunningHashJoin) -> Evaluation<Option<Selection>> {
        let has_rows = running.next_rows(&mut self.passed)?;
        Ok(has_rows.then_some(running.selection))
    }
}

impl RunningHashJoin {
    /// The next joined row: a row of the source's vector, with the small row that the stage has found for it.
    #[inline]
    fn next_row(&mut self, passed: &mut u64) -> Evaluation<Option<usize>> {
        loop {
            if let Some(row) = self.rows.next_row() {
                return Ok(Some(row));
            }
            if !self.next_rows(passed)? {
                return Ok(None);
            }
            self.rows = RowCursor::new(self.selection);
        }
    }

    /// Goes on to the next joined rows, all of one vector; false at the end.
    fn next_rows(&mut self, passed: &mut u64) -> Evaluation<bool> {
        if !self.is_bound_found {
            self.find_bound()?;
        }
        while self.has_batch {
            if self.has_no_left {
                self.selection = Selection::NONE;
            } else if !self.selection.is_empty() {
                let frame = self.source.frame(&self.translator.scalars);
                self.stage.find_next(&frame, &mut self.selection)?;
                *passed += self.selection.count() as u64;
                if !self.selection.is_empty() {
                    return Ok(true);
                }
            }
            let scalars = &self.translator.scalars;
            if !self.has_no_left && self.source.advance(&mut self.filter, scalars) {
                if self.find_rows(passed)? {
                    return Ok(true);
                }
                continue;
            }
            let small_rows = self.stage.next_small_rows(scalars)?;
            self.has_no_left = small_rows > 0;
            if self.has_no_left {
                self.selection = Selection::first(small_rows);
                return Ok(true);
            }
            self.has_batch = self.stage.next_batch() == Batch::Ready;
            if self.has_batch {
                self.filter.key_sets = self.stage.key_sets();
                self.source.rewind(false);
            }
        }
        Ok(false)
    }

    /// Makes the first pass, if the query can return only some of the rows.
    fn find_bound(&mut self) -> Evaluation<()> {
        self.is_bound_found = true;
        let Some(bound) = &mut self.bound else {
            return Ok(());
        };
        let (source, scalars) = (&mut self.source, &self.translator.scalars);
        let looked_at = std::mem::take(&mut self.of_quals);
        if !bound.find(
            source,
            &mut self.filter,
            &mut self.stage,
            scalars,
            looked_at,
        )? {
            self.bound = None;
        }
        self.source.end_look_ahead(self.translator.attributes());
        Ok(())
    }

    /// Finds the first small rows of the current vector's rows; false if none has one.
    fn find_rows(&mut self, passed: &mut u64) -> Evaluation<bool> {
        let scalars = &self.translator.scalars;
        if let Some(bound) = &mut self.bound
            && !bound.can_take(&self.source, scalars)
        {
            self.source.skip();
            return Ok(false);
        }
        let Some(mut selection) = self.source.pass(&mut self.filter, scalars)? else {
            return Ok(false);
        };
        if let Some(bound) = &mut self.bound {
            bound.narrow(&mut self.source, scalars, &mut selection)?;
        }
        self.source.fill(Some(self.stage.looked_at()));
        self.stage
            .find(&self.source.frame(scalars), &mut selection)?;
        if selection.is_empty() {
            return Ok(false);
        }
        self.source.fill(None);
        *passed += selection.count() as u64;
        self.selection = selection;
        Ok(true)
    }

    /// Writes a row. Columns that the node never returns are NULL.
    #[inline]
    fn write(&self, row: usize, target: &mut SlotWriter<'_>) {
        let (outlet, place) = (self.source.outlet(), self.source.place(row));
        for (index, output) in self.outputs.iter().enumerate() {
            match output {
                Output::Attribute(_) if self.has_no_left => target.set(index, None),
                Output::Attribute(attribute) => {
                    target.set_pair(index, outlet.value(place, *attribute));
                }
                Output::Small(output) => target.set(index, self.stage.value(*output, row)),
            }
        }
        target.clear_from(self.outputs.len());
    }
}
