//! Two databases of one cluster, of which one subscribes to the other.

use super::builder;
use lanes_support::cluster::Cluster;
use postgres::Client;
use std::time::{Duration, Instant};

/// A timeout that suffices on any machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The databases, and a session in each.
pub struct Pair {
    pub cluster: Cluster,
    pub source: Client,
    pub target: Client,
}

impl Pair {
    /// Starts a cluster with two databases that have the extension.
    pub fn start(name: &str) -> Pair {
        let cluster = builder(name).start().unwrap();
        cluster.psql("postgres", "CREATE DATABASE source").unwrap();
        cluster.psql("postgres", "CREATE DATABASE target").unwrap();
        let [source, target] = ["source", "target"].map(|database| {
            let mut client = cluster.connect(database).unwrap();
            client.batch_execute("CREATE EXTENSION lanes").unwrap();
            client
        });
        Pair {
            cluster,
            source,
            target,
        }
    }

    /// Executes statements in both databases.
    pub fn both(&mut self, sql: &str) {
        self.source.batch_execute(sql).expect(sql);
        self.target.batch_execute(sql).expect(sql);
    }

    /// Makes the target subscribe. The subscription and its slot have the publication's name.
    pub fn subscribe(&mut self, publication: &str, options: &str) {
        let two_phase = options.contains("two_phase");
        self.source
            .execute(
                "SELECT pg_create_logical_replication_slot($1::text, 'pgoutput', false, $2)",
                &[&publication, &two_phase],
            )
            .unwrap();
        let connection = self.cluster.connection_string("source");
        let sql = format!(
            "CREATE SUBSCRIPTION {publication} CONNECTION '{connection}' PUBLICATION {publication} WITH (create_slot = false{options})"
        );
        self.target.batch_execute(&sql).expect(&sql);
    }

    /// Waits until the target has copied all tables, and has applied all that the source has committed.
    pub fn catch_up(&mut self) {
        let synced =
            "SELECT count(*) = 0 FROM pg_subscription_rel WHERE srsubstate NOT IN ('r', 's')";
        wait_for(&mut self.target, &self.cluster, synced);
        let end: String = self
            .source
            .query_one("SELECT pg_current_wal_insert_lsn()::text", &[])
            .unwrap()
            .get(0);
        // Each slot has a worker that has come so far; those of initial copies are gone by now.
        let applied = format!(
            "SELECT count(*) FILTER (WHERE replay_lsn >= '{end}') = (SELECT count(*) FROM pg_replication_slots) \
               FROM pg_stat_replication"
        );
        wait_for(&mut self.source, &self.cluster, &applied);
    }

    /// Asserts that queries of the target and the source return the same rows.
    pub fn assert_same(&mut self, query: &str) -> usize {
        let [source, target] =
            [&mut self.source, &mut self.target].map(|client| rows(client, query));
        assert_eq!(target, source, "{query}");
        source.len()
    }
}

/// The rows of a query as texts, in order.
pub fn rows(client: &mut Client, query: &str) -> Vec<String> {
    let sql = format!("SELECT q::text FROM ({query}) q ORDER BY 1");
    let rows = client.query(&sql, &[]).expect(&sql);
    rows.iter().map(|row| row.get(0)).collect()
}

/// Repeats a query until it returns true.
pub fn wait_for(client: &mut Client, cluster: &Cluster, query: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !client.query_one(query, &[]).unwrap().get::<_, bool>(0) {
        if Instant::now() >= deadline {
            let log = std::fs::read_to_string(cluster.log()).unwrap_or_default();
            let end: Vec<&str> = log.lines().rev().take(40).collect();
            let end: Vec<&str> = end.into_iter().rev().collect();
            panic!("timed out: {query}\n{}", end.join("\n"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
