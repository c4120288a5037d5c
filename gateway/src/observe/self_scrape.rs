//! The gateway's own metrics as a remote write request, which its own receive path stores. Its
//! state is therefore visible without any other program.

use prometheus::proto::{Metric, MetricFamily, MetricType};

use crate::series::label_set::{METRIC_LABEL, put_label};
use crate::series::protobuf::{FIXED64, VARINT, put_delimited, put_varint};

/// The value of the label `job`.
pub const JOB: &str = "lanes-gateway";

/// Encodes `families` and the series `up` as a compressed remote write 1.0 body, with the labels
/// `job` and `instance`.
pub fn encode(families: &[MetricFamily], instance: &str, timestamp_ms: i64) -> Vec<u8> {
    let mut request = Request {
        body: Vec::new(),
        instance,
        timestamp_ms,
    };
    request.series("up", &[], None, 1.0);
    for family in families {
        for metric in family.get_metric() {
            request.metric(family.name(), family.get_field_type(), metric);
        }
    }
    // The encoder fails only beyond 4 GiB.
    snap::raw::Encoder::new()
        .compress_vec(&request.body)
        .unwrap_or_default()
}

struct Request<'a> {
    body: Vec<u8>,
    instance: &'a str,
    timestamp_ms: i64,
}

impl Request<'_> {
    fn metric(&mut self, name: &str, kind: MetricType, metric: &Metric) {
        let labels: Vec<(&str, &str)> = metric
            .get_label()
            .iter()
            .map(|pair| (pair.name(), pair.value()))
            .collect();
        match kind {
            MetricType::COUNTER => {
                self.series(name, &labels, None, metric.get_counter().get_value())
            }
            MetricType::GAUGE => self.series(name, &labels, None, metric.get_gauge().get_value()),
            MetricType::HISTOGRAM => {
                let histogram = metric.get_histogram();
                let bucket_name = format!("{name}_bucket");
                for bucket in histogram.get_bucket() {
                    let bound = bucket.upper_bound();
                    self.series(
                        &bucket_name,
                        &labels,
                        Some(&bound.to_string()),
                        bucket.cumulative_count() as f64,
                    );
                }
                let count = histogram.get_sample_count() as f64;
                if !histogram
                    .get_bucket()
                    .iter()
                    .any(|bucket| bucket.upper_bound() == f64::INFINITY)
                {
                    self.series(&bucket_name, &labels, Some("+Inf"), count);
                }
                self.series(
                    &format!("{name}_sum"),
                    &labels,
                    None,
                    histogram.get_sample_sum(),
                );
                self.series(&format!("{name}_count"), &labels, None, count);
            }
            // The gateway has no metrics of other types.
            _ => {}
        }
    }

    fn series(&mut self, name: &str, labels: &[(&str, &str)], bound: Option<&str>, value: f64) {
        let mut labels: Vec<(&str, &str)> = labels
            .iter()
            .copied()
            .chain(bound.map(|bound| ("le", bound)))
            .chain([
                ("job", JOB),
                ("instance", self.instance),
                (METRIC_LABEL, name),
            ])
            .collect();
        labels.sort_unstable();
        let mut sample = vec![1 << 3 | FIXED64];
        sample.extend_from_slice(&value.to_bits().to_le_bytes());
        sample.push(2 << 3 | VARINT);
        put_varint(&mut sample, self.timestamp_ms as u64);
        let mut series = Vec::new();
        for (name, value) in labels {
            put_label(&mut series, 1, name, value);
        }
        put_delimited(&mut series, 2, &sample);
        put_delimited(&mut self.body, 1, &series);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliver::DeliverMetrics;
    use crate::metrics::Families;
    use crate::receive::{RequestLimits, resolve};
    use crate::series::SeriesCache;
    use crate::series::label_set::{LabelLimits, LabelOrder};

    #[test]
    fn own_metrics_are_a_legal_request() {
        let families = Families::new();
        DeliverMetrics::new(&families).batch_rows.observe(5.0);
        let body = encode(&families.gather(), "127.0.0.1:9201", 1_700_000_000_123);
        let body = snap::raw::Decoder::new().decompress_vec(&body).unwrap();
        let label = LabelLimits {
            labels_max: 10,
            name_bytes_max: 100,
            value_bytes_max: 100,
            order: LabelOrder::Refuse,
        };
        let limits = RequestLimits {
            samples_max: 10_000,
            label,
        };
        let resolved = {
            let cache = SeriesCache::new(1 << 20, 0);
            resolve(&body, &limits, &cache, &mut crate::model::Room::boundless()).unwrap()
        };
        assert!(resolved.refused.is_nothing(), "{:?}", resolved.refused);
        assert_eq!(
            resolved.unknown.len(),
            resolved.rows.len(),
            "each series once"
        );
        assert!(
            resolved
                .rows
                .timestamps_us
                .iter()
                .all(|time| *time == 1_700_000_000_123_000)
        );
        let find = |metric: &str, labels: &str| {
            let place = resolved.unknown.iter().position(|series| {
                series.label_set.metric == metric && series.label_set.labels_json == labels
            });
            place.map(|place| resolved.rows.values[place])
        };
        let own = r#"{"instance":"127.0.0.1:9201","job":"lanes-gateway"}"#;
        assert_eq!(find("up", own), Some(1.0));
        assert_eq!(find("lanes_gateway_batch_rows_count", own), Some(1.0));
        assert_eq!(find("lanes_gateway_batch_rows_sum", own), Some(5.0));
        let bucket = |bound: &str| {
            format!(r#"{{"instance":"127.0.0.1:9201","job":"lanes-gateway","le":"{bound}"}}"#)
        };
        assert_eq!(
            find("lanes_gateway_batch_rows_bucket", &bucket("4")),
            Some(0.0)
        );
        assert_eq!(
            find("lanes_gateway_batch_rows_bucket", &bucket("16")),
            Some(1.0)
        );
        assert_eq!(
            find("lanes_gateway_batch_rows_bucket", &bucket("+Inf")),
            Some(1.0)
        );
    }
}
