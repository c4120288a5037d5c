//! The command line of `lanes-bench sql`.

use clap::{Arg, ArgAction, Command, value_parser};
use lanes_support::error::{Error, Result};
use lanes_support::place;
use std::path::PathBuf;
use std::time::Duration;

/// The number of rows that the bars are for.
pub const FULL_ROWS: usize = 1_000_000;

/// The systems in the order in which they run.
pub const SYSTEMS: [&str; 8] = [
    "lanes",
    "lanes-parallel",
    "heap",
    "heap-parallel",
    "duckdb-1",
    "duckdb-2",
    "polars",
    "chdb",
];

/// The options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The number of trades and of quotes; there are five times as many events.
    pub rows: usize,
    /// The number of timed executions of each query, unless `budget` ends first.
    pub repeat: usize,
    /// The time for the timed executions of one query on one system. At least three are made.
    pub budget: Duration,
    /// The rows of the table to run; all rows if empty.
    pub only: Vec<String>,
    /// The systems to run.
    pub systems: Vec<String>,
    /// The Python program that has the peers' packages.
    pub python: PathBuf,
    /// Additional lines of `postgresql.conf`, as name and value.
    pub settings: Vec<(String, String)>,
    /// The folder of the results and of the peers' data.
    pub folder: PathBuf,
}

impl Options {
    /// Reads the options from the command line that [`command`] describes.
    ///
    /// # Errors
    /// A setting is not a name and a value.
    pub fn from_matches(matches: &clap::ArgMatches) -> Result<Options> {
        let list = |name: &str| -> Vec<String> {
            let values = matches.get_many::<String>(name);
            values.into_iter().flatten().cloned().collect()
        };
        let folder = place::target().join("bench");
        let mut settings = Vec::new();
        for line in list("setting") {
            match line.split_once('=') {
                Some((name, value)) => settings.push((name.to_owned(), value.to_owned())),
                None => {
                    return Err(Error::Other(format!(
                        "--setting {line}: expected <name>=<value>"
                    )));
                }
            }
        }
        let systems = list("systems");
        Ok(Options {
            rows: matches
                .get_one::<u32>("rows")
                .map_or(FULL_ROWS, |rows| *rows as usize),
            repeat: matches
                .get_one::<u32>("repeat")
                .map_or(100, |count| *count as usize),
            budget: Duration::from_secs(
                matches
                    .get_one::<u32>("budget")
                    .map_or(10, |seconds| u64::from(*seconds)),
            ),
            only: list("only"),
            systems: match systems.is_empty() {
                true => SYSTEMS.map(str::to_owned).to_vec(),
                false => systems,
            },
            python: match matches.get_one::<PathBuf>("python") {
                Some(program) => program.clone(),
                None => folder.join("venv/bin/python"),
            },
            settings,
            folder,
        })
    }

    /// Whether a system takes part.
    pub fn has_system(&self, name: &str) -> bool {
        self.systems.iter().any(|system| system == name)
    }

    /// Whether the bars can be judged.
    pub fn is_full(&self) -> bool {
        self.rows == FULL_ROWS
    }
}

/// Returns the sub-command with its options.
pub fn command() -> Command {
    let number = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("N")
            .value_parser(value_parser!(u32).range(1..))
            .help(help)
    };
    Command::new("sql")
        .about("Times SQL on lanes tables beside heap PostgreSQL, DuckDB, Polars and chDB, on the same data in one run")
        .arg(number("rows", "number of trades and of quotes; there are five times as many events; bars are for 1000000 [default: 1000000]"))
        .arg(number("repeat", "timed executions of each query [default: 100]"))
        .arg(number("budget", "seconds for the timed executions of one query on one system; at least three are made [default: 10]"))
        .arg(
            Arg::new("only")
                .long("only")
                .value_name("ROW")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .help("only these rows of the table (the names of bench/definitions/*.toml, and `planning`)"),
        )
        .arg(
            Arg::new("systems")
                .long("systems")
                .value_name("a,b")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .value_parser(SYSTEMS)
                .help("only these systems"),
        )
        .arg(
            Arg::new("setting")
                .long("setting")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("a line for postgresql.conf of the private cluster"),
        )
        .arg(
            Arg::new("python")
                .long("python")
                .value_name("PROGRAM")
                .value_parser(value_parser!(PathBuf))
                .help("Python with the packages of bench/peers/requirements.txt [default: target/bench/venv/bin/python]"),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options> {
        let all = std::iter::once("sql").chain(arguments.iter().copied());
        Options::from_matches(&command().try_get_matches_from(all).unwrap())
    }

    #[test]
    fn lists_may_be_separated_by_commas_or_repeated() {
        let options = parse(&[
            "--only",
            "asof,group",
            "--only",
            "ema",
            "--systems",
            "lanes,heap",
        ])
        .unwrap();
        assert_eq!(options.only, ["asof", "group", "ema"]);
        assert!(options.has_system("heap") && !options.has_system("polars"));
        assert!(options.is_full());
    }

    #[test]
    fn settings_are_name_and_value() {
        let options = parse(&["--setting", "jit=off", "--rows", "10"]).unwrap();
        assert_eq!(options.settings, [("jit".to_owned(), "off".to_owned())]);
        assert!(!options.is_full());
        assert!(parse(&["--setting", "jit"]).is_err());
    }
}
