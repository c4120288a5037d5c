//! A gateway with a database in memory, and remote write requests to send to it.

#![allow(dead_code, missing_docs, reason = "each test file uses its part")]

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lanes_gateway::app::{App, AppMetrics, AppSettings};
use lanes_gateway::config::{Settings, Sources, source};
use lanes_gateway::deliver::{Append, Health, Registered, Sink, SinkError};
use lanes_gateway::model::{
    AckLevel, ColumnKind, Digest, InsertPrivilege, Table, TableColumn, Target,
};
use lanes_gateway::series::label_set::put_label;
use lanes_gateway::series::protobuf::put_delimited;
use lanes_gateway::series::{LabelSet, SeriesCache, SeriesId};
use lanes_wire::BatchView;
use parking_lot::Mutex;

/// One stored sample: metric and labels, microseconds, bits.
pub type Stored = (String, i64, u64);

/// A database in memory.
#[derive(Default)]
pub struct Memory {
    pub is_away: AtomicBool,
    pub has_standbys: AtomicBool,
    pub registry: AtomicU64,
    pub series: Mutex<Vec<LabelSet>>,
    pub samples: Mutex<Vec<Stored>>,
    pub digests: Mutex<HashMap<Digest, AckLevel>>,
    pub register_calls: Mutex<Vec<usize>>,
    pub register_takes: Mutex<Duration>,
    pub append_calls: Mutex<Vec<(AckLevel, usize)>>,
    pub append_takes: Mutex<Duration>,
    /// By schema and name.
    pub tables: Mutex<HashMap<String, Table>>,
    pub describe_calls: AtomicU64,
    pub describe_takes: Mutex<Duration>,
    /// The number of calls of `describe` in progress, and its maximum.
    pub describing: AtomicU64,
    pub describing_max: AtomicU64,
    /// The targets of all appends.
    pub targets: Mutex<Vec<Target>>,
    /// Tables to which appends wait forever.
    pub locked: Mutex<HashSet<u32>>,
    /// Batches of events: the oid of the table, and the batch.
    pub events: Mutex<Vec<(u32, Vec<u8>)>>,
    /// INSERT: role and table.
    pub grants: Mutex<HashSet<(String, String)>>,
    pub privilege_calls: AtomicU64,
    /// The errors of the next appends to tables.
    pub event_errors: Mutex<Vec<SinkError>>,
}

impl Memory {
    fn check(&self) -> Result<(), SinkError> {
        if self.is_away.load(Ordering::Acquire) {
            Err(SinkError::Unavailable("PostgreSQL is away".to_owned()))
        } else {
            Ok(())
        }
    }

    /// Returns the values stored for a metric, in order of time.
    pub fn values(&self, metric: &str) -> Vec<f64> {
        let mut rows: Vec<(i64, f64)> = self
            .samples
            .lock()
            .iter()
            .filter(|(name, ..)| name.split('{').next() == Some(metric))
            .map(|(_, time, bits)| (*time, f64::from_bits(*bits)))
            .collect();
        rows.sort_by_key(|(time, _)| *time);
        rows.into_iter().map(|(_, value)| value).collect()
    }
}

impl Sink for Memory {
    async fn may_insert(&self, role: &str, table: &str) -> Result<InsertPrivilege, SinkError> {
        self.privilege_calls.fetch_add(1, Ordering::AcqRel);
        self.check()?;
        let table = table.replace('"', "");
        let is_samples = table == "lanes.samples";
        if !is_samples && !self.tables.lock().contains_key(&table) {
            return Ok(InsertPrivilege::NoTable);
        }
        let grants = self.grants.lock();
        Ok(match grants.iter().any(|(known, _)| known == role) {
            false => InsertPrivilege::NoRole,
            true if grants.contains(&(role.to_owned(), table)) => InsertPrivilege::Granted,
            true => InsertPrivilege::Denied,
        })
    }

    async fn register(&self, label_sets: &[&LabelSet]) -> Result<Registered, SinkError> {
        self.check()?;
        self.register_calls.lock().push(label_sets.len());
        let takes = *self.register_takes.lock();
        tokio::time::sleep(takes).await;
        let mut series = self.series.lock();
        let ids = label_sets
            .iter()
            .map(|asked| {
                let known = series.iter().position(|known| known.bytes == asked.bytes);
                let place = known.unwrap_or_else(|| {
                    series.push((*asked).clone());
                    series.len() - 1
                });
                place as SeriesId + 1
            })
            .collect();
        Ok(Registered {
            ids,
            generation: self.registry.load(Ordering::Acquire),
        })
    }

    async fn look_up(&self, label_sets: &[&LabelSet]) -> Result<Registered, SinkError> {
        self.check()?;
        let series = self.series.lock();
        let id = |asked: &&LabelSet| {
            let place = series.iter().position(|known| known.bytes == asked.bytes);
            place.map_or(0, |place| place as SeriesId + 1)
        };
        Ok(Registered {
            ids: label_sets.iter().map(id).collect(),
            generation: self.registry.load(Ordering::Acquire),
        })
    }

    async fn append(&self, append: Append<'_>) -> Result<(), SinkError> {
        self.targets.lock().push(append.target);
        if let Target::Table { oid, .. } = append.target
            && self.locked.lock().contains(&oid)
        {
            std::future::pending().await
        }
        let takes = *self.append_takes.lock();
        tokio::time::sleep(takes).await;
        self.check()?;
        let view = BatchView::verify(append.batch).expect("batches are legal");
        if let Target::Table { is_once, .. } = append.target {
            assert_eq!(is_once, !append.digests.is_empty());
            if let Some(error) = self.event_errors.lock().pop() {
                return Err(error);
            }
        }
        let mut digests = self.digests.lock();
        let applied: Vec<usize> = (0..append.digests.len())
            .filter(|place| digests.contains_key(&append.digests[*place]))
            .collect();
        if !applied.is_empty() {
            return Err(SinkError::Duplicates {
                applied,
                reused: Vec::new(),
            });
        }
        digests.extend(append.digests.iter().map(|digest| (*digest, append.level)));
        self.append_calls.lock().push((append.level, view.rows()));
        if let Target::Table { oid, .. } = append.target {
            self.events.lock().push((oid, append.batch.to_vec()));
            return Ok(());
        }
        let times = view.column("ts").unwrap().values().arrays::<8>().unwrap();
        let ids = view
            .column("series")
            .unwrap()
            .values()
            .arrays::<4>()
            .unwrap();
        let values = view
            .column("value")
            .unwrap()
            .values()
            .arrays::<8>()
            .unwrap();
        let series = self.series.lock();
        for row in 0..view.rows() {
            let set = &series[SeriesId::from_le_bytes(ids[row]) as usize - 1];
            let name = format!("{}{}", set.metric, set.labels_json);
            self.samples.lock().push((
                name,
                i64::from_le_bytes(times[row]),
                u64::from_le_bytes(values[row]),
            ));
        }
        Ok(())
    }

    async fn describe(&self, schema: &str, table: &str) -> Result<Option<Table>, SinkError> {
        self.check()?;
        self.describe_calls.fetch_add(1, Ordering::AcqRel);
        let now = self.describing.fetch_add(1, Ordering::AcqRel) + 1;
        self.describing_max.fetch_max(now, Ordering::AcqRel);
        let takes = *self.describe_takes.lock();
        tokio::time::sleep(takes).await;
        self.describing.fetch_sub(1, Ordering::AcqRel);
        Ok(self
            .tables
            .lock()
            .get(&format!("{schema}.{table}"))
            .cloned())
    }

    async fn create(
        &self,
        schema: &str,
        table: &str,
        columns: &[(&str, ColumnKind)],
        is_unlogged: bool,
    ) -> Result<(), SinkError> {
        self.check()?;
        let columns = columns
            .iter()
            .map(|(name, kind)| TableColumn {
                name: (*name).to_owned(),
                sql_type: format!("{kind:?}").to_lowercase(),
                kind: *kind,
                is_not_null: false,
                has_default: false,
                is_generated: false,
            })
            .collect();
        let created = Table {
            oid: 100 + u32::from(is_unlogged),
            name: format!("{schema}.{table}"),
            columns,
            may_insert: true,
        };
        let mut tables = self.tables.lock();
        tables.entry(created.name.clone()).or_insert(created);
        Ok(())
    }

    async fn confirm(&self, _: AckLevel) -> Result<(), SinkError> {
        self.check()
    }

    async fn health(&self) -> Result<Health, SinkError> {
        self.check()?;
        let has_standbys = self.has_standbys.load(Ordering::Acquire);
        Ok(Health {
            missing_standbys: 0,
            has_standbys,
            series: self.series.lock().len() as i64,
        })
    }

    async fn forget(&self, _: Duration) -> Result<u64, SinkError> {
        Ok(0)
    }
}

/// Returns a table with one nullable column `n` of type bigint.
pub fn table(oid: u32, name: &str) -> Table {
    Table {
        oid,
        name: name.to_owned(),
        columns: vec![TableColumn::nullable("n", "int8")],
        may_insert: true,
    }
}

/// Returns settings from flags, as the binary reads them, with self-scrape off.
pub fn settings(flags: &[&str]) -> AppSettings {
    let all = [
        "lanes-gateway",
        "--self-scrape-interval",
        "0",
        "--listen-workers",
        "1",
    ];
    let matches = source::command()
        .try_get_matches_from(all.iter().chain(flags))
        .expect("flags exist");
    match Settings::read(&Sources::gather(&matches).expect("no file")) {
        Ok(settings) => settings.app,
        Err(error) => panic!("{error}"),
    }
}

/// Starts a gateway. Returns it and its database.
pub fn start(flags: &[&str]) -> (App<Memory>, Arc<Memory>) {
    let database = Arc::new(Memory::default());
    (start_on(flags, &database), database)
}

/// Starts a gateway on a database.
pub fn start_on(flags: &[&str], database: &Arc<Memory>) -> App<Memory> {
    let cache = Arc::new(SeriesCache::new(1 << 20, 1));
    App::start(
        settings(flags),
        Arc::clone(database),
        cache,
        AppMetrics::default(),
    )
}

/// Returns one series: labels, then samples of (value, milliseconds).
pub fn series(labels: &[(&str, &str)], samples: &[(f64, i64)]) -> Vec<u8> {
    let mut message = Vec::new();
    for (name, value) in labels {
        put_label(&mut message, 1, name, value);
    }
    for (value, milliseconds) in samples {
        let mut sample = vec![0x09];
        sample.extend_from_slice(&value.to_bits().to_le_bytes());
        sample.push(0x10);
        lanes_gateway::series::protobuf::put_varint(&mut sample, *milliseconds as u64);
        put_delimited(&mut message, 2, &sample);
    }
    message
}

/// Returns a compressed request body with these series.
pub fn body(series: &[Vec<u8>]) -> Vec<u8> {
    let mut request = Vec::new();
    for message in series {
        put_delimited(&mut request, 1, message);
    }
    compress(&request)
}

/// Compresses with snappy's block format.
pub fn compress(bytes: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(bytes).unwrap()
}

/// Returns a body with one sample of one series without labels.
pub fn simple(metric: &str, value: f64) -> Vec<u8> {
    body(&[series(
        &[("__name__", metric)],
        &[(value, 1_700_000_000_000)],
    )])
}
