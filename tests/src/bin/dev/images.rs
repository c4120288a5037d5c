//! The check `images`: compose files as docker-compose reads them, shell scripts as shellcheck does, Prometheus's configuration as promtool
//! does. What the images do is tested by `tests/tests/images`.

use crate::checks::{Count, one};
use lanes_tests::error::Result;
use lanes_tests::place;
use std::process::Command;

/// Debian's docker-compose judges the files without a Docker to talk to.
pub fn check() -> Result<Count> {
    let folder = place::workspace().join("docker");
    let tool = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(name);
        one(command.current_dir(&folder), arguments)
    };
    let compose = |file: &str| tool("docker-compose", &["--file", file, "config", "--quiet"]);
    let scripts = ["postgres/entrypoint.sh", "postgres/make-secrets.sh"];
    let prometheus = [
        "check",
        "config",
        "--syntax-only",
        "prometheus/prometheus.yml",
    ];
    Ok(compose("compose.yml")
        + compose("compose.bench.yml")
        + tool("shellcheck", &scripts)
        + tool("promtool", &prometheus))
}
