//! A query of the data file, and the requests that ask it.

use crate::dashboards::panel::PrometheusRequest;
use serde::Deserialize;

/// A query in the data file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// The name of its row in the report.
    pub name: String,
    /// The query, with the variables `$instance` and `$instances`.
    pub promql: String,
    /// The labels that distinguish the lines of the answer.
    #[serde(default)]
    pub by: Vec<String>,
    /// The seconds between two values of a line; 0 for one value at the end.
    #[serde(default = "a_minute")]
    pub step_seconds: i64,
    /// The minutes that the query covers, up to the end of the data; 0 for all data.
    #[serde(default)]
    pub minutes: i64,
    /// How far apart the values of the two systems may be, as a share of the greater one.
    #[serde(default = "rounding")]
    pub tolerance: f64,
}

fn a_minute() -> i64 {
    60
}

/// Sums of doubles depend on the order of addition.
fn rounding() -> f64 {
    1e-9
}

/// The time range and the variables of all queries.
#[derive(Debug, Clone)]
pub struct Times {
    /// The earliest time of a step, in milliseconds since 1970.
    pub from: i64,
    /// The time after the last sample.
    pub to: i64,
    /// The value of `$instance`.
    pub instance: String,
    /// The values of `$instances`.
    pub instances: Vec<String>,
}

impl Query {
    /// Returns the request of the HTTP API. VictoriaMetrics's cache of earlier answers is disabled.
    pub fn request(&self, times: &Times) -> PrometheusRequest {
        let escaped: Vec<String> = times
            .instances
            .iter()
            .map(|name| name.replace('.', "\\\\."))
            .collect();
        let promql = self
            .promql
            .replace("$instances", &escaped.join("|"))
            .replace("$instance", &times.instance);
        let seconds = |milliseconds: i64| format!("{:.3}", milliseconds as f64 / 1e3);
        let mut parameters = vec![("query", promql), ("nocache", "1".to_owned())];
        if self.step_seconds == 0 {
            parameters.push(("time", seconds(times.to)));
            return PrometheusRequest {
                path: "/api/v1/query".to_owned(),
                parameters,
            };
        }
        let from = match self.minutes {
            0 => times.from,
            minutes => times.from.max(times.to - minutes * 60_000),
        };
        // VictoriaMetrics moves the start to a multiple of the step; Prometheus does not.
        let step = self.step_seconds * 1000;
        parameters.extend([
            ("start", seconds((from + step - 1) / step * step)),
            ("end", seconds(times.to)),
            ("step", format!("{}s", self.step_seconds)),
        ]);
        PrometheusRequest {
            path: "/api/v1/query_range".to_owned(),
            parameters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_begin_at_a_multiple_of_the_step() {
        let query: Query = toml::from_str(
            "name = 'x'
             step_seconds = 30
             minutes = 1
             promql = 'm{i=\"$instance\",j=~\"$instances\"}'",
        )
        .unwrap();
        let times = Times {
            from: 0,
            to: 100_000,
            instance: "a.b".to_owned(),
            instances: vec!["a.b".to_owned(), "c".to_owned()],
        };
        let request = query.request(&times);
        let of = |name: &str| {
            let mut pairs = request.parameters.iter();
            pairs.find(|(known, _)| *known == name).unwrap().1.as_str()
        };
        assert_eq!(of("query"), "m{i=\"a.b\",j=~\"a\\\\.b|c\"}");
        assert_eq!(
            (of("start"), of("end"), of("step")),
            ("60.000", "100.000", "30s")
        );
        let now = Query {
            step_seconds: 0,
            ..query
        };
        assert_eq!(now.request(&times).path, "/api/v1/query");
    }
}
