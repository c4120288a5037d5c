//! The writer of the log. In the gateway that has the store open, it writes the entries of all
//! sinks; those that wait go into one write.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};
use tokio::time::sleep;

use super::handle::{Job, LogError, ObjectLog};
use crate::objects::model::record::{self, Change, Head, RegistryRecord};
use crate::objects::model::{ObjectMetrics, Pauses};
use crate::objects::store::{Store, StoreError};

/// The maximum bytes of one write, unless a single entry is larger.
const WRITE_BYTES_MAX: usize = 16 << 20;

/// Serves the log of one gateway, term after term.
pub struct LogWriter {
    log: Arc<ObjectLog>,
    jobs: Mutex<mpsc::Receiver<Job>>,
    metrics: Arc<ObjectMetrics>,
}

/// Keeps the log open until it is dropped.
struct Open<'a>(&'a ObjectLog);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl LogWriter {
    /// Creates the log of a gateway, which is closed at first.
    pub fn new(metrics: Arc<ObjectMetrics>) -> Self {
        let (log, jobs) = ObjectLog::new(Arc::clone(&metrics));
        Self {
            log,
            jobs: Mutex::new(jobs),
            metrics,
        }
    }

    /// The log, as sinks see it.
    pub fn log(&self) -> &Arc<ObjectLog> {
        &self.log
    }

    /// Serves until the store is lost. Returns why.
    pub async fn serve<T: Store>(&self, store: &T, pauses: Pauses) -> StoreError {
        while let Err(error) = self.load(store).await {
            if matches!(error, StoreError::Fenced | StoreError::Closed(_)) {
                return error;
            }
            tracing::warn!("could not read the log in the object store: {error}");
            self.metrics.retried("log");
            sleep(pauses.error).await;
        }
        let _open = Open(&self.log);
        let mut jobs = self.jobs.lock().await;
        loop {
            let Some(first) = jobs.recv().await else {
                return StoreError::Closed("all sinks have ended".to_owned());
            };
            let mut together = vec![first];
            let mut bytes = bytes_of(&together[0]);
            while bytes < WRITE_BYTES_MAX
                && let Ok(job) = jobs.try_recv()
            {
                bytes += bytes_of(&job);
                together.push(job);
            }
            let changes = together
                .iter_mut()
                .flat_map(|job| std::mem::take(&mut job.put.changes))
                .collect();
            let written = async {
                store.write(changes).await?;
                store.durable().await
            };
            match written.await {
                Ok(()) => {
                    let objects = &self.metrics;
                    objects.log.puts.inc_by(together.len() as u64);
                    objects.log.put_bytes.inc_by(bytes as u64);
                    for job in together {
                        self.log.learn(job.put);
                        // A sink that has ended puts the entry again when the request is repeated.
                        let _ = job.reply.send(Ok(()));
                    }
                }
                Err(error) => {
                    self.metrics.retried("log");
                    for job in together {
                        let _ = job.reply.send(Err(LogError::Refused(error.to_string())));
                    }
                    if matches!(error, StoreError::Fenced | StoreError::Closed(_)) {
                        return error;
                    }
                }
            }
        }
    }

    /// Reads what the store contains.
    async fn load<T: Store>(&self, store: &T) -> Result<(), StoreError> {
        let mut heads: BTreeMap<String, Arc<Head>> = BTreeMap::new();
        let mut damaged = Vec::new();
        store
            .records(
                "head/",
                &mut |name, value| match record::read(name, &value) {
                    Ok(head) => drop(heads.insert(name.to_owned(), Arc::new(head))),
                    Err(error) => damaged.push(error),
                },
            )
            .await?;
        let mut registries: HashMap<String, RegistryRecord> = HashMap::new();
        store
            .records("registry/", &mut |name, value| {
                // A registry that cannot be read is written again with the next series.
                if let (Some((_, scope)), Ok(registry)) =
                    (name.split_once('/'), record::read(name, &value))
                {
                    registries.insert(scope.to_owned(), registry);
                }
            })
            .await?;
        let mut tables: Vec<(String, u32)> = Vec::new();
        store
            .records("table/", &mut |name, _| {
                tables.extend(record::table_of(name));
            })
            .await?;
        for error in damaged {
            tracing::warn!("an entry of the log will never be released: {error}");
        }
        self.log.open(heads, registries, tables);
        self.log.show();
        Ok(())
    }
}

fn bytes_of(job: &Job) -> usize {
    job.put.changes.iter().map(Change::bytes).sum()
}
