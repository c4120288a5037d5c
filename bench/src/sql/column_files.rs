//! The data for the peers: each column is a file of little-endian values, which `peers/convert.py`
//! converts to Parquet.
//!
//! ```text
//! <folder>/<table>.<column>    the values: int64, int32, uint16 (codes), float64, float32 or uint8 (bool)
//!          manifest.json       {table: [{name, type, items?}]}; `items` are the texts of the codes
//!          <table>.parquet     the file that the peers read, written by convert.py
//! ```

use crate::sql::generate::{Data, SERVICES, SYMBOLS, service, symbol};
use lanes_support::error::{Error, Result};
use lanes_support::{place, process};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Writes all columns and converts them.
pub fn write(data: &Data, folder: &Path, python: &Path, peers: &Path) -> Result<()> {
    let symbols: Vec<String> = (0..SYMBOLS).map(symbol).collect();
    let services: Vec<String> = (0..SERVICES).map(service).collect();
    let (trades, quotes, events) = (&data.trades, &data.quotes, &data.events);
    let ts = |values: &[i64]| {
        Column::new(
            "ts",
            "timestamp",
            values.iter().flat_map(|value| value.to_le_bytes()),
        )
    };
    let double = |name, values: &[f64]| {
        Column::new(
            name,
            "float64",
            values.iter().flat_map(|value| value.to_le_bytes()),
        )
    };
    let text = |name, codes: &[u16], items: &[String]| {
        let column = Column::new(
            name,
            "text",
            codes.iter().flat_map(|code| code.to_le_bytes()),
        );
        column.with_items(items)
    };
    let tables = [
        (
            "trades",
            vec![
                ts(&trades.ts),
                text("sym", &trades.sym, &symbols),
                double("price", &trades.price),
                Column::new(
                    "size",
                    "int32",
                    trades.size.iter().flat_map(|value| value.to_le_bytes()),
                ),
            ],
        ),
        (
            "quotes",
            vec![
                ts(&quotes.ts),
                text("sym", &quotes.sym, &symbols),
                double("bid", &quotes.bid),
                double("ask", &quotes.ask),
            ],
        ),
        (
            "events",
            vec![
                ts(&events.ts),
                Column::new(
                    "duration",
                    "float32",
                    events.duration.iter().flat_map(|value| value.to_le_bytes()),
                ),
                Column::new(
                    "is_error",
                    "bool",
                    events.is_error.iter().map(|value| u8::from(*value)),
                ),
                text("service", &events.service, &services),
            ],
        ),
    ];
    write_tables(&tables, folder, python, peers)
}

/// Writes the columns of tables and converts them.
pub fn write_tables<T: AsRef<[Column]>>(
    tables: &[(&str, T)],
    folder: &Path,
    python: &Path,
    peers: &Path,
) -> Result<()> {
    place::make_folder(folder)?;
    let mut manifest = serde_json::Map::new();
    for (table, columns) in tables {
        let columns = columns.as_ref();
        for column in columns {
            let path = folder.join(format!("{table}.{}", column.name));
            std::fs::write(&path, &column.bytes).map_err(Error::file("write", &path))?;
        }
        manifest.insert(
            (*table).to_owned(),
            columns.iter().map(|column| column.entry.clone()).collect(),
        );
    }
    let path = folder.join("manifest.json");
    std::fs::write(&path, Value::Object(manifest).to_string())
        .map_err(Error::file("write", &path))?;
    process::run(
        Command::new(python)
            .arg(peers.join("convert.py"))
            .arg(folder),
    )?;
    Ok(())
}

/// A column's bytes and its entry in the manifest.
pub struct Column {
    name: &'static str,
    bytes: Vec<u8>,
    entry: Value,
}

impl Column {
    /// Creates a column of a type, named as in the manifest.
    pub fn new(name: &'static str, kind: &str, bytes: impl Iterator<Item = u8>) -> Column {
        Column {
            name,
            bytes: bytes.collect(),
            entry: json!({"name": name, "type": kind}),
        }
    }

    /// Adds the texts of the codes.
    pub fn with_items(mut self, items: &[String]) -> Column {
        self.entry["items"] = json!(items);
        self
    }
}
