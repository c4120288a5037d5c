//! The statements of a script of SQL.

/// The statements, without comments. Quoted text, dollar-quoted text and comments may contain semicolons.
pub fn statements(script: &str) -> Vec<String> {
    let mut statements = vec![String::new()];
    let mut rest = script;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '-' if rest.starts_with("--") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            ';' => {
                statements.push(String::new());
                rest = &rest[1..];
                continue;
            }
            '\'' | '"' => quoted(rest, &rest[..1]),
            '$' if rest.starts_with("$$") => quoted(rest, "$$"),
            other => other.len_utf8(),
        };
        if let Some(last) = statements.last_mut() {
            *last += &rest[..length];
        }
        rest = &rest[length..];
    }
    statements
        .iter()
        .map(|statement| statement.trim().to_owned())
        .filter(|statement| !statement.is_empty())
        .collect()
}

/// Bytes of the text at the beginning that is between two of these quotes.
fn quoted(text: &str, quote: &str) -> usize {
    let inside = &text[quote.len()..];
    let end = inside
        .find(quote)
        .unwrap_or_else(|| panic!("a quote has no end: {text}"));
    quote.len() + end + quote.len()
}

#[test]
fn semicolons_in_quotes_and_comments_end_nothing() {
    let script = "SELECT ';' -- one; two\n, \"a;b\";\nDO $$ BEGIN; END $$;\n\n";
    assert_eq!(
        statements(script),
        ["SELECT ';' \n, \"a;b\"", "DO $$ BEGIN; END $$"]
    );
}
