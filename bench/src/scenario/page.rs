//! The report for a browser: one file, `report.html`, of all results in the folder. It loads
//! nothing from elsewhere.

use super::chart::{Chart, escape, svg};
use super::record::{Point, figure};
use super::summary;
use lanes_support::error::{Error, Result};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// The name of the report in the results' folder.
pub const FILE: &str = "report.html";
/// The ending of the file that describes a run.
const ABOUT: &str = ".about.json";

const STYLE: &str = "
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1120px; margin: 2em auto; padding: 0 1em; color: #1a1a1a; background: #fff }
h1 { font-size: 1.6em } h2#summary { border: 0; margin-top: 1em; padding: 0 } h2 { margin-top: 2.2em; border-top: 1px solid #ccc; padding-top: .8em }
table { border-collapse: collapse; width: 100%; font-size: .92em } th { text-align: left }
td, th { padding: .2em .6em; border-bottom: 1px solid #e4e4e4; vertical-align: top } td.number { text-align: right; white-space: nowrap }
.met { color: #00703c } .missed { color: #b00020; font-weight: 600 } .note { color: #555; font-size: .9em }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15em 1em } dt { color: #555 } dd { margin: 0 } pre { white-space: pre-wrap }
svg { width: 100%; max-width: 720px; display: block; margin: 1em 0; font: 12px system-ui, sans-serif }
svg .title { font-weight: 600 } svg .grid { stroke: #e0e0e0 } svg .middle { text-anchor: middle } svg .end { text-anchor: end }";

/// Writes the report of the folder's results.
///
/// # Errors
/// The folder cannot be read, or the file cannot be written.
pub fn write(folder: &Path) -> Result<()> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .map_err(Error::file("read", folder))?
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_list = name.ends_with(".json") && !name.ends_with(ABOUT);
            is_list.then(|| name.trim_end_matches(".json").to_owned())
        })
        .collect();
    names.sort();
    let json = |file: String| -> Option<Value> {
        let text = std::fs::read_to_string(folder.join(file)).ok()?;
        serde_json::from_str(&text).ok()
    };
    let lists: Vec<(&String, Vec<Value>)> = names
        .iter()
        .filter_map(|name| match json(format!("{name}.json"))? {
            Value::Array(records) => Some((name, records)),
            _ => None,
        })
        .collect();
    let compared = lists
        .iter()
        .flat_map(|(name, records)| summary::comparisons(name, records));
    let all: Vec<&[Value]> = lists
        .iter()
        .map(|(_, records)| records.as_slice())
        .collect();
    let mut sections = vec![summary::screen(compared.collect(), &all)];
    for (name, records) in &lists {
        let about = json(format!("{name}{ABOUT}")).unwrap_or(Value::Null);
        sections.push(section(name, records, &about));
    }
    let file = folder.join(FILE);
    std::fs::write(&file, page(&sections)).map_err(Error::file("write", &file))
}

fn page(sections: &[String]) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>pg_lanes: benchmarks</title><style>{STYLE}</style></head><body>\n\
         <h1>pg_lanes: benchmarks</h1>\n\
         <p>Figures mean something only beside others of the same run. Latencies of open loops count from the time at which a request was \
         meant to be sent. What was acknowledged is verified before a figure is shown. CPU and memory are of all processes of a system. \
         A row is marked where the client bounds it, or where what is in flight differs from rate times latency by more than a fifth. \
         Published figures of others were measured elsewhere, on the hardware that is named with them.</p>\n{}</body></html>\n",
        sections.join("")
    )
}

fn section(name: &str, records: &[Value], about: &Value) -> String {
    let title = about["about"]["title"].as_str().unwrap_or(name);
    let mut text = format!(
        "<h2 id=\"{0}\">{0}: {1}</h2>\n",
        escape(name),
        escape(title)
    );
    text.push_str(&facts(about));
    for chart in charts(records) {
        text.push_str(&svg(&chart));
    }
    text.push_str("<table><tr><th>row</th><th>system</th><th>figure</th><th>unit</th><th>bar</th><th></th></tr>\n");
    for record in records {
        text.push_str(&row(record));
    }
    text.push_str("</table>\n");
    text
}

/// Returns scope, build, hardware, data, protocol and failures.
fn facts(about: &Value) -> String {
    let mut text = String::from("<dl>");
    let mut fact = |name: &str, value: &str| {
        if !value.trim().is_empty() {
            let _ = write!(text, "<dt>{name}</dt><dd>{}</dd>", escape(value.trim()));
        }
    };
    let described = |field: &str| {
        about["about"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let list = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    };
    for name in ["scope", "data", "protocol"] {
        fact(name, &described(name));
    }
    let build = &about["build"];
    if let Some(commit) = build["commit"].as_str() {
        let changed = build["changed_files"].as_u64().unwrap_or_default();
        let profile = build["profile"].as_str().unwrap_or_default();
        let changes = if changed > 0 {
            format!(", {changed} files changed since")
        } else {
            String::new()
        };
        fact("build", &format!("commit {commit}{changes}, {profile}"));
    }
    fact("systems", &list(&about["systems"]).join(", "));
    fact(
        "hardware",
        about["machine_text"].as_str().unwrap_or_default(),
    );
    let (servers, client) = (
        &about["processors"]["servers"],
        &about["processors"]["client"],
    );
    if let (Some(servers), Some(client)) = (servers.as_str(), client.as_str()) {
        fact("processors", &format!("servers {servers}, client {client}"));
    }
    if about["short"] == Value::Bool(true) {
        fact("form", "short");
    }
    let failures = list(&about["failures"]);
    if about.is_object() {
        fact("failures", if failures.is_empty() { "none" } else { "" });
    }
    failures.iter().for_each(|failure| fact("failure", failure));
    let published = list(&about["about"]["published"]);
    published
        .iter()
        .for_each(|figure| fact("published elsewhere", figure));
    text.push_str("</dl>\n");
    text
}

fn row(record: &Value) -> String {
    let text = |name: &str| escape(record[name].as_str().unwrap_or_default());
    // Rows of SQL have a median instead of a value.
    let value = match record["value"].as_f64().or(record["median"].as_f64()) {
        Some(value) => figure(value),
        None => "-".to_owned(),
    };
    let verdict = match record["met"].as_bool() {
        Some(true) => "<span class=\"met\">met</span>",
        Some(false) => "<span class=\"missed\">missed</span>",
        None => "",
    };
    let mut notes: Vec<String> = record["notes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(escape)
        .collect();
    notes.extend(
        record["error"]
            .as_str()
            .map(|error| format!("error: {}", escape(error))),
    );
    notes.extend(
        record["p99"]
            .as_f64()
            .map(|p99| format!("p99 {}", figure(p99))),
    );
    format!(
        "<tr><td>{}</td><td>{}</td><td class=\"number\">{value}</td><td>{}</td><td>{} {verdict}</td><td class=\"note\">{}</td></tr>\n",
        text("row"),
        text("system"),
        text("unit"),
        text("bar"),
        notes.join("; ")
    )
}

/// Returns the charts, each with its records.
fn charts(records: &[Value]) -> Vec<Chart> {
    let mut charts: Vec<Chart> = Vec::new();
    for record in records {
        let point = serde_json::from_value::<Point>(record["point"].clone());
        let (Ok(point), Some(value)) = (point, record["value"].as_f64()) else {
            continue;
        };
        let at = charts.iter().position(|chart| chart.title == point.chart);
        let at = at.unwrap_or_else(|| {
            charts.push(Chart {
                title: point.chart.clone(),
                x_unit: point.x_unit.clone(),
                y_unit: record["unit"].as_str().unwrap_or_default().to_owned(),
                series: Vec::new(),
            });
            charts.len() - 1
        });
        let series = &mut charts[at].series;
        match series.iter_mut().find(|(name, _)| *name == point.series) {
            Some((_, points)) => points.push((point.x, value)),
            None => series.push((point.series, vec![(point.x, value)])),
        }
    }
    charts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Bar, Record};
    use serde_json::json;

    fn records() -> Vec<Value> {
        let record = |x: f64, value: f64| {
            let record = Record::new("GET <x>", "pg_lanes", value, "ms").bar(Some(Bar::Most(2.0)));
            json!(record.point("latency against load", "p99", x, "requests/s"))
        };
        let failed = json!(Record::failed("y", "pg_lanes", "ms", "it broke"));
        vec![record(1.0, 1.0), record(2.0, 3.0), failed]
    }

    #[test]
    fn a_section_has_verdicts_charts_and_facts() {
        let about = json!({
            "about": {"title": "t", "scope": "s & more", "published": ["5M/s on 8 cores"]},
            "build": {"commit": "abc", "changed_files": 2, "profile": "release"}, "failures": ["one"],
        });
        let text = section("ceiling", &records(), &about);
        for wanted in [
            "GET &lt;x&gt;",
            ">met<",
            ">missed<",
            "<svg",
            "s &amp; more",
            "error: it broke",
            "2 files changed",
            "<dt>failure</dt><dd>one",
            "<dt>published elsewhere</dt><dd>5M/s on 8 cores",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        assert_eq!(
            charts(&records())[0].series,
            [("p99".to_owned(), vec![(1.0, 1.0), (2.0, 3.0)])]
        );
    }

    #[test]
    fn the_report_contains_all_results_in_the_folder() {
        let folder = std::env::temp_dir().join(format!("lanes-report-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(
            folder.join("sql.json"),
            r#"[{"row": "asof", "system": "lanes", "median": 1.5, "p99": 2.5, "unit": "ms"}]"#,
        )
        .unwrap();
        std::fs::write(folder.join("ceiling.json"), json!(records()).to_string()).unwrap();
        std::fs::write(folder.join("broken.json"), "{").unwrap();
        write(&folder).unwrap();
        let text = std::fs::read_to_string(folder.join(FILE)).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(
            text.contains("<h2 id=\"sql\">")
                && text.contains("p99 2.50")
                && text.contains("<h2 id=\"ceiling\">"),
            "{text}"
        );
        assert!(!text.contains("broken") && text.ends_with("</html>\n"));
    }
}
