//! What changes how the rows are stored, and the indexes.

use super::super::is_lost;
use super::Shared;
use lanes_support::seed::Random;
use postgres::error::SqlState;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::time::Duration;

/// Statements on the rows.
pub const OF_ROWS: &[&str] = &[
    "VACUUM lanes_twin",
    "VACUUM lanes_twin",
    "VACUUM (FREEZE) lanes_twin",
    "VACUUM done",
    "ANALYZE lanes_twin",
    "CHECKPOINT",
    "VACUUM FULL lanes_twin",
    "CLUSTER lanes_twin USING lanes_twin_pkey",
    "SELECT lanes.seal('lanes_twin')",
    "SELECT lanes.seal('lanes_twin')",
    "SELECT lanes.seal('lanes_twin')",
];
/// Statements on the indexes. The index `later` comes and goes.
pub const OF_INDEXES: &[&str] = &[
    "CREATE INDEX CONCURRENTLY later ON lanes_twin (f, k)",
    "CREATE INDEX CONCURRENTLY later ON lanes_twin (f, k)",
    "CREATE INDEX later ON lanes_twin (f) INCLUDE (v)",
    "DROP INDEX CONCURRENTLY later",
    "DROP INDEX later",
    "REINDEX TABLE lanes_twin",
    "REINDEX TABLE CONCURRENTLY lanes_twin",
    "REINDEX INDEX CONCURRENTLY by_tags",
    "REINDEX INDEX by_v",
];

/// Indexes that a killed statement has left, under names such as `by_v_ccnew`. REINDEX TABLE makes them valid.
const LEFT_OVER: &str = r"SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'lanes_twin'::regclass
                          AND (NOT indisvalid OR indexrelid::regclass::text LIKE '%\_cc%')";

/// Runs statements at random until the test is over.
pub fn maintain(config: &postgres::Config, statements: &[&str], seed: u64, shared: &Shared) {
    let mut random = Random::seed_from_u64(seed);
    while !shared.is_over() {
        std::thread::sleep(Duration::from_millis(random.random_range(5..100)));
        let Ok(mut client) = config.connect(postgres::NoTls) else {
            continue;
        };
        let statement = statements.choose(&mut random).unwrap();
        allow(statement, client.batch_execute(statement));
        if statements == OF_INDEXES {
            drop_left_over(&mut client);
        }
    }
}

fn drop_left_over(client: &mut postgres::Client) {
    let Ok(found) = client.query(LEFT_OVER, &[]) else {
        return;
    };
    for row in found {
        let statement = format!("DROP INDEX {}", row.get::<_, String>(0));
        allow(&statement, client.batch_execute(&statement));
    }
}

/// Fails if a statement failed otherwise than by a kill, by other sessions' locks, or because the index `later` is
/// there or not.
fn allow(statement: &str, done: Result<(), postgres::Error>) {
    let Err(error) = done else {
        return;
    };
    let expected = [
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::DUPLICATE_TABLE,
        SqlState::UNDEFINED_OBJECT,
        SqlState::UNDEFINED_TABLE,
    ];
    let is_expected = error.code().is_some_and(|code| expected.contains(code));
    assert!(is_expected || is_lost(&error), "{statement}: {error:?}");
}
