//! The gateway against a hostile or failing world, over real HTTP and a real Postgres.
//!
//! | module | one thing |
//! |---|---|
//! | [`bombs`] | requests made to hurt: exact status codes, no memory growth, nothing stored that should not be |
//! | [`overload`] | more than fits: nothing acknowledged is lost, every answer says what to do, memory stays within its budget |
//! | [`outage`] | Postgres away, slow or restarted; two gateways on one database; the same request again |
//! | [`operators`] | what an operator must mend: rights, a full disk |
//! | [`start`] | a start where many series are registered |
//! | [`replica`] | a standby that is away, and one that takes over |

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

/// Long enough for any machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A cluster with the extension and its roles.
fn cluster(name: &str) -> (Cluster, Passwords) {
    let cluster = Cluster::builder(name).start().unwrap();
    let passwords = Passwords::generate();
    provision(&cluster, &passwords).unwrap();
    (cluster, passwords)
}

/// A gateway that sends nothing of its own.
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

/// The value of one of the gateway's own metrics without labels.
fn metric(gateway: &Gateway, name: &str) -> f64 {
    // A kept connection may have been ended by the answer to a body that was not read to its end.
    let answer = gateway.get("/metrics").or_else(|_| gateway.get("/metrics"));
    let text = answer.unwrap().body;
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        .unwrap_or_else(|| panic!("no metric {name} in\n{text}"))
}
