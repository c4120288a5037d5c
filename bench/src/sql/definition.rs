//! A row of the table as a data file, `definitions/<row>.toml`.
//!
//! ```toml
//! order = 1                      # its place in the table
//! title = "…"                    # what the query computes, in words
//! answer = "asof"                # the reference answer's name (see `reference`); by default the answer of the heap tables
//! parameters = ["since"]         # $1, $2 … of the SQL, by the reference's names; {since} in the peers' text
//! note = "…"                     # optional: a note about the queries, for the reader
//!
//! [bar]                          # optional; every part has to hold
//! milliseconds = 10.0            # the median at most
//! times_best_peer = 3.0          # the best peer's median is at least this many times ours
//! bytes_per_row = 12.0           # or: the bytes that have to be read …
//! table = "trades"               #     … for each row of this table …
//! bandwidth_share = 0.85         #     … at this share of the read bandwidth of one core
//! plus_floor = true              #     … after the floor's round trip
//! engine = true                  # judged by the executor's own time, without the round trip
//!
//! [query.lanes]                  # and heap (default: as lanes), duckdb, polars, chdb (default: none)
//! setup = ["…"]                  # statements before the query, not timed
//! text = "SELECT …"              # SQL; for polars a Python expression over trades, quotes, events (frames), pl
//!
//! [[variant]]                    # the query for lanes with other settings, or in another form; reported, not judged
//! name = "zone maps off"
//! settings = ["lanes.zone_maps = off"]
//! text = "…"                     # optional
//! ```

use crate::sql::generate::Data;
use crate::sql::reference::{self, Parameter};
use lanes_support::error::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A row of the table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The file's name without its ending.
    #[serde(skip)]
    pub row: String,
    /// Its place in the table.
    pub order: u32,
    /// What the query computes, in words.
    pub title: String,
    /// The name of the reference answer. Without one, the expected answer is that of the query on heap tables.
    pub answer: Option<String>,
    /// The names of the parameters, `$1` first.
    #[serde(default)]
    pub parameters: Vec<String>,
    /// A note about the queries, for the reader.
    pub note: Option<String>,
    /// The bar for pg_lanes.
    pub bar: Option<Bar>,
    /// The query of each engine.
    pub query: BTreeMap<Engine, Query>,
    /// Other forms of the query for lanes.
    #[serde(default)]
    pub variant: Vec<Variant>,
}

/// The dialect of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// PostgreSQL, on lanes tables.
    Lanes,
    /// PostgreSQL, on heap tables with indexes.
    Heap,
    DuckDb,
    Polars,
    ChDb,
}

/// The bar for pg_lanes; every part has to hold.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// The greatest median, in milliseconds.
    pub milliseconds: Option<f64>,
    /// The best peer's median is at least this many times ours.
    pub times_best_peer: Option<f64>,
    /// The bytes that have to be read for each row of `table`.
    pub bytes_per_row: Option<f64>,
    /// The table that is read.
    pub table: Option<String>,
    /// The share of this machine's read bandwidth that has to be reached.
    pub bandwidth_share: Option<f64>,
    /// Whether the floor's round trip is added to the time for reading.
    #[serde(default)]
    pub plus_floor: bool,
    /// Whether the executor's own time is judged.
    #[serde(default)]
    pub engine: bool,
}

/// A query in one dialect.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// The statements to run before the query.
    #[serde(default)]
    pub setup: Vec<String>,
    /// The query.
    pub text: String,
}

/// Another form of the query for lanes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The text after the system's name in the table.
    pub name: String,
    /// Settings of the session, each as `name = value`.
    #[serde(default)]
    pub settings: Vec<String>,
    /// The query, if it differs from that of lanes.
    pub text: Option<String>,
}

impl Definition {
    /// Reads a definition and checks that everything it refers to exists.
    pub fn parse(row: &str, text: &str) -> std::result::Result<Definition, String> {
        let mut definition: Definition = toml::from_str(text).map_err(|error| error.to_string())?;
        definition.row = row.to_owned();
        let none = Data::generate(0);
        if let Some(answer) = &definition.answer
            && reference::answer(answer, &none).is_none()
        {
            return Err(format!("there is no reference answer `{answer}`"));
        }
        for name in &definition.parameters {
            if reference::parameter(name, &none).is_none() {
                return Err(format!("there is no parameter `{name}`"));
            }
        }
        if !definition.query.contains_key(&Engine::Lanes) {
            return Err("there is no [query.lanes]".to_owned());
        }
        if let Some(bar) = &definition.bar {
            let table_is_known = bar
                .table
                .as_ref()
                .is_some_and(|table| none.rows(table).is_some());
            let parts = [
                bar.bytes_per_row.is_some(),
                bar.table.is_some(),
                bar.bandwidth_share.is_some(),
            ];
            if parts.contains(&true) && !(parts.iter().all(|given| *given) && table_is_known) {
                return Err(
                    "bytes_per_row, table (a known one) and bandwidth_share require each other"
                        .to_owned(),
                );
            }
            if bar.milliseconds.is_none() && bar.times_best_peer.is_none() && !parts[0] {
                return Err("the bar has no part".to_owned());
            }
        }
        Ok(definition)
    }

    /// Returns the query for an engine. Without a query of its own, heap runs that of lanes.
    pub fn query(&self, engine: Engine) -> Option<&Query> {
        match engine {
            Engine::Heap => self
                .query
                .get(&Engine::Heap)
                .or_else(|| self.query.get(&Engine::Lanes)),
            _ => self.query.get(&engine),
        }
    }

    /// Returns the values of the parameters.
    pub fn parameters(&self, data: &Data) -> Vec<Parameter> {
        self.parameters
            .iter()
            .filter_map(|name| reference::parameter(name, data))
            .collect()
    }

    /// Returns a query's text with values in place of the parameters' names: text in quotes, times
    /// in microseconds.
    pub fn with_values(&self, text: &str, data: &Data) -> String {
        let mut text = text.to_owned();
        for (name, value) in self.parameters.iter().zip(self.parameters(data)) {
            let value = match value {
                Parameter::Float(number) => format!("{number:?}"),
                Parameter::Text(text) => format!("'{text}'"),
                Parameter::Time(microseconds) => microseconds.to_string(),
            };
            text = text.replace(&format!("{{{name}}}"), &value);
        }
        text
    }
}

/// Returns the folder of the definitions.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("definitions")
}

/// Reads all definitions, in the table's order.
pub fn read_all() -> Result<Vec<Definition>> {
    let folder = folder();
    let mut definitions = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(Error::file("list", &folder))? {
        let path = entry.map_err(Error::file("list", &folder))?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(Error::file("read", &path))?;
        let row = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let definition = Definition::parse(&row, &text)
            .map_err(|reason| Error::Other(format!("{}: {reason}", path.display())))?;
        definitions.push(definition);
    }
    definitions.sort_by_key(|definition| (definition.order, definition.row.clone()));
    Ok(definitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_parses_and_has_its_own_place() {
        let definitions = read_all().unwrap();
        assert_eq!(definitions.len(), 42);
        assert!(
            definitions
                .windows(2)
                .all(|pair| pair[0].order < pair[1].order)
        );
        assert_eq!(definitions[0].row, crate::sql::judge::FLOOR);
    }

    #[test]
    fn every_parameter_in_a_peers_query_is_replaced() {
        let data = Data::generate(10);
        for definition in read_all().unwrap() {
            for engine in [Engine::DuckDb, Engine::Polars, Engine::ChDb] {
                if let Some(query) = definition.query(engine) {
                    let text = definition.with_values(&query.text, &data);
                    for name in [
                        "price_threshold",
                        "duration_threshold",
                        "{symbol}",
                        "{since}",
                    ] {
                        assert!(!text.contains(name), "{}: {text}", definition.row);
                    }
                }
            }
        }
    }

    #[test]
    fn unknown_names_are_refused() {
        let good = "order = 1\ntitle = 't'\nanswer = 'zero'\n[query.lanes]\ntext = 'SELECT 0'\n";
        assert!(Definition::parse("x", good).is_ok());
        for (from, to) in [
            ("'zero'", "'nothing'"),
            ("lanes", "heap"),
            ("lanes", "oracle"),
            ("order = 1", "order = 1\nparameters = ['unknown']"),
            ("[query", "[bar]\nengine = true\n[query"),
            ("[query", "[bar]\nbytes_per_row = 1.0\n[query"),
            (
                "[query",
                "[bar]\nbytes_per_row = 1.0\ntable = 'x'\nbandwidth_share = 1.0\n[query",
            ),
            ("title", "titel"),
        ] {
            assert!(
                Definition::parse("x", &good.replacen(from, to, 1)).is_err(),
                "{from} -> {to}"
            );
        }
    }
}
