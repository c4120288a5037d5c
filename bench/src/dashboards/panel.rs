//! A panel of the data file, and the texts that Grafana generates from it.

use super::answer::TOLERANCE;
use lanes_support::error::{Error, Result};
use serde::Deserialize;

/// A panel in the data file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// The panel's title, which names its row in the report.
    pub name: String,
    /// The statement for PostgreSQL, with Grafana's macros and variables.
    pub sql: String,
    /// The query for VictoriaMetrics, with Grafana's variables.
    pub promql: String,
    /// The labels that distinguish PromQL's lines. SQL's lines are distinguished by the column
    /// `metric`.
    #[serde(default)]
    pub by: Vec<String>,
    /// The seconds between two values of a line.
    #[serde(default = "a_minute")]
    pub step_seconds: i64,
    /// The minutes that the panel shows, up to the end of the dashboard's time range.
    #[serde(default = "an_hour")]
    pub minutes: i64,
    /// Whether the panel shows one value per line, at the end of the time range.
    #[serde(default)]
    pub is_instant: bool,
    /// The label whose values the panel lists, for the series of the selector in `promql`.
    pub label_values: Option<String>,
    /// The greatest median time of the panel in milliseconds, however long VictoriaMetrics takes.
    pub most_ms: Option<f64>,
}

fn a_minute() -> i64 {
    60
}

fn an_hour() -> i64 {
    60
}

/// The time range and the variables of a dashboard.
#[derive(Debug, Clone)]
pub struct Dashboard {
    /// The last millisecond of the time range, since 1970: the one before a whole minute.
    pub to: i64,
    /// The value of `$instance`.
    pub instance: String,
    /// The values of `$instances`.
    pub instances: Vec<String>,
}

/// The language in which pg_lanes is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// SQL, over a connection with PostgreSQL.
    Sql,
    /// PromQL, over the gateway's HTTP API.
    Promql,
}

impl Language {
    /// The name of a row of the report in this language.
    pub fn row(self, name: &str) -> String {
        match self {
            Language::Sql => name.to_owned(),
            Language::Promql => format!("PromQL: {name}"),
        }
    }
}

/// VictoriaMetrics's name of the increase without extrapolation, which SQL returns. Prometheus's
/// language does not have it.
const INCREASE: &str = "increase_prometheus";

/// A GET request to a server of Prometheus's HTTP API.
#[derive(Debug, Clone, PartialEq)]
pub struct PrometheusRequest {
    /// The request's path.
    pub path: String,
    /// Names and values of the query parameters, not yet URL-encoded.
    pub parameters: Vec<(&'static str, String)>,
}

impl Panel {
    fn from(&self, dashboard: &Dashboard) -> i64 {
        dashboard.to + 1 - self.minutes * 60_000
    }

    /// Returns the statement that Grafana's PostgreSQL data source sends.
    ///
    /// # Errors
    /// A macro is unknown.
    pub fn expanded_sql(&self, dashboard: &Dashboard) -> Result<String> {
        let (from, to) = (utc(self.from(dashboard)), utc(dashboard.to));
        let quoted: Vec<String> = dashboard
            .instances
            .iter()
            .map(|name| format!("'{name}'"))
            .collect();
        let mut text = self
            .sql
            .replace("$instances", &quoted.join(","))
            .replace("$instance", &dashboard.instance);
        while let Some(start) = text.find("$__") {
            let unknown = || Error::Other(format!("{}: unknown macro: {text}", self.name));
            let open = start + text[start..].find('(').ok_or_else(unknown)?;
            let close = open + text[open..].find(')').ok_or_else(unknown)?;
            let arguments: Vec<&str> = text[open + 1..close].split(',').map(str::trim).collect();
            let expanded = match (&text[start..open], &arguments[..]) {
                ("$__timeFilter", [column]) => format!("{column} BETWEEN '{from}' AND '{to}'"),
                ("$__timeGroup", [column, "'1m'"]) => group(column),
                ("$__timeGroupAlias", [column, "'1m'"]) => format!("{} AS \"time\"", group(column)),
                _ => return Err(unknown()),
            };
            text.replace_range(start..=close, &expanded);
        }
        Ok(text.trim().to_owned())
    }

    /// How far apart the values of the two systems may be, as a share of the greater one.
    pub fn tolerance(&self, language: Language) -> f64 {
        match language {
            // Six samples of a minute cover 50 s, so an extrapolated increase is 1.2 times as large.
            Language::Promql if self.promql.contains(INCREASE) => 0.25,
            _ => TOLERANCE,
        }
    }

    /// Returns the request for pg_lanes in PromQL.
    pub fn promql_request(&self, dashboard: &Dashboard) -> PrometheusRequest {
        let panel = Panel {
            promql: self.promql.replace(INCREASE, "increase"),
            ..self.clone()
        };
        panel.prometheus_request(dashboard)
    }

    /// Returns the request that Grafana's Prometheus data source sends to VictoriaMetrics, with the
    /// server's cache disabled.
    pub fn prometheus_request(&self, dashboard: &Dashboard) -> PrometheusRequest {
        // Grafana escapes the special characters of patterns.
        let escaped: Vec<String> = dashboard
            .instances
            .iter()
            .map(|name| name.replace('.', "\\\\."))
            .collect();
        let promql = self
            .promql
            .replace("$instances", &format!("({})", escaped.join("|")))
            .replace("$instance", &dashboard.instance);
        let seconds = |milliseconds: i64| format!("{:.3}", milliseconds as f64 / 1e3);
        let (from, to) = (self.from(dashboard), dashboard.to);
        if let Some(label) = &self.label_values {
            return PrometheusRequest {
                path: format!("/api/v1/label/{label}/values"),
                parameters: vec![
                    ("match[]", promql),
                    ("start", seconds(from)),
                    ("end", seconds(to)),
                ],
            };
        }
        let mut parameters = vec![("query", promql), ("nocache", "1".to_owned())];
        if self.is_instant {
            parameters.push(("time", seconds(to)));
            return PrometheusRequest {
                path: "/api/v1/query".to_owned(),
                parameters,
            };
        }
        // The end of each step: SQL groups its window under the start of the step.
        let first = from + self.step_seconds * 1000 - 1;
        parameters.extend([
            ("start", seconds(first)),
            ("end", seconds(to)),
            ("step", format!("{}s", self.step_seconds)),
        ]);
        PrometheusRequest {
            path: "/api/v1/query_range".to_owned(),
            parameters,
        }
    }
}

/// Returns Grafana's expression for the minute of a time.
fn group(column: &str) -> String {
    format!("floor(extract(epoch from {column})/60)*60")
}

/// Formats a time as Grafana does: RFC 3339, UTC.
fn utc(milliseconds: i64) -> String {
    chrono::DateTime::from_timestamp_millis(milliseconds)
        .unwrap_or_default()
        .to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dashboard() -> Dashboard {
        Dashboard {
            // 2023-11-14 23:14:00
            to: 1_700_003_640_000 - 1,
            instance: "a.b:1".to_owned(),
            instances: vec!["a.b:1".to_owned(), "c:2".to_owned()],
        }
    }

    fn panel(text: &str) -> Panel {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn macros_and_variables_are_expanded_as_grafana_does() {
        let panel = panel(
            "name = 'x'
             minutes = 15
             sql = \"SELECT $__timeGroupAlias(t.ts,'1m') WHERE $__timeFilter(ts) AND i = '$instance' OR i IN ($instances)\"
             promql = 'x{i=\"$instance\",j=~\"$instances\"}'",
        );
        assert_eq!(
            panel.expanded_sql(&dashboard()).unwrap(),
            "SELECT floor(extract(epoch from t.ts)/60)*60 AS \"time\" \
             WHERE ts BETWEEN '2023-11-14T22:59:00.000Z' AND '2023-11-14T23:13:59.999Z' \
             AND i = 'a.b:1' OR i IN ('a.b:1','c:2')"
        );
        let request = panel.prometheus_request(&dashboard());
        assert_eq!(request.path, "/api/v1/query_range");
        let expected = [
            ("query", "x{i=\"a.b:1\",j=~\"(a\\\\.b:1|c:2)\"}"),
            ("nocache", "1"),
            ("start", "1700002799.999"),
            ("end", "1700003639.999"),
            ("step", "60s"),
        ];
        let found: Vec<(&str, &str)> = request
            .parameters
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn instant_panels_and_label_values_have_their_own_endpoints() {
        let instant = panel("name = 'x'\nis_instant = true\nsql = ''\npromql = 'x'");
        let request = instant.prometheus_request(&dashboard());
        assert_eq!(request.path, "/api/v1/query");
        assert_eq!(
            request.parameters.last().unwrap(),
            &("time", "1700003639.999".to_owned())
        );
        let list = panel("name = 'x'\nlabel_values = 'job'\nsql = ''\npromql = 'x'");
        let request = list.prometheus_request(&dashboard());
        assert_eq!(request.path, "/api/v1/label/job/values");
        assert_eq!(request.parameters[0], ("match[]", "x".to_owned()));
    }

    #[test]
    fn increases_are_extrapolated_in_promql() {
        let panel = panel("name = 'x'\nsql = ''\npromql = 'sum(increase_prometheus(x[1m]))'");
        let of = |request: PrometheusRequest| request.parameters[0].1.clone();
        let ours = of(panel.promql_request(&dashboard()));
        assert_eq!(ours, "sum(increase(x[1m]))");
        let theirs = of(panel.prometheus_request(&dashboard()));
        assert_eq!(theirs, "sum(increase_prometheus(x[1m]))");
        assert!(panel.tolerance(Language::Promql) > panel.tolerance(Language::Sql));
        assert_eq!(Language::Promql.row("x"), "PromQL: x");
    }

    #[test]
    fn an_unknown_macro_is_refused() {
        let panel = panel("name = 'x'\nsql = 'SELECT $__interval_ms()'\npromql = 'x'");
        let error = panel.expanded_sql(&dashboard()).unwrap_err().to_string();
        assert!(error.contains("x: unknown macro"), "{error}");
    }
}
