//! The syntax tree of a query.

use crate::function::Function;
use crate::matcher::Matcher;
use crate::span::Span;
use crate::token::TokenKind;

/// Types of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// A number.
    Scalar,
    /// A text.
    String,
    /// One sample of each of several series.
    Vector,
    /// Samples of a range of time of each of several series.
    Matrix,
}

impl ValueType {
    /// The name of the type in Prometheus's documentation.
    pub fn documented(self) -> &'static str {
        match self {
            ValueType::Scalar => "scalar",
            ValueType::String => "string",
            ValueType::Vector => "instant vector",
            ValueType::Matrix => "range vector",
        }
    }

    /// The name of the type in Prometheus's code and API.
    pub fn as_str(self) -> &'static str {
        match self {
            ValueType::Scalar => "scalar",
            ValueType::String => "string",
            ValueType::Vector => "vector",
            ValueType::Matrix => "matrix",
        }
    }
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A number or a duration, in seconds.
    Number(NumberLiteral),
    /// A text.
    String(StringLiteral),
    /// The latest samples of series.
    Selector(Box<VectorSelector>),
    /// Samples of series in a range of time.
    Range(Box<RangeSelector>),
    /// An expression evaluated at steps of its own in a range of time.
    Subquery(Box<Subquery>),
    /// A call of a function.
    Call(Box<Call>),
    /// An aggregation over series.
    Aggregate(Box<Aggregate>),
    /// An operator between two expressions.
    Binary(Box<Binary>),
    /// A sign before an expression.
    Unary(Box<Unary>),
    /// An expression in parentheses.
    Paren(Box<Paren>),
}

/// A number or a duration.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberLiteral {
    /// The value; seconds of a duration.
    pub value: f64,
    /// Whether it is written as a duration.
    pub is_duration: bool,
    /// The place in the query.
    pub span: Span,
}

/// A text.
#[derive(Debug, Clone, PartialEq)]
pub struct StringLiteral {
    /// The text without quotes.
    pub value: String,
    /// The place in the query.
    pub span: Span,
}

/// When a selector or subquery is evaluated, other than at the time of the evaluation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimeModifiers {
    /// Nanoseconds by which the time is moved back.
    pub offset: i64,
    /// The expression of the offset, if it is not a literal.
    pub offset_expr: Option<DurationExpr>,
    /// The time that `@` fixes.
    pub at: Option<At>,
}

/// The time that `@` fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// Milliseconds since 1970.
    Time(i64),
    /// The first time of the evaluation.
    Start,
    /// The last time of the evaluation.
    End,
}

/// How the samples around the ends of a range take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extension {
    /// The value at an end is that of the sample before it.
    Anchored,
    /// The value at an end is interpolated between the samples around it.
    Smoothed,
}

/// A selector of series.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorSelector {
    /// The name of the metric before the braces; empty if there is none.
    pub name: String,
    /// The matchers, that of the name before the braces last.
    pub matchers: Vec<Matcher>,
    /// When the selector is evaluated.
    pub time: TimeModifiers,
    /// How samples around the ends take part.
    pub extension: Option<Extension>,
    /// The place in the query.
    pub span: Span,
}

/// A selector with a range of time.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeSelector {
    /// The selector.
    pub selector: VectorSelector,
    /// Nanoseconds of the range.
    pub range: i64,
    /// The expression of the range, if it is not a literal.
    pub range_expr: Option<DurationExpr>,
    /// The byte after the selector in the query.
    pub end: usize,
}

/// An expression evaluated at steps of its own in a range of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Subquery {
    /// The expression.
    pub expr: Expr,
    /// Nanoseconds of the range.
    pub range: i64,
    /// The expression of the range, if it is not a literal.
    pub range_expr: Option<DurationExpr>,
    /// Nanoseconds of a step; 0 for the default.
    pub step: i64,
    /// The expression of the step, if it is not a literal.
    pub step_expr: Option<DurationExpr>,
    /// When the subquery is evaluated.
    pub time: TimeModifiers,
    /// The byte after the subquery in the query.
    pub end: usize,
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The function.
    pub function: &'static Function,
    /// The arguments.
    pub args: Vec<Expr>,
    /// The place in the query.
    pub span: Span,
}

/// An aggregation over series.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// The name of the aggregation.
    pub operator: TokenKind,
    /// What is aggregated.
    pub expr: Expr,
    /// The parameter, such as the number of series that `topk` keeps.
    pub param: Option<Expr>,
    /// Labels that make the groups.
    pub grouping: Vec<String>,
    /// Whether the groups are made by all other labels.
    pub without: bool,
    /// The place in the query.
    pub span: Span,
}

/// An operator between two expressions.
#[derive(Debug, Clone, PartialEq)]
pub struct Binary {
    /// The operator.
    pub operator: TokenKind,
    /// The expression before the operator.
    pub left: Expr,
    /// The expression after the operator.
    pub right: Expr,
    /// How series of both sides find each other.
    pub matching: Matching,
    /// Whether a comparison returns 0 or 1 instead of filtering.
    pub returns_bool: bool,
}

/// How many series of each side belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cardinality {
    /// One of each side.
    OneToOne,
    /// Several of the left side and one of the right one.
    ManyToOne,
    /// One of the left side and several of the right one.
    OneToMany,
    /// Several of each side: set operators.
    ManyToMany,
}

/// How series of the two sides of an operator find each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Matching {
    /// How many of each side belong together.
    pub cardinality: Cardinality,
    /// Labels that are compared, or that are not.
    pub labels: Vec<String>,
    /// Whether only the labels are compared, instead of all others.
    pub on: bool,
    /// Labels that the result takes from the side of one.
    pub include: Vec<String>,
    /// The value of a series that the left side lacks.
    pub fill_left: Option<f64>,
    /// The value of a series that the right side lacks.
    pub fill_right: Option<f64>,
}

/// A sign before an expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Unary {
    /// Whether the sign is a minus.
    pub is_minus: bool,
    /// The expression.
    pub expr: Expr,
    /// The first byte in the query.
    pub start: usize,
}

/// An expression in parentheses.
#[derive(Debug, Clone, PartialEq)]
pub struct Paren {
    /// The expression.
    pub expr: Expr,
    /// The place in the query.
    pub span: Span,
}

/// An expression of a duration, evaluated before the query.
#[derive(Debug, Clone, PartialEq)]
pub enum DurationExpr {
    /// A number of seconds, or a duration.
    Literal(NumberLiteral),
    /// `step()`, the step of the query.
    Step(Span),
    /// `range()`, the time from the first to the last evaluation.
    Range(Span),
    /// The smaller of two durations.
    MinOf(Box<(DurationExpr, DurationExpr)>, Span),
    /// The larger of two durations.
    MaxOf(Box<(DurationExpr, DurationExpr)>, Span),
    /// A negated duration; the first byte of the sign in the query.
    Negated(Box<DurationExpr>, usize),
    /// An operator between two durations.
    Binary(TokenKind, Box<(DurationExpr, DurationExpr)>),
    /// A duration in parentheses.
    Paren(Box<DurationExpr>, Span),
}

impl DurationExpr {
    /// The place in the query.
    pub fn span(&self) -> Span {
        match self {
            DurationExpr::Literal(literal) => literal.span,
            DurationExpr::Step(span) | DurationExpr::Range(span) => *span,
            DurationExpr::MinOf(_, span) | DurationExpr::MaxOf(_, span) => *span,
            DurationExpr::Negated(inner, start) => Span::new(*start, inner.span().end),
            DurationExpr::Binary(_, sides) => sides.0.span().to(sides.1.span()),
            // As in Prometheus, the parentheses around an operator do not count.
            DurationExpr::Paren(inner, span) => match **inner {
                DurationExpr::Literal(_) => Span::new(span.start, inner.span().end),
                _ => inner.span(),
            },
        }
    }
}

impl Expr {
    /// The type of the value.
    pub fn value_type(&self) -> ValueType {
        match self {
            Expr::Number(_) => ValueType::Scalar,
            Expr::String(_) => ValueType::String,
            Expr::Selector(_) | Expr::Aggregate(_) => ValueType::Vector,
            Expr::Range(_) | Expr::Subquery(_) => ValueType::Matrix,
            Expr::Call(call) => call.function.returns,
            Expr::Binary(binary) => match (binary.left.value_type(), binary.right.value_type()) {
                (ValueType::Scalar, ValueType::Scalar) => ValueType::Scalar,
                _ => ValueType::Vector,
            },
            Expr::Unary(unary) => unary.expr.value_type(),
            Expr::Paren(paren) => paren.expr.value_type(),
        }
    }

    /// The place in the query.
    pub fn span(&self) -> Span {
        match self {
            Expr::Number(number) => number.span,
            Expr::String(string) => string.span,
            Expr::Selector(selector) => selector.span,
            Expr::Range(range) => Span::new(range.selector.span.start, range.end),
            Expr::Subquery(subquery) => Span::new(subquery.expr.span().start, subquery.end),
            Expr::Call(call) => call.span,
            Expr::Aggregate(aggregate) => aggregate.span,
            Expr::Binary(binary) => binary.left.span().to(binary.right.span()),
            Expr::Unary(unary) => Span::new(unary.start, unary.expr.span().end),
            Expr::Paren(paren) => paren.span,
        }
    }

    /// The expression without parentheses around it.
    pub fn unwrapped(&self) -> &Expr {
        match self {
            Expr::Paren(paren) => paren.expr.unwrapped(),
            expr => expr,
        }
    }

    /// The expressions directly inside of this one.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Number(_) | Expr::String(_) | Expr::Selector(_) | Expr::Range(_) => Vec::new(),
            Expr::Subquery(subquery) => vec![&subquery.expr],
            Expr::Call(call) => call.args.iter().collect(),
            Expr::Aggregate(aggregate) => std::iter::once(&aggregate.expr)
                .chain(&aggregate.param)
                .collect(),
            Expr::Binary(binary) => vec![&binary.left, &binary.right],
            Expr::Unary(unary) => vec![&unary.expr],
            Expr::Paren(paren) => vec![&paren.expr],
        }
    }

    /// The expressions directly inside of this one, to be changed.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Expr::Number(_) | Expr::String(_) | Expr::Selector(_) | Expr::Range(_) => Vec::new(),
            Expr::Subquery(subquery) => vec![&mut subquery.expr],
            Expr::Call(call) => call.args.iter_mut().collect(),
            Expr::Aggregate(aggregate) => {
                let aggregate = &mut **aggregate;
                std::iter::once(&mut aggregate.expr)
                    .chain(&mut aggregate.param)
                    .collect()
            }
            Expr::Binary(binary) => {
                let binary = &mut **binary;
                vec![&mut binary.left, &mut binary.right]
            }
            Expr::Unary(unary) => vec![&mut unary.expr],
            Expr::Paren(paren) => vec![&mut paren.expr],
        }
    }
}
