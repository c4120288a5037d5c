//! `dev bench` and `dev bench-sql`: the set-up of `dev run`, the peers' Python packages, then the program `lanes-bench`.
//!
//! The packages are those of `bench/peers/requirements.txt`. Without them (no network, say) the peers are rows that say so.

use crate::packages::Purpose;
use crate::peers;
use crate::product::{cargo, set_up};
use crate::python_env::python;
use lanes_tests::error::Result;
use lanes_tests::place;
use lanes_tests::process::run_visibly;

/// Commands of `lanes-bench` that start other servers. One that is not there is a row that says so.
const WITH_SERVERS: [&str; 7] = [
    "all",
    "remote-write",
    "ramp",
    "size",
    "sealed",
    "soak",
    "vmagent",
];

/// Sets everything up and runs `lanes-bench` with these words: without any, the short form of all scenarios.
pub fn run(words: &[String]) -> Result<()> {
    match words {
        [] => run_program(&["all".to_owned(), "--short".to_owned()]),
        words => run_program(words),
    }
}

/// Installs and builds everything that the bench compares with.
pub fn set_up_peers() -> Result<()> {
    set_up_python()?;
    peers::set_up()
}

/// The set-up of `dev run`, and the peers that are Python packages.
fn set_up_python() -> Result<()> {
    set_up(Purpose::Bench)?;
    let requirements = place::workspace().join("bench/peers/requirements.txt");
    if let Err(error) = python(&place::target().join("bench/venv"), &requirements) {
        eprintln!("the peers' Python packages cannot be installed: {error}");
    }
    Ok(())
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
        set_up_python()?;
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
