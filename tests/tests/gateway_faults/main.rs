//! The gateway in a hostile or failing environment, over real HTTP and with a real PostgreSQL.
//!
//! | module | contents |
//! |---|---|
//! | [`bombs`] | malicious requests: exact status codes, no memory growth, nothing stored that should not be |
//! | [`overload`] | more requests than fit: every acknowledged one is stored, every response says what to do, memory stays within its budget |
//! | [`outage`] | PostgreSQL stopped, slow or restarted; two gateways on one database; repeated requests |
//! | [`operators`] | faults that an operator has to repair: privileges, a full disk |
//! | [`start`] | a start with many registered series |
//! | [`replica`] | a standby that is stopped, and one that takes over |

mod bombs;
mod operators;
mod outage;
mod overload;
mod replica;
mod start;

use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::provision::{DATABASE, Passwords, provision};
use std::time::{Duration, Instant};

/// A timeout that suffices on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a cluster with the extension and its roles.
fn cluster(name: &str) -> (Cluster, Passwords) {
    let cluster = Cluster::builder(name).start().unwrap();
    let passwords = Passwords::generate();
    provision(&cluster, &passwords).unwrap();
    (cluster, passwords)
}

/// Returns the settings of a gateway without self-scraping.
fn settings(name: &str, cluster: &Cluster, passwords: &Passwords) -> Settings {
    Settings::for_test(name, cluster, passwords)
        .unwrap()
        .environment("LANES_GATEWAY_SELF_SCRAPE_INTERVAL", "0")
}

fn samples(cluster: &Cluster) -> u64 {
    cluster
        .scalar(DATABASE, "SELECT count(*) FROM lanes.samples")
        .unwrap()
        .parse()
        .unwrap()
}

/// Returns the value of one of the gateway's own metrics without labels.
fn metric(gateway: &Gateway, name: &str) -> f64 {
    // The response to a body that was not read completely may have ended the kept connection.
    let answer = gateway.get("/metrics").or_else(|_| gateway.get("/metrics"));
    let text = answer.unwrap().body;
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        .unwrap_or_else(|| panic!("no metric {name} in\n{text}"))
}
