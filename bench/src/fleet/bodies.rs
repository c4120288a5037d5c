//! Remote-write requests of a scrape, encoded and compressed, with their counts and sums.

use super::shape::{EncodedLabels, TargetShape, encoded_instance};
use super::values::Values;
use lanes_support::error::{Error, Result};
use lanes_support::remote_write::{delimited, sample};
use std::ops::Range;

/// The body of a request, and its samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// The encoded message: protobuf, compressed with snappy.
    pub bytes: Vec<u8>,
    /// The number and the sum of its samples.
    pub holds: SampleTotals,
}

/// The number and the sum of samples, either sent or stored.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SampleTotals {
    /// The number of samples.
    pub samples: u64,
    /// The sum of their values.
    pub sum: f64,
}

impl SampleTotals {
    /// Adds the number and the sum of other samples.
    pub fn add(&mut self, other: SampleTotals) {
        self.samples += other.samples;
        self.sum += other.sum;
    }

    /// Whether both agree: equal counts, and sums whose difference is explained by the order of
    /// addition.
    pub fn agrees(&self, other: &SampleTotals) -> bool {
        const SUM_TOLERANCE: f64 = 1e-9;
        let size = self.sum.abs().max(other.sum.abs());
        self.samples == other.samples && (self.sum - other.sum).abs() <= size * SUM_TOLERANCE
    }
}

/// The bodies of a range of targets.
pub struct Bodies {
    /// The labels of each series, without the target's name.
    labels: Vec<EncodedLabels>,
    /// The encoded name of each target in the range.
    instances: Vec<Vec<u8>>,
    targets: Range<usize>,
    targets_per_request: usize,
    message: Vec<u8>,
    encoder: snap::raw::Encoder,
}

impl Bodies {
    /// Creates the bodies of a range of a fleet's targets, with a number of targets per request.
    pub fn new(shape: &TargetShape, targets: Range<usize>, targets_per_request: usize) -> Bodies {
        Bodies {
            labels: shape.encoded_labels(),
            instances: targets
                .clone()
                .map(|target| encoded_instance(target, 0))
                .collect(),
            targets,
            targets_per_request: targets_per_request.max(1),
            message: Vec::new(),
            encoder: snap::raw::Encoder::new(),
        }
    }

    /// Replaces the machine of a target: from now on all of its series are new.
    pub fn replace(&mut self, target: usize, revision: usize) {
        let place = target.checked_sub(self.targets.start);
        if let Some(instance) = place.and_then(|place| self.instances.get_mut(place)) {
            *instance = encoded_instance(target, revision);
        }
    }

    /// Returns the bodies of one scrape of the first `count` targets. Targets are scraped one after
    /// another over `spread_milliseconds` from `time` (milliseconds since 1970), as a scraper
    /// spreads them. All samples of a target have the same time.
    pub fn scrape(
        &mut self,
        values: &Values,
        count: usize,
        time: i64,
        spread_milliseconds: i64,
    ) -> Result<Vec<Body>> {
        let places: Vec<usize> = (0..count.min(self.instances.len())).collect();
        let mut bodies = Vec::with_capacity(count / self.targets_per_request + 1);
        let mut series = Vec::new();
        for of_request in places.chunks(self.targets_per_request) {
            self.message.clear();
            let mut holds = SampleTotals::default();
            for place in of_request {
                let target = self.targets.start + place;
                let its_time = time + spread_milliseconds * *place as i64 / count.max(1) as i64;
                for (labels, value) in self.labels.iter().zip(values.of(target)) {
                    series.clear();
                    series.extend_from_slice(&labels.before);
                    series.extend_from_slice(&self.instances[*place]);
                    series.extend_from_slice(&labels.after);
                    delimited(&mut series, 2, &sample(its_time, *value));
                    delimited(&mut self.message, 1, &series);
                    holds.add(SampleTotals {
                        samples: 1,
                        sum: *value,
                    });
                }
            }
            let compressed = self.encoder.compress_vec(&self.message);
            let bytes = compressed
                .map_err(|error| Error::Other(format!("snappy cannot compress: {error}")))?;
            bodies.push(Body { bytes, holds });
        }
        Ok(bodies)
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::small;
    use super::*;
    use lanes_support::remote_write::{Series, message};

    #[test]
    fn a_body_is_valid_and_knows_its_count_and_sum() {
        let shape = small(2);
        let values = Values::new(&shape, 3, 1);
        let mut bodies = Bodies::new(&shape, 1..3, 1);
        let scrape = bodies.scrape(&values, 2, 1_700_000_000_000, 9_000).unwrap();
        assert_eq!(scrape.len(), 2);
        let of_second = |mode: &str, value: f64| {
            let labels = [
                ("cpu", "0"),
                ("instance", "node-00002.example.com:9100"),
                ("job", "node_exporter"),
                ("mode", mode),
            ];
            Series::new(
                "node_cpu_seconds_total",
                &labels,
                vec![(1_700_000_004_500, value)],
            )
        };
        let expected = message(&[
            of_second("idle", values.of(2)[0]),
            of_second("nice", values.of(2)[1]),
        ]);
        let decompressed = snap::raw::Decoder::new()
            .decompress_vec(&scrape[1].bytes)
            .unwrap();
        assert_eq!(decompressed, expected);
        let sum: f64 = values.of(2).iter().sum();
        assert_eq!(scrape[1].holds, SampleTotals { samples: 2, sum });
    }

    #[test]
    fn targets_share_requests_and_may_be_replaced() {
        let shape = small(2);
        let values = Values::new(&shape, 5, 1);
        let mut bodies = Bodies::new(&shape, 0..5, 2);
        let before = bodies.scrape(&values, 5, 0, 0).unwrap();
        assert_eq!(before.len(), 3);
        assert_eq!(bodies.scrape(&values, 3, 0, 0).unwrap().len(), 2);
        bodies.replace(4, 1);
        let after = bodies.scrape(&values, 5, 0, 0).unwrap();
        assert_eq!(before[..2], after[..2]);
        assert_ne!(before[2].bytes, after[2].bytes);
        assert_eq!(before[2].holds, after[2].holds);
    }

    #[test]
    fn sums_agree_up_to_the_order_of_addition() {
        let sent = SampleTotals {
            samples: 3,
            sum: 1e12,
        };
        let close = SampleTotals {
            sum: 1e12 + 10.0,
            ..sent
        };
        let off = SampleTotals {
            sum: 1e12 + 1e5,
            ..sent
        };
        let fewer = SampleTotals { samples: 2, ..sent };
        assert!(sent.agrees(&close) && !sent.agrees(&off) && !sent.agrees(&fewer));
    }
}
