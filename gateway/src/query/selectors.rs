//! The parameter `match[]`: selectors of series.

use lanes_promql::matcher::Matcher;
use lanes_promql::parser::{self, ParserOptions};
use lanes_promql::quote::quote;

use super::form::Form;
use super::syntax;

/// The maximum number of selectors in a request. Each is looked up in the label index.
const SELECTORS_MAX: usize = 100;

/// Returns the selectors of a request, as the SQL functions of labels read them.
///
/// # Errors
/// Returns Prometheus's words for a text that is no selector, or that selects all series.
pub fn all(form: &Form) -> Result<Vec<String>, String> {
    let texts: Vec<&str> = form.all("match[]").collect();
    if texts.len() > SELECTORS_MAX {
        return Err(format!("more than {SELECTORS_MAX} match[] parameters"));
    }
    let mut selectors = Vec::with_capacity(texts.len());
    for text in texts {
        syntax::check_regexes(text)?;
        let matchers = parser::parse_selector(text, ParserOptions::default())
            .map_err(|error| error.to_string())?;
        if matchers.iter().all(|matcher| matcher.matches("")) {
            return Err("match[] must contain at least one non-empty matcher".to_owned());
        }
        selectors.push(canonical(&matchers));
    }
    Ok(selectors)
}

/// Writes matchers with all names in quotes: `{"__name__"="up","job"=~"a|b"}`. Regular expressions
/// are written in the syntax of the SQL functions, which differs from Prometheus's in some places.
pub fn canonical(matchers: &[Matcher]) -> String {
    let matchers: Vec<String> = matchers
        .iter()
        .map(|matcher| {
            let expression = matcher.rust_expression();
            let value = expression.as_deref().unwrap_or(matcher.value());
            let (name, value) = (quote(matcher.name()), quote(value));
            format!("{name}{}{value}", matcher.operator().as_str())
        })
        .collect();
    format!("{{{}}}", matchers.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selectors(pairs: &str) -> Result<Vec<String>, String> {
        all(&Form::parse(b"", pairs))
    }

    #[test]
    fn selectors_are_written_canonically() {
        assert_eq!(selectors(""), Ok(Vec::new()));
        assert_eq!(
            selectors("match[]=up%7Bjob!~'a%22'%7D&match[]=%7B'a.b',c=%60d%60%7D").unwrap(),
            [
                r#"{"job"!~"a\"","__name__"="up"}"#,
                r#"{"__name__"="a.b","c"="d"}"#
            ]
        );
    }

    #[test]
    fn the_sql_functions_read_what_is_written() {
        let selectors = selectors("match[]=up%7Bjob!~'a%22%5C%5C%5Cn',x=~'.%2B'%7D").unwrap();
        let read = lanes_labels::selector::Selector::parse(&selectors[0]).unwrap();
        let up = |name: &str| if name == "__name__" { "up" } else { "x" };
        assert!(read.matches(up));
        assert!(!read.matches(|_| "up2"));
        let quoted = self::selectors("match[]=%7Ba=~'%5C%5CQ.%5C%5CE'%7D").unwrap();
        let read = lanes_labels::selector::Selector::parse(&quoted[0]).unwrap();
        assert!(read.matches(|_| ".") && !read.matches(|_| "x"));
    }

    #[test]
    fn wrong_selectors_are_refused() {
        for (pairs, expected) in [
            ("match[]=sum(a)", "parse error"),
            ("match[]=a[5m]", "parse error"),
            (
                "match[]=%7Ba=''%7D",
                "match[] must contain at least one non-empty matcher",
            ),
            (
                "match[]=%7Ba=~'.*'%7D",
                "match[] must contain at least one non-empty matcher",
            ),
        ] {
            let error = selectors(pairs).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let many = "match[]=a&".repeat(SELECTORS_MAX + 1);
        assert!(selectors(&many).is_err());
        let many = format!("match[]=a{{{}}}", "b=~'c',".repeat(101));
        let error = selectors(&many).unwrap_err();
        assert!(
            error.contains("more than 100 regular expressions"),
            "{error}"
        );
    }
}
