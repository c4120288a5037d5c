//! kill -9 at random moments, and the state after recovery.
//!
//! | module | contents |
//! |---|---|
//! | [`keys`] | sustained SQL with indexes and ON CONFLICT, while indexes are built and rows sealed |
//! | [`ingest`] | sustained remote write: every acknowledged sample is stored |
//! | [`short_file`] | a file that is shorter than its metapage says |
//! | [`sql`] | sustained SQL on a lanes table and its heap twin in the same transactions |
//!
//! A killed process loses its own memory but nothing that it has passed to the operating system.
//! The clusters therefore do not wait for the disk (`fsync = off`). WAL that was not written before
//! the kill is lost all the same.

mod ingest;
mod keys;
mod short_file;
mod sql;

use lanes_support::cluster::Cluster;
use lanes_support::process::POLL_INTERVAL;
use lanes_support::seed::Random;
use rand::seq::IndexedRandom;
use std::time::{Duration, Instant};

/// The time in which the postmaster of a busy machine notices the end of a child.
const NOTICED_TIMEOUT: Duration = Duration::from_secs(60);

/// The process to kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    /// One backend, at random: PostgreSQL restarts itself and discards shared memory.
    Backend,
    /// The postmaster only; its children notice.
    Postmaster,
    /// Every process of the cluster at once.
    Cluster,
    /// The gateway.
    Gateway,
}

/// Kills a backend, the postmaster or the whole cluster, and waits until the cluster answers again.
fn kill(cluster: &mut Cluster, random: &mut Random) -> Victim {
    let victims = [Victim::Backend, Victim::Postmaster, Victim::Cluster];
    let victim = *victims.choose(random).unwrap();
    match victim {
        Victim::Postmaster => {
            cluster.kill9_postmaster().unwrap();
            cluster.start().unwrap();
        }
        Victim::Cluster => {
            cluster.kill9().unwrap();
            cluster.start().unwrap();
        }
        _ => kill_a_backend(cluster, "postgres", random),
    }
    victim
}

/// Whether an error says that the connection was lost, by a kill or a shutdown.
fn is_lost(error: &postgres::Error) -> bool {
    error
        .code()
        .is_none_or(|code| code.code().starts_with("57") || code.code().starts_with("08"))
}

/// Kills an active backend of a client in this database, if there is one, and waits until
/// PostgreSQL has restarted itself and answers again.
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
    // The backend may have ended by itself meanwhile.
    let killed = backends
        .choose(random)
        .is_some_and(|backend| cluster.kill9_backend(*backend as u32).is_ok());
    // The postmaster needs a moment to notice; then every connection ends.
    let start = Instant::now();
    while killed && witness.simple_query("SELECT 1").is_ok() {
        assert!(
            start.elapsed() < NOTICED_TIMEOUT,
            "the postmaster has not noticed the killed backend"
        );
        std::thread::sleep(POLL_INTERVAL);
    }
    cluster.wait_ready().unwrap();
}
