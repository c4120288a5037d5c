//! vmalert with the flags and the rules of `docker/`, against another gateway and faster.

use lanes_support::error::{Error, Result};
use lanes_support::process::{Process, Signal};
use lanes_support::{place, port};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A running vmalert. It ends with the value.
pub struct Vmalert {
    process: Process,
    port: u16,
}

impl Vmalert {
    /// Starts it and waits until it responds. Its rules and its log are in the folder.
    ///
    /// # Errors
    /// The peer is not built, or does not start.
    pub fn start(folder: &Path, gateway: &str) -> Result<Vmalert> {
        let program = place::vmalert()?;
        if !program.exists() {
            return Err(Error::Missing {
                what: program.display().to_string(),
                remedy: "run `make test`, which builds it",
            });
        }
        place::make_folder(folder)?;
        let rules = folder.join("rules.yml");
        let text = docker_file("vmalert/rules.yml");
        assert!(text.contains("interval: 15s"), "{text}");
        let text = text.replace("interval: 15s", "interval: 1s");
        std::fs::write(&rules, text).map_err(Error::file("write", &rules))?;
        let port = port::free()?;
        let mut command = Command::new(program);
        command.arg(format!("-httpListenAddr=127.0.0.1:{port}"));
        command.args(flags(gateway, &rules));
        let mut process = Process::start("vmalert", &mut command, &folder.join("vmalert.log"))?;
        let url = format!("http://127.0.0.1:{port}/health");
        process.wait_until("an answer", TIMEOUT, || ureq::get(&url).call().is_ok())?;
        Ok(Vmalert { process, port })
    }

    /// Returns the active alerts.
    ///
    /// # Errors
    /// It does not answer.
    pub fn alerts(&mut self) -> Result<Vec<Value>> {
        self.process.check()?;
        let url = format!("http://127.0.0.1:{}/api/v1/alerts", self.port);
        let bad = |error: ureq::Error| Error::Http {
            url: url.clone(),
            reason: error.to_string(),
        };
        let mut answer = ureq::get(&url).call().map_err(bad)?;
        let text = answer.body_mut().read_to_string().map_err(bad)?;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        Ok(body["data"]["alerts"]
            .as_array()
            .cloned()
            .unwrap_or_default())
    }

    /// Stops it as an operator does. It first sends what it has.
    ///
    /// # Errors
    /// It does not end in time.
    pub fn stop(mut self) -> Result<()> {
        self.process.stop(Signal::INT, TIMEOUT).map(|_| ())
    }
}

fn docker_file(path: &str) -> String {
    let path = place::workspace().join("docker").join(path);
    std::fs::read_to_string(path).unwrap()
}

/// The flags of the container, with the addresses of this machine.
fn flags(gateway: &str, rules: &Path) -> Vec<String> {
    let compose = docker_file("compose.yml");
    let service = compose
        .lines()
        .skip_while(|line| *line != "  vmalert:")
        .skip(1)
        .take_while(|line| line.starts_with("    "));
    let flags = service.filter_map(|line| line.trim().strip_prefix("- -"));
    let flags: Vec<String> = flags
        .map(|flag| {
            let flag = flag.replace("http://gateway:9201", gateway);
            format!(
                "-{}",
                flag.replace("/etc/vmalert/rules.yml", rules.to_str().unwrap())
            )
        })
        .collect();
    let to_gateway = flags.iter().filter(|flag| flag.contains(gateway)).count();
    assert_eq!(to_gateway, 3, "{flags:?}");
    flags
}
