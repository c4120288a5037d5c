//! `lanes-bench load`: a load on any URL.

use super::{Outcome, Pace, Plan, Repeated, encode, request::Url, run};
use crate::pinning::Processors;
use crate::usage::Tree;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use lanes_support::error::{Error, Result};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Returns the sub-command with its options.
pub fn command() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("N")
            .default_value(default)
            .value_parser(value_parser!(u32).range(1..))
            .help(help)
    };
    let seconds = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("SECONDS")
            .default_value(default)
            .value_parser(value_parser!(f64))
            .help(help)
    };
    Command::new("load")
        .about("Loads a URL: in an open loop with --rate, latencies counting from the time a request was meant to be sent, else in a closed loop")
        .arg(Arg::new("url").long("url").required(true).value_name("URL").help("http://host:port/path"))
        .arg(
            Arg::new("rate")
                .long("rate")
                .value_name("N")
                .value_parser(value_parser!(f64))
                .help("requests a second (open loop)"),
        )
        .arg(number("connections", "32", "keep-alive connections, over all threads"))
        .arg(number("threads", "1", "threads of the client"))
        .arg(number("depth", "1", "requests that may wait on one connection; more than 1 is HTTP pipelining"))
        .arg(seconds("seconds", "5", "the time that is measured"))
        .arg(seconds("warm-up", "1", "before that"))
        .arg(seconds("ramp", "0", "over this time the connections are opened"))
        .arg(seconds("drain", "10", "answers are waited for so long afterwards"))
        .arg(Arg::new("method").long("method").value_name("NAME").help("[default: GET, with a body POST]"))
        .arg(
            Arg::new("body")
                .long("body")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("what each request carries"),
        )
        .arg(
            Arg::new("header")
                .long("header")
                .value_name("NAME: VALUE")
                .action(ArgAction::Append)
                .help("a header of each request"),
        )
        .arg(
            Arg::new("retries")
                .long("retries")
                .value_name("N")
                .default_value("0")
                .value_parser(value_parser!(u32))
                .help("how often a 503 or 429 is tried again, after its Retry-After"),
        )
        .arg(
            Arg::new("watch")
                .long("watch")
                .value_name("PID")
                .action(ArgAction::Append)
                .value_parser(value_parser!(u32))
                .help("a server's process: CPU and memory of it and all of its children are shown"),
        )
        .arg(Arg::new("cpus").long("cpus").value_name("LIST").default_value("").help("processors of the client, like 0,2-3"))
        .arg(
            Arg::new("remote")
                .long("remote")
                .action(ArgAction::SetTrue)
                .help("the host is meant to be another machine"),
        )
}

/// Loads the URL and prints the outcome.
///
/// # Errors
/// The options contradict each other, a file cannot be read, or the generator fails.
pub fn execute(matches: &ArgMatches) -> Result<()> {
    let plan = plan(matches)?;
    println!("{}", describe(&run(&plan)?));
    Ok(())
}

fn plan(matches: &ArgMatches) -> Result<Plan> {
    let number = |name: &str| matches.get_one::<u32>(name).copied().unwrap_or_default();
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let seconds = |name: &str| {
        let seconds = matches.get_one::<f64>(name).copied().unwrap_or_default();
        Duration::try_from_secs_f64(seconds)
            .map_err(|error| Error::Other(format!("--{name}: {error}")))
    };
    let url = Url::parse(text("url").unwrap_or_default(), matches.get_flag("remote"))?;
    let body = match matches.get_one::<PathBuf>("body") {
        Some(file) => std::fs::read(file).map_err(Error::file("read", file))?,
        None => Vec::new(),
    };
    let method = text("method").unwrap_or(if body.is_empty() { "GET" } else { "POST" });
    let mut headers = Vec::new();
    for header in matches.get_many::<String>("header").into_iter().flatten() {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| Error::Other(format!("--header {header:?}: it is <name>: <value>")))?;
        headers.push((name.trim(), value.trim()));
    }
    let request = encode(method, &url.host, &url.path, &headers, &body);
    let watched: Vec<u32> = matches
        .get_many::<u32>("watch")
        .into_iter()
        .flatten()
        .copied()
        .collect();
    Ok(Plan {
        pace: matches
            .get_one::<f64>("rate")
            .map_or(Pace::Closed, |rate| Pace::Open(*rate)),
        connections: number("connections") as usize,
        threads: number("threads") as usize,
        depth: number("depth") as usize,
        ramp: seconds("ramp")?,
        warm_up: seconds("warm-up")?,
        window: seconds("seconds")?,
        drain: seconds("drain")?,
        attempts_again: number("retries"),
        processors: Processors::parse(text("cpus").unwrap_or_default())?,
        watched: match watched.is_empty() {
            true => Vec::new(),
            false => vec![Tree::new("servers", watched)],
        },
        ..Plan::new(url.address, Arc::new(Repeated(request)))
    })
}

/// Formats the outcome for people.
pub fn describe(outcome: &Outcome) -> String {
    let latency = outcome.latency;
    let gate = outcome.gate();
    let mut text = format!(
        "{:.0} answers/s over {:.2} s",
        outcome.rate(),
        outcome.seconds
    );
    if let Some(offered) = outcome.offered {
        text.push_str(&format!(" ({offered:.0}/s asked for)"));
    }
    text.push_str(&format!(
        "\nlatency ms: p50 {:.3}, p90 {:.3}, p99 {:.3}, p99.9 {:.3}, max {:.3}, mean {:.3} ({} requests)",
        latency.p50, latency.p90, latency.p99, latency.p999, latency.max, latency.mean, latency.count
    ));
    if outcome.offered.is_some() {
        let lateness = outcome.lateness;
        text.push_str(&format!(
            "\nsent late by ms: p50 {:.3}, p99 {:.3}, max {:.3}",
            lateness.p50, lateness.p99, lateness.max
        ));
    }
    let verdict = if gate.holds() { "holds" } else { "FAILS" };
    text.push_str(&format!(
        "\nin flight {:.2}, rate x latency {:.2}: Little's law {verdict}",
        gate.in_flight, gate.expected
    ));
    let shares: Vec<String> = outcome
        .client_cpu
        .iter()
        .map(|cpu| format!("{:.0} %", 100.0 * cpu / outcome.seconds))
        .collect();
    let bound = if outcome.is_client_bound() {
        " (client-bound)"
    } else {
        ""
    };
    text.push_str(&format!(
        "\nCPU of the client's threads: {}{bound}",
        shares.join(", ")
    ));
    for watched in &outcome.watched {
        text.push_str(&format!(
            "\n{}: {:.2} CPU-s, {:.1} MB in {} processes",
            watched.name,
            watched.cpu_seconds,
            watched.usage.memory_bytes as f64 / 1e6,
            watched.usage.processes
        ));
    }
    text.push_str(&format!(
        "\nanswers by status: {:?}",
        outcome.tally.statuses
    ));
    let labels = outcome.labels();
    if !labels.is_empty() {
        text.push_str(&format!("\nNOTE: {}", labels.join("; ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Plan> {
        let all = ["load", "--url", "http://127.0.0.1:1/x"]
            .iter()
            .chain(arguments);
        plan(&command().try_get_matches_from(all).unwrap())
    }

    #[test]
    fn options_are_converted_to_a_plan() {
        let plan = parse(&[
            "--rate",
            "500",
            "--connections",
            "7",
            "--seconds",
            "0.5",
            "--header",
            "a: b",
        ])
        .unwrap();
        assert_eq!((plan.pace, plan.connections), (Pace::Open(500.0), 7));
        assert_eq!(plan.window, Duration::from_millis(500));
        let mut request = Vec::new();
        plan.source.request(0, &mut request);
        assert_eq!(
            request,
            b"GET /x HTTP/1.1\r\nhost: 127.0.0.1:1\r\na: b\r\n\r\n"
        );
        assert_eq!(parse(&[]).unwrap().pace, Pace::Closed);
    }

    #[test]
    fn contradictory_options_are_refused() {
        for (arguments, told) in [
            (&["--header", "x"][..], "--header"),
            (&["--seconds=-1"], "--seconds"),
            (&["--body", "/nowhere/at/all"], "/nowhere/at/all"),
        ] {
            let error = parse(arguments).err().unwrap().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
