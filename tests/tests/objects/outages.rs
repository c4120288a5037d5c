//! The gateway program with the extension. A kill at any moment loses no rows and leaves no object
//! for ever. A store that refuses, is slow or is damaged only affects what needs it.

use super::{PATIENCE, metric, start_with, wait_for, wait_for_state};
use lanes_support::budget::Budget;
use lanes_support::cluster::Cluster;
use lanes_support::gateway::Gateway;
use lanes_support::objects::forget_recalled;
use lanes_support::place;
use lanes_support::process::{Signal, run_to_output, send};
use lanes_support::provision::{DATABASE, GATEWAY, Passwords, provision};
use lanes_support::remote_write::{Series, body};
use lanes_support::seed::seeded;
use lanes_support::store::Store;
use postgres::Client;
use rand::RngExt;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The number of rows that are added at a time, all of them old enough to be offloaded at once.
const ROWS: i64 = 20_000;
/// The number of kills.
const KILLS: Budget = Budget { short: 4, long: 10 };
/// The number of kills with MinIO as the store.
const KILLS_ON_MINIO: Budget = Budget { short: 2, long: 5 };

pub(super) struct World {
    pub(super) cluster: Cluster,
    pub(super) passwords: Passwords,
    name: &'static str,
    pub(super) store: Store,
    /// The number of committed rows.
    rows: i64,
}

impl World {
    pub(super) fn new(name: &'static str, store: Store) -> World {
        let cluster = Cluster::builder(name)
            .setting("autovacuum", "off")
            .setting("lanes.seal_naptime", "1")
            .setting("lanes.seal_rows", "1")
            // The arena is small, so queries need offloaded segments.
            .setting("lanes.arena_size", "1MB")
            .start()
            .unwrap();
        let passwords = Passwords::generate();
        provision(&cluster, &passwords).unwrap();
        cluster
            .psql(
                DATABASE,
                "CREATE TABLE far (host int, ts timestamptz, v int8) USING lanes WITH (order_by = 'host, ts', hot = '1 day')",
            )
            .unwrap();
        World {
            cluster,
            passwords,
            name,
            store,
            rows: 0,
        }
    }

    pub(super) fn gateway(&self) -> Gateway {
        self.gateway_with(&[])
    }

    /// Starts a gateway with additional settings.
    fn gateway_with(&self, more: &[(&str, &str)]) -> Gateway {
        let gateway = start_with(&self.cluster, &self.passwords, self.name, &self.store, more);
        wait_for_state(&gateway, "working");
        gateway
    }

    fn client(&self) -> Client {
        self.cluster.connect(DATABASE).unwrap()
    }

    /// Adds rows, which the background worker seals.
    pub(super) fn grow(&mut self) {
        let mut client = self.client();
        let insert = format!(
            "INSERT INTO far SELECT g % 10, '2020-01-01 00:00+00'::timestamptz + g * interval '1 s', g \
             FROM generate_series({}, {}) g",
            self.rows + 1,
            self.rows + ROWS
        );
        client.batch_execute(&insert).unwrap();
        self.rows += ROWS;
    }

    /// Fails unless every row is present once.
    pub(super) fn check(&self, moment: &str) {
        let row = self
            .client()
            .query_one(
                "SELECT count(*), sum(v)::int8, count(DISTINCT v) FROM far",
                &[],
            )
            .unwrap_or_else(|error| panic!("{moment}: {error:?}"));
        let found: (i64, Option<i64>, i64) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(
            found,
            (self.rows, Some(self.rows * (self.rows + 1) / 2), self.rows),
            "{moment}"
        );
    }

    fn number(&self, sql: &str) -> i64 {
        self.client().query_one(sql, &[]).unwrap().get(0)
    }

    /// Returns the number of segments that a query of all rows recalls, and how many of these are
    /// in the cold cache.
    fn recalled(&self) -> (i64, i64) {
        let plan =
            "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT sum(v + 0), sum(host + 0) FROM far";
        let lines = self.client().query(plan, &[]).unwrap();
        let number_of = |name: &str| {
            let lines = lines.iter().map(|row| row.get::<_, String>(0));
            let values =
                lines.filter_map(|line| line.trim().strip_prefix(name)?.parse::<i64>().ok());
            values.sum()
        };
        (
            number_of("Segments Recalled: "),
            number_of("Cold Cache Hits: "),
        )
    }

    pub(super) fn rows_in_file(&self) -> i64 {
        self.number(
            "SELECT coalesce(sum(rows), 0)::int8 FROM lanes.segments WHERE relation = 'far'::regclass AND state <> 'remote'",
        )
    }
}

#[test]
fn any_kill_loses_nothing() {
    let name = "objects_killed";
    kill_whatever(World::new(name, Store::directory(name)), KILLS.rounds());
}

#[test]
fn any_kill_loses_nothing_on_minio() {
    let store = Store::minio().unwrap();
    kill_whatever(
        World::new("objects_killed_s3", store),
        KILLS_ON_MINIO.rounds(),
    );
}

fn kill_whatever(mut world: World, rounds: u32) {
    let (mut random, _) = seeded(world.name);
    let mut gateway = world.gateway();
    for round in 0..rounds {
        world.grow();
        // The kill falls into some step of a part: sealing, the list, an image, a put, the commit.
        std::thread::sleep(Duration::from_millis(random.random_range(0..2000)));
        let victim = ["gateway", "backend", "cluster"][random.random_range(0..3)];
        match victim {
            "gateway" => {
                gateway.kill9().unwrap();
                gateway.start_again().unwrap();
            }
            "backend" => {
                let backend = format!(
                    "SELECT coalesce(min(pid), 0)::int8 FROM pg_stat_activity WHERE usename = '{GATEWAY}' AND query LIKE '%lanes.%'"
                );
                let backend = world.number(&backend);
                if backend != 0 && world.cluster.kill9_backend(backend as u32).is_ok() {
                    let mut witness = world.cluster.connect("postgres");
                    let deadline = Instant::now() + PATIENCE;
                    while witness
                        .as_mut()
                        .is_ok_and(|client| client.simple_query("SELECT 1").is_ok())
                    {
                        assert!(
                            Instant::now() < deadline,
                            "the postmaster has not noticed the killed backend"
                        );
                        std::thread::sleep(Duration::from_millis(10));
                    }
                    world.cluster.wait_ready().unwrap();
                }
            }
            _ => {
                world.cluster.kill9().unwrap();
                world.cluster.start().unwrap();
            }
        }
        forget_recalled(&world.cluster);
        world.check(&format!("round {round} ({victim})"));
    }
    wait_for("all rows are offloaded", || world.rows_in_file() == 0);
    world.cluster.restart().unwrap();
    world.check("after a restart");
    gateway.check().unwrap();
    world.cluster.restart().unwrap();
    forget_recalled(&world.cluster);
    let (fetched, of_these_cached) = world.recalled();
    assert!(fetched > 0);
    assert_eq!(of_these_cached, 0);
    // Segments that the arena has evicted are in the cold cache and not fetched again.
    let (again, of_these_cached) = world.recalled();
    assert_eq!(again, of_these_cached);

    // Merging parts before they were offloaded, and every kill, may have left objects behind. All
    // are removed once nothing refers to them.
    let named = world.number("SELECT count(*) FROM lanes.remote_keys()");
    assert!(named > 0);
    let deleted_before = metric(&gateway, "lanes_gateway_objects_orphans_deleted_total");
    world.client().batch_execute("DROP TABLE far").unwrap();
    assert_eq!(world.number("SELECT count(*) FROM lanes.remote_keys()"), 0);
    let deleted = || metric(&gateway, "lanes_gateway_objects_orphans_deleted_total");
    let deadline = Instant::now() + 2 * PATIENCE;
    while deleted() - deleted_before < named as f64 {
        assert!(
            Instant::now() < deadline,
            "{} of {named} objects were deleted",
            deleted() - deleted_before
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    // The store itself no longer contains the table, nor parts of a dropped one.
    wait_for("the store no longer contains the table", || {
        let mut restore = world.store.command(&place::gateway_program().unwrap());
        restore.args(["restore", "--dry-run", "--from", world.store.url()]);
        let told = run_to_output(&mut restore).unwrap();
        let told = [told.stdout, told.stderr].concat();
        let told = String::from_utf8_lossy(&told);
        (told.contains("database ") || told.contains("nothing to restore"))
            && !told.contains("public.far")
            && !told.contains("dropped tables")
    });
    assert!(gateway.stop().unwrap().unwrap().success());
}

/// The victim between a part's put and its mark, besides the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// No other victim: the database goes on to mark the part.
    Gateway,
    /// The gateway's session in the database: nothing marks the part.
    Session,
    /// The whole cluster.
    Cluster,
}

/// The gateway has put a part and waits until the database marks it remote, which a lock delays.
/// The kill falls into that wait.
fn end_between_put_and_mark(mut world: World) {
    let waits = format!(
        "SELECT coalesce(min(pid), 0)::int8 FROM pg_stat_activity \
         WHERE usename = '{GATEWAY}' AND wait_event_type = 'Lock' AND query LIKE '%offload_commit%'"
    );
    let mut gateway = world.gateway();
    for end in [End::Session, End::Gateway, End::Cluster, End::Session] {
        gateway.kill9().unwrap();
        world.grow();
        wait_for("all rows are sealed", || {
            world.number("SELECT count(*) FROM lanes.segments WHERE relation = 'far'::regclass AND state = 'open'") == 0
        });
        let before = world.rows_in_file();
        assert!(before >= ROWS, "{end:?}: there is something to put");
        let mut blocker = world.client();
        blocker
            .batch_execute("BEGIN; LOCK TABLE far IN SHARE UPDATE EXCLUSIVE MODE")
            .unwrap();
        gateway.start_again().unwrap();
        wait_for("a part is put, and not marked", || {
            world.number(&waits) != 0
        });
        assert!(metric(&gateway, "lanes_gateway_objects_puts_total") > 0.0);
        gateway.kill9().unwrap();
        let session = world.number(&waits);
        assert_ne!(session, 0, "{end:?}: the database has not marked it yet");
        match end {
            End::Gateway => {}
            End::Session => {
                let end = format!("SELECT count(*) FROM pg_terminate_backend({session}, 60000)");
                world.number(&end);
            }
            End::Cluster => {
                world.cluster.kill9().unwrap();
                world.cluster.start().unwrap();
            }
        }
        let _ = blocker.batch_execute("COMMIT");
        if end == End::Gateway {
            wait_for("the database marks it", || world.rows_in_file() < before);
        } else {
            assert_eq!(world.rows_in_file(), before, "{end:?}: nothing is marked");
        }
        gateway.start_again().unwrap();
        wait_for_state(&gateway, "working");
        wait_for("all rows are offloaded", || world.rows_in_file() == 0);
        forget_recalled(&world.cluster);
        world.cluster.restart().unwrap();
        world.check(&format!("{end:?}"));
    }
    assert!(gateway.stop().unwrap().unwrap().success());
}

#[test]
fn a_gateway_that_ends_between_put_and_mark_loses_nothing() {
    let name = "objects_between";
    end_between_put_and_mark(World::new(name, Store::directory(name)));
}

#[test]
fn a_gateway_that_ends_between_put_and_mark_loses_nothing_on_minio() {
    let store = Store::minio().unwrap();
    end_between_put_and_mark(World::new("objects_between_s3", store));
}

/// Returns the files below a folder that contain segments.
fn tables(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(tables(&path));
        } else if path.extension().is_some_and(|extension| extension == "sst") {
            found.push(path);
        }
    }
    found
}

/// Fails unless a query of offloaded rows reports the failure, and another query is answered.
#[track_caller]
fn assert_fails(world: &mut World) {
    // The restart empties the arena.
    world.cluster.restart().unwrap();
    forget_recalled(&world.cluster);
    let mut client = world.client();
    client
        .batch_execute("SET lanes.recall_timeout = '1s'")
        .unwrap();
    let answer = client.query("SELECT sum(v) FROM far WHERE host = 3", &[]);
    assert!(answer.is_err(), "{answer:?}");
    let error = answer.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "58030", "{error:?}");
    assert!(
        error.message().contains("rows of \"far\" from 2020-01-01"),
        "{error:?}"
    );
    let here = client.query_one("SELECT count(*) FROM far WHERE ts > '2025-01-01'", &[]);
    assert_eq!(here.unwrap().get::<_, i64>(0), 0);
}

#[test]
fn a_failing_store_affects_only_what_needs_it() {
    let name = "objects_failing";
    let mut world = World::new(name, Store::directory(name));
    let directory = world.store.folder().unwrap().to_owned();
    let mut gateway = world.gateway();
    world.grow();
    wait_for("all rows are offloaded", || world.rows_in_file() == 0);
    let away = world.rows;
    // The gateway does not respond.
    let process = gateway.process_id().unwrap();
    send(process, Signal::STOP);
    assert_fails(&mut world);
    send(process, Signal::CONT);
    world.check("the server responds again");

    // The store is damaged while the gateway is down, because the gateway might still have the data
    // in memory. Then the store is repaired.
    gateway.kill9().unwrap();
    let kept: Vec<(PathBuf, Vec<u8>)> = tables(&directory)
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(&path).unwrap()))
        .collect();
    assert!(!kept.is_empty());
    for (path, bytes) in &kept {
        let damaged: Vec<u8> = bytes.iter().map(|byte| byte ^ 0x55).collect();
        std::fs::write(path, &damaged[..bytes.len() / 2]).unwrap();
    }
    gateway.start_again().unwrap();
    assert_fails(&mut world);
    for (path, bytes) in &kept {
        std::fs::write(path, bytes).unwrap();
    }
    forget_recalled(&world.cluster);
    let deadline = Instant::now() + PATIENCE;
    while world
        .client()
        .query("SELECT sum(v + 0) FROM far", &[])
        .is_err()
    {
        assert!(Instant::now() < deadline, "the store is repaired");
    }
    world.check("the store is repaired");

    // Every request to the store fails: rows stay in the database, and more arrive.
    let aside = directory.with_extension("aside");
    std::fs::rename(&directory, &aside).unwrap();
    std::fs::write(&directory, "in the way").unwrap();
    for _ in 0..3 {
        world.grow();
    }
    wait_for("the store's errors are counted", || {
        metric(&gateway, "lanes_gateway_objects_errors_total") > 0.0
            && metric(&gateway, "lanes_gateway_objects_retries_total") > 0.0
    });
    assert_eq!(
        world.rows_in_file(),
        world.rows - away,
        "rows stay while they cannot be offloaded"
    );
    // The query reads the rows that are in the database, as its zones show.
    let here = format!("SELECT count(*) FROM far WHERE v > {away}");
    assert_eq!(world.number(&here), world.rows - away);
    std::fs::remove_file(&directory).unwrap();
    std::fs::rename(&aside, &directory).unwrap();
    wait_for("all rows are offloaded", || world.rows_in_file() == 0);
    forget_recalled(&world.cluster);
    world.cluster.restart().unwrap();
    world.check("the store is back");
    assert!(gateway.stop().unwrap().unwrap().success());
}

/// Offloads more rows and recalls all of them into an empty cache. A query may fail meanwhile, but
/// it never returns a wrong answer.
fn go_and_come_back(world: &mut World, under: &str) {
    world.grow();
    wait_for("all rows are offloaded", || world.rows_in_file() == 0);
    forget_recalled(&world.cluster);
    world.cluster.restart().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while world
        .client()
        .query("SELECT sum(v + 0) FROM far", &[])
        .is_err()
    {
        assert!(Instant::now() < deadline, "nothing is recalled");
    }
    world.check(under);
}

/// Responses of the store are late or cut off. Segments are offloaded and recalled nevertheless, if
/// not at once.
#[test]
fn a_slow_or_broken_network_loses_nothing_on_minio() {
    let name = "objects_network";
    let (_, seed) = seeded(name);
    let mut world = World::new(name, Store::minio_behind_proxy(seed).unwrap());
    let mut gateway = world.gateway();
    for (is_slow, cuts) in [(true, false), (false, true), (true, true)] {
        let network = world.store.proxy().unwrap();
        network.be_slow(is_slow);
        network.cut(cuts);
        let before = network.faults();
        // Only a few responses are cut, so a round with few responses may contain none.
        let deadline = Instant::now() + PATIENCE;
        loop {
            go_and_come_back(&mut world, &format!("slow: {is_slow}, cut: {cuts}"));
            let after = world.store.proxy().unwrap().faults();
            if (!is_slow || after.0 > before.0) && (!cuts || after.1 > before.1) {
                break;
            }
            assert!(Instant::now() < deadline, "no faults: {after:?}");
        }
    }
    assert!(gateway.stop().unwrap().unwrap().success());
}

/// The store's disk is full: rows stay in the database, and more arrive, until there is room again.
#[test]
fn a_full_disk_under_the_store_delays_only_segments() {
    let name = "objects_disk";
    let mut world = World::new(name, Store::small_disk(name, 16 << 20).unwrap());
    let mut gateway = world.gateway();
    world.grow();
    wait_for("all rows are offloaded", || world.rows_in_file() == 0);
    let away = world.rows;
    world.store.disk().unwrap().fill().unwrap();
    for _ in 0..3 {
        world.grow();
    }
    wait_for("the new rows are due", || {
        world.number("SELECT coalesce(sum(rows), 0)::int8 FROM lanes.offload_list(1000)")
            == world.rows - away
    });
    let errors = || metric(&gateway, "lanes_gateway_objects_errors_total");
    let before = errors();
    wait_for("the store refuses it", || errors() > before);
    assert_eq!(world.rows_in_file(), world.rows - away);
    let here = format!("SELECT count(*) FROM far WHERE v > {away}");
    assert_eq!(world.number(&here), world.rows - away);
    wait_for("ingest continues", || send_sample(&gateway, 1) == 204);
    world.store.disk().unwrap().free().unwrap();
    wait_for("all rows are offloaded", || world.rows_in_file() == 0);
    forget_recalled(&world.cluster);
    world.cluster.restart().unwrap();
    world.check("there is room again");
    assert!(gateway.stop().unwrap().unwrap().success());
}

/// Sends a sample and returns the status.
fn send_sample(gateway: &Gateway, n: i64) -> u16 {
    let sample = (1_767_225_600_000 + n, n as f64);
    let request = body(&[Series::new("behind", &[], vec![sample])]);
    gateway
        .remote_write(&request, None)
        .map_or(0, |answer| answer.status)
}

#[test]
fn a_store_that_stays_unavailable_causes_back_pressure() {
    // The growth is so regular that 20,000 rows take about a thousand bytes.
    const ROOM: i64 = 3 << 10;
    let name = "objects_behind";
    let mut world = World::new(name, Store::directory(name));
    let folder = world.store.folder().unwrap().to_owned();
    let room = ROOM.to_string();
    let mut gateway = world.gateway_with(&[("LANES_GATEWAY_OBJECTS_BACKLOG_BYTES_MAX", &room)]);
    wait_for("writes are accepted", || send_sample(&gateway, 0) == 204);
    // Every request to the store fails, and is repeated for ever.
    let aside = folder.with_extension("aside");
    std::fs::rename(&folder, &aside).unwrap();
    std::fs::write(&folder, "in the way").unwrap();

    let mut acknowledged = BTreeSet::from([0]);
    let mut next = 0;
    let mut write = |gateway: &Gateway| {
        next += 1;
        let status = send_sample(gateway, next);
        if status == 204 {
            acknowledged.insert(next);
        }
        status
    };
    let waiting = |world: &World| {
        world.number("SELECT coalesce(sum(bytes), 0)::int8 FROM lanes.offload_list(1000)")
    };
    // The room suffices for some time.
    world.grow();
    wait_for("the first rows are pending", || {
        metric(&gateway, "lanes_gateway_objects_backlog_bytes") > 0.0
    });
    assert!(waiting(&world) <= ROOM, "{}", waiting(&world));
    assert_eq!(write(&gateway), 204);
    // Then it is full, also for a gateway that is started now.
    while waiting(&world) <= ROOM {
        let before = waiting(&world);
        world.grow();
        wait_for("more rows are pending", || waiting(&world) > before);
    }
    wait_for("writes are refused", || write(&gateway) == 503);
    gateway.kill9().unwrap();
    gateway.start_again().unwrap();
    wait_for("a new gateway refuses too", || write(&gateway) == 503);
    let status = gateway.status().unwrap();
    let reason = status["writes_refused_for"].as_str().unwrap_or_default();
    assert!(reason.contains("objects.backlog_bytes_max"), "{status}");

    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&aside, &folder).unwrap();
    wait_for("writes are accepted again", || write(&gateway) == 204);
    wait_for("all rows are offloaded", || world.rows_in_file() == 0);
    forget_recalled(&world.cluster);
    world.check("the store is back");
    let kept = world
        .client()
        .query("SELECT value::int8 FROM metrics.behind", &[])
        .unwrap();
    let kept: BTreeSet<i64> = kept.iter().map(|row| row.get(0)).collect();
    assert!(
        kept.is_superset(&acknowledged),
        "{acknowledged:?}, {kept:?}"
    );
    assert!(gateway.stop().unwrap().unwrap().success());
}
