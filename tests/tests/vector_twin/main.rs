//! The twin of the vectorised executor: random tables with the same rows in heap and in lanes.
//! Random queries have to return the same on heap, on lanes row by row (`lanes.vectorize = off`)
//! and on lanes vectorised: rows, their types, and errors by SQLSTATE and message.
//!
//! | module | contents |
//! |---|---|
//! | [`values`] | columns, the styles of their values, and literals that occur among them |
//! | [`tables`] | random tables: batches, rollbacks, updates, deletes, columns that were added later |
//! | [`conditions`] | random conditions and numbers |
//! | [`expressions`] | random aggregate calls, grouping expressions and join conditions |
//! | [`queries`] | random queries |
//! | [`nested`] | random aggregations of aggregations |
//! | [`outer_joins`] | random joins with `t` on the null side, and stars |
//! | [`windows`] | random window functions |
//! | [`shapes`] | random queries of unusual shapes |
//! | [`sessions`] | a session per side, their answers, and the comparison of answers |
//!
//! Sums of floats may be added in another order, so floats agree within [`sessions::TOLERANCE`];
//! everything else is equal to the letter. Half of the rounds run in a time zone with daylight
//! saving. In some rounds there is little memory, so that groups wait in temporary files, and in some
//! the vectorised side has workers.
//!
//! `LANES_SEED` replays a run; `LANES_ROUNDS` sets the number of tables.

mod conditions;
mod expressions;
mod nested;
mod outer_joins;
mod queries;
mod sessions;
mod shapes;
mod tables;
mod values;
mod windows;

use lanes_support::budget::Budget;
use lanes_support::cluster::{Builder, Cluster};
use lanes_support::seed::seeded;
use rand::RngExt;
use rand::seq::IndexedRandom;
use sessions::Sessions;

/// The numbers of tables.
const ROUNDS: Budget = Budget { short: 3, long: 6 };
/// The numbers of tables with a tiny arena.
const TINY_ROUNDS: Budget = Budget { short: 1, long: 2 };
/// The number of queries on each table.
const QUERIES: u32 = 50;

fn run(builder: Builder, test: &str, rounds: u32) {
    let cluster: Cluster = builder
        .setting("autovacuum", "off")
        .setting("log_min_messages", "fatal")
        .start()
        .unwrap();
    let (mut random, seed) = seeded(test);
    let mut administrator = cluster.connect("postgres").unwrap();
    tables::prepare(&mut administrator);
    let mut sessions = Sessions::new(&cluster);
    for round in 0..rounds {
        let rows = *[0, 7, 3_000, 4_097, 20_000, 70_000]
            .choose(&mut random)
            .unwrap();
        let script = tables::fill(&mut administrator, &mut random, rows);
        let zone = ["UTC", "Europe/Berlin"][round as usize % 2];
        sessions.set_zone(zone);
        sessions.set_memory(*[64, 4_096].choose(&mut random).unwrap());
        sessions.set_workers(random.random());
        for _ in 0..QUERIES {
            let query = queries::query(&mut random);
            if let Err(difference) = sessions.compare(&query) {
                println!("-- the tables ({zone}):");
                script.iter().for_each(|statement| println!("{statement};"));
                println!("-- the query:");
                query
                    .statements
                    .iter()
                    .for_each(|statement| println!("{statement};"));
                panic!("answers differ (seed {seed}, round {round})\n{difference}");
            }
        }
        let _: u64 = random.random();
    }
    println!(
        "{test}: {} queries agree, {} of them completely vectorised, {} grouped by workers (seed {seed})",
        rounds * QUERIES,
        sessions.vectorised,
        sessions.by_workers
    );
}

#[test]
fn vectorised_answers_agree_with_heap() {
    let rounds = ROUNDS.rounds();
    run(Cluster::builder("vector_twin"), "vector_twin", rounds);
}

/// With an arena far smaller than the tables, vectors are decoded from pages.
#[test]
fn vectorised_answers_agree_with_heap_with_a_tiny_arena() {
    let builder = Cluster::builder("vector_twin_tiny").setting("lanes.arena_size", "1MB");
    let rounds = TINY_ROUNDS.rounds();
    run(builder, "vector_twin_tiny", rounds);
}
