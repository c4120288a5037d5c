//! Prometheus's text format as exporters write it: `# TYPE` lines, and `name{label="value",…}
//! value` lines.

use lanes_support::error::{Error, Result};
use std::collections::HashMap;

/// One line of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The metric's name.
    pub metric: String,
    /// Name and value of each label, as on the page.
    pub labels: Vec<(String, String)>,
    /// The value as text, which shows the number of decimals.
    pub text: String,
    /// The value.
    pub value: f64,
    /// Whether the value can only grow: a counter, or a part of a summary or histogram.
    pub is_counter: bool,
}

/// A page of metrics, in its order.
pub type Page = Vec<Line>;

/// Parses a page. Comments other than types are skipped.
pub fn parse(text: &str) -> Result<Page> {
    let mut types: HashMap<&str, &str> = HashMap::new();
    let mut page = Page::new();
    for line in text.lines() {
        if let Some(declaration) = line.strip_prefix("# TYPE ") {
            types.extend(declaration.split_once(' '));
        } else if !line.starts_with('#') && !line.trim().is_empty() {
            page.push(parse_line(line, &types).ok_or_else(|| {
                Error::Other(format!("not a line of the Prometheus text format: {line}"))
            })?);
        }
    }
    Ok(page)
}

fn parse_line(line: &str, types: &HashMap<&str, &str>) -> Option<Line> {
    let name_end = line.find(['{', ' '])?;
    let (metric, mut rest) = line.split_at(name_end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (name, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.push((name.to_owned(), value));
            rest = after.strip_prefix(',').unwrap_or(after).trim_start();
        }
        rest = rest.strip_prefix('}')?;
    }
    let text = rest.split_whitespace().next()?.to_owned();
    Some(Line {
        metric: metric.to_owned(),
        labels,
        value: text.parse().ok()?,
        text,
        is_counter: is_counter(metric, types),
    })
}

/// Returns the text up to the closing quotation mark, and the text after the mark.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

fn is_counter(metric: &str, types: &HashMap<&str, &str>) -> bool {
    if types.get(metric) == Some(&"counter") {
        return true;
    }
    ["_sum", "_count", "_bucket"].into_iter().any(|suffix| {
        let family = metric
            .strip_suffix(suffix)
            .and_then(|family| types.get(family));
        matches!(family, Some(&"summary") | Some(&"histogram"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_names_labels_values_and_types() {
        let page = parse(
            "# HELP up whether\n# TYPE up gauge\nup 1\n# TYPE c_total counter\nc_total{a=\"x,}\", b=\"q\\\"\\n\\\\\"} 2.50\n\
             # TYPE s summary\ns_sum 1e+06\ns{quantile=\"0\"} 5e-05 1700000000000\n",
        )
        .unwrap();
        assert_eq!(page.len(), 4);
        assert_eq!((page[0].metric.as_str(), page[0].is_counter), ("up", false));
        let labels = [("a", "x,}"), ("b", "q\"\n\\")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(page[1].labels, labels);
        assert_eq!((page[1].text.as_str(), page[1].value), ("2.50", 2.5));
        assert!(page[1].is_counter && page[2].is_counter && !page[3].is_counter);
        assert_eq!((page[2].value, page[3].value), (1e6, 5e-5));
    }

    #[test]
    fn a_malformed_line_is_refused() {
        for text in ["up", "up{a=\"b} 1", "up{a} 1", "up one", "up{a=\"b\" 1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
