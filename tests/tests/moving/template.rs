//! CREATE DATABASE … TEMPLATE by both strategies. Copy and template then go apart.

use super::go_on;
use super::tables::{self, DATABASE, UNLOGGED, answers, check, compare};
use lanes_support::cluster::Cluster;
use lanes_support::objects::{Objects, Supplier};
use postgres::Client;

fn copy(cluster: &Cluster, name: &str, strategy: &str) {
    let statement = format!("CREATE DATABASE {name} TEMPLATE {DATABASE} STRATEGY {strategy}");
    cluster.psql("postgres", &statement).unwrap();
}

#[test]
fn a_copy_and_its_template_go_apart() {
    let mut cluster = Cluster::builder("template").start().unwrap();
    tables::fill(&cluster);
    let before = answers(&cluster, DATABASE);
    for strategy in ["wal_log", "file_copy"] {
        copy(&cluster, strategy, strategy);
        compare(&before, &answers(&cluster, strategy), strategy);
        assert_eq!(cluster.scalar(strategy, UNLOGGED).unwrap(), "100");
        check(&cluster, strategy, strategy);
    }
    // A crash before the next checkpoint: the files of one copy are in WAL, those of the other are not.
    cluster.kill9().unwrap();
    cluster.start().unwrap();
    for strategy in ["wal_log", "file_copy"] {
        compare(&before, &answers(&cluster, strategy), strategy);
    }
    go_on(&cluster, "wal_log");
    let after = answers(&cluster, "wal_log");
    assert!(after != before);
    compare(&before, &answers(&cluster, DATABASE), "the template");
    go_on(&cluster, "file_copy");
    go_on(&cluster, DATABASE);
    let restart = |cluster: &mut Cluster| {
        cluster.kill9().unwrap();
        cluster.start().unwrap();
    };
    restart(&mut cluster);
    for database in [DATABASE, "wal_log", "file_copy"] {
        compare(&after, &answers(&cluster, database), database);
        check(&cluster, database, database);
    }
    // The copies need nothing of the template.
    let drop_template = format!("DROP DATABASE {DATABASE}");
    cluster.psql("postgres", &drop_template).unwrap();
    restart(&mut cluster);
    compare(
        &after,
        &answers(&cluster, "wal_log"),
        "without the template",
    );
}

/// Returns SQLSTATE and message of a statement that must fail.
fn refusal(client: &mut Client, statement: &str) -> (String, String) {
    let error = client.batch_execute(statement).unwrap_err();
    let error = error.as_db_error().unwrap();
    (error.code().code().to_owned(), error.message().to_owned())
}

#[test]
fn rows_in_object_storage_stay_with_the_template() {
    let cluster = Cluster::builder("template_remote").start().unwrap();
    tables::fill(&cluster);
    copy(&cluster, "without_rows", "wal_log");
    let objects = Objects::default();
    tables::fill_far(&cluster, DATABASE, &objects);
    let far = {
        let _supplier = Supplier::start(&cluster, DATABASE, &objects);
        tables::far_answers(&cluster, DATABASE)
    };
    copy(&cluster, "with_rows", "wal_log");
    let _supplier = Supplier::start(&cluster, DATABASE, &objects);
    compare(
        &far,
        &tables::far_answers(&cluster, DATABASE),
        "the template",
    );

    // What the copy has in object storage belongs to the template, which may delete it.
    let mut client = cluster.connect("with_rows").unwrap();
    let (code, message) = refusal(&mut client, "SELECT sum(v + 0) FROM far");
    assert_eq!(code, "55000");
    assert!(
        message.contains("that this one was copied from"),
        "{message}"
    );
    client
        .batch_execute(
            "CREATE TABLE near (ts timestamptz, v int) USING lanes WITH (hot = '1 day'); \
             INSERT INTO near SELECT '2020-01-01', g FROM generate_series(1, 1000) g",
        )
        .unwrap();
    client.batch_execute("SELECT lanes.seal('near')").unwrap();
    let own = Objects::default();
    // Nothing is due, so nothing is uploaded in vain.
    assert_eq!(own.offload(&mut client).unwrap(), 0);
    let refused = own.offload_table(&mut client, "near").unwrap_err();
    let refused = refused.as_db_error().unwrap();
    assert!(refused.message().contains("cannot offload"), "{refused}");
    // Without such rows it offloads under a scope of its own.
    client.batch_execute("DROP TABLE far").unwrap();
    let _own_supplier = Supplier::start(&cluster, "with_rows", &own);
    assert_eq!(own.offload(&mut client).unwrap(), 1);
    let sum = client
        .query_one("SELECT sum(v + 0) FROM near", &[])
        .unwrap();
    assert_eq!(sum.get::<_, i64>(0), 500_500);

    // A copy that never had any is like any other database.
    let own = Objects::default();
    tables::fill_far(&cluster, "without_rows", &own);
    let _own_supplier = Supplier::start(&cluster, "without_rows", &own);
    compare(
        &far[..2],
        &tables::far_answers(&cluster, "without_rows")[..2],
        "a copy",
    );
    let scope = |database| {
        cluster
            .scalar(database, "SELECT lanes.object_scope()")
            .unwrap()
    };
    assert_ne!(scope("without_rows"), scope(DATABASE));
    assert_ne!(scope("without_rows"), scope("with_rows"));
}
