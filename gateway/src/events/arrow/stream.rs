//! A stream's record batches, one after another into columns.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_ipc::reader::StreamReader;
use arrow_schema::ArrowError;
use lanes_wire::{encode, limits};

use super::append::Budget;
use super::column::Column;
use super::messages;
use crate::events::{Malformed, Table};

/// Replaces `out` by the batch that an Arrow IPC stream says, all its record batches together, and gives its rows. On an error `out` is
/// unchanged.
///
/// At most `rows_max` rows, and columns of at most `bytes_max` bytes; reading takes up to twice the body's length on top.
///
/// # Errors
/// The first fault, with its message, or its row and column.
pub fn decode(
    body: &[u8],
    table: &Table,
    rows_max: usize,
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<usize, Malformed> {
    let rows_max = rows_max.min(limits::ROWS_MAX);
    let bytes_max = bytes_max.min(limits::BATCH_BYTES_MAX);
    let read = || {
        messages::check(body, rows_max)?;
        read(body, table, Budget::new(bytes_max))
    };
    // Nothing that the closure changes outlives a panic in it.
    let (columns, rows) = catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(Malformed::Stream {
            problem: "its parts contradict each other".to_owned(),
        })
    })?;
    let sources: Vec<_> = columns.iter().map(Column::source).collect();
    encode(rows, &sources, out)?;
    Ok(rows)
}

fn read(body: &[u8], table: &Table, mut budget: Budget) -> Result<(Vec<Column>, usize), Malformed> {
    let broken = |part: &str, error: ArrowError| Malformed::Stream {
        problem: format!("{part}: {error}").replace('\n', " "),
    };
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
