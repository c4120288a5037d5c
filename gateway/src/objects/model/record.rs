//! What the store keeps beside images: small documents under names, from which alone a database can be made again.
//!
//! `<scope>` is `<system id>/<database's oid>`, as in the keys of segments. Rows are named as lanes names them: by the
//! storage id of the table's file, 16 hexadecimal digits, and their numbers in it, of 20 digits, so that names are in
//! the rows' order. After a failover the same numbers may be given out again, so an entry's name ends in its timeline,
//! 8 hexadecimal digits; names of versions before have no timeline.
//!
//! | name | value |
//! |---|---|
//! | `head/<scope>/<storage>/<first row>/<timeline>` | [`Head`], as JSON: what an entry of the log is, without its rows |
//! | `log/<scope>/<storage>/<first row>/<timeline>` | the entry: [`crate::objects::log::entry`] |
//! | `part/<scope>/<storage>/<origin>` | [`PartRecord`], as JSON: a part all segments of which were put before it |
//! | `table/<scope>/<oid>` | what `lanes.table_definition` answers, as JSON |
//! | `added/<scope>/<oid>/<place>` | [`AddedColumn`], as JSON: a column that was added to a table with rows; places have 5 digits |
//! | `series/<scope>/<epoch>/<first id>` | [`SeriesRecord`], as JSON: a row of `lanes.series_runs`; ids have 10 digits |
//! | `deleted` | a number, as JSON: keys that were deleted since the store was last rewritten without them |
//! | `owner` | [`crate::objects::owner::Owner`], as JSON: the database that may write to the store |
//! | `registry/<scope>` | [`RegistryRecord`], as JSON: the registry whose series are all there up to some id |
//!
//! Every document can be read by a later version: fields are added, never given another meaning.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A name, and what is under it from then on; `None`: nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Option<Bytes>,
}

impl Change {
    /// Puts a value.
    pub fn put(name: String, value: impl Into<Bytes>) -> Self {
        let value = Some(value.into());
        Self { name, value }
    }

    /// Puts a document.
    pub fn document(name: String, document: &impl Serialize) -> Self {
        // Of structures without maps, nothing can fail.
        Self::put(name, serde_json::to_vec(document).unwrap_or_default())
    }

    /// Deletes what there is.
    pub fn delete(name: String) -> Self {
        Self { name, value: None }
    }

    /// Bytes of name and value.
    pub fn bytes(&self) -> usize {
        self.name.len() + self.value.as_ref().map_or(0, Bytes::len)
    }
}

/// An entry of the log without its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The table's oid.
    pub target: u32,
    /// The storage id of the file that the rows were appended to.
    pub storage: u64,
    /// First row and rows of each run, in the order of the batch's rows.
    pub runs: Vec<(u64, u64)>,
    /// Bytes of the batch.
    pub bytes: u64,
    /// Milliseconds since the Unix epoch.
    pub logged_ms: i64,
    /// Places, from 1 on, that the batch's columns had in the table: that is how they are known when they have other names, or are gone.
    /// Empty: by their names, as versions before this field did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<u16>,
    /// The timeline of the database's WAL that the rows were committed on; 0: a version that did not tell it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timeline: u32,
    /// A place of that timeline's WAL at or past the commit, in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wal_place: u64,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// A part that is in the store as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRecord {
    /// The table's oid.
    pub target: u32,
    /// The storage id of its file.
    pub storage: u64,
    /// The part's number in it; later ones have higher numbers.
    pub origin: u64,
    /// The rows that it takes the place of: from this one on,
    pub first_row: u64,
    /// up to this one, which is none of them.
    pub end_row: u64,
    /// Its segments: key and rows, in their order.
    pub segments: Vec<(String, u64)>,
    /// The types of the table's columns then, by their places; `None` where one was dropped. Empty: a version that did not tell them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<Option<String>>,
}

/// The value that rows have in a column that their table got after them.
///
/// A place is given to one column only, so this stays true of images and entries that lack the column, whatever becomes
/// of the table: the catalogue forgets it as soon as ALTER TABLE or VACUUM FULL writes the table anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedColumn {
    /// The column's type when the value was read.
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
    /// Canonical labels, one an id.
    pub labels: Vec<String>,
    /// When they were registered, as PostgreSQL writes it.
    pub registered_at: String,
}

/// The registry of series in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryRecord {
    /// Its epoch.
    pub epoch: String,
    /// Series up to this id are in the store.
    pub last_id: i32,
}

/// The name of a head.
pub fn head_name(scope: &str, storage: u64, first_row: u64, timeline: u32) -> String {
    format!("head/{scope}/{storage:016x}/{first_row:020}/{timeline:08x}")
}

/// The name of the entry that a head belongs to.
pub fn entry_name(head: &str) -> String {
    match head.split_once('/') {
        Some((_, rest)) => format!("log/{rest}"),
        None => String::new(),
    }
}

/// The name of the part that a segment's key belongs to.
pub fn part_name_of(key: &str) -> Option<String> {
    let (part, _) = key.rsplit_once('/')?;
    Some(format!("part/{part}"))
}

/// The name of a table's definition.
pub fn table_name(scope: &str, target: u32) -> String {
    format!("table/{scope}/{target}")
}

/// The database and the table that a definition's name is about.
pub fn table_of(name: &str) -> Option<(String, u32)> {
    let (scope, target) = name.strip_prefix("table/")?.rsplit_once('/')?;
    Some((scope.to_owned(), target.parse().ok()?))
}

/// The name of what rows from before a column was added have in it.
pub fn added_name(scope: &str, target: u32, place: u16) -> String {
    format!("added/{scope}/{target}/{place:05}")
}

/// The table and the place that such a name is about.
pub fn added_of(name: &str) -> Option<(u32, u16)> {
    let (table, place) = name.strip_prefix("added/")?.rsplit_once('/')?;
    let (_, target) = table.rsplit_once('/')?;
    Some((target.parse().ok()?, place.parse().ok()?))
}

/// Puts a table's definition, and beside it, by columns, the values that a later definition may no longer tell.
pub fn definition_changes(scope: &str, target: u32, json: String) -> Vec<Change> {
    #[derive(Deserialize)]
    struct Placed {
        place: u16,
        #[serde(flatten)]
        column: AddedColumn,
    }
    #[derive(Deserialize)]
    struct Definition {
        /// An extension before this field did not tell it.
        #[serde(default)]
        added: Vec<Placed>,
    }
    let definition = serde_json::from_str::<Definition>(&json);
    // A restore names a definition that cannot be read.
    let added = definition.map_or_else(|_| Vec::new(), |definition| definition.added);
    let columns = added.into_iter().map(|Placed { place, column }| {
        Change::document(added_name(scope, target, place), &column)
    });
    let mut changes: Vec<Change> = columns.collect();
    changes.push(Change::put(table_name(scope, target), json));
    changes
}

/// The name of a row of series.
pub fn series_name(scope: &str, epoch: &str, first_id: i32) -> String {
    format!("series/{scope}/{epoch}/{first_id:010}")
}

/// The name of the registry in use.
pub fn registry_name(scope: &str) -> String {
    format!("registry/{scope}")
}

/// Reads a document.
///
/// # Errors
/// It is none of this kind; the text names it.
pub fn read<T: DeserializeOwned>(name: &str, value: &[u8]) -> Result<T, String> {
    serde_json::from_slice(value).map_err(|error| format!("{name} in the object store: {error}"))
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

    /// These texts stand for what is in stores already: they are never changed.
    #[test]
    fn documents_that_were_written_once_are_read_as_ever() {
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
    fn what_a_later_definition_may_not_tell_is_put_beside_it() {
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
