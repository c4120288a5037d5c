//! The queries of the dashboard in SQL, with Grafana's macros expanded.

use crate::database::Database;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::place;
use lanes_support::remote_write::{Series, body};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

/// One query of the dashboard.
struct Query {
    panel: String,
    sql: String,
}

/// Returns a dashboard by the name of its file.
pub fn dashboard(name: &str) -> Value {
    let folder = place::workspace().join("docker/grafana/dashboards");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn queries() -> Vec<Query> {
    let mut found = Vec::new();
    for panel in dashboard("pg_lanes.json")["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "lanes", "{panel}");
            found.push(Query {
                panel: panel["title"].as_str().unwrap().to_owned(),
                sql: target["rawSql"].as_str().unwrap().to_owned(),
            });
        }
    }
    found
}

/// Expands the macros as Grafana's PostgreSQL data source does with its TimescaleDB option.
fn expanded(sql: &str) -> String {
    let sql = sql
        .replace(
            "$__timeFilter(ts)",
            "ts BETWEEN '2000-01-01T00:00:00Z' AND '2100-01-01T00:00:00Z'",
        )
        .replace("$__timeGroup(ts, $__interval)", "time_bucket('5.000s',ts)");
    assert!(
        !sql.contains("$__"),
        "a macro that is unknown to this test: {sql}"
    );
    sql
}

/// Returns the metrics that the dashboard shows.
pub fn shown_metrics() -> BTreeSet<String> {
    metrics(&queries())
}

/// Returns the metrics whose views the queries read.
fn metrics(queries: &[Query]) -> BTreeSet<String> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut found = BTreeSet::new();
    for query in queries {
        for rest in query.sql.split("metrics.").skip(1) {
            let rest = rest.trim_start_matches('"');
            let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
            found.insert(rest[..end].to_owned());
        }
    }
    found
}

/// Returns three samples, 5 s apart, of every metric, with every label of the dashboards. `now`, in
/// milliseconds since 1970, is the time of the last one.
fn samples(metrics: &BTreeSet<String>, now: i64) -> Vec<u8> {
    let labels = [
        ("alertstate", "firing"),
        ("instance", "i:1"),
        ("job", "test"),
        ("level", "wal"),
        ("mode", "user"),
        ("route", "/r"),
        ("status", "204"),
    ];
    let series: Vec<Series> = metrics
        .iter()
        .map(|metric| {
            let samples = (0..3).map(|step| (now - 10_000 + step * 5_000, 100.0 + step as f64));
            Series::new(metric, &labels, samples.collect())
        })
        .collect();
    body(&series)
}

/// Starts a gateway without metrics of its own, and stores three samples of each of these metrics.
/// Returns the time of the last ones, in milliseconds since 1970.
pub fn gateway_with_samples(database: &Database, metrics: &BTreeSet<String>) -> (Gateway, i64) {
    let settings = Settings {
        folder: database.folder().join("gateway"),
        port: lanes_support::port::free().unwrap(),
        postgres_port: database.port(),
        password: database.password("gateway", "lanes_gateway"),
        reader_password: database.password("gateway", "lanes_reader"),
        environment: vec![(
            "LANES_GATEWAY_SELF_SCRAPE_INTERVAL".to_owned(),
            "0".to_owned(),
        )],
        through: Vec::new(),
    };
    let gateway = Gateway::start(settings).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_millis()).unwrap();
    let answer = gateway.remote_write(&samples(metrics, now), None).unwrap();
    assert_eq!(answer.status, 204, "{}", answer.body);
    (gateway, now)
}

#[test]
fn every_query_of_the_dashboard_returns_rows() {
    let mut database = Database::start("images_dashboard");
    let queries = queries();
    assert!(queries.len() > 10);
    let (mut gateway, _) = gateway_with_samples(&database, &metrics(&queries));
    let mut reader = database.connect("lanes_reader");
    reader.batch_execute("SET lanes.vectorize = on").unwrap();
    for query in &queries {
        let sql = expanded(&query.sql);
        let rows = reader.query(&sql, &[]);
        let rows = rows.unwrap_or_else(|error| panic!("{}: {error:?}\n{sql}", query.panel));
        assert!(!rows.is_empty(), "{} shows nothing\n{sql}", query.panel);
        // Grafana finds the time and the value of a time series by these names.
        let names: Vec<&str> = rows[0]
            .columns()
            .iter()
            .map(|column| column.name())
            .collect();
        let is_series = sql.contains("time_bucket");
        assert_eq!(is_series, names.first() == Some(&"time"), "{names:?}");
        assert_eq!(is_series, names.last() == Some(&"value"), "{names:?}");
        let place = names.len() - 1;
        if is_series {
            let values = rows
                .iter()
                .filter_map(|row| row.get::<_, Option<f64>>(place));
            assert!(
                values.sum::<f64>() > 0.0,
                "{} shows nothing\n{sql}",
                query.panel
            );
        }
    }
    gateway.stop().unwrap();
    database.stop();
}

#[test]
fn every_gateway_metric_of_the_dashboard_exists() {
    let declarations = [
        "deliver/metrics.rs",
        "http/metrics.rs",
        "metrics/families.rs",
        "objects/model/log_metrics.rs",
        "objects/model/metrics.rs",
        "objects/model/offload_metrics.rs",
        "receive/metrics.rs",
        "series/metrics.rs",
    ];
    let root = place::workspace().join("gateway/src");
    let source = declarations.map(|path| std::fs::read_to_string(root.join(path)).unwrap());
    let source = source.concat();
    for metric in shown_metrics() {
        let Some(name) = metric.strip_prefix("lanes_gateway_") else {
            continue;
        };
        let base = name.trim_end_matches("_sum").trim_end_matches("_count");
        assert!(
            source.contains(&format!("\"{base}\"")),
            "there is no {metric}"
        );
    }
}
