//! Regular expressions with the syntax and semantics of RE2, as Go and Prometheus read them.
//!
//! The crate `regex` runs them. Its syntax differs in a few places, so an expression is rewritten
//! before it is compiled: classes such as `\d` mean ASCII, braces that are no repetition are
//! literal, `\Q…\E` quotes, and the set operators of the crate's classes do not exist.

use std::cell::RefCell;
use std::num::NonZeroUsize;

use lru::LruCache;
use regex::Regex;

/// Bytes that a compiled expression may take.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// Parentheses that may stand in each other.
const NESTING_MAX: u32 = 200;

/// Repetitions that a count in braces may name, as in RE2.
const REPEAT_MAX: u32 = 1000;

/// Classes of Unicode, such as `\pL`, that an expression may name. Each takes some 6 KB while it is parsed.
const UNICODE_CLASSES_MAX: usize = 1000;

/// Compiled expressions that a thread keeps: dashboards send the same ones again and again, and to compile one takes
/// longer than most queries. With what it holds while it matches, each takes [`KEPT_BYTES_MAX`] twice at most.
const KEPT_MAX: NonZeroUsize = NonZeroUsize::new(32).unwrap();

/// Bytes that a compiled expression may take to be kept, and bytes that it may take while it matches.
const KEPT_BYTES_MAX: usize = 128 << 10;

thread_local! {
    static KEPT: RefCell<LruCache<String, Regex>> = RefCell::new(LruCache::new(KEPT_MAX));
}

/// Compiles an expression that has to match a whole text; `.` matches newlines too.
///
/// # Errors
/// Why the text is no expression, in Go's words where it has any.
pub fn compile_anchored(text: &str) -> Result<Regex, String> {
    if let Some(kept) = KEPT.with_borrow_mut(|kept| kept.get(text).cloned()) {
        return Ok(kept);
    }
    match compile(text, KEPT_BYTES_MAX) {
        Ok(regex) => {
            KEPT.with_borrow_mut(|kept| kept.put(text.to_owned(), regex.clone()));
            Ok(regex)
        }
        Err(_) => compile(text, COMPILED_BYTES_MAX),
    }
}

fn compile(text: &str, bytes_max: usize) -> Result<Regex, String> {
    let rewritten = rewrite(text).map_err(|fault| format!("error parsing regexp: {fault}"))?;
    let unicode_classes = text.matches(r"\p").count() + text.matches(r"\P").count();
    if unicode_classes > UNICODE_CLASSES_MAX {
        return Err("error parsing regexp: expression too large".to_owned());
    }
    regex::RegexBuilder::new(&format!(r"\A(?s:{rewritten})\z"))
        .size_limit(bytes_max)
        .dfa_size_limit(bytes_max)
        .nest_limit(NESTING_MAX)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                "error parsing regexp: expression too large".to_owned()
            }
            _ => format!("error parsing regexp: invalid expression: `{text}`"),
        })
}

/// Rewrites an expression of RE2 to one of the crate `regex` that matches the same texts, unanchored
/// and provided that `.` matches newlines.
///
/// # Errors
/// Why the text is no expression, in Go's words where it has any.
pub(crate) fn rewrite(text: &str) -> Result<String, String> {
    let mut writer = Rewriter {
        text,
        rest: text,
        to: String::with_capacity(text.len() + 8),
        depth: 0,
        repeatable: false,
        repeated: None,
    };
    while let Some(c) = writer.next() {
        writer.element(c)?;
    }
    if writer.depth > 0 {
        return Err(format!("missing closing ): `{text}`"));
    }
    Ok(writer.to)
}

struct Rewriter<'t> {
    text: &'t str,
    rest: &'t str,
    to: String,
    depth: usize,
    /// Whether a repetition may follow: the last element is one that can be repeated.
    repeatable: bool,
    /// Where the last element, if it is a repetition, begins in the text.
    repeated: Option<usize>,
}

impl Rewriter<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn at(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    fn atom(&mut self) {
        self.repeatable = true;
        self.repeated = None;
    }

    fn boundary(&mut self) {
        self.repeatable = false;
        self.repeated = None;
    }

    fn literal(&mut self, c: char) {
        self.to.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
        self.atom();
    }

    fn element(&mut self, c: char) -> Result<(), String> {
        match c {
            '\\' => self.escape(),
            '[' => self.class(),
            '(' => self.group(),
            ')' if self.depth == 0 => Err(format!("unexpected ): `{}`", self.text)),
            ')' => {
                self.depth -= 1;
                self.to.push(')');
                self.atom();
                Ok(())
            }
            '*' | '+' | '?' => {
                let at = self.at() - 1;
                self.repetition(at, c.to_string())
            }
            '{' => match repeat_len(self.rest) {
                None => {
                    self.literal('{');
                    Ok(())
                }
                Some(len) => {
                    let at = self.at() - 1;
                    let counts = &self.rest[..len];
                    let mut numbers = counts.trim_end_matches('}').split(',');
                    if numbers.any(|n| n.parse::<u32>().map_or(!n.is_empty(), |n| n > REPEAT_MAX)) {
                        return Err(format!("invalid repeat count: `{{{counts}`"));
                    }
                    let operator = format!("{{{counts}");
                    self.rest = &self.rest[len..];
                    self.repetition(at, operator)
                }
            },
            '|' => {
                self.to.push('|');
                self.boundary();
                Ok(())
            }
            '^' | '$' | '.' => {
                self.to.push(c);
                self.atom();
                Ok(())
            }
            c => {
                self.literal(c);
                Ok(())
            }
        }
    }

    fn repetition(&mut self, at: usize, operator: String) -> Result<(), String> {
        let lazy = self.rest.starts_with('?');
        if lazy {
            self.rest = &self.rest[1..];
        }
        if let Some(first) = self.repeated {
            let nested = &self.text[first..self.at()];
            return Err(format!("invalid nested repetition operator: `{nested}`"));
        }
        if !self.repeatable {
            return Err(format!(
                "missing argument to repetition operator: `{operator}`"
            ));
        }
        self.to.push_str(&operator);
        self.to.push_str(if lazy { "?" } else { "" });
        self.repeated = Some(at);
        Ok(())
    }

    fn group(&mut self) -> Result<(), String> {
        self.to.push('(');
        self.boundary();
        if let Some(flags) = self.rest.strip_prefix('?') {
            let named = flags.starts_with("P<") || flags.starts_with('<');
            let ends = if named { ">" } else { ":)" };
            let end = flags.find(|c| ends.contains(c));
            let head = end.map(|end| &flags[..=end]);
            let is_known = |head: &str| named || head.chars().all(|c| "imsU-:)".contains(c));
            match head.filter(|head| is_known(head)) {
                // No flags at all, which Go allows.
                Some(")") => {
                    self.to.pop();
                    self.rest = &flags[1..];
                    return Ok(());
                }
                Some(head) => {
                    self.to.push('?');
                    self.to.push_str(head);
                    self.rest = &flags[head.len()..];
                    if head.ends_with(')') {
                        return Ok(());
                    }
                }
                None => {
                    // Go reads flags up to the first character that is none.
                    let known = match named {
                        true => 0,
                        false => flags.chars().take_while(|c| "imsU-".contains(*c)).count(),
                    };
                    let shown: String = self.rest.chars().take(known + 2).collect();
                    return Err(format!("invalid or unsupported Perl syntax: `({shown}`"));
                }
            }
        }
        self.depth += 1;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), String> {
        let Some(c) = self.next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        self.atom();
        match c {
            'b' | 'B' => self.to.push_str(&format!("(?-u:\\{c})")),
            'A' | 'z' => self.to.push_str(&format!("\\{c}")),
            'Q' => {
                let (quoted, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                self.to.push_str(&regex::escape(quoted));
                self.rest = rest;
            }
            'E' => {}
            c => {
                let escaped = self.escaped(c)?;
                self.to.push_str(&escaped);
            }
        }
        Ok(())
    }

    /// An escape that means the same in and outside of classes.
    fn escaped(&mut self, c: char) -> Result<String, String> {
        if let Some(class) = perl_class(c) {
            return Ok(class.to_owned());
        }
        match c {
            'a' | 'f' | 't' | 'n' | 'r' | 'v' => Ok(format!("\\{c}")),
            'p' | 'P' => {
                let len = match self.rest.starts_with('{') {
                    true => self.rest.find('}').map(|end| end + 1),
                    false => self.rest.chars().next().map(char::len_utf8),
                };
                let len = len.ok_or_else(|| format!("invalid character class range: `\\{c}`"))?;
                let name = &self.rest[..len];
                self.rest = &self.rest[len..];
                Ok(format!("\\{c}{name}"))
            }
            'x' => {
                let len = match self.rest.starts_with('{') {
                    true => self.rest.find('}').map_or(0, |end| end + 1),
                    false => 2,
                };
                let digits = self.rest.get(..len).unwrap_or("");
                let inner = digits.trim_start_matches('{').trim_end_matches('}');
                let value = u32::from_str_radix(inner, 16).ok().and_then(char::from_u32);
                let value =
                    value.ok_or_else(|| format!("invalid escape sequence: `\\x{digits}`"))?;
                self.rest = &self.rest[len..];
                Ok(regex::escape(value.encode_utf8(&mut [0; 4])))
            }
            '0'..='7' => {
                let more = self
                    .rest
                    .bytes()
                    .take(2)
                    .take_while(|b| (b'0'..=b'7').contains(b));
                let more = more.count();
                if c != '0' && more == 0 {
                    return Err(format!("invalid escape sequence: `\\{c}`"));
                }
                let digits = format!("{c}{}", &self.rest[..more]);
                self.rest = &self.rest[more..];
                let value = u32::from_str_radix(&digits, 8)
                    .ok()
                    .and_then(char::from_u32);
                let value = value.unwrap_or('\0');
                Ok(regex::escape(value.encode_utf8(&mut [0; 4])))
            }
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => {
                Ok(regex::escape(c.encode_utf8(&mut [0; 4])))
            }
            c => Err(format!("invalid escape sequence: `\\{c}`")),
        }
    }

    fn class(&mut self) -> Result<(), String> {
        let missing = format!("missing closing ]: `[{}`", self.rest);
        self.to.push('[');
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.to.push('^');
            self.rest = rest;
        }
        let mut is_first = true;
        loop {
            let c = self.next().ok_or_else(|| missing.clone())?;
            match c {
                ']' if !is_first => break,
                '[' if self.rest.starts_with(':') && self.rest.contains(":]") => {
                    let end = self.rest.find(":]").unwrap_or(0) + 2;
                    self.to.push('[');
                    self.to.push_str(&self.rest[..end]);
                    self.rest = &self.rest[end..];
                }
                '\\' => {
                    let c = self.next().ok_or_else(|| missing.clone())?;
                    let escaped = self.escaped(c)?;
                    self.to.push_str(&escaped);
                }
                // A hyphen is a range between two elements and literal at either end.
                '-' if !is_first && !self.rest.starts_with(']') && !self.to.ends_with("[^") => {
                    self.to.push('-');
                }
                c if c.is_ascii_punctuation() => {
                    self.to.push('\\');
                    self.to.push(c);
                }
                c => self.to.push(c),
            }
            is_first = false;
        }
        self.to.push(']');
        self.atom();
        Ok(())
    }
}

/// The ASCII class that a letter behind a backslash names.
fn perl_class(c: char) -> Option<&'static str> {
    Some(match c {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => "[\\t\\n\\x0C\\r ]",
        'S' => "[^\\t\\n\\x0C\\r ]",
        _ => return None,
    })
}

/// The length of the counts of a repetition and its closing brace, after the opening one.
fn repeat_len(rest: &str) -> Option<usize> {
    let end = rest.find('}')?;
    let mut counts = rest[..end].splitn(2, ',');
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let least = counts.next().filter(|text| is_number(text));
    let most = counts
        .next()
        .is_none_or(|text| text.is_empty() || is_number(text));
    (least.is_some() && most).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::{KEPT, KEPT_MAX, compile_anchored};

    #[test]
    fn small_expressions_are_kept_and_large_ones_are_not() {
        let is_kept = |text: &str| KEPT.with_borrow(|kept| kept.contains(text));
        for number in 0..=KEPT_MAX.get() {
            let text = format!("a{number}.*");
            assert!(compile_anchored(&text).unwrap().is_match(&text));
        }
        assert!(!is_kept("a0.*") && is_kept("a1.*") && is_kept("a32.*"));
        assert!(compile_anchored("a1.*").unwrap().is_match("a1b"));
        let large = r"\pL{20}x";
        assert!(!compile_anchored(large).unwrap().is_match("x"));
        assert!(!is_kept(large));
        assert!(compile_anchored("(").is_err() && !is_kept("("));
    }

    #[test]
    fn whole_texts_match() {
        for (expression, text, expected) in [
            ("a|b", "b", true),
            ("a|b", "ab", false),
            (".*", "a\nb", true),
            (r"\d+", "٣", false),
            (r"\w", "é", false),
            ("a{", "a{", true),
            ("a{,2}", "a{,2}", true),
            ("a{2}", "aa", true),
            (r"\Qa.b\E+", "a.bb", true),
            ("[a&&b]+", "a&b", true),
            ("[[a]+", "[a", true),
            ("[]a]+", "]a", true),
            ("[a-c-]+", "b-", true),
            (r"[\d\-x]+", "1-x", true),
            ("[[:alpha:]]+", "ab", true),
            (r"\101\x42\x{43}", "ABC", true),
            (r"\<\_", "<_", true),
            ("(?i)ab", "AB", true),
            ("(?)a|b", "b", true),
            ("(?P<x>a)", "a", true),
        ] {
            let regex = compile_anchored(expression).unwrap();
            assert_eq!(regex.is_match(text), expected, "{expression} on {text}");
        }
    }

    #[test]
    fn faults_are_worded_as_go_words_them() {
        for (expression, expected) in [
            ("(", "missing closing ): `(`"),
            (")", "unexpected ): `)`"),
            ("a)|(b", "unexpected ): `a)|(b`"),
            ("[a", "missing closing ]: `[a`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("(?idle)", "invalid or unsupported Perl syntax: `(?id`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            (r"\y", r"invalid escape sequence: `\y`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("(?:x{1000}){1000}", "expression too large"),
            (&r"\pL|".repeat(1001), "expression too large"),
        ] {
            let fault = compile_anchored(expression).unwrap_err();
            assert_eq!(fault, format!("error parsing regexp: {expected}"));
        }
    }
}
