//! `dev bench` and `dev bench-sql`: sets up what the command uses, then runs the program
//! `lanes-bench`.
//!
//! Only what the command uses is installed: see [`needs`]. A peer that cannot be installed has a
//! row that says so.

use crate::packages::Purpose;
use crate::peers::{self, Peer};
use crate::product::{cargo, set_up};
use crate::python_env::python;
use lanes_support::error::Result;
use lanes_support::place;
use lanes_support::process::run_visibly;

/// The requirements of a command of `lanes-bench`, besides its own program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Needs {
    /// The extension and the gateway.
    product: bool,
    /// The packages of `bench/peers/requirements.txt`.
    python: bool,
    /// Other programs.
    peers: &'static [Peer],
}

const NOTHING: Needs = Needs {
    product: false,
    python: false,
    peers: &[],
};
const PRODUCT: Needs = Needs {
    product: true,
    ..NOTHING
};
const EVERYTHING: Needs = Needs {
    product: true,
    python: true,
    peers: &Peer::ALL,
};

/// Returns the requirements of a command, or `None` for an unknown name, which `lanes-bench`
/// refuses.
fn needs(command: &str) -> Option<Needs> {
    let with_peers = |peers| Needs { peers, ..PRODUCT };
    Some(match command {
        "all" => EVERYTHING,
        "sql" | "devops" => Needs {
            python: true,
            ..PRODUCT
        },
        "remote-write" | "ramp" | "soak" | "vmagent" | "size" | "dashboards" => {
            with_peers(&[Peer::Debian, Peer::VictoriaMetrics])
        }
        "promql" => with_peers(&[Peer::VictoriaMetrics]),
        "offload" => with_peers(&[Peer::Debian]),
        "ceiling" => with_peers(&[Peer::Debian, Peer::K6]),
        "sealed" => with_peers(&[Peer::Minio]),
        "events" | "shards" | "append" | "changes" | "durability" | "overload" => PRODUCT,
        "load" | "report" => NOTHING,
        _ => return None,
    })
}

/// Sets up the requirements and runs `lanes-bench` with these words; without words, with the short
/// form of all scenarios.
pub fn run(words: &[String]) -> Result<()> {
    match words {
        [] => run_program(&["all".to_owned(), "--short".to_owned()]),
        words => run_program(words),
    }
}

/// Installs and builds every peer of the bench.
pub fn set_up_peers() -> Result<()> {
    set_up_product(EVERYTHING)?;
    peers::set_up(EVERYTHING.peers)
}

/// Sets up the product and the Python packages, if they are required.
fn set_up_product(needs: Needs) -> Result<()> {
    if needs.product {
        set_up(match needs.python {
            true => Purpose::Bench,
            false => Purpose::Run,
        })?;
    }
    if needs.python {
        let requirements = place::workspace().join("bench/peers/requirements.txt");
        if let Err(error) = python(&place::target().join("bench/venv"), &requirements) {
            eprintln!("the peers' Python packages cannot be installed: {error}");
        }
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
    let needs = options.first().and_then(|word| needs(word));
    if let Some(needs) = needs.filter(|_| !asks_for_help) {
        set_up_product(needs)?;
        if let Err(error) = peers::set_up(needs.peers) {
            eprintln!("the peers cannot be installed: {error}");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requirements_of_every_scenario_are_known() {
        let folder = place::workspace().join("bench/scenarios");
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy();
            assert!(needs(&name).is_some(), "{name}");
        }
        assert_eq!(needs("no such command"), None);
    }

    #[test]
    fn commands_install_only_what_they_use() {
        assert_eq!(needs("append"), Some(PRODUCT));
        assert_eq!(needs("load"), Some(NOTHING));
        let devops = needs("devops").unwrap();
        assert!(devops.product && devops.python && devops.peers.is_empty());
        let dashboards = needs("dashboards").unwrap();
        assert!(!dashboards.python && dashboards.peers.contains(&Peer::VictoriaMetrics));
        assert_eq!(needs("all").unwrap().peers, Peer::ALL);
    }
}
