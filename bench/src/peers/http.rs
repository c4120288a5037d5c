//! HTTP requests to child processes.

use crate::fleet::bodies::SampleTotals;
use lanes_support::error::{Error, Result};
use serde_json::Value;
use std::time::Duration;

/// The timeout of a request, which may read everything that is stored.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Returns the text of `GET url`. A status that is no success is an error.
pub fn text(url: &str, query: &[(&str, &str)]) -> Result<String> {
    text_by(&agent(), url, query)
}

/// Creates a client that keeps its connections open between requests.
pub fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(TIMEOUT))
        .build()
        .new_agent()
}

/// Returns the text of `GET url`, requested by this client. A status that is no success is an
/// error.
pub fn text_by(agent: &ureq::Agent, url: &str, query: &[(&str, &str)]) -> Result<String> {
    let bad = |reason: String| Error::Http {
        url: url.to_owned(),
        reason,
    };
    let request = query.iter().fold(agent.get(url), |request, (name, value)| {
        request.query(*name, *value)
    });
    let mut answer = request.call().map_err(|error| bad(error.to_string()))?;
    let status = answer.status();
    let text = answer
        .body_mut()
        .with_config()
        .limit(256 << 20)
        .read_to_string()
        .map_err(|error| bad(error.to_string()))?;
    match status.is_success() {
        true => Ok(text),
        false => Err(bad(format!("status {status}: {text}"))),
    }
}

/// Whether `GET url` succeeds.
pub fn answers(url: &str) -> bool {
    text(url, &[]).is_ok()
}

/// Returns the JSON of `GET url`.
pub fn json(url: &str, query: &[(&str, &str)]) -> Result<Value> {
    serde_json::from_str(&text(url, query)?).map_err(|error| Error::Http {
        url: url.to_owned(),
        reason: error.to_string(),
    })
}

/// Returns the number that an instant query in PromQL produces at a time (seconds since 1970), or 0
/// for an empty result.
pub fn prometheus_number(
    base: &str,
    promql: &str,
    time: i64,
    extra: &[(&str, &str)],
) -> Result<f64> {
    let url = format!("{base}/api/v1/query");
    let time = time.to_string();
    let mut query = vec![("query", promql), ("time", time.as_str())];
    query.extend(extra);
    let answer = json(&url, &query)?;
    let bad = || Error::Http {
        url: url.clone(),
        reason: format!("{promql}: {answer}"),
    };
    let found = answer["data"]["result"].as_array().ok_or_else(bad)?;
    match found.first() {
        None => Ok(0.0),
        Some(one) => {
            let number = one["value"][1].as_str().and_then(|text| text.parse().ok());
            number.ok_or_else(bad)
        }
    }
}

/// Returns the samples of a selector from a time on (milliseconds since 1970), queried in PromQL.
pub fn prometheus_totals(
    base: &str,
    selector: &str,
    since: i64,
    extra: &[(&str, &str)],
) -> Result<SampleTotals> {
    // The query's time is in the future, because senders' clocks may be ahead. A window may or may
    // not include its left end, but no sample is one millisecond before `since`.
    const AHEAD_SECONDS: i64 = 60;
    let time = now_milliseconds() / 1000 + AHEAD_SECONDS;
    let window = (time * 1000 - since + 1).max(1);
    let ask = |function: &str| {
        let promql = format!("sum({function}_over_time({selector}[{window}ms]))");
        prometheus_number(base, &promql, time, extra)
    };
    Ok(SampleTotals {
        samples: ask("count")? as u64,
        sum: ask("sum")?,
    })
}

/// Returns the current time in milliseconds since 1970.
pub fn now_milliseconds() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}

/// Returns the sum of the lengths of all files in a folder and its subfolders.
pub fn folder_bytes(folder: &std::path::Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
            Ok(metadata) => metadata.len(),
            // The file has been removed since it was listed, for example by a merge.
            Err(_) => 0,
        })
        .sum()
}
