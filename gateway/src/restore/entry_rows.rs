//! Restores the rows of an entry of the log into its table, as the table is defined now.
//!
//! | change of a column since the entry was put | effect |
//! |---|---|
//! | it was renamed | the batch gets the new name: entries contain the positions of their columns |
//! | it was dropped | the column is removed from the batch |
//! | it was added | the rows get the value of older rows |
//! | its type was changed | values that `lanes.append` does not accept for the new type are cast, which truncates what is too long. If that fails, the entry's rows are inserted into a separate table, with a message |

use std::collections::HashMap;

use bytes::Bytes;
use lanes_wire::{BatchBuilder, BatchView, ColumnType, ColumnView};
use xxhash_rust::xxh3::xxh3_64;

use super::failure::Failure;
use super::plan::{Definition, EntryRows};
use super::run::Restore;
use crate::deliver::describe::{identifier, sql_type};
use crate::model::ColumnKind;
use crate::objects::log::Entry;

const ENTRY: &str = "SELECT lanes.append($1::text::regclass, $2)";
const TYPES: &str = "SELECT a.attname::text, t.typname::text, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a \
     JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped";

/// The type of a column.
pub(super) struct Type {
    kind: ColumnKind,
    /// The type as SQL writes it.
    pub(super) sql: String,
}

impl Type {
    /// Whether every value of a batch type is a value of this type.
    fn has_all_of(&self, column_type: ColumnType) -> bool {
        sql_type(ColumnKind::of_batch(column_type)) == self.sql
    }
}

impl Restore<'_> {
    /// Returns the types of a table's columns.
    pub(super) async fn types(&self, table: &str) -> Result<HashMap<String, Type>, String> {
        let rows = self.query(TYPES, &[&table]).await?;
        let types = rows.iter().map(|row| {
            let (name, sql) = (row.try_get(0)?, row.try_get(2)?);
            let kind = ColumnKind::of_type(row.try_get(1)?);
            Ok((name, Type { kind, sql }))
        });
        let types = types.collect::<Result<_, tokio_postgres::Error>>();
        types.map_err(|error| Failure::of(TYPES, &error).into())
    }

    /// Inserts the wanted rows of an entry. Returns their number.
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
        let batch = with_current_names(&entry, definition).map_err(failed)?;
        let view = BatchView::verify(&batch).map_err(|error| failed(error.to_string()))?;
        if view.columns().is_empty() {
            // All columns of the rows were dropped.
            let rows = planned.rows;
            let statement = format!("INSERT INTO {table} SELECT FROM generate_series(1, {rows})");
            return Ok(self.execute_one(&statement).await?);
        }
        let is_taken = |column: &ColumnView<'_>| {
            let now = types.get(column.name());
            now.is_none_or(|now| now.kind.takes(column.column_type()))
        };
        let direct = if view.columns().iter().all(is_taken) {
            Slice::of_table(table, &view)
        } else {
            eprintln!(
                "{table}: {} rows are from before the type of a column was changed, and are cast",
                planned.rows
            );
            Slice::cast(&view, types)
        };
        let made_for = |column: &ColumnView<'_>| {
            let now = types.get(column.name());
            now.is_none_or(|now| now.has_all_of(column.column_type()))
        };
        if view.columns().iter().all(made_for) {
            return Ok(self.slices(table, &direct, &batch, planned).await?);
        }
        // The types may have been different when the rows were appended, and none of the old values
        // may be valid now.
        self.execute("SAVEPOINT entry").await?;
        let inserted = self.slices(table, &direct, &batch, planned).await;
        let rows = match inserted {
            Ok(rows) => rows,
            Err(failure) => {
                let reason = failure.of_statement()?;
                self.execute("ROLLBACK TO entry").await?;
                let own = Slice::own(&view);
                let name = self.unconverted_table(definition, &own).await?;
                eprintln!(
                    "{table}: {} rows do not match the current types of its columns, and are in {name}: {reason}",
                    planned.rows
                );
                self.slices(&name, &own, &batch, planned).await?
            }
        };
        self.execute("RELEASE entry").await?;
        Ok(rows)
    }

    /// Creates the table for rows that do not match the current types. Returns its name.
    async fn unconverted_table(
        &self,
        definition: &Definition,
        own: &Slice,
    ) -> Result<String, Failure> {
        let digest = xxh3_64(format!("{} {}", definition.table, own.make).as_bytes());
        let schema = identifier(&definition.schema);
        let name = format!("{schema}.lanes_unconverted_{digest:016x}");
        self.execute(&format!("CREATE TABLE IF NOT EXISTS {name} {}", own.make))
            .await?;
        Ok(name)
    }

    /// Inserts the wanted rows of a batch into a table.
    async fn slices(
        &self,
        table: &str,
        slice: &Slice,
        batch: &[u8],
        planned: &EntryRows,
    ) -> Result<u64, Failure> {
        let whole = [(0, planned.rows)];
        let slices = match &planned.slices {
            None if slice.columns == slice.values => return self.insert(ENTRY, table, batch).await,
            None => &whole[..],
            Some(slices) => slices,
        };
        let Slice {
            make,
            columns,
            values,
        } = slice;
        let waiting = self.waiting(make, &[]).await?;
        self.insert(ENTRY, &waiting, batch).await?;
        let mut rows = 0;
        for (skip, count) in slices {
            rows += self
                .execute_one(&format!(
                    "INSERT INTO {table} ({columns}) SELECT {values} FROM {waiting} OFFSET {skip} LIMIT {count}"
                ))
                .await?;
        }
        Ok(rows)
    }

    /// Returns an empty table, without the dropped columns, for rows of which only some are wanted,
    /// or whose types differ. It is created once for all rows of its shape, because a dropped table
    /// keeps its locks and its file until the transaction ends.
    pub(super) async fn waiting(&self, make: &str, dropped: &[String]) -> Result<String, Failure> {
        let digest = xxh3_64(format!("{make} {dropped:?}").as_bytes());
        let name = format!("lanes_restore_{digest:016x}");
        let mut statements =
            format!("CREATE TEMPORARY TABLE IF NOT EXISTS {name} {make}; TRUNCATE pg_temp.{name}");
        for column in dropped {
            statements += &format!("; ALTER TABLE pg_temp.{name} DROP COLUMN IF EXISTS {column}");
        }
        self.execute(&statements).await?;
        Ok(format!("pg_temp.{name}"))
    }
}

/// A table for the rows of a batch on their way into another table.
struct Slice {
    /// The part of CREATE TABLE after the name.
    make: String,
    /// The columns of the other table.
    columns: String,
    /// The values of these columns.
    values: String,
}

impl Slice {
    /// Describes a table with the columns of the other table.
    fn of_table(table: &str, view: &BatchView<'_>) -> Self {
        let columns = list(view, |column| identifier(column.name()));
        Self {
            make: format!("USING lanes AS SELECT {columns} FROM {table} WITH NO DATA"),
            values: columns.clone(),
            columns,
        }
    }

    /// Describes a table with the types of the batch.
    fn own(view: &BatchView<'_>) -> Self {
        let columns = list(view, |column| identifier(column.name()));
        let made = list(view, |column| {
            let of_batch = ColumnKind::of_batch(column.column_type());
            format!("{} {}", identifier(column.name()), sql_type(of_batch))
        });
        Self {
            make: format!("({made}) USING lanes"),
            values: columns.clone(),
            columns,
        }
    }

    /// Describes a table with the types of the batch, whose values are cast to the current types.
    fn cast(view: &BatchView<'_>, types: &HashMap<String, Type>) -> Self {
        let values = list(view, |column| {
            let now = types.get(column.name()).map_or("text", |now| &now.sql);
            format!("{}::{now}", identifier(column.name()))
        });
        Self {
            values,
            ..Self::own(view)
        }
    }
}

fn list(view: &BatchView<'_>, write: impl Fn(&ColumnView<'_>) -> String) -> String {
    let columns: Vec<String> = view.columns().iter().map(write).collect();
    columns.join(", ")
}

/// Returns an entry's batch with the current names of its columns, without those that were dropped.
fn with_current_names(entry: &Entry, definition: &Definition) -> Result<Bytes, String> {
    let places = &entry.head.columns;
    if places.is_empty() || definition.columns.is_empty() {
        return Ok(entry.batch.clone());
    }
    let view = BatchView::verify(&entry.batch).map_err(|error| error.to_string())?;
    if places.len() != view.columns().len() {
        return Err("it does not contain the positions of its columns".to_owned());
    }
    let name = |place: &u16| {
        let index = usize::from(*place).checked_sub(1);
        let name = index.and_then(|index| definition.columns.get(index));
        name.map(Option::as_deref)
    };
    let names: Option<Vec<Option<&str>>> = places.iter().map(name).collect();
    let names = names.ok_or("it has a column that the table's definition does not contain")?;
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
