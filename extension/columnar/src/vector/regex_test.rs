//! Regular expressions of PostgreSQL, tested by Rust's `regex` where both find the same texts.
//!
//! Both define which texts a pattern matches in the same way, but PostgreSQL has rules of its own: for characters by
//! locale, for escapes, for look-around and back references. So a [`Pattern`] is read by the grammar below, and
//! anything else is left to PostgreSQL, as are texts with other characters than those of ASCII.
//!
//! ```text
//! pattern = branch { "|" branch }
//! branch  = item { item }
//! item    = "^" | "$" | atom [ ( "*" | "+" | "?" | "{m}" | "{m,}" | "{m,n}" ) [ "?" ] ]
//! atom    = character | "." | "\" punctuation | class | "[" set "]" | "(" [ "?:" ] pattern ")"
//! class   = \d \D \w \W \s \S
//! ```
//! Only whether there is a match is asked, so it does not matter which of several is longest or leftmost.

use std::fmt::Write;

use regex::bytes::{Regex, RegexBuilder};

use super::text::{Item, TextTest};
use crate::interrupt;

/// Groups within groups, at most.
const DEPTH_MAX: usize = 50;
/// Atoms of a pattern with its repetitions written out, at most. PostgreSQL refuses patterns of several thousand.
const SIZE_MAX: usize = 1000;
/// Whoever waits for the query to stop waits for so many bytes, and the text after them.
const CHECKED_BYTES: usize = 1 << 20;
/// The greatest count of a repetition, as PostgreSQL has it.
const COUNT_MAX: usize = 255;

/// A class of characters that depends on the locale.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// `\d`, `[:digit:]`
    Digit,
    /// `\w`
    Word,
    /// `\s`, `[:space:]`
    Space,
    /// `[:alpha:]`
    Letter,
    /// `[:alnum:]`
    Alphanumeric,
}

impl Class {
    /// The members among the characters of ASCII, as they are usual.
    pub fn has(self, character: u8) -> bool {
        match self {
            Class::Digit => character.is_ascii_digit(),
            Class::Word => character.is_ascii_alphanumeric() || character == b'_',
            Class::Space => matches!(character, b' ' | b'\t'..=b'\r'),
            Class::Letter => character.is_ascii_alphabetic(),
            Class::Alphanumeric => character.is_ascii_alphanumeric(),
        }
    }

    /// The class as a set of PostgreSQL's regular expressions.
    pub fn name(self) -> &'static str {
        match self {
            Class::Digit => "[[:digit:]]",
            Class::Word => r"[\w]",
            Class::Space => "[[:space:]]",
            Class::Letter => "[[:alpha:]]",
            Class::Alphanumeric => "[[:alnum:]]",
        }
    }
}

/// A pattern that both sides read in the same way.
#[derive(Debug)]
pub struct Pattern {
    regex: Regex,
    classes: Vec<Class>,
}

impl Pattern {
    /// Whether a pattern is of the grammar. All such patterns are valid in PostgreSQL.
    pub fn is_covered(pattern: &[u8]) -> bool {
        Reader::read(pattern).is_some()
    }

    /// Reads a pattern. `None`: it is to be left to PostgreSQL, because it is not of the grammar, or too large.
    pub fn read(pattern: &[u8], ignores_case: bool) -> Option<Pattern> {
        let reader = Reader::read(pattern)?;
        let regex = RegexBuilder::new(&reader.written)
            .unicode(false)
            .dot_matches_new_line(true)
            .case_insensitive(ignores_case)
            .build()
            .ok()?;
        Some(Pattern {
            regex,
            classes: reader.classes,
        })
    }

    /// The classes that it names. The pattern finds the same texts as in PostgreSQL only if their members are the
    /// [usual ones](Class::has).
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }
}

/// The rest of a pattern, and what was read in the syntax of `regex`.
struct Reader<'a> {
    rest: &'a [u8],
    written: String,
    classes: Vec<Class>,
}

impl<'a> Reader<'a> {
    /// A reader that has read the whole pattern; `None`: the pattern is not of the grammar.
    fn read(pattern: &'a [u8]) -> Option<Reader<'a>> {
        let mut reader = Reader {
            rest: pattern,
            written: String::new(),
            classes: Vec::new(),
        };
        reader.pattern(0)?;
        reader.rest.is_empty().then_some(reader)
    }

    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        first.is_ascii().then_some(*first)
    }

    /// Takes some bytes if they come next.
    fn skip(&mut self, wanted: &[u8]) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Reads branches up to the end of the pattern or of its group. Returns their size in atoms.
    fn pattern(&mut self, depth: usize) -> Option<usize> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut size = self.branch(depth)?;
        while self.skip(b"|") {
            self.written.push('|');
            size += self.branch(depth)?;
        }
        (size <= SIZE_MAX).then_some(size)
    }

    /// Reads a branch that is not empty.
    fn branch(&mut self, depth: usize) -> Option<usize> {
        let mut size = 0;
        let mut items = 0;
        while !matches!(self.peek(), None | Some(b'|' | b')')) {
            items += 1;
            if self.skip(b"^") {
                self.written.push('^');
                continue;
            }
            if self.skip(b"$") {
                self.written.push('$');
                continue;
            }
            let atom = self.atom(depth)?;
            size += atom * self.count()?;
            if size > SIZE_MAX {
                return None;
            }
        }
        (items > 0).then_some(size)
    }

    fn atom(&mut self, depth: usize) -> Option<usize> {
        match self.take()? {
            b'(' => {
                if !self.skip(b"?:") && self.peek() == Some(b'?') {
                    return None;
                }
                self.written.push_str("(?:");
                let size = self.pattern(depth + 1)?;
                self.written.push(')');
                self.skip(b")").then_some(size)
            }
            b'[' => self.set().map(|()| 1),
            b'.' => {
                self.written.push('.');
                Some(1)
            }
            b'\\' => {
                let escaped = self.take()?;
                match class_of(escaped.to_ascii_lowercase()) {
                    Some(class) => {
                        let is_negated = escaped.is_ascii_uppercase();
                        self.written.push_str(if is_negated { "[^" } else { "[" });
                        self.class(class);
                        self.written.push(']');
                    }
                    None if escaped.is_ascii_punctuation() && escaped != b'_' => {
                        self.character(escaped);
                    }
                    None => return None,
                }
                Some(1)
            }
            b')' | b']' | b'{' | b'}' | b'*' | b'+' | b'?' | b'|' | b'^' | b'$' => None,
            0 => None,
            character => {
                self.character(character);
                Some(1)
            }
        }
    }

    /// Reads how often an atom is repeated, if it is. Returns how often its size counts.
    fn count(&mut self) -> Option<usize> {
        let times = match self.peek() {
            Some(sign @ (b'*' | b'+' | b'?')) => {
                self.rest = &self.rest[1..];
                self.written.push(char::from(sign));
                1
            }
            Some(b'{') => {
                self.rest = &self.rest[1..];
                let least = self.number()?;
                let most = match self.skip(b",") {
                    false => Some(least),
                    true if self.peek() == Some(b'}') => None,
                    true => Some(self.number()?),
                };
                if !self.skip(b"}") || most.is_some_and(|most| most < least) {
                    return None;
                }
                let _ = match most {
                    Some(most) => write!(self.written, "{{{least},{most}}}"),
                    None => write!(self.written, "{{{least},}}"),
                };
                most.unwrap_or(least + 1).max(1)
            }
            _ => return Some(1),
        };
        self.skip(b"?");
        match self.peek() {
            Some(b'*' | b'+' | b'?' | b'{') => None,
            _ => Some(times),
        }
    }

    fn number(&mut self) -> Option<usize> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit());
        let (number, rest) = self.rest.split_at(digits.count());
        self.rest = rest;
        let number = std::str::from_utf8(number).ok()?.parse().ok()?;
        (number <= COUNT_MAX).then_some(number)
    }

    /// Reads a set of characters after its opening bracket.
    fn set(&mut self) -> Option<()> {
        self.written.push('[');
        if self.skip(b"^") {
            self.written.push('^');
        }
        let mut is_first = true;
        if self.peek() == Some(b']') {
            return None;
        }
        while !self.skip(b"]") {
            let is_class = self.rest.starts_with(b"[:") || self.rest.starts_with(b"\\");
            if is_class && let Some(class) = self.class_in_set() {
                self.class(class);
                // A class begins no range.
                if self.peek() == Some(b'-') && !self.rest.starts_with(b"-]") {
                    return None;
                }
            } else {
                let from = self.member(is_first)?;
                self.character(from);
                if self.peek() == Some(b'-') && !self.rest.starts_with(b"-]") {
                    self.rest = &self.rest[1..];
                    let to = self.member(false)?;
                    if to < from {
                        return None;
                    }
                    self.written.push('-');
                    self.character(to);
                }
            }
            is_first = false;
        }
        self.written.push(']');
        Some(())
    }

    /// Reads a class of characters in a set.
    fn class_in_set(&mut self) -> Option<Class> {
        const NAMES: [(&[u8], Class); 7] = [
            (b"[:digit:]", Class::Digit),
            (b"[:space:]", Class::Space),
            (b"[:alpha:]", Class::Letter),
            (b"[:alnum:]", Class::Alphanumeric),
            (b"\\d", Class::Digit),
            (b"\\w", Class::Word),
            (b"\\s", Class::Space),
        ];
        let mut names = NAMES.into_iter();
        names.find_map(|(name, class)| self.skip(name).then_some(class))
    }

    /// Reads a character of a set. A hyphen stands for itself at the beginning or the end alone.
    fn member(&mut self, is_first: bool) -> Option<u8> {
        match self.take()? {
            b'\\' => {
                let escaped = self.take()?;
                (escaped.is_ascii_punctuation() && escaped != b'_').then_some(escaped)
            }
            b'-' if !is_first && self.peek() != Some(b']') => None,
            b'[' | b']' | 0 => None,
            character => Some(character),
        }
    }

    /// Writes a class as a part of a set.
    fn class(&mut self, class: Class) {
        if !self.classes.contains(&class) {
            self.classes.push(class);
        }
        (0..128)
            .filter(|character| class.has(*character))
            .for_each(|character| self.character(character));
    }

    /// Writes a character that stands for itself.
    fn character(&mut self, character: u8) {
        let _ = write!(self.written, "\\x{character:02x}");
    }
}

/// The class that an escape with this letter means.
fn class_of(letter: u8) -> Option<Class> {
    match letter {
        b'd' => Some(Class::Digit),
        b'w' => Some(Class::Word),
        b's' => Some(Class::Space),
        _ => None,
    }
}

/// Whether a text matches a pattern. Texts with other characters than those of ASCII have another test.
pub struct Matches {
    regex: Regex,
    others: Box<dyn TextTest>,
}

impl Matches {
    /// The two tests have the same result for every text of ASCII characters.
    pub fn new(pattern: Pattern, others: Box<dyn TextTest>) -> Matches {
        Matches {
            regex: pattern.regex,
            others,
        }
    }
}

impl TextTest for Matches {
    fn holds(&mut self, item: Item<'_>) -> bool {
        let text = item.payload();
        match text.is_ascii() {
            true => self.regex.is_match(text),
            false => self.others.holds(item),
        }
    }

    fn hold(&mut self, items: &[Item<'_>], found: &mut [bool]) {
        let mut unchecked = CHECKED_BYTES;
        for (item, found) in items.iter().zip(found) {
            unchecked += item.payload().len();
            if unchecked >= CHECKED_BYTES {
                interrupt::check();
                unchecked = 0;
            }
            *found = self.holds(*item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> Option<bool> {
        let pattern = Pattern::read(pattern.as_bytes(), false)?;
        Some(pattern.regex.is_match(text.as_bytes()))
    }

    #[test]
    fn patterns_match_as_in_postgresql() {
        for (pattern, text, expected) in [
            ("abc", "xabcx", true),
            ("^abc$", "abc\n", false),
            ("a.c", "a\nc", true),
            ("a|b", "xb", true),
            (r"status=(404|5\d\d)", "status=503", true),
            (r"status=(404|5\d\d)", "status=403", false),
            ("[a-c]{2,3}", "xabx", true),
            ("^[a-c]{2,3}$", "abca", false),
            ("^[^0-9]+$", "ab\nc", true),
            (r"^[\w.-]+@[\w-]+$", "a.b-c@d_e", true),
            (r"^\W$", " ", true),
            ("^[[:alpha:]_][[:alnum:]_]*$", "a1_", true),
            ("x{0}y", "y", true),
            ("(ab)+?c", "ababc", true),
            ("(?:a|b)*c", "c", true),
            ("a#b", "a#b", true),
            ("^[a-]$", "-", true),
            ("^[-a]$", "-", true),
            (r"a\.b\/c", "a.b/c", true),
        ] {
            assert_eq!(matches(pattern, text), Some(expected), "{pattern}");
        }
    }

    #[test]
    fn what_has_rules_of_its_own_is_left() {
        for pattern in [
            "",
            "a|",
            "|a",
            "()",
            "(a",
            "a)",
            "*a",
            "a**",
            "a+*",
            "^*",
            "a{",
            "a{,3}",
            "a{3,2}",
            "a{256}",
            "a}",
            "a]",
            "[a",
            "[]a]",
            "[b-a]",
            "[a-c-e]",
            "[[.a.]]",
            "[[:upper:]]",
            "[[=a=]]",
            r"[\D]",
            r"[\w-z]",
            r"(a)\1",
            r"\ya",
            r"\mfoo",
            r"\A",
            r"\x41",
            r"\n",
            r"a\",
            "(?i)a",
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "***:a",
            "***=a",
            "\u{e4}",
            "((a{255}){255}){255}",
            r"\_",
        ] {
            assert_eq!(matches(pattern, "a"), None, "{pattern}");
        }
        let deep = "(".repeat(60) + "a" + &")".repeat(60);
        assert_eq!(matches(&deep, "a"), None);
    }

    #[test]
    fn case_is_ignored_on_demand() {
        let pattern = Pattern::read(b"^[^a]bC$", true).unwrap();
        let is_match = |text: &str| pattern.regex.is_match(text.as_bytes());
        assert!(is_match("xBc") && !is_match("abc") && !is_match("Abc"));
    }

    #[test]
    fn classes_are_named() {
        let classes = |pattern: &str| Pattern::read(pattern.as_bytes(), false).unwrap().classes;
        assert_eq!(classes(r"\d+[\d\s]\S"), [Class::Digit, Class::Space]);
        assert_eq!(classes("[0-9]"), []);
    }
}
