//! The check `images`: docker-compose reads the compose files, shellcheck the shell scripts, and
//! promtool Prometheus's configuration and the rules. `tests/tests/images` tests the behaviour of the images.

use super::outcome::{Outcome, one};
use lanes_support::error::Result;
use lanes_support::place;
use std::process::Command;

/// Checks the files with their own programs, without a Docker daemon.
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
        tool("promtool", &["check", "rules", "vmalert/rules.yml"]),
    ])
}
