//! `dev bench` and `dev bench-sql`: the set-up of `dev run`, the peers' Python packages, then the program `lanes-bench`.
//!
//! The packages are those of `bench/peers/requirements.txt`, in a virtual environment of the target folder, which keeps a copy of the
//! list that it was made from: another list makes it anew. Without them (no network, say) the peers are rows that say so.

use crate::packages::Purpose;
use crate::peers;
use crate::product::{cargo, set_up};
use lanes_tests::error::{Error, Result};
use lanes_tests::place;
use lanes_tests::process::run_visibly;
use std::path::Path;
use std::process::Command;

/// Debian's own Python, for which `packages` installs the module `venv`.
const PYTHON: &str = "/usr/bin/python3";

/// Commands of `lanes-bench` that start other servers. One that is not there is a row that says so.
const WITH_SERVERS: [&str; 5] = ["all", "remote-write", "ramp", "soak", "vmagent"];

/// Sets everything up and runs `lanes-bench` with these words: without any, the short form of all scenarios.
pub fn run(words: &[String]) -> Result<()> {
    match words {
        [] => run_program(&["all".to_owned(), "--short".to_owned()]),
        words => run_program(words),
    }
}

/// Sets everything up and times SQL with these options.
pub fn run_sql(options: &[String]) -> Result<()> {
    let mut words = vec!["sql".to_owned()];
    words.extend_from_slice(options);
    run_program(&words)
}

fn run_program(options: &[String]) -> Result<()> {
    let asks_for_help = options
        .iter()
        .any(|option| option == "--help" || option == "-h");
    if !asks_for_help {
        set_up(Purpose::Bench)?;
        if let Err(error) = python_environment() {
            eprintln!("the peers' Python packages cannot be installed: {error}");
        }
        let needs_servers = options
            .first()
            .is_some_and(|word| WITH_SERVERS.contains(&word.as_str()));
        if needs_servers && let Err(error) = peers::set_up() {
            eprintln!("servers to compare with cannot be had: {error}");
        }
    }
    let mut command = cargo();
    command.args([
        "run",
        "--quiet",
        "--locked",
        "--release",
        "--package",
        "lanes-bench",
        "--",
    ]);
    run_visibly(command.args(options))
}

/// Makes the virtual environment unless it is there with the wanted packages.
fn python_environment() -> Result<()> {
    let requirements = place::workspace().join("bench/peers/requirements.txt");
    let folder = place::target().join("bench/venv");
    let made_from = folder.join("requirements.txt");
    if same_text(&requirements, &made_from) {
        return Ok(());
    }
    println!(
        "==> installing the peers' Python packages into {}",
        folder.display()
    );
    run_visibly(
        Command::new(PYTHON)
            .args(["-m", "venv", "--clear"])
            .arg(&folder),
    )?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--requirement",
    ]);
    run_visibly(pip.arg(&requirements))?;
    std::fs::copy(&requirements, &made_from).map_err(Error::file("write", &made_from))?;
    Ok(())
}

fn same_text(left: &Path, right: &Path) -> bool {
    match (std::fs::read(left), std::fs::read(right)) {
        (Ok(left), Ok(right)) => left == right,
        _ => false,
    }
}
