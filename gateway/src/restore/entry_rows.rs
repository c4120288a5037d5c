//! An entry of the log becomes rows of its table, as the table is now.
//!
//! | since the entry was put, a column | then |
//! |---|---|
//! | got another name | the batch gets it too: entries tell the places of their columns |
//! | was dropped | the batch goes without |
//! | was added | its rows have what rows from before have |
//! | got another type | values that `lanes.append` does not take for it are cast; what `ALTER TABLE … USING` made of them is not known here, and that is told |

use std::collections::HashMap;

use bytes::Bytes;
use lanes_wire::{BatchBuilder, BatchView, ColumnView};

use super::plan::{Definition, EntryRows};
use super::run::{Restore, told};
use crate::deliver::describe::{identifier, sql_type};
use crate::events::ColumnKind;
use crate::objects::log::Entry;

const ENTRY: &str = "SELECT lanes.append($1::text::regclass, $2)";
/// Where rows wait of which only some are wanted.
const SLICE: &str = "pg_temp.lanes_restore_slice";
const TYPES: &str = "SELECT a.attname::text, t.typname::text, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a \
     JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped";

/// The type of a column.
pub(super) struct Type {
    kind: ColumnKind,
    /// As SQL writes it.
    sql: String,
}

impl Restore<'_> {
    /// The types of a table's columns.
    pub(super) async fn types(&self, table: &str) -> Result<HashMap<String, Type>, String> {
        let rows = self.query(TYPES, &[&table]).await?;
        let types = rows.iter().map(|row| {
            let (name, sql) = (row.try_get(0)?, row.try_get(2)?);
            let kind = ColumnKind::of_type(row.try_get(1)?);
            Ok((name, Type { kind, sql }))
        });
        let types = types.collect::<Result<_, tokio_postgres::Error>>();
        types.map_err(|error| told(TYPES, &error))
    }

    /// Inserts the rows of an entry that are wanted; how many.
    pub(super) async fn entry(
        &self,
        definition: &Definition,
        types: &HashMap<String, Type>,
        planned: &EntryRows,
    ) -> Result<u64, String> {
        let value = self.store.record(&planned.name).await?;
        let failed = |reason: String| format!("{}: {reason}", planned.name);
        let entry = Entry::decode(&value).map_err(failed)?;
        let table = &definition.table;
        let batch = with_names_of_now(&entry, definition).map_err(failed)?;
        let view = BatchView::verify(&batch).map_err(|error| failed(error.to_string()))?;
        if view.columns().is_empty() {
            // All columns that the rows had are gone.
            let rows = planned.rows;
            let statement = format!("INSERT INTO {table} SELECT FROM generate_series(1, {rows})");
            return self.execute_one(&statement).await;
        }
        let of_column = |column: &ColumnView<'_>| types.get(column.name());
        let is_taken = view
            .columns()
            .iter()
            .all(|column| of_column(column).is_none_or(|now| now.kind.takes(column.column_type())));
        let slices = match &planned.slices {
            None if is_taken => return self.insert(ENTRY, table, &batch).await,
            None => &[(0, planned.rows)][..],
            Some(slices) => slices,
        };
        let list = |write: &dyn Fn(&ColumnView<'_>) -> String| {
            let columns: Vec<String> = view.columns().iter().map(write).collect();
            columns.join(", ")
        };
        let columns = list(&|column| identifier(column.name()));
        let (slice, values) = if is_taken {
            (
                format!(
                    "CREATE TEMPORARY TABLE lanes_restore_slice USING lanes ON COMMIT DROP AS SELECT {columns} FROM {table} WITH NO DATA"
                ),
                columns.clone(),
            )
        } else {
            eprintln!(
                "{table}: {} rows are from before a column got another type: converted to it as they are",
                planned.rows
            );
            let then =
                |column: &ColumnView<'_>| sql_type(ColumnKind::of_batch(column.column_type()));
            let now = |column: &ColumnView<'_>| of_column(column).map_or("text", |now| &now.sql);
            (
                format!(
                    "CREATE TEMPORARY TABLE lanes_restore_slice ({}) USING lanes ON COMMIT DROP",
                    list(&|column| format!("{} {}", identifier(column.name()), then(column)))
                ),
                list(&|column| format!("{}::{}", identifier(column.name()), now(column))),
            )
        };
        self.execute(&slice).await?;
        self.insert(ENTRY, SLICE, &batch).await?;
        let mut rows = 0;
        for (skip, count) in slices {
            rows += self
                .execute_one(&format!(
                    "INSERT INTO {table} ({columns}) SELECT {values} FROM {SLICE} OFFSET {skip} LIMIT {count}"
                ))
                .await?;
        }
        self.execute(&format!("DROP TABLE {SLICE}")).await?;
        Ok(rows)
    }
}

/// An entry's batch with its columns called what they are called now, and without those that were dropped.
fn with_names_of_now(entry: &Entry, definition: &Definition) -> Result<Bytes, String> {
    let places = &entry.head.columns;
    if places.is_empty() || definition.columns.is_empty() {
        return Ok(entry.batch.clone());
    }
    let view = BatchView::verify(&entry.batch).map_err(|error| error.to_string())?;
    if places.len() != view.columns().len() {
        return Err("it does not tell the places of its columns".to_owned());
    }
    let name = |place: &u16| {
        let index = usize::from(*place).checked_sub(1)?;
        definition.columns.get(index)?.as_deref()
    };
    let names: Vec<Option<&str>> = places.iter().map(name).collect();
    let before = view.columns().iter().map(|column| Some(column.name()));
    if before.eq(names.iter().copied()) {
        return Ok(entry.batch.clone());
    }
    let (mut builder, mut batch) = (BatchBuilder::new(), Vec::new());
    let built = builder.append(&view.renamed(&names));
    built
        .and_then(|()| builder.finish(&mut batch))
        .map_err(|error| error.to_string())?;
    Ok(batch.into())
}
