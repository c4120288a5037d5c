//! The stores of one run, which hold the same samples: a Prometheus, a database behind a gateway,
//! and memory.

use crate::engine_side::EngineSide;
use crate::samples::{Samples, requests};
use crate::sides::{GatewaySide, LanesSide, PrometheusSide};
use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Answer, Gateway, Settings};
use lanes_support::prometheus_receiver::Receiver;
use lanes_support::provision::DATABASE;
use lanes_support::remote_write::{self, Series};
use std::path::Path;

/// The stores, and the processes behind them.
pub struct Stores {
    /// The reference.
    pub prometheus: PrometheusSide,
    /// The database.
    pub lanes: LanesSide,
    /// The engine alone.
    pub engine: EngineSide,
    /// The gateway before the database.
    pub gateway: GatewaySide,
    cluster: Cluster,
}

impl Stores {
    /// Starts the processes and writes the samples to all of them.
    pub fn start(name: &str, program: &Path, samples: &Samples) -> Stores {
        let cluster = Cluster::builder(name)
            .setting("log_min_messages", "fatal")
            .start()
            .unwrap();
        let (settings, _) = Settings::provisioned(&cluster).unwrap();
        let gateway = Gateway::start(settings).unwrap();
        let receiver = Receiver::start(program, &cluster.folder().join("prometheus")).unwrap();
        let mut created: Vec<&Series> = Vec::new();
        for request in requests(samples) {
            let body = remote_write::body(&request);
            accepted(&receiver.remote_write(&body).unwrap());
            accepted(&gateway.remote_write(&body, None).unwrap());
            for part in &request {
                let is_same = |series: &&Series| series.labels == part.labels;
                if !created.iter().any(is_same) {
                    created.extend(samples.series.iter().find(is_same));
                }
            }
        }
        let stored = cluster
            .scalar(DATABASE, "SELECT count(*) FROM lanes.samples")
            .unwrap();
        let sent: usize = samples.series.iter().map(|one| one.samples.len()).sum();
        assert_eq!(stored, sent.to_string(), "samples in the database");
        Stores {
            prometheus: PrometheusSide(receiver),
            lanes: LanesSide::connect(&cluster),
            engine: EngineSide::new(created.into_iter()),
            gateway: GatewaySide(gateway),
            cluster,
        }
    }

    /// Moves the samples of the database into sealed segments.
    pub fn seal(&self) {
        let seal = "SELECT lanes.seal('lanes.samples')";
        self.cluster.scalar(DATABASE, seal).unwrap();
    }

    /// Stops the processes.
    pub fn stop(mut self) {
        self.prometheus.0.stop().unwrap();
        self.gateway.0.stop().unwrap();
    }
}

fn accepted(answer: &Answer) {
    let status = answer.status;
    assert!(matches!(status, 200 | 204), "{status}: {}", answer.body);
}
