//! The web page of the gateway, with a real PostgreSQL behind it.
//!
//! | module | contents |
//! |---|---|
//! | [`queries`] | queries: their graph, their table, their errors, completion, the state in the address |
//! | [`access`] | the page of a gateway with users: passwords and tokens |
//! | [`views`] | the explorer, the status, light and dark |
//! | [`routes`] | what the page is served by, without a browser |
//!
//! Tests whose name ends in `_in_chromium` run in `make test-long`, which installs Chromium.

mod access;
mod queries;
mod routes;
mod views;

use lanes_support::browser::Browser;
use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::provision::{Passwords, provision};
use lanes_support::remote_write::{Series, body};
use serde_json::Value;
use std::time::Duration;

/// A timeout that suffices on any machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time of the first sample, in seconds since 1970. Samples are 10 s apart.
const START: i64 = 1_700_000_000;
/// The time of the last sample, as the address has it.
const END: &str = "2023-11-14T22:14:20Z";
/// A value of a label that would be run if it became markup.
const HOSTILE: &str = "<img src=x onerror=document.title='run'>";

/// A cluster, and a gateway that stores its own metrics every second.
struct Stage {
    gateway: Gateway,
    cluster: Cluster,
}

impl Stage {
    fn start(name: &str) -> Stage {
        Stage::start_with(name, |settings| settings)
    }

    /// Starts a gateway with changed settings, and stores the samples.
    fn start_with(name: &str, change: impl FnOnce(Settings) -> Settings) -> Stage {
        let cluster = Cluster::builder(name).start().unwrap();
        let passwords = Passwords::generate();
        provision(&cluster, &passwords).unwrap();
        let settings = Settings::for_test("gateway", &cluster, &passwords)
            .unwrap()
            .environment("LANES_GATEWAY_SELF_SCRAPE_INTERVAL", "1s");
        let gateway = Gateway::start(change(settings)).unwrap();
        let stored = gateway.remote_write(&samples(), None).unwrap();
        assert_eq!(stored.status, 204, "{}", stored.body);
        Stage { gateway, cluster }
    }

    fn browser(&self) -> Browser {
        Browser::start(&self.cluster.folder().join("browser")).unwrap()
    }

    /// The address of a state of the page.
    fn address(&self, state: &str) -> String {
        self.gateway.url(&format!("/#{state}"))
    }
}

/// The state of a query over the minute of the samples.
fn asked(query: &str) -> String {
    let bytes = query.bytes().map(|byte| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    let query: String = bytes.collect();
    format!("q={query}&range=1m&step=10s&end={END}")
}

/// A counter of two codes, `up` of two jobs, and twelve series of one metric.
fn samples() -> Vec<u8> {
    let series = |metric: &str, labels: &[(&str, &str)], value: &dyn Fn(i64) -> f64| {
        let samples = (0..7).map(|step| ((START + 10 * step) * 1000, value(step)));
        Series::new(metric, labels, samples.collect())
    };
    let mut all = vec![
        series("requests_total", &[("code", "200"), ("job", "api")], &|n| {
            10.0 * n as f64
        }),
        series("requests_total", &[("code", "500"), ("job", "api")], &|n| {
            n as f64
        }),
        series("up", &[("job", "api")], &|_| 1.0),
        series("up", &[("job", HOSTILE)], &|_| 0.0),
    ];
    for number in 0..12 {
        let number = number.to_string();
        all.push(series("wide", &[("number", &number)], &|n| n as f64));
    }
    body(&all)
}

/// The texts of all elements that a selector matches.
fn texts(browser: &mut Browser, selector: &str) -> Vec<String> {
    let expression = format!(
        "[...document.querySelectorAll({})].map((found) => found.textContent)",
        Value::from(selector)
    );
    let found = browser.evaluate(&expression).unwrap();
    serde_json::from_value(found).unwrap()
}

/// Waits until an element that a selector matches has a text in it.
fn wait_for_text(browser: &mut Browser, selector: &str, text: &str) {
    let expression = format!(
        "[...document.querySelectorAll({})].some((found) => found.textContent.includes({}))",
        Value::from(selector),
        Value::from(text)
    );
    browser.wait_for(&expression).unwrap();
}

/// Clicks the first element that a selector matches.
fn click(browser: &mut Browser, selector: &str) {
    let expression = format!("document.querySelector({}).click()", Value::from(selector));
    browser.evaluate(&expression).unwrap();
}

fn require_no_faults(browser: &Browser) {
    let faults = browser.faults();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
