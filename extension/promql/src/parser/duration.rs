//! Duration expressions, in brackets and behind `offset`.

use super::{ParseError, Parser};
use crate::ast::{DurationExpr, NumberLiteral};
use crate::span::Span;
use crate::token::{Token, TokenKind as K};

/// Seconds that fit into 64 bits of nanoseconds.
pub(crate) const SECONDS_MAX: f64 = (1_u64 << 63) as f64 / 1e9;

/// The precedence that the operand of a sign has at least: that of `^`.
const SIGN: u8 = 3;

fn precedence(kind: K) -> Option<u8> {
    match kind {
        K::Add | K::Sub => Some(1),
        K::Mul | K::Div | K::Mod => Some(2),
        K::Pow => Some(3),
        _ => None,
    }
}

impl<'q> Parser<'q> {
    /// A duration in brackets; a literal has to be positive.
    pub(super) fn positive_duration(&mut self) -> Result<DurationExpr, ParseError> {
        let duration = self.duration(0)?;
        match &duration {
            DurationExpr::Literal(literal) if literal.value <= 0.0 => {
                Err(self.error(literal.span, "duration must be greater than 0"))
            }
            _ => Ok(duration),
        }
    }

    /// A duration behind `offset`. Without parentheses it ends before an operator, so that
    /// `a offset 5m + b` adds vectors.
    pub(super) fn offset_duration(&mut self) -> Result<DurationExpr, ParseError> {
        let token = self.peek()?;
        match token.kind {
            K::Number | K::Duration | K::Step | K::Range | K::MaxOf | K::MinOf => {
                self.duration_operand()
            }
            K::Add | K::Sub => {
                self.next()?;
                let operand = self.peek()?;
                if matches!(operand.kind, K::Add | K::Sub) {
                    let inner = self.nested(|parser| parser.duration(SIGN))?;
                    let signed = self.signed_duration(token, inner)?;
                    return self.duration_operators(signed, 0);
                }
                let inner = self.duration_operand()?;
                self.signed_duration(token, inner)
            }
            _ => self.duration(0),
        }
    }

    fn duration(&mut self, least: u8) -> Result<DurationExpr, ParseError> {
        let token = self.peek()?;
        let first = match token.kind {
            K::Add | K::Sub => {
                self.next()?;
                let inner = self.nested(|parser| parser.duration(SIGN))?;
                self.signed_duration(token, inner)?
            }
            _ => self.nested(Self::duration_operand)?,
        };
        self.duration_operators(first, least)
    }

    fn duration_operators(
        &mut self,
        mut left: DurationExpr,
        least: u8,
    ) -> Result<DurationExpr, ParseError> {
        let mut links = 0;
        loop {
            let token = self.peek()?;
            let Some(power) = precedence(token.kind).filter(|power| *power >= least) else {
                self.depth -= links;
                return Ok(left);
            };
            self.next()?;
            links += 1;
            self.depth += 1;
            let next_least = if token.kind == K::Pow {
                power
            } else {
                power + 1
            };
            let right = self.nested(|parser| parser.duration(next_least))?;
            if let DurationExpr::Literal(literal) = &right
                && literal.value == 0.0
            {
                match token.kind {
                    K::Div => return Err(self.error(token.span(), "division by zero")),
                    K::Mod => return Err(self.error(token.span(), "modulo by zero")),
                    _ => {}
                }
            }
            left = DurationExpr::Binary(token.kind, Box::new((left, right)));
        }
    }

    fn duration_operand(&mut self) -> Result<DurationExpr, ParseError> {
        let token = self.peek()?;
        match token.kind {
            K::Number | K::Duration => {
                let literal = self.number()?;
                self.duration_in_range(&literal, literal.span)?;
                Ok(DurationExpr::Literal(literal))
            }
            K::Step | K::Range => {
                self.next()?;
                self.expect(K::LeftParen)?;
                self.expect(K::RightParen)?;
                let span = Span::new(token.start, self.last_end);
                Ok(match token.kind {
                    K::Step => DurationExpr::Step(span),
                    _ => DurationExpr::Range(span),
                })
            }
            K::MaxOf | K::MinOf => {
                self.next()?;
                self.expect(K::LeftParen)?;
                let first = self.duration(0)?;
                self.expect(K::Comma)?;
                let second = self.duration(0)?;
                self.expect(K::RightParen)?;
                let span = Span::new(token.start, self.last_end);
                let sides = Box::new((first, second));
                Ok(match token.kind {
                    K::MaxOf => DurationExpr::MaxOf(sides, span),
                    _ => DurationExpr::MinOf(sides, span),
                })
            }
            K::LeftParen => {
                self.next()?;
                let inner = self.duration(0)?;
                self.expect(K::RightParen)?;
                let span = Span::new(token.start, self.last_end);
                Ok(DurationExpr::Paren(Box::new(inner), span))
            }
            _ => Err(self.unexpected(token)),
        }
    }

    fn duration_in_range(&self, literal: &NumberLiteral, span: Span) -> Result<(), ParseError> {
        match literal.value > SECONDS_MAX || literal.value < -SECONDS_MAX {
            true => Err(self.error(span, "duration out of range")),
            false => Ok(()),
        }
    }

    fn signed_duration(
        &self,
        sign: Token<'q>,
        inner: DurationExpr,
    ) -> Result<DurationExpr, ParseError> {
        match inner {
            DurationExpr::Literal(mut literal) => {
                literal.value *= if sign.kind == K::Sub { -1.0 } else { 1.0 };
                self.duration_in_range(&literal, sign.span())?;
                literal.span.start = sign.start;
                Ok(DurationExpr::Literal(literal))
            }
            inner if sign.kind == K::Sub => Ok(DurationExpr::Negated(Box::new(inner), sign.start)),
            inner => Ok(inner),
        }
    }
}
