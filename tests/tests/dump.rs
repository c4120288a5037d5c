//! pg_dump and restore: a lanes table is dumped like any other, with its access method and
//! parameters. Rows stored by gateways are restored with the extension's own tables.

use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::provision::DATABASE;
use lanes_support::remote_write::{Series, body};
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
    let (settings, _) = Settings::provisioned(&cluster).unwrap();
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
             INSERT INTO parts SELECT generate_series(0, 99); \
             ALTER TABLE lanes.samples SET (hot = '6 hours', retain = '3650 days', dedup); \
             ALTER TABLE lanes.samples RESET (dedup), SET (order_by = 'ts')",
        )
        .unwrap();

    for format in ["plain", "inserts", "custom"] {
        let file = cluster.folder().join(format!("dump_{format}"));
        let (to, file) = (
            match format {
                "inserts" => "--inserts".to_owned(),
                _ => format!("--format={format}"),
            },
            file.to_string_lossy().into_owned(),
        );
        program(&cluster, "pg_dump", &[&to, "--file", &file], DATABASE);
        let database = format!("restored_{format}");
        cluster
            .psql("postgres", &format!("CREATE DATABASE {database}"))
            .unwrap();
        match format {
            "plain" | "inserts" => program(
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

#[test]
fn labels_survive_a_restore_into_another_encoding() {
    let cluster = Cluster::builder("dump_encoding").start().unwrap();
    cluster
        .psql(
            "postgres",
            "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
        )
        .unwrap();
    cluster.psql("postgres", "CREATE ROLE reader").unwrap();
    // Without the default privilege EXECUTE for PUBLIC, a reader has only what the extension
    // grants.
    cluster
        .psql(
            "latin",
            "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC; \
             CREATE EXTENSION lanes; SELECT lanes.grant_reader('reader')",
        )
        .unwrap();
    let register = "SELECT lanes.register_series(0, ARRAY[ROW('heat', \
                        ARRAY['{\"site\":\"caf' || chr(233) || '\"}', '{\"site\":\"plain\"}'])::lanes.series_run])";
    cluster.psql("latin", register).unwrap();
    let sites =
        "SET ROLE reader; SELECT ascii(right(labels->>'site', 1)) FROM lanes.series ORDER BY id";
    assert_eq!(cluster.psql("latin", sites).unwrap().trim(), "233\n110");

    let file = cluster.folder().join("latin.dump");
    let file = file.to_string_lossy().into_owned();
    program(&cluster, "pg_dump", &["--file", &file], "latin");
    cluster
        .psql("postgres", "CREATE DATABASE unicode ENCODING 'UTF8'")
        .unwrap();
    let load = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "--file", &file];
    program(&cluster, "psql", &load, "unicode");
    assert_eq!(cluster.psql("unicode", sites).unwrap().trim(), "233\n110");

    // A text that LATIN1 cannot represent is refused when it is read, and not altered.
    cluster
        .psql(
            "unicode",
            "INSERT INTO lanes.series_runs (first_id, last_id, metric, labels) \
             VALUES (3, 3, 'heat', lanes.pack_label_sets(ARRAY['{\"site\":\"' || chr(9731) || '\"}']))",
        )
        .unwrap();
    let packed = cluster
        .query(
            "unicode",
            "SELECT labels FROM lanes.series_runs WHERE first_id = 3",
        )
        .unwrap();
    let packed = packed[0][0].as_deref().unwrap();
    let unpack = format!("SELECT lanes.label_sets('{packed}')");
    let refused = cluster.psql("latin", &unpack).unwrap_err().to_string();
    assert!(refused.contains("has no equivalent"), "{refused}");
    // Bytes that are no text: invalid UTF-8, and a NUL.
    let packed = "\\x0102040902010200".to_owned();
    let unpack = |bytes| format!("SELECT lanes.label_sets('{packed}{bytes}')");
    let sets = cluster.psql("unicode", &unpack("61c3a9")).unwrap();
    assert_eq!(sets.trim(), "{a,é}");
    for bytes in ["61c341", "00c3a9"] {
        let refused = cluster.psql("unicode", &unpack(bytes)).unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("they are not text"), "{refused}");
    }
}
