//! Where scripts are played: a cluster, what is behind it, and what happens to it meanwhile.

use lanes_support::cluster::{Builder, Cluster};
use lanes_support::objects::{Objects, Supplier};
use lanes_support::seed::Random;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// A cluster in which nothing happens that nobody asked for, and its surroundings.
pub struct Stage {
    pub cluster: Cluster,
    /// Where parts of lanes tables go behind the scripts' backs; `None`: they stay.
    pub objects: Option<Objects>,
    /// Follows the cluster.
    pub standby: Option<Cluster>,
    /// Steps from one crash to the next, on average; `None`: there are none.
    pub steps_a_crash: Option<u32>,
    /// One for each cluster, while there are objects.
    suppliers: Vec<Supplier>,
}

impl Stage {
    /// A cluster alone.
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

    /// A cluster with the extension and an object store behind it.
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

    /// The same with crashes, a standby that follows, and settings of which no two runs have the same.
    pub fn adverse(name: &str, random: &mut Random) -> Stage {
        let mut choose = |values: &[&'static str]| *values.choose(random).unwrap();
        let settings = [
            ("lanes.arena_size", choose(&["1MB", "4MB", "64MB"])),
            ("lanes.decode_after", choose(&["0", "1", "8"])),
            ("lanes.seal_rows", choose(&["1", "100", "1000"])),
            // What is replayed is compared with what there was, page for page.
            ("wal_consistency_checking", choose(&["", "all"])),
            ("max_wal_size", choose(&["32MB", "1GB"])),
            // A standby that was held up, or crashed, finds what it has missed.
            ("wal_keep_size", "4GB"),
            ("hot_standby_feedback", choose(&["off", "on"])),
            ("max_standby_streaming_delay", "100ms"),
            // The cluster comes back sooner than a standby asks for it by itself.
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

    /// How many segments came back from the object store.
    pub fn supplied(&self) -> u64 {
        self.suppliers.iter().map(Supplier::supplied).sum()
    }
}
