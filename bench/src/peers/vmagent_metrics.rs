//! The metrics that vmagent reports about itself.

use super::http;
use crate::fleet::page::{Page, parse};
use lanes_support::error::Result;
use std::collections::BTreeMap;

/// vmagent's own metrics at one time. It has one destination; the counts of its queues are added
/// up.
#[derive(Debug, Clone)]
pub struct Metrics {
    page: Page,
}

impl Metrics {
    /// Reads the page of metrics at a URL.
    pub fn read(url: &str) -> Result<Metrics> {
        Ok(Metrics {
            page: parse(&http::text(url, &[])?)?,
        })
    }

    /// Returns the sum of all series of a metric.
    fn sum(&self, metric: &str) -> f64 {
        let lines = self.page.iter().filter(|line| line.metric == metric);
        lines.map(|line| line.value).sum()
    }

    /// Returns the number of samples that were put into requests, including the markers of series
    /// that ended.
    pub fn samples_pushed(&self) -> f64 {
        self.sum("vmagent_remotewrite_rows_pushed_after_relabel_total")
    }

    /// Returns the number of markers of series that ended.
    pub fn stale_markers(&self) -> f64 {
        self.sum("vm_promscrape_stale_samples_created_total")
    }

    /// Returns the number of responses by status, as `2XX: 71, 415: 1`.
    pub fn answers(&self) -> String {
        let mut answers: BTreeMap<&str, f64> = BTreeMap::new();
        for line in &self.page {
            if line.metric != "vmagent_remotewrite_requests_total" {
                continue;
            }
            for (_, status) in line.labels.iter().filter(|(name, _)| name == "status_code") {
                *answers.entry(status).or_default() += line.value;
            }
        }
        let parts: Vec<String> = answers
            .iter()
            .map(|(status, count)| format!("{status}: {count}"))
            .collect();
        parts.join(", ")
    }

    /// Returns the number of retries.
    pub fn retries(&self) -> f64 {
        self.sum("vmagent_remotewrite_retries_count_total")
    }

    /// Returns the number of abandoned requests.
    pub fn packets_dropped(&self) -> f64 {
        self.sum("vmagent_remotewrite_packets_dropped_total")
    }

    /// Returns the number of bytes that wait to be sent, in memory and in the queue on disk.
    pub fn pending_bytes(&self) -> f64 {
        self.sum("vmagent_remotewrite_pending_data_bytes")
    }

    /// Returns the number of targets, whether or not they respond.
    pub fn targets(&self) -> f64 {
        self.sum("vm_promscrape_targets")
    }

    /// Returns the number of scrapes that failed or timed out.
    pub fn scrapes_failed(&self) -> f64 {
        self.sum("vm_promscrape_scrapes_failed_total")
            + self.sum("vm_promscrape_scrapes_timed_out_total")
    }

    /// Returns the number of times that another list of targets was loaded.
    pub fn reloads(&self) -> f64 {
        self.sum("vm_promscrape_config_reloads_total")
    }

    /// Returns a quantile (0 to 1) of the durations, in seconds, of the requests since an earlier
    /// time. It is the upper end of the bucket that contains the quantile. Returns `None` if there
    /// were no requests.
    pub fn request_duration(&self, since: &Metrics, quantile: f64) -> Option<f64> {
        let earlier = since.duration_buckets();
        let counts = self.duration_buckets().into_iter().map(|(upper, count)| {
            let before = earlier.iter().find(|(other, _)| *other == upper);
            (upper, count - before.map_or(0.0, |(_, count)| *count))
        });
        quantile_of(counts.collect(), quantile)
    }

    /// Returns `(upper end, count)` of each bucket that is not empty.
    fn duration_buckets(&self) -> Vec<(f64, f64)> {
        self.page
            .iter()
            .filter(|line| line.metric == "vmagent_remotewrite_duration_seconds_bucket")
            .filter_map(|line| {
                let (_, range) = line.labels.iter().find(|(name, _)| name == "vmrange")?;
                let (_, upper) = range.split_once("...")?;
                Some((upper.parse().ok()?, line.value))
            })
            .collect()
    }
}

fn quantile_of(mut counts: Vec<(f64, f64)>, quantile: f64) -> Option<f64> {
    counts.sort_by(|left, right| left.0.total_cmp(&right.0));
    let wanted = counts.iter().map(|(_, count)| count).sum::<f64>() * quantile;
    let mut seen = 0.0;
    counts.into_iter().find_map(|(upper, count)| {
        seen += count;
        (count > 0.0 && seen >= wanted).then_some(upper)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(text: &str) -> Metrics {
        Metrics {
            page: parse(text).unwrap(),
        }
    }

    #[test]
    fn queues_are_added_up_and_statuses_are_distinguished() {
        let metrics = metrics(
            "vmagent_remotewrite_requests_total{url=\"1:secret-url\", status_code=\"2XX\"} 5\n\
             vmagent_remotewrite_requests_total{url=\"1:secret-url\", status_code=\"503\"} 2\n\
             vmagent_remotewrite_pending_data_bytes{path=\"a\"} 10\nvmagent_remotewrite_pending_data_bytes{path=\"b\"} 5\n",
        );
        assert_eq!(metrics.answers(), "2XX: 5, 503: 2");
        assert_eq!(metrics.pending_bytes(), 15.0);
        assert_eq!(metrics.retries(), 0.0);
    }

    #[test]
    fn quantiles_are_of_the_time_between_two_readings() {
        let bucket = |range: &str, count: u32| {
            format!(
                "vmagent_remotewrite_duration_seconds_bucket{{url=\"1\",vmrange=\"{range}\"}} {count}\n"
            )
        };
        let first = metrics(&bucket("1.0e-03...2.0e-03", 100));
        let text = bucket("1.0e-03...2.0e-03", 190)
            + &bucket("1.0e-01...2.0e-01", 9)
            + &bucket("1...2", 1);
        let second = metrics(&text);
        let quantile = |quantile| second.request_duration(&first, quantile);
        assert_eq!(quantile(0.5), Some(2e-3));
        assert_eq!(quantile(0.99), Some(0.2));
        assert_eq!(quantile(1.0), Some(2.0));
        assert_eq!(second.request_duration(&second, 0.5), None);
    }
}
