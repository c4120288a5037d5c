//! What needs the text of a query only.

use lanes_promql::ast::Expr;
use lanes_promql::parser::{self, ParserOptions};
use serde_json::{Value, json};

use super::answer::Answer;
use super::failure::Failure;
use super::form::Form;
use super::parameters;
use super::tree;

/// The maximum number of regular expressions in a text. Each may take a mebibyte while the text is
/// parsed, and the time to compile it.
pub const REGEXES_MAX: usize = 100;

/// Parses the text of a query.
///
/// # Errors
/// Returns a failure with Prometheus's words and the position of the fault.
pub fn parsed(query: &str) -> Result<Expr, Failure> {
    parse(query).map_err(|reason| Failure::invalid("query", reason))
}

fn parse(query: &str) -> Result<Expr, String> {
    check_regexes(query)?;
    parser::parse(query, ParserOptions::default()).map_err(|error| error.to_string())
}

/// Checks that a text has few regular expressions, before any is compiled. The operators are counted
/// inside of quotes too.
///
/// # Errors
/// Returns the limit.
pub fn check_regexes(text: &str) -> Result<(), String> {
    let pairs = text.as_bytes().windows(2);
    let count = pairs.filter(|pair| matches!(*pair, b"=~" | b"!~")).count();
    match count > REGEXES_MAX {
        true => Err(format!("more than {REGEXES_MAX} regular expressions")),
        false => Ok(()),
    }
}

/// Answers `format_query`: the query in canonical form, on one line.
///
/// # Errors
/// Returns a failure if the text is no query.
pub fn format_query(form: &Form) -> Result<Answer, Failure> {
    let expr = parsed(form.get("query"))?;
    Ok(Answer::Data(Value::from(expr.to_string())))
}

/// Answers `parse_query`: the syntax tree of a query.
///
/// # Errors
/// Returns a failure if the text is no query.
pub fn parse_query(form: &Form) -> Result<Answer, Failure> {
    let expr = parsed(form.get("query"))?;
    Ok(Answer::Data(tree::of(&expr)))
}

/// Answers `query_exemplars`. Exemplars are not stored, so there are none.
///
/// # Errors
/// Returns a failure if the text is no query, or the times are wrong.
pub fn query_exemplars(form: &Form) -> Result<Answer, Failure> {
    let start = parameters::optional_time(form, "start")?;
    let end = parameters::optional_time(form, "end")?;
    if let (Some(start), Some(end)) = (start, end)
        && end < start
    {
        let reason = "end timestamp must not be before start timestamp";
        return Err(Failure::bad_data(reason));
    }
    let expr = parse(form.get("query")).map_err(Failure::bad_data)?;
    match has_selector(&expr) {
        true => Ok(Answer::Data(json!([]))),
        false => Ok(Answer::Nothing),
    }
}

fn has_selector(expr: &Expr) -> bool {
    matches!(expr, Expr::Selector(_) | Expr::Range(_))
        || expr.children().into_iter().any(has_selector)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(answer: Result<Answer, Failure>) -> Result<Value, String> {
        match answer {
            Ok(Answer::Data(data)) => Ok(data),
            Ok(_) => Ok(Value::Null),
            Err(failure) => Err(failure.text),
        }
    }

    fn form(pairs: &str) -> Form {
        Form::parse(b"", pairs)
    }

    #[test]
    fn queries_are_formatted() {
        let formatted = format_query(&form("query=sum(rate(a[5m]))by(job)%2F2"));
        assert_eq!(data(formatted), Ok(json!("sum by (job) (rate(a[5m])) / 2")));
        let empty = format_query(&form(""));
        let expected = "invalid parameter \"query\": unknown position: parse error: no expression found in input";
        assert_eq!(data(empty), Err(expected.to_owned()));
    }

    #[test]
    fn a_query_has_few_regular_expressions() {
        let query = |count: usize| format!("{{a='b',{}}}", "c=~'d',".repeat(count));
        assert!(parsed(&query(REGEXES_MAX)).is_ok());
        let expected = "invalid parameter \"query\": more than 100 regular expressions";
        let refused = parsed(&query(REGEXES_MAX + 1)).map_err(|failure| failure.text);
        assert_eq!(refused, Err(expected.to_owned()));
        assert!(check_regexes(&"!~".repeat(REGEXES_MAX + 1)).is_err());
    }

    #[test]
    fn there_are_no_exemplars() {
        let found = query_exemplars(&form("query=rate(a[5m])&start=1&end=2"));
        assert_eq!(data(found), Ok(json!([])));
        let nothing = query_exemplars(&form("query=1"));
        assert!(matches!(nothing, Ok(Answer::Nothing)));
        let wrong = query_exemplars(&form("query=a&start=2&end=1"));
        let expected = "end timestamp must not be before start timestamp";
        assert_eq!(data(wrong), Err(expected.to_owned()));
        assert!(data(query_exemplars(&form("query=a("))).is_err());
    }
}
