//! The two data sources: a connection to PostgreSQL, and one to a server of Prometheus's API.

use super::answer::Answer;
use super::panel::{Dashboard, Panel, PrometheusRequest};
use crate::peers::http;
use lanes_support::error::{Error, Result};
use postgres::{Client, SimpleQueryMessage};
use serde_json::Value;
use std::time::Instant;

/// A data source of panels.
pub trait DataSource {
    /// Queries a panel. Returns its content, and the milliseconds until the last byte of the answer
    /// was received.
    ///
    /// # Errors
    /// The server refuses the query, or the answer cannot be parsed.
    fn ask(&mut self, panel: usize) -> Result<(Answer, f64)>;
}

impl<S: DataSource + ?Sized> DataSource for Box<S> {
    fn ask(&mut self, panel: usize) -> Result<(Answer, f64)> {
        (**self).ask(panel)
    }
}

/// Grafana's data source for PostgreSQL: statements without parameters, answers as text.
pub struct PostgresSource {
    client: Client,
    statements: Vec<String>,
}

impl PostgresSource {
    /// Creates a data source that queries the panels of a dashboard over this connection.
    ///
    /// # Errors
    /// A panel has an unknown macro.
    pub fn new(client: Client, panels: &[Panel], dashboard: &Dashboard) -> Result<PostgresSource> {
        let statements = panels.iter().map(|panel| panel.expanded_sql(dashboard));
        Ok(PostgresSource {
            client,
            statements: statements.collect::<Result<_>>()?,
        })
    }
}

impl DataSource for PostgresSource {
    fn ask(&mut self, panel: usize) -> Result<(Answer, f64)> {
        let start = Instant::now();
        let messages = self.client.simple_query(&self.statements[panel])?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        let mut answer = Answer::default();
        for message in &messages {
            let SimpleQueryMessage::Row(row) = message else {
                continue;
            };
            let of_column = |name: &str| {
                let place = row
                    .columns()
                    .iter()
                    .position(|column| column.name() == name)?;
                row.get(place)
            };
            let line = of_column("metric").unwrap_or_default();
            // A list of values has lines without values.
            let value = of_column("value").map_or(Ok(1.0), str::parse);
            let value = value.map_err(|error| Error::Other(format!("a value of SQL: {error}")))?;
            answer.add(line, value);
        }
        Ok((answer, milliseconds))
    }
}

/// Grafana's data source for Prometheus.
pub struct PrometheusSource {
    agent: ureq::Agent,
    base: String,
    requests: Vec<(PrometheusRequest, Vec<String>)>,
}

impl PrometheusSource {
    /// Creates a data source that sends these requests to the server at this address. Each request
    /// comes with the labels that distinguish the lines of its answer.
    pub fn new(base: &str, requests: Vec<(PrometheusRequest, Vec<String>)>) -> PrometheusSource {
        PrometheusSource {
            agent: http::agent(),
            base: base.to_owned(),
            requests,
        }
    }
}

impl DataSource for PrometheusSource {
    fn ask(&mut self, panel: usize) -> Result<(Answer, f64)> {
        let (request, by) = &self.requests[panel];
        let url = format!("{}{}", self.base, request.path);
        let parameters: Vec<(&str, &str)> = request
            .parameters
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let start = Instant::now();
        let text = http::text_by(&self.agent, &url, &parameters)?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        let parsed = serde_json::from_str(&text).map_err(|error| error.to_string());
        let answer = parsed.and_then(|json| shown(&json, by));
        let answer = answer.map_err(|reason| Error::Http { url, reason })?;
        Ok((answer, milliseconds))
    }
}

/// Parses an answer of Prometheus's HTTP API. The labels in `by` distinguish its lines.
fn shown(json: &Value, by: &[String]) -> std::result::Result<Answer, String> {
    let odd = || format!("not a response of Prometheus's API: {json}");
    let mut answer = Answer::default();
    let data = &json["data"];
    if let Some(values) = data.as_array() {
        for value in values {
            answer.add(value.as_str().ok_or_else(odd)?, 1.0);
        }
        return Ok(answer);
    }
    for line in data["result"].as_array().ok_or_else(odd)? {
        let labels: Vec<&str> = by
            .iter()
            .map(|label| line["metric"][label].as_str().unwrap_or_default())
            .collect();
        let single = std::slice::from_ref(&line["value"]);
        for pair in line["values"].as_array().map_or(single, Vec::as_slice) {
            let value = pair[1].as_str().and_then(|text| text.parse().ok());
            answer.add(&labels.join(","), value.ok_or_else(odd)?);
        }
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_of_all_three_endpoints_are_parsed() {
        let by = ["instance".to_owned()];
        let range = json!({"data": {"result": [
            {"metric": {"instance": "a", "job": "j"}, "values": [[1, "1.5"], [2, "2.5"]]},
            {"metric": {"instance": "b"}, "values": [[1, "NaN"]]},
        ]}});
        let mut expected = Answer::default();
        expected.add("a", 1.5);
        expected.add("a", 2.5);
        expected.add("b", f64::NAN);
        assert_eq!(shown(&range, &by).unwrap().difference(&expected), None);
        let instant = json!({"data": {"result": [{"metric": {}, "value": [1, "7"]}]}});
        let mut expected = Answer::default();
        expected.add("", 7.0);
        assert_eq!(shown(&instant, &[]).unwrap().difference(&expected), None);
        let list = json!({"data": ["x", "y"]});
        assert_eq!(shown(&list, &[]).unwrap().values(), 2);
        for odd in [
            json!({"status": "error"}),
            json!({"data": {"result": [{"metric": {}}]}}),
        ] {
            assert!(shown(&odd, &[]).unwrap_err().contains("not a response"));
        }
    }
}
