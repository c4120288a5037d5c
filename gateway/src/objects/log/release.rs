//! Entries of the log that are no longer needed, deleted.
//!
//! The order matters: first what is durable is noted, then the database is asked which rows are only there. An entry is put after its
//! append has committed, so the rows of whatever was noted are there to be seen, unless they are in segments or gone.

use std::collections::{HashMap, HashSet};

use super::handle::ObjectLog;
use crate::objects::record::{self, Change, Head, PartRecord};
use crate::objects::source::{LocalRows, Source};
use crate::objects::store::{RoundError, Store};
use crate::observe::Metrics;

/// Deleted in one write.
const ENTRIES_AT_ONCE: usize = 1000;

/// What tables have that is nowhere else.
struct Local {
    /// Tables that there are.
    targets: HashSet<u32>,
    /// Ranges of rows by storage id, ascending; empty for a table that has none.
    ranges: HashMap<u64, Vec<(u64, u64)>>,
}

impl Local {
    fn new(rows: &[LocalRows]) -> Self {
        let mut local = Self {
            targets: HashSet::new(),
            ranges: HashMap::new(),
        };
        for range in rows {
            local.targets.insert(range.target);
            local
                .ranges
                .entry(range.storage)
                .or_default()
                .push((range.first_row, range.end_row));
        }
        local
    }

    /// Whether an entry may go.
    fn releases(&self, head: &Head) -> bool {
        match self.ranges.get(&head.storage) {
            Some(ranges) => head.runs.iter().all(|&(first, rows)| {
                let after = ranges.partition_point(|range| range.1 <= first);
                ranges
                    .get(after)
                    .is_none_or(|range| range.0 >= first + rows)
            }),
            // Of another file of its table it is kept: the rows may be in the new one, under other numbers.
            None => !self.targets.contains(&head.target),
        }
    }
}

/// Deletes entries all rows of which are in segments, or gone; returns how many.
///
/// # Errors
/// The database or the store fails; nothing is forgotten.
pub async fn round<S: Source, T: Store>(
    source: &S,
    store: &T,
    log: &ObjectLog,
    metrics: &Metrics,
) -> Result<usize, RoundError> {
    let scope = source.scope().await?;
    let heads = log.heads(&scope);
    if heads.is_empty() {
        log.show();
        return Ok(0);
    }
    let local = Local::new(&source.local_rows().await?);
    let due: Vec<String> = heads
        .into_iter()
        .filter(|(_, head)| local.releases(head))
        .map(|(name, _)| name)
        .collect();
    for names in due.chunks(ENTRIES_AT_ONCE) {
        let both = |name: &String| {
            let entry = record::entry_name(name);
            [Change::delete(name.clone()), Change::delete(entry)]
        };
        store.write(names.iter().flat_map(both).collect()).await?;
        log.forget(names);
        metrics.objects.log_released.inc_by(names.len() as u64);
    }
    log.show();
    Ok(due.len())
}

/// Deletes definitions and parts of tables that were dropped; returns how many records.
///
/// # Errors
/// The database or the store fails.
pub async fn forget_tables<S: Source, T: Store>(
    source: &S,
    store: &T,
    log: &ObjectLog,
) -> Result<usize, RoundError> {
    let scope = source.scope().await?;
    let mut tables: Vec<(String, u32)> = Vec::new();
    store
        .records(&format!("table/{scope}/"), &mut |name, _| {
            let oid = name.rsplit_once('/').and_then(|(_, oid)| oid.parse().ok());
            tables.extend(oid.map(|oid| (name.to_owned(), oid)));
        })
        .await?;
    let mut parts: Vec<(String, u32)> = Vec::new();
    store
        .records(&format!("part/{scope}/"), &mut |name, value| {
            let part = record::read::<PartRecord>(name, &value).ok();
            parts.extend(part.map(|part| (name.to_owned(), part.target)));
        })
        .await?;
    if tables.is_empty() && parts.is_empty() {
        return Ok(0);
    }
    // After what there was: a table that is made meanwhile is not taken for one that is gone.
    let local = Local::new(&source.local_rows().await?);
    let gone: Vec<(String, u32)> = tables
        .into_iter()
        .chain(parts)
        .filter(|(_, target)| !local.targets.contains(target))
        .collect();
    for records in gone.chunks(ENTRIES_AT_ONCE) {
        let changes = records.iter().map(|(name, _)| Change::delete(name.clone()));
        store.write(changes.collect()).await?;
        for (_, target) in records {
            log.forget_table(&scope, *target);
        }
    }
    Ok(gone.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(target: u32, storage: u64, first_row: u64, end_row: u64) -> LocalRows {
        LocalRows {
            target,
            storage,
            first_row,
            end_row,
        }
    }

    fn head(target: u32, storage: u64, runs: &[(u64, u64)]) -> Head {
        Head {
            target,
            storage,
            runs: runs.to_vec(),
            bytes: 1,
            logged_ms: 0,
        }
    }

    #[test]
    fn an_entry_goes_when_none_of_its_rows_is_here_only() {
        let local = Local::new(&[rows(7, 1, 100, 200), rows(7, 1, 300, 400), rows(8, 2, 0, 0)]);
        for (runs, is_released) in [
            (&[(0, 100)][..], true),
            (&[(0, 101)], false),
            (&[(199, 1)], false),
            (&[(200, 100)], true),
            (&[(250, 60)], false),
            (&[(400, 5)], true),
            (&[(0, 50), (350, 1)], false),
            (&[(0, 50), (200, 10)], true),
        ] {
            assert_eq!(local.releases(&head(7, 1, runs)), is_released, "{runs:?}");
        }
        assert!(
            local.releases(&head(8, 2, &[(0, 5)])),
            "a table without local rows"
        );
        assert!(
            !local.releases(&head(8, 3, &[(0, 5)])),
            "another file of a table"
        );
        assert!(
            local.releases(&head(9, 4, &[(0, 5)])),
            "a table that was dropped"
        );
    }
}
