//! Debian's Prometheus as a receiver of remote write.

use super::data_folder::{empty, remove};
use super::http;
use super::system::System;
use crate::fleet::bodies::SampleTotals;
use crate::usage::Tree;
use lanes_support::error::{Error, Result};
use lanes_support::port;
use lanes_support::process::{Process, Signal, run};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const PROGRAM: &str = "/usr/bin/prometheus";
const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(120);
/// The receiver is off by default. The limits concern only the queries of the verification.
const FLAGS: [&str; 3] = [
    "--web.enable-remote-write-receiver",
    "--query.max-samples=100000000000",
    "--query.timeout=5m",
];

/// A running server.
#[derive(Debug)]
pub struct Prometheus {
    version: String,
    port: u16,
    folder: PathBuf,
    process: Process,
}

impl Prometheus {
    /// Starts it with an empty folder and no targets, and waits until it is ready.
    pub fn start(folder: &Path) -> Result<Prometheus> {
        let version = run(Command::new(PROGRAM).arg("--version"))?;
        let version = version.lines().next().unwrap_or_default().to_owned();
        let folder = folder.join("prometheus");
        empty(&folder)?;
        let configuration = folder.join("prometheus.yml");
        std::fs::write(&configuration, "global: {}\n")
            .map_err(Error::file("write", &configuration))?;
        let port = port::free()?;
        let mut command = Command::new(PROGRAM);
        command.arg(format!("--config.file={}", configuration.display()));
        command.arg(format!(
            "--storage.tsdb.path={}",
            folder.join("data").display()
        ));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        command.args(FLAGS);
        let mut process = Process::start("Prometheus", &mut command, &folder.join("server.log"))?;
        let url = format!("http://127.0.0.1:{port}/-/ready");
        process.wait_until("an answer", START_TIMEOUT, || http::answers(&url))?;
        Ok(Prometheus {
            version,
            port,
            folder,
            process,
        })
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl System for Prometheus {
    fn name(&self) -> &str {
        "Prometheus"
    }

    fn describe(&self) -> String {
        format!("{}, defaults and {}", self.version, FLAGS.join(" "))
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn tree(&self) -> Tree {
        Tree::new(self.name(), [self.process.id()])
    }

    /// Queries each metric separately: functions over time drop the name, and Prometheus refuses
    /// two series that are equal without it.
    fn stored_samples(&self, job: &str, since: i64) -> Result<SampleTotals> {
        let url = self.url("/api/v1/label/__name__/values");
        let answer = http::json(&url, &[])?;
        let names = answer["data"].as_array().ok_or_else(|| Error::Http {
            url,
            reason: answer.to_string(),
        })?;
        let mut held = SampleTotals::default();
        for name in names.iter().filter_map(|name| name.as_str()) {
            let selector = format!("{name}{{job=\"{job}\"}}");
            held.add(http::prometheus_totals(
                &self.url(""),
                &selector,
                since,
                &[],
            )?);
        }
        Ok(held)
    }

    fn series(&self) -> Result<u64> {
        let url = self.url("/api/v1/status/tsdb");
        let answer = http::json(&url, &[])?;
        let series = answer["data"]["headStats"]["numSeries"].as_u64();
        series.ok_or_else(|| Error::Http {
            url,
            reason: answer.to_string(),
        })
    }

    /// Includes the write-ahead log, which is all that Prometheus has on disk for the first hours.
    fn disk_bytes(&self) -> Result<u64> {
        Ok(http::folder_bytes(&self.folder.join("data")))
    }

    fn check(&mut self) -> Result<()> {
        self.process.check()
    }

    fn stop(&mut self) -> Result<()> {
        self.process.stop(Signal::TERM, STOP_TIMEOUT)?;
        remove(&self.folder)
    }
}
