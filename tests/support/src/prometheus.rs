//! Debian's Prometheus and node_exporter. They scrape themselves and each other, and remote-write
//! to a gateway.

use crate::error::{Error, Result};
use crate::process::{Process, Signal};
use crate::{place, port};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// Prometheus's program in Debian's package.
const PROMETHEUS: &str = "/usr/bin/prometheus";
/// node_exporter's program in Debian's package.
const NODE_EXPORTER: &str = "/usr/bin/prometheus-node-exporter";

/// The settings of both programs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder of the configuration, Prometheus's data and the logs, which is not removed.
    pub folder: PathBuf,
    /// Prometheus's port on 127.0.0.1.
    pub prometheus_port: u16,
    /// node_exporter's port on 127.0.0.1.
    pub node_exporter_port: u16,
    /// The scrape interval of both, in seconds.
    pub scrape_interval_seconds: u32,
    /// The URL of remote write, e.g. `http://127.0.0.1:9201/api/v1/write`.
    pub remote_write_url: String,
    /// Additional lines of YAML at the level of `url:` (`queue_config`, `headers`, …).
    pub remote_write_extra: String,
}

impl Settings {
    /// Creates settings with free ports, a scrape each second, and nothing extra.
    pub fn for_test(folder: &Path, remote_write_url: &str) -> Result<Settings> {
        Ok(Settings {
            folder: folder.to_owned(),
            prometheus_port: port::free()?,
            node_exporter_port: port::free()?,
            scrape_interval_seconds: 1,
            remote_write_url: remote_write_url.to_owned(),
            remote_write_extra: String::new(),
        })
    }
}

/// A running Prometheus with a running node_exporter. Both end with the value.
#[derive(Debug)]
pub struct Prometheus {
    settings: Settings,
    prometheus: Process,
    node_exporter: Process,
}

impl Prometheus {
    /// Starts both and waits until they respond.
    pub fn start(settings: Settings) -> Result<Prometheus> {
        require_programs()?;
        place::make_folder(&settings.folder)?;
        let configuration = settings.folder.join("prometheus.yml");
        std::fs::write(&configuration, configuration_text(&settings))
            .map_err(Error::file("write", &configuration))?;

        let mut command = Command::new(NODE_EXPORTER);
        command.arg(format!(
            "--web.listen-address=127.0.0.1:{}",
            settings.node_exporter_port
        ));
        let mut node_exporter = Process::start(
            "node_exporter",
            &mut command,
            &settings.folder.join("node_exporter.log"),
        )?;

        let mut command = Command::new(PROMETHEUS);
        command.arg(format!("--config.file={}", configuration.display()));
        command.arg(format!(
            "--storage.tsdb.path={}",
            settings.folder.join("data").display()
        ));
        command.arg(format!(
            "--web.listen-address=127.0.0.1:{}",
            settings.prometheus_port
        ));
        command.arg("--storage.tsdb.retention.time=1d");
        let mut prometheus = Process::start(
            "Prometheus",
            &mut command,
            &settings.folder.join("prometheus.log"),
        )?;

        let answers = |port: u16, path: &str| {
            ureq::get(format!("http://127.0.0.1:{port}{path}"))
                .call()
                .is_ok()
        };
        node_exporter.wait_until("an answer", START_TIMEOUT, || {
            answers(settings.node_exporter_port, "/")
        })?;
        prometheus.wait_until("an answer", START_TIMEOUT, || {
            answers(settings.prometheus_port, "/-/ready")
        })?;
        Ok(Prometheus {
            settings,
            prometheus,
            node_exporter,
        })
    }

    /// Returns Prometheus's address, `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.settings.prometheus_port)
    }

    /// Runs an instant query and returns `data.result` of `/api/v1/query`. `time` is in seconds
    /// since 1970 and defaults to now. A range selector such as `node_cpu_seconds_total[60s]`
    /// returns the raw samples of a window.
    pub fn query(&self, promql: &str, time: Option<f64>) -> Result<serde_json::Value> {
        let url = format!("{}/api/v1/query", self.url());
        let bad = |reason: String| Error::Http {
            url: url.clone(),
            reason,
        };
        let mut request = ureq::get(&url).query("query", promql);
        if let Some(time) = time {
            request = request.query("time", format!("{time:.3}"));
        }
        let text = request
            .call()
            .and_then(|mut response| {
                response
                    .body_mut()
                    .with_config()
                    .limit(256 << 20)
                    .read_to_string()
            })
            .map_err(|error| bad(error.to_string()))?;
        let mut answer: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
        match answer["status"].as_str() {
            Some("success") => Ok(answer["data"]["result"].take()),
            _ => Err(bad(text)),
        }
    }

    /// Fails with the end of the log if one of the two has died.
    pub fn check(&mut self) -> Result<()> {
        self.prometheus.check()?;
        self.node_exporter.check()
    }

    /// Stops node_exporter, then Prometheus, which first sends what it can.
    pub fn stop(mut self) -> Result<()> {
        self.prometheus.stop(Signal::TERM, STOP_TIMEOUT)?;
        self.node_exporter.stop(Signal::TERM, STOP_TIMEOUT)?;
        Ok(())
    }
}

/// Fails with the remedy if the programs are not installed.
pub fn require_programs() -> Result<()> {
    for program in [PROMETHEUS, NODE_EXPORTER] {
        if !Path::new(program).exists() {
            return Err(Error::Missing {
                what: program.to_owned(),
                remedy: "run `make demo` or `make test`, which install it",
            });
        }
    }
    Ok(())
}

fn configuration_text(settings: &Settings) -> String {
    let Settings {
        prometheus_port,
        node_exporter_port,
        scrape_interval_seconds,
        remote_write_url,
        ..
    } = settings;
    let extra: String = settings
        .remote_write_extra
        .lines()
        .map(|line| format!("    {line}\n"))
        .collect();
    format!(
        "global:
  scrape_interval: {scrape_interval_seconds}s
  scrape_timeout: {scrape_interval_seconds}s
scrape_configs:
  - job_name: node
    static_configs: [{{targets: ['127.0.0.1:{node_exporter_port}']}}]
  - job_name: prometheus
    static_configs: [{{targets: ['127.0.0.1:{prometheus_port}']}}]
remote_write:
  - url: {remote_write_url}
{extra}"
    )
}
