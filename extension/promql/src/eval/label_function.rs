//! `label_replace` and `label_join`.

use super::guard::Guard;
use super::{Evaluator, Row, Sink, text};
use crate::error::{Error, execution};
use crate::expression::compile_anchored;
use crate::grid::Grid;
use crate::labels::{Labels, LabelsBuilder, METRIC_NAME};
use crate::plan::Node;

impl Evaluator<'_> {
    /// Sets a label to a template where the whole value of another one matches an expression.
    pub(super) fn label_replace(
        &self,
        args: &[Node],
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        let [target, template, source, expression] = [1, 2, 3, 4].map(|place| text(&args[place]));
        let Ok(regex) = compile_anchored(expression) else {
            let message = "invalid regular expression in label_replace()";
            return execution(format!("{message}: {expression}"));
        };
        if !is_label_name(target) {
            let message = "invalid destination label name in label_replace()";
            return execution(format!("{message}: {target}"));
        }
        let template = Template::of(template);
        self.relabel(&args[0], grid, target, sink, |labels| {
            let captures = regex.captures(labels.get(source));
            captures
                .map(|captures| concatenate(template.pieces(&captures)))
                .transpose()
        })
    }

    /// Sets a label to the values of others with a separator between them.
    pub(super) fn label_join(
        &self,
        args: &[Node],
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        let (target, separator) = (text(&args[1]), text(&args[2]));
        let sources: Vec<&str> = args[3..].iter().map(text).collect();
        if let Some(source) = sources.iter().find(|source| !is_label_name(source)) {
            return execution(format!(
                "invalid source label name in label_join(): {source}"
            ));
        }
        if !is_label_name(target) {
            return execution(format!(
                "invalid destination label name in label_join(): {target}"
            ));
        }
        self.relabel(&args[0], grid, target, sink, |labels| {
            let values = sources.iter().enumerate().flat_map(|(place, source)| {
                let before = if place == 0 { "" } else { separator };
                [before, labels.get(source)]
            });
            concatenate(values).map(Some)
        })
    }

    /// Sets a label of each row to the value that a function returns, if it returns one.
    fn relabel(
        &self,
        arg: &Node,
        grid: Grid,
        target: &str,
        sink: Sink<'_>,
        value: impl Fn(&Labels) -> Result<Option<String>, Error>,
    ) -> Result<(), Error> {
        let mut guard = Guard::new(self, true);
        self.stream(arg, grid, &mut |row| {
            let mut labels = row.labels.clone();
            let mut drops_name = row.drops_name;
            if let Some(value) = value(row.labels)? {
                let mut builder = LabelsBuilder::of(row.labels);
                builder.set(target, &value);
                labels = builder.build();
                drops_name &= target != METRIC_NAME;
            }
            guard.admit(&labels, row.values)?;
            sink(Row {
                labels: &labels,
                drops_name,
                values: row.values,
            })
        })
    }
}

/// Whether a text can be the name of a label. Bytes that are no UTF-8 have been replaced.
fn is_label_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(char::REPLACEMENT_CHARACTER)
}

/// A text in which `$1`, `${1}`, `$name` and `${name}` stand for groups of a match.
///
/// As in Go a name without braces is as long as it can be, and a dollar that names nothing is
/// dropped or kept as Go does.
struct Template<'t>(Vec<Piece<'t>>);

enum Piece<'t> {
    Text(&'t str),
    Group(&'t str),
}

impl<'t> Template<'t> {
    fn of(text: &'t str) -> Template<'t> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            pieces.push(Piece::Text(&rest[..dollar]));
            let after = &rest[dollar + 1..];
            if let Some(more) = after.strip_prefix('$') {
                pieces.push(Piece::Text("$"));
                rest = more;
                continue;
            }
            match group_name(after) {
                Some((name, len)) => {
                    pieces.push(Piece::Group(name));
                    rest = &after[len..];
                }
                None => {
                    // A dollar that names no group stands for itself.
                    pieces.push(Piece::Text("$"));
                    rest = after;
                }
            }
        }
        pieces.push(Piece::Text(rest));
        Template(pieces)
    }

    /// The texts that the template consists of for a match.
    fn pieces<'p>(&'p self, captures: &'p regex::Captures<'_>) -> impl Iterator<Item = &'p str> {
        let group = |name: &str| match name.parse::<usize>() {
            Ok(number) => captures.get(number),
            Err(_) => captures.name(name),
        };
        self.0.iter().map(move |piece| match piece {
            Piece::Text(text) => *text,
            Piece::Group(name) => group(name).map_or("", |found| found.as_str()),
        })
    }
}

/// The largest size of a value that a function gives a label, in bytes. Nested functions could
/// double a value again and again.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// A value of a label that consists of these texts.
fn concatenate<'t>(texts: impl Iterator<Item = &'t str>) -> Result<String, Error> {
    let mut value = String::new();
    for text in texts {
        if value.len() + text.len() > VALUE_BYTES_MAX {
            return execution(format!(
                "a label value would be longer than {VALUE_BYTES_MAX} bytes"
            ));
        }
        value.push_str(text);
    }
    Ok(value)
}

/// The name of the group at the start of a text, and the length of what names it.
fn group_name(text: &str) -> Option<(&str, usize)> {
    let (inner, braces) = match text.strip_prefix('{') {
        Some(inner) => (inner, true),
        None => (text, false),
    };
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let len = inner.find(|c| !is_part(c)).unwrap_or(inner.len());
    let name = &inner[..len];
    match (name.is_empty(), braces) {
        (true, _) => None,
        (false, false) => Some((name, len)),
        (false, true) => inner[len..].starts_with('}').then_some((name, len + 2)),
    }
}
