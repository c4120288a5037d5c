//! A syntax tree to a plan: durations are evaluated, times of `@` fixed, parentheses gone, and
//! what does not depend on the step is evaluated once ([`Node::is_fixed`]).
//!
//! The plan names each read of the source once, in [`Plan::reads`]: selectors with the same
//! matchers and overlapping times share one. All times are milliseconds.

mod build;
mod duration;

use crate::ast::{At, Expr, Extension, Matching, ValueType};
use crate::error::{Error, execution};
use crate::function::Function;
use crate::grid::Grid;
use crate::matcher::Matcher;
use crate::span::Span;
use crate::token::TokenKind;

/// A query that is ready to be evaluated.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What is evaluated.
    pub(crate) root: Node,
    /// The times at which it is.
    pub(crate) grid: Grid,
    /// The reads of the source.
    pub(crate) reads: Vec<Read>,
}

/// A read of the source.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) matchers: Vec<Matcher>,
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// How many selectors need it.
    pub(crate) uses: usize,
}

/// An expression of a plan.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    pub(crate) span: Span,
    pub(crate) value_type: ValueType,
    /// Whether all steps have the value of the first one.
    pub(crate) is_fixed: bool,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Number(f64),
    Text(String),
    Selector(SelectorNode),
    Range(SelectorNode, i64),
    Subquery(Box<SubqueryNode>),
    Call(&'static Function, Vec<Node>),
    Aggregate(Box<AggregateNode>),
    Binary(Box<BinaryNode>),
    Negate(Box<Node>),
    /// A sign that changes nothing, but whose operand is no selector to the function around it.
    Plus(Box<Node>),
}

/// When a selector or subquery looks at its samples.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeReference {
    pub(crate) offset: i64,
    pub(crate) at: Option<i64>,
}

impl TimeReference {
    /// The time that is looked at in the evaluation of a time.
    #[inline(always)]
    pub(crate) fn of(&self, time: i64) -> i64 {
        self.at.unwrap_or(time) - self.offset
    }
}

#[derive(Debug)]
pub(crate) struct SelectorNode {
    pub(crate) matchers: Vec<Matcher>,
    pub(crate) time: TimeReference,
    pub(crate) extension: Option<Extension>,
    /// The place of the read among those of the plan.
    pub(crate) read: usize,
}

#[derive(Debug)]
pub(crate) struct SubqueryNode {
    pub(crate) inner: Node,
    pub(crate) grid: Grid,
    pub(crate) range: i64,
    pub(crate) time: TimeReference,
}

#[derive(Debug)]
pub(crate) struct AggregateNode {
    pub(crate) operator: TokenKind,
    pub(crate) inner: Node,
    pub(crate) param: Option<Node>,
    pub(crate) grouping: Vec<String>,
    pub(crate) without: bool,
}

#[derive(Debug)]
pub(crate) struct BinaryNode {
    pub(crate) operator: TokenKind,
    pub(crate) left: Node,
    pub(crate) right: Node,
    pub(crate) matching: Matching,
    pub(crate) returns_bool: bool,
}

/// What a plan is made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanContext {
    /// The times of the query.
    pub(crate) grid: Grid,
    /// Milliseconds from the first time to the last one that was given.
    pub(crate) range: i64,
    /// Milliseconds of a step; 0 of a single time.
    pub(crate) step: i64,
    /// Milliseconds that a sample counts at most.
    pub(crate) lookback: i64,
    /// Milliseconds of a step of a subquery that names none.
    pub(crate) subquery_step: i64,
    /// Steps that a subquery may have.
    pub(crate) steps_max: usize,
}

impl PlanContext {
    /// Makes the plan of an expression.
    pub(crate) fn plan(self, expr: &Expr) -> Result<Plan, Error> {
        let mut builder = build::Builder {
            context: self,
            reads: Vec::new(),
        };
        let root = builder.node(expr, self.grid)?;
        Ok(Plan {
            root,
            grid: self.grid,
            reads: builder.reads,
        })
    }

    /// The time of `@`.
    fn at(&self, at: Option<At>) -> Option<i64> {
        at.map(|at| match at {
            At::Time(time) => time,
            At::Start => self.grid.start,
            At::End => self.grid.start + self.range,
        })
    }

    /// The value of a function of the query's times.
    fn context_function(&self, name: &str) -> Option<f64> {
        Some(match name {
            "start" => self.grid.start as f64 / 1000.0,
            "end" => (self.grid.start + self.range) as f64 / 1000.0,
            "range" => self.range as f64 / 1000.0,
            "step" if self.range == 0 => 0.0,
            "step" => self.step as f64 / 1000.0,
            _ => return None,
        })
    }
}

/// An error of a time that 64 bits of milliseconds do not hold.
fn out_of_range<T>() -> Result<T, Error> {
    execution("time range is out of bounds")
}
