//! The catalogue: tables by name, as PostgreSQL described them recently.
//!
//! A description older than [`FRESH`] is still used, and refreshed in the background. A description
//! older than [`STALE`] is refreshed first. Before a batch that does not fit is refused, it is
//! checked against a description made after it arrived. A table that PostgreSQL reports as changed
//! is described again. A change is therefore seen at once by the requests that it concerns, and no
//! other request waits.
//!
//! A table that the gateway's role may not insert into is cached for [`DENIED`], so that senders
//! who ignore the answer cost PostgreSQL nothing. That a table does not exist is reported to all
//! requests that waited for the answer, and not cached for later ones.

use std::sync::Arc;
use std::time::Duration;

use hashbrown::{Equivalent, HashMap};
use parking_lot::Mutex;

use crate::clock::{self, Instant};
use crate::deliver::{Sink, SinkError};
use crate::model::{ColumnKind, Table};
use crate::series::SeriesCache;

const FRESH: Duration = Duration::from_secs(5);
const STALE: Duration = Duration::from_secs(60);
const DENIED: Duration = Duration::from_secs(1);
/// The maximum number of cached names. Beyond it all are dropped.
const TABLES_MAX: usize = 10_000;
/// The maximum number of missing names kept for waiting requests.
const MISSING_MAX: usize = 1_000;

/// The tables of one database.
pub struct Catalogue<S> {
    sink: Arc<S>,
    /// Holds the registry generation: if the database is replaced, all tables change.
    cache: Arc<SeriesCache>,
    /// The table of samples: `schema.table`, quoted where SQL requires it.
    samples_table: String,
    tables: Mutex<HashMap<Name, Entry>>,
    /// The times at which missing names were looked up. Beyond [`MISSING_MAX`] all are dropped.
    missing: Mutex<HashMap<Name, Instant>>,
    /// Held for one look-up at a time. Requests that wait find the result when their turn comes.
    looking_up: tokio::sync::Mutex<()>,
    /// Held for one background refresh at a time, so that requests do not wait behind it and the
    /// number of sessions does not grow.
    refreshing: tokio::sync::Mutex<()>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Name {
    schema: Box<str>,
    table: Box<str>,
}

/// A name to look up. Its hash equals that of [`Name`].
#[derive(Hash)]
struct NameRef<'a> {
    schema: &'a str,
    table: &'a str,
}

impl Equivalent<Name> for NameRef<'_> {
    fn equivalent(&self, name: &Name) -> bool {
        *self.schema == *name.schema && *self.table == *name.table
    }
}

impl From<&NameRef<'_>> for Name {
    fn from(name: &NameRef<'_>) -> Self {
        Self {
            schema: name.schema.into(),
            table: name.table.into(),
        }
    }
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub enum Found {
    /// A table that accepts events.
    Open(Arc<Table>),
    /// A table that the gateway's role may not insert into.
    Denied(Arc<Table>),
    /// The table of samples.
    Samples,
}

struct Entry {
    found: Found,
    described_at: Instant,
    generation: u64,
    is_refreshing: bool,
}

impl<S: Sink> Catalogue<S> {
    /// Creates an empty catalogue.
    pub fn new(sink: Arc<S>, cache: Arc<SeriesCache>, samples_table: String) -> Self {
        Self {
            sink,
            cache,
            samples_table,
            tables: Mutex::default(),
            missing: Mutex::default(),
            looking_up: tokio::sync::Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
        }
    }

    /// The registry generation. Tables found from now on belong to it, or to a later one.
    pub fn generation(&self) -> u64 {
        self.cache.generation()
    }

    /// Returns the table if its description is recent at `now` and was made after `not_before`.
    pub fn known(
        self: &Arc<Self>,
        schema: &str,
        table: &str,
        not_before: Option<Instant>,
        now: Instant,
    ) -> Option<Found> {
        self.known_as(&NameRef { schema, table }, not_before, now)
    }

    /// Returns the table, described after `not_before`; `None` if it does not exist.
    ///
    /// # Errors
    /// Returns an error if PostgreSQL is unavailable.
    pub async fn find(
        self: &Arc<Self>,
        schema: &str,
        table: &str,
        not_before: Option<Instant>,
    ) -> Result<Option<Found>, SinkError> {
        let name = NameRef { schema, table };
        let now = clock::now();
        if let Some(known) = self.known_as(&name, not_before, now) {
            return Ok(Some(known));
        }
        if self
            .samples_table
            .strip_prefix(schema)
            .is_some_and(|rest| rest.strip_prefix('.').is_some_and(|rest| rest == table))
        {
            return Ok(Some(Found::Samples));
        }
        let _turn = self.looking_up.lock().await;
        if let Some(known) = self.known_as(&name, not_before.or(Some(now)), now) {
            return Ok(Some(known));
        }
        // Without this, each of many requests for a missing table would delay all others.
        if self.missing.lock().get(&name).is_some_and(|at| *at > now) {
            return Ok(None);
        }
        self.look_up(&name).await
    }

    /// Creates a table unless it exists.
    ///
    /// # Errors
    /// Returns an error if PostgreSQL is unavailable, or if the gateway's role may not create the
    /// table.
    pub async fn create(
        &self,
        schema: &str,
        name: &str,
        columns: &[(&str, ColumnKind)],
        is_unlogged: bool,
    ) -> Result<(), SinkError> {
        let _turn = self.looking_up.lock().await;
        self.sink.create(schema, name, columns, is_unlogged).await
    }

    /// Returns a usable description. An ageing one is refreshed by a task of its own.
    fn known_as(
        self: &Arc<Self>,
        name: &NameRef<'_>,
        not_before: Option<Instant>,
        now: Instant,
    ) -> Option<Found> {
        let mut tables = self.tables.lock();
        let entry = tables.get_mut(name)?;
        let age = now.saturating_duration_since(entry.described_at);
        if entry.generation != self.cache.generation() {
            tables.clear();
            return None;
        }
        let (fresh, stale) = match &entry.found {
            Found::Denied(_) => (DENIED, DENIED),
            Found::Open(_) | Found::Samples => (FRESH, STALE),
        };
        if age > stale || not_before.is_some_and(|instant| entry.described_at <= instant) {
            return None;
        }
        if age > fresh && !entry.is_refreshing {
            entry.is_refreshing = true;
            let (catalogue, name) = (Arc::clone(self), Name::from(name));
            tokio::spawn(async move { catalogue.refresh(&name).await });
        }
        Some(entry.found.clone())
    }

    async fn refresh(&self, name: &Name) {
        let _turn = self.refreshing.lock().await;
        let Name { schema, table } = name;
        // The sink logs errors, and the next request tries again.
        if self.look_up(&NameRef { schema, table }).await.is_err() {
            self.tables.lock().remove(name);
        }
    }

    async fn look_up(&self, name: &NameRef<'_>) -> Result<Option<Found>, SinkError> {
        let (described_at, generation) = (clock::now(), self.cache.generation());
        let described = self.sink.describe(name.schema, name.table).await?;
        let found = described.map(|table| self.classified(table));
        let mut tables = self.tables.lock();
        match &found {
            Some(found) => {
                if tables.len() >= TABLES_MAX {
                    tables.clear();
                }
                let entry = Entry {
                    found: found.clone(),
                    described_at,
                    generation,
                    is_refreshing: false,
                };
                tables.insert(Name::from(name), entry);
            }
            // The table may be created in a moment.
            None => {
                tables.remove(name);
                let mut missing = self.missing.lock();
                if missing.len() >= MISSING_MAX {
                    missing.clear();
                }
                missing.insert(Name::from(name), described_at);
            }
        }
        Ok(found)
    }

    fn classified(&self, table: Table) -> Found {
        if table.name == self.samples_table {
            Found::Samples
        } else if table.may_insert {
            Found::Open(Arc::new(table))
        } else {
            Found::Denied(Arc::new(table))
        }
    }
}
