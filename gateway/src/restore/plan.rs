//! The plan of a restore: the parts, and the rows of entries of the log.
//!
//! ```text
//! for each file of a table:
//!     parts, latest first: a part that overlaps a later one was merged into it, and is skipped
//!     entries, those of the latest timeline first, then by first row:
//!         of each, the rows whose numbers are in no part and no earlier entry
//! ```

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::Deserialize;

use super::added::Added;
use super::statement::is_type;
use crate::objects::model::record::{self, AddedColumn, Head, PartRecord, RegistryRecord};

/// A table as statements. See `lanes.table_definition`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Definition {
    /// The schema and name, as SQL writes them.
    pub table: String,
    /// The unquoted name of the schema.
    #[serde(default = "public")]
    pub schema: String,
    /// The owner; `None` for a table of the extension.
    pub owner: Option<String>,
    /// The names of the columns by position; `None` for a dropped column. Empty in definitions by
    /// older versions.
    #[serde(default)]
    pub columns: Vec<Option<String>>,
    /// Statements to execute before the rows.
    pub create: Vec<String>,
    /// Statements of row-level security, executed when all tables exist.
    #[serde(default)]
    pub guard: Vec<String>,
    /// Statements to execute after the rows.
    pub finish: Vec<String>,
    /// Grants, executed if the roles exist.
    pub grants: Vec<Grant>,
    /// Whether the table was a partition. It is restored as an independent table.
    #[serde(default)]
    pub is_partition: bool,
}

fn public() -> String {
    "public".to_owned()
}

/// A grant to a role.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Grant {
    /// The role; `None` for all roles.
    pub role: Option<String>,
    /// The statement.
    pub statement: String,
}

/// Rows of an entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRows {
    /// The name of the entry.
    pub name: String,
    /// The rows of its batch to skip and then to take, in order; `None` for all.
    pub slices: Option<Vec<(u64, u64)>>,
    /// The number of rows to take.
    pub rows: u64,
}

/// A table and its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePlan {
    /// The definition of the table.
    pub definition: Definition,
    /// The parts, in the order of their rows.
    pub parts: Vec<PartRecord>,
    /// The entries, in the order of their rows.
    pub entries: Vec<EntryRows>,
    /// The storage ids of the files that rows come from. There are several if the table was
    /// rewritten or truncated recently.
    pub files: BTreeSet<u64>,
    /// The columns that were added to the table while it had rows.
    pub added: Added,
}

impl TablePlan {
    /// The number of rows in parts.
    pub fn part_rows(&self) -> u64 {
        let segments = self.parts.iter().flat_map(|part| &part.segments);
        segments.map(|segment| segment.1).sum()
    }

    /// The number of rows in entries.
    pub fn entry_rows(&self) -> u64 {
        self.entries.iter().map(|entry| entry.rows).sum()
    }
}

/// What can be restored of one database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The database.
    pub scope: String,
    /// The tables, by oid.
    pub tables: Vec<TablePlan>,
    /// The current registry of series.
    pub registry: Option<RegistryRecord>,
    /// The number of entries and parts of dropped tables, which are skipped.
    pub dropped: usize,
}

/// Returns the databases that records belong to.
pub fn scopes(names: impl IntoIterator<Item = impl AsRef<str>>) -> BTreeSet<String> {
    let scope = |name: &str| {
        let mut fields = name.split('/').skip(1);
        Some(format!("{}/{}", fields.next()?, fields.next()?))
    };
    names
        .into_iter()
        .filter_map(|name| scope(name.as_ref()))
        .collect()
}

/// Plans the restore of a database from its records.
///
/// # Errors
/// Returns an error if a record cannot be read.
pub fn plan(
    scope: &str,
    tables: &[(String, Bytes)],
    added: &[(String, Bytes)],
    parts: &[(String, Bytes)],
    heads: &[(String, Bytes)],
    registry: Option<&Bytes>,
) -> Result<Plan, String> {
    let mut planning = Planning {
        tables: planned_tables(tables)?,
        files: BTreeMap::new(),
        dropped: 0,
    };
    planning.take_added(added)?;
    planning.take_parts(parts)?;
    planning.take_entries(heads)?;
    for table in planning.tables.values_mut() {
        table
            .parts
            .sort_by_key(|part| (part.storage, part.first_row));
    }
    let registry = registry
        .map(|value| record::read(&record::registry_name(scope), value))
        .transpose()?;
    Ok(Plan {
        scope: scope.to_owned(),
        tables: planning.tables.into_values().collect(),
        registry,
        dropped: planning.dropped,
    })
}

/// Returns the tables of all definitions, without rows yet.
fn planned_tables(tables: &[(String, Bytes)]) -> Result<BTreeMap<u32, TablePlan>, String> {
    let mut planned = BTreeMap::new();
    for (name, value) in tables {
        let oid = name.rsplit('/').next().and_then(|oid| oid.parse().ok());
        let oid = oid.ok_or_else(|| {
            format!("the name {name} in the object store does not contain a table")
        })?;
        let definition: Definition = record::read(name, value)?;
        definition.check()?;
        let table = TablePlan {
            definition,
            parts: Vec::new(),
            entries: Vec::new(),
            files: BTreeSet::new(),
            added: Added::new(),
        };
        planned.insert(oid, table);
    }
    Ok(planned)
}

/// A plan in the making.
struct Planning {
    /// The tables, by oid.
    tables: BTreeMap<u32, TablePlan>,
    /// The rows taken so far, by the storage id of their file.
    files: BTreeMap<u64, Rows>,
    /// The number of entries and parts of dropped tables.
    dropped: usize,
}

impl Planning {
    fn take_added(&mut self, added: &[(String, Bytes)]) -> Result<(), String> {
        for (name, value) in added {
            let Some((target, position)) = record::added_of(name) else {
                return Err(format!(
                    "the name {name} in the object store does not contain a column"
                ));
            };
            let column: AddedColumn = record::read(name, value)?;
            if !is_type(&column.sql_type) {
                return Err(format!(
                    "{name} in the object store contains an invalid type: {}",
                    column.sql_type.escape_debug()
                ));
            }
            if let Some(table) = self.tables.get_mut(&target) {
                table.added.insert(position, column);
            }
        }
        Ok(())
    }

    /// Takes the rows of parts, the latest part first.
    fn take_parts(&mut self, parts: &[(String, Bytes)]) -> Result<(), String> {
        let mut latest: Vec<PartRecord> = parts
            .iter()
            .map(|(name, value)| record::read(name, value))
            .collect::<Result<_, _>>()?;
        if let Some(wrong) = latest
            .iter()
            .flat_map(|part| part.types.iter().flatten())
            .find(|text| !is_type(text))
        {
            return Err(format!(
                "a part in the object store has a column with an invalid type: {}",
                wrong.escape_debug()
            ));
        }
        latest.sort_by_key(|part| std::cmp::Reverse((part.storage, part.origin)));
        for part in latest {
            let Some(table) = self.tables.get_mut(&part.target) else {
                self.dropped += 1;
                continue;
            };
            let rows = self.files.entry(part.storage).or_default();
            if !rows.overlaps(part.first_row, part.end_row) {
                rows.take(part.first_row, part.end_row);
                table.files.insert(part.storage);
                table.parts.push(part);
            }
        }
        Ok(())
    }

    /// Takes the rows of entries that nothing has taken before.
    fn take_entries(&mut self, heads: &[(String, Bytes)]) -> Result<(), String> {
        let mut entries: Vec<(String, Head)> = heads
            .iter()
            .map(|(name, value)| Ok((record::entry_name(name), record::read(name, value)?)))
            .collect::<Result<_, String>>()?;
        entries.sort_by_key(|(_, head)| {
            let latest = std::cmp::Reverse(head.timeline);
            (head.storage, latest, head.runs.first().copied())
        });
        for (name, head) in entries {
            let Some(table) = self.tables.get_mut(&head.target) else {
                self.dropped += 1;
                continue;
            };
            let free = self.files.entry(head.storage).or_default();
            let (mut slices, mut skip) = (Vec::new(), 0);
            for &(first, count) in &head.runs {
                let taken = free.take(first, first + count);
                slices.extend(
                    taken
                        .iter()
                        .map(|&(from, to)| (skip + from - first, to - from)),
                );
                skip += count;
            }
            let rows = slices.iter().map(|slice| slice.1).sum();
            if rows > 0 {
                let slices = (rows < skip).then_some(slices);
                table.files.insert(head.storage);
                table.entries.push(EntryRows { name, slices, rows });
            }
        }
        Ok(())
    }
}

/// The rows of a file that are taken already.
#[derive(Default)]
struct Rows {
    /// From the first row to the end of the range (exclusive), without overlap.
    ranges: BTreeMap<u64, u64>,
}

impl Rows {
    fn overlaps(&self, from: u64, to: u64) -> bool {
        let before = self.ranges.range(..to).next_back();
        before.is_some_and(|(_, &end)| end > from)
    }

    /// Takes rows. Returns those that were not taken before.
    fn take(&mut self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let mut taken = Vec::new();
        let mut at = from;
        let overlapping: Vec<(u64, u64)> = self
            .ranges
            .range(..to)
            .rev()
            .take_while(|range| *range.1 > from)
            .map(|(&first, &end)| (first, end))
            .collect();
        for &(first, end) in overlapping.iter().rev() {
            if at < first {
                taken.push((at, first));
            }
            at = at.max(end);
        }
        if at < to {
            taken.push((at, to));
        }
        self.ranges.extend(taken.iter().copied());
        taken
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
