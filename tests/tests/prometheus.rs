//! The whole path: node_exporter → Prometheus → remote write → gateway → PostgreSQL. For a window
//! of time, SQL and Prometheus return the same series, samples and bits.

use lanes_support::budget::Budget;
use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::prometheus::{self, Prometheus};
use lanes_support::provision::{DATABASE, OWNER};
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time of scraping before the first comparison, and again before the second one, after the
/// gateway's restart.
const SCRAPING_SECONDS: Budget = Budget {
    short: 20,
    long: 40,
};
/// The duration of the gateway's absence.
const AWAY: Duration = Duration::from_secs(4);
/// The time after which Prometheus sends no more of its samples.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// Samples by series: the labels as sorted JSON, then times in milliseconds and the values' bits.
type Samples = BTreeMap<String, Vec<(i64, u64)>>;

fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis() as i64
}

/// Returns Prometheus's samples between two times, the first excluded.
fn from_prometheus(prometheus: &Prometheus, from_ms: i64, to_ms: i64) -> Samples {
    let window = format!("{{__name__=~\".+\"}}[{}ms]", to_ms - from_ms);
    let answer = prometheus
        .query(&window, Some(to_ms as f64 / 1000.0))
        .unwrap();
    let mut samples = Samples::new();
    for series in answer.as_array().unwrap() {
        let labels: BTreeMap<String, String> =
            serde_json::from_value(series["metric"].clone()).unwrap();
        let values = series["values"].as_array().unwrap();
        let values = values
            .iter()
            .map(|pair| {
                let time = (pair[0].as_f64().unwrap() * 1000.0).round() as i64;
                let value: f64 = match pair[1].as_str().unwrap() {
                    "+Inf" => f64::INFINITY,
                    "-Inf" => f64::NEG_INFINITY,
                    text => text.parse().unwrap(),
                };
                (time, canonical(value))
            })
            .filter(|(time, _)| *time > from_ms && *time <= to_ms)
            .collect::<Vec<_>>();
        if !values.is_empty() {
            samples.insert(serde_json::to_string(&labels).unwrap(), values);
        }
    }
    samples
}

/// Returns SQL's samples between two times, the first excluded.
fn from_sql(client: &mut postgres::Client, from_ms: i64, to_ms: i64) -> Samples {
    let rows = client
        .query(
            "SELECT (r.labels || jsonb_build_object('__name__', r.metric))::text, \
                    (extract(epoch FROM s.ts) * 1000)::int8, s.value \
             FROM lanes.samples s JOIN lanes.series r ON r.id = s.series \
             WHERE s.ts > to_timestamp($1::float8 / 1000) AND s.ts <= to_timestamp($2::float8 / 1000) \
               AND NOT lanes.is_stale_marker(s.value) \
             ORDER BY s.ts",
            &[&(from_ms as f64), &(to_ms as f64)],
        )
        .unwrap();
    let mut samples = Samples::new();
    for row in rows {
        let labels: BTreeMap<String, String> = serde_json::from_str(row.get(0)).unwrap();
        let labels = serde_json::to_string(&labels).unwrap();
        samples
            .entry(labels)
            .or_default()
            .push((row.get(1), canonical(row.get(2))));
    }
    samples
}

/// Returns the bits of a value. Text does not distinguish NaNs, so neither does this test.
fn canonical(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else {
        value.to_bits()
    }
}

fn count(samples: &Samples) -> usize {
    samples.values().map(Vec::len).sum()
}

/// Fails with the first difference, after Prometheus has had time to send everything.
fn assert_same(
    prometheus: &Prometheus,
    client: &mut postgres::Client,
    from_ms: i64,
    to_ms: i64,
) -> usize {
    let start = Instant::now();
    loop {
        let (expected, found) = (
            from_prometheus(prometheus, from_ms, to_ms),
            from_sql(client, from_ms, to_ms),
        );
        if expected == found {
            assert!(
                expected.len() > 200,
                "node_exporter and Prometheus have hundreds of series"
            );
            return count(&expected);
        }
        if start.elapsed() > DELIVERY_TIMEOUT {
            let series = expected
                .keys()
                .chain(found.keys())
                .find(|series| expected.get(*series) != found.get(*series));
            let series = series.unwrap();
            panic!(
                "{} samples in Prometheus, {} in SQL; first difference: {series}\nPrometheus: {:?}\nSQL: {:?}",
                count(&expected),
                count(&found),
                expected.get(series),
                found.get(series)
            );
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn sql_agrees_with_prometheus() {
    prometheus::require_programs().unwrap();
    let cluster = Cluster::builder("prometheus").start().unwrap();
    let (settings, passwords) = Settings::provisioned(&cluster).unwrap();
    let mut gateway = Gateway::start(settings).unwrap();
    let start_ms = now_ms();
    let settings = prometheus::Settings::for_test(
        &cluster.folder().join("prometheus"),
        &gateway.url("/api/v1/write"),
    )
    .unwrap();
    let mut prometheus = Prometheus::start(settings).unwrap();
    // The user's role reads the samples with its own privileges.
    let mut client = cluster
        .connect_as(OWNER, &passwords.owner, DATABASE)
        .unwrap();

    let scraping = Duration::from_secs(SCRAPING_SECONDS.rounds().into());
    std::thread::sleep(scraping);
    let middle_ms = now_ms() - 1000;
    let samples = assert_same(&prometheus, &mut client, start_ms, middle_ms);
    println!("{samples} samples are the same");

    // The generated views have the same content as the tables under them.
    let from_view: i64 = client
        .query_one(
            "SELECT count(*) FROM metrics.node_cpu_seconds_total WHERE labels ->> 'mode' = 'idle'",
            &[],
        )
        .unwrap()
        .get(0);
    assert!(from_view > 0);
    let up: i64 = client
        .query_one(
            "SELECT count(DISTINCT labels ->> 'job') FROM metrics.up WHERE value = 1",
            &[],
        )
        .unwrap()
        .get(0);
    assert_eq!(up, 2);

    // The gateway is killed with requests in flight. Prometheus repeats them, and nothing is
    // missing or duplicated.
    gateway.kill9().unwrap();
    std::thread::sleep(AWAY);
    gateway.start_again().unwrap();
    gateway.wait_ready().unwrap();
    std::thread::sleep(scraping / 2);
    let end_ms = now_ms() - 1000;
    let samples = assert_same(&prometheus, &mut client, start_ms, end_ms);
    println!("{samples} samples are the same after a kill of the gateway");
    let double: i64 = client
        .query_one("SELECT count(*) FROM (SELECT FROM lanes.samples GROUP BY series, ts HAVING count(*) > 1) d", &[])
        .unwrap()
        .get(0);
    assert_eq!(double, 0);
    prometheus.check().unwrap();
    prometheus.stop().unwrap();
    assert!(
        gateway
            .stop()
            .unwrap()
            .is_some_and(|status| status.success())
    );
}
