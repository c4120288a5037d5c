//! Measures CPU seconds of the gateway and all of PostgreSQL per million samples by remote write:
//! each sample of a new series, then samples of known series. Labels resemble node_exporter's, with
//! 500 metrics per target. Requests have 10,000 and 2,000 samples, on one connection, acknowledged
//! at `wal`. The answer is verified before a figure is printed.
//!
//! `make setup`, then `cargo run --release -p lanes-tests --example series [-- series [level]]`.

use std::time::Instant;

use lanes_support::cluster::Cluster;
use lanes_support::gateway::{self, Gateway};
use lanes_support::process;
use lanes_support::provision::{DATABASE, Passwords, provision};
use lanes_support::remote_write::{Series, message};

const METRICS: usize = 500;
const START_MS: i64 = 1_767_225_600_000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let series: usize = arguments.first().map_or(Ok(300_000), |text| text.parse())?;
    let level = arguments.get(1).map_or("wal", String::as_str);
    let cluster = Cluster::builder("series")
        .durable()
        .setting("shared_buffers", "512MB")
        .setting("max_wal_size", "8GB")
        .setting("lanes.arena_size", "1GB")
        .start()?;
    let passwords = Passwords::generate();
    provision(&cluster, &passwords)?;
    let settings = gateway::Settings::for_test("gateway", &cluster, &passwords)?
        .environment("LANES_GATEWAY_SELF_SCRAPE_INTERVAL", "0");
    let mut gateway = Gateway::start(settings)?;
    let system = |postmaster: Option<u32>| -> Vec<u32> {
        let mut all = process::children(std::process::id());
        all.extend(postmaster.filter(|id| !all.contains(id)));
        all
    };
    println!("{series} series of {METRICS} metrics a target, acked at {level}");
    let mut expected = 0;
    for (round, request_samples) in [
        ("new series", 10_000),
        ("known series", 10_000),
        ("known series", 10_000),
        ("known series", 2_000),
        ("gateway restarted", 10_000),
    ] {
        let time = START_MS + expected as i64;
        let bodies: Vec<Vec<u8>> = (0..series)
            .step_by(request_samples)
            .map(|first| request(first..(first + request_samples).min(series), time))
            .collect::<Result<_>>()?;
        if round == "gateway restarted" {
            gateway.kill9()?;
            // The sealer does this some seconds after a registration.
            cluster.scalar(DATABASE, "SELECT lanes.index_labels()")?;
            let started = Instant::now();
            gateway.start_again()?;
            gateway.wait_ready()?;
            let ready = started.elapsed();
            // A new series can only be registered once all others are known.
            let answer = gateway.remote_write(&request(series..series + 1, time)?, Some(level))?;
            let registered = started.elapsed();
            println!(
                "gateway restarted: ready after {:.3} s, its first new series registered after {:.3} s ({})",
                ready.as_secs_f64(),
                registered.as_secs_f64(),
                answer.status
            );
            let gone = format!(
                "WITH gone AS (DELETE FROM lanes.samples WHERE series > {series} RETURNING 1) SELECT count(*) FROM gone"
            );
            cluster.scalar(DATABASE, &gone)?;
        }
        let before = cpu_seconds(&system(cluster.postmaster()))?;
        let own_before = gateway_seconds(&gateway)?;
        let started = Instant::now();
        for body in &bodies {
            let answer = gateway.remote_write(body, Some(level))?;
            if answer.status != 204 {
                return Err(format!("{}: {}", answer.status, answer.body).into());
            }
        }
        let taken = started.elapsed();
        let cpu = cpu_seconds(&system(cluster.postmaster()))? - before;
        let own = gateway_seconds(&gateway)? - own_before;
        expected += series;
        let stored = cluster.scalar(
            DATABASE,
            "SELECT count(*) || ' ' || count(DISTINCT series) FROM lanes.samples",
        )?;
        if stored != format!("{expected} {series}") {
            return Err(format!("stored: {stored}").into());
        }
        let a_million = 1e6 / series as f64;
        println!(
            "{round:<18} {request_samples:>6} a request   {:>6.3} CPU-s a million, of which the gateway {:>6.3}   {:>6.3} s",
            cpu * a_million,
            own * a_million,
            taken.as_secs_f64() * a_million,
        );
    }
    let metrics = gateway.get("/metrics")?.body;
    for line in metrics.lines().filter(|line| {
        line.starts_with("lanes_gateway_series_") || line.starts_with("process_resident")
    }) {
        println!("{line}");
    }
    Ok(())
}

fn request(series: std::ops::Range<usize>, time: i64) -> Result<Vec<u8>> {
    let series: Vec<Series> = series
        .map(|number| {
            let target = number / METRICS;
            let labels = [
                ("device", format!("/dev/mapper/vg-root{}", number % 3)),
                ("instance", format!("host-{target}.example.com:9100")),
                ("job", "node_exporter".to_owned()),
                ("mode", "idle".to_owned()),
                ("zone", "eu-west-1b".to_owned()),
            ];
            let labels: Vec<(&str, &str)> = labels.iter().map(|(n, v)| (*n, v.as_str())).collect();
            let metric = format!("node_metric_{}_seconds_total", number % METRICS);
            Series::new(&metric, &labels, vec![(time, number as f64)])
        })
        .collect();
    Ok(snap::raw::Encoder::new().compress_vec(&message(&series))?)
}

fn gateway_seconds(gateway: &Gateway) -> Result<f64> {
    let metrics = gateway.get("/metrics")?.body;
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("process_cpu_seconds_total "));
    let id = process::children(std::process::id())
        .into_iter()
        .find(|id| {
            std::fs::read_to_string(format!("/proc/{id}/comm"))
                .is_ok_and(|name| name.starts_with("lanes-gateway"))
        });
    match (id, line) {
        (Some(id), _) => cpu_seconds(&[id]),
        (None, Some(seconds)) => Ok(seconds.parse()?),
        (None, None) => Err("the gateway does not report its CPU time".into()),
    }
}

/// Returns user and system time of processes and of their children, including those that have
/// ended.
fn cpu_seconds(processes: &[u32]) -> Result<f64> {
    let mut ticks = 0u64;
    for id in processes {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else {
            continue;
        };
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        // utime, stime, cutime and cstime are the fields 14 to 17 of the line; the first two fields
        // end at the parenthesis.
        for field in fields.get(11..15).unwrap_or_default() {
            ticks += field.parse::<u64>()?;
        }
        ticks += (cpu_seconds(&process::children(*id))? * 100.0).round() as u64;
    }
    Ok(ticks as f64 / 100.0)
}
