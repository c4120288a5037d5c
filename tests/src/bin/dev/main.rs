//! The developer tool: `cargo dev <command>`, which the Makefile's targets call.
//!
//! | module | contents |
//! |---|---|
//! | `packages` | Debian packages, installed without starting a daemon or a system cluster |
//! | `distribution` | `dev package`: Debian packages and the archive of the sources |
//! | `debian_source` | sources of Debian packages |
//! | `product` | gateway and extension: built, laid out for installation, installed |
//! | `steps` | long steps: the current one, and the time that it took last |
//! | `home` | the folder `.lanes`: cluster, passwords, connection files; one run at a time |
//! | `session` | `dev run` and `dev demo`: start, watch, stop |
//! | `status` | the status line |
//! | `checks` | `dev test` and `dev test-long`: the checks and their outcomes |
//! | `kept` | `dev kept`: the clusters of failed tests that were left running |
//! | `near` | suggestions for a misspelt name |
//! | `python_env` | virtual environments of Python, and the programs in them |
//! | `versions` | installations of other versions of PostgreSQL |
//! | `peers` | `dev peers`: the peers of the bench, installed and built |
//! | `bench` | `dev bench` and `dev bench-sql`: the peers' Python packages, then the program `lanes-bench` |
//!
//! Every command can be repeated: existing files are left alone, which is quick.

mod bench;
mod checks;
mod debian_source;
mod distribution;
mod home;
mod kept;
mod near;
mod packages;
mod peers;
mod product;
mod python_env;
mod session;
mod status;
mod steps;
mod versions;

use lanes_support::error::{Error, Result};
use lanes_support::installation;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The option that chooses an installation of PostgreSQL.
const PG_CONFIG: &str = "--pg-config";

const HELP: &str = "\
Usage: cargo dev <command>

  run                  install missing packages, build, start PostgreSQL and the gateway, and show
                       the status until Ctrl-C
  demo                 as run, with Debian's Prometheus and node_exporter writing to the gateway
  psql [arguments]     psql in the running database
  test [check [test]]  everything that CI runs, or the named checks, or single tests of a check;
                       see `cargo dev test --help`
  kept [stop [name]]   list the clusters that LANES_KEEP=1 left running after a failed test, or stop
                       and remove them
  test-long [minutes]  all tests with large budgets, on MinIO and in containers; sanitizers; then
                       random tests and fuzzing for this time (120)
  setup                install missing packages, build, install the extension
  stage <folder>       install missing packages, build, lay extension and gateway out below a
                       folder, for images
  package              make a Debian package of the extension for each of PostgreSQL 15 to 18, and
                       an archive of the sources for PGXN, in target/distribution
  bench [arguments]    the short form of all benchmarks, or lanes-bench with these arguments; see
                       `cargo dev bench --help`
  bench-sql [options]  time SQL on lanes tables beside heap, DuckDB, Polars and chDB; see
                       `cargo dev bench-sql --help`
  freeze               keep the SQL of this version as that of a release; see sql/upgrade/README.md
  peers                install and build the systems that the bench compares with (a few minutes)
  fmt                  format all code
  help                 this text

Option of every command: --pg-config <path> builds for, installs into and runs the installation of
PostgreSQL 15 to 18 that this pg_config belongs to, as the variable LANES_PG_CONFIG does; by default
that is Debian's PostgreSQL 15.

Environment: LANES_PG_PORT (5433), LANES_HTTP_PORT (9201), LANES_HOME (.lanes),
LANES_ARENA_SIZE (256MB); for demo also LANES_PROMETHEUS_PORT (9290) and
LANES_NODE_EXPORTER_PORT (9291).";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", [].as_slice()),
    };
    match choose_postgres(&arguments).and_then(|()| dispatch(command, rest)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Takes `--pg-config <path>` out of the arguments. If it was there, this program starts again with the
/// variable that all parts of a run, tests included, read.
fn choose_postgres(arguments: &[String]) -> Result<()> {
    let Some(place) = arguments.iter().position(|word| word == PG_CONFIG) else {
        return Ok(());
    };
    let Some(path) = arguments.get(place + 1) else {
        return Err(Error::Other(format!(
            "{PG_CONFIG} takes the path of a pg_config"
        )));
    };
    let path = std::path::absolute(path).map_err(Error::file("find", path))?;
    let program = std::env::current_exe().map_err(Error::file("find", "this program"))?;
    let others = [&arguments[..place], &arguments[place + 2..]].concat();
    Err(Error::Spawn {
        program: program.display().to_string(),
        source: Command::new(&program)
            .args(others)
            .env(installation::VARIABLE, path)
            .exec(),
    })
}

fn dispatch(command: &str, rest: &[String]) -> Result<ExitCode> {
    if !rest.is_empty()
        && ![
            "psql",
            "test",
            "kept",
            "test-long",
            "stage",
            "plan-text",
            "bench",
            "bench-sql",
        ]
        .contains(&command)
    {
        return Err(Error::Other(format!(
            "`{command}` takes no arguments; see `cargo dev help`"
        )));
    }
    if command == "plan-text" {
        return checks::run_plan_text(rest);
    }
    match command {
        "run" => session::run(session::Kind::Run),
        "demo" => session::run(session::Kind::Demo),
        "psql" => home::Home::from_environment()?.psql(rest),
        "test" => checks::run(rest),
        "kept" => kept::run(rest),
        "test-long" => checks::run_long(rest),
        "setup" => product::set_up(packages::Purpose::Run),
        "stage" => match rest {
            [folder] => product::stage(std::path::Path::new(folder)),
            _ => Err(Error::Other("`stage` takes one folder".to_owned())),
        },
        "package" => {
            let made = distribution::make()?;
            made.iter().for_each(|file| println!("{}", file.display()));
            Ok(())
        }
        "freeze" => product::freeze(),
        "peers" => bench::set_up_peers(),
        "bench" => bench::run(rest),
        "bench-sql" => bench::run_sql(rest),
        "fmt" => product::format(),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(())
        }
        other => Err(Error::Other(format!(
            "there is no command `{other}`; see `cargo dev help`"
        ))),
    }
    .map(|()| ExitCode::SUCCESS)
}
