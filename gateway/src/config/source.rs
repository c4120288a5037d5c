//! The values of settings as text, from flags, environment, file and defaults, in this order of
//! precedence.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use thiserror::Error;

use super::setting::{SETTINGS, Setting};

/// Why settings cannot be gathered. Messages never contain values from the file, because it may
/// contain a password.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The file cannot be read.
    #[error("configuration file {path:?}: {source}")]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("configuration file {path:?}, line {line}: {message}")]
    Syntax {
        /// The path of the file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The problem.
        message: String,
    },
    /// The file contains an unknown key.
    #[error("configuration file {path:?}: unknown setting {key}")]
    UnknownKey {
        /// The path of the file.
        path: PathBuf,
        /// The key as written: `section.key`.
        key: String,
    },
    /// An environment variable has the prefix of settings but names none.
    #[error("environment variable {0}: unknown setting; see --help")]
    UnknownVariable(String),
    /// A value is neither a string, an integer nor a boolean.
    #[error("configuration file {path:?}: {key} must be a string, an integer, true or false")]
    Type {
        /// The path of the file.
        path: PathBuf,
        /// The key: `section.key`.
        key: String,
    },
}

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Flag,
    /// An environment variable.
    Environment,
    /// The configuration file.
    File,
    /// No source: the default.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::File => "file",
            Self::Default => "default",
        })
    }
}

/// A value for every setting.
#[derive(Debug)]
pub struct Sources {
    values: BTreeMap<String, (String, Origin)>,
}

/// Returns the definition of the command line.
pub fn command() -> Command {
    let file = Arg::new("config")
        .long("config")
        .env("LANES_GATEWAY_CONFIG")
        .hide_env_values(true)
        .value_name("FILE")
        .help("TOML file with settings: [section] and key as in --section-key");
    let check = Arg::new("check-config")
        .long("check-config")
        .action(ArgAction::SetTrue)
        .help("Check and print the settings, then exit: status 0 if they are valid");
    let adopt = Arg::new("adopt")
        .long("adopt")
        .action(ArgAction::SetTrue)
        .help("Make the database of these settings the owner of objects.url, whoever owns it now, then exit");
    let settings = SETTINGS.iter().map(|setting| {
        let default = if setting.default.is_empty() {
            String::new()
        } else {
            format!(" [default: {}]", setting.default)
        };
        Arg::new(setting.name())
            .long(setting.flag())
            .env(setting.variable())
            // The help must not show values from the environment, because one may be a password.
            .hide_env_values(true)
            .value_name(setting.kind)
            .help(format!("{}{default}", setting.help))
    });
    Command::new("lanes-gateway")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Receives Prometheus remote write and events, and stores them in PostgreSQL tables of the access method lanes")
        .after_help(
            "Each setting can be specified as a flag, an environment variable, or a key of the TOML file, in this order of precedence.\n\
             Sizes: 10, 10KiB, 10MiB, 10GiB. Durations: 5ms, 10s, 1m, 24h, 7d.",
        )
        // A flag given again replaces the earlier one, as in other servers, so that wrappers can
        // append to a command line.
        .args_override_self(true)
        .subcommand(crate::restore::command::command())
        .arg(file)
        .arg(check)
        .arg(adopt)
        .args(settings)
}

impl Sources {
    /// Gathers all values.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if the environment contains an unknown
    /// variable with the prefix of settings.
    pub fn gather(matches: &ArgMatches) -> Result<Self, SourceError> {
        let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        if let Some(unknown) = unknown_variable(variables) {
            return Err(SourceError::UnknownVariable(unknown));
        }
        let file = match matches.get_one::<String>("config") {
            Some(path) if !path.is_empty() => read_file(Path::new(path))?,
            _ => BTreeMap::new(),
        };
        let values = SETTINGS.iter().map(|setting| {
            let name = setting.name();
            let value = explicit_value(matches, setting)
                .or_else(|| file.get(&name).map(|value| (value.clone(), Origin::File)))
                .unwrap_or_else(|| (setting.default.to_owned(), Origin::Default));
            (name, value)
        });
        Ok(Self {
            values: values.collect(),
        })
    }

    /// Returns the value of `section.key` and its source.
    ///
    /// # Panics
    /// Panics if the setting does not exist, which is an error in the program.
    pub fn value(&self, name: &str) -> (&str, Origin) {
        let (value, origin) = self
            .values
            .get(name)
            .unwrap_or_else(|| panic!("no setting {name}"));
        (value, *origin)
    }

    /// Returns all values for people, one per line. The connection string is hidden.
    pub fn text(&self) -> String {
        let line = |(name, (value, origin)): (&String, &(String, Origin))| {
            let is_secret = name.ends_with(".connection");
            let value = if is_secret && *origin != Origin::Default {
                "(not shown)"
            } else {
                value
            };
            format!("{name} = {value:?} ({origin})\n")
        };
        self.values.iter().map(line).collect()
    }
}

/// Returns the first environment variable that has the prefix of settings but names none.
fn unknown_variable(mut names: impl Iterator<Item = String>) -> Option<String> {
    names.find(|name| {
        name.strip_prefix("LANES_GATEWAY_").is_some_and(|rest| {
            // Kubernetes sets such variables for a service named lanes-gateway.
            let of_kubernetes = rest == "PORT"
                || ["PORT_", "SERVICE_"]
                    .iter()
                    .any(|start| rest.starts_with(start));
            let is_known =
                rest == "CONFIG" || SETTINGS.iter().any(|setting| setting.variable() == *name);
            !of_kubernetes && !is_known
        })
    })
}

fn explicit_value(matches: &ArgMatches, setting: &Setting) -> Option<(String, Origin)> {
    let name = setting.name();
    let value = matches.get_one::<String>(&name)?;
    match matches.value_source(&name)? {
        // An empty variable counts as unset, as in compose files.
        ValueSource::EnvVariable if value.is_empty() => None,
        ValueSource::EnvVariable => Some((value.clone(), Origin::Environment)),
        _ => Some((value.clone(), Origin::Flag)),
    }
}

fn read_file(path: &Path) -> Result<BTreeMap<String, String>, SourceError> {
    let text = std::fs::read_to_string(path).map_err(|source| SourceError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse_file(path, &text)
}

fn parse_file(path: &Path, text: &str) -> Result<BTreeMap<String, String>, SourceError> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| {
            text[..span.start.min(text.len())].lines().count().max(1)
        });
        SourceError::Syntax {
            path: path.to_owned(),
            line,
            message: error.message().to_owned(),
        }
    })?;
    let mut values = BTreeMap::new();
    for (section, content) in &table {
        let toml::Value::Table(keys) = content else {
            return Err(SourceError::UnknownKey {
                path: path.to_owned(),
                key: section.clone(),
            });
        };
        if !SETTINGS.iter().any(|setting| setting.section == section) {
            return Err(SourceError::UnknownKey {
                path: path.to_owned(),
                key: section.clone(),
            });
        }
        for (key, value) in keys {
            let name = format!("{section}.{key}");
            if !SETTINGS.iter().any(|setting| setting.name() == name) {
                return Err(SourceError::UnknownKey {
                    path: path.to_owned(),
                    key: name,
                });
            }
            let value = match value {
                toml::Value::String(text) => text.clone(),
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(word) => word.to_string(),
                _ => {
                    return Err(SourceError::Type {
                        path: path.to_owned(),
                        key: name,
                    });
                }
            };
            values.insert(name, value);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_are_no_settings_are_found() {
        let unknown = |name: &str| unknown_variable([name.to_owned()].into_iter()).is_some();
        for name in [
            "LANES_GATEWAY_LISTEN_ADDRESS",
            "LANES_GATEWAY_CONFIG",
            "LANES_GATEWAY_PORT",
            "LANES_GATEWAY_PORT_9201_TCP",
            "LANES_GATEWAY_SERVICE_HOST",
            "LANES_HTTP_PORT",
            "PATH",
        ] {
            assert!(!unknown(name), "{name}");
        }
        for name in [
            "LANES_GATEWAY_LISTEN_ADRESS",
            "LANES_GATEWAY_",
            "LANES_GATEWAY_listen_address",
        ] {
            assert!(unknown(name), "{name}");
        }
    }

    fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
        parse_file(Path::new("x.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_of_the_file_are_settings() {
        let values = parse("[batch]\nrows_max = 10\nage_max = \"1ms\"\n").unwrap();
        assert_eq!(values["batch.rows_max"], "10");
        assert_eq!(values["batch.age_max"], "1ms");
    }

    #[test]
    fn unknown_keys_and_types_are_errors() {
        assert!(
            parse("[batch]\nrow_max = 10")
                .unwrap_err()
                .contains("unknown setting batch.row_max")
        );
        assert!(
            parse("[bach]\n")
                .unwrap_err()
                .contains("unknown setting bach")
        );
        assert!(
            parse("rows_max = 10")
                .unwrap_err()
                .contains("unknown setting rows_max")
        );
        assert!(
            parse("[batch]\nrows_max = 1.5")
                .unwrap_err()
                .contains("must be a string, an integer, true or false")
        );
    }

    #[test]
    fn syntax_errors_name_the_line_and_show_no_value() {
        let error = parse("[postgres]\n\nconnection = \"password=secret\" x\n").unwrap_err();
        assert!(error.contains("line 3"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn flags_come_before_defaults_and_the_connection_is_hidden() {
        let matches = command()
            .try_get_matches_from([
                "lanes-gateway",
                "--batch-rows-max",
                "7",
                "--postgres-connection",
                "password=secret",
                "--query-connection",
                "password=secret",
            ])
            .unwrap();
        let sources = Sources::gather(&matches).unwrap();
        assert_eq!(sources.value("batch.rows_max"), ("7", Origin::Flag));
        assert_eq!(sources.value("batch.age_max"), ("5ms", Origin::Default));
        let text = sources.text();
        assert!(text.contains("batch.rows_max = \"7\" (flag)"));
        assert!(!text.contains("secret"));
    }

    #[test]
    fn the_command_is_well_formed() {
        command().debug_assert();
    }
}
