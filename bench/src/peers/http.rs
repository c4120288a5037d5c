//! Questions over HTTP to a process of ours.

use crate::fleet::bodies::Held;
use lanes_support::error::{Error, Result};
use serde_json::Value;
use std::time::Duration;

/// A question about everything that is stored may take a while.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The text that `GET url` gives; another status than success is an error.
pub fn text(url: &str, query: &[(&str, &str)]) -> Result<String> {
    text_by(&agent(), url, query)
}

/// A client whose connections stay open between questions.
pub fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(TIMEOUT))
        .build()
        .new_agent()
}

/// The text that `GET url` gives this client; another status than success is an error.
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

/// The JSON that `GET url` gives.
pub fn json(url: &str, query: &[(&str, &str)]) -> Result<Value> {
    serde_json::from_str(&text(url, query)?).map_err(|error| Error::Http {
        url: url.to_owned(),
        reason: error.to_string(),
    })
}

/// The one number that an instant query in PromQL gives at a time (seconds since 1970); nothing found is 0.
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

/// The samples of a selector from a time on (milliseconds since 1970), asked in PromQL.
pub fn prometheus_held(
    base: &str,
    selector: &str,
    since: i64,
    extra: &[(&str, &str)],
) -> Result<Held> {
    // A while after now, since senders' clocks may be ahead of their sending; a window is without its left end, or with it: no sample is
    // a millisecond before `since`.
    const AHEAD_SECONDS: i64 = 60;
    let time = now_milliseconds() / 1000 + AHEAD_SECONDS;
    let window = (time * 1000 - since + 1).max(1);
    let ask = |function: &str| {
        let promql = format!("sum({function}_over_time({selector}[{window}ms]))");
        prometheus_number(base, &promql, time, extra)
    };
    Ok(Held {
        samples: ask("count")? as u64,
        sum: ask("sum")?,
    })
}

/// Milliseconds since 1970, now.
pub fn now_milliseconds() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}

/// Bytes of all files of a folder and its subfolders, as they are long.
pub fn folder_bytes(folder: &std::path::Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
            Ok(metadata) => metadata.len(),
            // Removed since it was listed: a part that was merged.
            Err(_) => 0,
        })
        .sum()
}
