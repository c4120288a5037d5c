//! vmagent: its targets and its configuration.
//!
//! The targets are one cached page under many names. vmagent reads its list of targets again every
//! few seconds. [`Vmagent::churn`] renames some of them, as if their machines were replaced, so
//! that all of their series are new.

use super::data_folder::{empty, remove};
use super::http;
use super::victoria_metrics::program;
use super::vmagent_metrics::Metrics;
use crate::usage::Tree;
use lanes_support::error::{Error, Result};
use lanes_support::port;
use lanes_support::process::{Process, Signal};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);
/// The interval at which vmagent checks its list of targets for changes.
const CONFIGURATION_CHECK_INTERVAL: &str = "5s";
/// The value of the label `job` of all targets.
pub const JOB: &str = "node_exporter";

/// The settings of vmagent.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The installed version.
    pub version: String,
    /// The port on 127.0.0.1 of the receiving system.
    pub write_port: u16,
    /// The port on 127.0.0.1 of the page that all targets share.
    pub page_port: u16,
    /// The number of targets.
    pub targets: usize,
    /// Seconds between scrapes of a target.
    pub interval_seconds: u32,
}

/// A running vmagent; its process ends with the value.
#[derive(Debug)]
pub struct Vmagent {
    settings: Settings,
    port: u16,
    folder: PathBuf,
    /// How often each target has been replaced. Empty once all targets are removed.
    revisions: Vec<usize>,
    next_to_replace: usize,
    process: Process,
}

impl Vmagent {
    /// Starts vmagent and waits until it responds.
    pub fn start(settings: Settings, folder: &Path) -> Result<Vmagent> {
        let program = program(&settings.version, "vmagent")?;
        let folder = folder.join("vmagent");
        empty(&folder)?;
        let port = port::free()?;
        let configuration = configuration_file(&folder);
        let revisions = vec![0; settings.targets];
        write_configuration(&configuration, &settings, &revisions)?;
        let write_url = format!("http://127.0.0.1:{}/api/v1/write", settings.write_port);
        let queue = folder.join("queue");
        let mut command = Command::new(program);
        command.args([
            format!("-httpListenAddr=127.0.0.1:{port}"),
            format!("-remoteWrite.url={write_url}"),
            format!("-remoteWrite.tmpDataPath={}", queue.display()),
            format!("-promscrape.config={}", configuration.display()),
            format!("-promscrape.configCheckInterval={CONFIGURATION_CHECK_INTERVAL}"),
        ]);
        let mut process = Process::start("vmagent", &mut command, &folder.join("vmagent.log"))?;
        let url = format!("http://127.0.0.1:{port}/health");
        process.wait_until("an answer", TIMEOUT, || http::answers(&url))?;
        Ok(Vmagent {
            settings,
            port,
            folder,
            revisions,
            next_to_replace: 0,
            process,
        })
    }

    /// Renames a number of targets, in rotation. vmagent notices at its next check.
    pub fn churn(&mut self, targets: usize) -> Result<()> {
        for _ in 0..targets.min(self.revisions.len()) {
            self.revisions[self.next_to_replace] += 1;
            self.next_to_replace = (self.next_to_replace + 1) % self.revisions.len();
        }
        self.configure()
    }

    /// Removes all targets and waits until everything that was scraped has been sent.
    pub fn drain(&mut self) -> Result<Metrics> {
        self.revisions.clear();
        self.configure()?;
        let url = self.metrics_url();
        let process = &mut self.process;
        process.wait_until("everything sent", TIMEOUT, || {
            let metrics = Metrics::read(&url);
            metrics.is_ok_and(|metrics| metrics.targets() == 0.0)
        })?;
        // Samples that wait to fill a block are sent within a second, and no metric shows them.
        std::thread::sleep(Duration::from_secs(3));
        process.wait_until("everything sent", TIMEOUT, || {
            Metrics::read(&url).is_ok_and(|metrics| metrics.pending_bytes() == 0.0)
        })?;
        std::thread::sleep(Duration::from_secs(1));
        self.metrics()
    }

    fn configure(&self) -> Result<()> {
        write_configuration(
            &configuration_file(&self.folder),
            &self.settings,
            &self.revisions,
        )
    }

    /// Returns its own metrics.
    pub fn metrics(&self) -> Result<Metrics> {
        Metrics::read(&self.metrics_url())
    }

    fn metrics_url(&self) -> String {
        format!("http://127.0.0.1:{}/metrics", self.port)
    }

    /// Returns its processes.
    pub fn tree(&self) -> Tree {
        Tree::new("vmagent", [self.process.id()])
    }

    /// Fails with the end of the log if it has died.
    pub fn check(&mut self) -> Result<()> {
        self.process.check()
    }

    /// Stops it and removes its queue.
    pub fn stop(&mut self) -> Result<()> {
        self.process.stop(Signal::INT, TIMEOUT)?;
        remove(&self.folder)
    }
}

fn configuration_file(folder: &Path) -> PathBuf {
    folder.join("scrape.yml")
}

fn write_configuration(path: &Path, settings: &Settings, revisions: &[usize]) -> Result<()> {
    // A rename replaces the file atomically, so that vmagent never reads half a list.
    let draft = path.with_extension("new");
    std::fs::write(&draft, configuration_text(settings, revisions))
        .map_err(Error::file("write", &draft))?;
    std::fs::rename(&draft, path).map_err(Error::file("write", path))
}

fn configuration_text(settings: &Settings, revisions: &[usize]) -> String {
    let Settings {
        interval_seconds,
        page_port,
        ..
    } = settings;
    let mut text = format!(
        "global:\n  scrape_interval: {interval_seconds}s\nscrape_configs:\n- job_name: {JOB}\n  static_configs:\n"
    );
    for (target, revision) in revisions.iter().enumerate() {
        text.push_str(&format!(
            "  - targets: ['127.0.0.1:{page_port}']\n    labels: {{instance: 'node-{target:05}-{revision}'}}\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_each_target_with_its_revision() {
        let settings = Settings {
            version: String::new(),
            write_port: 1,
            page_port: 2,
            targets: 2,
            interval_seconds: 10,
        };
        let text = configuration_text(&settings, &[0, 3]);
        assert!(
            text.contains("scrape_interval: 10s") && text.contains("['127.0.0.1:2']"),
            "{text}"
        );
        assert!(text.contains("'node-00000-0'") && text.contains("'node-00001-3'"));
        assert!(configuration_text(&settings, &[]).ends_with("static_configs:\n"));
    }
}
