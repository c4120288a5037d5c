//! JSON that is kept as text. What PostgreSQL would refuse is refused here, where the sender can
//! still be told its row and column.

/// The maximum depth of arrays and objects in a body. The parser skips nested values by recursion;
/// without optimisation it uses 37 KB of stack for each level.
pub(super) const DEPTH_MAX: usize = 32;

/// Returns the byte of `text` at which a level deeper than [`DEPTH_MAX`] begins. In text that is
/// not JSON, this may be after the first fault.
pub(super) fn too_deep(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut byte = 0;
    while let Some(found) = text.get(byte) {
        match found {
            b'"' => byte = string_end(text, byte + 1),
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return Some(byte);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        byte += 1;
    }
    None
}

/// Returns the position of the closing quote of the string whose first character is at `byte`, or
/// the end of the text.
fn string_end(text: &[u8], mut byte: usize) -> usize {
    loop {
        let Some(found) = text
            .get(byte..)
            .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
        else {
            return text.len();
        };
        byte += found;
        if text[byte] == b'"' {
            return byte;
        }
        byte += 2;
    }
}

/// A character that PostgreSQL does not store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unstorable {
    /// U+0000.
    Nul,
    /// An unpaired surrogate.
    Surrogate,
}

/// Searches valid JSON for escapes of such characters.
pub(super) fn unstorable(text: &[u8]) -> Option<Unstorable> {
    let mut byte = 0;
    while let Some(found) = text
        .get(byte..)
        .and_then(|rest| memchr::memchr(b'\\', rest))
    {
        byte += found;
        match escaped_unit(text, byte) {
            Some(0) => return Some(Unstorable::Nul),
            Some(0xd800..0xdc00) => match escaped_unit(text, byte + 6) {
                Some(0xdc00..0xe000) => byte += 12,
                _ => return Some(Unstorable::Surrogate),
            },
            Some(0xdc00..0xe000) => return Some(Unstorable::Surrogate),
            _ => byte += 2,
        }
    }
    None
}

/// Returns the UTF-16 code unit of the escape at `byte`; `None` if there is no `\u` escape.
fn escaped_unit(text: &[u8], byte: usize) -> Option<u32> {
    let digits = text.get(byte..byte + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_outside_of_strings() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert_eq!(too_deep(deep(DEPTH_MAX).as_bytes()), None);
        assert_eq!(too_deep(deep(DEPTH_MAX + 1).as_bytes()), Some(DEPTH_MAX));
        assert_eq!(
            too_deep(format!(r#""\"\\\"{}""#, deep(200)).as_bytes()),
            None
        );
        assert_eq!(too_deep(br#""\"#), None);
        assert_eq!(too_deep("[]".repeat(1000).as_bytes()), None);
    }

    #[test]
    fn escapes_of_unstorable_characters_are_found() {
        for (text, expected) in [
            (r#""\u0000""#, Some(Unstorable::Nul)),
            (r#""a\\\u0000""#, Some(Unstorable::Nul)),
            (r#""\\u0000""#, None),
            (r#""\ud83d\ude00\n""#, None),
            (r#""\ud83d\ude00\u0000""#, Some(Unstorable::Nul)),
            (r#""\ud83d""#, Some(Unstorable::Surrogate)),
            (r#""\ud83d\ud83d""#, Some(Unstorable::Surrogate)),
            (r#""\ude00""#, Some(Unstorable::Surrogate)),
            (r#"{"a":[1,"\u0041"]}"#, None),
        ] {
            assert_eq!(unstorable(text.as_bytes()), expected, "{text}");
        }
    }
}
