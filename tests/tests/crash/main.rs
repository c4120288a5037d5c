//! kill -9 at random moments, and what is there afterwards.
//!
//! | module | one thing |
//! |---|---|
//! | [`ingest`] | sustained remote write: what was sent, what was acked and when, what must therefore be there |
//! | [`short_file`] | a file that ends before its metapage says |
//! | [`sql`] | sustained SQL against a lanes table and its heap twin in the same transactions |
//!
//! A process that is killed loses what it kept in its own memory and nothing that it gave to the operating system, so the
//! clusters do not wait for the disk (`fsync = off`): WAL that was not yet written at the kill is lost all the same.

mod ingest;
mod short_file;
mod sql;

use lanes_support::cluster::Cluster;
use lanes_support::process::POLL_INTERVAL;
use lanes_support::seed::Random;
use rand::seq::IndexedRandom;
use std::time::{Duration, Instant};

/// How long the postmaster of a busy machine may take to notice a child's end.
const NOTICED_TIMEOUT: Duration = Duration::from_secs(60);

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    /// One backend, at random: Postgres restarts itself and throws shared memory away.
    Backend,
    /// The postmaster only; its children notice.
    Postmaster,
    /// Every process of the cluster at one instant.
    Cluster,
    /// The gateway.
    Gateway,
}

/// Kills a backend that is at work for a client in this database, if there is one, and waits until Postgres has restarted
/// itself and answers again.
fn kill_a_backend(cluster: &mut Cluster, database: &str, random: &mut Random) {
    let Ok(mut witness) = cluster.connect("postgres") else {
        return;
    };
    let backends: Vec<i32> = witness
        .query(
            "SELECT pid FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend' \
             AND pid <> pg_backend_pid() ORDER BY pid",
            &[&database],
        )
        .map(|rows| rows.iter().map(|row| row.get(0)).collect())
        .unwrap_or_default();
    // It may have ended by itself meanwhile.
    let killed = backends
        .choose(random)
        .is_some_and(|backend| cluster.kill9_backend(*backend as u32).is_ok());
    // The postmaster needs a moment to notice; then every connection ends.
    let start = Instant::now();
    while killed && witness.simple_query("SELECT 1").is_ok() {
        assert!(
            start.elapsed() < NOTICED_TIMEOUT,
            "a killed backend is not noticed"
        );
        std::thread::sleep(POLL_INTERVAL);
    }
    cluster.wait_ready().unwrap();
}
