//! pg_upgrade: a database with lanes tables in all states moves to the same or a later version of PostgreSQL. Rows,
//! indexes, series and rows in object storage are there as before, and everything goes on.
//!
//! The new installation is the chosen one. `LANES_PG_FROM` names the `pg_config` of the old one; by default it is the
//! same, because pg_upgrade also moves a cluster to its own version. A long run goes from each version to later ones.

use super::tables::{self, Answers, DATABASE, UNLOGGED, check, compare};
use super::wait_for;
use lanes_support::cluster::{Cluster, Stop};
use lanes_support::installation::{Postgres, UPGRADED_FROM};
use lanes_support::objects::{Objects, Supplier};
use std::path::Path;

/// Returns a cluster whose sealer visits its databases all the time, unless it knows better.
fn cluster(name: &str, postgres: &Postgres) -> Cluster {
    Cluster::builder(name)
        .postgres(postgres)
        .distinct()
        .setting("lanes.seal_naptime", "1s")
        .start()
        .unwrap()
}

fn filled(postgres: &Postgres, objects: &Objects) -> Cluster {
    let old = cluster("upgrade_old", postgres);
    tables::fill(&old);
    tables::fill_far(&old, DATABASE, objects);
    wait_for("the labels are indexed", || {
        old.scalar(DATABASE, INDEXED_SERIES).unwrap() == "300"
    });
    old
}

const INDEXED_SERIES: &str = "SELECT sum(series) FROM lanes.label_runs";
const IDENTITY: &str = "SELECT lanes.registry_identity()";

fn answers(cluster: &Cluster) -> Answers {
    let mut answers = tables::answers(cluster, DATABASE);
    answers.extend(tables::far_answers(cluster, DATABASE));
    answers
}

#[test]
fn everything_survives_pg_upgrade() {
    let postgres = Postgres::chosen().unwrap();
    let from = match std::env::var_os(UPGRADED_FROM) {
        Some(pg_config) => Postgres::of(Path::new(&pg_config)).unwrap(),
        None => postgres.clone(),
    };
    let objects = Objects::default();
    let mut old = filled(&from, &objects);
    let supplier = Supplier::start(&old, DATABASE, &objects);
    let expected = answers(&old);
    check(&old, DATABASE, "before");
    let identity = old.scalar(DATABASE, IDENTITY).unwrap();
    drop(supplier);

    let mut new = cluster("upgrade_new", &postgres);
    if !tables::takes_brin(&new) {
        old.psql(DATABASE, "DROP INDEX IF EXISTS indexed_brin")
            .unwrap();
    }
    new.stop(Stop::Fast).unwrap();
    old.stop(Stop::Fast).unwrap();
    old.upgrade_into(&new).unwrap();
    new.start().unwrap();
    let supplier = Supplier::start(&new, DATABASE, &objects);
    compare(&expected, &answers(&new), "after pg_upgrade");
    check(&new, DATABASE, "after pg_upgrade");
    assert_eq!(new.scalar(DATABASE, UNLOGGED).unwrap(), "100");
    assert_eq!(new.scalar(DATABASE, INDEXED_SERIES).unwrap(), "300");
    // Both clusters may register series from now on, so gateways must not take one for the other.
    assert_ne!(new.scalar(DATABASE, IDENTITY).unwrap(), identity);

    let expected = go_on(&mut new, &objects);
    drop(supplier);
    new.kill9().unwrap();
    new.start().unwrap();
    assert_eq!(new.scalar(DATABASE, UNLOGGED).unwrap(), "0");
    let _supplier = Supplier::start(&new, DATABASE, &objects);
    compare(
        &expected,
        &answers(&new),
        "after a crash of the new cluster",
    );
    check(&new, DATABASE, "after a crash of the new cluster");
    for statement in [
        "VACUUM (FREEZE, ANALYZE)",
        "VACUUM FULL indexed",
        "REINDEX DATABASE moved",
    ] {
        new.psql(DATABASE, statement).unwrap();
    }
    compare(&expected, &answers(&new), "after maintenance");
    check(&new, DATABASE, "after maintenance");
}

/// Changes all tables, seals and offloads. Returns the answers afterwards.
fn go_on(new: &mut Cluster, objects: &Objects) -> Answers {
    let mut client = new.connect(DATABASE).unwrap();
    client
        .batch_execute(
            "INSERT INTO open_rows SELECT g, 'new', g, true, 'happy', g, g, '{}' FROM generate_series(5001, 6000) g; \
             UPDATE open_rows SET v = 'changed' WHERE k % 100 = 1; \
             DELETE FROM sorted WHERE v::int % 10 = 0; \
             INSERT INTO sorted SELECT 2, timestamptz '2026-03-01' + g * interval '1 s', g, 'new' FROM generate_series(1, 9000) g; \
             INSERT INTO indexed (k, words, span, txt, h) SELECT g, '{w3,z1}', int4range(501, 502), 't77', 50 \
                 FROM generate_series(70500, 72000) g ON CONFLICT (k) DO UPDATE SET txt = 'again'; \
             INSERT INTO parts (k, v) SELECT g, 'new' FROM generate_series(3000, 3100) g; \
             REFRESH MATERIALIZED VIEW summary; \
             UPDATE far SET txt = 'changed' WHERE v % 1000 = 7; \
             INSERT INTO far SELECT 4, timestamptz '2021-01-01' + g * interval '1 s', g, 'second' FROM generate_series(1, 5000) g; \
             INSERT INTO lanes.samples (ts, series, value) SELECT '2026-01-01 00:05+00', s, 1 FROM generate_series(1, 300) s",
        )
        .unwrap();
    for table in ["open_rows", "sorted", "indexed", "far", "lanes.samples"] {
        client
            .batch_execute(&format!("SELECT lanes.seal('{table}')"))
            .unwrap();
    }
    assert!(objects.offload(&mut client).unwrap() > 0);
    let again = client.batch_execute("INSERT INTO indexed (k) VALUES (4712)");
    assert!(again.unwrap_err().to_string().contains("db error"));
    client
        .batch_execute("SELECT lanes.register_series(2147483647, ARRAY[ROW('up', ARRAY['{\"job\":\"j3\"}'])::lanes.series_run])")
        .unwrap();
    answers(new)
}
