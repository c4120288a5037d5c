//! The same load by three generators: this one, wrk and k6, each in a closed loop over equally many
//! connections. The gateway's own count shows which of them report correctly. The CPU time that
//! each takes per request explains how they differ: on a shared machine an expensive client leaves
//! less to the server.

use super::findings::Findings;
use super::record::{Record, figure};
use super::system::{NAME, System};
use crate::load::{self, Plan};
use crate::usage::Tree;
use lanes_support::error::{Error, Result};
use lanes_support::place;
use lanes_support::process::run;
use serde::Deserialize;
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// The scenario's settings.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossCheck {
    /// The number of keep-alive connections.
    connections: usize,
    /// The duration for each generator. The others have no warm-up, so this one has none either.
    seconds: u32,
}

/// What a generator reports about its own load. Times are in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct GeneratorReport {
    requests: f64,
    /// Requests without a 2xx or 3xx response, including those without any response.
    failed: f64,
    rate: f64,
    p50: f64,
    p99: f64,
}

/// The script that k6 runs.
const K6_SCRIPT: &str = "import http from 'k6/http';
export const options = { discardResponseBodies: true, summaryTrendStats: ['med', 'p(99)'] };
export default function () { http.get(__ENV.URL); }
";

const ROW: &str = "GET, closed loop, cross-check";

/// Runs the comparison. A failure is a record that says so.
pub fn measure(
    check: CrossCheck,
    plan: &Plan,
    url: &str,
    system: &System,
    findings: &mut Findings,
) {
    let generators: [(&str, &dyn Fn() -> Result<GeneratorReport>); 3] = [
        ("lanes-bench", &|| ours(check, plan)),
        ("wrk", &|| wrk(check, url)),
        ("k6", &|| k6(check, url)),
    ];
    for (name, generate) in generators {
        match watched(generate, plan, system) {
            Ok((told, notes)) if told.failed > 0.0 => {
                let reason = format!(
                    "{} requests failed beside {}",
                    figure(told.failed),
                    figure(told.requests)
                );
                findings.add(Record::failed(ROW, name, "requests/s", reason).notes(notes));
            }
            Ok((told, notes)) => {
                let row = format!("{ROW}, {} connections", check.connections);
                findings.add(Record::new(&row, name, told.rate, "requests/s").notes(notes));
                for (what, value) in [("p50", told.p50), ("p99", told.p99)] {
                    findings.add(Record::new(format!("{row}, {what}"), name, value, "ms"));
                }
            }
            Err(error) => findings.add(Record::failed(ROW, name, "requests/s", error.to_string())),
        }
    }
}

/// Returns a generator's report, the gateway's count, and the CPU time of both.
fn watched(
    generate: &dyn Fn() -> Result<GeneratorReport>,
    plan: &Plan,
    system: &System,
) -> Result<(GeneratorReport, Vec<String>)> {
    // A generator that is a child process counts once it was waited for.
    let client = Tree::new("client", [std::process::id()]);
    let servers = || -> f64 { plan.watched.iter().map(Tree::cpu_seconds).sum() };
    // The gateway and PostgreSQL are children of this process too.
    let before = (client.cpu_seconds(), servers(), counted(system)?);
    let told = generate()?;
    let after = (client.cpu_seconds(), servers(), counted(system)?);
    let requests = after.2 - before.2;
    let of_servers = after.1 - before.1;
    let of_client = (after.0 - before.0 - of_servers).max(0.0);
    let microseconds = |seconds: f64| 1e6 * seconds / requests.max(1.0);
    let notes = vec![
        format!(
            "{} requests reported, {} counted by the gateway",
            figure(told.requests),
            figure(requests)
        ),
        format!(
            "CPU per request: {NAME} {:.1} us, client {:.1} us",
            microseconds(of_servers),
            microseconds(of_client)
        ),
    ];
    Ok((told, notes))
}

/// Returns the number of requests that the gateway has counted, without those that read the count.
fn counted(system: &System) -> Result<f64> {
    let text = system.gateway().get("/metrics")?.body;
    let lines = text
        .lines()
        .filter(|line| line.starts_with("lanes_gateway_http_requests_total{"));
    let others = lines.filter(|line| !line.contains("route=\"/metrics\""));
    Ok(others
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
        .sum())
}

fn ours(check: CrossCheck, plan: &Plan) -> Result<GeneratorReport> {
    let outcome = load::run(&Plan {
        connections: check.connections,
        warm_up: Duration::ZERO,
        window: Duration::from_secs(check.seconds.into()),
        ..plan.clone()
    })?;
    Ok(GeneratorReport {
        requests: outcome.tally.statuses.values().sum::<u64>() as f64,
        failed: outcome.failed() as f64,
        rate: outcome.rate(),
        p50: outcome.latency.p50,
        p99: outcome.latency.p99,
    })
}

fn wrk(check: CrossCheck, url: &str) -> Result<GeneratorReport> {
    let mut command = Command::new("wrk");
    command.args(["--threads", "1", "--latency"]);
    command
        .arg("--connections")
        .arg(check.connections.to_string());
    command.arg("--duration").arg(format!("{}s", check.seconds));
    let text = run(command.arg(url))?;
    parse_wrk(&text).ok_or_else(|| Error::Other(format!("wrk printed {text}")))
}

/// Parses the output of wrk.
fn parse_wrk(text: &str) -> Option<GeneratorReport> {
    let after = |mark: &str| {
        let line = text.lines().find(|line| line.trim().starts_with(mark))?;
        line.trim().strip_prefix(mark)?.split_whitespace().next()
    };
    let milliseconds = |mark: &str| {
        let text = after(mark)?;
        let digits = text.trim_end_matches(char::is_alphabetic);
        let unit = match &text[digits.len()..] {
            "us" => 1e-3,
            "ms" => 1.0,
            "s" => 1e3,
            _ => return None,
        };
        Some(digits.parse::<f64>().ok()? * unit)
    };
    let requests = text
        .lines()
        .find_map(|line| line.trim().split_once(" requests in "))?
        .0;
    // wrk prints these lines only if the counts are not zero.
    let refused = after("Non-2xx or 3xx responses:").map_or(Some(0.0), |count| count.parse().ok());
    let errors = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("Socket errors:"))
        .unwrap_or_default();
    let broken = errors
        .split(',')
        .filter_map(|part| part.split_whitespace().last());
    let broken: Option<f64> = broken.map(|count| count.parse::<f64>().ok()).sum();
    Some(GeneratorReport {
        requests: requests.parse().ok()?,
        failed: refused? + broken?,
        rate: after("Requests/sec:")?.parse().ok()?,
        p50: milliseconds("50%")?,
        p99: milliseconds("99%")?,
    })
}

fn k6(check: CrossCheck, url: &str) -> Result<GeneratorReport> {
    let program = place::k6()?;
    if !program.exists() {
        return Err(Error::Missing {
            what: program.display().to_string(),
            remedy: "run `cargo dev peers`, which builds it",
        });
    }
    let folder = place::target().join("bench/cross-check");
    place::make_folder(&folder)?;
    let (script, summary) = (folder.join("script.js"), folder.join("summary.json"));
    std::fs::write(&script, K6_SCRIPT).map_err(Error::file("write", &script))?;
    let mut command = Command::new(program);
    command.args(["run", "--quiet", "--no-usage-report", "--no-color"]);
    command.arg("--vus").arg(check.connections.to_string());
    command.arg("--duration").arg(format!("{}s", check.seconds));
    command.arg("--summary-export").arg(&summary);
    run(command.arg("--env").arg(format!("URL={url}")).arg(&script))?;
    let text = std::fs::read_to_string(&summary).map_err(Error::file("read", &summary))?;
    parse_k6(&text).ok_or_else(|| Error::Other(format!("k6 says {text}")))
}

/// Parses the summary of k6.
fn parse_k6(text: &str) -> Option<GeneratorReport> {
    let summary: Value = serde_json::from_str(text).ok()?;
    let metrics = &summary["metrics"];
    let duration = &metrics["http_req_duration"];
    let requests = metrics["http_reqs"]["count"].as_f64()?;
    Some(GeneratorReport {
        requests,
        failed: (requests * metrics["http_req_failed"]["value"].as_f64()?).round(),
        rate: metrics["http_reqs"]["rate"].as_f64()?,
        p50: duration["med"].as_f64()?,
        p99: duration["p(99)"].as_f64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reports_of_wrk_and_k6_are_parsed() {
        let text = "Running 2s test @ http://127.0.0.1:1/\n  1 threads and 64 connections\n  Latency Distribution\n     50%  500.00us\n     \
                    75%    1.10ms\n     90%    1.60ms\n     99%    2.50ms\n  150000 requests in 2.01s, 20.00MB read\nRequests/sec:  74626.87\n";
        let told = GeneratorReport {
            requests: 150_000.0,
            failed: 0.0,
            rate: 74_626.87,
            p50: 0.5,
            p99: 2.5,
        };
        assert_eq!(parse_wrk(text), Some(told));
        let failures = "  Socket errors: connect 1, read 20, write 0, timeout 3\n  Non-2xx or 3xx responses: 1000\nRequests/sec:";
        let failed = parse_wrk(&text.replace("Requests/sec:", failures)).unwrap();
        assert_eq!(
            failed,
            GeneratorReport {
                failed: 1024.0,
                ..told
            }
        );
        assert_eq!(
            parse_wrk(&text.replace("Requests/sec:", "Socket errors: many\nRequests/sec:")),
            None
        );
        assert_eq!(parse_wrk("unable to connect"), None);
        let text = r#"{"metrics": {"http_reqs": {"count": 8, "rate": 3.5}, "http_req_failed": {"value": 0.25}, "http_req_duration": {"med": 1.5, "p(99)": 4}}}"#;
        let told = GeneratorReport {
            requests: 8.0,
            failed: 2.0,
            rate: 3.5,
            p50: 1.5,
            p99: 4.0,
        };
        assert_eq!(parse_k6(text), Some(told));
        assert_eq!(parse_k6("{}"), None);
    }
}
