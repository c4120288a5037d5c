//! A query of the data file, and the requests that ask it.

use crate::dashboards::panel::PrometheusRequest;
use lanes_support::error::{Error, Result};
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

/// A query as PostgreSQL is asked for the body of its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The query.
    pub promql: String,
    /// The first time, in seconds since 1970.
    pub start: f64,
    /// The last time.
    pub end: f64,
    /// The seconds of a step; `None` for one value at the end.
    pub step: Option<f64>,
}

impl Call {
    /// The statement that the gateway sends for a request.
    pub const SQL: &'static str = "SELECT lanes.promql_api($1, to_timestamp($2), to_timestamp($3), \
         make_interval(secs => $4), '5 minutes', 0, false)";

    /// The call that answers a request.
    ///
    /// # Errors
    /// The request has no query or a time that is no number.
    pub fn of(request: &PrometheusRequest) -> Result<Call> {
        let of = |name: &str| {
            let mut pairs = request.parameters.iter();
            pairs
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.as_str())
        };
        let number = |text: &str| {
            text.parse::<f64>()
                .map_err(|error| Error::Other(format!("{text}: {error}")))
        };
        let missing = |name: &str| Error::Other(format!("a request has no {name}"));
        let start = of("time").or(of("start")).ok_or_else(|| missing("time"))?;
        let end = of("time").or(of("end")).ok_or_else(|| missing("end"))?;
        let step = of("step").map(|step| number(step.trim_end_matches('s')));
        Ok(Call {
            promql: of("query").ok_or_else(|| missing("query"))?.to_owned(),
            start: number(start)?,
            end: number(end)?,
            step: step.transpose()?,
        })
    }
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
        let call = Call::of(&request).unwrap();
        assert_eq!((call.start, call.end, call.step), (60.0, 100.0, Some(30.0)));
        assert_eq!(call.promql, "m{i=\"a.b\",j=~\"a\\\\.b|c\"}");
        let now = Query {
            step_seconds: 0,
            ..query
        };
        let request = now.request(&times);
        assert_eq!(request.path, "/api/v1/query");
        let call = Call::of(&request).unwrap();
        assert_eq!((call.start, call.end, call.step), (100.0, 100.0, None));
    }
}
