//! Quoted text: string literals of PromQL, and Go's quoting, in which Prometheus words its errors.

/// Quotes text as Go's `strconv.Quote` does.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        push_escaped(&mut quoted, c, '"');
    }
    quoted.push('"');
    quoted
}

/// Quotes one character as Go's verb `%q` does.
pub fn quote_char(c: char) -> String {
    let mut quoted = String::from("'");
    push_escaped(&mut quoted, c, '\'');
    quoted.push('\'');
    quoted
}

fn push_escaped(to: &mut String, c: char, delimiter: char) {
    match c {
        '\\' => to.push_str("\\\\"),
        '\u{7}' => to.push_str("\\a"),
        '\u{8}' => to.push_str("\\b"),
        '\u{c}' => to.push_str("\\f"),
        '\n' => to.push_str("\\n"),
        '\r' => to.push_str("\\r"),
        '\t' => to.push_str("\\t"),
        '\u{b}' => to.push_str("\\v"),
        c if c == delimiter => {
            to.push('\\');
            to.push(c);
        }
        c if (c as u32) < 0x20 || c as u32 == 0x7f => to.push_str(&format!("\\x{:02x}", c as u32)),
        c if is_printable(c) => to.push(c),
        c if (c as u32) < 0x10000 => to.push_str(&format!("\\u{:04x}", c as u32)),
        c => to.push_str(&format!("\\U{:08x}", c as u32)),
    }
}

/// Whether a character beyond ASCII is shown as itself: no control, no space and no private use.
fn is_printable(c: char) -> bool {
    let is_format = matches!(
        c as u32,
        0xad | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff | 0xfff9..=0xfffb
    );
    let is_private = matches!(c as u32, 0xe000..=0xf8ff | 0xfffe..=0xffff | 0xf0000..);
    let is_space = c.is_whitespace() && c != ' ';
    !(c.is_control() || is_space || is_format || is_private)
}

/// The fault of a text that is no string literal.
#[derive(thiserror::Error, Debug, Clone, Copy, PartialEq, Eq)]
#[error("invalid syntax")]
pub struct InvalidLiteral;

/// Returns the text of a string literal in single quotes, double quotes or back quotes.
///
/// # Errors
/// If the text is no literal.
pub fn unquote(literal: &str) -> Result<String, InvalidLiteral> {
    let mut chars = literal.chars();
    let (Some(quote), Some(last)) = (chars.next(), chars.next_back()) else {
        return Err(InvalidLiteral);
    };
    let inner = chars.as_str();
    if quote != last || !matches!(quote, '"' | '\'' | '`') || inner.contains(quote) && quote == '`'
    {
        return Err(InvalidLiteral);
    }
    if quote == '`' || !inner.contains(['\\', '\n', quote]) {
        return Ok(inner.to_owned());
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c == '\n' || c == quote {
            return Err(InvalidLiteral);
        }
        if c != '\\' {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        rest = unescape(rest, quote, &mut bytes)?;
    }
    // Label values and strings of Prometheus are UTF-8; bytes that are none are replaced.
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Appends the bytes of an escape sequence, after its backslash, and returns what follows it.
fn unescape<'t>(rest: &'t str, quote: char, to: &mut Vec<u8>) -> Result<&'t str, InvalidLiteral> {
    let c = rest.chars().next().ok_or(InvalidLiteral)?;
    let after = &rest[c.len_utf8()..];
    let plain = match c {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        '\'' | '"' if c == quote => c as u8,
        'x' => {
            let (value, after) = digits(after, 2, 16)?;
            to.push(value as u8);
            return Ok(after);
        }
        'u' | 'U' => {
            let (value, after) = digits(after, if c == 'u' { 4 } else { 8 }, 16)?;
            let c = char::from_u32(value).ok_or(InvalidLiteral)?;
            to.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(after);
        }
        '0'..='7' => {
            let (value, after) = digits(rest, 3, 8)?;
            to.push(u8::try_from(value).map_err(|_| InvalidLiteral)?);
            return Ok(after);
        }
        _ => return Err(InvalidLiteral),
    };
    to.push(plain);
    Ok(after)
}

fn digits(rest: &str, count: usize, radix: u32) -> Result<(u32, &str), InvalidLiteral> {
    let text = rest.get(..count).ok_or(InvalidLiteral)?;
    if text.contains(['+', '-']) {
        return Err(InvalidLiteral);
    }
    let value = u32::from_str_radix(text, radix).map_err(|_| InvalidLiteral)?;
    Ok((value, &rest[count..]))
}

#[cfg(test)]
mod tests {
    use super::{quote, unquote};

    #[test]
    fn literals_lose_their_quotes_and_escapes() {
        for (literal, expected) in [
            (r#""a\"b""#, "a\"b"),
            (r"'it\'s'", "it's"),
            (r"`a\n`", r"a\n"),
            (r#""\x41\u00e9\101""#, "AéA"),
            (r#""""#, ""),
        ] {
            assert_eq!(unquote(literal).unwrap(), expected, "{literal}");
        }
        for literal in [r#""a"#, r#""\q""#, r#"'a"'"#.trim_end_matches('\''), "a"] {
            assert!(unquote(literal).is_err(), "{literal}");
        }
    }

    #[test]
    fn quoted_text_reads_back() {
        for text in ["", "a\"b\\", "tab\t\u{7f}é\u{200b}", "\u{1F600}"] {
            assert_eq!(unquote(&quote(text)).unwrap(), text);
        }
    }
}
