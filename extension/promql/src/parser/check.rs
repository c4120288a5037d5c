//! The types of expressions: what a query may put where.

use super::operator::{is_comparison, is_set_operator};
use super::{ParseError, Parser, error_in};
use crate::ast::{Aggregate, Binary, Call, Cardinality, Expr, ValueType, VectorSelector};
use crate::function::Extra;
use crate::labels::METRIC_NAME;
use crate::quote::quote;
use crate::span::Span;
use crate::token::TokenKind as K;

/// Checks the types of an expression and of all inside of it.
pub(super) fn check(expr: &Expr, query: &str) -> Result<(), ParseError> {
    Checker { query }.check(expr).map(|_| ())
}

struct Checker<'q> {
    query: &'q str,
}

impl Checker<'_> {
    fn error<T>(&self, span: Span, message: impl Into<String>) -> Result<T, ParseError> {
        Err(error_in(self.query, span, message))
    }

    fn check(&self, expr: &Expr) -> Result<ValueType, ParseError> {
        match expr {
            Expr::Number(_) | Expr::String(_) => {}
            Expr::Selector(selector) => self.selector(selector, false)?,
            Expr::Range(range) => self.selector(&range.selector, false)?,
            Expr::Subquery(subquery) => {
                let inner = self.check(&subquery.expr)?;
                if inner != ValueType::Vector {
                    let name = inner.as_str();
                    let message =
                        format!("subquery is only allowed on instant vector, got {name} instead");
                    return self.error(expr.span(), message);
                }
            }
            Expr::Call(call) => self.call(call)?,
            Expr::Aggregate(aggregate) => self.aggregate(aggregate)?,
            Expr::Binary(binary) => self.binary(binary)?,
            Expr::Unary(unary) => {
                let inner = self.check(&unary.expr)?;
                if !matches!(inner, ValueType::Scalar | ValueType::Vector) {
                    let message = format!(
                        "unary expression only allowed on expressions of type scalar or instant \
                         vector, got {}",
                        quote(inner.documented())
                    );
                    return self.error(expr.span(), message);
                }
            }
            Expr::Paren(paren) => {
                self.check(&paren.expr)?;
            }
        }
        Ok(expr.value_type())
    }

    fn expect(&self, expr: &Expr, expected: ValueType, place: &str) -> Result<(), ParseError> {
        let found = self.check(expr)?;
        self.type_is(expr, found, expected, place)
    }

    fn type_is(
        &self,
        expr: &Expr,
        found: ValueType,
        expected: ValueType,
        place: &str,
    ) -> Result<(), ParseError> {
        if found == expected {
            return Ok(());
        }
        let (expected, found) = (expected.documented(), found.documented());
        let message = format!("expected type {expected} in {place}, got {found}");
        self.error(expr.span(), message)
    }

    fn selector(&self, selector: &VectorSelector, admits_all: bool) -> Result<(), ParseError> {
        if !selector.name.is_empty() {
            // The last matcher is that of the name itself.
            let others = selector.matchers.len().saturating_sub(1);
            let mut others = selector.matchers[..others].iter();
            if let Some(matcher) = others.find(|matcher| matcher.name() == METRIC_NAME) {
                let (first, second) = (quote(&selector.name), quote(matcher.value()));
                let message = format!("metric name must not be set twice: {first} or {second}");
                return self.error(selector.span, message);
            }
            return Ok(());
        }
        if !admits_all && selector.matchers.iter().all(|matcher| matcher.matches("")) {
            let message = "vector selector must contain at least one non-empty matcher";
            return self.error(selector.span, message);
        }
        Ok(())
    }

    fn call(&self, call: &Call) -> Result<(), ParseError> {
        let function = call.function;
        let (named, given) = (function.args.len(), call.args.len());
        let count = match function.extra {
            Extra::None if named != given => Some(("", named)),
            Extra::None => None,
            _ if named - 1 > given => Some(("at least ", named - 1)),
            Extra::UpTo(extra) if named - 1 + extra < given => {
                Some(("at most ", named - 1 + extra))
            }
            _ => None,
        };
        if let Some((bound, count)) = count {
            let message = format!(
                "expected {bound}{count} argument(s) in call to {}, got {given}",
                quote(function.name)
            );
            return self.error(call.span, message);
        }
        let is_info = function.name == "info";
        if let (true, Some(labels)) = (is_info, call.args.get(1)) {
            self.info_labels(call, labels)?;
        }
        for (place, arg) in call.args.iter().enumerate() {
            let Some(expected) = function.arg_type(place) else {
                break;
            };
            let found = match arg {
                Expr::Selector(selector) if is_info && place == 1 => {
                    self.selector(selector, true)?;
                    ValueType::Vector
                }
                arg => self.check(arg)?,
            };
            let place = format!("call to function {}", quote(function.name));
            self.type_is(arg, found, expected, &place)?;
        }
        Ok(())
    }

    fn info_labels(&self, call: &Call, labels: &Expr) -> Result<(), ParseError> {
        let found = labels.value_type();
        if found != ValueType::Vector {
            let message = format!(
                "expected type instant vector in call to function \"info\", got {}",
                found.documented()
            );
            return self.error(call.span, message);
        }
        match labels {
            Expr::Selector(selector) if selector.name.is_empty() => Ok(()),
            Expr::Selector(selector) => {
                let message = "expected label selectors only, got vector selector instead";
                self.error(selector.span, message)
            }
            labels => self.error(labels.span(), "expected label selectors only"),
        }
    }

    fn aggregate(&self, aggregate: &Aggregate) -> Result<(), ParseError> {
        self.expect(&aggregate.expr, ValueType::Vector, "aggregation expression")?;
        let Some(param) = &aggregate.param else {
            return Ok(());
        };
        let expected = match aggregate.operator {
            K::CountValues => ValueType::String,
            _ => ValueType::Scalar,
        };
        self.expect(param, expected, "aggregation parameter")
    }

    fn binary(&self, binary: &Binary) -> Result<(), ParseError> {
        let left = self.check(&binary.left)?;
        let right = self.check(&binary.right)?;
        let operator = binary.operator;
        let (left_span, right_span) = (binary.left.span(), binary.right.span());
        let operator_span = Parser::operator_span(self.query, left_span, right_span);
        let matching = &binary.matching;
        if binary.returns_bool && !is_comparison(operator) {
            let message = "bool modifier can only be used on comparison operators";
            return self.error(operator_span, message);
        }
        let are_scalars = left == ValueType::Scalar && right == ValueType::Scalar;
        if is_comparison(operator) && !binary.returns_bool && are_scalars {
            let message = "comparisons between scalars must use BOOL modifier";
            return self.error(operator_span, message);
        }
        let twice = matching
            .labels
            .iter()
            .find(|label| matching.include.contains(label));
        if let (true, Some(label)) = (matching.on, twice) {
            let label = quote(label);
            let message = format!("label {label} must not occur in ON and GROUP clause at once");
            return self.error(operator_span, message);
        }
        let is_operand = |found| matches!(found, ValueType::Scalar | ValueType::Vector);
        for (found, span) in [(left, left_span), (right, right_span)] {
            if !is_operand(found) {
                let message = "binary expression must contain only scalar and instant vector types";
                return self.error(span, message);
            }
        }
        self.matching(binary, left, right, left_span.to(right_span))
    }

    fn matching(
        &self,
        binary: &Binary,
        left: ValueType,
        right: ValueType,
        span: Span,
    ) -> Result<(), ParseError> {
        let matching = &binary.matching;
        let has_fill = matching.fill_left.is_some() || matching.fill_right.is_some();
        let is_set = is_set_operator(binary.operator);
        let name = || quote(binary.operator.text().unwrap_or_default());
        if left != ValueType::Vector || right != ValueType::Vector {
            if !matching.labels.is_empty() {
                return self.error(span, "vector matching only allowed between instant vectors");
            }
            if has_fill {
                let message = "filling in missing series only allowed between instant vectors";
                return self.error(span, message);
            }
            if is_set {
                let message = format!(
                    "set operator {} not allowed in binary scalar expression",
                    name()
                );
                return self.error(span, message);
            }
        } else if is_set {
            let groups = [Cardinality::OneToMany, Cardinality::ManyToOne];
            if groups.contains(&matching.cardinality) {
                return self.error(
                    span,
                    format!("no grouping allowed for {} operation", name()),
                );
            }
            if has_fill {
                let message = "filling in missing series not allowed for set operators";
                return self.error(span, message);
            }
        }
        Ok(())
    }
}
