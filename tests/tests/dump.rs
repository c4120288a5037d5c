//! pg_dump and restore: a lanes table is dumped like any other, its access method and parameters with it, and what gateways
//! stored comes back with the extension's own tables.

use lanes_tests::cluster::Cluster;
use lanes_tests::gateway::{Gateway, Settings};
use lanes_tests::provision::{DATABASE, Passwords, provision};
use lanes_tests::remote_write::{Series, body};
use std::process::Command;

const NOW_MS: i64 = 1_767_225_600_000;

fn program(cluster: &Cluster, name: &str, arguments: &[&str], database: &str) -> String {
    let output = Command::new(cluster.programs().join(name))
        .args(arguments)
        .arg("--dbname")
        .arg(cluster.connection_string(database))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{name}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_dump_restores_tables_parameters_and_samples() {
    let cluster = Cluster::builder("dump").start().unwrap();
    let passwords = Passwords::generate();
    provision(&cluster, &passwords).unwrap();
    let settings = Settings::for_test("gateway", &cluster, &passwords)
        .unwrap()
        .environment("LANES_GATEWAY_SELF_SCRAPE_INTERVAL", "0");
    let gateway = Gateway::start(settings).unwrap();
    let series: Vec<Series> = (0..20)
        .map(|number| {
            let instance = number.to_string();
            let samples = (0..50).map(|step| (NOW_MS + step, number as f64)).collect();
            Series::new("dumped", &[("instance", &instance)], samples)
        })
        .collect();
    assert_eq!(
        gateway.remote_write(&body(&series), None).unwrap().status,
        204
    );
    drop(gateway);
    cluster
        .psql(
            DATABASE,
            "CREATE TABLE mine (series int, ts timestamptz, v text) USING lanes WITH (order_by = 'series, ts'); \
             INSERT INTO mine SELECT i % 5, timestamptz '2026-01-01' + i * interval '1 s', NULLIF('v' || i % 7, 'v3') FROM generate_series(1, 5000) i; \
             CREATE TABLE parts (k int) PARTITION BY RANGE (k); \
             CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (100) USING lanes; \
             INSERT INTO parts SELECT generate_series(0, 99)",
        )
        .unwrap();

    for format in ["plain", "custom"] {
        let file = cluster.folder().join(format!("dump_{format}"));
        let (to, file) = (
            format!("--format={format}"),
            file.to_string_lossy().into_owned(),
        );
        program(&cluster, "pg_dump", &[&to, "--file", &file], DATABASE);
        let database = format!("restored_{format}");
        cluster
            .psql("postgres", &format!("CREATE DATABASE {database}"))
            .unwrap();
        match format {
            "plain" => program(
                &cluster,
                "psql",
                &["-X", "-q", "-v", "ON_ERROR_STOP=1", "--file", &file],
                &database,
            ),
            _ => program(
                &cluster,
                "pg_restore",
                &["--exit-on-error", &file],
                &database,
            ),
        };
        for query in [
            "SELECT * FROM mine ORDER BY ts",
            "SELECT k FROM parts ORDER BY k",
            "SELECT ts, series, value FROM lanes.samples ORDER BY series, ts",
            "SELECT id, metric, labels::text, registered_at FROM lanes.series ORDER BY id",
            "SELECT * FROM lanes.series_runs ORDER BY first_id",
            "SELECT next_id FROM lanes.registry",
            "SELECT count(*), sum(value) FROM metrics.dumped",
            "SELECT c.relname, a.amname, c.reloptions FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'lanes' ORDER BY 1",
        ] {
            let (before, after) = (
                cluster.query(DATABASE, query).unwrap(),
                cluster.query(&database, query).unwrap(),
            );
            assert!(!before.is_empty(), "{query}");
            assert_eq!(before, after, "{format}: {query}");
        }
    }
}
