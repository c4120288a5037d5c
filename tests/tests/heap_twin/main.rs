//! The heap twin: random scripts of DDL, DML and queries run twice in one database, on heap tables
//! and on lanes tables. Everything that a client can see has to be equal: rows, row counts, and
//! errors by SQLSTATE.
//!
//! | module | contents |
//! |---|---|
//! | [`values`] | column types, and their difficult literals (NULL, NaN, -0, infinity, empty, long) |
//! | [`model`] | the generator's knowledge of the tables, read from the catalog |
//! | [`generate`] | the generator of the next statement of a script |
//! | [`queries`] | the generator of SELECTs whose answer does not depend on the order of rows |
//! | [`stage`] | a cluster, its object store, and its standby |
//! | [`twin`] | a pair of sessions, one per side, that run a script |
//! | [`answer`] | the answer of a statement, and the comparison of two answers |
//! | [`crash`] | a crash of the cluster in the middle of a script |
//! | [`follow`] | queries and old snapshots on the standby |
//!
//! A statement's text is the same on both sides. Each side has its own schema on the search path
//! and its own `default_table_access_method`. A script drives two pairs of sessions, so that
//! snapshots, row locks and table locks conflict. A lock that is not free within `LOCK_TIMEOUT_MS`
//! is error 55P03 on both sides. Meanwhile lanes tables are sealed, by VACUUM and by hand, in
//! changing orders, and sealed parts move to object storage and back. A client sees nothing of
//! that, except for the error of a cursor that is older than a sealing.
//!
//! In the adverse runs the cluster is also killed, at any step and in the middle of sealing,
//! offloading and transactions, and a standby answers the same queries. The size of memory and the
//! time at which sealed rows are decoded vary from run to run.
//!
//! `LANES_SEED` replays a run; `LANES_ROUNDS` sets the number of scripts. A failure shows the end
//! of the script, and names the file that contains all of it.

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

/// The numbers of scripts.
const SCRIPTS: Budget = Budget {
    short: 15,
    long: 60,
};
/// The numbers of scripts with a tiny arena.
const TINY_SCRIPTS: Budget = Budget { short: 6, long: 20 };
/// The numbers of scripts in adverse runs.
const ADVERSE_SCRIPTS: Budget = Budget { short: 3, long: 12 };
/// The numbers of scripts that compare heap with heap.
const SELF_SCRIPTS: Budget = Budget { short: 4, long: 6 };
/// The number of scripts from which some script is certain to offload rows.
const MOVING_SCRIPTS: u32 = 12;
/// The number of statements in a script.
const STATEMENTS: usize = 70;
/// The number of scripts in one adverse cluster.
const SCRIPTS_OF_A_CLUSTER: u32 = 3;

/// Runs the scripts and returns the number of offloaded parts.
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
        "{test}: {scripts} scripts of {STATEMENTS} statements agree, {offloaded} parts \
         were offloaded, {} segments recalled, {crashes} crashes",
        stage.supplied()
    );
    offloaded
}

#[test]
fn lanes_agrees_with_heap() {
    let (mut random, _) = seeded("heap_twin");
    // VACUUM seals as much as it can.
    let cluster = Cluster::builder("heap_twin").setting("lanes.seal_rows", "1");
    let mut stage = Stage::with_objects(cluster);
    let scripts = SCRIPTS.rounds();
    let offloaded = run(&mut stage, "heap_twin", &mut random, scripts);
    let do_move = offloaded > 0 && stage.supplied() > 0;
    assert!(
        scripts < MOVING_SCRIPTS || do_move,
        "rows are offloaded and recalled"
    );
}

/// With an arena far smaller than the tables, everything is loaded, evicted and loaded again, which
/// no client notices.
#[test]
fn lanes_agrees_with_heap_with_a_tiny_arena() {
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

/// The cluster crashes at any moment, and a standby answers too.
#[test]
fn lanes_agrees_with_heap_through_crashes_and_on_a_standby() {
    let (mut random, _) = seeded("heap_twin_adverse");
    let runs = ADVERSE_SCRIPTS.rounds().div_ceil(SCRIPTS_OF_A_CLUSTER);
    for number in 0..runs {
        let name = format!("heap_twin_adverse_{number}");
        let mut stage = Stage::adverse(&name, &mut random);
        run(&mut stage, &name, &mut random, SCRIPTS_OF_A_CLUSTER);
    }
}

/// Tests the test: heap agrees with heap, so a difference is never the generator's fault.
#[test]
fn heap_agrees_with_heap() {
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
