//! `LanesGapfill` under execution.

use std::ffi::CStr;

use lanes_columnar::vector::Evaluation;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::plan::GapfillPlan;
use super::run::{Range, Run};
use super::steps::{Steps, Width};
use crate::custom_scan::callbacks::Callbacks;
use crate::custom_scan::node::{NextRow, Node, Planned};
use crate::error;
use crate::expressions::scalar::{self, RunningNode};
use crate::expressions::translate::Translation;
use crate::gapfill_rewrite::spec::Bound;
use crate::pg::exec::memory::ValueLayout;
use crate::pg::exec::node::{CustomPlan, ExecNode};
use crate::pg::exec::slot::SlotWriter;
use crate::pg::explain::Explain;
use crate::pg::tree::{Expr, View};
use crate::pg::typed_datum::TypedDatum;

static CALLBACKS: Callbacks = Callbacks::of::<GapfillState>();

/// The node's state.
#[derive(Default)]
pub struct GapfillState {
    /// How many rows were added.
    added: u64,
}

impl Node for GapfillState {
    const NAME: &'static CStr = c"LanesGapfill";
    const CALLBACKS: &'static Callbacks = &CALLBACKS;
    type Running = Run;

    fn children(_plan: CustomPlan<'_>) -> usize {
        1
    }

    fn plan(planned: &Planned) {
        planned.take_path();
    }

    fn begin(&mut self, _node: ExecNode<'_>) {}

    fn start(&mut self, node: ExecNode<'_>) -> Translation<Run> {
        let plan = GapfillPlan::of(node.plan());
        let child = node.children().first().copied().ok_or("no input")?;
        let (_, type_of) = plan.bucket();
        let evaluated = |expr: Expr<'static>| scalar::evaluate(expr, RunningNode::of(node));
        let width = evaluated(plan.width).unwrap_or_else(|| null("width"));
        let width = match type_of {
            pg_sys::INT4OID => Width::Integer(i64::from(width.datum().value() as i32)),
            pg_sys::INT8OID => Width::Integer(width.datum().value() as i64),
            _ => Width::Interval(width.interval().ok_or("a width that is no interval")?),
        };
        let memory = node.lasting_memory();
        let zone = evaluated(plan.zone).map(|zone| {
            let layout = ValueLayout::of_type(pg_sys::TEXTOID);
            memory.copy(zone.datum(), layout)
        });
        let steps = Steps::new(&width, type_of, zone);
        let range = range(&plan, &steps, evaluated);
        Ok(Run::new(&plan, child, steps, range, memory))
    }

    fn next(
        &mut self,
        run: &mut Run,
        node: ExecNode<'_>,
        row: &mut SlotWriter<'_>,
    ) -> Evaluation<NextRow> {
        let memory = node.context().memory();
        let is_written = run.next(row, memory);
        self.added = run.added;
        Ok(NextRow::written(is_written))
    }

    fn end(run: Run) {
        run.free();
    }

    fn explain(&self, explain: &Explain) {
        let plan = GapfillPlan::of(explain.plan());
        explain.expressions(c"Width", &[plan.width.as_ptr()]);
        let bounds = |is_start: bool| {
            let of_side = plan
                .bounds
                .iter()
                .filter(move |(bound, _)| matches!(bound, Bound::From | Bound::After) == is_start);
            of_side.map(|(_, expr)| expr.as_ptr()).collect::<Vec<_>>()
        };
        explain.expressions(c"Start", &bounds(true));
        explain.expressions(c"Finish", &bounds(false));
        if explain.is_analyze() {
            explain.integer(c"Rows Added", self.added);
        }
    }
}

/// The first bucket, and the time before which all buckets start.
fn range(
    plan: &GapfillPlan,
    steps: &Steps,
    evaluated: impl Fn(Expr<'static>) -> Option<TypedDatum>,
) -> Range {
    let (mut start, mut finish) = (i64::MIN, i64::MAX);
    for (bound, expr) in &plan.bounds {
        let is_start = matches!(bound, Bound::From | Bound::After);
        let name = if is_start { "start" } else { "finish" };
        let limit = evaluated(*expr).unwrap_or_else(|| null(name));
        let limit = steps.number(limit.datum());
        if steps.is_infinite(limit) {
            refuse(
                &format!("the {name} of lanes.time_bucket_gapfill must be finite"),
                "Give start and finish, or compare the time with finite times.",
            )
        }
        match bound {
            Bound::From => start = start.max(limit),
            Bound::After => start = start.max(limit.saturating_add(1)),
            Bound::Before => finish = finish.min(limit),
            Bound::To => finish = finish.min(limit.saturating_add(1)),
        }
    }
    if start >= finish {
        refuse(
            "the start of lanes.time_bucket_gapfill must be before its finish",
            "Check the arguments, or the conditions on the time in WHERE.",
        )
    }
    let first = steps.floor(start);
    let Some(first) = first else {
        refuse(
            "the start of lanes.time_bucket_gapfill is out of range",
            "The first bucket starts before the smallest value of the type.",
        )
    };
    Range { first, finish }
}

fn null(name: &str) -> ! {
    refuse(
        &format!("the {name} of lanes.time_bucket_gapfill must not be NULL"),
        "Check the argument, or the condition on the time in WHERE.",
    )
}

fn refuse(message: &str, hint: &str) -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message,
        hint,
    )
}
