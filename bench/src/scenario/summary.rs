//! The first screen of the report: every figure of pg_lanes beside the best peer of its row, the
//! worst first, and every missed bar.

use super::chart::escape;
use super::record::figure;
use serde_json::Value;
use std::fmt::Write;

/// The beginnings of the peers' names.
const PEERS: [&str; 6] = [
    "VictoriaMetrics",
    "Prometheus",
    "heap",
    "duckdb",
    "polars",
    "chdb",
];

/// A figure of pg_lanes, with that of the best peer if one was measured in the same unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    scenario: String,
    row: String,
    system: String,
    unit: String,
    ours: Option<f64>,
    /// The name and the figure of the best peer.
    peer: Option<(String, f64)>,
    /// The bar of the figure, and whether it is met.
    bar: Option<(String, bool)>,
}

impl Comparison {
    /// Returns how many times as good as the best peer the figure is.
    fn times(&self) -> Option<f64> {
        let (ours, (_, theirs)) = (self.ours?, self.peer.as_ref()?);
        let (better, worse) = match is_more_better(&self.unit)? {
            true => (ours, *theirs),
            false => (*theirs, ours),
        };
        (worse > 0.0 && better > 0.0).then(|| better / worse)
    }
}

/// Whether more of a unit is better. `None` for mere counts.
fn is_more_better(unit: &str) -> Option<bool> {
    if unit.ends_with("/s") {
        return Some(true);
    }
    let is_cost = matches!(unit, "ms" | "us" | "s" | "bytes" | "MiB")
        || unit.starts_with("CPU-s")
        || unit.starts_with("bytes/");
    is_cost.then_some(false)
}

fn is_ours(system: &str) -> bool {
    matches!(system, "lanes" | "pg_lanes") || system.starts_with("lanes, ack")
}

/// Returns the comparisons of a scenario's records: of rows with a peer, and of missed bars.
pub fn comparisons(scenario: &str, records: &[Value]) -> Vec<Comparison> {
    let text = |record: &Value, name: &str| record[name].as_str().unwrap_or_default().to_owned();
    // Rows of SQL have a median instead of a value.
    let value = |record: &Value| record["value"].as_f64().or(record["median"].as_f64());
    let ours = records
        .iter()
        .filter(|record| is_ours(&text(record, "system")));
    let compared = ours.map(|record| {
        let (row, unit) = (text(record, "row"), text(record, "unit"));
        let of_peers = records.iter().filter_map(|other| {
            let system = text(other, "system");
            let is_peer = PEERS.iter().any(|peer| system.starts_with(peer));
            let is_same = text(other, "row") == row && text(other, "unit") == unit;
            let theirs = value(other)?;
            (is_peer && is_same).then_some((system, theirs))
        });
        let peer = match is_more_better(&unit) {
            Some(true) => of_peers.max_by(|a, b| a.1.total_cmp(&b.1)),
            Some(false) => of_peers.min_by(|a, b| a.1.total_cmp(&b.1)),
            None => None,
        };
        Comparison {
            scenario: scenario.to_owned(),
            row,
            system: text(record, "system"),
            unit,
            ours: value(record),
            peer,
            bar: record["met"]
                .as_bool()
                .map(|met| (text(record, "bar"), met)),
        }
    });
    compared
        .filter(|one| one.peer.is_some() || one.bar.as_ref().is_some_and(|(_, met)| !met))
        .collect()
}

/// Returns the first screen of all scenarios. It is empty if there are no comparisons.
pub fn screen(mut all: Vec<Comparison>, records: &[&[Value]]) -> String {
    if all.is_empty() {
        return String::new();
    }
    // Bars without a peer have no ratio, and come last.
    let worst_first = |one: &Comparison| one.times().unwrap_or(f64::INFINITY);
    all.sort_by(|a, b| worst_first(a).total_cmp(&worst_first(b)));
    let mut times: Vec<f64> = all.iter().filter_map(Comparison::times).collect();
    times.sort_by(f64::total_cmp);
    let better = times.iter().filter(|times| **times >= 1.0).count();
    let met: Vec<bool> = records
        .iter()
        .flat_map(|records| records.iter())
        .filter_map(|record| record["met"].as_bool())
        .collect();
    let mut text = format!(
        "<h2 id=\"summary\">Beside the best peer</h2>\n<p>{} of {} figures are at least as good as the best peer's{}. {} of {} bars \
         are met. A ratio above 1 is better: less time, memory or disk, or more per second, by that factor.</p>\n",
        better,
        times.len(),
        match times.get(times.len() / 2) {
            Some(median) => format!("; the median is {} ×", figure(*median)),
            None => String::new(),
        },
        met.iter().filter(|met| **met).count(),
        met.len(),
    );
    text.push_str(&strip(&all));
    text.push_str(
        "<table><tr><th>scenario</th><th>row</th><th>ours</th><th>best peer</th><th>ratio</th><th>bar</th></tr>\n",
    );
    for one in &all {
        text.push_str(&line(one));
    }
    text.push_str("</table>\n");
    text
}

fn line(one: &Comparison) -> String {
    let with_unit = |value: f64| format!("{} {}", figure(value), one.unit);
    let ours = one.ours.map_or("no figure".to_owned(), with_unit);
    let peer = match &one.peer {
        Some((name, value)) => format!("{name}: {}", with_unit(*value)),
        None => String::new(),
    };
    let times = one.times().map_or(String::new(), |times| {
        let class = if times >= 1.0 { "met" } else { "missed" };
        format!("<span class=\"{class}\">{} ×</span>", figure(times))
    });
    let bar = match &one.bar {
        Some((bar, true)) => format!("{} <span class=\"met\">met</span>", escape(bar)),
        Some((bar, false)) => format!("{} <span class=\"missed\">missed</span>", escape(bar)),
        None => String::new(),
    };
    format!(
        "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td class=\"number\">{2}: {3}</td><td class=\"number\">{4}</td>\
         <td class=\"number\">{times}</td><td>{bar}</td></tr>\n",
        escape(&one.scenario),
        escape(&one.row),
        escape(&one.system),
        escape(&ours),
        escape(&peer),
    )
}

const WIDTH: f64 = 720.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 34.0;
const LANE: f64 = 22.0;
const BOTTOM: f64 = 26.0;

/// Draws a chart with a line for each scenario and a dot for each ratio, on a logarithmic axis.
fn strip(all: &[Comparison]) -> String {
    let mut scenarios: Vec<&str> = Vec::new();
    let (mut least, mut most) = (0.5_f64, 2.0_f64);
    for one in all {
        let Some(times) = one.times() else {
            continue;
        };
        if !scenarios.contains(&one.scenario.as_str()) {
            scenarios.push(&one.scenario);
        }
        (least, most) = (least.min(times), most.max(times));
    }
    if scenarios.is_empty() {
        return String::new();
    }
    scenarios.sort_unstable();
    let (low, high) = (least.log10().floor() as i32, most.log10().ceil() as i32);
    let place = |times: f64| {
        let share = (times.log10() - f64::from(low)) / f64::from(high - low);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    };
    let bottom = TOP + LANE * scenarios.len() as f64;
    let mut text = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\"><text class=\"title\" x=\"{LEFT}\" y=\"18\">times as good as the best peer</text>\n",
        bottom + BOTTOM
    );
    for power in low..=high {
        let times = 10_f64.powi(power);
        let (x, width) = (place(times), if power == 0 { 2 } else { 1 });
        let _ = writeln!(
            text,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke-width=\"{width}\"/>\
             <text class=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            bottom + 18.0,
            figure(times)
        );
    }
    for (number, scenario) in scenarios.iter().enumerate() {
        let y = TOP + LANE * (number as f64 + 0.5);
        let _ = writeln!(
            text,
            "<text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT - 10.0,
            y + 4.0,
            escape(scenario)
        );
        for one in all.iter().filter(|one| one.scenario == *scenario) {
            let Some(times) = one.times() else {
                continue;
            };
            let colour = if times >= 1.0 { "#00703c" } else { "#b00020" };
            let _ = writeln!(
                text,
                "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\" fill-opacity=\".6\"><title>{}: {} ×</title></circle>",
                place(times),
                escape(&one.row),
                figure(times)
            );
        }
    }
    text.push_str("</svg>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn records() -> Vec<Value> {
        let one = |row: &str, system: &str, value: f64, unit: &str, met: Option<bool>| json!({"row": row, "system": system, "value": value, "unit": unit, "met": met, "bar": "<= 5"});
        vec![
            one("slow <x>", "lanes", 8.0, "ms", Some(false)),
            one("slow <x>", "heap", 9.0, "ms", None),
            one("slow <x>", "duckdb-2", 2.0, "ms", None),
            one("slow <x>", "lanes, zone maps off", 1.0, "ms", None),
            one("rate", "lanes, ack memory", 300.0, "samples/s", None),
            one("rate", "VictoriaMetrics 1", 100.0, "samples/s", None),
            one("rate", "VictoriaMetrics 1", 5.0, "ms", None),
            one("counted", "pg_lanes", 3.0, "series", Some(true)),
            one("counted", "Prometheus", 1.0, "series", None),
            one("alone", "pg_lanes", 3.0, "ms", Some(false)),
            json!({"row": "sql", "system": "lanes", "median": 1.0, "unit": "ms"}),
            json!({"row": "sql", "system": "polars", "median": 1.5, "unit": "ms"}),
        ]
    }

    #[test]
    fn pg_lanes_is_compared_with_the_best_peer_of_its_row_and_unit() {
        let found = comparisons("size", &records());
        let told: Vec<(&str, Option<f64>, Option<bool>)> = found
            .iter()
            .map(|one| {
                (
                    one.row.as_str(),
                    one.times(),
                    one.bar.as_ref().map(|bar| bar.1),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("slow <x>", Some(0.25), Some(false)),
                ("rate", Some(3.0), None),
                ("alone", None, Some(false)),
                ("sql", Some(1.5), None),
            ]
        );
    }

    #[test]
    fn the_screen_shows_the_worst_first_with_a_dot_for_each_ratio() {
        let records = records();
        let text = screen(comparisons("size", &records), &[&records]);
        let places: Vec<usize> = ["<td>slow &lt;x&gt;", "<td>sql", "<td>rate", "<td>alone"]
            .iter()
            .map(|row| text.find(row).unwrap())
            .collect();
        assert!(places.is_sorted(), "{text}");
        assert_eq!(text.matches("<circle").count(), 3);
        assert!(text.contains("2 of 3 figures"), "{text}");
        assert!(text.contains("1 of 3 bars are met"), "{text}");
        assert!(text.contains("duckdb-2: 2.00 ms"), "{text}");
        assert!(text.contains("&lt;= 5 <span class=\"missed\">"), "{text}");
        assert_eq!(screen(Vec::new(), &[]), "");
    }
}
