//! `LanesTimeJoin` under execution: a slot for each row of the join.
//!
//! If the right side exceeds its memory limit, PostgreSQL's own plan takes over ([`stand_in`]). If
//! rows were returned before, it takes over from the current vector on: that plan reads the left
//! side by a `LanesScan`, which begins there.

use std::ffi::CStr;

use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::operands;
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::value::{Operand, Value};
use lanes_columnar::vector::{Evaluation, EvaluationError, narrow};
use pgrx::pg_sys;

use crate::custom_scan::callbacks::Callbacks;
use crate::custom_scan::node::{NextRow, Node, Planned};
use crate::custom_scan::{names, privilege, stand_in};
use crate::expressions::translate::{Scalars, Translation, Translator, to_datum};
use crate::joins::by_time::stage::JoinStage;
use crate::nodes::engine::plan::{self, EnginePlan};
use crate::nodes::scan;
use crate::pg::exec::child::Child;
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::slot::SlotWriter;
use crate::pg::explain::Explain;
use crate::vectors::counters::Counters;
use crate::vectors::prune::{Filter, predicates};
use crate::vectors::row_cursor::RowCursor;
use crate::vectors::vector_source::VectorSource;

static CALLBACKS: Callbacks = Callbacks::of::<JoinState>();

/// The node's state.
#[derive(Default)]
pub struct JoinState {
    counters: Counters,
    /// The counters of the right side, and the algorithm that found its rows.
    joined: Option<(Counters, &'static str)>,
    passed: u64,
    bytes: usize,
    /// Whether PostgreSQL's own plan has taken over.
    has_handed_over: bool,
}

/// A column of the result.
enum Output {
    /// The table's attribute.
    Attribute(usize),
    /// A column of the join, by its place.
    Joined(NumberType, usize),
    /// An expression over columns of the join, and its values for the current vector.
    Computed(Value, Operand),
}

impl Output {
    /// The origin of each column.
    fn of(columns: &[*mut pg_sys::Node], translator: &mut Translator) -> Translation<Vec<Output>> {
        let mut outputs = Vec::new();
        for column in columns {
            outputs.push(
                if translator.is_given(crate::pg::tree::plan_node((*column).cast())) {
                    match translator.value(crate::pg::tree::plan_node((*column).cast()))? {
                        Value::Joined(number, place) => Output::Joined(number, place),
                        value => Output::Computed(value, Operand::Null),
                    }
                } else {
                    Output::Attribute(
                        translator.attribute(crate::pg::tree::plan_node((*column).cast()))?,
                    )
                },
            );
        }
        Ok(outputs)
    }
}

/// The join, from the first row on.
pub struct RunningTimeJoin {
    source: VectorSource,
    translator: Translator,
    filter: Filter,
    /// `None`: the right side exceeds its memory limit.
    join: Option<JoinStage>,
    /// The plan that returns the rows instead.
    stand_in: Option<Child>,
    /// The conditions on the rows of the join.
    quals_above: Vec<Predicate>,
    outputs: Vec<Output>,
    rows: RowCursor,
}

impl Node for JoinState {
    const NAME: &'static CStr = names::TIME_JOIN;
    const CALLBACKS: &'static Callbacks = &CALLBACKS;
    type Running = RunningTimeJoin;

    fn stand_in(running: &RunningTimeJoin) -> Option<Child> {
        running.stand_in
    }

    fn plan(planned: &Planned) {
        plan::plan_engine(planned);
    }

    fn begin(&mut self, node: ExecNode<'_>) {
        let plan = EnginePlan::of(node.plan());
        privilege::check_execute(plan.expressions().into_iter());
    }

    fn start(&mut self, node: ExecNode<'_>) -> Translation<RunningTimeJoin> {
        let plan = EnginePlan::of(node.plan());
        let table = node.open_table(plan.index);
        let Some(join) = &plan.join else {
            return Err("no join".into());
        };
        let scalars = Scalars::of(node);
        let mut translator = Translator::of_joined(scalars, join.joined_columns(plan.index));
        let filter = Filter::of(&mut translator, plan.quals.iter().copied())?;
        let outputs = Output::of(&plan.keys, &mut translator)?;
        let quals_above = predicates(&mut translator, plan.quals_above.iter().copied())?;
        let join = JoinStage::begin(join, node, &mut translator)?;
        let mut source = VectorSource::begin(table, filter.zones_wanted.clone());
        source.want_only(translator.attributes());
        self.has_handed_over = join.is_none();
        Ok(RunningTimeJoin {
            source,
            translator,
            filter,
            join,
            stand_in: self.has_handed_over.then(|| hand_over(node, 0)),
            quals_above,
            outputs,
            rows: RowCursor::EMPTY,
        })
    }

    fn next(
        &mut self,
        running: &mut RunningTimeJoin,
        node: ExecNode<'_>,
        row: &mut SlotWriter<'_>,
    ) -> Evaluation<NextRow> {
        let next = match running.next_row(&mut self.passed) {
            Err(EvaluationError::TooMuchMemory) => {
                self.note(running);
                running.join = None;
                self.has_handed_over = true;
                let first = running.source.row_number(running.source.place(0));
                running.stand_in = Some(hand_over(node, first));
                None
            }
            next => next?,
        };
        if let Some(number) = next {
            running.write(number, row);
        }
        Ok(NextRow::written(next.is_some()))
    }

    fn note(&mut self, running: &mut RunningTimeJoin) {
        self.counters = running.source.counters();
        if let Some(join) = &mut running.join {
            self.bytes = join.bytes();
            self.joined = Some((join.end(), join.algorithm()));
        }
    }

    fn end(running: RunningTimeJoin) {
        running.source.end();
    }

    fn explain(&self, explain: &Explain) {
        let plan = EnginePlan::of(explain.plan());
        explain.table(plan.index);
        plan.explain(explain);
        if explain.is_analyze() {
            self.counters.explain(explain);
            if let Some((counters, algorithm)) = &self.joined {
                counters.explain_joined(algorithm, explain);
            }
            explain.integer(c"Vector Rows Passed", self.passed);
            explain.kilobytes(c"Memory", self.bytes);
            if self.has_handed_over {
                explain.text(c"Handed Over", stand_in::RIGHT_SIDE_TOO_LARGE);
            }
        }
    }
}

/// PostgreSQL's own plan, for the rows of the left side from this one on. The plan is a join,
/// perhaps below a projection, whose left side is a scan of the left table.
fn hand_over(node: ExecNode<'_>, first_row: u64) -> Child {
    let join = stand_in::begin(node, 0);
    let mut left = join;
    while let Some(below) = left.left() {
        left = below;
    }
    scan::state::begin_at(left, first_row);
    join
}

impl RunningTimeJoin {
    /// The next row of the join, relative to the source's vector.
    #[inline]
    fn next_row(&mut self, passed: &mut u64) -> Evaluation<Option<usize>> {
        loop {
            if let Some(row) = self.rows.next_row() {
                return Ok(Some(row));
            }
            if !self.next_vector(passed)? {
                return Ok(None);
            }
        }
    }

    /// Goes on to the next vector, and finds the joined rows of its rows; false at the end.
    fn next_vector(&mut self, passed: &mut u64) -> Evaluation<bool> {
        let Some(join) = &mut self.join else {
            return Ok(false);
        };
        let scalars = &self.translator.scalars;
        let Some(mut selection) = self.source.next(&mut self.filter, scalars)? else {
            return Ok(false);
        };
        let frame = self.source.frame(scalars);
        join.find(&frame, &mut selection)?;
        let given = join.operands();
        let frame = Frame {
            joined: given,
            ..frame
        };
        // The sub-select computes its columns before any condition above it is evaluated.
        for output in &mut self.outputs {
            if let Output::Computed(value, operand) = output {
                *operand = value.evaluate(&frame, &selection)?;
            }
        }
        narrow(&mut self.quals_above, &frame, &mut selection)?;
        *passed += selection.count() as u64;
        self.rows = RowCursor::new(selection);
        Ok(true)
    }

    /// Writes a row. Columns that the node never returns are NULL.
    #[inline]
    fn write(&self, row: usize, target: &mut SlotWriter<'_>) {
        let (outlet, place) = (self.source.outlet(), self.source.place(row));
        let given = self.join.as_ref().map_or(&[][..], JoinStage::operands);
        for (index, output) in self.outputs.iter().enumerate() {
            let (number, operand) = match output {
                Output::Attribute(attribute) => {
                    target.set_pair(index, outlet.value(place, *attribute));
                    continue;
                }
                Output::Joined(number, place) => (*number, given[*place]),
                Output::Computed(value, operand) => (value.number(), *operand),
            };
            let value = operands::value(number, operand, row);
            target.set(index, value.map(|value| to_datum(number, value)));
        }
        target.clear_from(self.outputs.len());
    }
}
