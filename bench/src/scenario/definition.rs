//! A scenario's data file, `scenarios/<name>.toml`.
//!
//! ```toml
//! [about]
//! title = "…"          # what is measured, in words
//! scope = "…"          # what takes part and what does not
//! data = "…"           # shape of the data
//! protocol = "…"       # how it is sent, and what counts as done
//! published = ["…"]    # optional: figures of others, with their hardware
//!
//! seconds = 5.0        # … the scenario's own settings
//!
//! [short]              # values that replace those above in the short form
//! seconds = 1.0
//! ```

use super::options::Options;
use lanes_support::error::{Error, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use toml::{Table, Value};

/// The description of a scenario for the reader of the report.
#[derive(Debug, Clone, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// The measured quantities, in words.
    pub title: String,
    /// The systems and parts that take part, and those that do not.
    pub scope: String,
    /// The shape of the data.
    pub data: String,
    /// How the data is sent, and when a request counts as done.
    pub protocol: String,
    /// Published figures of others, with the hardware that they were measured on.
    #[serde(default)]
    pub published: Vec<String>,
}

/// One run of one scenario.
#[derive(Debug, Clone)]
pub struct Run {
    /// The scenario's name.
    pub name: &'static str,
    /// The options of the run.
    pub options: Options,
    /// The description of the scenario.
    pub about: About,
    /// The rest of the data file, after the short form and the changes.
    table: Table,
}

impl Run {
    /// Reads the data file of a scenario and applies the short form and the changes.
    ///
    /// # Errors
    /// The file cannot be read, or does not have the described form.
    pub fn read(name: &'static str, options: &Options) -> Result<Run> {
        let file = folder().join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&file).map_err(Error::file("read", &file))?;
        Run::parse(name, &text, options)
            .map_err(|reason| Error::Other(format!("{}: {reason}", file.display())))
    }

    /// Reads the data file of a scenario, in full and in its short form.
    #[cfg(test)]
    pub fn both_forms(name: &'static str) -> [Run; 2] {
        [false, true].map(|short| {
            let options = Options {
                short,
                ..Options::default()
            };
            Run::read(name, &options).unwrap()
        })
    }

    fn parse(
        name: &'static str,
        text: &str,
        options: &Options,
    ) -> std::result::Result<Run, String> {
        let mut table: Table = text.parse().map_err(|error| format!("{error}"))?;
        let about = table.remove("about").ok_or("there is no [about]")?;
        let short = table.remove("short");
        if let (true, Some(Value::Table(short))) = (options.short, short) {
            for (key, value) in short {
                replace(&mut table, &key, value)?;
            }
        }
        for (key, text) in &options.changes {
            replace(&mut table, key, value(text))?;
        }
        Ok(Run {
            name,
            options: options.clone(),
            about: about
                .try_into()
                .map_err(|error| format!("[about]: {error}"))?,
            table,
        })
    }

    /// Returns the scenario's own settings. Their type should deny unknown fields, so that typing
    /// errors are reported.
    ///
    /// # Errors
    /// A field is missing or wrong.
    pub fn definition<T: DeserializeOwned>(&self) -> Result<T> {
        let wrong = |error| Error::Other(format!("scenarios/{}.toml: {error}", self.name));
        self.table.clone().try_into().map_err(wrong)
    }
}

/// Returns the folder of the data files.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// Replaces the value of a dotted key.
fn replace(table: &mut Table, key: &str, value: Value) -> std::result::Result<(), String> {
    let unknown = || format!("there is no key {key}");
    let place = match key.split_once('.') {
        Some((outer, inner)) => {
            let Some(Value::Table(table)) = table.get_mut(outer) else {
                return Err(unknown());
            };
            return replace(table, inner, value);
        }
        None => table.get_mut(key).ok_or_else(unknown)?,
    };
    *place = match (&*place, value) {
        // An integer is accepted for a float.
        (Value::Float(_), Value::Integer(number)) => Value::Float(number as f64),
        (_, value) => value,
    };
    Ok(())
}

/// Parses a TOML value. Anything else is text.
fn value(text: &str) -> Value {
    let table: std::result::Result<Table, _> = format!("value = {text}").parse();
    let value = table.ok().and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
        seconds = 5.0
        name = 'x'
        loads = [1, 2]
        [about]
        title = 't'
        scope = 's'
        data = 'd'
        protocol = 'p'
        [inner]
        count = 3
        [short]
        seconds = 1
        loads = [1]
        'inner.count' = 2";

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Example {
        seconds: f64,
        name: String,
        loads: Vec<u32>,
        inner: Inner,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        count: u32,
    }

    fn read(short: bool, changes: &[(&str, &str)]) -> std::result::Result<Example, String> {
        let options = Options {
            short,
            changes: changes
                .iter()
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect(),
            ..Options::default()
        };
        Run::parse("example", TEXT, &options)?
            .definition()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_short_form_replaces_and_changes_win() {
        let full = read(false, &[]).unwrap();
        assert_eq!(
            (full.seconds, full.loads, full.inner.count),
            (5.0, vec![1, 2], 3)
        );
        let short = read(true, &[("seconds", "9"), ("name", "plain text")]).unwrap();
        assert_eq!(
            (short.seconds, short.loads, short.inner.count),
            (9.0, vec![1], 2)
        );
        assert_eq!(short.name, "plain text");
    }

    #[test]
    fn typing_errors_are_reported() {
        assert!(
            read(false, &[("second", "9")])
                .unwrap_err()
                .contains("second")
        );
        assert!(read(false, &[("inner.x", "9")]).unwrap_err().contains("x"));
        assert!(
            read(false, &[("seconds", "soon")])
                .unwrap_err()
                .contains("seconds")
        );
    }
}
