//! The records of a query. The bar of pg_lanes is a multiple of the faster peer's time, or a number
//! of milliseconds.

use super::turns::Outcome;
use crate::scenario::Record;
use crate::scenario::record::figure;
use serde::Deserialize;

const UNIT: &str = "ms";

/// The bar of a query.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryBar {
    /// The greatest time of a query, as a multiple of the faster peer's median.
    pub times: f64,
    /// A median that is sufficient whatever the peers take, in milliseconds.
    pub most_ms: Option<f64>,
}

/// Returns the records of a row.
pub fn records(row: &str, outcomes: &[Outcome], bar: QueryBar) -> Vec<Record> {
    let peers = outcomes.iter().filter(|outcome| !outcome.is_ours);
    let best = peers
        .filter_map(|outcome| {
            Some((
                outcome.system.as_str(),
                outcome.times.as_ref().ok()?.median(),
            ))
        })
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let record = |outcome: &Outcome| {
        let mut record = match &outcome.times {
            Ok(times) => {
                let notes = [
                    format!("p99 {}", figure(times.p99())),
                    format!("{} rows", outcome.rows),
                ];
                Record::new(row, &outcome.system, times.median(), UNIT).notes(notes)
            }
            Err(reason) => Record::failed(row, &outcome.system, UNIT, reason.clone()),
        };
        if outcome.is_ours {
            judge(&mut record, best, bar);
        }
        record
    };
    outcomes.iter().map(record).collect()
}

fn judge(record: &mut Record, best: Option<(&str, f64)>, bar: QueryBar) {
    let name = best.map_or("the faster peer", |(name, _)| name);
    let enough = bar.most_ms;
    record.bar = Some(match enough {
        Some(most) => format!("<= {} x {name}, or {} {UNIT}", bar.times, figure(most)),
        None => format!("<= {} x {name}", bar.times),
    });
    let met = |ours: f64| {
        enough.is_some_and(|most| ours <= most)
            || best.is_some_and(|(_, theirs)| ours <= bar.times * theirs)
    };
    record.met = Some(record.value.is_some_and(met));
    if let (Some(ours), Some((_, theirs))) = (record.value, best)
        && theirs > 0.0
    {
        record.notes.insert(0, format!("{:.2} x", ours / theirs));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Times;

    const BAR: QueryBar = QueryBar {
        times: 1.0,
        most_ms: Some(1.0),
    };

    fn outcome(system: &str, time: Result<f64, &str>) -> Outcome {
        Outcome {
            system: system.to_owned(),
            is_ours: system == "lanes",
            times: time
                .map(|time| Times::new(vec![time]).unwrap())
                .map_err(str::to_owned),
            rows: 7,
        }
    }

    #[test]
    fn pg_lanes_is_judged_by_the_faster_peer_and_a_short_time_suffices() {
        for (ours, heap, duckdb, met) in [
            (Ok(5.0), Ok(6.0), Ok(5.0), true),
            (Ok(5.1), Ok(6.0), Ok(5.0), false),
            (Ok(0.9), Ok(0.2), Ok(0.3), true),
            (Ok(5.0), Ok(6.0), Err("no"), true),
            (Ok(5.0), Err("no"), Err("no"), false),
            (Err("wrong"), Ok(6.0), Ok(5.0), false),
        ] {
            let all = [
                outcome("lanes", ours),
                outcome("heap", heap),
                outcome("duckdb", duckdb),
            ];
            let records = records("q", &all, BAR);
            let judged: Vec<Option<bool>> = records.iter().map(|record| record.met).collect();
            assert_eq!(judged, [Some(met), None, None], "{records:?}");
        }
    }

    #[test]
    fn a_record_names_the_peer_the_ratio_and_the_rows() {
        let all = [outcome("lanes", Ok(3.0)), outcome("duckdb", Ok(2.0))];
        let ours = &records("q", &all, BAR)[0];
        assert_eq!(ours.bar.as_deref(), Some("<= 1 x duckdb, or 1.00 ms"));
        assert_eq!(ours.notes, ["1.50 x", "p99 3.00", "7 rows"]);
        let bar = QueryBar {
            most_ms: None,
            ..BAR
        };
        let ours = &records("q", &all, bar)[0];
        assert_eq!(ours.bar.as_deref(), Some("<= 1 x duckdb"));
    }
}
