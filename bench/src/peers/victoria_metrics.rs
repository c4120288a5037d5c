//! VictoriaMetrics, single server.

use super::data_folder::{empty, remove};
use super::http;
use super::system::System;
use crate::fleet::bodies::SampleTotals;
use crate::usage::Tree;
use lanes_support::error::{Error, Result};
use lanes_support::process::{Process, Signal, run};
use lanes_support::{place, port};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The time for merging all of a run's data.
const MERGE_TIMEOUT: Duration = Duration::from_secs(300);
/// The time for which its files have to be unchanged to count as merged.
const MERGE_REST: Duration = Duration::from_secs(2);
/// The time to stop; it writes its memory to disk before it ends.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);
/// Flags for the queries of the verification: samples are visible at once, and queries may read any
/// number of series. All other settings are defaults.
const QUERY_FLAGS: [&str; 4] = [
    "-search.latencyOffset=0s",
    "-search.maxUniqueTimeseries=100000000",
    "-search.maxSamplesPerQuery=100000000000",
    "-search.maxQueryDuration=5m",
];

/// A running server.
#[derive(Debug)]
pub struct VictoriaMetrics {
    name: String,
    version: String,
    program: PathBuf,
    port: u16,
    folder: PathBuf,
    process: Process,
}

impl VictoriaMetrics {
    /// Starts this version with an empty folder and waits until it responds.
    pub fn start(version: &str, folder: &Path) -> Result<VictoriaMetrics> {
        let program = program(version, "victoria-metrics")?;
        let folder = folder.join(format!("victoria-metrics-{version}"));
        empty(&folder)?;
        let name = format!("VictoriaMetrics {version}");
        let port = port::free()?;
        Ok(VictoriaMetrics {
            process: launch(&name, &program, port, &folder)?,
            name,
            version: run(Command::new(&program).arg("-version"))?
                .trim()
                .to_owned(),
            program,
            port,
            folder,
        })
    }

    /// Stops the server in order and starts it again with its data.
    ///
    /// # Errors
    /// The server does not stop, or does not respond in time.
    pub fn restart(&mut self) -> Result<()> {
        self.process.stop(Signal::INT, STOP_TIMEOUT)?;
        self.process = launch(&self.name, &self.program, self.port, &self.folder)?;
        Ok(())
    }

    /// Returns the server's base URL.
    pub fn base(&self) -> String {
        self.url("")
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Makes all accepted samples visible to queries, and writes them to files.
    fn flush(&self) -> Result<()> {
        http::text(&self.url("/internal/force_flush"), &[]).map(|_| ())
    }

    /// Merges everything into as few files as possible, and waits until the merged files are
    /// removed. Its data is then as small as it gets.
    ///
    /// # Errors
    /// The server does not respond, or the size of its files keeps changing.
    pub fn merge(&self) -> Result<()> {
        self.flush()?;
        // The server responds at once and merges afterwards.
        http::text(&self.url("/internal/force_merge"), &[])?;
        let start = Instant::now();
        let (mut bytes, mut since) = (0, Instant::now());
        while start.elapsed() < MERGE_TIMEOUT {
            std::thread::sleep(Duration::from_millis(200));
            let metrics = http::text(&self.url("/metrics"), &[])?;
            let is_merging = metrics.lines().any(|line| {
                let value = line.strip_prefix("vm_active_force_merges ");
                value.is_some_and(|value| value.trim() != "0")
            });
            let now = http::folder_bytes(&self.folder.join("data"));
            if is_merging || now != bytes {
                (bytes, since) = (now, Instant::now());
            } else if since.elapsed() >= MERGE_REST {
                return Ok(());
            }
        }
        Err(Error::Other(format!(
            "{} does not come to rest after a merge",
            self.name
        )))
    }
}

impl System for VictoriaMetrics {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        format!("{}, defaults and {}", self.version, QUERY_FLAGS.join(" "))
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn tree(&self) -> Tree {
        Tree::new(&self.name, [self.process.id()])
    }

    fn stored_samples(&self, job: &str, since: i64) -> Result<SampleTotals> {
        self.flush()?;
        http::prometheus_totals(
            &self.base(),
            &format!("{{job=\"{job}\"}}"),
            since,
            &[("nocache", "1")],
        )
    }

    fn series(&self) -> Result<u64> {
        let answer = http::json(&self.url("/api/v1/series/count"), &[])?;
        answer["data"][0].as_u64().ok_or_else(|| Error::Http {
            url: self.url("/api/v1/series/count"),
            reason: answer.to_string(),
        })
    }

    fn disk_bytes(&self) -> Result<u64> {
        self.flush()?;
        Ok(http::folder_bytes(&self.folder.join("data")))
    }

    fn check(&mut self) -> Result<()> {
        self.process.check()
    }

    fn stop(&mut self) -> Result<()> {
        self.process.stop(Signal::INT, STOP_TIMEOUT)?;
        remove(&self.folder)
    }
}

/// Starts the program on the folder's data, and waits until it responds.
fn launch(name: &str, program: &Path, port: u16, folder: &Path) -> Result<Process> {
    let mut command = Command::new(program);
    command.arg(format!("-httpListenAddr=127.0.0.1:{port}"));
    command.arg(format!(
        "-storageDataPath={}",
        folder.join("data").display()
    ));
    command.args(QUERY_FLAGS);
    let mut process = Process::start(name, &mut command, &folder.join("server.log"))?;
    let url = format!("http://127.0.0.1:{port}/health");
    process.wait_until("an answer", START_TIMEOUT, || http::answers(&url))?;
    Ok(process)
}

/// Returns the path of a program of a version, built by `cargo dev peers`.
pub fn program(version: &str, name: &str) -> Result<PathBuf> {
    let program = place::victoria_metrics(version)?.join("bin").join(name);
    if program.exists() {
        return Ok(program);
    }
    Err(Error::Missing {
        what: program.display().to_string(),
        remedy: "run `cargo dev peers`, which builds it",
    })
}
