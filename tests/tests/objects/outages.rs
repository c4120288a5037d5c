//! A store that fails, is slow or is full only affects what needs it.

use super::world::World;
use super::{PATIENCE, metric, wait_for};
use lanes_support::gateway::Gateway;
use lanes_support::objects::forget_recalled;
use lanes_support::process::{Signal, send};
use lanes_support::remote_write::{Series, body};
use lanes_support::seed::seeded;
use lanes_support::store::Store;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

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
