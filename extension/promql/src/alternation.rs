//! Regular expressions that are plain alternations. They need not be compiled.

/// Texts that an alternation is taken apart into.
const ALTERNATIVES_MAX: usize = 4096;

/// Returns the texts that an expression matches, sorted and distinct, if it is a plain alternation such as `a|b\.c` or
/// `(a|b)`. Grafana writes the values of a variable like that.
pub(crate) fn alternatives(text: &str) -> Option<Vec<String>> {
    let group = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    let group = group.map(|group| group.strip_prefix("?:").unwrap_or(group));
    let mut texts = vec![String::new()];
    let mut characters = group.unwrap_or(text).chars();
    while let Some(character) = characters.next() {
        let literal = match character {
            '|' if texts.len() == ALTERNATIVES_MAX => return None,
            '|' => {
                texts.push(String::new());
                continue;
            }
            '\\' => characters.next().filter(char::is_ascii_punctuation)?,
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | '{' | '^' | '$' => return None,
            other => other,
        };
        texts.last_mut()?.push(literal);
    }
    texts.sort_unstable();
    texts.dedup();
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::alternatives;
    use crate::expression::compile_anchored;

    #[test]
    fn plain_alternations_are_taken_apart() {
        for (expression, expected) in [
            ("b|a|b", vec!["a", "b"]),
            (r"(a\.b:1|c\_)", vec!["a.b:1", "c_"]),
            ("(?:a|)", vec!["", "a"]),
            ("é}]", vec!["é}]"]),
        ] {
            let found = alternatives(expression).unwrap();
            assert_eq!(found, expected, "{expression}");
            let regex = compile_anchored(expression).unwrap();
            for text in ["", "a", "b", "a.b:1", "axb:1", "c_", "é}]"] {
                let is_found = found.iter().any(|found| found == text);
                assert_eq!(is_found, regex.is_match(text), "{expression} on {text}");
            }
        }
        for expression in [
            "a.", "a*", "(a)|(b)", "a{2}", r"\d", r"(a\)", "(", "((a))", "(?i:a)", "[a]", "^a",
        ] {
            assert_eq!(alternatives(expression), None, "{expression}");
        }
        assert_eq!(alternatives(&"|".repeat(5000)), None);
    }
}
