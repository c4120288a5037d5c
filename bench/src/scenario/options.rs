//! The options of a run of scenarios.

use crate::pinning::Processors;
use clap::{Arg, ArgAction, ArgMatches, Command};
use lanes_support::error::{Error, Result};
use lanes_support::place;
use std::path::PathBuf;

/// The options that all scenarios share.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The short form: fewer rows, less time.
    pub short: bool,
    /// The rows to run, by parts of their names; all rows if empty.
    pub only: Vec<String>,
    /// Changes of the data file: a dotted key and a TOML value.
    pub changes: Vec<(String, String)>,
    /// The processors of the servers.
    pub servers: Processors,
    /// The processors of the client.
    pub client: Processors,
    /// The folder of the results.
    pub folder: PathBuf,
}

impl Options {
    /// Adds the options to a sub-command.
    pub fn add_to(command: Command) -> Command {
        let list = |name: &'static str, value: &'static str, help: &'static str| {
            Arg::new(name)
                .long(name)
                .value_name(value)
                .action(ArgAction::Append)
                .help(help)
        };
        let processors = |name: &'static str, help: &'static str| {
            Arg::new(name)
                .long(name)
                .value_name("LIST")
                .default_value("")
                .hide_default_value(true)
                .help(help)
        };
        command
            .arg(
                Arg::new("short")
                    .long("short")
                    .action(ArgAction::SetTrue)
                    .help("the short form: fewer rows, less time"),
            )
            .arg(
                list("only", "TEXT", "only rows whose name contains this text")
                    .value_delimiter(','),
            )
            .arg(list(
                "set",
                "KEY=VALUE",
                "a change of the scenario's data file, such as seconds=60",
            ))
            .arg(processors(
                "server-cpus",
                "processors of the servers, such as 0,2-3",
            ))
            .arg(processors("client-cpus", "processors of the client"))
    }

    /// Reads the options from the command line.
    ///
    /// # Errors
    /// A change is not a key and a value, or processors are not numbers.
    pub fn from_matches(matches: &ArgMatches) -> Result<Options> {
        let list = |name: &str| -> Vec<String> {
            let values = matches.get_many::<String>(name);
            values.into_iter().flatten().cloned().collect()
        };
        let processors = |name: &str| {
            let text = matches.get_one::<String>(name).map_or("", String::as_str);
            Processors::parse(text)
        };
        let mut changes = Vec::new();
        for change in list("set") {
            let (key, value) = change
                .split_once('=')
                .ok_or_else(|| Error::Other(format!("--set {change}: expected <key>=<value>")))?;
            changes.push((key.to_owned(), value.to_owned()));
        }
        Ok(Options {
            short: matches.get_flag("short"),
            only: list("only"),
            changes,
            servers: processors("server-cpus")?,
            client: processors("client-cpus")?,
            folder: place::target().join("bench"),
        })
    }

    /// Whether a row is to be run.
    pub fn wants(&self, row: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| row.contains(text.as_str()))
    }

    /// Returns those of the rows that are to be run.
    pub fn wanted(&self, rows: &[String]) -> Vec<String> {
        let wanted = rows.iter().filter(|row| self.wants(row));
        wanted.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options> {
        let all = std::iter::once("x").chain(arguments.iter().copied());
        Options::from_matches(
            &Options::add_to(Command::new("x"))
                .try_get_matches_from(all)
                .unwrap(),
        )
    }

    #[test]
    fn options_are_parsed() {
        let options = parse(&[
            "--short",
            "--only",
            "json,arrow",
            "--set",
            "seconds=2",
            "--server-cpus",
            "0",
        ])
        .unwrap();
        assert!(options.short && options.wants("json, 100") && !options.wants("flatbuffer, 100"));
        assert_eq!(options.changes, [("seconds".to_owned(), "2".to_owned())]);
        assert!(options.client.is_all() && !options.servers.is_all());
        assert!(parse(&["--set", "seconds"]).is_err());
    }
}
