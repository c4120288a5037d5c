//! What the participants of a parallel `LanesScan` share.
//!
//! Each participant takes the next segment that no other has taken. A segment's visible rows are the same for all
//! participants: they use one snapshot, and the rows that it sees existed before the first participant began.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::table::scan::SharedSegments;
use crate::vectors::counters::Counters;

/// The shared state, in the memory of a parallel query.
#[repr(C)]
#[derive(Default)]
pub struct SharedScan {
    /// The segments that are taken.
    pub taken: SharedSegments,
    segments: AtomicU64,
    segments_skipped: AtomicU64,
    segments_streamed: AtomicU64,
    columns_decoded: AtomicU64,
    segments_recalled: AtomicU64,
    bytes_recalled: AtomicU64,
    cold_cache_hits: AtomicU64,
    vectors: AtomicU64,
    vectors_skipped: AtomicU64,
    vectors_without_keys: AtomicU64,
    rows: AtomicU64,
    passed: AtomicU64,
}

impl SharedScan {
    /// Starts the scan over. No participant is scanning.
    pub fn restart(&self) {
        self.taken.restart();
    }

    /// Adds a worker's counters, and the number of rows that passed its conditions.
    pub fn report(&self, counters: &Counters, passed: u64) {
        for (total, did) in [
            (&self.segments, counters.segments),
            (&self.segments_skipped, counters.segments_skipped),
            (&self.segments_streamed, counters.segments_streamed),
            (&self.columns_decoded, counters.columns_decoded),
            (&self.segments_recalled, counters.segments_recalled),
            (&self.bytes_recalled, counters.bytes_recalled),
            (&self.cold_cache_hits, counters.cold_cache_hits),
            (&self.vectors, counters.vectors),
            (&self.vectors_skipped, counters.vectors_skipped),
            (&self.vectors_without_keys, counters.vectors_without_keys),
            (&self.rows, counters.rows),
            (&self.passed, passed),
        ] {
            total.fetch_add(did, Ordering::Relaxed);
        }
    }

    /// Takes the counters that workers have reported since the last call, and the number of rows that passed.
    pub fn collect(&self) -> (Counters, u64) {
        let take = |total: &AtomicU64| total.swap(0, Ordering::Relaxed);
        let counters = Counters {
            segments: take(&self.segments),
            segments_skipped: take(&self.segments_skipped),
            segments_streamed: take(&self.segments_streamed),
            columns_decoded: take(&self.columns_decoded),
            segments_recalled: take(&self.segments_recalled),
            bytes_recalled: take(&self.bytes_recalled),
            cold_cache_hits: take(&self.cold_cache_hits),
            vectors: take(&self.vectors),
            vectors_skipped: take(&self.vectors_skipped),
            vectors_without_keys: take(&self.vectors_without_keys),
            rows: take(&self.rows),
        };
        (counters, take(&self.passed))
    }
}
