use super::columns;
use crate::events::format::Malformed;
use crate::events::format::test_support::{cells, table};
use crate::model::{Budget, ColumnKind, Overloaded, Reservation, Room, Table};
use arrow_array::types::{Int8Type, UInt16Type};
use arrow_array::*;
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use lanes_wire::{BatchView, ColumnType, limits};
use proptest::prelude::*;
use std::sync::Arc;

mod faults;
mod properties;
mod types;

const BYTES_MAX: usize = 1 << 24;

fn decode(
    body: &[u8],
    table: &Table,
    rows_max: usize,
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<usize, Malformed> {
    let room = &mut Room::boundless();
    super::decode(body, table, rows_max, bytes_max, room, out)
}

type Columns = Vec<(&'static str, ArrayRef)>;

fn batch(columns: Columns) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

fn stream_of(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

fn stream(columns: Columns) -> Vec<u8> {
    stream_of(&[batch(columns)])
}

fn of_type(sql_type: &str) -> Table {
    table(&[("v", sql_type)])
}

fn fault_of(body: &[u8], table: &Table) -> String {
    let mut out = b"old".to_vec();
    let error = decode(body, table, 100, BYTES_MAX, &mut out).expect_err("malformed");
    assert_eq!(out, b"old", "a fault leaves the old batch");
    let text = error.to_string();
    assert!(!text.contains('\n') && text.len() < 250, "{text}");
    text
}

/// Returns the type and cells of column `v`, which is filled by all of these arrays.
fn column_of(arrays: &[ArrayRef], sql_type: &str) -> (ColumnType, Vec<Option<String>>) {
    let batches: Vec<_> = arrays
        .iter()
        .map(|array| batch(vec![("v", array.clone())]))
        .collect();
    let mut out = Vec::new();
    let rows = decode(
        &stream_of(&batches),
        &of_type(sql_type),
        1000,
        BYTES_MAX,
        &mut out,
    )
    .unwrap();
    let view = BatchView::verify(&out).unwrap();
    assert_eq!(view.rows(), rows);
    (view.columns()[0].column_type(), cells(&view).remove(0).1)
}

fn column(array: impl Array + 'static, sql_type: &str) -> (ColumnType, Vec<Option<String>>) {
    column_of(&[Arc::new(array)], sql_type)
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values
        .iter()
        .map(|value| Some((*value).to_owned()))
        .collect()
}
