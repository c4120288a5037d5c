//! What the processes of a parallel `LanesAggregate` share.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::joins::by_key::stage::JoinCounters;
use crate::nodes::scan::shared_scan::SharedScan;
use crate::table::scan::SharedSegments;
use crate::vectors::counters::Counters;

/// The shared state, in the memory of a parallel query.
#[repr(C)]
#[derive(Default)]
pub struct SharedAggregation {
    scan: SharedScan,
    groups: AtomicU64,
    segments_by_zones: AtomicU64,
    vectors_by_zones: AtomicU64,
    early_groups: AtomicU64,
    join: SharedJoin,
}

/// What the processes did for a hash join. All of them read the same small sides, so the most counts, not the sum.
#[repr(C)]
#[derive(Default)]
struct SharedJoin {
    rows: AtomicU64,
    batches: AtomicU64,
    bytes: AtomicU64,
}

/// What workers did, for EXPLAIN.
#[derive(Default)]
pub struct OfWorkers {
    /// The counters of their scans.
    pub counters: Counters,
    /// The rows that passed all conditions.
    pub passed: u64,
    /// The groups of all workers: a group counts once for each of them.
    pub groups: u64,
    /// Segments and vectors that were aggregated by their zones alone.
    pub segments_by_zones: u64,
    pub vectors_by_zones: u64,
    /// Groups that were put aside.
    pub early_groups: u64,
    /// A hash join: the most of each counter.
    pub join: JoinCounters,
}

impl OfWorkers {
    /// Adds what other workers did.
    pub fn add(&mut self, others: &OfWorkers) {
        self.counters = self.counters.plus(&others.counters);
        self.passed += others.passed;
        self.groups += others.groups;
        self.segments_by_zones += others.segments_by_zones;
        self.vectors_by_zones += others.vectors_by_zones;
        self.early_groups += others.early_groups;
        self.join = self.join.max(others.join);
    }
}

impl SharedAggregation {
    /// The segments that are taken.
    pub fn segments(&self) -> &SharedSegments {
        &self.scan.taken
    }

    /// Starts the aggregation over. No process is aggregating.
    pub fn restart(&self) {
        self.scan.restart();
    }

    /// Adds what a worker did.
    pub fn report(&self, did: &OfWorkers) {
        self.scan.report(&did.counters, did.passed);
        for (total, did) in [
            (&self.groups, did.groups),
            (&self.segments_by_zones, did.segments_by_zones),
            (&self.vectors_by_zones, did.vectors_by_zones),
            (&self.early_groups, did.early_groups),
        ] {
            total.fetch_add(did, Ordering::Relaxed);
        }
        for (most, did) in [
            (&self.join.rows, did.join.rows),
            (&self.join.batches, did.join.batches),
            (&self.join.bytes, did.join.bytes as u64),
        ] {
            most.fetch_max(did, Ordering::Relaxed);
        }
    }

    /// Takes what workers have reported since the last call.
    pub fn collect(&self) -> OfWorkers {
        let take = |total: &AtomicU64| total.swap(0, Ordering::Relaxed);
        let (counters, passed) = self.scan.collect();
        OfWorkers {
            counters,
            passed,
            groups: take(&self.groups),
            segments_by_zones: take(&self.segments_by_zones),
            vectors_by_zones: take(&self.vectors_by_zones),
            early_groups: take(&self.early_groups),
            join: JoinCounters {
                rows: take(&self.join.rows),
                batches: take(&self.join.batches),
                bytes: take(&self.join.bytes) as usize,
            },
        }
    }
}
