//! `LanesLatest` under execution: one pass finds the first row of each group, then each row is a slot.
//!
//! If groups take too much memory, the pass is given up, and one pass each is made for the groups in either half of the
//! hashes of their keys. Rows are returned pass by pass.

use std::ffi::CStr;

use lanes_columnar::aggregate::Aggregation;
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::order::BestOfGroup;
use lanes_columnar::vector::Evaluation;

use super::hash_part::HashPart;
use super::offer;
use crate::custom_scan::callbacks::Callbacks;
use crate::custom_scan::node::{NextRow, Node, Planned};
use crate::custom_scan::privilege;
use crate::error;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::expressions::{aggregate_call, sort_key};
use crate::nodes::scan::plan::begin_table;
use crate::nodes::scan::row_filter::RowFilter;
use crate::nodes::top_n::row_plan::RowPlan;
use crate::pg::exec::expression::RowQual;
use crate::pg::exec::memory::hash_memory_limit;
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::slot::SlotWriter;
use crate::pg::explain::Explain;
use crate::pg::nodes;
use crate::pg::tree::View;
use crate::vectors::counters::Counters;
use crate::vectors::kept_rows::{KeptRows, ROWS_FETCHED};
use crate::vectors::prune::Filter;
use crate::vectors::vector_source::VectorSource;

static CALLBACKS: Callbacks = Callbacks::of::<LatestState>();

/// The node's state.
#[derive(Default)]
pub struct LatestState {
    /// The attributes that the plan reads, ascending.
    attributes: Vec<usize>,
    /// The conditions that PostgreSQL evaluates.
    kept: RowQual,
    counters: Counters,
    passed: u64,
    bytes: usize,
    /// How many passes have found rows.
    passes: u64,
}

/// The rows that a pass has found.
pub struct FoundRows {
    source: VectorSource,
    /// The groups of the passes to come.
    parts: Vec<HashPart>,
    /// The numbers of the rows, ascending.
    numbers: Vec<u64>,
    /// How many rows were fetched.
    fetched: usize,
    rows: KeptRows,
}

/// The pass over the table.
struct Pass {
    translator: Translator,
    filter: Filter,
    row_filter: RowFilter,
    groups: Aggregation,
    best: BestOfGroup,
    /// The groups that the pass looks for.
    part: HashPart,
    hashes: Box<[u64; VECTOR_ROWS]>,
    memory_limit: usize,
}

impl Node for LatestState {
    const NAME: &'static CStr = c"LanesLatest";
    const CALLBACKS: &'static Callbacks = &CALLBACKS;
    type Running = FoundRows;

    fn plan(planned: &Planned) {
        offer::plan(planned);
    }

    fn begin(&mut self, node: ExecNode<'_>) {
        let plan = RowPlan::of(node.plan());
        privilege::check_execute(nodes::plan_list(node.plan().expressions()));
        self.attributes = begin_table(node, plan.kept.as_ptr());
        self.kept = node.initialise_qual(plan.kept.as_ptr());
    }

    /// Reads the table.
    fn start(&mut self, node: ExecNode<'_>) -> Translation<FoundRows> {
        let pass = self.pass(node, HashPart::ALL)?;
        let table = node.scanned_table();
        let mut source = VectorSource::begin(table, pass.filter.zones_wanted.clone());
        pass.row_filter.free();
        let mut parts = vec![HashPart::ALL];
        self.passes = 0;
        let numbers = self.next_part(node, &mut source, &mut parts)?;
        Ok(FoundRows {
            source,
            parts,
            numbers: numbers.unwrap_or_default(),
            fetched: 0,
            rows: KeptRows::new(table, &self.attributes, node.query_memory()),
        })
    }

    fn next(
        &mut self,
        found: &mut FoundRows,
        node: ExecNode<'_>,
        row: &mut SlotWriter<'_>,
    ) -> Evaluation<NextRow> {
        while !found.rows.write_next(row) {
            while found.fetched == found.numbers.len() {
                let next = self.next_part(node, &mut found.source, &mut found.parts);
                match next.unwrap_or_else(|reason| error::unplanned(&reason)) {
                    Some(numbers) => (found.numbers, found.fetched) = (numbers, 0),
                    None => return Ok(NextRow::End),
                }
            }
            let to = (found.fetched + ROWS_FETCHED).min(found.numbers.len());
            let numbers = found.numbers[found.fetched..to].to_vec();
            found.rows.fetch(&mut found.source, numbers);
            found.fetched = to;
        }
        Ok(NextRow::Written)
    }

    fn note(&mut self, found: &mut FoundRows) {
        self.counters = found.source.counters();
    }

    fn end(found: FoundRows) {
        found.source.end();
        found.rows.free();
    }

    fn explain(&self, explain: &Explain) {
        RowPlan::of(explain.plan()).explain(explain);
        if explain.is_analyze() {
            self.counters.explain(explain);
            explain.integer(c"Vector Rows Passed", self.passed);
            explain.kilobytes(c"Memory", self.bytes);
            if self.passes > 1 {
                explain.integer(c"Passes", self.passes);
            }
        }
    }
}

impl LatestState {
    /// The rows of the next part whose groups fit into memory; `None` if there is no part left.
    fn next_part(
        &mut self,
        node: ExecNode<'_>,
        source: &mut VectorSource,
        parts: &mut Vec<HashPart>,
    ) -> Translation<Option<Vec<u64>>> {
        while let Some(part) = parts.pop() {
            let mut pass = self.pass(node, part)?;
            let mut looked_at = pass.translator.attributes();
            if !self.kept.is_empty() {
                looked_at.extend_from_slice(&self.attributes);
            }
            source.want_only(looked_at);
            source.rewind(pass.best.is_backward());
            let passed = pass
                .run(source)
                .unwrap_or_else(|failure| error::evaluation(failure));
            let bytes = pass.groups.bytes() + pass.best.bytes();
            pass.row_filter.free();
            let Some(passed) = passed else {
                parts.extend(part.halves());
                continue;
            };
            let rows = pass.best.rows().into_iter();
            let numbers: Vec<u64> = rows.map(|(number, _)| number).collect();
            self.passed += passed;
            self.passes += 1;
            self.bytes = self
                .bytes
                .max(bytes + numbers.capacity() * size_of::<u64>());
            return Ok(Some(numbers));
        }
        Ok(None)
    }

    /// A pass before its first vector.
    fn pass(&self, node: ExecNode<'_>, part: HashPart) -> Translation<Pass> {
        let plan = RowPlan::of(node.plan());
        let mut translator = Translator::new(Scalars::of(node));
        let filter = Filter::of(&mut translator, plan.pushed.iter().map(View::as_ptr))?;
        let mut keys = Vec::new();
        for group in &plan.groups {
            keys.push(
                aggregate_call::key(&mut translator, crate::pg::tree::plan_node((*group).cast()))?
                    .0,
            );
        }
        let best = BestOfGroup::new(sort_key::keys(&mut translator, &plan.keys)?);
        Ok(Pass {
            translator,
            filter,
            row_filter: RowFilter::new(node, self.kept, &self.attributes),
            groups: Aggregation::new(keys, Vec::new()),
            best,
            part,
            hashes: Box::new([0; VECTOR_ROWS]),
            memory_limit: hash_memory_limit(),
        })
    }
}

impl Pass {
    /// Reads the table, and returns how many rows passed the pushed conditions; `None` if groups take too much memory.
    fn run(&mut self, source: &mut VectorSource) -> Evaluation<Option<u64>> {
        let mut passed = 0;
        let scalars = &self.translator.scalars;
        while let Some(mut selection) = source.next(&mut self.filter, scalars)? {
            let frame = source.frame(scalars);
            if self.part != HashPart::ALL {
                self.groups
                    .hash_keys(&frame, &selection, &mut self.hashes)?;
                self.part.narrow(&self.hashes, &mut selection);
                if selection.is_empty() {
                    continue;
                }
            }
            passed += selection.count() as u64;
            let row_filter = &self.row_filter;
            let accept = |row: usize| row_filter.passes(source, row).then_some(0);
            let first_row = source.row_number(source.place(0));
            let (grouping, count) = self.groups.grouping(&frame, &selection)?;
            self.best
                .offer(&frame, first_row, &selection, &grouping, count, accept)?;
            let bytes = self.groups.bytes() + self.best.bytes();
            if bytes > self.memory_limit && self.part.can_halve(self.groups.groups()) {
                return Ok(None);
            }
        }
        Ok(Some(passed))
    }
}
