//! The cases of Prometheus's parser test: which queries it accepts, and the first error of those
//! that it refuses.
//!
//! The cases are a table of Go literals; their inputs, first errors and first positions are read
//! out of the text.

use crate::go_module;
use lanes_promql::parser::{ParserOptions, parse};
use lanes_promql::quote::unquote;

/// The options of Prometheus's parser test.
const OPTIONS: ParserOptions = ParserOptions {
    experimental_functions: true,
    fill_modifiers: true,
    unicode_names: false,
};

#[derive(Debug)]
struct Case {
    input: String,
    fails: bool,
    first_error: Option<(usize, String)>,
}

/// The literal of Go that follows a prefix in a text, unquoted.
fn literal_after(text: &str, prefix: &str) -> Option<String> {
    let rest = text[text.find(prefix)? + prefix.len()..].trim_start();
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '`'))?;
    let mut is_escaped = false;
    let end = rest.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == quote && !is_escaped;
        is_escaped = *c == '\\' && quote == '"' && !is_escaped;
        ends
    })?;
    unquote(&rest[..=end.0]).ok()
}

fn number_after(text: &str, prefix: &str) -> Option<usize> {
    let rest = &text[text.find(prefix)? + prefix.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest[..end].parse().ok()
}

fn cases() -> Vec<Case> {
    let text = go_module::read("promql/parser/parse_test.go");
    let start = text.find("var testExpr = ").expect("the table of cases");
    let end = text[start..].find("\n}\n").expect("the end of the table") + start;
    let mut cases = Vec::new();
    for block in text[start..end].split("\n\t{\n").skip(1) {
        let Some(input) = literal_after(block, "input:") else {
            continue;
        };
        let input_line = block.lines().find(|line| line.contains("input:"));
        if input_line.is_some_and(|line| line.trim_end().ends_with('+') || line.contains("` + ")) {
            // The input is put together of several literals.
            continue;
        }
        let fails = block.contains("fail:");
        let errors = block.find("errors:").map(|at| &block[at..]);
        let first_error = errors.and_then(|errors| {
            let errors = &errors[errors.find("ParseErr{")?..];
            let is_default = errors.find("Err:") < errors.find("Start:");
            let start = if is_default {
                0
            } else {
                number_after(errors, "Start: ")?
            };
            Some((start, literal_after(errors, "errors.New(")?))
        });
        cases.push(Case {
            input,
            fails,
            first_error,
        });
    }
    cases
}

#[test]
fn queries_parse_as_in_prometheus() {
    let cases = cases();
    assert!(cases.len() > 350, "only {} cases were found", cases.len());
    let mut failures = Vec::new();
    let mut compared = 0;
    for case in &cases {
        let result = parse(&case.input, OPTIONS);
        let failure = match (&result, case.fails, &case.first_error) {
            (Ok(_), false, _) => None,
            (Err(error), true, Some((start, message))) => {
                compared += 1;
                let is_same = error.message == *message && error.span.start == *start;
                let found = (error.span.start, &error.message);
                (!is_same).then(|| format!("{found:?} instead of {start} {message:?}"))
            }
            (Err(_), true, None) => None,
            (Ok(_), true, expected) => Some(format!("accepted instead of {expected:?}")),
            (Err(error), false, _) => Some(format!("refused: {error}")),
        };
        failures.extend(failure.map(|failure| format!("{:?}: {failure}", case.input)));
    }
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(compared > 100, "only {compared} errors were compared");
}
