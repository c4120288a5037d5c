//! A cluster with the extension, its gateway and its store.

use super::{start_with, wait_for_state};
use lanes_support::cluster::Cluster;
use lanes_support::gateway::Gateway;
use lanes_support::provision::{DATABASE, Passwords, provision};
use lanes_support::store::Store;
use postgres::Client;

/// The number of rows that are added at a time, all of them old enough to be offloaded at once.
pub(super) const ROWS: i64 = 20_000;

pub(super) struct World {
    pub(super) cluster: Cluster,
    pub(super) passwords: Passwords,
    pub(super) name: &'static str,
    pub(super) store: Store,
    /// The number of committed rows.
    pub(super) rows: i64,
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
    pub(super) fn gateway_with(&self, more: &[(&str, &str)]) -> Gateway {
        let gateway = start_with(&self.cluster, &self.passwords, self.name, &self.store, more);
        wait_for_state(&gateway, "working");
        gateway
    }

    pub(super) fn client(&self) -> Client {
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

    pub(super) fn number(&self, sql: &str) -> i64 {
        self.client().query_one(sql, &[]).unwrap().get(0)
    }

    /// Returns the number of segments that a query of all rows recalls, and how many of these are
    /// in the cold cache.
    pub(super) fn recalled(&self) -> (i64, i64) {
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
