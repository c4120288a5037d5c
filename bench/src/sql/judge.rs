//! The comparison of a row's bar with its measurements.

use crate::sql::definition::{Bar, Definition};
use crate::sql::generate::Data;
use crate::sql::measurement::{Kind, Measurement, Unit};
use crate::sql::planning;

/// The row whose round trip is the fixed cost of every other.
pub const FLOOR: &str = "floor";

/// A measurement with its bar.
#[derive(Debug, Clone)]
pub struct Line {
    /// The measurement.
    pub measurement: Measurement,
    /// The bar in words, if this measurement has one.
    pub bar: Option<String>,
    /// Whether the bar is met. `None` without a bar, or if the bar cannot be judged; the notes then
    /// explain why.
    pub met: Option<bool>,
}

/// The values that bars are relative to.
#[derive(Debug, Clone, Default)]
pub struct Yardstick {
    /// Whether the number of rows is the one that the bars are for.
    pub full: bool,
    /// The median round trip of an empty query on lanes, in milliseconds.
    pub floor: Option<f64>,
    /// The number of bytes that the row's query has to read, and the bytes per second that one core
    /// reads from a buffer of that size.
    pub bandwidth: Option<(f64, f64)>,
}

impl Bar {
    /// Returns the number of bytes that the query has to read.
    pub fn bytes(&self, data: &Data) -> Option<f64> {
        let rows = data.rows(self.table.as_ref()?)?;
        Some(self.bytes_per_row? * rows as f64)
    }
}

/// Judges all measurements of one row.
pub fn judge(
    definition: &Definition,
    measurements: Vec<Measurement>,
    yardstick: &Yardstick,
) -> Vec<Line> {
    let best_peer = best_peer(&measurements);
    let judged = |measurement: Measurement| -> Line {
        let bar = definition.bar.as_ref().filter(|bar| {
            measurement.kind
                == if bar.engine {
                    Kind::OursInEngine
                } else {
                    Kind::Ours
                }
        });
        match bar {
            Some(bar) => against(bar, measurement, &best_peer, yardstick),
            None => Line {
                measurement,
                bar: None,
                met: None,
            },
        }
    };
    measurements.into_iter().map(judged).collect()
}

/// Judges the additional planning time.
pub fn judge_planning(measurements: Vec<Measurement>) -> Vec<Line> {
    let line = |measurement: Measurement| {
        let ours = measurement.kind == Kind::Ours;
        let limit = planning::ADDED_MICROSECONDS_MAX;
        Line {
            bar: ours.then(|| format!("<= {limit} {}", Unit::Microseconds.name())),
            met: ours.then(|| measurement.median().is_some_and(|median| median <= limit)),
            measurement,
        }
    };
    measurements.into_iter().map(line).collect()
}

/// Returns the name and the median of the fastest peer.
fn best_peer(measurements: &[Measurement]) -> Option<(String, f64)> {
    measurements
        .iter()
        .filter(|measurement| measurement.kind == Kind::Peer)
        .filter_map(|measurement| Some((measurement.system.clone(), measurement.median()?)))
        .min_by(|left, right| left.1.total_cmp(&right.1))
}

fn against(
    bar: &Bar,
    mut measurement: Measurement,
    best_peer: &Option<(String, f64)>,
    yardstick: &Yardstick,
) -> Line {
    // Upper limits of the median in milliseconds, in words and as numbers. An unknown limit leaves
    // the row without a verdict.
    let mut limits: Vec<(String, Option<f64>)> = Vec::new();
    if let Some(milliseconds) = bar.milliseconds {
        limits.push((format!("<= {milliseconds} ms"), Some(milliseconds)));
    }
    if let Some(times) = bar.times_best_peer {
        let limit = best_peer.as_ref().map(|(_, median)| median / times);
        let who = best_peer
            .as_ref()
            .map_or_else(|| "no peer was run".to_owned(), |(name, _)| name.clone());
        limits.push((format!(">= {times}x best peer ({who})"), limit));
    }
    if let Some(share) = bar.bandwidth_share {
        let floor = match bar.plus_floor {
            true => yardstick.floor,
            false => Some(0.0),
        };
        let reading = yardstick
            .bandwidth
            .map(|(bytes, speed)| bytes / (share * speed) * 1e3);
        let limit = reading.zip(floor).map(|(reading, floor)| reading + floor);
        let speed = yardstick
            .bandwidth
            .map_or(f64::NAN, |(_, speed)| speed / 1e9);
        let plus = if bar.plus_floor { " + floor" } else { "" };
        limits.push((
            format!(
                "<= {:.3} ms ({:.0}% of {speed:.1} GB/s{plus})",
                limit.unwrap_or(f64::NAN),
                share * 100.0
            ),
            limit,
        ));
    }
    let median = measurement.median();
    let verdict =
        |limit: &Option<f64>| limit.map(|limit| median.is_some_and(|median| median <= limit));
    let verdicts: Vec<Option<bool>> = limits.iter().map(|(_, limit)| verdict(limit)).collect();
    let met = if !yardstick.full {
        measurement
            .notes
            .push("not judged: bars are for 1000000 rows".to_owned());
        None
    } else if verdicts.contains(&Some(false)) {
        Some(false)
    } else if verdicts.contains(&None) {
        measurement
            .notes
            .push("not judged: a part of the bar is unknown".to_owned());
        None
    } else {
        Some(true)
    };
    let texts: Vec<String> = limits.into_iter().map(|(text, _)| text).collect();
    Line {
        measurement,
        bar: Some(texts.join(", ")),
        met,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Times;

    const TEXT: &str = "order = 1\ntitle = 't'\nanswer = 'zero'\n[query.lanes]\ntext = ''\n[bar]\n";

    fn definition(bar: &str) -> Definition {
        Definition::parse("x", &format!("{TEXT}{bar}")).unwrap()
    }

    fn measured(system: &str, kind: Kind, median: f64) -> Measurement {
        Measurement::new("x", system, kind, Ok(Times::new(vec![median]).unwrap()))
    }

    fn met(bar: &str, measurements: Vec<Measurement>, yardstick: &Yardstick) -> Option<bool> {
        judge(&definition(bar), measurements, yardstick)
            .remove(0)
            .met
    }

    fn full() -> Yardstick {
        Yardstick {
            full: true,
            floor: Some(0.1),
            bandwidth: Some((10e6, 10e9)),
        }
    }

    #[test]
    fn each_part_of_a_bar_has_to_hold() {
        let bar = "milliseconds = 10.0\ntimes_best_peer = 3.0";
        let run = |ours, peer| {
            met(
                bar,
                vec![
                    measured("lanes", Kind::Ours, ours),
                    measured("p", Kind::Peer, peer),
                ],
                &full(),
            )
        };
        assert_eq!(run(10.0, 30.0), Some(true));
        assert_eq!(run(10.0, 29.0), Some(false));
        assert_eq!(run(11.0, 90.0), Some(false));
        let alone = |ours| met(bar, vec![measured("lanes", Kind::Ours, ours)], &full());
        assert_eq!((alone(1.0), alone(11.0)), (None, Some(false)));
    }

    #[test]
    fn the_best_peer_is_the_fastest_that_has_an_answer() {
        let failed = Measurement::new("x", "failed", Kind::Peer, Err("no".to_owned()));
        let measurements = [
            failed,
            measured("slow", Kind::Peer, 9.0),
            measured("fast", Kind::Peer, 3.0),
            measured("lanes", Kind::Ours, 1.0),
        ];
        assert_eq!(best_peer(&measurements), Some(("fast".to_owned(), 3.0)));
    }

    #[test]
    fn a_share_of_the_bandwidth_is_a_time() {
        let bar = "bytes_per_row = 1.0\ntable = 'trades'\nbandwidth_share = 0.8";
        // 10 MB at 8 GB/s are 1.25 ms.
        let run = |bar: &str, ours| met(bar, vec![measured("lanes", Kind::Ours, ours)], &full());
        assert_eq!((run(bar, 1.24), run(bar, 1.26)), (Some(true), Some(false)));
        let plus = format!("{bar}\nplus_floor = true");
        assert_eq!(
            (run(&plus, 1.34), run(&plus, 1.36)),
            (Some(true), Some(false))
        );
        let unknown = Yardstick {
            floor: None,
            ..full()
        };
        assert_eq!(
            met(&plus, vec![measured("lanes", Kind::Ours, 0.1)], &unknown),
            None
        );
    }

    #[test]
    fn only_the_figure_of_the_bar_is_judged() {
        let lines = judge(
            &definition("milliseconds = 1.0\nengine = true"),
            vec![
                measured("lanes", Kind::Ours, 2.0),
                measured("lanes (engine)", Kind::OursInEngine, 0.5),
                measured("p", Kind::Peer, 0.1),
            ],
            &full(),
        );
        let mets: Vec<Option<bool>> = lines.iter().map(|line| line.met).collect();
        assert_eq!(mets, [None, Some(true), None]);
    }

    #[test]
    fn an_error_misses_its_bar_and_small_data_is_not_judged() {
        let failed = || {
            vec![Measurement::new(
                "x",
                "lanes",
                Kind::Ours,
                Err("no".to_owned()),
            )]
        };
        assert_eq!(met("milliseconds = 1.0", failed(), &full()), Some(false));
        assert_eq!(
            met(
                "milliseconds = 1.0",
                failed(),
                &Yardstick {
                    full: false,
                    ..full()
                }
            ),
            None
        );
    }

    #[test]
    fn additional_planning_time_has_a_limit() {
        let run = |added| {
            judge_planning(vec![measured("lanes, added", Kind::Ours, added)])
                .remove(0)
                .met
        };
        assert_eq!(
            (run(5.0), run(6.0), run(-1.0)),
            (Some(true), Some(false), Some(true))
        );
    }
}
