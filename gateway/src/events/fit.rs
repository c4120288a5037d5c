//! The check of a batch against its table before anything is sent to PostgreSQL. A fault is thus
//! reported at once with the name of its column, and does not affect other requests in the same
//! batch. PostgreSQL checks again, and more strictly; this check only saves a round trip.

use lanes_wire::{BatchView, ColumnType};
use thiserror::Error;

use crate::model::{ColumnKind, Table, TableColumn};

/// Why a batch does not fit a table.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Misfit {
    /// The table has no such column.
    #[error("table {table} has no column {column:?}")]
    UnknownColumn {
        /// The table.
        table: String,
        /// The name as sent.
        column: String,
    },
    /// The column does not accept values of this type.
    #[error(
        "column {column:?} of table {table} is {sql_type}, which does not accept {found}; {remedy}"
    )]
    Type {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The type of the column.
        sql_type: String,
        /// The type in the batch.
        found: String,
        /// What to send instead.
        remedy: &'static str,
    },
    /// PostgreSQL computes the column.
    #[error("column {column:?} of table {table} is generated and accepts no values")]
    Generated {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A NOT NULL column without a default is missing.
    #[error(
        "column {column:?} of table {table} is NOT NULL and has no default, but is not in the batch"
    )]
    Missing {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A NOT NULL column contains NULLs.
    #[error(
        "column {column:?} of table {table} is NOT NULL, but row {row} of the batch (counted from 1) is NULL"
    )]
    Null {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The first row that is NULL.
        row: usize,
    },
}

/// Checks whether the batch fits the table.
///
/// # Errors
/// Returns the first fault, in the order of the batch's columns.
pub fn check(batch: &BatchView<'_>, table: &Table) -> Result<(), Misfit> {
    let names = |column: &str| (table.name.clone(), column.to_owned());
    for (place, column) in batch.columns().iter().enumerate() {
        let of_table = find(table, place, column.name()).ok_or_else(|| {
            let (table, column) = names(column.name());
            Misfit::UnknownColumn { table, column }
        })?;
        let (table, column_name) = (&table.name, &of_table.name);
        if of_table.is_generated {
            return Err(Misfit::Generated {
                table: table.clone(),
                column: column_name.clone(),
            });
        }
        if !of_table.kind.takes(column.column_type()) {
            return Err(Misfit::Type {
                table: table.clone(),
                column: column_name.clone(),
                sql_type: of_table.sql_type.clone(),
                found: column.column_type().to_string(),
                remedy: remedy(of_table.kind, column.column_type()),
            });
        }
        if of_table.is_not_null && column.null_count() > 0 {
            let row = (0..batch.rows()).find(|row| column.is_null(*row));
            return Err(Misfit::Null {
                table: table.clone(),
                column: column_name.clone(),
                row: row.map_or(0, |row| row + 1),
            });
        }
    }
    let missing = table.columns.iter().find(|column| {
        let must_come = column.is_not_null && !column.has_default && !column.is_generated;
        must_come && batch.column(&column.name).is_none()
    });
    match missing {
        Some(column) if batch.rows() > 0 => {
            let (table, column) = names(&column.name);
            Err(Misfit::Missing { table, column })
        }
        _ => Ok(()),
    }
}

/// Returns what to send instead of a type that a column does not accept.
fn remedy(kind: ColumnKind, found: ColumnType) -> &'static str {
    let is_integer = matches!(kind, ColumnKind::Int2 | ColumnKind::Int4 | ColumnKind::Int8);
    match found {
        // pandas converts integer columns with missing values to floats.
        ColumnType::Float32 | ColumnType::Float64 if is_integer => {
            "send integers (convert a pandas column with .astype('Int64'), which keeps missing values)"
        }
        _ => "send text, which a column of any type accepts",
    }
}

/// Finds the table's column with this name. Columns are usually sent in the table's order.
fn find<'t>(table: &'t Table, place: usize, name: &str) -> Option<&'t TableColumn> {
    table
        .columns
        .get(place)
        .filter(|column| column.name == name)
        .or_else(|| table.columns.iter().find(|column| column.name == name))
}

#[cfg(test)]
mod tests {
    use lanes_wire::BatchBuilder;

    use super::*;

    fn table() -> Table {
        let column = |name: &str, kind, is_not_null| TableColumn {
            name: name.to_owned(),
            sql_type: format!("{kind:?}").to_lowercase(),
            kind,
            is_not_null,
            has_default: false,
            is_generated: false,
        };
        let mut generated = column("twice", ColumnKind::Int8, false);
        generated.is_generated = true;
        let mut defaulted = column("host", ColumnKind::Text, true);
        defaulted.has_default = true;
        Table {
            oid: 1,
            name: "public.t".to_owned(),
            columns: vec![
                column("ts", ColumnKind::Timestamp, true),
                column("n", ColumnKind::Int8, false),
                generated,
                defaulted,
            ],
            may_insert: true,
        }
    }

    fn checked(columns: &[(&str, ColumnType, Option<i64>)]) -> Result<(), String> {
        let mut builder = BatchBuilder::new();
        for (name, column_type, value) in columns {
            let index = builder.add_column(name, *column_type).unwrap();
            let buffer = builder.column(index);
            match (value, column_type) {
                (None, _) => buffer.push_null(),
                (Some(value), ColumnType::Text) => buffer.push_text(&value.to_string()).unwrap(),
                (Some(value), ColumnType::Float64) => buffer.push_f64(*value as f64).unwrap(),
                (Some(value), _) => buffer.push_i64(*value).unwrap(),
            }
        }
        let mut bytes = Vec::new();
        builder.finish(&mut bytes).unwrap();
        check(&BatchView::verify(&bytes).unwrap(), &table()).map_err(|error| error.to_string())
    }

    const TS: (&str, ColumnType, Option<i64>) = ("ts", ColumnType::Timestamp, Some(1));

    #[test]
    fn batches_that_fit_are_accepted() {
        for columns in [
            &[TS][..],
            &[("n", ColumnType::Int64, None), TS],
            &[
                ("ts", ColumnType::Text, Some(1)),
                ("host", ColumnType::Text, Some(1)),
            ],
            &[],
        ] {
            assert_eq!(checked(columns), Ok(()), "{columns:?}");
        }
    }

    #[test]
    fn misfits_name_their_column() {
        for (columns, expected) in [
            (
                &[TS, ("m", ColumnType::Int64, Some(1))][..],
                "table public.t has no column \"m\"",
            ),
            (
                &[TS, ("n", ColumnType::Float64, Some(1))],
                "column \"n\" of table public.t is int8, which does not accept Float64; send integers (convert a pandas column",
            ),
            (
                &[TS, ("twice", ColumnType::Int64, Some(1))],
                "\"twice\" of table public.t is generated",
            ),
            (
                &[("n", ColumnType::Int64, Some(1))],
                "\"ts\" of table public.t is NOT NULL and has no default",
            ),
            (
                &[("ts", ColumnType::Timestamp, None)],
                "row 1 of the batch (counted from 1) is NULL",
            ),
            (&[TS, ("host", ColumnType::Text, None)], "column \"host\""),
        ] {
            let error = checked(columns).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
