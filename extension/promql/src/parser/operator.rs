//! Operators between expressions, and how series of their sides find each other.

use super::{Context, DEPTH_MAX, ParseError, Parser};
use crate::ast::{Binary, Cardinality, Expr, Matching};
use crate::labels::is_plain_name;
use crate::quote::quote;
use crate::span::Span;
use crate::token::TokenKind as K;

/// The precedence that the operand of a sign has at least: that of `^`.
pub(super) const SIGN: u8 = 6;

const GROUPING_START: Context = Context {
    place: "grouping opts",
    expected: "\"(\"",
};

const GROUPING_LABEL: Context = Context {
    place: "grouping opts",
    expected: "label",
};

const GROUPING_NEXT: Context = Context {
    place: "grouping opts",
    expected: "\",\" or \")\"",
};

/// The precedence of an operator, from 1.
fn precedence(kind: K) -> Option<u8> {
    Some(match kind {
        K::Or => 1,
        K::And | K::Unless => 2,
        K::EqualCompare | K::NotEqual | K::Less | K::LessEqual => 3,
        K::Greater | K::GreaterEqual | K::TrimUpper | K::TrimLower => 3,
        K::Add | K::Sub => 4,
        K::Mul | K::Div | K::Mod | K::Atan2 => 5,
        K::Pow => 6,
        _ => return None,
    })
}

impl Parser<'_> {
    /// An expression of operators that bind at least as tightly as a precedence.
    pub(super) fn expression(&mut self, least: u8) -> Result<Expr, ParseError> {
        let mut left = self.operand()?;
        let mut links = 0;
        loop {
            let token = self.peek()?;
            let Some(power) = precedence(token.kind).filter(|power| *power >= least) else {
                self.depth -= links;
                return Ok(left);
            };
            // Each link of a chain makes the tree one level deeper on its left side.
            links += 1;
            left = self.link(left, token.kind, power)?;
        }
    }

    /// An operator with its right side, after the expression on its left.
    fn link(&mut self, left: Expr, operator: K, power: u8) -> Result<Expr, ParseError> {
        let token = self.next()?;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("expression is nested more than {DEPTH_MAX} deep");
            return Err(self.error(token.span(), message));
        }
        let (returns_bool, matching) = self.operator_modifiers()?;
        let is_right_associative = operator == K::Pow;
        let right = self.expression(if is_right_associative {
            power
        } else {
            power + 1
        })?;
        let has_fill = matching.fill_left.is_some() || matching.fill_right.is_some();
        let span = left.span().to(right.span());
        if has_fill && !self.options.fill_modifiers {
            let message = "binop fill modifiers are experimental and not enabled";
            return Err(self.error(span, message));
        }
        Ok(Expr::Binary(Box::new(Binary {
            operator,
            left,
            right,
            matching: with_set_cardinality(matching, operator),
            returns_bool,
        })))
    }

    fn operator_modifiers(&mut self) -> Result<(bool, Matching), ParseError> {
        let returns_bool = self.take(K::Bool)?.is_some();
        let mut matching = Matching {
            cardinality: Cardinality::OneToOne,
            labels: Vec::new(),
            on: false,
            include: Vec::new(),
            fill_left: None,
            fill_right: None,
        };
        let token = self.peek()?;
        if matches!(token.kind, K::On | K::Ignoring) {
            self.next()?;
            matching.on = token.kind == K::On;
            matching.labels = self.grouping_labels()?;
            let group = self.peek()?;
            if matches!(group.kind, K::GroupLeft | K::GroupRight) {
                self.next()?;
                matching.cardinality = match group.kind {
                    K::GroupLeft => Cardinality::ManyToOne,
                    _ => Cardinality::OneToMany,
                };
                // The labels may be left out before an operand only.
                let next = self.peek()?.kind;
                let is_fill = matches!(next, K::Fill | K::FillLeft | K::FillRight);
                if next == K::LeftParen || !is_fill && !starts_operand(next) {
                    matching.include = self.grouping_labels()?;
                }
            }
        }
        self.fill_modifiers(&mut matching)?;
        Ok((returns_bool, matching))
    }

    fn fill_modifiers(&mut self, matching: &mut Matching) -> Result<(), ParseError> {
        if self.take(K::Fill)?.is_some() {
            let value = self.fill_value()?;
            (matching.fill_left, matching.fill_right) = (Some(value), Some(value));
            return Ok(());
        }
        loop {
            let token = self.peek()?;
            let side = match token.kind {
                K::FillLeft if matching.fill_left.is_none() => &mut matching.fill_left,
                K::FillRight if matching.fill_right.is_none() => &mut matching.fill_right,
                _ => return Ok(()),
            };
            self.next()?;
            *side = Some(self.fill_value()?);
        }
    }

    fn fill_value(&mut self) -> Result<f64, ParseError> {
        self.expect(K::LeftParen)?;
        let sign = self.peek()?;
        if matches!(sign.kind, K::Add | K::Sub) {
            self.next()?;
        }
        let token = self.peek()?;
        if !matches!(token.kind, K::Number | K::Duration) {
            return Err(self.unexpected(token));
        }
        let number = self.number()?;
        self.expect(K::RightParen)?;
        Ok(if sign.kind == K::Sub {
            -number.value
        } else {
            number.value
        })
    }

    /// Names of labels in parentheses.
    pub(super) fn grouping_labels(&mut self) -> Result<Vec<String>, ParseError> {
        let open = self.peek()?;
        if open.kind != K::LeftParen {
            return Err(self.unexpected_in(open, GROUPING_START));
        }
        self.next()?;
        let mut labels = Vec::new();
        if self.take(K::RightParen)?.is_some() {
            return Ok(labels);
        }
        loop {
            labels.push(self.grouping_label()?);
            let token = self.peek()?;
            match token.kind {
                K::Comma => {
                    self.next()?;
                    if self.take(K::RightParen)?.is_some() {
                        return Ok(labels);
                    }
                }
                K::RightParen => {
                    self.next()?;
                    return Ok(labels);
                }
                _ => return Err(self.unexpected_in(token, GROUPING_NEXT)),
            }
        }
    }

    fn grouping_label(&mut self) -> Result<String, ParseError> {
        let token = self.peek()?;
        let name = match token.kind {
            K::String => {
                self.next()?;
                self.unquoted(token)?
            }
            kind if kind.is_label_name() => {
                self.next()?;
                token.text.to_owned()
            }
            _ => return Err(self.unexpected_in(token, GROUPING_LABEL)),
        };
        let is_colon_refused = self.options.unicode_names && name.contains(':');
        let is_unquoted = token.kind != K::String;
        if name.is_empty() || is_unquoted && is_colon_refused && !is_plain_name(&name) {
            let message = format!("invalid label name for grouping: {}", quote(&name));
            return Err(self.error(token.span(), message));
        }
        Ok(name)
    }

    /// The range of an operator between its operands, without the space around it.
    pub(super) fn operator_span(query: &str, left: Span, right: Span) -> Span {
        let bytes = query.as_bytes();
        let is_space = |at: usize| matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r'));
        let mut start = left.end;
        while is_space(start) {
            start += 1;
        }
        let mut end = right.start.saturating_sub(1);
        while end > start && is_space(end) {
            end -= 1;
        }
        Span::new(start, end)
    }
}

fn with_set_cardinality(mut matching: Matching, operator: K) -> Matching {
    let is_set = matches!(operator, K::And | K::Or | K::Unless);
    if is_set && matching.cardinality == Cardinality::OneToOne {
        matching.cardinality = Cardinality::ManyToMany;
    }
    matching
}

/// Whether an operator compares.
pub(crate) fn is_comparison(operator: K) -> bool {
    use K::{EqualCompare, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    matches!(
        operator,
        EqualCompare | NotEqual | Less | LessEqual | Greater | GreaterEqual
    )
}

/// Whether an operator is one of sets.
pub(crate) fn is_set_operator(operator: K) -> bool {
    matches!(operator, K::And | K::Or | K::Unless)
}

/// Whether an operand may start with a token.
fn starts_operand(kind: K) -> bool {
    let is_start = matches!(
        kind,
        K::Number | K::Duration | K::String | K::LeftBrace | K::LeftParen | K::Add | K::Sub
    );
    is_start || kind.is_metric_name()
}
