//! `LanesHashLatest` under execution: one pass finds the first joined row of each group, then each row is a slot.
//!
//! A joined row is a row of the lanes table with the small row that it has found. The pass keeps
//! the numbers of both; the values are fetched afterwards. So the small side has to fit in one
//! batch. If it does not, or if the groups exceed their memory limit, PostgreSQL's own plan takes
//! over.

use std::ffi::CStr;

use lanes_columnar::aggregate::{Aggregation, Key};
use lanes_columnar::order::BestOfGroup;
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::Value;
use pgrx::pg_sys;

use super::column_child;
use super::latest_plan::{self, LatestJoinPlan};
use crate::custom_scan::callbacks::Callbacks;
use crate::custom_scan::node::{NextRow, Node, Planned};
use crate::custom_scan::{privilege, stand_in};
use crate::error;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::expressions::{aggregate_call, sort_key};
use crate::joins::by_key::coded;
use crate::joins::by_key::output::Output;
use crate::joins::by_key::stage::{Batch, HashStage, JoinCounters};
use crate::pg::exec::child::Child;
use crate::pg::exec::node::{CustomPlan, ExecNode};
use crate::pg::exec::slot::SlotWriter;
use crate::pg::explain::Explain;
use crate::vectors::counters::Counters;
use crate::vectors::kept_rows::{KeptRows, ROWS_FETCHED};
use crate::vectors::prune::Filter;
use crate::vectors::vector_source::VectorSource;

static CALLBACKS: Callbacks = Callbacks::of::<LatestJoinState>();

/// The node's state.
#[derive(Default)]
pub struct LatestJoinState {
    counters: Counters,
    joined: JoinCounters,
    passed: u64,
    bytes: usize,
    /// Whether PostgreSQL's own plan has taken over.
    has_handed_over: bool,
}

/// The rows that the pass has found.
pub struct FoundJoinedRows {
    source: VectorSource,
    stage: HashStage,
    outputs: Vec<Output>,
    /// The numbers of the lanes table's rows, ascending, each with its small row.
    rows: Vec<(u64, u32)>,
    /// How many rows were fetched and returned.
    fetched: usize,
    returned: usize,
    kept: KeptRows,
    /// The row that is returned, by attribute. Attributes that the plan does not read stay NULL.
    values: Vec<Option<pg_sys::Datum>>,
    /// The plan that returns the rows instead.
    stand_in: Option<Child>,
}

/// The pass over the lanes table.
struct Pass {
    translator: Translator,
    filter: Filter,
    stage: HashStage,
    groups: Aggregation,
    best: BestOfGroup,
    /// The attributes that groups and sort keys read.
    looked_at: Vec<usize>,
    memory_limit: usize,
}

impl Node for LatestJoinState {
    const NAME: &'static CStr = c"LanesHashLatest";
    const CALLBACKS: &'static Callbacks = &CALLBACKS;
    type Running = FoundJoinedRows;

    fn children(_plan: CustomPlan<'_>) -> usize {
        1
    }

    fn stand_in(found: &FoundJoinedRows) -> Option<Child> {
        found.stand_in
    }

    fn plan(planned: &Planned) {
        latest_plan::plan(planned);
    }

    fn begin(&mut self, node: ExecNode<'_>) {
        privilege::check_execute(LatestJoinPlan::of(node.plan()).expressions());
    }

    /// Reads the table.
    fn start(&mut self, node: ExecNode<'_>) -> Translation<FoundJoinedRows> {
        let plan = LatestJoinPlan::of(node.plan());
        let table = node.open_table(plan.join.table);
        let (mut pass, outputs) = Pass::of(&plan, node)?;
        let mut source = VectorSource::begin(table, pass.filter.zones_wanted.clone());
        source.want_only(pass.translator.attributes());
        source.rewind(pass.best.is_backward());
        self.passed = 0;
        let is_done = !self.has_handed_over
            && pass
                .run(&mut source, &mut self.passed)
                .unwrap_or_else(|failure| error::evaluation(failure));
        self.has_handed_over = !is_done;
        let rows = match is_done {
            true => pass.best.rows(),
            false => Vec::new(),
        };
        self.bytes = pass.bytes() + rows.capacity() * size_of::<(u64, u32)>();
        let attributes = Output::attributes(&outputs);
        Ok(FoundJoinedRows {
            source,
            stage: pass.stage,
            outputs,
            rows,
            fetched: 0,
            returned: 0,
            kept: KeptRows::new(table, &attributes, node.query_memory()),
            values: vec![None; table.width()],
            stand_in: self.has_handed_over.then(|| stand_in::begin(node, 1)),
        })
    }

    fn next(
        &mut self,
        found: &mut FoundJoinedRows,
        _node: ExecNode<'_>,
        row: &mut SlotWriter<'_>,
    ) -> Evaluation<NextRow> {
        Ok(NextRow::written(found.write_next(row)))
    }

    /// Equal parameters and an equal snapshot give the same rows, which are fetched once more.
    fn rewind(found: &mut FoundJoinedRows, node: ExecNode<'_>) -> bool {
        if !node.changed_parameters().is_null() {
            return false;
        }
        (found.fetched, found.returned) = (0, 0);
        found.kept.clear();
        found.stand_in.is_none()
    }

    fn note(&mut self, found: &mut FoundJoinedRows) {
        self.counters = found.source.counters();
        self.joined = found.stage.counters();
    }

    fn end(found: FoundJoinedRows) {
        found.source.end();
        found.kept.free();
    }

    fn explain(&self, explain: &Explain) {
        LatestJoinPlan::of(explain.plan()).explain(explain);
        if explain.is_analyze() {
            self.counters.explain(explain);
            self.joined.explain(explain);
            explain.integer(c"Vector Rows Passed", self.passed);
            explain.kilobytes(c"Memory", self.bytes);
            if self.has_handed_over {
                explain.text(c"Handed Over", stand_in::GROUPS_TOO_LARGE);
            }
        }
    }
}

impl FoundJoinedRows {
    /// Writes the next row; false at the end. Columns that the node never returns are NULL.
    fn write_next(&mut self, row: &mut SlotWriter<'_>) -> bool {
        let Some(&(number, small_row)) = self.rows.get(self.returned) else {
            return false;
        };
        if self.returned == self.fetched {
            let to = (self.fetched + ROWS_FETCHED).min(self.rows.len());
            let rows = &self.rows[self.fetched..to];
            let numbers = rows.iter().map(|(number, _)| *number).collect();
            self.kept.fetch(&mut self.source, numbers);
            self.fetched = to;
        }
        self.returned += 1;
        if let Some((fetched, values)) = self.kept.next_row() {
            debug_assert_eq!(fetched, number);
            for (attribute, value, is_null) in values {
                self.values[attribute] = (!is_null).then_some(value);
            }
        }
        for (index, output) in self.outputs.iter().enumerate() {
            let value = match output {
                Output::Attribute(attribute) => self.values[*attribute],
                Output::Small(output) => self.stage.small_value(*output, small_row),
            };
            row.set(index, value);
        }
        row.clear_from(self.outputs.len());
        true
    }
}

impl Pass {
    /// The pass before its first vector, and where the columns of the result come from.
    fn of(plan: &LatestJoinPlan, node: ExecNode<'_>) -> Translation<(Pass, Vec<Output>)> {
        let is_joined = |group: &*mut pg_sys::Node| plan.join.is_small(*group);
        let grouped: Vec<_> = plan.groups.iter().copied().filter(is_joined).collect();
        let scalars = Scalars::of(node);
        let joined = plan.join.joined_columns(grouped.len());
        let mut translator =
            Translator::of_joined(scalars, joined).with_coded(coded::of_conditions(&plan.join));
        let filter = Filter::of(&mut translator, plan.quals.iter().copied())?;
        let of_quals = translator.asked();
        let (mut groups, mut codes) = (Vec::new(), 0);
        for group in &plan.groups {
            if is_joined(group) {
                groups.push(Key::Number(Value::Joined(NumberType::I64, codes)));
                codes += 1;
                continue;
            }
            groups.push(
                aggregate_call::key(&mut translator, crate::pg::tree::plan_node((*group).cast()))?
                    .0,
            );
        }
        let keys = sort_key::keys(&mut translator, &plan.keys)?;
        let looked_at = translator.asked_since(&of_quals).attributes();
        let open = column_child::open;
        let stage = HashStage::begin(&plan.join, node, open, &mut translator, &grouped)?;
        // The result's columns are fetched after the pass, so another translator records them.
        let joined = plan.join.joined_columns(0);
        let columns = Translator::of_joined(Scalars::Unknown, joined);
        let outputs = Output::of(&plan.columns, &plan.join, node, &columns)?;
        let pass = Pass {
            translator,
            filter,
            stage,
            groups: Aggregation::new(groups, Vec::new()),
            best: BestOfGroup::new(keys),
            looked_at,
            memory_limit: stand_in::memory_limit(),
        };
        Ok((pass, outputs))
    }

    /// Reads the table; false if the small side or the groups exceed their memory limit.
    fn run(&mut self, source: &mut VectorSource, passed: &mut u64) -> Evaluation<bool> {
        match self.stage.next_batch() {
            Batch::None => return Ok(true),
            Batch::TooLarge => return Ok(false),
            Batch::Ready if self.stage.has_more() => return Ok(false),
            Batch::Ready => self.filter.key_sets = self.stage.key_sets(),
        }
        let scalars = std::mem::take(&mut self.translator.scalars);
        while source.advance(&mut self.filter, &scalars) {
            let Some(selection) = source.pass(&mut self.filter, &scalars)? else {
                continue;
            };
            *passed += self.add(source, &scalars, selection)?;
            if self.bytes() > self.memory_limit {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Offers rows of the current vector, with each small row that they find, to their groups. Returns the number of
    /// joined rows.
    fn add(
        &mut self,
        source: &mut VectorSource,
        scalars: &[Option<Scalar>],
        mut selection: Selection,
    ) -> Evaluation<u64> {
        source.fill(Some(self.stage.looked_at()));
        self.stage.find(&source.frame(scalars), &mut selection)?;
        if selection.is_empty() {
            return Ok(0);
        }
        source.fill(Some(&self.looked_at));
        let first_row = source.row_number(source.place(0));
        let mut passed = 0;
        while !selection.is_empty() {
            self.stage.gather(&selection);
            let frame = Frame {
                joined: self.stage.operands(),
                ..source.frame(scalars)
            };
            let (grouping, count) = self.groups.grouping(&frame, &selection)?;
            let accept = |row| Some(self.stage.found(row));
            self.best
                .offer(&frame, first_row, &selection, &grouping, count, accept)?;
            passed += selection.count() as u64;
            self.stage
                .find_next(&source.frame(scalars), &mut selection)?;
        }
        Ok(passed)
    }

    fn bytes(&self) -> usize {
        self.groups.bytes() + self.best.bytes()
    }
}
