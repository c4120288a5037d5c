//! What clients ask about the server: its version, its settings, its cardinality. A gateway has no
//! rules, alerts or targets, so their lists are empty.

use serde_json::{Value, json};

use super::answer::Answer;
use super::failure::Failure;
use super::form::Form;
use super::routes::Served;
use super::sessions::Statement;
use crate::clock;

/// The version of Prometheus whose API is served. Clients choose by it what they ask for.
const API_VERSION: &str = "3.0.0";

/// The number of items in each list of `status/tsdb`, by default and at most.
const ITEMS: i32 = 10;
const ITEMS_MAX: i32 = 10_000;

/// `cardinality` returns the items with the most series or values. Bytes of label names are unknown.
const CARDINALITY: &str = "SELECT pg_catalog.jsonb_build_object( \
     'headStats', pg_catalog.jsonb_build_object( \
         'numSeries', (SELECT coalesce(pg_catalog.sum(r.last_id::pg_catalog.int8 - r.first_id + 1), 0) FROM lanes.series_runs AS r), \
         'numLabelPairs', (SELECT coalesce(pg_catalog.sum(c.\"values\"), 0) FROM lanes.cardinality('name', 2147483647) AS c), \
         'chunkCount', 0, 'minTime', t.first, 'maxTime', t.last), \
     'seriesCountByMetricName', (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('name', c.item, 'value', c.series)), '[]') \
                                   FROM lanes.cardinality('metric', $1) AS c), \
     'labelValueCountByLabelName', (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('name', c.item, 'value', c.\"values\")), '[]') \
                                      FROM lanes.cardinality('name', $1) AS c), \
     'memoryInBytesByLabelName', '[]'::pg_catalog.jsonb, \
     'seriesCountByLabelValuePair', (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('name', c.item, 'value', c.series)), '[]') \
                                       FROM lanes.cardinality('value', $1) AS c))::pg_catalog.text \
     FROM (SELECT coalesce((extract(epoch FROM pg_catalog.min(s.ts)) * 1000)::pg_catalog.int8, 0) AS first, \
                  coalesce((extract(epoch FROM pg_catalog.max(s.ts)) * 1000)::pg_catalog.int8, 0) AS last FROM lanes.samples AS s) AS t";

/// Answers `status/tsdb`: the metrics, labels and label values that most series have.
///
/// # Errors
/// Returns a failure if the limit is wrong, or the index cannot be read.
pub async fn tsdb(served: &Served<'_>, form: &Form) -> Result<Answer, Failure> {
    let items = match form.get("limit") {
        "" => ITEMS,
        text => match text.parse::<i32>() {
            Ok(items) if items > ITEMS_MAX => {
                let reason = format!("limit must not exceed {ITEMS_MAX}");
                return Err(Failure::bad_data(reason));
            }
            Ok(items) if items > 0 => items,
            _ => return Err(Failure::bad_data("limit must be a positive number")),
        },
    };
    let rows = served.sessions.run(Statement {
        sql: CARDINALITY,
        parameters: vec![Box::new(items)],
        timeout: served.settings.timeout,
    });
    Answer::of_json(rows.await?).await
}

/// Answers `metadata`. Metadata are not stored.
///
/// # Errors
/// Returns a failure if a limit is no number.
pub fn metadata(form: &Form) -> Result<Answer, Failure> {
    for name in ["limit", "limit_per_metric"] {
        let text = form.get(name);
        if !text.is_empty() && text.parse::<i64>().is_err() {
            return Err(Failure::bad_data(format!("{name} must be a number")));
        }
    }
    Ok(Answer::Data(json!({})))
}

/// The answer to `status/buildinfo`.
pub fn build_info() -> Value {
    json!({
        "version": API_VERSION,
        "revision": concat!("lanes-gateway ", env!("CARGO_PKG_VERSION")),
        "branch": "",
        "buildUser": "",
        "buildDate": "",
        "goVersion": "",
    })
}

/// The answer to `status/flags`: what Prometheus sets by flags and the gateway by its settings.
pub fn flags(served: &Served<'_>) -> Value {
    let seconds = |time: std::time::Duration| format!("{}s", time.as_secs_f64());
    json!({
        "query.lookback-delta": seconds(served.settings.lookback_delta),
        "query.max-concurrency": served.settings.sessions.to_string(),
        "query.timeout": seconds(served.settings.timeout),
    })
}

/// The answer to `status/config`. The gateway scrapes nothing, and its own settings may be secrets.
pub fn config() -> Value {
    json!({"yaml": ""})
}

/// The answer to `status/runtimeinfo`. `started` is the gateway's start in milliseconds since 1970.
pub fn runtime_info(started: i64) -> Value {
    json!({
        "startTime": rfc_3339(started),
        "CWD": "",
        "hostname": "",
        "serverTime": rfc_3339(clock::unix_ms()),
        "reloadConfigSuccess": true,
        "lastConfigTime": rfc_3339(started),
        "corruptionCount": 0,
        "goroutineCount": 0,
        "GOMAXPROCS": std::thread::available_parallelism().map_or(1, usize::from),
        "GOMEMLIMIT": 0,
        "GOGC": "",
        "GODEBUG": "",
        "storageRetention": "",
    })
}

fn rfc_3339(unix_ms: i64) -> String {
    let time = chrono::DateTime::from_timestamp_millis(unix_ms).unwrap_or_default();
    time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// The answer to `rules`.
pub fn rules() -> Value {
    json!({"groups": []})
}

/// The answer to `alerts`.
pub fn alerts() -> Value {
    json!({"alerts": []})
}

/// The answer to `targets`.
pub fn targets() -> Value {
    json!({"activeTargets": [], "droppedTargets": [], "droppedTargetCounts": {}})
}

/// The answer to `alertmanagers`.
pub fn alertmanagers() -> Value {
    json!({"activeAlertmanagers": [], "droppedAlertmanagers": []})
}

/// The answer to `targets/metadata`.
pub fn target_metadata() -> Value {
    json!([])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_limits_are_numbers() {
        let metadata = |pairs: &str| metadata(&Form::parse(b"", pairs)).map(|_| ());
        assert_eq!(metadata("limit=10&limit_per_metric=-1"), Ok(()));
        assert_eq!(
            metadata("limit=x"),
            Err(Failure::bad_data("limit must be a number"))
        );
    }

    #[test]
    fn times_are_rfc_3339() {
        assert_eq!(rfc_3339(1_433_337_718_555), "2015-06-03T13:21:58.555Z");
    }
}
