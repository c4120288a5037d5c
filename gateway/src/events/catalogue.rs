//! Tables by name, as PostgreSQL described them a moment ago.
//!
//! A description older than [`FRESH`] is still used, and asked for again beside the requests; older than [`STALE`] it is asked for first.
//! A batch that does not fit is held against a description made after it arrived before it is refused, and a table that PostgreSQL finds
//! changed is forgotten. So a changed table is seen at once by whom it concerns, and nobody else waits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lanes_wire::ColumnType;
use parking_lot::Mutex;

use super::table::Table;
use crate::batch::SeriesCache;
use crate::clock::{self, Instant};
use crate::deliver::{Sink, SinkError};

const FRESH: Duration = Duration::from_secs(5);
const STALE: Duration = Duration::from_secs(60);
/// Names remembered; past them all are forgotten.
const TABLES_MAX: usize = 10_000;

/// The tables of one database.
pub struct Catalogue<S> {
    sink: Arc<S>,
    /// Knows the registry generation: with the database all its tables change.
    cache: Arc<SeriesCache>,
    tables: Mutex<HashMap<String, Entry>>,
    /// One question at a time: whoever waits finds the answer when its turn comes.
    asking: tokio::sync::Mutex<()>,
    /// And one beside them for descriptions that age, so that requests do not wait behind those, nor sessions grow in number.
    refreshing: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Entry {
    table: Arc<Table>,
    described_at: Instant,
    generation: u64,
    is_being_asked: bool,
}

impl<S: Sink> Catalogue<S> {
    /// Knows nothing yet.
    pub fn new(sink: Arc<S>, cache: Arc<SeriesCache>) -> Self {
        Self {
            sink,
            cache,
            tables: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
        }
    }

    /// The registry generation: tables found from now on are of it, or of a later one.
    pub fn generation(&self) -> u64 {
        self.cache.generation()
    }

    /// The table of this schema and name, described after `not_before`; `None` if there is none.
    ///
    /// # Errors
    /// PostgreSQL cannot be asked.
    pub async fn find(
        self: &Arc<Self>,
        schema: &str,
        name: &str,
        not_before: Option<Instant>,
    ) -> Result<Option<Arc<Table>>, SinkError> {
        let key = format!("{schema}.{name}");
        let now = clock::now();
        if let Some(known) = self.known(&key, not_before, now) {
            return Ok(Some(known));
        }
        let _turn = self.asking.lock().await;
        if let Some(known) = self.known(&key, not_before.or(Some(now)), now) {
            return Ok(Some(known));
        }
        self.ask(schema, name, key).await
    }

    /// Creates a table unless there is one.
    ///
    /// # Errors
    /// PostgreSQL cannot be asked, or the gateway's role may not create it.
    pub async fn create(
        &self,
        schema: &str,
        name: &str,
        columns: &[(&str, ColumnType)],
        is_unlogged: bool,
    ) -> Result<(), SinkError> {
        let _turn = self.asking.lock().await;
        self.sink.create(schema, name, columns, is_unlogged).await
    }

    /// A description good enough; one that ages is asked for again by a task of its own.
    fn known(
        self: &Arc<Self>,
        key: &str,
        not_before: Option<Instant>,
        now: Instant,
    ) -> Option<Arc<Table>> {
        let mut tables = self.tables.lock();
        let entry = tables.get_mut(key)?;
        let age = now.saturating_duration_since(entry.described_at);
        if entry.generation != self.cache.generation() {
            tables.clear();
            return None;
        }
        if age > STALE || not_before.is_some_and(|instant| entry.described_at <= instant) {
            return None;
        }
        if age > FRESH && !entry.is_being_asked {
            entry.is_being_asked = true;
            let (catalogue, key) = (Arc::clone(self), key.to_owned());
            tokio::spawn(async move {
                let _turn = catalogue.refreshing.lock().await;
                if let Some((schema, name)) = key.split_once('.') {
                    // An error is noted by the sink; the next request asks again.
                    if catalogue.ask(schema, name, key.clone()).await.is_err() {
                        catalogue.tables.lock().remove(&key);
                    }
                }
            });
        }
        Some(Arc::clone(&entry.table))
    }

    async fn ask(
        &self,
        schema: &str,
        name: &str,
        key: String,
    ) -> Result<Option<Arc<Table>>, SinkError> {
        let (described_at, generation) = (clock::now(), self.cache.generation());
        let table = self.sink.describe(schema, name).await?.map(Arc::new);
        let mut tables = self.tables.lock();
        match &table {
            // A privilege that is missing is granted soon, and looked for by whoever comes next.
            Some(table) if table.may_insert => {
                if tables.len() >= TABLES_MAX {
                    tables.clear();
                }
                let table = Arc::clone(table);
                let entry = Entry {
                    table,
                    described_at,
                    generation,
                    is_being_asked: false,
                };
                tables.insert(key, entry);
            }
            _ => drop(tables.remove(&key)),
        }
        Ok(table)
    }
}
