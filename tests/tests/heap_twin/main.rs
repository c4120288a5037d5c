//! The heap twin: random scripts of DDL, DML and queries run twice in one database, on heap tables and on lanes tables,
//! and everything that a client can see must be the same: rows, row counts, and errors by SQLSTATE.
//!
//! | module | one thing |
//! |---|---|
//! | [`values`] | column types, and literals of them that matter (NULL, NaN, -0, infinity, empty, long) |
//! | [`model`] | what the generator knows of the tables, read from the catalog and not guessed |
//! | [`generate`] | the next statement of a script |
//! | [`queries`] | the SELECTs among them, made so that their answer does not depend on the order of rows |
//! | [`twin`] | a pair of sessions, one a side, and the comparison of what they answer |
//!
//! A statement's text is the same on both sides: each side has its own schema on the search path and its own
//! `default_table_access_method`. A script drives two pairs of sessions, so that snapshots, row locks and table locks meet;
//! a lock that is not free within `LOCK_TIMEOUT_MS` is error 55P03 on both sides. Lanes tables are sealed on the way, by VACUUM
//! and by hand, in orders that change, and what is sealed moves to object storage and comes back: nothing is to be seen of that but,
//! once a cursor is older than a sealing, the error that says so.
//!
//! `LANES_SEED` replays a run; `LANES_TWIN_SCRIPTS` says how many scripts to run. A failure prints the script.

mod generate;
mod model;
mod queries;
mod twin;
mod values;

use lanes_tests::cluster::{Builder, Cluster};
use lanes_tests::objects::{Objects, Supplier};
use lanes_tests::seed::{Random, seeded};
use rand::{RngExt, SeedableRng};
use twin::Twin;

/// Scripts in a run, unless `LANES_TWIN_SCRIPTS` says otherwise: about 40 s on two cores.
const SCRIPTS: u64 = 60;
/// Statements in a script.
const STATEMENTS: usize = 70;

fn scripts_wanted(default: u64) -> u64 {
    std::env::var("LANES_TWIN_SCRIPTS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// A cluster in which nothing happens that no script asked for.
fn quiet(builder: Builder) -> Cluster {
    builder
        .setting("autovacuum", "off")
        .setting("lanes.seal_naptime", "0")
        .setting("lanes.seal_memory", "16MB")
        .setting("max_prepared_transactions", "20")
        .start()
        .unwrap()
}

fn run(cluster: &Cluster, test: &str, scripts: u64, objects: Option<&Objects>) {
    let (mut random, seed) = seeded(test);
    let mut offloaded = 0;
    for number in 0..scripts {
        let script_random = Random::seed_from_u64(random.random());
        let mut twin = Twin::new(cluster, number, script_random, objects);
        for _ in 0..STATEMENTS {
            twin.step();
        }
        twin.finish();
        offloaded += twin.offloaded;
    }
    println!(
        "{test}: {scripts} scripts of {STATEMENTS} statements agree (seed {seed}), {offloaded} parts moved away"
    );
}

/// The same with an object store behind the lanes tables.
fn run_with_objects(cluster: &Cluster, test: &str, scripts: u64) {
    cluster.psql("postgres", "CREATE EXTENSION lanes").unwrap();
    let objects = Objects::default();
    let supplier = Supplier::start(cluster, "postgres", &objects);
    run(cluster, test, scripts, Some(&objects));
    println!("{test}: {} segments came back", supplier.supplied());
}

#[test]
fn lanes_answers_as_heap_does() {
    // VACUUM seals whatever it can.
    let cluster = quiet(Cluster::builder("heap_twin").setting("lanes.seal_rows", "1"));
    run_with_objects(&cluster, "heap_twin", scripts_wanted(SCRIPTS));
}

/// An arena far smaller than the tables: everything is loaded, evicted and loaded again, and nothing is seen of it.
#[test]
fn lanes_answers_as_heap_does_with_a_tiny_arena() {
    let cluster = quiet(
        Cluster::builder("heap_twin_tiny")
            .setting("lanes.arena_size", "1MB")
            .setting("lanes.seal_rows", "1000"),
    );
    run_with_objects(&cluster, "heap_twin_tiny", scripts_wanted(SCRIPTS / 3));
}

/// The test's own test: heap agrees with heap, so a difference is never the generator's.
#[test]
fn heap_answers_as_heap_does() {
    let cluster = quiet(Cluster::builder("heap_twin_self").without_extension());
    cluster
        .psql(
            "postgres",
            "CREATE ACCESS METHOD lanes TYPE TABLE HANDLER heap_tableam_handler",
        )
        .unwrap();
    run(
        &cluster,
        "heap_twin_self",
        scripts_wanted(SCRIPTS / 10),
        None,
    );
}
