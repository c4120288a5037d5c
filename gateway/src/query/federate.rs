//! `/federate`: the latest samples of series, in the text format that Prometheus scrapes.

use std::collections::BTreeMap;
use std::fmt::Write;

use bytes::Bytes;
use lanes_promql::number::format_general;
use tokio_postgres::Row;

use super::answer::{Answer, PIECE_BYTES, label_set, read, text};
use super::failure::Failure;
use super::form::Form;
use super::routes::Served;
use super::running::Rows;
use super::selectors;
use super::sessions::Statement;

/// The media type of the answer. Names that are no words are quoted, as this version allows.
pub const MEDIA_TYPE: &str = "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8";

/// The latest sample of each series that is not older than the look-back. Each run of
/// `lanes.series_runs` is unpacked once, however many of its series are selected.
const LATEST: &str = "SELECT r.metric, r.label_sets[chosen.id - r.first_id + 1], chosen.millis, chosen.value \
     FROM (SELECT f.first_id, array_agg(f.series) AS ids, array_agg(f.millis) AS millis, array_agg(f.value) AS sample_values \
             FROM (SELECT d.series, floor(extract(epoch FROM d.ts) * 1000)::int8 AS millis, d.value, \
                          (SELECT max(n.first_id) FROM lanes.series_runs n WHERE n.first_id <= d.series) AS first_id \
                     FROM (SELECT DISTINCT ON (m.series) m.series, m.ts, m.value FROM lanes.samples AS m \
                            WHERE m.series = ANY (ARRAY (SELECT DISTINCT i.id FROM unnest($1::text[]) AS s (selector) \
                                                         CROSS JOIN LATERAL lanes.series_ids(s.selector) AS i (id))) \
                              AND m.ts >= now() - make_interval(secs => $2) AND m.ts <= now() \
                            ORDER BY m.series, m.ts DESC) AS d \
                    WHERE NOT lanes.is_stale_marker(d.value)) AS f GROUP BY f.first_id) AS wanted \
     CROSS JOIN LATERAL (SELECT n.first_id, n.last_id, n.metric, lanes.label_sets(n.labels) AS label_sets \
                           FROM lanes.series_runs n WHERE n.first_id = wanted.first_id OFFSET 0) AS r \
     CROSS JOIN LATERAL unnest(wanted.ids, wanted.millis, wanted.sample_values) AS chosen (id, millis, value) \
     WHERE chosen.id <= r.last_id AND r.metric <> '' ORDER BY r.metric COLLATE \"C\", chosen.id";

/// Answers `/federate`.
///
/// # Errors
/// Returns a failure if a selector is wrong, or the samples cannot be read.
pub async fn federate(served: &Served<'_>, form: &Form) -> Result<Answer, Failure> {
    let selectors = selectors::all(form).map_err(Failure::bad_data)?;
    let rows = served.sessions.run(Statement {
        sql: LATEST,
        parameters: vec![
            Box::new(selectors),
            Box::new(served.settings.lookback_delta.as_secs_f64()),
        ],
        timeout: served.settings.timeout,
    });
    Ok(Answer::Lines(Lines {
        rows: rows.await?,
        metric: None,
    }))
}

/// The lines of an answer, made of its rows.
pub struct Lines {
    rows: Rows,
    /// The metric of the last line.
    metric: Option<String>,
}

impl Lines {
    /// Returns the next piece; `None` at the end.
    ///
    /// # Errors
    /// Returns the error that ended the statement.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let mut piece = String::new();
        while piece.len() < PIECE_BYTES {
            match self.rows.next().await? {
                Some(row) => self.line(&row, &mut piece)?,
                None if piece.is_empty() => return Ok(None),
                None => break,
            }
        }
        Ok(Some(piece.into()))
    }

    fn line(&mut self, row: &Row, piece: &mut String) -> Result<(), Failure> {
        let metric = text(row, 0)?;
        let labels = label_set(text(row, 1)?)?;
        if self.metric.as_deref() != Some(metric) {
            piece.push_str(&type_line(metric));
            self.metric = Some(metric.to_owned());
        }
        piece.push_str(&sample_line(metric, labels, read(row, 3)?, read(row, 2)?));
        Ok(())
    }
}

fn type_line(metric: &str) -> String {
    match is_word(metric, true) {
        true => format!("# TYPE {metric} untyped\n"),
        false => format!("# TYPE {} untyped\n", quoted(metric)),
    }
}

/// Writes a sample. A series without `instance` gets an empty one, so that the server that scrapes
/// does not put its own in.
fn sample_line(
    metric: &str,
    mut labels: BTreeMap<String, String>,
    value: f64,
    millis: i64,
) -> String {
    labels.entry("instance".to_owned()).or_default();
    let mut parts = Vec::with_capacity(labels.len() + 1);
    let mut line = String::new();
    match is_word(metric, true) {
        true => line.push_str(metric),
        false => parts.push(quoted(metric)),
    }
    parts.extend(labels.iter().map(|(name, value)| {
        let value = quoted(value);
        match is_word(name, false) {
            true => format!("{name}={value}"),
            false => format!("{}={value}", quoted(name)),
        }
    }));
    let (parts, value) = (parts.join(","), format_general(value));
    // Writing to a text does not fail.
    let _ = writeln!(line, "{{{parts}}} {value} {millis}");
    line
}

/// Whether a name needs no quotes. Only names of metrics may have colons.
fn is_word(name: &str, is_metric: bool) -> bool {
    let is_part =
        |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || is_metric && byte == b':';
    !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(is_part)
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('\n', r"\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(metric: &str, labels: &[(&str, &str)], value: f64) -> String {
        let labels = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        sample_line(metric, labels.collect(), value, 1500)
    }

    #[test]
    fn samples_are_lines_of_the_text_format() {
        assert_eq!(
            line("up", &[("job", "a\\\"\n"), ("instance", "i")], 1.0),
            "up{instance=\"i\",job=\"a\\\\\\\"\\n\"} 1 1500\n"
        );
        assert_eq!(
            line("a:b", &[], f64::INFINITY),
            "a:b{instance=\"\"} +Inf 1500\n"
        );
        assert_eq!(
            line("a.b", &[("c:d", "e")], 1_234_567.0),
            "{\"a.b\",\"c:d\"=\"e\",instance=\"\"} 1.234567e+06 1500\n"
        );
        assert_eq!(type_line("up"), "# TYPE up untyped\n");
        assert_eq!(type_line("1up"), "# TYPE \"1up\" untyped\n");
    }
}
