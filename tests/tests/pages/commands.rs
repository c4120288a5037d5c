//! The commands of a block of shell.
//!
//! | begins with | is |
//! |---|---|
//! | `curl`, `psql`, `pg_dump`, `pg_restore`, `createdb`, `pg_basebackup` | run |
//! | `lanes-gateway` | parsed as the program parses it |
//! | `make`, `cargo` | looked up: target, command, check, scenario, package |
//! | `docker` | looked up: the files that it names, and the services |
//! | `pip` | looked up: the folder that it installs |
//! | `vmalert` | looked up: its flags, which are those of the container, and its rules |
//!
//! Anything else is refused: a page shows it in a block of `text`.

use lanes_support::place;
use std::path::Path;
use std::process::Command;

/// What is to be done with a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has been checked.
    Sound,
    /// It has to be run.
    ToBeRun,
}

/// The commands of a block, without comments. A line that ends with a backslash goes on with the next.
pub fn commands(code: &str) -> Vec<String> {
    let joined = code.replace("\\\n", " ");
    let lines = joined.lines().map(without_comment);
    lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

fn without_comment(line: &str) -> &str {
    let line = if line.starts_with('#') { "" } else { line };
    line.split(" # ").next().unwrap_or_default().trim()
}

/// Checks a command, or says that it has to be run.
pub fn check(command: &str) -> Result<Verdict, String> {
    let words: Vec<&str> = command
        .split_whitespace()
        .skip_while(|word| is_assignment(word))
        .collect();
    let (program, words) = words.split_first().ok_or("there is no command")?;
    match *program {
        "curl" | "psql" | "pg_dump" | "pg_restore" | "createdb" | "pg_basebackup" => {
            return Ok(Verdict::ToBeRun);
        }
        "lanes-gateway" => parsed_by_the_gateway(command)?,
        "make" => made(command, words)?,
        "cargo" => run_by_cargo(words)?,
        "docker" => named_by_docker(words)?,
        "pip" => words
            .iter()
            .filter(|word| word.starts_with("./"))
            .try_for_each(|path| exists(path))?,
        "vmalert" => flagged_as_in_the_container(words)?,
        other => return Err(format!("nothing is known of `{other}`")),
    }
    Ok(Verdict::Sound)
}

/// `NAME=value` before a program.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        name.chars()
            .all(|letter| letter == '_' || letter.is_ascii_uppercase())
    })
}

fn exists(path: &str) -> Result<(), String> {
    match place::workspace().join(path).exists() {
        true => Ok(()),
        false => Err(format!("{path} does not exist")),
    }
}

fn text_of(path: &str) -> Result<String, String> {
    std::fs::read_to_string(place::workspace().join(path))
        .map_err(|error| format!("{path}: {error}"))
}

/// The words of a command as a shell splits them.
fn shell_words(command: &str) -> Vec<String> {
    let script = format!("printf '%s\\n' {command}");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn parsed_by_the_gateway(command: &str) -> Result<(), String> {
    let parsed =
        lanes_gateway::config::source::command().try_get_matches_from(shell_words(command));
    parsed.map(|_| ()).map_err(|error| error.to_string())
}

/// `make target`, with scenarios of the bench in `ARGS`.
fn made(command: &str, words: &[&str]) -> Result<(), String> {
    let makefile = text_of("Makefile")?;
    let targets = words.iter().filter(|word| {
        word.chars()
            .all(|letter| letter == '-' || letter.is_ascii_lowercase())
    });
    let mut found = 0;
    for target in targets {
        if makefile
            .lines()
            .any(|line| line.starts_with(&format!("{target}:")))
        {
            found += 1;
        } else if found == 0 {
            return Err(format!("the Makefile has no target {target}"));
        }
    }
    let arguments = command
        .split_once("ARGS=")
        .map(|(_, rest)| rest.trim_matches('"'));
    match arguments {
        Some(arguments) if words.first() == Some(&"bench") => {
            known_to_the_bench(arguments.split_whitespace().next().unwrap_or_default())
        }
        _ if found > 0 => Ok(()),
        _ => Err("make is called without a target".to_owned()),
    }
}

/// A word of `lanes-bench`: a scenario, or one of its other commands.
fn known_to_the_bench(word: &str) -> Result<(), String> {
    let is_known = word.starts_with("--") || ["all", "load", "report", "sql"].contains(&word);
    match is_known {
        true => Ok(()),
        false => exists(&format!("bench/scenarios/{word}.toml")),
    }
}

fn run_by_cargo(words: &[&str]) -> Result<(), String> {
    match words {
        ["dev", "bench", word, ..] => known_to_the_bench(word),
        ["dev", "test", checks @ ..] => checks.iter().take(1).try_for_each(|name| {
            named_in("tests/src/bin/dev/checks", &format!("name: \"{name}\""))
        }),
        ["dev", command, ..] => {
            let help = text_of("tests/src/bin/dev/main.rs")?;
            match help.contains(&format!("\n  {command}")) {
                true => Ok(()),
                false => Err(format!("`cargo dev help` has no {command}")),
            }
        }
        [
            "build" | "test" | "check" | "bench" | "doc" | "run" | "clippy" | "fmt",
            options @ ..,
        ] => {
            let named = options.iter().zip(options.iter().skip(1));
            let packages = named.filter(|(option, _)| ["-p", "--package"].contains(option));
            packages
                .map(|(_, package)| package)
                .try_for_each(|package| {
                    let line = format!("name = \"{package}\"\nversion");
                    match text_of("Cargo.lock")?.contains(&line) {
                        true => Ok(()),
                        false => Err(format!("there is no package {package}")),
                    }
                })
        }
        _ => Err("nothing is known of this command of Cargo".to_owned()),
    }
}

/// Whether a file of this folder contains the text.
fn named_in(folder: &str, text: &str) -> Result<(), String> {
    let files =
        std::fs::read_dir(place::workspace().join(folder)).map_err(|error| error.to_string())?;
    let contains = |path: &Path| std::fs::read_to_string(path).is_ok_and(|all| all.contains(text));
    match files.flatten().any(|file| contains(&file.path())) {
        true => Ok(()),
        false => Err(format!("{folder} does not contain {text}")),
    }
}

/// The files after `-f`, and the services that a compose file is asked for.
fn named_by_docker(words: &[&str]) -> Result<(), String> {
    let file = words
        .iter()
        .skip_while(|word| **word != "-f")
        .nth(1)
        .ok_or("no file is named")?;
    exists(file)?;
    let Some(at) = words.iter().position(|word| ["exec", "run"].contains(word)) else {
        return Ok(());
    };
    let service = words[at + 1..].iter().find(|word| !word.starts_with("--"));
    let service = service.ok_or("no service is named")?;
    match text_of(file)?.contains(&format!("\n  {service}:\n")) {
        true => Ok(()),
        false => Err(format!("{file} has no service {service}")),
    }
}

/// The flags of vmalert. Those of the container are tested with the program itself.
fn flagged_as_in_the_container(words: &[&str]) -> Result<(), String> {
    let compose = text_of("docker/compose.yml")?;
    for word in words {
        let (flag, value) = word.split_once('=').unwrap_or((word, ""));
        let lines = compose
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- "));
        if !lines
            .map(|line| line.split('=').next())
            .any(|known| known == Some(flag))
        {
            return Err(format!("vmalert's container has no flag {flag}"));
        }
        if flag == "-rule" {
            exists(value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_are_wrong_are_refused() {
        for (command, is_sound) in [
            ("make run", true),
            ("make walk", false),
            ("make bench ARGS=\"events --only json\"", true),
            ("make bench ARGS=no-such-scenario", false),
            ("LANES_ROUNDS=3 cargo test -p lanes-tests", true),
            ("cargo test -p no-such-package", false),
            ("cargo dev test rust", true),
            ("cargo dev test no-such-check", false),
            ("cargo dev walk", false),
            ("lanes-gateway --check-config", true),
            ("lanes-gateway --no-such-flag", false),
            (
                "docker compose -f docker/compose.yml exec postgres psql",
                true,
            ),
            (
                "docker compose -f docker/compose.yml exec walker psql",
                false,
            ),
            ("docker compose -f docker/no.yml up", false),
            (
                "vmalert -rule=docker/vmalert/rules.yml -notifier.blackhole",
                true,
            ),
            ("vmalert -rule=docker/vmalert/no.yml", false),
            ("vmalert -no.such.flag=1", false),
            ("rm -r data", false),
        ] {
            let checked = check(command);
            assert_eq!(
                checked == Ok(Verdict::Sound),
                is_sound,
                "{command}: {checked:?}"
            );
        }
        assert_eq!(
            check("curl -i http://127.0.0.1:9201/"),
            Ok(Verdict::ToBeRun)
        );
    }

    #[test]
    fn comments_and_line_ends_are_no_commands() {
        let code = "# A comment.\nmake run   # more\ncurl a \\\n  b\n\n";
        assert_eq!(commands(code), ["make run", "curl a    b"]);
    }
}
