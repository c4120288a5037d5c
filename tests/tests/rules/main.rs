//! Recording and alerting rules, evaluated by a real vmalert that reads from the gateway and writes
//! to it.
//!
//! | module | contents |
//! |---|---|
//! | [`vmalert`] | vmalert with the flags and the rules of `docker/` |

mod vmalert;

use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::provision::{DATABASE, OWNER};
use lanes_support::remote_write::{Series, body};
use postgres::Client;
use serde_json::Value;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use vmalert::Vmalert;

/// A timeout that suffices on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn now() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since_1970.as_secs().cast_signed()
}

fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A machine of two CPUs that are busy for three quarters of the time, and a target that does not
/// answer. The samples go on after the end of the test, so that it may take its time.
fn samples() -> Vec<u8> {
    let start = now() - 300;
    let series = |metric: &str, labels: &[(&str, &str)], value: &dyn Fn(i64) -> f64| {
        let times = (0..120).map(|step| 15 * step);
        let samples = times.map(|seconds| ((start + seconds) * 1000, value(seconds)));
        Series::new(metric, labels, samples.collect())
    };
    let cpu = |cpu| {
        let labels = [("cpu", cpu), ("instance", "a:1"), ("mode", "idle")];
        series("node_cpu_seconds_total", &labels, &|seconds| {
            seconds as f64 / 4.0
        })
    };
    let up =
        |instance, value: f64| series("up", &[("instance", instance), ("job", "node")], &|_| value);
    body(&[cpu("0"), cpu("1"), up("a:1", 1.0), up("b:1", 0.0)])
}

/// Returns the labels and the value of the latest sample of a metric.
fn latest(client: &mut Client, metric: &str) -> Option<(Value, f64)> {
    let query = "SELECT r.labels::text, s.value FROM lanes.samples s JOIN lanes.series r ON r.id = s.series \
                 WHERE r.metric = $1 ORDER BY s.ts DESC LIMIT 1";
    let rows = client.query(query, &[&metric]).unwrap();
    let row = rows.first()?;
    Some((serde_json::from_str(row.get(0)).unwrap(), row.get(1)))
}

/// When an alert became active, in seconds since 1970.
fn active_at(client: &mut Client, alert: &Value) -> i64 {
    let text = alert["activeAt"].as_str().unwrap();
    let query = "SELECT extract(epoch FROM $1::text::timestamptz)::int8";
    client.query_one(query, &[&text]).unwrap().get(0)
}

#[test]
fn results_of_rules_are_series_and_alerts_survive_a_restart_of_vmalert() {
    let cluster = Cluster::builder("rules").start().unwrap();
    let (settings, passwords) = Settings::provisioned(&cluster).unwrap();
    let gateway = Gateway::start(settings).unwrap();
    let stored = gateway.remote_write(&samples(), None).unwrap();
    assert_eq!(stored.status, 204, "{}", stored.body);
    let mut client = cluster
        .connect_as(OWNER, &passwords.owner, DATABASE)
        .unwrap();
    let folder = cluster.folder().join("vmalert");
    let mut vmalert = Vmalert::start(&folder, &gateway.url("")).unwrap();

    let (labels, busy) = until("the recording rule has a result", || {
        latest(&mut client, "instance:node_cpu_busy:ratio")
    });
    assert_eq!(labels["instance"], "a:1", "{labels}");
    assert!((busy - 0.75).abs() < 1e-9, "{busy}");
    let (labels, value) = until("the alert is a series", || latest(&mut client, "ALERTS"));
    let of_alert = |label: &str, expected: &str| assert_eq!(labels[label], expected, "{labels}");
    of_alert("alertname", "TargetDown");
    of_alert("instance", "b:1");
    of_alert("severity", "page");
    assert_eq!(value, 1.0);
    let (_, since) = until("the alert's time is a series", || {
        latest(&mut client, "ALERTS_FOR_STATE")
    });
    let alerts = vmalert.alerts().unwrap();
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert_eq!(active_at(&mut client, &alerts[0]), since as i64);

    vmalert.stop().unwrap();
    // An alert that is not restored becomes active at the time of the first evaluation.
    until("that time is another one", || {
        (now() > since as i64 + 10).then_some(())
    });
    let mut vmalert = Vmalert::start(&folder, &gateway.url("")).unwrap();
    let alert = until("the alert is restored", || {
        let alerts = vmalert.alerts().unwrap();
        let mut alerts = alerts.into_iter();
        alerts.find(|alert| alert["restored"] == true)
    });
    assert_eq!(active_at(&mut client, &alert), since as i64, "{alert}");
    vmalert.stop().unwrap();
}
