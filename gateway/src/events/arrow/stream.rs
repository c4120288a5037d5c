//! The record batches of a stream, collected into columns.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, DataType, Field};
use lanes_wire::{encode, limits};

use super::append::Budget;
use super::column::Column;
use super::messages;
use crate::events::format::Malformed;
use crate::model::{ColumnKind, Room, Table};

/// Decodes all record batches of an Arrow IPC stream, replaces `out` by the batch, and returns the
/// number of rows. On an error `out` is unchanged.
///
/// There may be at most `rows_max` rows, and the columns take at most `bytes_max` bytes. Reading
/// takes up to twice the length of the body in addition. `room` is grown for all of this, except
/// the body, before it is used.
///
/// # Errors
/// Returns the first fault, with its message, or with its row and column.
pub fn decode(
    body: &[u8],
    table: &Table,
    rows_max: usize,
    bytes_max: usize,
    room: &mut Room,
    out: &mut Vec<u8>,
) -> Result<usize, Malformed> {
    let rows_max = rows_max.min(limits::ROWS_MAX);
    let bytes_max = bytes_max.min(limits::BATCH_BYTES_MAX);
    let read = || {
        let mut budget = Budget::new(body.len(), bytes_max, room);
        budget.begin()?;
        messages::check(body, rows_max)?;
        read(body, table, budget)
    };
    // Nothing that the closure changes survives a panic in it, except the room, which is valid at
    // any time.
    let (columns, rows) =
        catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(contradiction()))?;
    let sources: Vec<_> = columns.iter().map(Column::source).collect();
    encode(rows, &sources, out)?;
    Ok(rows)
}

/// Returns the columns of a table for such streams, by the schema of this stream. Columns of the
/// type `arrow.uuid` are uuids, decimals are numerics.
///
/// # Errors
/// Returns the faults that [`decode`] finds regardless of the table, and a column of type Null.
pub fn columns(body: &[u8], rows_max: usize) -> Result<Vec<(String, ColumnKind)>, Malformed> {
    let read = || {
        messages::check(body, rows_max)?;
        let reader = StreamReader::try_new(body, None).map_err(|error| broken("schema", error))?;
        let schema = reader.schema();
        schema
            .fields()
            .iter()
            .map(|field| column_of(field))
            .collect()
    };
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(contradiction()))
}

fn column_of(field: &Field) -> Result<(String, ColumnKind), Malformed> {
    let name = field.name();
    let is_uuid = field.extension_type_name() == Some("arrow.uuid");
    let kind = match field.data_type() {
        DataType::Null => {
            return Err(Malformed::NoType {
                column: super::column::clipped(name),
                problem: "it is of type Null",
            });
        }
        DataType::FixedSizeBinary(16) if is_uuid => ColumnKind::Uuid,
        decimal if decimal.is_decimal() => ColumnKind::Numeric,
        other => {
            let column = Column::new(name, other, ColumnKind::Other)?;
            ColumnKind::of_batch(column.column_type())
        }
    };
    Ok((name.clone(), kind))
}

fn broken(part: &str, error: ArrowError) -> Malformed {
    Malformed::Stream {
        problem: format!("{part}: {error}").replace('\n', " "),
    }
}

fn contradiction() -> Malformed {
    Malformed::Stream {
        problem: "its parts are inconsistent".to_owned(),
    }
}

fn read(
    body: &[u8],
    table: &Table,
    mut budget: Budget<'_>,
) -> Result<(Vec<Column>, usize), Malformed> {
    let mut reader = StreamReader::try_new(body, None).map_err(|error| broken("schema", error))?;
    let mut columns = Vec::new();
    for field in reader.schema().fields() {
        let Some(place) = table.place(field.name()) else {
            return Err(Malformed::UnknownColumn {
                table: table.name.clone(),
                name: super::column::clipped(field.name()),
            });
        };
        let kind = table.columns[place].kind;
        columns.push(Column::new(field.name(), field.data_type(), kind)?);
    }
    let mut rows = 0;
    for (number, batch) in (1..).zip(&mut reader) {
        let batch = batch.map_err(|error| broken(&format!("record batch {number}"), error))?;
        for (column, array) in columns.iter_mut().zip(batch.columns()) {
            column.append(array, rows, &mut budget)?;
        }
        rows += batch.num_rows();
    }
    Ok((columns, rows))
}
