//! The command line: a sub-command for each kind of work.

use crate::catalogue::{self, SCENARIOS, Scenario};
use crate::load;
use crate::scenario::Options;
use crate::scenario::page;
use crate::sql;
use clap::Command;
use lanes_support::error::Result;
use lanes_support::place;

const ALL: &str = "all";
const REPORT: &str = "report";

fn command() -> Command {
    let scenarios = SCENARIOS
        .iter()
        .map(|scenario| Options::add_to(Command::new(scenario.name).about(scenario.help)));
    Command::new("lanes-bench")
        .about("Benchmarks of pg_lanes: scenarios, SQL beside other engines, and a load generator for any URL")
        .after_help("The results are in target/bench: <scenario>.json, and report.html with all of them.")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Options::add_to(Command::new(ALL).about("All scenarios, one after another, then SQL")))
        .subcommands(scenarios)
        .subcommand(sql::options::command())
        .subcommand(load::tool::command())
        .subcommand(Command::new(REPORT).about("Writes report.html again from the existing results"))
}

/// Runs the command line's sub-command. Prints help, or the mistake, and ends the program if the
/// command line requires that.
///
/// # Errors
/// The sub-command fails.
pub fn run() -> Result<()> {
    let matches = command().get_matches();
    match matches.subcommand() {
        Some(("sql", matches)) => sql::run(&sql::options::Options::from_matches(matches)?),
        Some(("load", matches)) => load::tool::execute(matches),
        Some((REPORT, _)) => page::write(&place::target().join("bench")),
        Some((name, matches)) => {
            let options = Options::from_matches(matches)?;
            match catalogue::find(name) {
                Some(scenario) => catalogue::execute_all(&[scenario], &options),
                None => all(&options),
            }
        }
        None => Ok(()),
    }
}

/// Runs all scenarios, then SQL. A failure does not prevent the others from running.
fn all(options: &Options) -> Result<()> {
    let scenarios: Vec<&Scenario> = SCENARIOS.iter().collect();
    let measured = catalogue::execute_all(&scenarios, options);
    let words: &[&str] = match options.short {
        true => &["sql", "--budget", "1", "--repeat", "20"],
        false => &["sql"],
    };
    let sql = sql::options::Options::from_matches(&sql::options::command().get_matches_from(words));
    let timed = sql.and_then(|options| sql::run(&options));
    page::write(&options.folder)?;
    measured.and(timed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        command().debug_assert();
    }
}
