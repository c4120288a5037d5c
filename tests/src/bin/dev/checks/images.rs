//! The check `images`: compose files as docker-compose reads them, shell scripts as shellcheck does, Prometheus's configuration as promtool
//! does. What the images do is tested by `tests/tests/images`.

use super::outcome::{Outcome, one};
use lanes_support::error::Result;
use lanes_support::place;
use std::process::Command;

/// The files, read by the programs that they are for, without a Docker to talk to.
pub fn files() -> Result<Vec<Outcome>> {
    let folder = place::workspace().join("docker");
    let tool = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(name);
        command.current_dir(&folder).args(arguments);
        one(&format!("{name} {}", arguments.join(" ")), &mut command)
    };
    let compose = |file: &str| tool("docker-compose", &["--file", file, "config", "--quiet"]);
    let prometheus = [
        "check",
        "config",
        "--syntax-only",
        "prometheus/prometheus.yml",
    ];
    Ok(vec![
        compose("compose.yml"),
        compose("compose.bench.yml"),
        tool(
            "shellcheck",
            &["postgres/entrypoint.sh", "postgres/make-secrets.sh"],
        ),
        tool("promtool", &prometheus),
    ])
}
