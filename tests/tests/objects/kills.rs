//! Kills of the gateway, of its session and of the cluster: no row is lost, and no object is left for ever.

use super::world::{ROWS, World};
use super::{PATIENCE, metric, wait_for, wait_for_state};
use lanes_support::budget::Budget;
use lanes_support::objects::forget_recalled;
use lanes_support::place;
use lanes_support::process::run_to_output;
use lanes_support::provision::GATEWAY;
use lanes_support::seed::seeded;
use lanes_support::store::Store;
use rand::RngExt;
use std::time::{Duration, Instant};

/// The number of kills.
const KILLS: Budget = Budget { short: 4, long: 10 };
/// The number of kills with MinIO as the store.
const KILLS_ON_MINIO: Budget = Budget { short: 2, long: 5 };

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
                // The witness connects before the kill: PostgreSQL may have recovered before a session
                // that connects after it, and the witness waits for its own connection to break.
                let mut witness = world.client();
                if backend != 0 && world.cluster.kill9_backend(backend as u32).is_ok() {
                    let deadline = Instant::now() + PATIENCE;
                    while witness.simple_query("SELECT 1").is_ok() {
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
