//! The records of the store: small documents beside the images. Together they suffice to restore a
//! database.
//!
//! `<scope>` is `<system id>/<database's oid>`, as in the keys of segments: `lanes.object_scope()`.
//! Rows are named by the storage id of the table's file (16 hexadecimal digits) and their number in it (20 digits), so
//! that names sort as rows do. After a failover the same numbers may be assigned again, so the name
//! of an entry ends with its timeline (8 hexadecimal digits). Names by older versions have no
//! timeline.
//!
//! | name | value |
//! |---|---|
//! | `head/<scope>/<storage>/<first row>/<timeline>` | [`Head`], as JSON: an entry of the log without its rows |
//! | `log/<scope>/<storage>/<first row>/<timeline>` | the entry: [`crate::objects::log::entry`] |
//! | `part/<scope>/<storage>/<origin>` | [`PartRecord`], as JSON: a part whose segments were all put before it |
//! | `table/<scope>/<oid>` | the result of `lanes.table_definition`, as JSON |
//! | `added/<scope>/<oid>/<position>` | [`AddedColumn`], as JSON: a column that was added to a table with rows; positions have 5 digits |
//! | `series/<scope>/<epoch>/<first id>` | [`SeriesRecord`], as JSON: a row of `lanes.series_runs`; ids have 10 digits |
//! | `deleted` | a number, as JSON: keys deleted since the store was last rewritten |
//! | `owner` | [`crate::objects::owner::Owner`], as JSON: the database that may write to the store |
//! | `registry/<scope>` | [`RegistryRecord`], as JSON: the registry, and the id up to which all its series are in the store |
//!
//! Later versions can read every document: fields are added, but never change their meaning.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A change of a record: its name, and its new value, or `None` to delete it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Option<Bytes>,
}

impl Change {
    /// Returns the change that puts a value.
    pub fn put(name: String, value: impl Into<Bytes>) -> Self {
        let value = Some(value.into());
        Self { name, value }
    }

    /// Returns the change that puts a document.
    pub fn document(name: String, document: &impl Serialize) -> Self {
        // Serialization of structures without maps cannot fail.
        Self::put(name, serde_json::to_vec(document).unwrap_or_default())
    }

    /// Returns the change that deletes a record.
    pub fn delete(name: String) -> Self {
        Self { name, value: None }
    }

    /// The bytes of name and value.
    pub fn bytes(&self) -> usize {
        self.name.len() + self.value.as_ref().map_or(0, Bytes::len)
    }
}

/// An entry of the log without its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The oid of the table.
    pub target: u32,
    /// The storage id of the file that the rows were appended to.
    pub storage: u64,
    /// The first row and the number of rows of each run, in the order of the batch's rows.
    pub runs: Vec<(u64, u64)>,
    /// The bytes of the batch.
    pub bytes: u64,
    /// The time of the entry, in milliseconds since the Unix epoch.
    pub logged_ms: i64,
    /// The positions, from 1 on, of the batch's columns in the table, which identify columns that
    /// were renamed or dropped. Empty in entries by older versions, whose columns are identified by
    /// name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<u16>,
    /// The timeline on which the rows were committed; 0 in entries by older versions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timeline: u32,
    /// A WAL position on this timeline at or past the commit, in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wal_place: u64,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// A part that is completely in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRecord {
    /// The oid of the table.
    pub target: u32,
    /// The storage id of its file.
    pub storage: u64,
    /// The number of the part in the file. Later parts have higher numbers.
    pub origin: u64,
    /// The first row that the part replaces.
    pub first_row: u64,
    /// The end of the rows that the part replaces (exclusive).
    pub end_row: u64,
    /// Its segments in order: the key and the number of rows.
    pub segments: Vec<(String, u64)>,
    /// The types of the table's columns at that time, by position; `None` for a dropped column.
    /// Empty in records by older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<Option<String>>,
}

/// The value of older rows in a column that was added to their table.
///
/// A position is assigned to one column only, so the value remains valid for images and entries
/// that lack the column, whatever happens to the table. The catalogue forgets the value as soon as
/// ALTER TABLE or VACUUM FULL rewrites the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedColumn {
    /// The type of the column when the value was read.
    #[serde(rename = "type")]
    pub sql_type: String,
    /// The value, as PostgreSQL writes it.
    pub value: String,
}

/// A row of `lanes.series_runs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesRecord {
    /// The first id.
    pub first_id: i32,
    /// The last id.
    pub last_id: i32,
    /// The metric.
    pub metric: String,
    /// The canonical labels, one for each id.
    pub labels: Vec<String>,
    /// The time of registration, as PostgreSQL writes it.
    pub registered_at: String,
}

/// The current registry of series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryRecord {
    /// Its epoch.
    pub epoch: String,
    /// The id up to which all series are in the store.
    pub last_id: i32,
}

/// Returns the name of a head.
pub fn head_name(scope: &str, storage: u64, first_row: u64, timeline: u32) -> String {
    format!("head/{scope}/{storage:016x}/{first_row:020}/{timeline:08x}")
}

/// Returns the name of the entry that belongs to a head.
pub fn entry_name(head: &str) -> String {
    match head.split_once('/') {
        Some((_, rest)) => format!("log/{rest}"),
        None => String::new(),
    }
}

/// Returns the name of the part that a segment's key belongs to.
pub fn part_name_of(key: &str) -> Option<String> {
    let (part, _) = key.rsplit_once('/')?;
    Some(format!("part/{part}"))
}

/// Returns the name of a table's definition.
pub fn table_name(scope: &str, target: u32) -> String {
    format!("table/{scope}/{target}")
}

/// Returns the scope and the table that the name of a definition refers to.
pub fn table_of(name: &str) -> Option<(String, u32)> {
    let (scope, target) = name.strip_prefix("table/")?.rsplit_once('/')?;
    Some((scope.to_owned(), target.parse().ok()?))
}

/// Returns the name of the value of older rows in an added column.
pub fn added_name(scope: &str, target: u32, place: u16) -> String {
    format!("added/{scope}/{target}/{place:05}")
}

/// Returns the table and the position that such a name refers to.
pub fn added_of(name: &str) -> Option<(u32, u16)> {
    let (table, place) = name.strip_prefix("added/")?.rsplit_once('/')?;
    let (_, target) = table.rsplit_once('/')?;
    Some((target.parse().ok()?, place.parse().ok()?))
}

/// Returns the changes that put a table's definition, and beside it the values of added columns,
/// which a later definition may lack.
pub fn definition_changes(scope: &str, target: u32, json: String) -> Vec<Change> {
    #[derive(Deserialize)]
    struct Placed {
        place: u16,
        #[serde(flatten)]
        column: AddedColumn,
    }
    #[derive(Deserialize)]
    struct Definition {
        /// Older extensions do not report it.
        #[serde(default)]
        added: Vec<Placed>,
    }
    let definition = serde_json::from_str::<Definition>(&json);
    // A restore reports a definition that cannot be read.
    let added = definition.map_or_else(|_| Vec::new(), |definition| definition.added);
    let columns = added.into_iter().map(|Placed { place, column }| {
        Change::document(added_name(scope, target, place), &column)
    });
    let mut changes: Vec<Change> = columns.collect();
    changes.push(Change::put(table_name(scope, target), json));
    changes
}

/// Returns the name of a row of series.
pub fn series_name(scope: &str, epoch: &str, first_id: i32) -> String {
    format!("series/{scope}/{epoch}/{first_id:010}")
}

/// Returns the name of the current registry.
pub fn registry_name(scope: &str) -> String {
    format!("registry/{scope}")
}

/// Parses a document.
///
/// # Errors
/// Returns an error that names the document if it cannot be parsed.
pub fn read<T: DeserializeOwned>(name: &str, value: &[u8]) -> Result<T, String> {
    serde_json::from_slice(value)
        .map_err(|error| format!("could not read {name} in the object store: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_rows_do() {
        let scope = "7/5";
        assert!(head_name(scope, 1, 9, 2) < head_name(scope, 1, 10, 1));
        assert_eq!(
            entry_name(&head_name(scope, 255, 3, 10)),
            "log/7/5/00000000000000ff/00000000000000000003/0000000a"
        );
        assert_eq!(table_of(&table_name(scope, 9)), Some(("7/5".to_owned(), 9)));
        assert_eq!(table_of("table/9"), None);
        assert_eq!(added_of(&added_name(scope, 9, 12)), Some((9, 12)));
        assert_eq!(added_of("added/9"), None);
        assert_eq!(
            part_name_of("7/5/00000000000000ff/3/65536").as_deref(),
            Some("part/7/5/00000000000000ff/3")
        );
    }

    /// These texts stand for documents in existing stores, so they must never change.
    #[test]
    fn old_heads_are_still_readable() {
        let head = Head {
            target: 7,
            storage: u64::MAX,
            runs: vec![(0, 65_536), (70_000, 3)],
            bytes: 5,
            logged_ms: -1,
            columns: Vec::new(),
            timeline: 0,
            wal_place: 0,
        };
        let text = br#"{"target":7,"storage":18446744073709551615,"runs":[[0,65536],[70000,3]],"bytes":5,"logged_ms":-1}"#;
        assert_eq!(read("head", text), Ok(head.clone()));
        let head = Head {
            columns: vec![1, 3],
            ..head
        };
        let text = br#"{"target":7,"storage":18446744073709551615,"runs":[[0,65536],[70000,3]],"bytes":5,"logged_ms":-1,"columns":[1,3]}"#;
        assert_eq!(read("head", text), Ok(head.clone()));
        let head = Head {
            columns: Vec::new(),
            timeline: 2,
            wal_place: 48,
            ..head
        };
        let text = br#"{"target":7,"storage":18446744073709551615,"runs":[[0,65536],[70000,3]],"bytes":5,"logged_ms":-1,"timeline":2,"wal_place":48}"#;
        assert_eq!(read("head", text), Ok(head));
    }

    /// These texts stand for documents in existing stores, so they must never change.
    #[test]
    fn old_parts_and_series_are_still_readable() {
        let part = PartRecord {
            target: 7,
            storage: 255,
            origin: 3,
            first_row: 9,
            end_row: 12,
            segments: vec![("7/5/00000000000000ff/3/9".to_owned(), 3)],
            types: Vec::new(),
        };
        let text = br#"{"target":7,"storage":255,"origin":3,"first_row":9,"end_row":12,"segments":[["7/5/00000000000000ff/3/9",3]]}"#;
        assert_eq!(read("part", text), Ok(part.clone()));
        let part = PartRecord {
            types: vec![None, Some("bigint".to_owned())],
            ..part
        };
        let text = br#"{"target":7,"storage":255,"origin":3,"first_row":9,"end_row":12,"segments":[["7/5/00000000000000ff/3/9",3]],"types":[null,"bigint"]}"#;
        assert_eq!(read("part", text), Ok(part));
        let series = SeriesRecord {
            first_id: 1,
            last_id: 2,
            metric: "up".to_owned(),
            labels: vec!["{}".to_owned(), r#"{"job":"a"}"#.to_owned()],
            registered_at: "2026-01-01 00:00:00+00".to_owned(),
        };
        let text = br#"{"first_id":1,"last_id":2,"metric":"up","labels":["{}","{\"job\":\"a\"}"],"registered_at":"2026-01-01 00:00:00+00"}"#;
        assert_eq!(read("series", text), Ok(series));
        let registry = RegistryRecord {
            epoch: "e".to_owned(),
            last_id: 4,
        };
        assert_eq!(
            read("registry", br#"{"epoch":"e","last_id":4}"#),
            Ok(registry)
        );
    }

    #[test]
    fn values_of_added_columns_are_put_beside_the_definition() {
        let names = |json: &str| -> Vec<String> {
            let changes = definition_changes("7/5", 9, json.to_owned()).into_iter();
            changes.map(|change| change.name).collect()
        };
        let json = r#"{"added": [{"place": 3, "type": "text", "value": "a"}], "columns": []}"#;
        assert_eq!(names(json), ["added/7/5/9/00003", "table/7/5/9"]);
        assert_eq!(names("{}"), ["table/7/5/9"], "an older extension");
        let added = definition_changes("7/5", 9, json.to_owned());
        let column = AddedColumn {
            sql_type: "text".to_owned(),
            value: "a".to_owned(),
        };
        assert_eq!(
            added[0].value.as_deref(),
            Some(&br#"{"type":"text","value":"a"}"#[..])
        );
        assert_eq!(read("added", added[0].value.as_ref().unwrap()), Ok(column));
    }

    #[test]
    fn fields_that_a_later_version_adds_are_skipped() {
        let text = br#"{"epoch": "e", "last_id": 4, "more": 1}"#;
        let registry: RegistryRecord = read("registry/7/5", text).unwrap();
        assert_eq!(registry.last_id, 4);
        let error = read::<RegistryRecord>("registry/7/5", b"{").unwrap_err();
        assert!(error.contains("registry/7/5"), "{error}");
    }
}
