//! Release of entries of the log that are no longer needed.
//!
//! The order matters: the durable entries are listed first, and then the database is queried for
//! the rows that are only there. An entry is put after its append has committed, so the rows of
//! every listed entry are visible to the query, unless they are in segments or gone. Entries
//! outside the history of the database's timeline ([`crate::objects::model::timeline`]) are never
//! deleted.

use std::collections::{HashMap, HashSet};

use super::handle::ObjectLog;
use crate::objects::model::ObjectMetrics;
use crate::objects::model::record::{self, Change, Head, PartRecord};
use crate::objects::source::{LocalRows, Source};
use crate::objects::store::{RoundError, Store};

/// The number of entries deleted in one write.
const ENTRIES_AT_ONCE: usize = 1000;

/// The rows of tables that are nowhere else.
struct Local {
    /// The file of each table, by its storage id; 0 for a table that was never written to.
    files: HashMap<u32, u64>,
    /// Ranges of rows by storage id, ascending; empty for a file without such rows.
    ranges: HashMap<u64, Vec<(u64, u64)>>,
}

/// The row of a file up to which it may contain rows of an older file of the table: by table, the
/// file and the row.
pub(super) type Bounds = HashMap<u32, (u64, u64)>;

impl Local {
    fn new(rows: &[LocalRows]) -> Self {
        let mut local = Self {
            files: HashMap::new(),
            ranges: HashMap::new(),
        };
        for range in rows {
            local.files.insert(range.target, range.storage);
            let ranges = local.ranges.entry(range.storage).or_default();
            if range.first_row < range.end_row {
                ranges.push((range.first_row, range.end_row));
            }
        }
        local
    }

    /// Whether an entry may be deleted.
    fn releases(&self, head: &Head, bounds: &mut Bounds) -> bool {
        let Some(&file) = self.files.get(&head.target) else {
            // The table was dropped.
            return true;
        };
        let ranges = self.ranges.get(&file).map_or(&[][..], Vec::as_slice);
        if file == head.storage {
            return head.runs.iter().all(|&(first, rows)| {
                let after = ranges.partition_point(|range| range.1 <= first);
                ranges
                    .get(after)
                    .is_none_or(|range| range.0 >= first + rows)
            });
        }
        // The table has another file after TRUNCATE or a rewrite, in which the rows have other
        // numbers. The entry is kept until everything that the new file contained when it was first
        // seen is in segments, or gone.
        let end = ranges.last().map_or(0, |range| range.1);
        let bound = bounds.entry(head.target).or_insert((file, end));
        if bound.0 != file {
            *bound = (file, end);
        }
        file == 0 || ranges.first().is_none_or(|range| range.0 >= bound.1)
    }
}

/// Deletes entries whose rows are all in segments, or gone. Returns their number. Entries that the
/// database's timeline lacks are kept.
///
/// # Errors
/// Returns an error if the database or the store fails. The state is kept in this case.
pub async fn round<S: Source, T: Store>(
    source: &S,
    store: &T,
    log: &ObjectLog,
    metrics: &ObjectMetrics,
) -> Result<usize, RoundError> {
    let scope = source.scope().await?;
    let heads = log.heads(&scope);
    if heads.is_empty() {
        log.show();
        return Ok(0);
    }
    let history = source.history().await?;
    let (held, lost): (Vec<_>, Vec<_>) =
        heads.into_iter().partition(|(_, head)| history.holds(head));
    publish_lost(lost.len(), history.current, metrics);
    let local = Local::new(&source.local_rows().await?);
    let due: Vec<String> = log.with_bounds(|bounds| {
        let released = held
            .into_iter()
            .filter(|(_, head)| local.releases(head, bounds));
        released.map(|(name, _)| name).collect()
    });
    for names in due.chunks(ENTRIES_AT_ONCE) {
        let both = |name: &String| {
            let entry = record::entry_name(name);
            [Change::delete(name.clone()), Change::delete(entry)]
        };
        store.write(names.iter().flat_map(both).collect()).await?;
        log.forget(names);
        metrics.log.released.inc_by(names.len() as u64);
    }
    log.show();
    Ok(due.len())
}

/// Publishes how many entries are kept because the database lacks their rows, and logs when their
/// number grows.
fn publish_lost(lost: usize, timeline: u32, metrics: &ObjectMetrics) {
    let lost = lost as i64;
    if lost > metrics.log.lost_entries.get() {
        tracing::warn!(
            "{lost} requests acknowledged at level \"object\" are missing in the database since it changed to timeline {timeline}: \
             the log in the object store keeps them; \"lanes-gateway restore\" into a new database restores those whose row numbers were not assigned again"
        );
    }
    metrics.log.lost_entries.set(lost);
}

/// Deletes definitions, parts and added columns of dropped tables. Returns the number of records.
///
/// Returns an error if the database or the store fails.
pub async fn forget_tables<S: Source, T: Store>(
    source: &S,
    store: &T,
    log: &ObjectLog,
) -> Result<usize, RoundError> {
    let scope = source.scope().await?;
    let mut tables: Vec<(String, u32)> = Vec::new();
    store
        .records(&format!("table/{scope}/"), &mut |name, _| {
            tables.extend(record::table_of(name).map(|(_, target)| (name.to_owned(), target)));
        })
        .await?;
    let mut parts: Vec<(String, u32)> = Vec::new();
    store
        .records(&format!("part/{scope}/"), &mut |name, value| {
            let part = record::read::<PartRecord>(name, &value).ok();
            parts.extend(part.map(|part| (name.to_owned(), part.target)));
        })
        .await?;
    let mut added: Vec<(String, u32)> = Vec::new();
    store
        .records(&format!("added/{scope}/"), &mut |name, _| {
            added.extend(record::added_of(name).map(|(target, _)| (name.to_owned(), target)));
        })
        .await?;
    if tables.is_empty() && parts.is_empty() && added.is_empty() {
        return Ok(0);
    }
    // Entries that the database lacks may belong to tables that it also lacks.
    let history = source.history().await?;
    let lost = log.heads(&scope).into_iter();
    let kept: HashSet<u32> = lost
        .filter(|(_, head)| !history.holds(head))
        .map(|(_, head)| head.target)
        .collect();
    // This comes after the list of known tables, so that a table created meanwhile is not taken for
    // a dropped one.
    let local = Local::new(&source.local_rows().await?);
    let gone: Vec<(String, u32)> = tables
        .into_iter()
        .chain(parts)
        .chain(added)
        .filter(|(_, target)| !local.files.contains_key(target) && !kept.contains(target))
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
            columns: Vec::new(),
            timeline: 0,
            wal_place: 0,
        }
    }

    #[test]
    fn an_entry_is_released_when_none_of_its_rows_is_only_local() {
        let local = Local::new(&[
            rows(7, 1, 100, 200),
            rows(7, 1, 300, 400),
            rows(8, 2, 0, 0),
            rows(10, 0, 0, 0),
        ]);
        let mut bounds = Bounds::new();
        let mut releases = |head: Head| local.releases(&head, &mut bounds);
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
            assert_eq!(releases(head(7, 1, runs)), is_released, "{runs:?}");
        }
        assert!(releases(head(8, 2, &[(0, 5)])), "no local rows");
        assert!(releases(head(9, 4, &[(0, 5)])), "dropped");
        assert!(releases(head(10, 5, &[(0, 5)])), "truncated");
    }

    #[test]
    fn entries_of_an_older_file_are_released_when_the_initial_rows_of_the_new_one_are_offloaded() {
        let mut bounds = Bounds::new();
        let older = head(7, 1, &[(0, 5)]);
        let mut releases = |ranges: &[(u64, u64)]| {
            let ranges = ranges.iter().map(|&(from, to)| rows(7, 2, from, to));
            Local::new(&ranges.collect::<Vec<_>>()).releases(&older, &mut bounds)
        };
        assert!(!releases(&[(0, 100)]));
        assert!(!releases(&[(50, 300)]), "some are offloaded");
        assert!(!releases(&[(99, 400)]));
        assert!(releases(&[(100, 500)]), "later rows do not matter");
        let newer = Local::new(&[rows(7, 3, 0, 10)]);
        assert!(!newer.releases(&older, &mut bounds), "rewritten again");
    }
}
