//! Logical replication of lanes tables: what decoding says of them, and publications and subscriptions.

mod decoding;
mod pair;
mod publications;
mod subscriptions;

use lanes_support::cluster::{Builder, Cluster};

/// A cluster whose WAL can be decoded, with room for some subscriptions.
fn builder(name: &str) -> Builder {
    Cluster::builder(name)
        .setting("wal_level", "logical")
        .setting("max_worker_processes", "24")
        .setting("max_logical_replication_workers", "16")
        .setting("max_replication_slots", "20")
        .setting("wal_retrieve_retry_interval", "100ms")
        .setting("autovacuum", "off")
}
