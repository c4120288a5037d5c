//! Build, hardware and scope of a run: `<scenario>.about.json`.

use super::definition::Run;
use super::findings::Findings;
use crate::machine::Machine;
use lanes_support::error::{Error, Result};
use lanes_support::place;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Describes the circumstances of a run, without which its figures are worthless.
pub fn describe(run: &Run, findings: &Findings, machine: &Machine) -> Value {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs());
    json!({
        "scenario": run.name,
        "about": run.about,
        "short": run.options.short,
        "changes": run.options.changes,
        "only": run.options.only,
        "ended_unix_seconds": seconds,
        "build": {
            "commit": git(&["rev-parse", "--short=12", "HEAD"]),
            "changed_files": git(&["status", "--porcelain", "--untracked-files=no"]).lines().count(),
            "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
            "version": env!("CARGO_PKG_VERSION"),
        },
        "processors": {"servers": run.options.servers.describe(), "client": run.options.client.describe()},
        "systems": findings.systems,
        "machine": machine.to_json(),
        "machine_text": machine.describe(),
        "failures": findings.failures,
    })
}

/// Writes the description.
///
/// # Errors
/// The file cannot be written.
pub fn write(file: &Path, context: &Value) -> Result<()> {
    std::fs::write(file, format!("{context:#}\n")).map_err(Error::file("write", file))
}

/// Returns the output of a git command on the checkout, or an empty text without a repository.
fn git(arguments: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(place::workspace())
        .args(arguments)
        .output();
    let text = output.ok().filter(|output| output.status.success());
    text.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}
