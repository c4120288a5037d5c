//! An entry of the log becomes rows of its table, as the table is now.
//!
//! | since the entry was put, a column | then |
//! |---|---|
//! | got another name | the batch gets it too: entries tell the places of their columns |
//! | was dropped | the batch goes without |
//! | was added | its rows have what rows from before have |
//! | got another type | values that `lanes.append` does not take for it are cast, which cuts what is too long; if that fails, the entry's rows come into a table of their own, and that is told |

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
    /// As SQL writes it.
    pub(super) sql: String,
}

impl Type {
    /// Whether every value of a batch's type is one of it.
    fn has_all_of(&self, column_type: ColumnType) -> bool {
        sql_type(ColumnKind::of_batch(column_type)) == self.sql
    }
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
        types.map_err(|error| Failure::of(TYPES, &error).into())
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
                "{table}: {} rows are from before a column got another type, and are cast",
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
        // The types may have been others when the rows were appended, and no value of then one of now.
        self.execute("SAVEPOINT entry").await?;
        let inserted = self.slices(table, &direct, &batch, planned).await;
        let rows = match inserted {
            Ok(rows) => rows,
            Err(failure) => {
                let reason = failure.of_statement()?;
                self.execute("ROLLBACK TO entry").await?;
                let aside = Slice::own(&view);
                let digest = xxh3_64(format!("{table} {}", aside.make).as_bytes());
                let schema = identifier(&definition.schema);
                let name = format!("{schema}.lanes_unconverted_{digest:016x}");
                let make = format!("CREATE TABLE IF NOT EXISTS {name} {}", aside.make);
                self.execute(&make).await?;
                eprintln!(
                    "{table}: {} rows do not fit the types that its columns have now, and are in {name}: {reason}",
                    planned.rows
                );
                self.slices(&name, &aside, &batch, planned).await?
            }
        };
        self.execute("RELEASE entry").await?;
        Ok(rows)
    }

    /// Inserts the rows of a batch that are wanted into a table.
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

    /// An empty table for rows of which only some are wanted, or in other types; without these columns. It is made once for all rows of its
    /// shape: a table that is dropped keeps its locks and its file until the transaction ends.
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

/// A table for the rows of a batch, on their way into another.
struct Slice {
    /// What follows `CREATE TABLE` and its name.
    make: String,
    /// Columns of the other table,
    columns: String,
    /// and what they get.
    values: String,
}

impl Slice {
    /// With the columns of the other table.
    fn of_table(table: &str, view: &BatchView<'_>) -> Self {
        let columns = list(view, |column| identifier(column.name()));
        Self {
            make: format!("USING lanes AS SELECT {columns} FROM {table} WITH NO DATA"),
            values: columns.clone(),
            columns,
        }
    }

    /// With the types of the batch.
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

    /// With the types of the batch, cast to those that columns have now.
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
        let index = usize::from(*place).checked_sub(1);
        let name = index.and_then(|index| definition.columns.get(index));
        name.map(Option::as_deref)
    };
    let names: Option<Vec<Option<&str>>> = places.iter().map(name).collect();
    let names = names.ok_or("it has a column that the table's definition does not know")?;
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
