//! A query of the data file, in the dialect of each store.

use serde::Deserialize;

/// How a store wants a text.
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
    /// Its row in the report.
    pub name: String,
    /// How many hosts are drawn.
    #[serde(default = "one")]
    pub hosts: usize,
    /// How many hours `$from` and `$to` are apart.
    #[serde(default = "one_hour")]
    pub hours: i64,
    /// A statement of PostgreSQL that prepares what `sql` executes; its plan is generic.
    pub prepare: Option<String>,
    /// The text, for stores that have none of their own.
    pub sql: String,
    /// For heap, where what `sql` says is there for lanes only.
    pub heap: Option<String>,
    /// For DuckDB, where it says it in another way.
    pub duckdb: Option<String>,
    /// For Polars, which is not asked without.
    pub polars: Option<String>,
}

fn one() -> usize {
    1
}

fn one_hour() -> i64 {
    1
}

impl Query {
    /// The text for a store; none if the store is not asked.
    pub fn text(&self, dialect: Dialect) -> Option<&str> {
        let own = match dialect {
            Dialect::Lanes => None,
            Dialect::Heap => self.heap.as_deref(),
            Dialect::DuckDb => self.duckdb.as_deref(),
            Dialect::Polars => return self.polars.as_deref(),
        };
        Some(own.unwrap_or(&self.sql))
    }

    /// Whether anything in it is drawn; else it is asked as it stands.
    pub fn is_drawn(&self) -> bool {
        self.sql.contains('$')
    }
}
