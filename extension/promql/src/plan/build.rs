//! The nodes of a plan.

use super::{
    AggregateNode, BinaryNode, Node, NodeKind, PlanContext, Read, SelectorNode, SubqueryNode,
    TimeReference, out_of_range,
};
use crate::ast::{
    Aggregate, Binary, Call, Expr, Extension, RangeSelector, Subquery, TimeModifiers,
    VectorSelector,
};
use crate::duration::NANOS_PER_MILLI;
use crate::error::{Error, LimitError};
use crate::grid::Grid;

/// Makes the nodes of a plan and collects its reads.
pub(super) struct Builder {
    pub(super) context: PlanContext,
    pub(super) reads: Vec<Read>,
}

/// Whether an expression has one value at all steps, and whether it is worth evaluating it once.
/// As in Prometheus, the parameter of an aggregation does not count.
fn invariance(expr: &Expr) -> (bool, bool) {
    match expr {
        Expr::Number(_) | Expr::String(_) => (true, false),
        Expr::Selector(selector) => (selector.time.at.is_some(), selector.time.at.is_some()),
        Expr::Range(range) => (range.selector.time.at.is_some(), false),
        Expr::Subquery(subquery) => (subquery.time.at.is_some(), false),
        Expr::Aggregate(aggregate) => invariance(&aggregate.expr),
        Expr::Unary(unary) => invariance(&unary.expr),
        Expr::Paren(paren) => invariance(&paren.expr),
        Expr::Binary(binary) => {
            let both = invariance(&binary.left).0 && invariance(&binary.right).0;
            (both, both)
        }
        Expr::Call(call) => {
            if matches!(call.function.name, "start" | "end" | "range" | "step") {
                return (true, false);
            }
            let are_fixed = call.args.iter().all(|arg| invariance(arg).0);
            let is_of_selector = call.function.name == "timestamp"
                && matches!(
                    call.args.first().map(Expr::unwrapped),
                    Some(Expr::Selector(_))
                );
            let is_fixed = are_fixed && (is_of_selector || !call.function.depends_on_time());
            (is_fixed, is_fixed)
        }
    }
}

impl Builder {
    /// The node of an expression that is evaluated at the times of a grid.
    pub(super) fn node(&mut self, expr: &Expr, grid: Grid) -> Result<Node, Error> {
        let is_fixed = grid.is_range && invariance(expr).1;
        let grid = if is_fixed { grid.first() } else { grid };
        let kind = match expr {
            Expr::Paren(paren) => {
                let mut inner = self.node(&paren.expr, grid)?;
                inner.is_fixed |= is_fixed;
                return Ok(inner);
            }
            Expr::Unary(unary) if !unary.is_minus => {
                NodeKind::Plus(Box::new(self.node(&unary.expr, grid)?))
            }
            Expr::Unary(unary) => NodeKind::Negate(Box::new(self.node(&unary.expr, grid)?)),
            Expr::Number(number) => NodeKind::Number(number.value),
            Expr::String(string) => NodeKind::Text(string.value.clone()),
            Expr::Selector(selector) => NodeKind::Selector(self.selector(selector, grid, None)?),
            Expr::Range(range) => self.range(range, grid)?,
            Expr::Subquery(subquery) => {
                NodeKind::Subquery(Box::new(self.subquery(subquery, grid)?))
            }
            Expr::Call(call) => self.call(call, grid)?,
            Expr::Aggregate(aggregate) => self.aggregate(aggregate, grid)?,
            Expr::Binary(binary) => self.binary(binary, grid)?,
        };
        Ok(Node {
            kind,
            span: expr.span(),
            value_type: expr.value_type(),
            is_fixed,
        })
    }

    fn range(&mut self, range: &RangeSelector, grid: Grid) -> Result<NodeKind, Error> {
        let context = &self.context;
        let nanos = context.duration(range.range, &range.range_expr, false)?;
        let node = self.selector(&range.selector, grid, Some(nanos / NANOS_PER_MILLI))?;
        Ok(NodeKind::Range(node, nanos))
    }

    fn call(&mut self, call: &Call, grid: Grid) -> Result<NodeKind, Error> {
        if let Some(value) = self.context.context_function(call.function.name) {
            return Ok(NodeKind::Number(value));
        }
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push(self.node(arg, grid)?);
        }
        Ok(NodeKind::Call(call.function, args))
    }

    fn aggregate(&mut self, aggregate: &Aggregate, grid: Grid) -> Result<NodeKind, Error> {
        let param = match &aggregate.param {
            Some(param) => Some(self.node(param, grid)?),
            None => None,
        };
        Ok(NodeKind::Aggregate(Box::new(AggregateNode {
            operator: aggregate.operator,
            param,
            inner: self.node(&aggregate.expr, grid)?,
            grouping: aggregate.grouping.clone(),
            without: aggregate.without,
        })))
    }

    fn binary(&mut self, binary: &Binary, grid: Grid) -> Result<NodeKind, Error> {
        Ok(NodeKind::Binary(Box::new(BinaryNode {
            operator: binary.operator,
            left: self.node(&binary.left, grid)?,
            right: self.node(&binary.right, grid)?,
            matching: binary.matching.clone(),
            returns_bool: binary.returns_bool,
        })))
    }

    fn time(&self, time: &TimeModifiers) -> Result<TimeReference, Error> {
        let offset = self
            .context
            .duration(time.offset, &time.offset_expr, true)?;
        Ok(TimeReference {
            offset: offset / NANOS_PER_MILLI,
            at: self.context.at(time.at),
        })
    }

    /// The first and the last time that a selector or subquery looks at.
    fn ends(time: &TimeReference, grid: Grid) -> Result<(i64, i64), Error> {
        // A quarter of the range of times leaves room for every sum below.
        let is_near = |time: i64| time.unsigned_abs() < 1 << 61;
        let (start, end) = (time.at.unwrap_or(grid.start), time.at.unwrap_or(grid.end()));
        if !is_near(start) || !is_near(end) || !is_near(time.offset) {
            return out_of_range();
        }
        Ok((start - time.offset, end - time.offset))
    }

    fn selector(
        &mut self,
        selector: &VectorSelector,
        grid: Grid,
        range: Option<i64>,
    ) -> Result<SelectorNode, Error> {
        let time = self.time(&selector.time)?;
        let (start, end) = Self::ends(&time, grid)?;
        let lookback = self.context.lookback;
        let (before, after) = match (range, selector.extension) {
            (None, Some(Extension::Smoothed)) => (lookback, lookback),
            (None, _) => (lookback, 0),
            (Some(range), None) => (range, 0),
            (Some(range), Some(Extension::Anchored)) => (range + lookback, 0),
            (Some(range), Some(Extension::Smoothed)) => (range + lookback, lookback),
        };
        let read = self.read(selector, start.saturating_sub(before - 1), end + after);
        Ok(SelectorNode {
            matchers: selector.matchers.clone(),
            time,
            extension: selector.extension,
            read,
        })
    }

    /// The place of a read that includes a range of time.
    fn read(&mut self, selector: &VectorSelector, start: i64, end: i64) -> usize {
        let matchers = &selector.matchers;
        let overlaps = |read: &Read| read.start <= end && start <= read.end;
        let mut reads = self.reads.iter();
        if let Some(place) = reads.position(|read| read.matchers == *matchers && overlaps(read)) {
            let read = &mut self.reads[place];
            (read.start, read.end) = (read.start.min(start), read.end.max(end));
            read.uses += 1;
            return place;
        }
        self.reads.push(Read {
            matchers: matchers.clone(),
            start,
            end,
            uses: 1,
        });
        self.reads.len() - 1
    }

    fn subquery(&mut self, subquery: &Subquery, grid: Grid) -> Result<SubqueryNode, Error> {
        let time = self.time(&subquery.time)?;
        let range = self
            .context
            .duration(subquery.range, &subquery.range_expr, false)?;
        let range = range / NANOS_PER_MILLI;
        let step = self
            .context
            .duration(subquery.step, &subquery.step_expr, false)?;
        let step = match step {
            0 => self.context.subquery_step,
            // A step below a millisecond is the shortest one.
            step => (step / NANOS_PER_MILLI).max(1),
        };
        let (start, end) = Self::ends(&time, grid)?;
        // The steps are multiples of the step, whatever the times of the query.
        let open = start.saturating_sub(range);
        let mut first = step * (open / step);
        if first <= open {
            first += step;
        }
        let grid = Grid::new(first, end, step);
        if grid.count > self.context.steps_max {
            return Err(LimitError::Steps(self.context.steps_max).into());
        }
        Ok(SubqueryNode {
            inner: self.node(&subquery.expr, grid)?,
            grid,
            range,
            time,
        })
    }
}
