//! Offloading of due parts: put, made durable and committed, one part after the other.
//!
//! Before the last segment of a part, its record is put, and before that the definition of its
//! table if it has changed. A database can be restored from these.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::definitions;
use super::log::ObjectLog;
use super::model::ObjectMetrics;
use super::model::record::{self, Change, PartRecord};
use super::owner::Owner;
use super::source::{DueSegment, Source, SourceError};
use super::store::{RoundError, Store};
use crate::clock::{self, Instant};

/// The number of segments requested at once.
const SEGMENTS_WANTED: i32 = 256;

/// A part: the oid of its table, and its number there.
pub type Part = (u32, i64);

/// The result of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offloaded {
    /// The number of parts that became remote.
    pub parts: usize,
    /// The number of parts that were no longer live. Their objects are deleted.
    pub gone: usize,
    /// The number of parts left for later because the database refused a call.
    pub failed: usize,
}

/// Offloading, and its state from round to round.
pub struct Offload<S, T> {
    /// The database.
    pub source: Arc<S>,
    /// The store that segments are put into.
    pub store: Arc<T>,
    /// Metrics of object storage.
    pub metrics: Arc<ObjectMetrics>,
    /// When the parts that are still due were first listed.
    first_seen: HashMap<Part, Instant>,
    /// What the store contains besides segments.
    log: Arc<ObjectLog>,
    /// The owner of the store.
    pub owner: Owner,
    /// Tables that could not be restored, which is logged once.
    unsupported: HashSet<u32>,
}

impl<S: Source, T: Store> Offload<S, T> {
    /// Creates the initial state.
    pub fn new(
        source: Arc<S>,
        store: Arc<T>,
        log: Arc<ObjectLog>,
        owner: Owner,
        metrics: Arc<ObjectMetrics>,
    ) -> Self {
        Self {
            source,
            store,
            metrics,
            first_seen: HashMap::new(),
            log,
            owner,
            unsupported: HashSet::new(),
        }
    }

    /// Offloads what is due now, as far as one list contains it.
    ///
    /// # Errors
    /// Returns an error if the session or the store is lost, or if the store refuses. What was
    /// committed before remains committed.
    pub async fn round(&mut self) -> Result<Offloaded, RoundError> {
        let due = self.source.due(SEGMENTS_WANTED).await?;
        let parts = parts(due);
        let now = clock::now();
        let seen = std::mem::take(&mut self.first_seen);
        self.first_seen = parts
            .iter()
            .map(|segments| {
                let part = part_of(segments);
                (part, seen.get(&part).copied().unwrap_or(now))
            })
            .collect();
        let mut waiting_rows: i64 = parts.iter().flatten().map(|segment| segment.rows).sum();
        self.show_lag(waiting_rows);
        let mut done = Offloaded::default();
        for segments in parts {
            match self.offload(&segments).await {
                Ok(true) => done.parts += 1,
                Ok(false) => done.gone += 1,
                Err(RoundError::Source(SourceError::Failed(reason))) => {
                    let (target, part) = part_of(&segments);
                    tracing::warn!(target, part, "could not offload a part: {reason}");
                    self.metrics.retried("offload");
                    done.failed += 1;
                    continue;
                }
                Err(error) => return Err(error),
            }
            self.first_seen.remove(&part_of(&segments));
            waiting_rows -= segments.iter().map(|segment| segment.rows).sum::<i64>();
            self.show_lag(waiting_rows);
        }
        Ok(done)
    }

    /// Offloads a part. Returns false if it was no longer live when all of it was durable.
    async fn offload(&mut self, segments: &[DueSegment]) -> Result<bool, RoundError> {
        for segment in segments {
            let objects = &self.metrics;
            let image = self.source.image(segment).await?;
            let bytes = image.len() as u64;
            self.store.put(&segment.key, image).await?;
            objects.offload.puts.inc();
            objects.offload.put_bytes.inc_by(bytes);
        }
        let (target, part) = part_of(segments);
        self.record(segments).await?;
        self.store.durable().await?;
        let is_remote = self.source.commit(target, part).await?;
        let objects = &self.metrics;
        if is_remote {
            objects.offload.parts.inc();
            let rows: i64 = segments.iter().map(|segment| segment.rows).sum();
            objects
                .offload
                .part_rows
                .inc_by(rows.try_into().unwrap_or(0));
            return Ok(true);
        }
        self.store.write(unrecord(segments)).await?;
        let keys: Vec<String> = segments.iter().map(|segment| segment.key.clone()).collect();
        self.store.delete(&keys).await?;
        objects.orphans.inc_by(keys.len() as u64);
        Ok(false)
    }

    /// Writes what a restore needs besides the segments of a part.
    async fn record(&mut self, segments: &[DueSegment]) -> Result<(), RoundError> {
        let (target, part) = part_of(segments);
        let rows = match self.source.part_rows(target, part).await {
            // The extension is older than the gateway, and ALTER EXTENSION lanes UPDATE is due. It
            // does not support level `object`.
            Err(SourceError::Unsupported(reason)) => {
                if self.unsupported.insert(target) {
                    tracing::warn!(
                        target,
                        "this table could not be restored from object storage: {reason}"
                    );
                }
                return Ok(());
            }
            rows => rows?,
        };
        let (Some(rows), Some(name)) = (
            rows,
            segments
                .first()
                .and_then(|segment| record::part_name_of(&segment.key)),
        ) else {
            // The part is no longer live, as the commit will show.
            return Ok(());
        };
        let record = PartRecord {
            target,
            storage: rows.storage,
            origin: part as u64,
            first_row: rows.first_row,
            end_row: rows.end_row,
            segments: segments
                .iter()
                .map(|segment| (segment.key.clone(), segment.rows as u64))
                .collect(),
            types: rows.types,
        };
        let (source, store) = (self.source.as_ref(), self.store.as_ref());
        definitions::put(source, store, &self.log, target).await?;
        // An heir must have what is committed by now.
        self.owner.wal_place = rows.wal_place;
        let changes = vec![Change::document(name, &record), self.owner.change()];
        self.store.write(changes).await?;
        Ok(())
    }

    fn show_lag(&self, rows: i64) {
        let oldest = self.first_seen.values().min().copied();
        self.metrics.offload.set_lag(oldest, rows);
    }
}

impl<S, T> Drop for Offload<S, T> {
    fn drop(&mut self) {
        self.metrics.offload.set_lag(None, 0);
    }
}

/// Returns the deletions of the records of these segments' parts.
fn unrecord(segments: &[DueSegment]) -> Vec<Change> {
    let first = segments.first();
    let name = first.and_then(|segment| record::part_name_of(&segment.key));
    name.map(Change::delete).into_iter().collect()
}

fn part_of(segments: &[DueSegment]) -> Part {
    segments
        .first()
        .map_or((0, 0), |segment| (segment.target, segment.part))
}

/// Groups segments by part, in the order in which parts first appear.
fn parts(due: Vec<DueSegment>) -> Vec<Vec<DueSegment>> {
    let mut places: HashMap<Part, usize> = HashMap::new();
    let mut parts: Vec<Vec<DueSegment>> = Vec::new();
    for segment in due {
        let place = *places
            .entry((segment.target, segment.part))
            .or_insert(parts.len());
        match parts.get_mut(place) {
            Some(part) => part.push(segment),
            None => parts.push(vec![segment]),
        }
    }
    parts
}
