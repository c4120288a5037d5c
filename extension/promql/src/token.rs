//! Tokens of PromQL.

use crate::quote::quote;
use crate::span::Span;

/// Kinds of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each kind is named after its text")]
pub enum TokenKind {
    Equal,
    Blank,
    Colon,
    Comma,
    Duration,
    EndOfInput,
    Identifier,
    LeftBrace,
    LeftBracket,
    LeftParen,
    MetricIdentifier,
    Number,
    RightBrace,
    RightBracket,
    RightParen,
    String,
    Add,
    Div,
    EqualCompare,
    EqualRegex,
    GreaterEqual,
    Greater,
    TrimUpper,
    TrimLower,
    And,
    Or,
    Less,
    LessEqual,
    Unless,
    Mod,
    Mul,
    NotEqual,
    NotEqualRegex,
    Pow,
    Sub,
    At,
    Atan2,
    Avg,
    Bottomk,
    Count,
    CountValues,
    Group,
    Max,
    Min,
    Quantile,
    Stddev,
    Stdvar,
    Sum,
    Topk,
    Limitk,
    LimitRatio,
    Bool,
    By,
    GroupLeft,
    GroupRight,
    Fill,
    FillLeft,
    FillRight,
    Ignoring,
    Offset,
    Smoothed,
    Anchored,
    On,
    Without,
    Start,
    End,
    Step,
    Range,
    MaxOf,
    MinOf,
}

use TokenKind as K;

/// Words that are keywords outside of braces, in lower case.
const KEYWORDS: [(&str, TokenKind); 39] = [
    ("and", K::And),
    ("or", K::Or),
    ("unless", K::Unless),
    ("atan2", K::Atan2),
    ("sum", K::Sum),
    ("avg", K::Avg),
    ("count", K::Count),
    ("min", K::Min),
    ("max", K::Max),
    ("group", K::Group),
    ("stddev", K::Stddev),
    ("stdvar", K::Stdvar),
    ("topk", K::Topk),
    ("bottomk", K::Bottomk),
    ("count_values", K::CountValues),
    ("quantile", K::Quantile),
    ("limitk", K::Limitk),
    ("limit_ratio", K::LimitRatio),
    ("offset", K::Offset),
    ("smoothed", K::Smoothed),
    ("anchored", K::Anchored),
    ("by", K::By),
    ("without", K::Without),
    ("on", K::On),
    ("ignoring", K::Ignoring),
    ("group_left", K::GroupLeft),
    ("group_right", K::GroupRight),
    ("fill", K::Fill),
    ("fill_left", K::FillLeft),
    ("fill_right", K::FillRight),
    ("bool", K::Bool),
    ("start", K::Start),
    ("end", K::End),
    ("step", K::Step),
    ("range", K::Range),
    ("max_of", K::MaxOf),
    ("min_of", K::MinOf),
    ("inf", K::Number),
    ("nan", K::Number),
];

/// The kind of a word that is a keyword, in any case.
pub fn keyword(word: &str) -> Option<TokenKind> {
    let found = KEYWORDS
        .iter()
        .find(|(name, _)| word.eq_ignore_ascii_case(name));
    found.map(|(_, kind)| *kind)
}

impl TokenKind {
    /// The text of a kind that has only one; the name of a keyword.
    pub fn text(self) -> Option<&'static str> {
        let symbol = match self {
            K::LeftParen => "(",
            K::RightParen => ")",
            K::LeftBrace => "{",
            K::RightBrace => "}",
            K::LeftBracket => "[",
            K::RightBracket => "]",
            K::Comma => ",",
            K::Equal => "=",
            K::Colon => ":",
            K::Blank => "_",
            K::Sub => "-",
            K::Add => "+",
            K::Mul => "*",
            K::Mod => "%",
            K::Div => "/",
            K::EqualCompare => "==",
            K::NotEqual => "!=",
            K::LessEqual => "<=",
            K::Less => "<",
            K::GreaterEqual => ">=",
            K::Greater => ">",
            K::TrimUpper => "</",
            K::TrimLower => ">/",
            K::EqualRegex => "=~",
            K::NotEqualRegex => "!~",
            K::Pow => "^",
            K::At => "@",
            K::Number => return None,
            kind => {
                let found = KEYWORDS.iter().find(|(_, held)| *held == kind);
                return found.map(|(name, _)| *name);
            }
        };
        Some(symbol)
    }

    /// Whether this is an operator between values, or one of matchers.
    pub fn is_operator(self) -> bool {
        (K::Add as u8..=K::Atan2 as u8).contains(&(self as u8))
    }

    /// Whether this is the name of an aggregation.
    pub fn is_aggregation(self) -> bool {
        (K::Avg as u8..=K::LimitRatio as u8).contains(&(self as u8))
    }

    /// Whether this is a keyword of modifiers.
    pub fn is_modifier(self) -> bool {
        (K::Bool as u8..=K::Without as u8).contains(&(self as u8))
    }

    /// Whether the word may be the name of a metric.
    pub fn is_metric_name(self) -> bool {
        let modifiers = [
            K::By,
            K::Fill,
            K::FillLeft,
            K::FillRight,
            K::Offset,
            K::Without,
        ];
        self.is_aggregation()
            || matches!(
                self,
                K::Identifier | K::MetricIdentifier | K::And | K::Or | K::Unless
            )
            || modifiers.contains(&self)
            || matches!(self, K::Anchored | K::Smoothed)
            || self as u8 >= K::Start as u8
    }

    /// Whether the word may be the name of a label in a list of labels.
    pub fn is_label_name(self) -> bool {
        self != K::Without && (self.is_metric_name() || self.is_modifier() || self == K::Atan2)
    }
}

/// A token: its kind, its text and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'q> {
    /// The kind.
    pub kind: TokenKind,
    /// The text as the query has it.
    pub text: &'q str,
    /// The first byte of the text in the query.
    pub start: usize,
}

impl Token<'_> {
    /// The range of the token in the query.
    pub fn span(&self) -> Span {
        Span::new(self.start, self.start + self.text.len())
    }

    /// The token as errors name it.
    pub fn description(&self) -> String {
        let class = match self.kind {
            K::EndOfInput => return "end of input".to_owned(),
            K::Identifier => "identifier",
            K::MetricIdentifier => "metric identifier",
            K::String => "string",
            K::Number => "number",
            K::Duration => "duration",
            kind if kind.is_modifier() => return format!("<{}>", self.text),
            kind if kind.is_operator() => return format!("<op:{}>", self.text),
            kind if kind.is_aggregation() => return format!("<aggr:{}>", self.text),
            _ => return self.shown(),
        };
        let is_name = matches!(self.kind, K::Identifier | K::MetricIdentifier);
        match is_name {
            true => format!("{class} {}", quote(self.text)),
            false => format!("{class} {}", self.shown()),
        }
    }

    /// The quoted text, cut after ten characters if it takes more than ten bytes.
    fn shown(&self) -> String {
        if self.text.len() <= 10 {
            return quote(self.text);
        }
        let start: String = self.text.chars().take(10).collect();
        format!("{}...", quote(&start))
    }
}
