//! The gateway program offloads and recalls segments, over PostgreSQL's protocol and with a real
//! store: a directory, and a bucket of MinIO. In this file the database is PostgreSQL without the
//! extension but with the SQL contract in `contract.sql`, so that a failure is the gateway's. In the
//! modules it has the extension.
//!
//! | module | contents |
//! |---|---|
//! | [`world`] | a cluster with the extension, its gateway and its store |
//! | [`kills`] | kills of the gateway, of its session and of the cluster |
//! | [`outages`] | a store that fails, is slow or is full |
//! | [`owners`] | which gateway may write to a store |

mod kills;
mod outages;
mod owners;
mod world;

use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::provision::{DATABASE, GATEWAY, Passwords};
use lanes_support::store::Store;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A timeout that suffices on any machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Starts a gateway of the cluster. It never becomes ready, because the database has no series.
fn start(cluster: &Cluster, passwords: &Passwords, name: &str, store: &Store) -> Gateway {
    start_with(cluster, passwords, name, store, &[])
}

/// Starts a gateway with additional settings.
fn start_with(
    cluster: &Cluster,
    passwords: &Passwords,
    name: &str,
    store: &Store,
    more: &[(&str, &str)],
) -> Gateway {
    let settings = Settings::for_test(name, cluster, passwords)
        .unwrap()
        .environment("LANES_GATEWAY_OBJECTS_INTERVAL", "100ms")
        .environment("LANES_GATEWAY_OBJECTS_ORPHAN_AGE", "60s");
    let settings = more.iter().fold(settings, |settings, (name, value)| {
        settings.environment(name, value)
    });
    let mut gateway = Gateway::new(store.configure(settings));
    gateway.start_again().unwrap();
    gateway
}

fn wait_for_state(gateway: &Gateway, state: &str) {
    let line = format!("lanes_gateway_objects_state{{state=\"{state}\"}} 1");
    wait_for(&line, || {
        let metrics = gateway.get("/metrics");
        metrics.is_ok_and(|metrics| metrics.body.contains(&line))
    });
}

/// Returns a metric of a gateway, summed over all labels.
fn metric(gateway: &Gateway, name: &str) -> f64 {
    let Ok(metrics) = gateway.get("/metrics") else {
        return 0.0;
    };
    let lines = metrics.body.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter(|line| line.split([' ', '{']).next() == Some(name))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

fn whole_way(name: &str, store: &Store) {
    let cluster = Cluster::builder(name).without_extension().start().unwrap();
    let passwords = Passwords::generate();
    let role = format!(
        "CREATE ROLE {GATEWAY} LOGIN PASSWORD '{}'",
        passwords.gateway
    );
    cluster.psql("postgres", &role).unwrap();
    let database = format!("CREATE DATABASE {DATABASE}");
    cluster.psql("postgres", &database).unwrap();
    let sql = |sql: &str| cluster.psql(DATABASE, sql).unwrap();
    let count = |table: &str| {
        let query = format!("SELECT count(*)::text FROM lanes.{table}");
        cluster
            .scalar(DATABASE, &query)
            .unwrap()
            .parse::<usize>()
            .unwrap()
    };
    let remote = || count("fake_segments WHERE remote AND image IS NULL");

    let mut first = start(&cluster, &passwords, "first", store);
    wait_for_state(&first, "unsupported");
    first.stop().unwrap();
    sql(include_str!("contract.sql"));
    sql("SELECT lanes.fake_seal(p, 4, 200000) FROM generate_series(1, 3) p");
    first.start_again().unwrap();
    wait_for("the first parts are remote", || remote() == 12);
    wait_for_state(&first, "working");

    // Everything is requested, one object twice, and one that does not exist.
    sql(
        "INSERT INTO lanes.fake_wanted SELECT key FROM lanes.fake_segments; INSERT INTO lanes.fake_wanted VALUES ('1/2/3/4/5')",
    );
    let answered = || count("fake_wanted WHERE digest IS NOT NULL OR reason IS NOT NULL");
    wait_for("every request is answered", || answered() == 13);
    assert_eq!(
        count("fake_wanted JOIN lanes.fake_segments USING (key, digest)"),
        12
    );
    assert_eq!(
        count("fake_wanted WHERE reason LIKE '%does not exist in object storage%'"),
        1
    );

    let counted = |name: &str| metric(&first, &format!("lanes_gateway_objects_{name}"));
    let (puts, put_bytes) = (counted("puts_total"), counted("put_bytes_total"));
    assert_eq!(puts, 12.0);
    wait_for("all parts are counted", || {
        counted("parts_offloaded_total") == 3.0
    });
    assert!(put_bytes >= 12.0 * 200_000.0, "{put_bytes} bytes were put");
    // They are counted once the database has them. One may have been requested twice.
    wait_for("all recalls are counted", || {
        counted("recalls_total") >= 13.0 && counted("recall_bytes_total") >= put_bytes
    });

    // A second gateway takes over; the first one continues without the store.
    let mut second = start(&cluster, &passwords, "second", store);
    wait_for_state(&second, "working");
    wait_for_state(&first, "fenced");
    sql("SELECT lanes.fake_seal(p, 2, 3000000) FROM generate_series(11, 12) p");
    wait_for("the second gateway's parts are remote", || remote() == 16);
    assert_eq!(first.status().unwrap()["objects"], "fenced");
    wait_for("the object is counted", || {
        metric(&first, "lanes_gateway_objects_fenced_total") == 1.0
    });

    // Durable data survives the kill of both.
    first.kill9().unwrap();
    second.kill9().unwrap();
    sql(
        "TRUNCATE lanes.fake_wanted; INSERT INTO lanes.fake_wanted SELECT key FROM lanes.fake_segments",
    );
    let mut third = start(&cluster, &passwords, "third", store);
    wait_for("a third gateway recalls everything", || answered() == 16);
    assert_eq!(
        count("fake_wanted JOIN lanes.fake_segments USING (key, digest)"),
        16
    );
    wait_for_state(&third, "working");
    assert!(third.stop().unwrap().unwrap().success());
}

#[test]
fn segments_are_offloaded_and_recalled_in_a_directory() {
    let store = Store::directory("objects");
    whole_way("objects", &store);
    let (folders, files) = assert_private(store.folder().unwrap());
    assert!(folders > 1 && files > 1, "{folders} {files}");
}

/// Fails if an account other than the owner can read a folder or anything below it. Returns the
/// numbers of folders and files.
fn assert_private(folder: &Path) -> (usize, usize) {
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder), 0o700, "{}", folder.display());
    let mut found = (1, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let below = assert_private(&path);
            found = (found.0 + below.0, found.1 + below.1);
        } else {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            found.1 += 1;
        }
    }
    found
}

#[test]
fn segments_are_offloaded_and_recalled_on_minio() {
    whole_way("objects_s3", &Store::minio().unwrap());
}
