//! The plan of a restore: the parts, and the rows of entries of the log.
//!
//! ```text
//! for each file of a table:
//!     parts, latest first: a part that overlaps a later one was merged into it, and is skipped
//!     entries, those of the latest timeline first, then by first row: of each, the rows whose numbers are in no part
//!     and no earlier entry
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
    let mut planned: BTreeMap<u32, TablePlan> = BTreeMap::new();
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
    for (name, value) in added {
        let Some((target, place)) = record::added_of(name) else {
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
        if let Some(table) = planned.get_mut(&target) {
            table.added.insert(place, column);
        }
    }
    let mut dropped = 0;
    let mut files: BTreeMap<u64, Rows> = BTreeMap::new();
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
        let Some(table) = planned.get_mut(&part.target) else {
            dropped += 1;
            continue;
        };
        let rows = files.entry(part.storage).or_default();
        if !rows.overlaps(part.first_row, part.end_row) {
            rows.take(part.first_row, part.end_row);
            table.files.insert(part.storage);
            table.parts.push(part);
        }
    }
    let mut entries: Vec<(String, Head)> = heads
        .iter()
        .map(|(name, value)| Ok((record::entry_name(name), record::read(name, value)?)))
        .collect::<Result<_, String>>()?;
    entries.sort_by_key(|(_, head)| {
        let latest = std::cmp::Reverse(head.timeline);
        (head.storage, latest, head.runs.first().copied())
    });
    for (name, head) in entries {
        let Some(table) = planned.get_mut(&head.target) else {
            dropped += 1;
            continue;
        };
        let free = files.entry(head.storage).or_default();
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
    for table in planned.values_mut() {
        table
            .parts
            .sort_by_key(|part| (part.storage, part.first_row));
    }
    let registry = registry
        .map(|value| record::read(&record::registry_name(scope), value))
        .transpose()?;
    Ok(Plan {
        scope: scope.to_owned(),
        tables: planned.into_values().collect(),
        registry,
        dropped,
    })
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
mod tests {
    use super::*;

    fn table(oid: u32) -> (String, Bytes) {
        let json = r#"{"table": "public.t", "owner": "me", "create": [], "finish": [], "grants": [], "later": 1}"#;
        (
            record::table_name("7/5", oid),
            Bytes::from_static(json.as_bytes()),
        )
    }

    fn part(origin: u64, first_row: u64, end_row: u64) -> (String, Bytes) {
        let part = PartRecord {
            target: 9,
            storage: 1,
            origin,
            first_row,
            end_row,
            segments: vec![(format!("7/5/1/{origin}/{first_row}"), end_row - first_row)],
            types: Vec::new(),
        };
        let json = serde_json::to_vec(&part).unwrap();
        (format!("part/7/5/1/{origin}"), json.into())
    }

    fn head(storage: u64, runs: &[(u64, u64)]) -> (String, Bytes) {
        head_on(1, storage, runs)
    }

    fn head_on(timeline: u32, storage: u64, runs: &[(u64, u64)]) -> (String, Bytes) {
        let head = Head {
            target: 9,
            storage,
            runs: runs.to_vec(),
            bytes: 1,
            logged_ms: 0,
            columns: Vec::new(),
            timeline,
            wal_place: 1,
        };
        let json = serde_json::to_vec(&head).unwrap();
        (
            record::head_name("7/5", storage, runs[0].0, timeline),
            json.into(),
        )
    }

    /// The number of rows of an entry, and their slices.
    type Taken = (u64, Option<Vec<(u64, u64)>>);

    fn entries(plan: &Plan) -> Vec<Taken> {
        let entries = plan.tables[0].entries.iter();
        entries
            .map(|entry| (entry.rows, entry.slices.clone()))
            .collect()
    }

    #[test]
    fn each_row_is_restored_once() {
        let parts = [part(3, 0, 100), part(5, 100, 200)];
        let heads = [
            head(1, &[(90, 10)]),
            head(1, &[(195, 5), (200, 10)]),
            head(1, &[(203, 4)]),
            head(1, &[(210, 3)]),
            head(2, &[(0, 50)]),
        ];
        let plan = plan("7/5", &[table(9)], &[], &parts, &heads, None).unwrap();
        assert_eq!(plan.tables[0].part_rows(), 200);
        assert_eq!(
            entries(&plan),
            [(10, Some(vec![(5, 10)])), (3, None), (50, None),]
        );
    }

    #[test]
    fn merged_parts_are_skipped() {
        let parts = [
            part(3, 0, 100),
            part(4, 100, 200),
            part(7, 50, 250),
            part(6, 300, 400),
        ];
        let plan = plan("7/5", &[table(9)], &[], &parts, &[], None).unwrap();
        let origins: Vec<u64> = plan.tables[0]
            .parts
            .iter()
            .map(|part| part.origin)
            .collect();
        assert_eq!(origins, [7, 6]);
    }

    #[test]
    fn rows_of_a_request_that_was_logged_again_are_cut_out() {
        let heads = [head(1, &[(0, 10)]), head(1, &[(2, 3)]), head(1, &[(8, 4)])];
        let plan = plan("7/5", &[table(9)], &[], &[], &heads, None).unwrap();
        assert_eq!(entries(&plan), [(10, None), (2, Some(vec![(2, 2)]))]);
    }

    #[test]
    fn the_latest_timeline_precedes_earlier_ones() {
        let heads = [
            head_on(1, 1, &[(0, 10)]),
            head_on(1, 1, &[(10, 10)]),
            head_on(2, 1, &[(5, 10)]),
        ];
        let plan = plan("7/5", &[table(9)], &[], &[], &heads, None).unwrap();
        let taken = [(10, None), (5, Some(vec![(0, 5)])), (5, Some(vec![(5, 5)]))];
        assert_eq!(entries(&plan), taken);
    }

    #[test]
    fn records_of_dropped_tables_are_counted_and_damaged_ones_are_named() {
        let gone = plan(
            "7/5",
            &[],
            &[],
            &[part(3, 0, 9)],
            &[head(1, &[(0, 1)])],
            None,
        )
        .unwrap();
        assert_eq!((gone.tables.len(), gone.dropped), (0, 2));
        let damaged = (record::table_name("7/5", 9), Bytes::from_static(b"{"));
        let error = plan("7/5", &[damaged], &[], &[], &[], None).unwrap_err();
        assert!(error.contains("table/7/5/9"), "{error}");
    }

    #[test]
    fn a_forged_definition_ends_the_restore() {
        for (json, expected) in [
            (
                r#"{"table": "public.t", "create": ["COPY public.t FROM PROGRAM 'id'"], "finish": [], "grants": []}"#,
                "COPY public.t",
            ),
            (
                r#"{"table": "public.t", "create": [], "finish": [], "grants": [{"role": null, "statement": "GRANT postgres TO public"}]}"#,
                "GRANT postgres",
            ),
            (
                r#"{"table": "public.t; DROP TABLE u", "create": [], "finish": [], "grants": []}"#,
                "DROP TABLE u",
            ),
        ] {
            let forged = (
                record::table_name("7/5", 9),
                Bytes::from_static(json.as_bytes()),
            );
            let error = plan("7/5", &[forged], &[], &[], &[], None).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_forged_type_of_a_part_ends_the_restore() {
        let (name, value) = part(3, 0, 9);
        let mut forged: PartRecord = serde_json::from_slice(&value).unwrap();
        forged.types = vec![Some("int); DROP TABLE t".to_owned())];
        let forged = serde_json::to_vec(&forged).unwrap().into();
        let error = plan("7/5", &[table(9)], &[], &[(name, forged)], &[], None).unwrap_err();
        assert!(error.contains("DROP TABLE t"), "{error}");
    }

    #[test]
    fn a_forged_type_of_an_added_column_ends_the_restore() {
        let planned = |sql_type: &str| {
            let json = format!(r#"{{"type": "{sql_type}", "value": "1"}}"#);
            let added = (record::added_name("7/5", 9, 2), json.into());
            plan("7/5", &[table(9)], &[added], &[], &[], None)
        };
        let error = planned("int); DROP TABLE t").unwrap_err();
        assert!(error.contains("DROP TABLE t"), "{error}");
        let added = &planned("int").unwrap().tables[0].added;
        assert_eq!(added.keys().copied().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn databases_are_distinguished() {
        let names = ["table/7/5/9", "head/8/5/00/1", "series/7/5/e/1"];
        assert_eq!(
            scopes(names).into_iter().collect::<Vec<_>>(),
            ["7/5", "8/5"]
        );
    }
}
