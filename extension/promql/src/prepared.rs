//! Queries that are ready to be evaluated.

use crate::ast::{Expr, ValueType};
use crate::engine::{Options, QueryTime};
use crate::error::{Error, LimitError, execution};
use crate::grid::Grid;
use crate::parser::{ParseError, parse};
use crate::plan::{Plan, PlanContext};
use crate::source::Selection;

/// A query that is ready to be evaluated: its plan, and the form of its answer.
#[derive(Debug)]
pub struct Prepared {
    /// The text, which annotations quote.
    pub(crate) query: String,
    pub(crate) plan: Plan,
    pub(crate) shape: Shape,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// Series with a sample at each step.
    Steps,
    /// A value of this type at one time.
    Instant(ValueType),
}

impl Prepared {
    /// Parses a query and makes its plan.
    ///
    /// # Errors
    /// Why the query cannot be evaluated.
    pub fn new(query: &str, time: QueryTime, options: &Options) -> Result<Prepared, Error> {
        let expr = parse(query, options.parser)?;
        let plan = match time {
            QueryTime::At(at) => context(Grid::instant(at), 0, 0, options).plan(&expr)?,
            QueryTime::Steps { start, end, step } => {
                check_range(&expr, start, end, step)?;
                let grid = Grid::new(start, end, step);
                if grid.count > options.limits.steps_max {
                    return Err(LimitError::Steps(options.limits.steps_max).into());
                }
                context(grid, end - start, step, options).plan(&expr)?
            }
        };
        let shape = match (time, expr.value_type()) {
            (QueryTime::Steps { .. }, _) => Shape::Steps,
            (QueryTime::At(_), value_type) => Shape::Instant(value_type),
        };
        Ok(Prepared {
            query: query.to_owned(),
            plan,
            shape,
        })
    }

    /// The selections that an evaluation reads, each once.
    pub fn selections(&self) -> impl Iterator<Item = Selection<'_>> {
        self.plan.reads.iter().map(|read| Selection {
            matchers: &read.matchers,
            start: read.start,
            end: read.end,
        })
    }
}

fn context(grid: Grid, range: i64, step: i64, options: &Options) -> PlanContext {
    PlanContext {
        grid,
        range,
        step,
        lookback: options.lookback_delta,
        subquery_step: options.subquery_step,
        steps_max: options.limits.steps_max,
    }
}

fn check_range(expr: &Expr, start: i64, end: i64, step: i64) -> Result<(), Error> {
    let found = expr.value_type();
    if !matches!(found, ValueType::Scalar | ValueType::Vector) {
        return Err(ParseError::of_whole(format!(
            "invalid expression type {} for range query, must be Scalar or instant Vector",
            crate::quote::quote(found.documented())
        ))
        .into());
    }
    let is_near = |time: i64| time.unsigned_abs() < 1 << 60;
    if step < 1 || end < start || !is_near(start) || !is_near(end) {
        return execution("times of a range query have to be in order and its step positive");
    }
    Ok(())
}
