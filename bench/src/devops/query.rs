//! A query of the data file, in the dialect of each store.

use serde::Deserialize;

/// The dialect of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL, on lanes tables.
    Lanes,
    /// PostgreSQL, on heap tables.
    Heap,
    /// DuckDB.
    DuckDb,
    /// An expression of Python.
    Polars,
}

/// A query.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// The query's row in the report.
    pub name: String,
    /// The number of drawn hosts.
    #[serde(default = "one")]
    pub hosts: usize,
    /// The number of hours between `$from` and `$to`.
    #[serde(default = "one_hour")]
    pub hours: i64,
    /// A statement that prepares the query executed by `sql` in PostgreSQL. Its plan is generic.
    pub prepare: Option<String>,
    /// The text for stores without a text of their own.
    pub sql: String,
    /// The text for heap, if `sql` uses what only lanes tables have.
    pub heap: Option<String>,
    /// The text for DuckDB, if its dialect differs.
    pub duckdb: Option<String>,
    /// The text for Polars, which runs only queries that have one.
    pub polars: Option<String>,
}

fn one() -> usize {
    1
}

fn one_hour() -> i64 {
    1
}

impl Query {
    /// Returns the text for a store, or `None` if the store does not run the query.
    pub fn text(&self, dialect: Dialect) -> Option<&str> {
        let own = match dialect {
            Dialect::Lanes => None,
            Dialect::Heap => self.heap.as_deref(),
            Dialect::DuckDb => self.duckdb.as_deref(),
            Dialect::Polars => return self.polars.as_deref(),
        };
        Some(own.unwrap_or(&self.sql))
    }

    /// Whether the text contains draws.
    pub fn is_drawn(&self) -> bool {
        self.sql.contains('$')
    }
}
