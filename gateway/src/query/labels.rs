//! `series`, `labels` and the values of a label, from the label index.

use std::time::SystemTime;

use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::Timestamp;

use super::answer::{Answer, List, label_set, text, text_item};
use super::failure::Failure;
use super::form::Form;
use super::parameters::{self, Time};
use super::routes::Served;
use super::selectors;
use super::sessions::{Parameter, Statement};

/// Statements for one selector, or for NULL, which selects all series. The functions return their rows in order, each
/// once.
const NAMES_OF_ONE: &str = "SELECT lanes.label_names($1, $3, $4) LIMIT $2";
const VALUES_OF_ONE: &str = "SELECT lanes.label_values($5, $1, $3, $4) LIMIT $2";

const NAMES: &str = "SELECT DISTINCT n.name COLLATE pg_catalog.\"C\" \
     FROM pg_catalog.unnest($1::pg_catalog.text[]) AS s (selector) \
     CROSS JOIN LATERAL lanes.label_names(s.selector, $3, $4) AS n (name) ORDER BY 1 LIMIT $2";

const VALUES: &str = "SELECT DISTINCT v.value COLLATE pg_catalog.\"C\" \
     FROM pg_catalog.unnest($1::pg_catalog.text[]) AS s (selector) \
     CROSS JOIN LATERAL lanes.label_values($5, s.selector, $3, $4) AS v (value) ORDER BY 1 LIMIT $2";

/// The label sets of series. Each run of `lanes.series_runs` is unpacked once, however many of its
/// series are selected.
const SERIES: &str = "SELECT r.metric, r.label_sets[chosen.id - r.first_id + 1] \
     FROM (SELECT f.first_id, pg_catalog.array_agg(f.id) AS ids \
             FROM (SELECT u.id, (SELECT pg_catalog.max(n.first_id) FROM lanes.series_runs n \
                                  WHERE n.first_id <= u.id) AS first_id \
                     FROM (SELECT DISTINCT i.id FROM pg_catalog.unnest($1::pg_catalog.text[]) AS s (selector) \
                           CROSS JOIN LATERAL lanes.series_ids(s.selector, $3, $4) AS i (id)) AS u (id)) AS f \
            GROUP BY f.first_id) AS wanted \
     CROSS JOIN LATERAL (SELECT n.first_id, n.last_id, n.metric, lanes.label_sets(n.labels) AS label_sets \
                           FROM lanes.series_runs n WHERE n.first_id = wanted.first_id OFFSET 0) AS r \
     CROSS JOIN LATERAL pg_catalog.unnest(wanted.ids) AS chosen (id) \
     WHERE chosen.id <= r.last_id ORDER BY chosen.id LIMIT $2";

/// Answers `labels`: the names of labels.
///
/// # Errors
/// Returns a failure if a parameter is wrong, or the labels cannot be read.
pub async fn names(served: &Served<'_>, form: &Form) -> Result<Answer, Failure> {
    let request = LabelRequest::parse(form)?;
    let (sql, parameters) = request.statement(NAMES_OF_ONE, NAMES);
    let rows = served.sessions.run(Statement {
        sql,
        parameters,
        timeout: served.settings.timeout,
    });
    Ok(Answer::List(List {
        rows: rows.await?,
        item: text_item,
        limit: request.limit,
    }))
}

/// Answers `label/{name}/values`.
///
/// # Errors
/// Returns a failure if a parameter is wrong, or the labels cannot be read.
pub async fn values(served: &Served<'_>, name: &str, form: &Form) -> Result<Answer, Failure> {
    let name = unescaped(name);
    if name.is_empty() {
        return Err(Failure::bad_data("invalid label name: \"\""));
    }
    let request = LabelRequest::parse(form)?;
    let (sql, mut parameters) = request.statement(VALUES_OF_ONE, VALUES);
    parameters.push(Box::new(name));
    let rows = served.sessions.run(Statement {
        sql,
        parameters,
        timeout: served.settings.timeout,
    });
    Ok(Answer::List(List {
        rows: rows.await?,
        item: text_item,
        limit: request.limit,
    }))
}

/// Answers `series`: the label sets of series.
///
/// # Errors
/// Returns a failure if a parameter is wrong, or the labels cannot be read.
pub async fn series(served: &Served<'_>, form: &Form) -> Result<Answer, Failure> {
    if form.all("match[]").next().is_none() {
        return Err(Failure::bad_data("no match[] parameter provided"));
    }
    let request = LabelRequest::parse(form).map_err(|failure| {
        match failure.text.starts_with("invalid parameter") {
            true => failure,
            false => Failure::invalid("match[]", failure.text),
        }
    })?;
    let rows = served.sessions.run(Statement {
        sql: SERIES,
        parameters: request.parameters(),
        timeout: served.settings.timeout,
    });
    Ok(Answer::List(List {
        rows: rows.await?,
        item: series_item,
        limit: request.limit,
    }))
}

/// What the routes of labels are asked for.
pub(super) struct LabelRequest {
    selectors: Vec<String>,
    limit: usize,
    start: Option<Time>,
    end: Option<Time>,
}

impl LabelRequest {
    pub(super) fn parse(form: &Form) -> Result<Self, Failure> {
        Ok(Self {
            limit: parameters::limit(form)?,
            start: parameters::optional_time(form, "start")?,
            end: parameters::optional_time(form, "end")?,
            selectors: selectors::all(form).map_err(Failure::bad_data)?,
        })
    }

    /// The limit of the statement, which returns one row more to tell that there are more. NULL is
    /// no limit.
    pub(super) fn rows_max(&self) -> Option<i64> {
        match self.limit {
            0 => None,
            limit => Some(i64::try_from(limit).map_or(i64::MAX, |limit| limit.saturating_add(1))),
        }
    }

    /// Returns the statement for at most one selector, or that for several, with its parameters.
    fn statement(
        &self,
        of_one: &'static str,
        of_several: &'static str,
    ) -> (&'static str, Vec<Parameter>) {
        match &self.selectors[..] {
            [] => (of_one, self.with_times(Box::new(None::<String>))),
            [selector] => (of_one, self.with_times(Box::new(Some(selector.clone())))),
            _ => (of_several, self.parameters()),
        }
    }

    /// The selectors, the limit, and the first and the last time.
    fn parameters(&self) -> Vec<Parameter> {
        self.with_times(Box::new(self.selectors.clone()))
    }

    /// What selects, the limit, and the first and the last time. A time that PostgreSQL does not
    /// have is before or after all of its times.
    fn with_times(&self, selecting: Parameter) -> Vec<Parameter> {
        vec![
            selecting,
            Box::new(self.rows_max()),
            Box::new(bound(self.start.unwrap_or(Time(i64::MIN)))),
            Box::new(bound(self.end.unwrap_or(Time(i64::MAX)))),
        ]
    }
}

/// Returns a time as a parameter that excludes no other one beyond PostgreSQL's.
fn bound(time: Time) -> Timestamp<SystemTime> {
    match time.system_time() {
        Some(time) => Timestamp::Value(time),
        None if time < Time::FIRST => Timestamp::NegInfinity,
        None => Timestamp::PosInfinity,
    }
}

/// Writes a label set in the order of its names.
fn series_item(row: &Row) -> Result<String, Failure> {
    series_text(text(row, 0)?, text(row, 1)?)
}

fn series_text(metric: &str, labels: &str) -> Result<String, Failure> {
    let mut labels = label_set(labels)?;
    if !metric.is_empty() {
        labels.insert("__name__".to_owned(), metric.to_owned());
    }
    let object: serde_json::Map<String, Value> = labels
        .into_iter()
        .map(|(name, value)| (name, Value::from(value)))
        .collect();
    Ok(Value::Object(object).to_string())
}

/// Returns the name that `U__` escapes: `_` stands for itself twice, other characters for their
/// hexadecimal number between two. A name that is escaped wrongly is returned as it is.
pub(super) fn unescaped(name: &str) -> String {
    let Some(escaped) = name.strip_prefix("U__") else {
        return name.to_owned();
    };
    unescaped_rest(escaped).unwrap_or_else(|| name.to_owned())
}

fn unescaped_rest(mut rest: &str) -> Option<String> {
    /// The hexadecimal digits of the greatest character.
    const DIGITS_MAX: usize = 6;
    let mut name = String::with_capacity(rest.len());
    while let Some((plain, after)) = rest.split_once('_') {
        name.push_str(plain);
        let (digits, after) = after.split_once('_')?;
        match digits {
            "" => name.push('_'),
            digits if digits.len() > DIGITS_MAX || digits.starts_with('+') => return None,
            digits => name.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?),
        }
        rest = after;
    }
    name.push_str(rest);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unescaped() {
        for (escaped, name) in [
            ("job", "job"),
            ("U__service_2e_name", "service.name"),
            ("U__a__b", "a_b"),
            ("U___1f600_x", "\u{1f600}x"),
            ("U__a_b", "U__a_b"),
            ("U__a_zz_", "U__a_zz_"),
            ("U__a_d800_", "U__a_d800_"),
            ("U__a_0000041_", "U__a_0000041_"),
        ] {
            assert_eq!(unescaped(escaped), name, "{escaped}");
        }
    }

    #[test]
    fn label_sets_are_sorted_with_the_metric() {
        let text = |metric: &str, labels: &str| series_text(metric, labels).unwrap_or_default();
        assert_eq!(
            text("up", r#"{"job":"a","A":"\"é"}"#),
            r#"{"A":"\"é","__name__":"up","job":"a"}"#
        );
        assert_eq!(text("", r#"{"a\"":"b"}"#), r#"{"a\"":"b"}"#);
        assert!(series_text("up", "[]").is_err());
    }

    #[test]
    fn one_row_more_than_the_limit_is_asked_for() {
        let rows_max = |pairs: &str| {
            let request = LabelRequest::parse(&Form::parse(b"", pairs)).unwrap();
            request.rows_max()
        };
        assert_eq!(rows_max(""), None);
        assert_eq!(rows_max("limit=3"), Some(4));
        assert_eq!(rows_max("limit=9223372036854775807"), Some(i64::MAX));
    }
}
