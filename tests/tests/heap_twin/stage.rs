//! The environment of scripts: a cluster, its object store and standby, and the crashes.

use lanes_support::cluster::{Builder, Cluster};
use lanes_support::objects::{Objects, Supplier};
use lanes_support::seed::Random;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// A cluster without background work, and its surroundings.
pub struct Stage {
    pub cluster: Cluster,
    /// The store to which parts of lanes tables move, unknown to the scripts. `None` if they stay.
    pub objects: Option<Objects>,
    /// The standby that follows the cluster.
    pub standby: Option<Cluster>,
    /// The average number of steps between two crashes. `None` if there are no crashes.
    pub steps_a_crash: Option<u32>,
    /// One supplier for each cluster, if there are objects.
    suppliers: Vec<Supplier>,
}

impl Stage {
    /// Creates a cluster alone.
    pub fn quiet(builder: Builder) -> Stage {
        let cluster = builder
            .setting("autovacuum", "off")
            .setting("lanes.seal_naptime", "0")
            .setting("lanes.seal_memory", "16MB")
            .setting("max_prepared_transactions", "20")
            .start()
            .unwrap();
        Stage {
            cluster,
            objects: None,
            standby: None,
            steps_a_crash: None,
            suppliers: Vec::new(),
        }
    }

    /// Creates a cluster with the extension and an object store.
    pub fn with_objects(builder: Builder) -> Stage {
        let mut stage = Stage::quiet(builder);
        stage
            .cluster
            .psql("postgres", "CREATE EXTENSION lanes")
            .unwrap();
        let objects = Objects::default();
        stage.suppliers = vec![Supplier::start(&stage.cluster, "postgres", &objects)];
        stage.objects = Some(objects);
        stage
    }

    /// Creates a cluster with an object store, crashes, a standby, and settings that differ from
    /// run to run.
    pub fn adverse(name: &str, random: &mut Random) -> Stage {
        let mut choose = |values: &[&'static str]| *values.choose(random).unwrap();
        let settings = [
            ("lanes.arena_size", choose(&["1MB", "4MB", "64MB"])),
            ("lanes.decode_after", choose(&["0", "1", "8"])),
            ("lanes.seal_rows", choose(&["1", "100", "1000"])),
            // Recovery compares replayed pages with the primary's, except for those of hash indexes: VACUUM logs their
            // images while others may change them, and WAL behind such a record can be lost, with heap tables too.
            (
                "wal_consistency_checking",
                choose(&[
                    "",
                    "heap, heap2, btree, gin, gist, spgist, brin, sequence, generic",
                ]),
            ),
            ("max_wal_size", choose(&["32MB", "1GB"])),
            // A delayed or crashed standby finds the WAL that it has missed.
            ("wal_keep_size", "4GB"),
            ("hot_standby_feedback", choose(&["off", "on"])),
            ("max_standby_streaming_delay", "100ms"),
            // The standby reconnects sooner than by default, because the cluster restarts quickly.
            ("wal_retrieve_retry_interval", "50ms"),
        ];
        println!("{name}: {settings:?}");
        let builder = settings
            .into_iter()
            .fold(Cluster::builder(name), |builder, (name, value)| {
                builder.setting(name, value)
            });
        let mut stage = Stage::with_objects(builder);
        let standby = stage.cluster.standby(&format!("{name}_standby")).unwrap();
        if let Some(objects) = &stage.objects {
            stage
                .suppliers
                .push(Supplier::start(&standby, "postgres", objects));
        }
        stage.standby = Some(standby);
        stage.steps_a_crash = Some(random.random_range(30..60));
        stage
    }

    /// Returns the number of segments that were recalled from the object store.
    pub fn supplied(&self) -> u64 {
        self.suppliers.iter().map(Supplier::supplied).sum()
    }
}
