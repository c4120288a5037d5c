//! A query's text to its syntax tree.
//!
//! The parser is written by hand, not that of the crate `promql-parser`: that one knows neither
//! duration expressions nor `fill`, `anchored`, `smoothed` and trimming operators, and words its
//! errors in its own way, without positions. Here each error has the words and the position that
//! Prometheus's own parser, made by yacc, reports first. Where its grammar recovers from errors,
//! a [`Context`] holds the words of the innermost rule that does.
//!
//! Postfix modifiers bind most tightly, then `^`, then signs, then the other operators. An
//! expression may be nested only [`DEPTH_MAX`] deep, so that neither the parser nor what walks
//! over the tree exhausts the stack. Rules that lead to each other leave what they can to
//! functions of their own, whose variables then take no stack on each level.

mod check;
mod duration;
pub(crate) use duration::SECONDS_MAX;
pub(crate) use operator::{is_comparison, is_set_operator};
mod operator;
mod selector;

use crate::ast::{Aggregate, Call, Expr, NumberLiteral, Paren, StringLiteral, Unary};
use crate::function::Function;
use crate::lexer::Lexer;
use crate::matcher::Matcher;
use crate::number;
use crate::quote::{quote, unquote};
use crate::span::Span;
use crate::token::{Token, TokenKind as K};

/// Levels of expressions that may stand in each other, chains of operators included.
///
/// An optimised build takes less than [`STACK_BYTES_MAX`] for so many, which is what PostgreSQL
/// keeps free below `max_stack_depth` (its `STACK_DEPTH_SLOP`).
pub const DEPTH_MAX: usize = 128;

/// The stack that the deepest query takes at most, from its text to its answer, in bytes.
pub const STACK_BYTES_MAX: usize = 512 << 10;

/// What a query may use beside the stable language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ParserOptions {
    /// Experimental functions and aggregations.
    pub experimental_functions: bool,
    /// The modifiers `fill`, `fill_left` and `fill_right` of operators.
    pub fill_modifiers: bool,
    /// Letters beyond ASCII, and dots, in names without quotes.
    pub unicode_names: bool,
}

/// A fault of a query's text.
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
#[error("{}{message}", self.place())]
pub struct ParseError {
    /// Prometheus's words for the fault.
    pub message: String,
    /// The place in the query.
    pub span: Span,
    /// The line and column of the place; empty if the query as a whole is at fault.
    pub position: String,
}

impl ParseError {
    /// A fault of a query as a whole.
    pub(crate) fn of_whole(message: String) -> ParseError {
        ParseError {
            message,
            span: Span::default(),
            position: String::new(),
        }
    }

    fn place(&self) -> String {
        match self.position.as_str() {
            "" => String::new(),
            position => format!("{position}: parse error: "),
        }
    }
}

/// The rule that a token does not fit into, for the words of the error.
#[derive(Debug, Clone, Copy)]
struct Context {
    place: &'static str,
    expected: &'static str,
}

const AGGREGATION: Context = Context {
    place: "aggregation",
    expected: "",
};

/// Reads a query.
///
/// # Errors
/// The first fault of the text, or of the types of its expressions.
pub fn parse(query: &str, options: ParserOptions) -> Result<Expr, ParseError> {
    let mut parser = Parser::new(query, options);
    if parser.peek()?.kind == K::EndOfInput {
        return Err(parser.error(Span::default(), "no expression found in input"));
    }
    let expr = parser.expression(0)?;
    let token = parser.peek()?;
    if token.kind != K::EndOfInput {
        return Err(parser.unexpected(token));
    }
    check::check(&expr, query)?;
    Ok(expr)
}

/// Reads a selector of series and returns its matchers.
///
/// # Errors
/// The first fault of the text.
pub fn parse_selector(text: &str, options: ParserOptions) -> Result<Vec<Matcher>, ParseError> {
    let mut parser = Parser::new(text, options);
    let token = parser.peek()?;
    if !token.kind.is_metric_name() && token.kind != K::LeftBrace {
        return Err(parser.unexpected(token));
    }
    let Expr::Selector(selector) = parser.vector_selector()? else {
        return Err(parser.unexpected(token));
    };
    let token = parser.peek()?;
    if token.kind != K::EndOfInput {
        return Err(parser.unexpected(token));
    }
    Ok(selector.matchers)
}

struct Parser<'q> {
    query: &'q str,
    lexer: Lexer<'q>,
    peeked: Option<Token<'q>>,
    /// The end of the last token that has been taken.
    last_end: usize,
    contexts: Vec<Context>,
    depth: usize,
    options: ParserOptions,
}

impl<'q> Parser<'q> {
    fn new(query: &'q str, options: ParserOptions) -> Parser<'q> {
        Parser {
            query,
            lexer: Lexer::new(query, options.unicode_names),
            peeked: None,
            last_end: 0,
            contexts: Vec::new(),
            depth: 0,
            options,
        }
    }

    fn error(&self, span: Span, message: impl Into<String>) -> ParseError {
        error_in(self.query, span, message)
    }

    fn peek(&mut self) -> Result<Token<'q>, ParseError> {
        if let Some(token) = self.peeked {
            return Ok(token);
        }
        let lexed = self.lexer.next_token();
        let token = lexed.map_err(|fault| {
            let span = Span::new(fault.start, self.query.len());
            self.error(span, fault.message)
        })?;
        Ok(*self.peeked.insert(token))
    }

    fn next(&mut self) -> Result<Token<'q>, ParseError> {
        let token = self.peek()?;
        self.peeked = None;
        self.last_end = token.span().end;
        Ok(token)
    }

    /// Takes the next token if it is of a kind.
    fn take(&mut self, kind: K) -> Result<Option<Token<'q>>, ParseError> {
        match self.peek()?.kind == kind {
            true => self.next().map(Some),
            false => Ok(None),
        }
    }

    fn expect(&mut self, kind: K) -> Result<Token<'q>, ParseError> {
        let token = self.peek()?;
        match token.kind == kind {
            true => self.next(),
            false => Err(self.unexpected(token)),
        }
    }

    /// The error of a token that does not fit, in the words of the innermost rule that has some.
    fn unexpected(&self, token: Token<'q>) -> ParseError {
        match self.contexts.last() {
            Some(context) => self.unexpected_in(token, *context),
            None => {
                let message = format!("unexpected {}", token.description());
                self.error(token.span(), message)
            }
        }
    }

    fn unexpected_in(&self, token: Token<'q>, context: Context) -> ParseError {
        let mut message = format!("unexpected {} in {}", token.description(), context.place);
        if !context.expected.is_empty() {
            message.push_str(", expected ");
            message.push_str(context.expected);
        }
        self.error(token.span(), message)
    }

    /// Runs a rule within a context.
    fn within<T>(
        &mut self,
        context: Context,
        rule: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        self.contexts.push(context);
        let result = rule(self);
        self.contexts.pop();
        result
    }

    /// Runs a rule one level deeper.
    fn nested<T>(
        &mut self,
        rule: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let span = Span::new(self.last_end, self.query.len());
            return Err(self.error(
                span,
                format!("expression is nested more than {DEPTH_MAX} deep"),
            ));
        }
        let result = rule(self);
        self.depth -= 1;
        result
    }

    /// A sign, or an operand with its modifiers.
    fn operand(&mut self) -> Result<Expr, ParseError> {
        let token = self.peek()?;
        if !matches!(token.kind, K::Add | K::Sub) {
            let primary = self.nested(Self::primary)?;
            return self.modifiers(primary);
        }
        self.signed(token)
    }

    fn signed(&mut self, token: Token<'q>) -> Result<Expr, ParseError> {
        self.next()?;
        let is_minus = token.kind == K::Sub;
        let expr = self.nested(|parser| parser.expression(operator::SIGN))?;
        if let Expr::Number(mut number) = expr {
            number.value *= if is_minus { -1.0 } else { 1.0 };
            number.span.start = token.start;
            return Ok(Expr::Number(number));
        }
        let start = token.start;
        Ok(Expr::Unary(Box::new(Unary {
            is_minus,
            expr,
            start,
        })))
    }

    fn primary(&mut self) -> Result<Expr, ParseError> {
        let token = self.peek()?;
        match token.kind {
            K::Number | K::Duration => Ok(Expr::Number(self.number()?)),
            K::String => self.string(token),
            K::LeftParen => self.parentheses(token),
            K::LeftBrace => self.vector_selector(),
            kind if kind.is_metric_name() => self.named(token),
            _ => Err(self.unexpected(token)),
        }
    }

    fn string(&mut self, token: Token<'q>) -> Result<Expr, ParseError> {
        self.next()?;
        let (value, span) = (self.unquoted(token)?, token.span());
        Ok(Expr::String(StringLiteral { value, span }))
    }

    fn parentheses(&mut self, open: Token<'q>) -> Result<Expr, ParseError> {
        self.next()?;
        let expr = self.expression(0)?;
        let close = self.expect(K::RightParen)?;
        let span = open.span().to(close.span());
        Ok(Expr::Paren(Box::new(Paren { expr, span })))
    }

    /// What begins with a word: an aggregation, a call of a function, or a selector.
    fn named(&mut self, token: Token<'q>) -> Result<Expr, ParseError> {
        self.next()?;
        let after = self.peek()?;
        let is_call = after.kind == K::LeftParen;
        if token.kind.is_aggregation() && (is_call || matches!(after.kind, K::By | K::Without)) {
            return self.within(AGGREGATION, |parser| parser.aggregate(token));
        }
        let starts_call = token.kind == K::Identifier || token.kind as u8 >= K::Start as u8;
        if is_call && starts_call {
            return self.call(token);
        }
        self.selector_named(token)
    }

    fn call(&mut self, name: Token<'q>) -> Result<Expr, ParseError> {
        let args = self.call_body()?;
        self.called(name, args)
    }

    fn called(&self, name: Token<'q>, args: Vec<Expr>) -> Result<Expr, ParseError> {
        let named = || quote(name.text);
        let Some(function) = Function::named(name.text) else {
            let message = format!("unknown function with name {}", named());
            return Err(self.error(name.span(), message));
        };
        if function.is_experimental && !self.options.experimental_functions {
            return Err(self.error(name.span(), format!("function {} is not enabled", named())));
        }
        let span = Span::new(name.start, self.last_end);
        Ok(Expr::Call(Box::new(Call {
            function,
            args,
            span,
        })))
    }

    /// The arguments of a call, in parentheses.
    fn call_body(&mut self) -> Result<Vec<Expr>, ParseError> {
        self.expect(K::LeftParen)?;
        let mut args = Vec::new();
        if self.take(K::RightParen)?.is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expression(0)?);
            let Some(comma) = self.take(K::Comma)? else {
                self.expect(K::RightParen)?;
                return Ok(args);
            };
            if !starts_expression(self.peek()?.kind) {
                let message = "trailing commas not allowed in function call args";
                return Err(self.error(comma.span(), message));
            }
        }
    }

    fn aggregate(&mut self, operator: Token<'q>) -> Result<Expr, ParseError> {
        let modifier = self.grouping_modifier()?;
        let args = self.call_body()?;
        self.aggregated(operator, modifier, args)
    }

    fn aggregated(
        &mut self,
        operator: Token<'q>,
        mut modifier: Option<(bool, Vec<String>)>,
        mut args: Vec<Expr>,
    ) -> Result<Expr, ParseError> {
        let mut end = self.last_end;
        if modifier.is_none() {
            modifier = self.grouping_modifier()?;
            if modifier.is_some() {
                end = self.last_end;
            }
        }
        let span = Span::new(operator.start, end);
        let kind = operator.kind;
        if args.is_empty() {
            let message = "no arguments for aggregate expression provided";
            return Err(self.error(span, message));
        }
        if matches!(kind, K::Limitk | K::LimitRatio) && !self.options.experimental_functions {
            let name = kind.text().unwrap_or_default();
            let message = format!(
                "{name}() is experimental and must be enabled with \
                 --enable-feature=promql-experimental-functions"
            );
            return Err(self.error(span, message));
        }
        let desired = if takes_parameter(kind) { 2 } else { 1 };
        if args.len() != desired {
            let message = format!(
                "wrong number of arguments for aggregate expression provided, expected {desired}, \
                 got {}",
                args.len()
            );
            return Err(self.error(span, message));
        }
        let expr = args.remove(desired - 1);
        let (without, grouping) = modifier.unwrap_or_default();
        Ok(Expr::Aggregate(Box::new(Aggregate {
            operator: kind,
            expr,
            param: args.pop(),
            grouping,
            without,
            span,
        })))
    }

    /// `by` or `without` and its labels.
    fn grouping_modifier(&mut self) -> Result<Option<(bool, Vec<String>)>, ParseError> {
        let token = self.peek()?;
        if !matches!(token.kind, K::By | K::Without) {
            return Ok(None);
        }
        self.next()?;
        Ok(Some((token.kind == K::Without, self.grouping_labels()?)))
    }

    fn number(&mut self) -> Result<NumberLiteral, ParseError> {
        let token = self.next()?;
        let span = token.span();
        let is_duration = token.kind == K::Duration;
        let value = if is_duration {
            let nanos = crate::duration::parse(token.text);
            nanos.map_err(|fault| self.error(span, fault))? as f64 / 1e9
        } else {
            let number = number::parse(token.text);
            number.map_err(|fault| self.error(span, format!("error parsing number: {fault}")))?
        };
        Ok(NumberLiteral {
            value,
            is_duration,
            span,
        })
    }

    fn unquoted(&self, token: Token<'q>) -> Result<String, ParseError> {
        unquote(token.text).map_err(|fault| {
            let message = format!("error unquoting string {}: {fault}", quote(token.text));
            self.error(token.span(), message)
        })
    }
}

fn error_in(query: &str, span: Span, message: impl Into<String>) -> ParseError {
    ParseError {
        message: message.into(),
        span,
        position: span.position(query),
    }
}

/// Whether an aggregation has a parameter.
pub(crate) fn takes_parameter(operator: K) -> bool {
    let with = [
        K::Topk,
        K::Bottomk,
        K::CountValues,
        K::Quantile,
        K::Limitk,
        K::LimitRatio,
    ];
    with.contains(&operator)
}

fn starts_expression(kind: K) -> bool {
    use K::{Add, Duration, LeftBrace, LeftParen, Number, String, Sub};
    kind.is_metric_name()
        || matches!(
            kind,
            Add | Sub | Number | Duration | String | LeftBrace | LeftParen
        )
}

#[cfg(test)]
mod tests;
