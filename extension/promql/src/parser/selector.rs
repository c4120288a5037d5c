//! Selectors, and the modifiers behind an operand: ranges, `offset`, `@`, `anchored`, `smoothed`.

use super::{Context, ParseError, Parser};
use crate::ast::{
    At, DurationExpr, Expr, Extension, RangeSelector, Subquery, TimeModifiers, VectorSelector,
};
use crate::labels::METRIC_NAME;
use crate::matcher::{MatchOperator, Matcher};
use crate::span::Span;
use crate::token::{Token, TokenKind as K};

const LABEL_NAME: Context = Context {
    place: "label matching",
    expected: "identifier or \"}\"",
};

const LABEL_OPERATOR: Context = Context {
    place: "label matching",
    expected: "label matching operator",
};

const LABEL_VALUE: Context = Context {
    place: "label matching",
    expected: "string",
};

const LABEL_NEXT: Context = Context {
    place: "label matching",
    expected: "\",\" or \"}\"",
};

const OFFSET: Context = Context {
    place: "offset",
    expected: "number, duration, step(), or range()",
};

const AT: Context = Context {
    place: "@",
    expected: "timestamp",
};

const RANGE_START: Context = Context {
    place: "subquery or range selector",
    expected: "number, duration, step(), or range()",
};

const RANGE_NEXT: Context = Context {
    place: "subquery or range",
    expected: "\":\" or \"]\"",
};

const STEP_START: Context = Context {
    place: "subquery selector",
    expected: "number, duration, step(), range(), or \"]\"",
};

const STEP_NEXT: Context = Context {
    place: "subquery selector",
    expected: "\"]\"",
};

impl<'q> Parser<'q> {
    /// A selector with or without a name before its braces.
    pub(super) fn vector_selector(&mut self) -> Result<Expr, ParseError> {
        let token = self.peek()?;
        if token.kind == K::LeftBrace {
            let (matchers, span) = self.label_matchers()?;
            return Ok(selector(String::new(), matchers, span));
        }
        self.next()?;
        self.selector_named(token)
    }

    /// A selector whose name has been taken.
    pub(super) fn selector_named(&mut self, name: Token<'q>) -> Result<Expr, ParseError> {
        let mut span = name.span();
        let mut matchers = Vec::new();
        if self.peek()?.kind == K::LeftBrace {
            let (read, braces) = self.label_matchers()?;
            matchers = read;
            span = span.to(braces);
        }
        matchers.push(Matcher::equal(METRIC_NAME, name.text));
        Ok(selector(name.text.to_owned(), matchers, span))
    }

    fn label_matchers(&mut self) -> Result<(Vec<Matcher>, Span), ParseError> {
        let open = self.expect(K::LeftBrace)?;
        let mut matchers = Vec::new();
        loop {
            // A comma may stand before the closing brace, but not alone.
            if let Some(close) = self.take(K::RightBrace)? {
                return Ok((matchers, open.span().to(close.span())));
            }
            matchers.push(self.label_matcher()?);
            let token = self.peek()?;
            match token.kind {
                K::Comma => {
                    self.next()?;
                }
                K::RightBrace => {}
                _ => return Err(self.unexpected_in(token, LABEL_NEXT)),
            }
        }
    }

    fn label_matcher(&mut self) -> Result<Matcher, ParseError> {
        let token = self.peek()?;
        let is_quoted = token.kind == K::String;
        if !is_quoted && token.kind != K::Identifier {
            return Err(self.unexpected_in(token, LABEL_NAME));
        }
        self.next()?;
        let name = match is_quoted {
            true => self.unquoted(token)?,
            false => token.text.to_owned(),
        };
        let operator_token = self.peek()?;
        let operator = match operator_token.kind {
            K::Equal => MatchOperator::Equal,
            K::NotEqual => MatchOperator::NotEqual,
            K::EqualRegex => MatchOperator::Matches,
            K::NotEqualRegex => MatchOperator::NotMatches,
            _ if is_quoted => return Ok(Matcher::equal(METRIC_NAME, &name)),
            _ => return Err(self.unexpected_in(operator_token, LABEL_OPERATOR)),
        };
        self.next()?;
        let value = self.peek()?;
        if value.kind != K::String {
            return Err(self.unexpected_in(value, LABEL_VALUE));
        }
        self.next()?;
        let text = self.unquoted(value)?;
        let made = Matcher::new(&name, operator, &text);
        made.map_err(|fault| self.error(token.span().to(value.span()), fault))
    }

    /// The modifiers behind an operand.
    pub(super) fn modifiers(&mut self, mut expr: Expr) -> Result<Expr, ParseError> {
        let mut subqueries = 0;
        loop {
            let token = self.peek()?;
            match token.kind {
                K::LeftBracket => {
                    self.next()?;
                    // Each subquery makes the tree one level deeper.
                    subqueries += 1;
                    self.depth += 1;
                    expr = self.nested(|parser| parser.bracket(expr, token))?;
                }
                K::Offset => {
                    self.next()?;
                    self.within(OFFSET, |parser| parser.offset(&mut expr))?;
                }
                K::At => {
                    self.next()?;
                    self.within(AT, |parser| parser.at(&mut expr))?;
                }
                K::Anchored | K::Smoothed => {
                    self.next()?;
                    self.extend(&mut expr, token.kind)?;
                }
                _ => {
                    self.depth -= subqueries;
                    return Ok(expr);
                }
            }
        }
    }

    /// A range or a subquery whose opening bracket has been taken.
    fn bracket(&mut self, expr: Expr, open: Token<'q>) -> Result<Expr, ParseError> {
        let range = self.within(RANGE_START, Self::positive_duration)?;
        if let Some(close) = self.take(K::RightBracket)? {
            return self.range_selector(expr, range, open.span().to(close.span()));
        }
        let colon = self.peek()?;
        if colon.kind != K::Colon {
            return Err(self.unexpected_in(colon, RANGE_NEXT));
        }
        self.next()?;
        let mut step = None;
        if self.peek()?.kind != K::RightBracket {
            step = Some(self.within(STEP_START, Self::positive_duration)?);
        }
        let close = self.peek()?;
        if close.kind != K::RightBracket {
            return Err(self.unexpected_in(close, STEP_NEXT));
        }
        self.next()?;
        let (range, range_expr) = split_duration(range);
        let (step, step_expr) = step.map_or((0, None), split_duration);
        Ok(Expr::Subquery(Box::new(Subquery {
            expr,
            range,
            range_expr,
            step,
            step_expr,
            time: TimeModifiers::default(),
            end: close.span().end,
        })))
    }

    fn range_selector(
        &mut self,
        expr: Expr,
        range: DurationExpr,
        brackets: Span,
    ) -> Result<Expr, ParseError> {
        let Expr::Selector(selector) = expr else {
            return Err(self.error(brackets, "ranges only allowed for vector selectors"));
        };
        if has_offset(&selector.time) {
            return Err(self.error(brackets, "no offset modifiers allowed before range"));
        }
        if selector.time.at.is_some() {
            return Err(self.error(brackets, "no @ modifiers allowed before range"));
        }
        let (range, range_expr) = split_duration(range);
        Ok(Expr::Range(Box::new(RangeSelector {
            selector: *selector,
            range,
            range_expr,
            end: brackets.end,
        })))
    }

    fn offset(&mut self, expr: &mut Expr) -> Result<(), ParseError> {
        let (nanos, written) = split_duration(self.offset_duration()?);
        let (span, end) = (expr.span(), self.last_end);
        let Some((time, held_end)) = time_modifiers(expr) else {
            let message = "offset modifier must be preceded by an instant vector selector or range \
                           vector selector or a subquery";
            return Err(self.error(span, message));
        };
        if has_offset(time) {
            return Err(self.error(span, "offset may not be set multiple times"));
        }
        (time.offset, time.offset_expr) = (nanos, written);
        *held_end = end;
        Ok(())
    }

    fn at(&mut self, expr: &mut Expr) -> Result<(), ParseError> {
        let token = self.peek()?;
        let span = expr.span();
        let at = match token.kind {
            K::Start | K::End => {
                self.next()?;
                self.expect(K::LeftParen)?;
                self.expect(K::RightParen)?;
                if token.kind == K::Start {
                    At::Start
                } else {
                    At::End
                }
            }
            _ => {
                let sign = match token.kind {
                    K::Add | K::Sub => self.next()?.kind,
                    _ => K::Add,
                };
                let token = self.peek()?;
                if !matches!(token.kind, K::Number | K::Duration) {
                    return Err(self.unexpected(token));
                }
                let number = self.number()?.value;
                let seconds = if sign == K::Sub { -number } else { number };
                if !(seconds > i64::MIN as f64 && seconds < i64::MAX as f64) {
                    let shown = match seconds.is_finite() {
                        true => format!("{seconds:.6}"),
                        false => crate::number::format_plain(seconds),
                    };
                    let message = format!("timestamp out of bounds for @ modifier: {shown}");
                    return Err(self.error(span, message));
                }
                At::Time((seconds * 1000.0).round() as i64)
            }
        };
        let end = self.last_end;
        let Some((time, held_end)) = time_modifiers(expr) else {
            let message = "@ modifier must be preceded by an instant vector selector or range \
                           vector selector or a subquery";
            return Err(self.error(span, message));
        };
        if time.at.is_some() {
            return Err(self.error(span, "@ <timestamp> may not be set multiple times"));
        }
        time.at = Some(at);
        *held_end = end;
        Ok(())
    }

    fn extend(&mut self, expr: &mut Expr, kind: K) -> Result<(), ParseError> {
        let (name, extension) = match kind {
            K::Anchored => ("anchored", Extension::Anchored),
            _ => ("smoothed", Extension::Smoothed),
        };
        let span = expr.span();
        let held = match expr {
            Expr::Selector(selector) => &mut selector.extension,
            Expr::Range(range) => &mut range.selector.extension,
            Expr::Subquery(_) => {
                let message = format!("{name} modifier is not supported for subqueries");
                return Err(self.error(span, message));
            }
            _ => return Err(self.error(span, format!("{name} modifier not implemented"))),
        };
        if held.is_some_and(|held| held != extension) {
            let message = "anchored and smoothed modifiers cannot be used together";
            return Err(self.error(span, message));
        }
        *held = Some(extension);
        Ok(())
    }
}

fn selector(name: String, matchers: Vec<Matcher>, span: Span) -> Expr {
    Expr::Selector(Box::new(VectorSelector {
        name,
        matchers,
        time: TimeModifiers::default(),
        extension: None,
        span,
    }))
}

fn has_offset(time: &TimeModifiers) -> bool {
    time.offset != 0 || time.offset_expr.is_some()
}

/// The time modifiers of an expression that can have some, and the byte after it in the query.
fn time_modifiers(expr: &mut Expr) -> Option<(&mut TimeModifiers, &mut usize)> {
    match expr {
        Expr::Selector(selector) => Some((&mut selector.time, &mut selector.span.end)),
        Expr::Range(range) => Some((&mut range.selector.time, &mut range.end)),
        Expr::Subquery(subquery) => Some((&mut subquery.time, &mut subquery.end)),
        _ => None,
    }
}

/// The nanoseconds of a literal, or the expression.
fn split_duration(duration: DurationExpr) -> (i64, Option<DurationExpr>) {
    match duration {
        DurationExpr::Literal(literal) => ((literal.value * 1e9).round() as i64, None),
        duration => (0, Some(duration)),
    }
}
