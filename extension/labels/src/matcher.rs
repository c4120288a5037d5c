//! One matcher of a selector: a label, an operator and a value.

use std::cell::RefCell;
use std::num::NonZeroUsize;

use lru::LruCache;
use regex::Regex;
use regex_syntax::hir::literal::Extractor;

/// How a matcher compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Matches,
    /// `!~`
    NotMatches,
}

/// A matcher of a selector.
#[derive(Debug, Clone)]
pub struct Matcher {
    name: String,
    pattern: Pattern,
    is_negated: bool,
}

/// A pattern for values of a label.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// Any value, the empty one too.
    Anything,
    /// Any value but the empty one.
    NotEmpty,
    /// One of these, which are sorted by their bytes and distinct.
    OneOf(Vec<String>),
    /// An expression for the whole value. The text is what each match begins with.
    Expression {
        /// The expression with anchors.
        regex: Box<Regex>,
        /// The literal prefix of each match; may be empty.
        prefix: String,
    },
}

/// Bytes that a compiled expression may take.
const REGEX_BYTES_MAX: usize = 10 << 20;
/// Compiled expressions that a thread keeps: dashboards send the same ones again and again, and to compile one takes
/// longer than most look-ups. With what it holds while it matches, each takes [`KEPT_BYTES_MAX`] twice at most.
const KEPT_MAX: NonZeroUsize = NonZeroUsize::new(32).unwrap();
/// Bytes that a compiled expression may take to be kept, and bytes that it may take while it matches.
const KEPT_BYTES_MAX: usize = 128 << 10;
/// Classes of Unicode, such as `\pL`, that an expression may name. Each takes some 6 KB while it is parsed.
const UNICODE_CLASSES_MAX: usize = 1000;
/// Texts into which an alternation is taken apart.
const ALTERNATIVES_MAX: usize = 4096;

thread_local! {
    /// The expression and the literal prefix of each match.
    static KEPT: RefCell<LruCache<String, (Regex, String)>> = RefCell::new(LruCache::new(KEPT_MAX));
}

impl Matcher {
    /// A matcher.
    ///
    /// # Errors
    /// If the operator takes a regular expression and the value is invalid. The error describes the
    /// fault.
    pub fn new(name: String, operator: Operator, value: String) -> Result<Matcher, String> {
        let pattern = match operator {
            Operator::Equal | Operator::NotEqual => Pattern::OneOf(vec![value]),
            Operator::Matches | Operator::NotMatches => Pattern::of_expression(&value)?,
        };
        let is_negated = matches!(operator, Operator::NotEqual | Operator::NotMatches);
        Ok(Matcher {
            name,
            pattern,
            is_negated,
        })
    }

    /// A matcher for any of these values.
    pub fn one_of(name: String, mut values: Vec<String>) -> Matcher {
        values.sort_unstable();
        values.dedup();
        Matcher {
            name,
            pattern: Pattern::OneOf(values),
            is_negated: false,
        }
    }

    /// A matcher for all values but these.
    pub fn none_of(name: String, values: Vec<String>) -> Matcher {
        Matcher {
            is_negated: true,
            ..Matcher::one_of(name, values)
        }
    }

    /// The label.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The pattern that the label's value is compared with.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Whether values that are unlike the pattern match.
    pub fn is_negated(&self) -> bool {
        self.is_negated
    }

    /// Whether a series with this value matches. The value is empty for a series without the label.
    pub fn matches(&self, value: &str) -> bool {
        self.pattern.matches(value) != self.is_negated
    }
}

impl Pattern {
    fn of_expression(text: &str) -> Result<Pattern, String> {
        match text {
            ".*" => return Ok(Pattern::Anything),
            ".+" => return Ok(Pattern::NotEmpty),
            _ => {}
        }
        if let Some((regex, prefix)) = KEPT.with_borrow_mut(|kept| kept.get(text).cloned()) {
            let regex = Box::new(regex);
            return Ok(Pattern::Expression { regex, prefix });
        }
        let unicode_classes = text.matches(r"\p").count() + text.matches(r"\P").count();
        if unicode_classes > UNICODE_CLASSES_MAX {
            return Err(format!(
                "the expression has more than {UNICODE_CLASSES_MAX} classes of Unicode"
            ));
        }
        // The text is parsed alone first: anchors around `a)|(b` would make it a valid expression.
        let mut parser = regex_syntax::ParserBuilder::new()
            .dot_matches_new_line(true)
            .build();
        let hir = parser.parse(text).map_err(|failure| match failure {
            regex_syntax::Error::Parse(failure) => failure.kind().to_string(),
            regex_syntax::Error::Translate(failure) => failure.kind().to_string(),
            other => other.to_string(),
        })?;
        let mut prefix = String::new();
        // The literals lack the expression's assertions, such as `^`, `$` and `\b`.
        if hir.properties().look_set().is_empty() {
            let mut extractor = Extractor::new();
            extractor.limit_total(ALTERNATIVES_MAX);
            let literals = extractor.extract(&hir);
            if literals.is_exact()
                && let Some(found) = literals.literals()
            {
                let texts = found
                    .iter()
                    .map(|literal| String::from_utf8(literal.as_bytes().to_vec()).map_err(|_| ()));
                if let Ok(mut texts) = texts.collect::<Result<Vec<_>, ()>>() {
                    texts.sort_unstable();
                    texts.dedup();
                    return Ok(Pattern::OneOf(texts));
                }
            }
            let common = literals.longest_common_prefix().unwrap_or_default();
            prefix = String::from_utf8_lossy(common).into_owned();
            // The prefix may end within a character of several bytes.
            if let Some(cut) = prefix.find('\u{fffd}') {
                prefix.truncate(cut);
            }
        }
        let regex = match compile(text, KEPT_BYTES_MAX) {
            Ok(regex) => {
                let kept = (regex.clone(), prefix.clone());
                KEPT.with_borrow_mut(|expressions| expressions.put(text.to_owned(), kept));
                regex
            }
            Err(_) => compile(text, REGEX_BYTES_MAX)?,
        };
        Ok(Pattern::Expression {
            regex: Box::new(regex),
            prefix,
        })
    }

    /// Whether a value is like this.
    pub fn matches(&self, value: &str) -> bool {
        match self {
            Pattern::Anything => true,
            Pattern::NotEmpty => !value.is_empty(),
            Pattern::OneOf(texts) => texts
                .binary_search_by(|text| text.as_str().cmp(value))
                .is_ok(),
            Pattern::Expression { regex, prefix } => {
                value.starts_with(prefix.as_str()) && regex.is_match(value)
            }
        }
    }
}

/// Compiles an expression that has to match a whole value.
fn compile(text: &str, bytes_max: usize) -> Result<Regex, String> {
    // `(?s-u)` and the like may begin the text, but not what stands in a group.
    regex::RegexBuilder::new(&format!("^(?:{text})$"))
        .dot_matches_new_line(true)
        .size_limit(bytes_max)
        .dfa_size_limit(bytes_max)
        .build()
        .map_err(|failure| match failure {
            regex::Error::CompiledTooBig(limit) => {
                format!("compiled it would take more than {limit} bytes")
            }
            failure => failure.to_string(),
        })
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Matcher, Operator, Pattern};
    use proptest::prelude::*;

    fn expression(text: &str) -> Matcher {
        Matcher::new("a".to_owned(), Operator::Matches, text.to_owned()).unwrap()
    }

    #[test]
    fn alternations_are_taken_apart() {
        for (text, expected) in [
            ("a|b|c", vec!["a", "b", "c"]),
            ("up", vec!["up"]),
            ("node-(1|2)", vec!["node-1", "node-2"]),
            ("", vec![""]),
            ("c|a|", vec!["", "a", "c"]),
        ] {
            let matcher = expression(text);
            let Pattern::OneOf(texts) = matcher.pattern() else {
                panic!("{text}: {matcher:?}");
            };
            assert_eq!(*texts, expected, "{text}");
        }
    }

    #[test]
    fn what_matches_begin_with_is_known() {
        for (text, expected) in [
            ("node-.*", "node-"),
            ("(ab|ac)d+", "a"),
            (".*x", ""),
            ("é.*", "é"),
        ] {
            let matcher = expression(text);
            let Pattern::Expression { prefix, .. } = matcher.pattern() else {
                panic!("{text}: {matcher:?}");
            };
            assert_eq!(prefix, expected, "{text}");
        }
    }

    #[test]
    fn the_whole_value_is_compared() {
        let matcher = expression("b|c");
        assert!(matcher.matches("b") && !matcher.matches("ab") && !matcher.matches("bc"));
        let looking = expression("^a$|b\\b");
        assert!(looking.matches("a") && looking.matches("b") && !looking.matches("ab"));
        assert!(expression(".*").matches("") && expression("a.c").matches("a\nc"));
        assert!(!expression(".+").matches(""));
        assert!(expression("(?i)Up").matches("uP"));
    }

    #[test]
    fn small_expressions_are_kept_and_large_ones_are_not() {
        let is_kept = |text: &str| KEPT.with_borrow(|kept| kept.contains(text));
        assert!(expression("a.*").matches("ab") && is_kept("a.*"));
        let again = expression("a.*");
        assert!(again.matches("ab") && !again.matches("ba"));
        let Pattern::Expression { prefix, .. } = again.pattern() else {
            panic!("{again:?}");
        };
        assert_eq!(prefix, "a");
        let large = r"\pL{20}x";
        assert!(!expression(large).matches("x") && !is_kept(large));
    }

    #[test]
    fn values_are_all_but_these() {
        let matcher = Matcher::none_of("a".to_owned(), vec!["y".to_owned(), "x".to_owned()]);
        assert!(matcher.matches("") && !matcher.matches("x") && !matcher.matches("y"));
    }

    #[test]
    fn a_text_that_is_no_expression_is_refused() {
        for text in ["(", "a)|(b", "*", "[", r"\"] {
            let made = Matcher::new("a".to_owned(), Operator::Matches, text.to_owned());
            assert!(made.is_err(), "{text}");
        }
        let large = "(?:x{1000}){1000}".to_owned();
        let failure = Matcher::new("a".to_owned(), Operator::Matches, large).unwrap_err();
        assert!(failure.contains("bytes"), "{failure}");
    }

    proptest! {
        #[test]
        fn taking_apart_changes_no_answer(text in "[ab|(.)*+?^$\\[\\]]{0,8}", value in "[ab\n]{0,5}") {
            let whole = regex::RegexBuilder::new(&format!("^(?:{text})$")).dot_matches_new_line(true).build();
            if let Ok(matcher) = Matcher::new("a".to_owned(), Operator::Matches, text.clone()) {
                let whole = whole.unwrap();
                prop_assert_eq!(matcher.matches(&value), whole.is_match(&value));
                let negated = Matcher::new("a".to_owned(), Operator::NotMatches, text).unwrap();
                prop_assert_eq!(negated.matches(&value), !whole.is_match(&value));
            }
        }
    }
}
