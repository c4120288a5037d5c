//! Pages of a real node_exporter of this machine, read during the run.

use super::page::{Page, parse};
use lanes_support::error::{Error, Result};
use lanes_support::process::{Process, Signal};
use lanes_support::{place, port};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Debian's node_exporter.
pub const NODE_EXPORTER: &str = "/usr/bin/prometheus-node-exporter";
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// The time between the two pages. Rates are per second.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns two pages, a second apart. node_exporter runs only for them.
pub fn capture(folder: &Path) -> Result<[Page; 2]> {
    let mut exporter = NodeExporter::start(folder)?;
    let first = parse(&exporter.page()?)?;
    std::thread::sleep(PAUSE);
    let second = parse(&exporter.page()?)?;
    exporter.stop()?;
    Ok([first, second])
}

/// A running node_exporter; it ends with the value.
#[derive(Debug)]
pub struct NodeExporter {
    process: Process,
    port: u16,
}

impl NodeExporter {
    /// Starts it with its defaults on a free port and waits until it responds.
    pub fn start(folder: &Path) -> Result<NodeExporter> {
        if !Path::new(NODE_EXPORTER).exists() {
            return Err(Error::Missing {
                what: NODE_EXPORTER.to_owned(),
                remedy: "run `cargo dev peers`, which installs it",
            });
        }
        place::make_folder(folder)?;
        let port = port::free()?;
        let mut command = Command::new(NODE_EXPORTER);
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let mut process = Process::start(
            "node_exporter",
            &mut command,
            &folder.join("node_exporter.log"),
        )?;
        let url = format!("http://127.0.0.1:{port}/");
        process.wait_until("an answer", START_TIMEOUT, || {
            ureq::get(&url).call().is_ok()
        })?;
        Ok(NodeExporter { process, port })
    }

    /// Returns its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns its current page of metrics.
    pub fn page(&self) -> Result<String> {
        let url = format!("http://127.0.0.1:{}/metrics", self.port);
        let text = ureq::get(&url)
            .call()
            .and_then(|mut answer| answer.body_mut().read_to_string());
        text.map_err(|error| Error::Http {
            url,
            reason: error.to_string(),
        })
    }

    /// Stops it.
    pub fn stop(&mut self) -> Result<()> {
        self.process.stop(Signal::TERM, START_TIMEOUT).map(|_| ())
    }
}
