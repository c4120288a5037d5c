//! Metrics of the process, as all Prometheus clients have them.

use prometheus::core::{Collector, Desc};
use prometheus::process_collector::ProcessCollector;
use prometheus::proto::{Counter, MetricFamily};

/// The ticks per second in which `/proc` counts CPU time, on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// The library's metrics of this process. The library reports CPU time in whole seconds, so it is
/// replaced by a value with hundredths.
pub struct ProcessMetrics {
    library: ProcessCollector,
}

impl ProcessMetrics {
    /// Creates the metrics of this process.
    pub fn new() -> Self {
        Self {
            library: ProcessCollector::for_self(),
        }
    }
}

impl Collector for ProcessMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.library.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = self.library.collect();
        let cpu = families
            .iter_mut()
            .find(|family| family.name() == "process_cpu_seconds_total");
        if let (Some(family), Some(seconds)) = (cpu, cpu_seconds()) {
            let mut counter = Counter::default();
            counter.set_value(seconds);
            for metric in family.mut_metric() {
                metric.set_counter(counter.clone());
            }
        }
        families
    }
}

/// Returns the seconds of CPU time that this process has used, in the kernel and outside.
fn cpu_seconds() -> Option<f64> {
    ticks(&std::fs::read_to_string("/proc/self/stat").ok()?)
        .map(|ticks| ticks as f64 / TICKS_PER_SECOND)
}

/// Returns the sum of `utime` and `stime`, the 14th and 15th field. The second field, the name of
/// the program in parentheses, may contain anything.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_after_any_name() {
        let stat =
            "12 (a) b 7 (x)) S 1 12 12 0 -1 4194560 100 0 0 0 123 45 0 0 20 0 1 0 100 1000 50";
        assert_eq!(ticks(stat), Some(168));
        assert_eq!(ticks("12 (x) S 1"), None);
    }

    #[test]
    fn cpu_time_has_fractions() {
        let cpu_seconds = || {
            let families = ProcessMetrics::new().collect();
            let cpu = families
                .iter()
                .find(|family| family.name() == "process_cpu_seconds_total");
            cpu.unwrap().get_metric()[0].get_counter().get_value()
        };
        let first = cpu_seconds();
        // Whole seconds alone would take fifty times as long to differ.
        let mut sum = 0_u64;
        while cpu_seconds() == first {
            sum = (0..1_000_000).fold(sum, |sum, number| sum ^ std::hint::black_box(number));
        }
        let later = cpu_seconds();
        assert!(later > first && later - first < 1.0, "{first} {later}");
    }
}
