//! Prometheus's HTTP query API of the gateway, with a real PostgreSQL behind it.
//!
//! | module | contents |
//! |---|---|
//! | [`answers`] | the body of every route, to the byte |
//! | [`refusals`] | wrong requests, and the words of Prometheus for them |
//! | [`grafana`] | the requests of Grafana's Prometheus data source, with their parameters |
//! | [`remote_read`] | raw samples, for bytes and for a real Prometheus |
//! | [`admin`] | deletions, and what they do to others |
//! | [`cancellation`] | a query that would run for hours ends when it is told to |
//! | [`limits`] | few sessions, slow queries, clients that go away, roles without privileges, PostgreSQL stopped |

mod admin;
mod answers;
mod cancellation;
mod grafana;
mod limits;
mod refusals;
mod remote_read;

use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Answer, Gateway, Settings, encoded};
use lanes_support::remote_write::{Series, body};
use std::time::{Duration, Instant};

/// A timeout that suffices on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time of the first sample, in seconds since 1970. Samples are 10 s apart.
const START: i64 = 1_700_000_000;

/// A cluster, and a gateway that writes to it and reads from it.
struct Stage {
    gateway: Gateway,
    cluster: Cluster,
}

impl Stage {
    /// Starts a gateway with these variables, and stores the samples.
    fn start(name: &str, environment: &[(&str, &str)]) -> Stage {
        Stage::start_with(name, |settings| {
            let variables = environment.iter();
            variables.fold(settings, |settings, (name, value)| {
                settings.environment(name, value)
            })
        })
    }

    /// Starts a gateway with changed settings, and stores the samples.
    fn start_with(name: &str, change: impl FnOnce(Settings) -> Settings) -> Stage {
        let cluster = Cluster::builder(name).start().unwrap();
        let (settings, _) = Settings::provisioned(&cluster).unwrap();
        let gateway = Gateway::start(change(settings)).unwrap();
        let stored = gateway.remote_write(&samples(), None).unwrap();
        assert_eq!(stored.status, 204, "{}", stored.body);
        Stage { gateway, cluster }
    }

    /// Sends `GET path` with parameters.
    fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Answer {
        let query = encoded(parameters);
        self.gateway.get(&format!("{path}?{query}")).unwrap()
    }

    /// Sends `POST path` with a form.
    fn post(&self, path: &str, parameters: &[(&str, &str)]) -> Answer {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let form = encoded(parameters);
        self.gateway.post(path, &[kind], form.as_bytes()).unwrap()
    }

    /// The body of a successful `GET`.
    fn body(&self, path: &str, parameters: &[(&str, &str)]) -> String {
        let answer = self.get(path, parameters);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        answer.body
    }

    /// Returns the value of one of the gateway's own metrics; 0 if it has no such line.
    fn metric(&self, line: &str) -> f64 {
        let text = self.gateway.get("/metrics").unwrap().body;
        let found = text.lines().find_map(|found| {
            let value = found.strip_prefix("lanes_gateway_")?.strip_prefix(line)?;
            value.strip_prefix(' ')?.parse().ok()
        });
        found.unwrap_or(0.0)
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// `up` of two jobs with constant values, and a counter of two codes, seven samples each.
fn samples() -> Vec<u8> {
    let series = |metric: &str, labels: &[(&str, &str)], value: &dyn Fn(i64) -> f64| {
        let samples = (0..7).map(|step| ((START + 10 * step) * 1000, value(step)));
        Series::new(metric, labels, samples.collect())
    };
    body(&[
        series("requests_total", &[("code", "200"), ("job", "api")], &|n| {
            10.0 * n as f64
        }),
        series("requests_total", &[("code", "500"), ("job", "api")], &|n| {
            n as f64
        }),
        series("up", &[("job", "api")], &|_| 1.0),
        series("up", &[("job", "db"), ("zone", "\"é\"")], &|_| 0.0),
    ])
}
