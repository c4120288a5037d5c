//! Columns in memory, for COPY into PostgreSQL and for the files of the peers.

use crate::sql::column_files::Column as ColumnFile;
use crate::sql::copy::copy;
use lanes_support::error::Result;
use postgres::Client;

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Times in microseconds since 1970.
    Time(Vec<i64>),
    /// Integers of four bytes.
    Integer(Vec<i32>),
    /// Floating-point numbers of eight bytes.
    Float(Vec<f64>),
    /// Texts by their codes.
    Text {
        /// Which item each row has.
        codes: Vec<u16>,
        /// The texts.
        items: Vec<String>,
    },
}

impl Values {
    /// Creates texts without repetition.
    pub fn texts(items: Vec<String>) -> Values {
        Values::Text {
            codes: (0..items.len()).map(|code| code as u16).collect(),
            items,
        }
    }

    fn rows(&self) -> usize {
        match self {
            Values::Time(values) => values.len(),
            Values::Integer(values) => values.len(),
            Values::Float(values) => values.len(),
            Values::Text { codes, .. } => codes.len(),
        }
    }

    fn sql_type(&self) -> &'static str {
        match self {
            Values::Time(_) => "timestamptz NOT NULL",
            Values::Integer(_) => "int4",
            Values::Float(_) => "float8",
            Values::Text { .. } => "text",
        }
    }
}

/// A table whose columns have the same length.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The names and values of its columns.
    pub columns: Vec<(&'static str, Values)>,
}

impl Table {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, values)| values.rows())
    }

    /// Creates the table in the schema of the search path and fills it. `storage` follows the
    /// columns in CREATE TABLE.
    ///
    /// # Errors
    /// PostgreSQL fails.
    pub fn load(&self, client: &mut Client, storage: &str) -> Result<()> {
        let columns = self.columns.iter();
        let columns: Vec<String> = columns
            .map(|(name, values)| format!("{name} {}", values.sql_type()))
            .collect();
        client.batch_execute(&format!(
            "CREATE TABLE {} ({}) {storage}",
            self.name,
            columns.join(", ")
        ))?;
        let count = self.columns.len() as i16;
        copy(client, self.name, count, self.rows(), |row, fields| {
            for (_, values) in &self.columns {
                match values {
                    Values::Time(values) => fields.time(values[row]),
                    Values::Integer(values) => fields.bytes(&values[row].to_be_bytes()),
                    Values::Float(values) => fields.bytes(&values[row].to_be_bytes()),
                    Values::Text { codes, items } => {
                        fields.bytes(items[usize::from(codes[row])].as_bytes());
                    }
                }
            }
        })
    }

    /// Returns the columns for the peers' files.
    pub fn files(&self) -> Vec<ColumnFile> {
        let file = |(name, values): &(&'static str, Values)| match values {
            Values::Time(values) => ColumnFile::new(
                name,
                "timestamp",
                values.iter().flat_map(|value| value.to_le_bytes()),
            ),
            Values::Integer(values) => ColumnFile::new(
                name,
                "int32",
                values.iter().flat_map(|value| value.to_le_bytes()),
            ),
            Values::Float(values) => ColumnFile::new(
                name,
                "float64",
                values.iter().flat_map(|value| value.to_le_bytes()),
            ),
            Values::Text { codes, items } => {
                let bytes = codes.iter().flat_map(|code| code.to_le_bytes());
                ColumnFile::new(name, "text", bytes).with_items(items)
            }
        };
        self.columns.iter().map(file).collect()
    }
}
