//! The check `images`: compose files as docker-compose reads them, shell scripts as shellcheck does. What the images do is tested by
//! `tests/tests/images`.

use crate::checks::{Count, one};
use lanes_tests::error::Result;
use lanes_tests::place;
use std::process::Command;

/// Debian's docker-compose judges the files without a Docker to talk to.
pub fn check() -> Result<Count> {
    let folder = place::workspace().join("docker");
    let compose = |file: &str| {
        let mut command = Command::new("docker-compose");
        command.current_dir(&folder);
        one(&mut command, &["--file", file, "config", "--quiet"])
    };
    let mut shellcheck = Command::new("shellcheck");
    shellcheck.current_dir(&folder);
    let scripts = ["postgres/entrypoint.sh", "postgres/make-secrets.sh"];
    Ok(compose("compose.yml") + compose("compose.bench.yml") + one(&mut shellcheck, &scripts))
}
