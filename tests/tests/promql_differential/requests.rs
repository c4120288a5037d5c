//! Wrong requests, which both servers refuse with the same status and the same kind of error; the
//! newest Prometheus also in the same words.

use crate::sides::{HttpReply, Reply};
use crate::stores::Stores;

/// A path below `/api/v1/`, and its parameters.
type Request = (&'static str, &'static [(&'static str, &'static str)]);

const REQUESTS: [Request; 24] = [
    ("query", &[]),
    ("query", &[("query", "")]),
    ("query", &[("query", "up"), ("time", "yesterday")]),
    ("query", &[("query", "up"), ("timeout", "soon")]),
    ("query", &[("query", "sum(")]),
    ("query", &[("query", "{}")]),
    ("query_range", &[("query", "up")]),
    (
        "query_range",
        &[("query", "up"), ("start", "1"), ("step", "1")],
    ),
    (
        "query_range",
        &[("query", "up"), ("start", "1"), ("end", "x"), ("step", "1")],
    ),
    (
        "query_range",
        &[("query", "up"), ("start", "2"), ("end", "1"), ("step", "1")],
    ),
    (
        "query_range",
        &[("query", "up"), ("start", "1"), ("end", "2"), ("step", "0")],
    ),
    (
        "query_range",
        &[
            ("query", "up"),
            ("start", "1"),
            ("end", "2"),
            ("step", "-1s"),
        ],
    ),
    (
        "query_range",
        &[("query", "up"), ("start", "1"), ("end", "2"), ("step", "")],
    ),
    (
        "query_range",
        &[
            ("query", "up"),
            ("start", "0"),
            ("end", "1e9"),
            ("step", "1"),
        ],
    ),
    (
        "query_range",
        &[
            ("query", "up[5m]"),
            ("start", "1"),
            ("end", "2"),
            ("step", "1"),
        ],
    ),
    (
        "query_range",
        &[
            ("query", "\"a\""),
            ("start", "1"),
            ("end", "2"),
            ("step", "1"),
        ],
    ),
    ("series", &[]),
    ("series", &[("match[]", "up{")]),
    ("series", &[("match[]", "{job=~\".*\"}")]),
    ("series", &[("match[]", "up"), ("start", "x")]),
    ("labels", &[("match[]", "sum(up)")]),
    ("labels", &[("end", "x")]),
    ("label/job/values", &[("match[]", "{}")]),
    ("label/job/values", &[("start", "x")]),
];

/// The requests that are refused differently.
pub fn differences(stores: &Stores, is_newest: bool) -> Vec<String> {
    let mut differences = Vec::new();
    for (path, parameters) in REQUESTS {
        let sent: Vec<(&str, String)> = parameters
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        let path = format!("/api/v1/{path}");
        let expected = refusal(&stores.prometheus.get(&path, &sent), is_newest);
        let found = refusal(&stores.gateway.get(&path, &sent), is_newest);
        if expected != found || !expected.starts_with("4") {
            differences.push(format!(
                "{path} {parameters:?}\n  found {found}\n  expected {expected}"
            ));
        }
    }
    differences
}

/// The status and the kind of an error, and its words if they count.
fn refusal(answer: &HttpReply, has_words: bool) -> String {
    let status = answer.status;
    match &answer.reply {
        Reply::Refused { class, text } if has_words => format!("{status} {class:?}: {text}"),
        Reply::Refused { class, .. } => format!("{status} {class:?}"),
        Reply::Body(body) => format!("{status} {body}"),
    }
}
