//! The hash of a series. With it a gateway recognises new series without reading the label sets of
//! all others.
//!
//! The database stores the hashes of registered series, and a gateway looks up the hashes of the
//! series that it receives. Both compute them here. The seed is not known to senders, so they
//! cannot construct collisions. A hash that is found is a hint; a hash that is not found proves
//! that the series is new.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Computes the hashes of one metric's series.
#[derive(Clone, Copy)]
pub struct SeriesHasher(u64);

impl SeriesHasher {
    /// The hasher of a metric, under a seed.
    pub fn new(metric: &str, seed: u64) -> SeriesHasher {
        SeriesHasher(xxh3_64_with_seed(metric.as_bytes(), seed))
    }

    /// The hash of the series with these canonical labels, as JSON.
    pub fn hash(self, labels: &str) -> u32 {
        xxh3_64_with_seed(labels.as_bytes(), self.0) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::SeriesHasher;

    /// Hashes are stored on disk and read by gateways of other versions.
    #[test]
    fn hashes_stay() {
        let hasher = SeriesHasher::new("up", 7);
        let hashes = ["{}", r#"{"job":"é"}"#].map(|labels| hasher.hash(labels));
        assert_eq!(hashes, [2_121_451_363, 1_500_611_975]);
        assert_ne!(SeriesHasher::new("down", 7).hash("{}"), hashes[0]);
        assert_ne!(SeriesHasher::new("up", 8).hash("{}"), hashes[0]);
    }
}
