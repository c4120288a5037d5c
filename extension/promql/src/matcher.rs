//! Matchers: which values of a label a selector admits.

use crate::alternation::alternatives;
use crate::expression::{compile_anchored, rewrite};
use crate::quote::quote;
use regex::Regex;
use std::fmt;

/// How a matcher compares a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchOperator {
    /// `=`: the value is the text.
    Equal,
    /// `!=`: the value is not the text.
    NotEqual,
    /// `=~`: the whole value matches the regular expression.
    Matches,
    /// `!~`: the value does not match the regular expression.
    NotMatches,
}

impl MatchOperator {
    /// The operator as a query writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            MatchOperator::Equal => "=",
            MatchOperator::NotEqual => "!=",
            MatchOperator::Matches => "=~",
            MatchOperator::NotMatches => "!~",
        }
    }
}

/// A condition on the value of one label. A series without the label has the empty value.
#[derive(Debug, Clone)]
pub struct Matcher {
    name: String,
    operator: MatchOperator,
    value: String,
    pattern: Pattern,
}

/// What values are compared with.
#[derive(Debug, Clone)]
enum Pattern {
    /// The matcher's text.
    Text,
    /// Any of these, which are sorted: an expression that is a plain alternation.
    OneOf(Vec<String>),
    /// An expression.
    Expression(Regex),
}

impl Pattern {
    fn of_expression(text: &str) -> Result<Pattern, String> {
        match alternatives(text) {
            Some(texts) => Ok(Pattern::OneOf(texts)),
            None => compile_anchored(text).map(Pattern::Expression),
        }
    }
}

impl Matcher {
    /// A matcher of a label.
    ///
    /// # Errors
    /// If the value of a regular expression's operator is no regular expression.
    pub fn new(name: &str, operator: MatchOperator, value: &str) -> Result<Matcher, String> {
        let pattern = match operator {
            MatchOperator::Matches | MatchOperator::NotMatches => Pattern::of_expression(value)?,
            MatchOperator::Equal | MatchOperator::NotEqual => Pattern::Text,
        };
        Ok(Matcher {
            name: name.to_owned(),
            operator,
            value: value.to_owned(),
            pattern,
        })
    }

    /// A matcher that admits one value.
    pub fn equal(name: &str, value: &str) -> Matcher {
        Matcher {
            name: name.to_owned(),
            operator: MatchOperator::Equal,
            value: value.to_owned(),
            pattern: Pattern::Text,
        }
    }

    /// The name of the label.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The operator.
    pub fn operator(&self) -> MatchOperator {
        self.operator
    }

    /// The text or regular expression that values are compared with.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The texts that the regular expression matches, sorted, if it is a plain alternation.
    pub fn alternatives(&self) -> Option<&[String]> {
        match &self.pattern {
            Pattern::OneOf(texts) => Some(texts),
            Pattern::Text | Pattern::Expression(_) => None,
        }
    }

    /// The regular expression in the syntax of the crate `regex`, which differs from that of RE2 in
    /// some places; `None` for a text. It is not anchored, and `.` has to match newlines.
    pub fn rust_expression(&self) -> Option<String> {
        match self.pattern {
            Pattern::Text => None,
            Pattern::OneOf(_) | Pattern::Expression(_) => rewrite(&self.value).ok(),
        }
    }

    /// Whether a value matches.
    pub fn matches(&self, value: &str) -> bool {
        let is_alike = match &self.pattern {
            Pattern::Text => value == self.value,
            Pattern::OneOf(texts) => texts
                .binary_search_by(|text| text.as_str().cmp(value))
                .is_ok(),
            Pattern::Expression(regex) => regex.is_match(value),
        };
        match self.operator {
            MatchOperator::Equal | MatchOperator::Matches => is_alike,
            MatchOperator::NotEqual | MatchOperator::NotMatches => !is_alike,
        }
    }
}

/// Matchers are equal if they are written alike.
impl PartialEq for Matcher {
    fn eq(&self, other: &Matcher) -> bool {
        (&self.name, self.operator, &self.value) == (&other.name, other.operator, &other.value)
    }
}

impl Eq for Matcher {}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match crate::labels::is_plain_name(&self.name) {
            true => f.write_str(&self.name)?,
            false => f.write_str(&quote(&self.name))?,
        }
        write!(f, "{}{}", self.operator.as_str(), quote(&self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::{MatchOperator, Matcher};

    #[test]
    fn expressions_mean_the_same_in_the_syntax_of_rust() {
        let of = |operator, value| Matcher::new("a", operator, value).unwrap();
        let matcher = of(MatchOperator::NotMatches, r"\w+|\Q.\E");
        let expression = matcher.rust_expression().unwrap();
        let regex = regex::Regex::new(&format!("^(?s:{expression})$")).unwrap();
        for value in ["büro", "buero", ".", "x."] {
            assert_eq!(regex.is_match(value), !matcher.matches(value), "{value}");
        }
        assert_eq!(of(MatchOperator::Equal, "x").rust_expression(), None);
    }

    #[test]
    fn values_are_compared_as_the_operator_says() {
        let of = |operator, value| Matcher::new("a", operator, value).unwrap();
        assert!(of(MatchOperator::Equal, "x").matches("x"));
        assert!(of(MatchOperator::NotEqual, "x").matches(""));
        assert!(of(MatchOperator::Matches, "x|y").matches("y"));
        assert!(!of(MatchOperator::NotMatches, "x|y").matches("y"));
        assert!(of(MatchOperator::NotMatches, "x|y").matches(""));
        assert!(of(MatchOperator::Matches, "x.").matches("xy"));
        assert!(of(MatchOperator::NotMatches, ".+").matches(""));
        assert!(Matcher::new("a", MatchOperator::Matches, "(").is_err());
        assert_eq!(of(MatchOperator::Matches, "x\"").to_string(), r#"a=~"x\"""#);
    }
}
