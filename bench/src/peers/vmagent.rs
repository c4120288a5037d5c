//! vmagent: its targets and its configuration.
//!
//! The targets are one cached page under many names. vmagent reads its list of targets again every few seconds; [`Vmagent::churn`] gives
//! some of them another name, as machines that are replaced would have, so that all of their series are new.

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
/// How often vmagent looks whether its list of targets has changed.
const CONFIGURATION_CHECK_INTERVAL: &str = "5s";
/// The value of the label `job` of all that it scrapes.
pub const JOB: &str = "node_exporter";

/// What it is to do.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The version that was built.
    pub version: String,
    /// Port on 127.0.0.1 of the system that it writes to.
    pub write_port: u16,
    /// Port on 127.0.0.1 of the page that all targets are.
    pub page_port: u16,
    /// How many targets.
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
    /// How often each target has been replaced; empty once all are gone.
    revisions: Vec<usize>,
    next_to_replace: usize,
    process: Process,
}

impl Vmagent {
    /// Starts it and waits until it answers.
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

    /// Gives so many targets another name, those whose turn it is; vmagent sees it at its next look.
    pub fn churn(&mut self, targets: usize) -> Result<()> {
        for _ in 0..targets.min(self.revisions.len()) {
            self.revisions[self.next_to_replace] += 1;
            self.next_to_replace = (self.next_to_replace + 1) % self.revisions.len();
        }
        self.configure()
    }

    /// Takes all targets away and waits until all that was scraped has been sent.
    pub fn drain(&mut self) -> Result<Metrics> {
        self.revisions.clear();
        self.configure()?;
        let url = self.metrics_url();
        let process = &mut self.process;
        process.wait_until("everything sent", TIMEOUT, || {
            let metrics = Metrics::read(&url);
            metrics.is_ok_and(|metrics| metrics.targets() == 0.0)
        })?;
        // What waits to fill a block is sent after a second at the latest, which no metric shows.
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

    /// Its own metrics now.
    pub fn metrics(&self) -> Result<Metrics> {
        Metrics::read(&self.metrics_url())
    }

    fn metrics_url(&self) -> String {
        format!("http://127.0.0.1:{}/metrics", self.port)
    }

    /// Its processes.
    pub fn tree(&self) -> Tree {
        Tree::new("vmagent", [self.process.id()])
    }

    /// Fails with the end of the log when it has ended on its own.
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
    // A new file and a rename: vmagent never reads half a list.
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
