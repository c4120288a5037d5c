//! The heap twin: random scripts of DDL, DML and queries run twice in one database, on heap tables and on lanes tables,
//! and everything that a client can see must be the same: rows, row counts, and errors by SQLSTATE.
//!
//! | module | one thing |
//! |---|---|
//! | [`values`] | column types, and literals of them that matter (NULL, NaN, -0, infinity, empty, long) |
//! | [`model`] | what the generator knows of the tables, read from the catalog and not guessed |
//! | [`generate`] | the next statement of a script |
//! | [`queries`] | the SELECTs among them, made so that their answer does not depend on the order of rows |
//! | [`stage`] | a cluster, an object store behind it, a standby that follows it |
//! | [`twin`] | a pair of sessions, one a side, that play a script |
//! | [`answer`] | what a client sees of a statement, and how two such answers compare |
//! | [`crash`] | the end of the cluster in the middle of a script |
//! | [`follow`] | the same questions on the standby, and old snapshots there |
//!
//! A statement's text is the same on both sides: each side has its own schema on the search path and its own
//! `default_table_access_method`. A script drives two pairs of sessions, so that snapshots, row locks and table locks meet;
//! a lock that is not free within `LOCK_TIMEOUT_MS` is error 55P03 on both sides. Lanes tables are sealed on the way, by VACUUM
//! and by hand, in orders that change, and what is sealed moves to object storage and comes back: nothing is to be seen of that but,
//! once a cursor is older than a sealing, the error that says so.
//!
//! In the adverse runs the cluster is also killed, at any step and in the middle of sealing, offloading and transactions, and a standby
//! answers the same questions; memory, and when sealed rows are decoded, change from run to run.
//!
//! `LANES_SEED` replays a run; `LANES_ROUNDS` says how many scripts to run. A failure shows the end of the script, and
//! says in which file all of it is.

mod answer;
mod crash;
mod follow;
mod generate;
mod model;
mod queries;
mod stage;
mod twin;
mod values;

use lanes_support::budget::Budget;
use lanes_support::cluster::Cluster;
use lanes_support::seed::{Random, seeded};
use rand::{RngExt, SeedableRng};
use stage::Stage;
use twin::Twin;

/// Scripts in a short run and in a long one.
const SCRIPTS: Budget = Budget {
    short: 15,
    long: 60,
};
/// The same where the arena is tiny.
const TINY_SCRIPTS: Budget = Budget { short: 6, long: 20 };
/// The same of adverse runs.
const ADVERSE_SCRIPTS: Budget = Budget { short: 3, long: 12 };
/// The same of heap beside heap.
const SELF_SCRIPTS: Budget = Budget { short: 4, long: 6 };
/// So many scripts move rows away for sure; a few may do nothing of the kind.
const MOVING_SCRIPTS: u32 = 12;
/// Statements in a script.
const STATEMENTS: usize = 70;
/// Scripts of one adverse cluster; then another begins.
const SCRIPTS_OF_A_CLUSTER: u32 = 3;

/// How many parts moved to object storage.
fn run(stage: &mut Stage, test: &str, random: &mut Random, scripts: u32) -> usize {
    let (mut offloaded, mut crashes) = (0, 0);
    for number in 0..scripts {
        let script_random = Random::seed_from_u64(random.random());
        let mut twin = Twin::new(stage, number.into(), script_random);
        for _ in 0..STATEMENTS {
            twin.step();
        }
        twin.finish();
        offloaded += twin.offloaded;
        crashes += twin.crashes;
    }
    println!(
        "{test}: {scripts} scripts of {STATEMENTS} statements agree, {offloaded} parts moved away, {} segments came back, \
         {crashes} crashes",
        stage.supplied()
    );
    offloaded
}

#[test]
fn lanes_answers_as_heap_does() {
    let (mut random, _) = seeded("heap_twin");
    // VACUUM seals whatever it can.
    let cluster = Cluster::builder("heap_twin").setting("lanes.seal_rows", "1");
    let mut stage = Stage::with_objects(cluster);
    let scripts = SCRIPTS.rounds();
    let offloaded = run(&mut stage, "heap_twin", &mut random, scripts);
    let do_move = offloaded > 0 && stage.supplied() > 0;
    assert!(
        scripts < MOVING_SCRIPTS || do_move,
        "rows move away and come back"
    );
}

/// An arena far smaller than the tables: everything is loaded, evicted and loaded again, and nothing is seen of it.
#[test]
fn lanes_answers_as_heap_does_with_a_tiny_arena() {
    let (mut random, _) = seeded("heap_twin_tiny");
    let cluster = Cluster::builder("heap_twin_tiny")
        .setting("lanes.arena_size", "1MB")
        .setting("lanes.seal_rows", "1000");
    let mut stage = Stage::with_objects(cluster);
    run(
        &mut stage,
        "heap_twin_tiny",
        &mut random,
        TINY_SCRIPTS.rounds(),
    );
}

/// Crashes at any moment, and a standby that answers too.
#[test]
fn lanes_answers_as_heap_does_through_crashes_and_on_a_standby() {
    let (mut random, _) = seeded("heap_twin_adverse");
    let runs = ADVERSE_SCRIPTS.rounds().div_ceil(SCRIPTS_OF_A_CLUSTER);
    for number in 0..runs {
        let name = format!("heap_twin_adverse_{number}");
        let mut stage = Stage::adverse(&name, &mut random);
        run(&mut stage, &name, &mut random, SCRIPTS_OF_A_CLUSTER);
    }
}

/// The test's own test: heap agrees with heap, so a difference is never the generator's.
#[test]
fn heap_answers_as_heap_does() {
    let (mut random, _) = seeded("heap_twin_self");
    let mut stage = Stage::quiet(Cluster::builder("heap_twin_self").without_extension());
    stage
        .cluster
        .psql(
            "postgres",
            "CREATE ACCESS METHOD lanes TYPE TABLE HANDLER heap_tableam_handler",
        )
        .unwrap();
    run(
        &mut stage,
        "heap_twin_self",
        &mut random,
        SELF_SCRIPTS.rounds(),
    );
}
