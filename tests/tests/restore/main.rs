//! A database that is destroyed under load, and restored from object storage alone.

use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::place;
use lanes_support::process::{run, run_to_output};
use lanes_support::provision::{DATABASE, Passwords, provision};
use lanes_support::remote_write::{Series, body};
use lanes_support::store::Store;
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A timeout that suffices on any machine.
const PATIENCE: Duration = Duration::from_secs(120);
const NOW_MS: i64 = 1_767_225_600_000;

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
    let gateway = Arc::new(Gateway::start(settings).unwrap());
    wait_for("level object is acknowledged", || {
        event(&gateway, "near", "{\"n\": 0, \"v\": 0.5}", Some("first")) == 204
    });
    // Rows that are not inserted directly into lanes are refused with the table's name.
    for table in ["checked", "fleeting"] {
        assert_eq!(event(&gateway, table, "{\"n\": 1}", None), 400, "{table}");
    }

    let is_over = Arc::new(AtomicBool::new(false));
    let next = Arc::new(AtomicI64::new(1));
    let acknowledged: Arc<[Mutex<BTreeSet<i64>>; 3]> = Arc::default();
    let senders: Vec<_> = (0..6)
        .map(|sender| {
            let (gateway, is_over, next, acknowledged) = (
                Arc::clone(&gateway),
                Arc::clone(&is_over),
                Arc::clone(&next),
                Arc::clone(&acknowledged),
            );
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let kind = sender % 3;
                    let status = match kind {
                        0 => event(&gateway, "far", &far(n), Some(&n.to_string())),
                        1 => event(
                            &gateway,
                            "near",
                            &format!("{{\"n\": {n}, \"v\": 1.5}}"),
                            None,
                        ),
                        _ => {
                            let label = (n % 50).to_string();
                            let sample = (NOW_MS + n, n as f64);
                            let series = Series::new("restored", &[("n", &label)], vec![sample]);
                            gateway
                                .remote_write(&body(&[series]), Some("object"))
                                .map_or(0, |answer| answer.status)
                        }
                    };
                    if status == 204 {
                        acknowledged[kind].lock().unwrap().insert(n);
                    }
                }
            })
        })
        .collect();
    seal_until(&cluster, &gateway, "objects_log_released_total", 1.0);
    seal_until(&cluster, &gateway, "objects_parts_offloaded_total", 3.0);
    destroy(&mut cluster);
    std::thread::sleep(Duration::from_millis(300));
    is_over.store(true, Ordering::Relaxed);
    for sender in senders {
        sender.join().unwrap();
    }
    let Ok(mut gateway) = Arc::try_unwrap(gateway) else {
        panic!("the gateway is no longer shared")
    };
    gateway.kill9().unwrap();

    let second = Cluster::builder(&format!("{name}_second"))
        .distinct()
        .start()
        .unwrap();
    let told = run(&mut restore(store, &second, "postgres", &["--dry-run"])).unwrap();
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
    let who = [
        "--gateway-role",
        "New Gateway",
        "--reader-role",
        "dashboards",
    ];
    let told = run_to_output(&mut restore(store, &second, "postgres", &who)).unwrap();
    let reason = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(
        !told.status.success() && reason.contains("role New Gateway does not exist"),
        "{reason}"
    );
    assert_eq!(second.scalar("postgres", tables).unwrap(), "0");
    let roles = "CREATE ROLE \"New Gateway\"; CREATE ROLE dashboards";
    second.psql("postgres", roles).unwrap();
    let told = run_to_output(&mut restore(store, &second, "postgres", &who)).unwrap();
    assert!(told.status.success(), "{told:?}");
    let next = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(next.contains("postgres.connection"), "{next}");
    let as_gateway = "SET ROLE \"New Gateway\"; SELECT lanes.registry_identity() IS NOT NULL; \
                      SELECT lanes.forget_requests(interval '1 day', 1)";
    second.psql("postgres", as_gateway).unwrap();
    let as_reader = "SET ROLE dashboards; SELECT count(*) FROM metrics.restored";
    second.psql("postgres", as_reader).unwrap();
    // What cannot be restored is reported.
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
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
    let [far, near, samples] = &*acknowledged;
    let restored = numbers(&second, "SELECT n FROM far");
    assert_all("far", &far.lock().unwrap(), &restored);
    // These rows were offloaded with the others, and are older than two changes of columns.
    let sql: BTreeSet<i64> = (-1000..=-1).collect();
    assert_all("SQL", &sql, &restored);
    let restored = numbers(&second, "SELECT n FROM near");
    assert_all("near", &near.lock().unwrap(), &restored);
    let restored = numbers(
        &second,
        "SELECT value::int8 FROM metrics.restored WHERE (value::int8 % 50)::text = labels->>'n'
            AND ts = to_timestamp(1767225600) + value * interval '1 ms'",
    );
    assert_all("samples", &samples.lock().unwrap(), &restored);
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

    // A second restore is refused.
    let again = run_to_output(&mut restore(store, &second, "postgres", &[])).unwrap();
    let told = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(
        !again.status.success() && told.contains("not empty"),
        "{told}"
    );
}

/// Entries of the log are older than changes of their table's columns. The privileges to read them
/// are restored too.
#[test]
fn rows_are_restored_after_changes_of_columns() {
    let store = Store::directory("restore_changed");
    let (mut cluster, settings) = begin("restore_changed_first", &store);
    let sql = |sql: &str| cluster.psql(DATABASE, sql).unwrap();
    sql(
        "CREATE TABLE ticks (n int8, gone text, v float8, id bigserial) USING lanes;
         CREATE TABLE all_gone (n int8, kept int8) USING lanes;
         CREATE TABLE retyped (n int4, v float8) USING lanes;
         CREATE TABLE numbered (n int8, id int8 GENERATED BY DEFAULT AS IDENTITY (START 1000 INCREMENT 10)) USING lanes;
         CREATE TABLE widened (dropped int4, n int4, v float8, ts timestamptz) USING lanes WITH (hot = '1 day');
         ALTER TABLE widened DROP COLUMN dropped;
         INSERT INTO widened SELECT n, n, '2020-01-01' FROM generate_series(1, 5) n;
         CREATE TABLE rewritten (n int4, ts timestamptz) USING lanes WITH (hot = '1 day');
         INSERT INTO rewritten SELECT n, '2020-01-01' FROM generate_series(1, 3) n;
         CREATE TABLE grown (n int4) USING lanes;
         CREATE TABLE shortened (n text) USING lanes;
         CREATE TABLE unfit (n text) USING lanes;
         CREATE TABLE opened (n int8) USING lanes;
         CREATE ROLE too_curious; GRANT SELECT ON opened TO too_curious;
         CREATE TABLE guarded (n int8, ts timestamptz) USING lanes WITH (hot = '1 day');
         CREATE FUNCTION elsewhere() RETURNS int8 LANGUAGE sql AS 'SELECT 7::int8';
         CREATE POLICY of_odd ON guarded TO \"odd \"\"reader\" USING (n > 1);
         CREATE POLICY never_three ON guarded AS RESTRICTIVE FOR SELECT USING (n <> 3);
         ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
         GRANT SELECT ON guarded TO PUBLIC;
         INSERT INTO guarded SELECT n, '2020-01-01' FROM generate_series(1, 5) n;
         GRANT INSERT ON grown, ticks, all_gone, retyped, unfit, shortened, opened, numbered TO lanes_gateway",
    );
    let mut gateway = Gateway::start(settings).unwrap();
    // The gateway may notice a change a moment later.
    let send = |table: &str, json: &str| {
        wait_for(json, || event(&gateway, table, json, None) == 204);
    };
    send(
        "ticks",
        "{\"n\": 1, \"gone\": \"a\", \"v\": 0.5, \"id\": 41}",
    );
    send("all_gone", "{\"n\": 1}");
    send("retyped", "{\"n\": 1, \"v\": 0.5}");
    send("unfit", "{\"n\": \"none\"}");
    send("shortened", "{\"n\": \"long\"}");
    send("opened", "{\"n\": 1}");
    send("numbered", "{\"n\": 1, \"id\": 1010}");
    send("grown", "{\"n\": 1}");
    sql("ALTER TABLE ticks RENAME n TO m; ALTER TABLE ticks RENAME v TO n; ALTER TABLE ticks DROP COLUMN gone;
         ALTER TABLE all_gone DROP COLUMN n;
         ALTER TABLE retyped ALTER n TYPE text;
         ALTER TABLE unfit ALTER n TYPE int8 USING nullif(n, 'none')::int8;
         ALTER TABLE shortened ALTER n TYPE varchar(3) USING left(n, 3);
         ALTER TABLE all_gone ADD COLUMN later uuid NOT NULL DEFAULT gen_random_uuid(); ALTER TABLE all_gone ALTER later DROP DEFAULT");
    send("retyped", "{\"n\": \"two\", \"v\": 1.5}");
    send("ticks", "{\"m\": 2, \"n\": 1.5, \"id\": 42}");
    send(
        "all_gone",
        "{\"kept\": 2, \"later\": \"00000000-0000-0000-0000-000000000000\"}",
    );
    // None of these changes affects the table's own row in the catalog.
    sql("ALTER TABLE ticks RENAME m TO number; ALTER TABLE ticks ALTER number SET DEFAULT elsewhere();
         GRANT SELECT (number), UPDATE (n) ON ticks TO \"odd \"\"reader\"");
    send("ticks", "{\"number\": 3, \"n\": 2.5, \"id\": 43}");
    cluster
        .psql(
            DATABASE,
            "SELECT lanes.seal('guarded'), lanes.seal('widened'), lanes.seal('rewritten')",
        )
        .unwrap();
    wait_for("the parts are offloaded", || {
        metric(&gateway, "objects_parts_offloaded_total") >= 3.0
    });
    // The defaults of these columns for older rows are known only until the tables are rewritten.
    sql("ALTER TABLE widened ADD COLUMN late varchar(9) DEFAULT E'be\\'f\\\\';
         ALTER TABLE rewritten ADD COLUMN late timestamptz NOT NULL DEFAULT '2020-01-01 12:00+02'; ALTER TABLE rewritten ALTER late DROP DEFAULT;
         ALTER TABLE grown ADD COLUMN late int4 DEFAULT 7");
    let shown = || {
        let mut dry = store.command(&place::gateway_program().unwrap());
        dry.args(["restore", "--dry-run", "--show-definitions", "--from"])
            .arg(store.url());
        run(&mut dry).unwrap_or_default()
    };
    wait_for("the store has the new columns", || {
        shown().matches(" ADD COLUMN late ").count() == 3
    });
    sql(
        "ALTER TABLE rewritten SET (hot = '36500 days'); ALTER TABLE grown ALTER n TYPE int8, ALTER late SET DEFAULT 8",
    );
    sql("VACUUM FULL rewritten");
    // The new types have equal widths and other bits. Rewritten rows are not offloaded yet.
    sql(
        "ALTER TABLE widened SET (hot = '36500 days'); ALTER TABLE widened ALTER v TYPE int8; ALTER TABLE widened RENAME v TO whole; ALTER TABLE widened RENAME TO broadened",
    );
    // Nothing is appended or offloaded to that table after this.
    sql("REVOKE ALL ON opened FROM too_curious; ALTER TABLE opened ENABLE ROW LEVEL SECURITY");
    wait_for("the store has the privileges", || {
        let mut dry = store.command(&place::gateway_program().unwrap());
        dry.args(["restore", "--dry-run", "--from", store.url()]);
        let told = run(&mut dry).unwrap_or_default();
        told.contains("table public.opened: row-level security")
            && told.contains("table public.broadened: 5 rows of 1 parts")
            && !shown().contains(" ADD COLUMN late ")
    });
    destroy(&mut cluster);
    gateway.kill9().unwrap();

    let second = Cluster::builder("restore_changed_second")
        .distinct()
        .start()
        .unwrap();
    let refused = run_to_output(&mut restore(&store, &second, "postgres", &[])).unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && told.contains("CREATE POLICY of_odd"),
        "{told}"
    );
    let roles = "CREATE ROLE \"odd \"\"reader\"; CREATE ROLE too_curious";
    second.psql("postgres", roles).unwrap();
    let restored = run_to_output(&mut restore(&store, &second, "postgres", &[])).unwrap();
    let told = String::from_utf8_lossy(&restored.stderr).into_owned();
    assert!(restored.status.success(), "{told}");
    assert!(told.contains("public.ticks: skipped: "), "{told}");
    let text = |sql: &str| second.scalar("postgres", sql).unwrap();
    assert_eq!(
        text("SELECT string_agg(format('%s %s %s', number, n, id), ', ' ORDER BY id) FROM ticks"),
        "1 0.5 41, 2 1.5 42, 3 2.5 43"
    );
    assert_eq!(
        text("SELECT count(*) || ' ' || string_agg(kept::text, ',') FROM all_gone"),
        "2 2"
    );
    assert_eq!(
        text("INSERT INTO numbered (n) VALUES (2) RETURNING id"),
        "1020"
    );
    assert!(
        told.contains("1 rows do not match the current types"),
        "{told}"
    );
    assert_eq!(
        text("SELECT string_agg(n || ' ' || whole, ', ' ORDER BY n) FROM broadened"),
        "1 1, 2 2, 3 3, 4 4, 5 5"
    );
    // These rows are older than a column, and from before the table was rewritten.
    assert_eq!(
        text("SELECT count(*) || ' ' || string_agg(DISTINCT late, ',') FROM broadened"),
        "5 be'f\\"
    );
    assert_eq!(
        text("SELECT count(*) || ' ' || bool_and(late = '2020-01-01 10:00+00') FROM rewritten"),
        "3 true"
    );
    assert_eq!(
        text(
            "INSERT INTO grown (n) VALUES (2); SELECT string_agg(n || ' ' || late, ', ' ORDER BY n) FROM grown"
        ),
        "1 7, 2 8"
    );
    assert_eq!(
        text("SELECT (SELECT count(*) FROM unfit) + (SELECT count(*) FROM shortened)"),
        "0"
    );
    let aside = "SELECT oid::regclass FROM pg_class WHERE relname LIKE 'lanes_unconverted%'";
    let aside = second.query("postgres", aside).unwrap();
    let kept = aside.iter().map(|row| {
        let table = row[0].as_ref().unwrap();
        text(&format!("SELECT n FROM {table}"))
    });
    assert_eq!(
        kept.collect::<BTreeSet<String>>(),
        ["long".to_owned(), "none".to_owned()].into()
    );
    assert_eq!(
        text(
            "SELECT relrowsecurity || ' ' || has_table_privilege('too_curious', oid, 'SELECT') FROM pg_class WHERE relname = 'opened'"
        ),
        "true false"
    );
    assert_eq!(
        text("SELECT string_agg(n || ' ' || v, ', ' ORDER BY v) FROM retyped"),
        "1 0.5, two 1.5"
    );
    assert_eq!(
        text("INSERT INTO ticks (number) VALUES (4) RETURNING id"),
        "44"
    );
    assert_eq!(
        text(
            "SELECT string_agg(format('%s %s %s', a.attname, has_column_privilege('odd \"reader', a.attrelid, a.attnum, 'SELECT'),
                 has_column_privilege('odd \"reader', a.attrelid, a.attnum, 'UPDATE')), ', ' ORDER BY a.attnum)
             FROM pg_attribute a WHERE a.attrelid = 'ticks'::regclass AND a.attnum > 0 AND NOT a.attisdropped"
        ),
        "number t f, n f t, id f f"
    );
    assert_eq!(
        second
            .psql(
                "postgres",
                "SET ROLE \"odd \"\"reader\"; SELECT string_agg(n::text, ',' ORDER BY n) FROM guarded"
            )
            .unwrap()
            .trim(),
        "2,4,5"
    );
}

/// Two gateways of one database and one store, both written to continuously. When the second takes
/// the store over, the first can no longer acknowledge at level `object`, and says so. When the
/// second is stopped, the first takes over again. Everything that either acknowledged is restored.
#[test]
fn rows_acknowledged_by_either_of_two_gateways_survive_the_cluster() {
    let store = Store::directory("restore_two");
    let (mut cluster, passwords) = make_tables("restore_two_first");
    let names = ["one", "two"];
    let mut gateways =
        names.map(|name| Gateway::new(settings_of(name, &cluster, &passwords, &store)));
    let mut next = 0;
    let mut acknowledged = BTreeSet::new();
    let mut send = |gateway: &Gateway| {
        next += 1;
        let status = match next % 2 {
            0 => event(gateway, "far", &far(next), Some(&next.to_string())),
            _ => event(gateway, "far", &far(next), None),
        };
        if status == 204 {
            acknowledged.insert(next);
        }
        status
    };
    let mut release = cluster.connect(DATABASE).unwrap();
    let fenced = |gateway: &Gateway| metric(gateway, "objects_fenced_total");

    gateways[0].start_again().unwrap();
    gateways[0].wait_ready().unwrap();
    wait_for("the first acknowledges", || send(&gateways[0]) == 204);
    gateways[1].start_again().unwrap();
    gateways[1].wait_ready().unwrap();
    // Requests go to both the whole time.
    wait_for("the second acknowledges, the first does not", || {
        let statuses = [0, 1].map(|which| send(&gateways[which]));
        release.execute("SELECT lanes.seal('far')", &[]).unwrap();
        statuses[0] != 204 && statuses[1] == 204
    });
    wait_for("the first reports the reason", || {
        fenced(&gateways[0]) == 1.0
    });
    assert_eq!(fenced(&gateways[1]), 0.0);
    for _ in 0..3 {
        assert_ne!(send(&gateways[0]), 204);
        wait_for("the second continues", || send(&gateways[1]) == 204);
    }
    assert_eq!(near_at_wal(&gateways[0]), 204, "other levels continue");

    gateways[1].kill9().unwrap();
    wait_for("the first acknowledges again", || send(&gateways[0]) == 204);
    gateways[1].start_again().unwrap();
    wait_for("the second acknowledges again", || {
        send(&gateways[1]) == 204
    });
    seal_until(&cluster, &gateways[1], "objects_parts_offloaded_total", 1.0);
    wait_for("the gateway continues", || send(&gateways[1]) == 204);

    destroy(&mut cluster);
    for gateway in &mut gateways {
        gateway.kill9().unwrap();
    }
    let second = Cluster::builder("restore_two_second")
        .distinct()
        .start()
        .unwrap();
    run(&mut restore(&store, &second, "postgres", &[])).unwrap();
    let restored = numbers(&second, "SELECT n FROM far");
    assert_all("far", &acknowledged, &restored);
}

/// A store that refuses everything for a while.
struct Refusal {
    begin: fn(&Store, &Gateway),
    end: fn(&Store, &Gateway),
}

/// While the store refuses, nothing is acknowledged at level `object`, and other levels continue.
/// Afterwards everything acknowledged is stored.
fn refuse_for_a_while(
    name: &str,
    store: &Store,
    settings: fn(Settings) -> Settings,
    refusal: &Refusal,
) {
    let (mut cluster, first) = begin(name, store);
    let mut gateway = Gateway::start(settings(first)).unwrap();
    let mut acknowledged = BTreeSet::new();
    let mut next = 0;
    let mut send = |gateway: &Gateway| {
        next += 1;
        let status = event(gateway, "far", &far(next), Some(&next.to_string()));
        if status == 204 {
            acknowledged.insert(next);
        }
        status
    };
    wait_for("level object is acknowledged", || send(&gateway) == 204);
    let rows = |cluster: &Cluster| -> i64 {
        let rows = cluster
            .scalar(DATABASE, "SELECT count(*) FROM near")
            .unwrap();
        rows.parse().unwrap()
    };
    for _ in 0..2 {
        (refusal.begin)(store, &gateway);
        wait_for("a row that cannot be made durable is refused", || {
            send(&gateway) == 503
        });
        assert_ne!(send(&gateway), 204);
        let before = rows(&cluster);
        assert_eq!(near_at_wal(&gateway), 204, "ingest continues");
        assert_eq!(rows(&cluster), before + 1);
        gateway.check().unwrap();
        (refusal.end)(store, &gateway);
        wait_for("level object is acknowledged again", || {
            send(&gateway) == 204
        });
        for _ in 0..20 {
            wait_for("the gateway continues", || send(&gateway) == 204);
        }
    }
    destroy(&mut cluster);
    gateway.kill9().unwrap();
    let second = Cluster::builder(&format!("{name}_second"))
        .distinct()
        .start()
        .unwrap();
    run(&mut restore(store, &second, "postgres", &[])).unwrap();
    let restored = numbers(&second, "SELECT n FROM far");
    assert_all("far", &acknowledged, &restored);
}

/// Sends one event at level `wal`.
fn near_at_wal(gateway: &Gateway) -> u16 {
    let headers = [("content-type", "application/json"), ("x-lanes-ack", "wal")];
    let json = b"{\"n\": 1, \"v\": 0.5}";
    gateway
        .post("/api/v1/events/near", &headers, json)
        .map_or(0, |answer| answer.status)
}

#[test]
fn a_file_size_limit_delays_acknowledgements_and_loses_none() {
    let refusal = Refusal {
        begin: |_, gateway| gateway.limit_files(true).unwrap(),
        end: |_, gateway| gateway.limit_files(false).unwrap(),
    };
    let store = Store::directory("limited");
    refuse_for_a_while(
        "restore_limited",
        &store,
        Settings::outliving_file_limit,
        &refusal,
    );
}

#[test]
fn a_full_disk_delays_acknowledgements_and_loses_none() {
    let refusal = Refusal {
        begin: |store, _| store.disk().unwrap().fill().unwrap(),
        end: |store, _| store.disk().unwrap().free().unwrap(),
    };
    let store = Store::small_disk("full", 16 << 20).unwrap();
    refuse_for_a_while("restore_full", &store, |settings| settings, &refusal);
}

#[test]
fn an_unresponsive_server_delays_acknowledgements_and_loses_none_on_minio() {
    let refusal = Refusal {
        begin: |store, _| store.server().unwrap().pause(true),
        end: |store, _| store.server().unwrap().pause(false),
    };
    let store = Store::minio().unwrap();
    refuse_for_a_while("restore_paused", &store, |settings| settings, &refusal);
}
