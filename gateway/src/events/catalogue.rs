//! Tables by name, as PostgreSQL described them a moment ago.
//!
//! A description older than [`FRESH`] is still used, and asked for again beside the requests; older than [`STALE`] it is asked for first.
//! A batch that does not fit is held against a description made after it arrived before it is refused, and a table that PostgreSQL finds
//! changed is forgotten. So a changed table is seen at once by whom it concerns, and nobody else waits. A table that the gateway's role may
//! not insert into is remembered for [`DENIED`], so that senders who do not mind the answer cost PostgreSQL nothing. That there is no table is
//! told to all who waited when it was asked for, and to nobody who comes later.

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
/// Names remembered; past them all are forgotten.
const TABLES_MAX: usize = 10_000;
/// Names remembered that no table has, for those who wait.
const MISSING_MAX: usize = 1_000;

/// The tables of one database.
pub struct Catalogue<S> {
    sink: Arc<S>,
    /// Knows the registry generation: with the database all its tables change.
    cache: Arc<SeriesCache>,
    /// The table of samples: `schema.table`, quoted where SQL wants it.
    samples_table: String,
    tables: Mutex<HashMap<Name, Entry>>,
    /// When names were asked for that no table has; past [`MISSING_MAX`] all are forgotten.
    missing: Mutex<HashMap<Name, Instant>>,
    /// One question at a time: whoever waits finds the answer when its turn comes.
    asking: tokio::sync::Mutex<()>,
    /// And one beside them for descriptions that age, so that requests do not wait behind those, nor sessions grow in number.
    refreshing: tokio::sync::Mutex<()>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Name {
    schema: Box<str>,
    table: Box<str>,
}

/// A name that is looked for; its hash is that of [`Name`].
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

/// What events find under a name.
#[derive(Debug, Clone)]
pub enum Found {
    /// A table that takes them.
    Open(Arc<Table>),
    /// One that the gateway's role may not insert into.
    Denied(Arc<Table>),
    /// The table of samples.
    Samples,
}

struct Entry {
    found: Found,
    described_at: Instant,
    generation: u64,
    is_being_asked: bool,
}

impl<S: Sink> Catalogue<S> {
    /// Knows nothing yet.
    pub fn new(sink: Arc<S>, cache: Arc<SeriesCache>, samples_table: String) -> Self {
        Self {
            sink,
            cache,
            samples_table,
            tables: Mutex::default(),
            missing: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
        }
    }

    /// The registry generation: tables found from now on are of it, or of a later one.
    pub fn generation(&self) -> u64 {
        self.cache.generation()
    }

    /// The table of this schema and name, if it has been described, `now` is no long time after that, and `not_before` is before it.
    pub fn known(
        self: &Arc<Self>,
        schema: &str,
        table: &str,
        not_before: Option<Instant>,
        now: Instant,
    ) -> Option<Found> {
        self.known_as(&NameRef { schema, table }, not_before, now)
    }

    /// The table of this schema and name, described after `not_before`; `None` if there is none.
    ///
    /// # Errors
    /// PostgreSQL cannot be asked.
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
        let _turn = self.asking.lock().await;
        if let Some(known) = self.known_as(&name, not_before.or(Some(now)), now) {
            return Ok(Some(known));
        }
        // Or else each of many senders to a table that there is not would hold up all who wait here.
        if self.missing.lock().get(&name).is_some_and(|at| *at > now) {
            return Ok(None);
        }
        self.ask(&name).await
    }

    /// Creates a table unless there is one.
    ///
    /// # Errors
    /// PostgreSQL cannot be asked, or the gateway's role may not create it.
    pub async fn create(
        &self,
        schema: &str,
        name: &str,
        columns: &[(&str, ColumnKind)],
        is_unlogged: bool,
    ) -> Result<(), SinkError> {
        let _turn = self.asking.lock().await;
        self.sink.create(schema, name, columns, is_unlogged).await
    }

    /// A description good enough; one that ages is asked for again by a task of its own.
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
        if age > fresh && !entry.is_being_asked {
            entry.is_being_asked = true;
            let (catalogue, name) = (Arc::clone(self), Name::from(name));
            tokio::spawn(async move { catalogue.ask_again(&name).await });
        }
        Some(entry.found.clone())
    }

    async fn ask_again(&self, name: &Name) {
        let _turn = self.refreshing.lock().await;
        let Name { schema, table } = name;
        // An error is noted by the sink; the next request asks again.
        if self.ask(&NameRef { schema, table }).await.is_err() {
            self.tables.lock().remove(name);
        }
    }

    async fn ask(&self, name: &NameRef<'_>) -> Result<Option<Found>, SinkError> {
        let (described_at, generation) = (clock::now(), self.cache.generation());
        let described = self.sink.describe(name.schema, name.table).await?;
        let found = described.map(|table| self.judged(table));
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
                    is_being_asked: false,
                };
                tables.insert(Name::from(name), entry);
            }
            // It may be created in a moment.
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

    fn judged(&self, table: Table) -> Found {
        if table.name == self.samples_table {
            Found::Samples
        } else if table.may_insert {
            Found::Open(Arc::new(table))
        } else {
            Found::Denied(Arc::new(table))
        }
    }
}
