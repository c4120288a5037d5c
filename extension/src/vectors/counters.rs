//! The counters of a scan by vectors.

use crate::pg::explain::Explain;

/// What a source has done, for EXPLAIN.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counters {
    pub segments: u64,
    /// Sealed segments that were not read because their zones ruled them out.
    pub segments_skipped: u64,
    /// Segments that were decoded for this scan alone.
    pub segments_streamed: u64,
    /// Vectors of single columns that were decoded from streamed segments.
    pub columns_decoded: u64,
    /// Segments that were read from object storage.
    pub segments_recalled: u64,
    pub bytes_recalled: u64,
    /// Recalled segments that the cold cache contained.
    pub cold_cache_hits: u64,
    pub vectors: u64,
    pub vectors_skipped: u64,
    /// Skipped vectors that contain no key of a join.
    pub vectors_without_keys: u64,
    pub rows: u64,
}

impl Counters {
    /// The sum of both.
    pub fn plus(&self, other: &Counters) -> Counters {
        Counters {
            segments: self.segments + other.segments,
            segments_skipped: self.segments_skipped + other.segments_skipped,
            segments_streamed: self.segments_streamed + other.segments_streamed,
            columns_decoded: self.columns_decoded + other.columns_decoded,
            segments_recalled: self.segments_recalled + other.segments_recalled,
            bytes_recalled: self.bytes_recalled + other.bytes_recalled,
            cold_cache_hits: self.cold_cache_hits + other.cold_cache_hits,
            vectors: self.vectors + other.vectors,
            vectors_skipped: self.vectors_skipped + other.vectors_skipped,
            vectors_without_keys: self.vectors_without_keys + other.vectors_without_keys,
            rows: self.rows + other.rows,
        }
    }

    /// Writes the counters of a node's own table.
    pub fn explain(&self, explain: &Explain) {
        explain.integer(c"Segments", self.segments);
        if self.segments_skipped > 0 {
            explain.integer(c"Segments Skipped", self.segments_skipped);
        }
        if self.segments_streamed > 0 {
            explain.integer(c"Segments Streamed", self.segments_streamed);
            explain.integer(c"Column Vectors Decoded", self.columns_decoded);
        }
        if self.segments_recalled > 0 {
            explain.integer(c"Segments Recalled", self.segments_recalled);
            explain.integer(c"Bytes Recalled", self.bytes_recalled);
            explain.integer(c"Cold Cache Hits", self.cold_cache_hits);
        }
        explain.integer(c"Vectors", self.vectors);
        explain.integer(c"Vectors Skipped", self.vectors_skipped);
        if self.vectors_without_keys > 0 {
            explain.integer(c"Vectors Skipped By Join Keys", self.vectors_without_keys);
        }
        explain.integer(c"Rows Scanned", self.rows);
    }

    /// Writes the counters of the right side of a join by time, and the algorithm that found its rows.
    pub fn explain_joined(&self, algorithm: &str, explain: &Explain) {
        explain.text(c"Join Algorithm", algorithm);
        if self.segments_streamed > 0 {
            explain.integer(c"Joined Segments Streamed", self.segments_streamed);
            explain.integer(c"Joined Column Vectors Decoded", self.columns_decoded);
        }
        if self.segments_recalled > 0 {
            explain.integer(c"Joined Segments Recalled", self.segments_recalled);
            explain.integer(c"Joined Bytes Recalled", self.bytes_recalled);
            explain.integer(c"Joined Cold Cache Hits", self.cold_cache_hits);
        }
        explain.integer(c"Joined Vectors", self.vectors);
        explain.integer(c"Joined Vectors Skipped", self.vectors_skipped);
        explain.integer(c"Joined Rows", self.rows);
    }
}
