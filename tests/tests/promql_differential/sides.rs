//! The sides, which answer the same queries: Prometheus, the gateway, and PromQL in SQL.

use crate::query::{Query, Times};
use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Answer, Gateway, encoded};
use lanes_support::prometheus_receiver::Receiver;
use lanes_support::provision::DATABASE;
use postgres::error::SqlState;
use serde_json::Value;

/// What a side says to a query.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The body of the HTTP API.
    Body(Value),
    /// The query has no answer.
    Refused {
        /// Why, roughly.
        class: Class,
        /// Why, in the side's words.
        text: String,
    },
}

/// Why a query has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The text is no query.
    BadData,
    /// The query cannot be evaluated.
    Execution,
    /// Anything else, which is a fault of the side.
    Fault,
}

/// What a server says to a query over HTTP.
pub struct HttpReply {
    /// The status code.
    pub status: u16,
    /// What the body says.
    pub reply: Reply,
}

/// A Prometheus that answers queries over HTTP.
pub struct PrometheusSide(pub Receiver);

impl PrometheusSide {
    /// Asks a query.
    pub fn ask(&self, query: &Query) -> HttpReply {
        let (path, parameters) = request(query);
        self.get(path, &parameters)
    }

    /// Sends any request.
    pub fn get(&self, path: &str, parameters: &[(&'static str, String)]) -> HttpReply {
        reply_of(&self.0.get(path, parameters).unwrap())
    }
}

/// The gateway, which answers as Prometheus does.
pub struct GatewaySide(pub Gateway);

impl GatewaySide {
    /// Asks a query.
    pub fn ask(&self, query: &Query) -> HttpReply {
        let (path, parameters) = request(query);
        self.get(path, &parameters)
    }

    /// Sends any request.
    pub fn get(&self, path: &str, parameters: &[(&'static str, String)]) -> HttpReply {
        let parameters: Vec<(&str, &str)> = parameters
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let parameters = encoded(&parameters);
        reply_of(&self.0.get(&format!("{path}?{parameters}")).unwrap())
    }
}

/// The path and the parameters of a query.
fn request(query: &Query) -> (&'static str, Vec<(&'static str, String)>) {
    let seconds = |time: i64| format!("{}.{:03}", time / 1000, time % 1000);
    let mut parameters = vec![("query", query.text.clone())];
    let path = match query.times {
        Times::At(at) => {
            parameters.push(("time", seconds(at)));
            "/api/v1/query"
        }
        Times::Steps { start, end, step } => {
            parameters.push(("start", seconds(start)));
            parameters.push(("end", seconds(end)));
            parameters.push(("step", seconds(step)));
            "/api/v1/query_range"
        }
    };
    if let Some(lookback) = query.lookback {
        parameters.push(("lookback_delta", seconds(lookback)));
    }
    (path, parameters)
}

fn reply_of(answer: &Answer) -> HttpReply {
    HttpReply {
        status: answer.status,
        reply: reply_of_api(&answer.body),
    }
}

/// Reads a response of Prometheus's HTTP API.
fn reply_of_api(text: &str) -> Reply {
    let body: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    if body["status"] == "success" {
        return Reply::Body(body);
    }
    let class = match body["errorType"].as_str() {
        Some("bad_data") => Class::BadData,
        Some("execution") => Class::Execution,
        _ => Class::Fault,
    };
    let text = body["error"].as_str().unwrap_or_default();
    let text = text
        .strip_prefix("invalid parameter \"query\": ")
        .unwrap_or(text);
    Reply::Refused {
        class,
        text: text.to_owned(),
    }
}

/// A database whose function answers with bodies of the HTTP API.
pub struct LanesSide(postgres::Client);

/// Asks as the gateway does.
const ASK: &str = "SELECT * FROM lanes.promql_api($1, \
    to_timestamp($2::float8 / 1000), to_timestamp($3::float8 / 1000), $4::text::interval, \
    $5::text::interval, 0, false)";

impl LanesSide {
    /// Connects to a cluster.
    pub fn connect(cluster: &Cluster) -> LanesSide {
        LanesSide(cluster.connect(DATABASE).unwrap())
    }

    /// Asks a query.
    pub fn ask(&mut self, query: &Query) -> Reply {
        let (start, stop, step) = match query.times {
            Times::At(at) => (at, None, None),
            Times::Steps { start, end, step } => (start, Some(end as f64), Some(millis(step))),
        };
        let lookback = query.lookback.map(millis);
        let pieces = self.0.query(
            ASK,
            &[&query.text, &(start as f64), &stop, &step, &lookback],
        );
        match pieces {
            Ok(pieces) => {
                let body: String = pieces
                    .iter()
                    .map(|piece| piece.get::<_, String>(0))
                    .collect();
                let body = serde_json::from_str(&body);
                Reply::Body(body.unwrap_or_else(|error| panic!("{error}: {query}")))
            }
            Err(error) => {
                let refusal = error.as_db_error();
                let refusal = refusal.unwrap_or_else(|| panic!("{error}: {query}"));
                let code = refusal.code();
                let class = match () {
                    () if *code == SqlState::SYNTAX_ERROR => Class::BadData,
                    () if *code == SqlState::INVALID_PARAMETER_VALUE => Class::Execution,
                    () => Class::Fault,
                };
                Reply::Refused {
                    class,
                    text: refusal.message().to_owned(),
                }
            }
        }
    }
}

fn millis(length: i64) -> String {
    format!("{length} milliseconds")
}
