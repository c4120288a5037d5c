//! Duration expressions to nanoseconds.

use super::PlanContext;
use crate::ast::DurationExpr;
use crate::duration::NANOS_PER_MILLI;
use crate::error::{Error, execution};
use crate::parser::SECONDS_MAX;
use crate::span::Span;
use crate::token::TokenKind;

impl PlanContext {
    /// The nanoseconds of a duration that is a literal or an expression.
    pub(super) fn duration(
        &self,
        literal: i64,
        expr: &Option<DurationExpr>,
        allows_negative: bool,
    ) -> Result<i64, Error> {
        let Some(expr) = expr else {
            return Ok(literal);
        };
        let seconds = self.seconds(expr)?;
        let span = expr.span();
        if !seconds.is_finite() {
            return fault(span, "duration is NaN or infinite");
        }
        if seconds <= 0.0 && !allows_negative {
            return fault(span, "duration must be greater than 0");
        }
        if !(-SECONDS_MAX..=SECONDS_MAX).contains(&seconds) {
            return fault(span, "duration is out of range");
        }
        Ok(((seconds * 1000.0) as i64).saturating_mul(NANOS_PER_MILLI))
    }

    fn seconds(&self, expr: &DurationExpr) -> Result<f64, Error> {
        Ok(match expr {
            DurationExpr::Literal(literal) => literal.value,
            DurationExpr::Step(_) => self.step as f64 / 1000.0,
            DurationExpr::Range(_) => self.range as f64 / 1000.0,
            DurationExpr::MinOf(sides, _) => {
                crate::eval::go::min(self.seconds(&sides.0)?, self.seconds(&sides.1)?)
            }
            DurationExpr::MaxOf(sides, _) => {
                crate::eval::go::max(self.seconds(&sides.0)?, self.seconds(&sides.1)?)
            }
            DurationExpr::Negated(inner, _) => -self.seconds(inner)?,
            DurationExpr::Paren(inner, _) => self.seconds(inner)?,
            DurationExpr::Binary(operator, sides) => {
                let (left, right) = (self.seconds(&sides.0)?, self.seconds(&sides.1)?);
                match operator {
                    TokenKind::Add => left + right,
                    TokenKind::Sub => left - right,
                    TokenKind::Mul => left * right,
                    TokenKind::Div if right == 0.0 => {
                        return fault(expr.span(), "division by zero");
                    }
                    TokenKind::Div => left / right,
                    TokenKind::Mod if right == 0.0 => return fault(expr.span(), "modulo by zero"),
                    TokenKind::Mod => left % right,
                    _ => left.powf(right),
                }
            }
        })
    }
}

fn fault<T>(span: Span, message: &str) -> Result<T, Error> {
    execution(format!("{}:{}: {message}", span.start, span.end))
}
