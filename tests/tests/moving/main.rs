//! Databases with lanes tables move as others do: rows, indexes and series are there as before, and everything goes on.
//!
//! | module | contents |
//! |---|---|
//! | [`tables`] | the tables, and the queries whose answers must not change |
//! | [`upgrade`] | pg_upgrade |
//! | [`template`] | CREATE DATABASE … TEMPLATE |
//! | [`recovery`] | a base backup and archived WAL, up to a point in time |
//! | [`parallel_dump`] | pg_dump and pg_restore with several processes |
//! | [`tablespaces`] | tables and databases that move to another tablespace |

mod parallel_dump;
mod recovery;
mod tables;
mod tablespaces;
mod template;
mod upgrade;

use std::time::{Duration, Instant};

/// A timeout that suffices on any machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Statements with which a database goes on after its move. `lanes.seal` is a statement of its own.
const GO_ON: [&str; 4] = [
    "INSERT INTO open_rows (k, v) SELECT g, 'on' FROM generate_series(100001, 101000) g; \
     UPDATE sorted SET txt = 'on' WHERE series = 2 AND v < 5000; DELETE FROM sorted WHERE series = 4 AND v < 20000; \
     DELETE FROM indexed WHERE k % 5 = 1; \
     INSERT INTO indexed (k, words, span, txt, h) SELECT g, '{w3,z1}', int4range(501, 502), 't77', 50 \
         FROM generate_series(70500, 72000) g ON CONFLICT (k) DO UPDATE SET txt = 'again'",
    "SELECT lanes.seal('sorted')",
    "SELECT lanes.seal('indexed')",
    "UPDATE indexed SET h = 7 WHERE k BETWEEN 71000 AND 71100",
];

/// Changes open and sealed rows of a database, and seals.
fn go_on(cluster: &lanes_support::cluster::Cluster, database: &str) {
    let mut client = cluster.connect(database).unwrap();
    for statement in GO_ON {
        client
            .batch_execute(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
}

/// Waits until a condition holds.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
