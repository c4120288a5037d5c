//! The common properties of all targets: label sets, and the movement of each value.

use super::page::{Line, Page};
use lanes_support::remote_write::{delimited, label};
use std::collections::{HashMap, HashSet};

/// The movement of a series's value from scrape to scrape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Movement {
    /// The value is constant.
    Still,
    /// The value is a counter that grows by about this much per second.
    Grows(f64),
    /// The value is a gauge that walks around its captured value in steps of about this size.
    Walks(f64),
}

/// A series of every target.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesShape {
    /// The name and the value of each label, sorted by name with `__name__` first, without the
    /// target's labels.
    pub labels: Vec<(String, String)>,
    /// The captured value.
    pub value: f64,
    /// Values are multiples of one over this power of ten. `None` for values in scientific
    /// notation, which are not rounded.
    pub scale: Option<f64>,
    /// The movement of the value.
    pub movement: Movement,
}

/// The series of every target.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetShape {
    /// The series in the order of the page.
    pub series: Vec<SeriesShape>,
}

/// The label that a scrape adds to identify the target.
const INSTANCE: &str = "instance";
/// The labels that a scrape adds.
const TARGET_LABELS: [&str; 2] = [INSTANCE, "job"];
/// The value of the label `job` of all series.
pub const JOB: &str = "node_exporter";

impl TargetShape {
    /// Creates the shape of a target with this many series from two pages a second apart.
    pub fn of(pages: &[Page; 2], series_per_target: usize) -> TargetShape {
        let key = |line: &Line| (line.metric.clone(), line.labels.clone());
        let later: HashMap<_, f64> = pages[1]
            .iter()
            .map(|line| (key(line), line.value))
            .collect();
        let usable = |line: &&Line| {
            line.value.is_finite()
                && !line
                    .labels
                    .iter()
                    .any(|(name, _)| TARGET_LABELS.contains(&name.as_str()))
        };
        let of_page: Vec<SeriesShape> = pages[0]
            .iter()
            .filter(usable)
            .map(|line| SeriesShape::of(line, later.get(&key(line)).copied().unwrap_or(line.value)))
            .collect();
        TargetShape {
            series: grow(of_page, series_per_target),
        }
    }

    /// Returns the parts of the labels that all targets share.
    pub fn encoded_labels(&self) -> Vec<EncodedLabels> {
        self.series.iter().map(EncodedLabels::of).collect()
    }
}

/// The labels of a series as the fields `labels` of a `TimeSeries` message, in two parts: those
/// before `instance` and those after it. The complete labels of eight thousand targets would take a
/// gigabyte.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedLabels {
    /// The labels whose names sort before `instance`.
    pub before: Vec<u8>,
    /// The labels whose names sort after `instance`.
    pub after: Vec<u8>,
}

impl EncodedLabels {
    fn of(series: &SeriesShape) -> EncodedLabels {
        let mut labels: Vec<(&str, &str)> = series
            .labels
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        labels.push(("job", JOB));
        labels.sort_unstable();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (name, value) in labels {
            let side = if name < INSTANCE {
                &mut before
            } else {
                &mut after
            };
            delimited(side, 1, &label(name.as_bytes(), value.as_bytes()));
        }
        EncodedLabels { before, after }
    }
}

/// Returns the name of a target in its first revision.
pub fn instance(target: usize) -> String {
    format!("node-{target:05}.example.com:9100")
}

/// Returns the encoded label that names a target. A later revision of a target is another machine
/// in its place, whose series are all new.
pub fn encoded_instance(target: usize, revision: usize) -> Vec<u8> {
    let name = match revision {
        0 => instance(target),
        _ => format!("node-{target:05}-{revision}.example.com:9100"),
    };
    let mut encoded = Vec::new();
    delimited(
        &mut encoded,
        1,
        &label(INSTANCE.as_bytes(), name.as_bytes()),
    );
    encoded
}

impl SeriesShape {
    fn of(line: &Line, later: f64) -> SeriesShape {
        let mut labels = line.labels.clone();
        labels.push(("__name__".to_owned(), line.metric.clone()));
        labels.sort_unstable();
        let step = later - line.value;
        let movement = match (line.is_counter, step) {
            (_, 0.0) => Movement::Still,
            (true, step) if step > 0.0 => Movement::Grows(step),
            (true, _) => Movement::Still,
            (false, step) => Movement::Walks(step.abs()),
        };
        SeriesShape {
            labels,
            value: line.value,
            scale: scale(&line.text),
            movement,
        }
    }
}

/// Returns ten to the number of decimals, or `None` for scientific notation with a negative
/// exponent.
fn scale(text: &str) -> Option<f64> {
    /// More digits than this are noise of a division, which rounding would only imitate.
    const DECIMALS_MAX: usize = 9;
    if text.contains("e-") {
        return None;
    }
    if text.contains(['e', 'E']) {
        return Some(1.0);
    }
    let decimals = text
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len());
    (decimals <= DECIMALS_MAX).then(|| 10f64.powi(decimals as i32))
}

/// Adjusts the page to the requested number of series: adds CPUs, or drops its last series.
fn grow(mut series: Vec<SeriesShape>, wanted: usize) -> Vec<SeriesShape> {
    let cpu_of = |one: &SeriesShape| {
        one.labels
            .iter()
            .find(|(name, _)| name == "cpu")
            .map(|(_, value)| value.clone())
    };
    let known: HashSet<String> = series.iter().filter_map(cpu_of).collect();
    let of_one_cpu: Vec<SeriesShape> = series
        .iter()
        .filter(|one| cpu_of(one).as_deref() == Some("0"))
        .cloned()
        .collect();
    let numbers = (0..).map(|number: usize| number.to_string());
    for number in numbers.filter(|number| !known.contains(number)) {
        if series.len() >= wanted || of_one_cpu.is_empty() {
            break;
        }
        for one in &of_one_cpu {
            let mut copy = one.clone();
            for (name, value) in &mut copy.labels {
                if name == "cpu" {
                    value.clone_from(&number);
                }
            }
            series.push(copy);
        }
    }
    series.truncate(wanted);
    series
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::page::parse;
    use super::*;

    /// Creates a shape from a page of four lines: a growing counter, a constant one, a moving
    /// gauge, and a gauge in scientific notation.
    pub fn small(series_per_target: usize) -> TargetShape {
        let page = |cpu: &str, load: &str| {
            parse(&format!(
                "# TYPE node_cpu_seconds_total counter\nnode_cpu_seconds_total{{cpu=\"0\",mode=\"idle\"}} {cpu}\n\
                 node_cpu_seconds_total{{cpu=\"0\",mode=\"nice\"}} 0\nnode_load1 {load}\nnode_time 5e-05\n"
            ))
            .unwrap()
        };
        TargetShape::of(
            &[page("10.25", "1.5"), page("11.2", "1.75")],
            series_per_target,
        )
    }

    #[test]
    fn values_move_as_in_the_captured_pages() {
        let shape = small(4);
        let movements: Vec<Movement> = shape.series.iter().map(|one| one.movement).collect();
        assert!(matches!(movements[0], Movement::Grows(rate) if (rate - 0.95).abs() < 1e-9));
        assert_eq!(
            movements[1..],
            [Movement::Still, Movement::Walks(0.25), Movement::Still]
        );
        let scales: Vec<Option<f64>> = shape.series.iter().map(|one| one.scale).collect();
        assert_eq!(scales, [Some(100.0), Some(1.0), Some(10.0), None]);
    }

    #[test]
    fn the_number_of_series_is_adjusted_by_cpus_or_dropped_lines() {
        let grown = small(7);
        assert_eq!(grown.series.len(), 7);
        let cpus: Vec<&str> = grown.series[4..]
            .iter()
            .map(|one| one.labels[1].1.as_str())
            .collect();
        assert_eq!(cpus, ["1", "1", "2"]);
        let distinct: HashSet<_> = grown.series.iter().map(|one| &one.labels).collect();
        assert_eq!(distinct.len(), 7);
        assert_eq!(small(3).series.len(), 3);
    }

    #[test]
    fn labels_are_sorted_around_the_targets_name() {
        let labels = &small(1).encoded_labels()[0];
        let whole = [
            &labels.before[..],
            &encoded_instance(7, 0),
            &labels.after[..],
        ]
        .concat();
        let text = String::from_utf8_lossy(&whole);
        let places: Vec<usize> = ["__name__", "cpu", "instance", "node-00007", "job", "mode"]
            .iter()
            .map(|part| text.find(part).unwrap())
            .collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_ne!(encoded_instance(7, 0), encoded_instance(7, 1));
    }
}
