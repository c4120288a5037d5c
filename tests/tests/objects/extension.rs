//! The gateway program and the extension itself, over a directory: what is killed at any moment loses nothing and leaves no object
//! for ever.

use super::{PATIENCE, start, wait_for, wait_for_state};
use lanes_tests::cluster::Cluster;
use lanes_tests::gateway::Gateway;
use lanes_tests::objects::forget_recalled;
use lanes_tests::provision::{DATABASE, GATEWAY, Passwords, provision};
use lanes_tests::seed::seeded;
use postgres::Client;
use rand::RngExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Rows that come at a time, all of them old enough to go at once.
const ROWS: i64 = 20_000;

struct World {
    cluster: Cluster,
    passwords: Passwords,
    name: &'static str,
    directory: PathBuf,
    /// Rows that were committed so far.
    rows: i64,
}

impl World {
    fn new(name: &'static str) -> World {
        let cluster = Cluster::builder(name)
            .setting("autovacuum", "off")
            .setting("lanes.seal_naptime", "1")
            .setting("lanes.seal_rows", "1")
            // Little stays in memory, so queries need what is away.
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
        let directory = cluster.folder().join("objects");
        World {
            cluster,
            passwords,
            name,
            directory,
            rows: 0,
        }
    }

    fn gateway(&self) -> Gateway {
        let url = self.directory.to_str().unwrap();
        let gateway = start(
            &self.cluster,
            &self.passwords,
            self.name,
            &[
                ("LANES_GATEWAY_OBJECTS_URL", url),
                ("LANES_GATEWAY_OBJECTS_ORPHAN_AGE", "60s"),
            ],
        );
        wait_for_state(&gateway, "working");
        gateway
    }

    fn client(&self) -> Client {
        self.cluster.connect(DATABASE).unwrap()
    }

    /// More rows, which the background worker seals.
    fn grow(&mut self) {
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

    /// Fails unless every row is there, once.
    fn check(&self, moment: &str) {
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

    fn rows_in_file(&self) -> i64 {
        self.number(
            "SELECT coalesce(sum(rows), 0)::int8 FROM lanes.segments WHERE relation = 'far'::regclass AND state <> 'remote'",
        )
    }
}

/// A metric of a gateway, all its labels together.
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

#[test]
fn whatever_is_killed_nothing_is_lost() {
    const ROUNDS: usize = 10;
    let (mut random, _) = seeded("objects_killed");
    let mut world = World::new("objects_killed");
    let mut gateway = world.gateway();
    for round in 0..ROUNDS {
        world.grow();
        // At some step on the way of a part: sealing, the list, an image, a put, the commit.
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
                        assert!(Instant::now() < deadline, "a killed backend is not noticed");
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
    wait_for("all rows are away", || world.rows_in_file() == 0);
    world.cluster.restart().unwrap();
    world.check("after a restart");
    gateway.check().unwrap();

    // Merging what was not yet away and every kill may have left objects behind; all go once nobody names them.
    let named = world.number("SELECT count(*) FROM lanes.remote_keys()");
    assert!(named > 0);
    world.client().batch_execute("DROP TABLE far").unwrap();
    assert_eq!(world.number("SELECT count(*) FROM lanes.remote_keys()"), 0);
    let (deadline, deleted) = (Instant::now() + 2 * PATIENCE, || {
        metric(&gateway, "lanes_gateway_objects_orphans_deleted_total")
    });
    while deleted() < named as f64 {
        assert!(
            Instant::now() < deadline,
            "{} of {named} objects were deleted",
            deleted()
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(gateway.stop().unwrap().unwrap().success());
}
