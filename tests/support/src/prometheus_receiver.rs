//! A Prometheus that stores what is written to it and scrapes nothing: the reference for answers
//! to queries.

use crate::error::{Error, Result};
use crate::gateway::{Answer, answer};
use crate::place;
use crate::port;
use crate::process::{Process, Signal};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout of a request, which exceeds Prometheus's own limit of two minutes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(150);
/// Prometheus's program in Debian's package.
const DEBIAN: &str = "/usr/bin/prometheus";
/// A configuration without targets.
const CONFIGURATION: &str = "scrape_configs: []\n";

/// Returns Debian's Prometheus.
///
/// # Errors
/// The package is not installed.
pub fn debian() -> Result<PathBuf> {
    existing(PathBuf::from(DEBIAN), "run `make test`, which installs it")
}

/// Returns the newest Prometheus, which is built from its Go module.
///
/// # Errors
/// It was not built.
pub fn newest() -> Result<PathBuf> {
    existing(
        place::newest_prometheus()?,
        "run `make test-long`, which builds it",
    )
}

fn existing(program: PathBuf, remedy: &'static str) -> Result<PathBuf> {
    match program.exists() {
        true => Ok(program),
        false => Err(Error::Missing {
            what: program.display().to_string(),
            remedy,
        }),
    }
}

/// A running Prometheus. It ends with the value.
#[derive(Debug)]
pub struct Receiver {
    process: Process,
    port: u16,
    agent: ureq::Agent,
}

impl Receiver {
    /// Starts a program with an empty store in a folder, and waits until it is ready. The folder is
    /// not removed.
    pub fn start(program: &Path, folder: &Path) -> Result<Receiver> {
        Receiver::start_with(program, folder, CONFIGURATION)
    }

    /// Starts a program with an empty store in a folder and a configuration in YAML, and waits until
    /// it is ready. The folder is not removed.
    pub fn start_with(program: &Path, folder: &Path, text: &str) -> Result<Receiver> {
        place::make_folder(folder)?;
        let configuration = folder.join("prometheus.yml");
        std::fs::write(&configuration, text).map_err(Error::file("write", &configuration))?;
        let port = port::free()?;
        let mut command = Command::new(program);
        command
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("data").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--web.enable-remote-write-receiver");
        let log = folder.join("prometheus.log");
        let mut process = Process::start("Prometheus", &mut command, &log)?;
        let ready = format!("http://127.0.0.1:{port}/-/ready");
        process.wait_until("an answer", START_TIMEOUT, || {
            ureq::get(&ready).call().is_ok()
        })?;
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(REQUEST_TIMEOUT))
            .build()
            .new_agent();
        Ok(Receiver {
            process,
            port,
            agent,
        })
    }

    /// Sends a remote write 1.0 request with a compressed body. Fails only if there is no HTTP
    /// response at all.
    pub fn remote_write(&self, body: &[u8]) -> Result<Answer> {
        let url = self.url("/api/v1/write");
        let request = self
            .agent
            .post(&url)
            .header("content-type", "application/x-protobuf")
            .header("content-encoding", "snappy")
            .header("x-prometheus-remote-write-version", "0.1.0");
        answer(&url, request.send(body))
    }

    /// Sends `GET path` with parameters. Fails only if there is no HTTP response at all.
    pub fn get(&self, path: &str, parameters: &[(&str, String)]) -> Result<Answer> {
        let url = self.url(path);
        let mut request = self.agent.get(&url);
        for (name, value) in parameters {
            request = request.query(*name, value);
        }
        answer(&url, request.call())
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Stops the program.
    pub fn stop(mut self) -> Result<()> {
        self.process.stop(Signal::TERM, STOP_TIMEOUT).map(|_| ())
    }
}
