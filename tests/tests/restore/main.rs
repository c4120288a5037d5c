//! A database that is destroyed under load, and restored from object storage alone.
//!
//! | module | contents |
//! |---|---|
//! | [`senders`] | senders of events and samples at level `object`, and what they got acknowledged |
//! | [`columns`] | rows that are older than changes of their table's columns |
//! | [`two_gateways`] | two gateways that share the database and the store |
//! | [`refusals`] | a store that refuses everything for a while |

mod columns;
mod refusals;
mod senders;
mod two_gateways;

use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::place;
use lanes_support::process::{run, run_to_output};
use lanes_support::provision::{DATABASE, Passwords, provision};
use lanes_support::store::Store;
use senders::Senders;
use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A timeout that suffices on any machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// `far` has rows that are offloaded as soon as they are sealed. A column of it was dropped, and
/// one was added later.
const TABLES: &str =
    "CREATE TABLE far (gone int, n int8 NOT NULL, host text, ts timestamptz) USING lanes
         WITH (order_by = 'host, n', hot = '1 day');
     INSERT INTO far SELECT g, -g, 'sql', '2020-01-01' FROM generate_series(1, 1000) g;
     ALTER TABLE far DROP COLUMN gone;
     ALTER TABLE far ADD COLUMN late text NOT NULL DEFAULT 'before';
     ALTER TABLE far ALTER COLUMN late DROP DEFAULT;
     CREATE TABLE near (n int8, v float8) USING lanes;
     CREATE TABLE checked (n int8 CHECK (n > 0)) USING lanes;
     CREATE UNLOGGED TABLE fleeting (n int8) USING lanes;
     GRANT INSERT ON far, near, checked, fleeting TO lanes_gateway;
     CREATE ROLE keeper;
     CREATE ROLE \"odd \"\"reader\";
     CREATE ROLE left_behind;
     GRANT SELECT, UPDATE (host) ON far TO \"odd \"\"reader\";
     GRANT SELECT ON far TO left_behind;
     ALTER TABLE far OWNER TO keeper";

fn begin(name: &str, store: &Store) -> (Cluster, Settings) {
    let (cluster, passwords) = make_tables(name);
    let settings = settings_of("gateway", &cluster, &passwords, store);
    (cluster, settings)
}

fn make_tables(name: &str) -> (Cluster, Passwords) {
    let cluster = Cluster::builder(name)
        .distinct()
        .setting("autovacuum", "off")
        .start()
        .unwrap();
    let passwords = Passwords::generate();
    provision(&cluster, &passwords).unwrap();
    cluster.psql(DATABASE, TABLES).unwrap();
    (cluster, passwords)
}

fn settings_of(name: &str, cluster: &Cluster, passwords: &Passwords, store: &Store) -> Settings {
    let settings = Settings::for_test(name, cluster, passwords).unwrap();
    store
        .configure(settings)
        .environment("LANES_GATEWAY_OBJECTS_INTERVAL", "100ms")
        .environment("LANES_GATEWAY_SELF_SCRAPE_INTERVAL", "0")
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the value of a metric.
fn metric(gateway: &Gateway, name: &str) -> f64 {
    let text = gateway.get("/metrics").unwrap().body;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("lanes_gateway_{name} ")));
    line.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

/// Seals until a metric reaches a value.
fn seal_until(cluster: &Cluster, gateway: &Gateway, name: &str, number: f64) {
    let mut client = cluster.connect(DATABASE).unwrap();
    wait_for(name, || {
        client.execute("SELECT lanes.seal('far')", &[]).unwrap();
        metric(gateway, name) >= number
    });
}

/// Sends one event at level `object`, with or without a key.
fn event(gateway: &Gateway, table: &str, json: &str, key: Option<&str>) -> u16 {
    let mut headers = vec![
        ("content-type", "application/json"),
        ("x-lanes-ack", "object"),
    ];
    headers.extend(key.map(|key| ("idempotency-key", key)));
    let path = format!("/api/v1/events/{table}");
    gateway
        .post(&path, &headers, json.as_bytes())
        .map_or(0, |answer| answer.status)
}

/// Sends one event at level `wal`.
fn near_at_wal(gateway: &Gateway) -> u16 {
    let headers = [("content-type", "application/json"), ("x-lanes-ack", "wal")];
    let json = b"{\"n\": 1, \"v\": 0.5}";
    gateway
        .post("/api/v1/events/near", &headers, json)
        .map_or(0, |answer| answer.status)
}

fn far(n: i64) -> String {
    format!(
        "{{\"n\": {n}, \"host\": \"h{}\", \"ts\": \"2020-01-02T00:00:00Z\", \"late\": \"after\"}}",
        n % 3
    )
}

fn restore(store: &Store, cluster: &Cluster, database: &str, more: &[&str]) -> Command {
    let mut command = store.command(&place::gateway_program().unwrap());
    command
        .args(["restore", "--trust-store", "--from", store.url(), "--to"])
        .arg(cluster.connection_string(database))
        .args(more);
    command
}

/// Returns the numbers in a table. Fails if one occurs twice.
fn numbers(cluster: &Cluster, query: &str) -> BTreeSet<i64> {
    let rows = cluster.query("postgres", query).unwrap();
    let numbers: Vec<i64> = rows
        .iter()
        .map(|row| row[0].as_ref().unwrap().parse().unwrap())
        .collect();
    let set: BTreeSet<i64> = numbers.iter().copied().collect();
    assert_eq!(set.len(), numbers.len(), "rows occur twice: {query}");
    set
}

fn assert_all(what: &str, acknowledged: &BTreeSet<i64>, restored: &BTreeSet<i64>) {
    let lost: Vec<_> = acknowledged.difference(restored).take(10).collect();
    assert!(!acknowledged.is_empty(), "{what}: nothing was acknowledged");
    assert!(
        lost.is_empty(),
        "{what}: of {} acknowledged rows these are lost: {lost:?} …",
        acknowledged.len()
    );
}

fn destroy(cluster: &mut Cluster) {
    cluster.kill9().unwrap();
    std::fs::remove_dir_all(cluster.data()).unwrap();
}

#[test]
fn acknowledged_rows_survive_their_cluster() {
    outlive_the_cluster("restore", &Store::directory("restore"));
}

#[test]
fn acknowledged_rows_survive_their_cluster_on_minio() {
    outlive_the_cluster("restore_s3", &Store::minio().unwrap());
}

fn outlive_the_cluster(name: &str, store: &Store) {
    let (mut cluster, settings) = begin(&format!("{name}_first"), store);
    let gateway = Gateway::start(settings).unwrap();
    wait_for("level object is acknowledged", || {
        event(&gateway, "near", "{\"n\": 0, \"v\": 0.5}", Some("first")) == 204
    });
    // Rows that are not inserted directly into lanes are refused with the table's name.
    for table in ["checked", "fleeting"] {
        assert_eq!(event(&gateway, table, "{\"n\": 1}", None), 400, "{table}");
    }
    let senders = Senders::start(gateway);
    let gateway = senders.gateway();
    seal_until(&cluster, gateway, "objects_log_released_total", 1.0);
    seal_until(&cluster, gateway, "objects_parts_offloaded_total", 3.0);
    destroy(&mut cluster);
    std::thread::sleep(Duration::from_millis(300));
    let (mut gateway, acknowledged) = senders.stop();
    gateway.kill9().unwrap();

    let second = Cluster::builder(&format!("{name}_second"))
        .distinct()
        .start()
        .unwrap();
    check_refusals(store, &second);
    let restored = run_to_output(&mut restore(store, &second, "postgres", &ROLES)).unwrap();
    assert!(restored.status.success(), "{restored:?}");
    check_privileges(&second, &restored);
    check_rows(&second, &acknowledged);

    // A second restore is refused.
    let again = run_to_output(&mut restore(store, &second, "postgres", &[])).unwrap();
    let told = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(
        !again.status.success() && told.contains("not empty"),
        "{told}"
    );
}

/// The roles of the restored database, which have other names than the destroyed one's.
const ROLES: [&str; 4] = [
    "--gateway-role",
    "New Gateway",
    "--reader-role",
    "dashboards",
];

/// Checks that a restore creates nothing without an option for it, without the roles that it needs,
/// and in a dry run. Creates the roles.
fn check_refusals(store: &Store, second: &Cluster) {
    let told = run(&mut restore(store, second, "postgres", &["--dry-run"])).unwrap();
    assert!(told.contains("table public.far: "), "{told}");
    let tables = "SELECT count(*) FROM pg_class WHERE relname = 'far'";
    assert_eq!(second.scalar("postgres", tables).unwrap(), "0");
    let roles = "CREATE ROLE keeper; CREATE ROLE \"odd \"\"reader\"";
    second.psql("postgres", roles).unwrap();
    // Statements from the store are executed only with an option, and shown before.
    let mut careful = store.command(&place::gateway_program().unwrap());
    careful
        .args([
            "restore",
            "--show-definitions",
            "--from",
            store.url(),
            "--to",
        ])
        .arg(second.connection_string("postgres"));
    let careful = run_to_output(&mut careful).unwrap();
    let shown = String::from_utf8_lossy(&careful.stdout).into_owned();
    for statement in [
        "CREATE TABLE public.far (",
        "GRANT SELECT ON public.far TO left_behind;",
    ] {
        assert!(shown.contains(statement), "{shown}");
    }
    let reason = String::from_utf8_lossy(&careful.stderr).into_owned();
    assert!(!careful.status.success(), "{shown}");
    for words in [
        "--trust-store",
        "public.far",
        "public.near",
        "role postgres",
    ] {
        assert!(reason.contains(words), "{reason}");
    }
    assert_eq!(second.scalar("postgres", tables).unwrap(), "0");
    let told = run_to_output(&mut restore(store, second, "postgres", &ROLES)).unwrap();
    let reason = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(
        !told.status.success() && reason.contains("role New Gateway does not exist"),
        "{reason}"
    );
    assert_eq!(second.scalar("postgres", tables).unwrap(), "0");
    let roles = "CREATE ROLE \"New Gateway\"; CREATE ROLE dashboards";
    second.psql("postgres", roles).unwrap();
}

/// Checks the privileges of the restored database, and the report of what was not restored.
fn check_privileges(second: &Cluster, restored: &Output) {
    let next = String::from_utf8_lossy(&restored.stdout).into_owned();
    assert!(next.contains("postgres.connection"), "{next}");
    let as_gateway = "SET ROLE \"New Gateway\"; SELECT lanes.registry_identity() IS NOT NULL; \
                      SELECT lanes.forget_requests(interval '1 day', 1)";
    second.psql("postgres", as_gateway).unwrap();
    let as_reader = "SET ROLE dashboards; SELECT count(*) FROM metrics.restored";
    second.psql("postgres", as_reader).unwrap();
    // What cannot be restored is reported.
    let told = String::from_utf8_lossy(&restored.stderr).into_owned();
    assert!(told.contains("role left_behind does not exist"), "{told}");
    let rights =
        "SELECT relowner::regrole || ' ' || has_table_privilege('odd \"reader', oid, 'SELECT')
            || has_column_privilege('odd \"reader', oid, 'host', 'UPDATE')
            || has_column_privilege('odd \"reader', oid, 'n', 'UPDATE')
        FROM pg_class WHERE relname = 'far'";
    assert_eq!(
        second.scalar("postgres", rights).unwrap(),
        "keeper truetruefalse"
    );
}

/// Checks that every acknowledged row is restored, and the rows and parameters of the table `far`.
fn check_rows(second: &Cluster, acknowledged: &[BTreeSet<i64>; 3]) {
    let [far, near, samples] = acknowledged;
    let restored = numbers(second, "SELECT n FROM far");
    assert_all("far", far, &restored);
    // These rows were offloaded with the others, and are older than two changes of columns.
    let sql: BTreeSet<i64> = (-1000..=-1).collect();
    assert_all("SQL", &sql, &restored);
    let restored = numbers(second, "SELECT n FROM near");
    assert_all("near", near, &restored);
    let restored = numbers(
        second,
        "SELECT value::int8 FROM metrics.restored WHERE (value::int8 % 50)::text = labels->>'n'
            AND ts = to_timestamp(1767225600) + value * interval '1 ms'",
    );
    assert_all("samples", samples, &restored);
    let late = "SELECT string_agg(DISTINCT late || (n > 0)::text, ',' ORDER BY late || (n > 0)::text) FROM far";
    assert_eq!(
        second.scalar("postgres", late).unwrap(),
        "aftertrue,beforefalse"
    );
    let options = "SELECT reloptions::text FROM pg_class WHERE relname = 'far'";
    assert_eq!(
        second.scalar("postgres", options).unwrap(),
        "{\"order_by=host, n\",\"hot=1 day\"}"
    );
}
