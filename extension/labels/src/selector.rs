//! A selector's text, as Prometheus writes it: `up{job="node",instance=~"a|b"}`.

use crate::METRIC_NAME;
use crate::matcher::{Matcher, Operator};

/// A selector: series that match all of its matchers.
#[derive(Debug, Clone)]
pub struct Selector {
    /// The matchers. An empty list selects all series.
    pub matchers: Vec<Matcher>,
}

/// Why a text is no selector.
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
#[error("{message} at character {place}")]
pub struct SelectorError {
    /// The fault, in words.
    pub message: String,
    /// The place of the fault: the number of its character in the text, from 1.
    pub place: usize,
}

/// The parser of a selector: its text, and the number of bytes already read.
struct SelectorParser<'t> {
    text: &'t str,
    at: usize,
}

impl Selector {
    /// Parses a selector.
    ///
    /// # Errors
    /// If the text is not a selector. The error has the fault and its position.
    pub fn parse(text: &str) -> Result<Selector, SelectorError> {
        let mut reader = SelectorParser { text, at: 0 };
        let mut matchers = Vec::new();
        reader.skip_space();
        if reader.rest().is_empty() {
            return Err(
                reader.error("a selector is expected, such as up{job=\"node\"}, not nothing")
            );
        }
        let name = reader.word(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':');
        if let Some(name) = name {
            matchers.push(equal(METRIC_NAME, name));
            reader.skip_space();
        }
        if reader.take('{') {
            reader.matchers(&mut matchers)?;
        } else if name.is_none() {
            return Err(reader.error("a metric's name or { is expected"));
        }
        reader.skip_space();
        match reader.rest().is_empty() {
            true => Ok(Selector { matchers }),
            false => Err(reader.error("the selector should end here")),
        }
    }

    /// Whether series of a metric can match.
    pub fn admits_metric(&self, metric: &str) -> bool {
        let of_metric = |matcher: &&Matcher| matcher.name() == METRIC_NAME;
        let mut matchers = self.matchers.iter().filter(of_metric);
        matchers.all(|matcher| matcher.matches(metric))
    }

    /// Whether a series matches. `label` returns the value of a label, which is empty if the series
    /// does not have it.
    pub fn matches<'l>(&self, label: impl Fn(&str) -> &'l str) -> bool {
        let mut matchers = self.matchers.iter();
        matchers.all(|matcher| matcher.matches(label(matcher.name())))
    }
}

fn equal(name: &str, value: &str) -> Matcher {
    Matcher::one_of(name.to_owned(), vec![value.to_owned()])
}

impl<'t> SelectorParser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error(&self, message: impl Into<String>) -> SelectorError {
        self.error_at(self.at, message)
    }

    fn error_at(&self, at: usize, message: impl Into<String>) -> SelectorError {
        SelectorError {
            message: message.into(),
            place: self.text[..at].chars().count() + 1,
        }
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn take(&mut self, expected: char) -> bool {
        let is_there = self.rest().starts_with(expected);
        self.at += if is_there { expected.len_utf8() } else { 0 };
        is_there
    }

    /// A word of such characters that does not begin with a digit.
    fn word(&mut self, is_part: impl Fn(char) -> bool) -> Option<&'t str> {
        let rest = self.rest();
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        (end > 0).then(|| &rest[..end])
    }

    /// Reads matchers up to the closing brace, and the brace.
    fn matchers(&mut self, matchers: &mut Vec<Matcher>) -> Result<(), SelectorError> {
        loop {
            self.skip_space();
            if self.take('}') {
                return Ok(());
            }
            matchers.push(self.matcher()?);
            self.skip_space();
            if !self.take(',') && !self.rest().starts_with('}') {
                return Err(self.error(match self.rest().is_empty() {
                    true => "the selector ends before its }",
                    false => "a comma or } is expected",
                }));
            }
        }
    }

    fn matcher(&mut self) -> Result<Matcher, SelectorError> {
        let is_quoted = self.rest().starts_with(['"', '\'', '`']);
        let name = if is_quoted {
            self.text()?
        } else {
            let word = self.word(|c| c.is_ascii_alphanumeric() || c == '_');
            let Some(word) = word else {
                return Err(self.error(match self.rest().is_empty() {
                    true => "the selector ends before its }",
                    false => "a label's name is expected",
                }));
            };
            word.to_owned()
        };
        self.skip_space();
        let operator = if self.take('=') {
            match self.take('~') {
                true => Operator::Matches,
                false => Operator::Equal,
            }
        } else if self.rest().starts_with("!=") {
            self.at += 2;
            Operator::NotEqual
        } else if self.rest().starts_with("!~") {
            self.at += 2;
            Operator::NotMatches
        } else if is_quoted {
            // A metric's name that is no word stands in quotes, between the braces.
            return Ok(equal(METRIC_NAME, &name));
        } else {
            return Err(self.error("an operator is expected: =, !=, =~ or !~"));
        };
        self.skip_space();
        let at = self.at;
        if !self.rest().starts_with(['"', '\'', '`']) {
            return Err(self.error("a value in quotes is expected"));
        }
        let value = self.text()?;
        Matcher::new(name, operator, value).map_err(|failure| {
            self.error_at(
                at,
                format!("the value is no regular expression ({failure})"),
            )
        })
    }

    /// A text in quotes. Between backticks each character stands for itself.
    fn text(&mut self) -> Result<String, SelectorError> {
        let begin = self.at;
        let mut bytes = Vec::new();
        let mut characters = self.rest().char_indices();
        let quote = characters.next().map_or('"', |(_, quote)| quote);
        while let Some((place, character)) = characters.next() {
            let at = begin + place;
            if character == quote {
                self.at = at + quote.len_utf8();
                return String::from_utf8(bytes)
                    .map_err(|_| self.error_at(begin, "a text is not valid UTF-8"));
            }
            if character == '\n' && quote != '`' {
                return Err(self.error_at(at, "a text in quotes goes over the end of a line"));
            }
            if character != '\\' || quote == '`' {
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            let escape = characters.next().map(|(_, escape)| escape);
            let mut number = |digits: usize, radix: u32, first: Option<char>| {
                let rest = std::iter::from_fn(|| characters.next().map(|(_, digit)| digit));
                let digits: String = first.into_iter().chain(rest).take(digits).collect();
                let is_number = digits.chars().all(|digit| digit.is_digit(radix));
                u32::from_str_radix(&digits, radix)
                    .ok()
                    .filter(|_| is_number)
            };
            let code = match escape {
                Some('a') => Some(7),
                Some('b') => Some(8),
                Some('f') => Some(12),
                Some('n') => Some(10),
                Some('r') => Some(13),
                Some('t') => Some(9),
                Some('v') => Some(11),
                Some('\\') => Some(u32::from('\\')),
                Some(same) if same == quote => Some(u32::from(quote)),
                Some('u') => number(4, 16, None),
                Some('U') => number(8, 16, None),
                Some(kind @ ('x' | '0'..='7')) => {
                    let byte = match kind {
                        'x' => number(2, 16, None),
                        first => number(3, 8, Some(first)),
                    };
                    let Some(byte) = byte.and_then(|byte| u8::try_from(byte).ok()) else {
                        return Err(self.error_at(at, "an escape is not complete"));
                    };
                    bytes.push(byte);
                    continue;
                }
                _ => {
                    return Err(
                        self.error_at(at, "an unknown escape (a backslash is written \\\\)")
                    );
                }
            };
            let Some(character) = code.and_then(char::from_u32) else {
                return Err(self.error_at(at, "an escape that is no character"));
            };
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Err(self.error_at(begin, "a text has no closing quote"))
    }
}

#[cfg(test)]
mod tests {
    use super::Selector;
    use proptest::prelude::*;

    /// Whether a series with these labels matches.
    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let selector = Selector::parse(selector).unwrap();
        selector.matches(|name| {
            let label = labels.iter().find(|(known, _)| *known == name);
            label.map_or("", |(_, value)| value)
        })
    }

    #[test]
    fn matchers_are_those_of_prometheus() {
        let labels = [("__name__", "up"), ("job", "node"), ("path", r"C:\x")];
        for (selector, expected) in [
            ("up", true),
            ("down", false),
            ("{}", true),
            (r#" up { job = "node" , } "#, true),
            (r#"{__name__="up",job=~"a|node"}"#, true),
            (r#"up{job!="node"}"#, false),
            (r#"up{job!~"no.*"}"#, false),
            (r#"up{job=~"od"}"#, false),
            (r#"up{absent=""}"#, true),
            (r#"up{absent!=""}"#, false),
            (r#"up{absent=~".*"}"#, true),
            (r#"up{absent!~"x"}"#, true),
            (r#"{"up","job"='node'}"#, true),
            (r#"up{path="C:\\x"}"#, true),
            (r"up{path=`C:\x`}", true),
            (r#"up{job="\x6eo\144\u0065"}"#, true),
        ] {
            assert_eq!(matches(selector, &labels), expected, "{selector}");
        }
        assert!(matches("a:b:rate5m", &[("__name__", "a:b:rate5m")]));
    }

    #[test]
    fn a_fault_has_a_place() {
        for (selector, message, place) in [
            ("", "a selector is expected", 1),
            ("  ", "a selector is expected", 3),
            ("1up", "a metric's name", 1),
            ("up[5m]", "should end here", 3),
            ("up{", "ends before", 4),
            ("up{job", "an operator", 7),
            ("up{job=", "a value in quotes", 8),
            ("up{job=node}", "a value in quotes", 8),
            (r#"up{job="node"#, "closing quote", 8),
            (r#"up{job="node" x="y"}"#, "a comma or }", 15),
            (r#"up{é="y"}"#, "a label's name", 4),
            (r#"up{"é"="y" z}"#, "a comma or }", 12),
            (r#"up{job=~"("}"#, "regular expression", 9),
            (r#"up{job="\q"}"#, "unknown escape", 9),
            (r#"up{job="\ud800"}"#, "no character", 9),
            (r#"up{job="\xff"}"#, "UTF-8", 8),
            ("up{job=\"a\nb\"}", "end of a line", 10),
            (r#"up{job="\x"}"#, "not complete", 9),
        ] {
            let failure = Selector::parse(selector).unwrap_err();
            assert!(failure.message.contains(message), "{selector}: {failure}");
            assert_eq!(failure.place, place, "{selector}: {failure}");
        }
    }

    proptest! {
        #[test]
        fn no_text_ends_in_a_panic(text in "(up)?[{}a=!~\"'`\\\\ux0-9,. é(\n]{0,24}") {
            let _ = Selector::parse(&text);
        }

        #[test]
        fn a_value_written_with_escapes_is_read_back(value in "\\PC{0,12}") {
            let escaped = value.replace('\\', r"\\").replace('"', "\\\"");
            let selector = Selector::parse(&format!("{{a=\"{escaped}\"}}")).unwrap();
            prop_assert!(selector.matches(|_| &value));
        }
    }
}
