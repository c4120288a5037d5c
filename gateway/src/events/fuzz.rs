//! The fuzzing entries: any bytes, as a body in JSON or Arrow. The code must return for any input,
//! and its result must be a batch within the limits.

use lanes_wire::BatchView;

use super::format::Malformed;
use super::{arrow, json};
use crate::model::{ColumnKind, Room, Table, TableColumn};

const ROWS_MAX: usize = 1_000;
const BYTES_MAX: usize = 1 << 20;

/// Returns a table with a column of every kind, named after it.
fn table() -> Table {
    let types = [
        "bool",
        "int2",
        "int4",
        "int8",
        "float4",
        "float8",
        "numeric",
        "timestamptz",
        "date",
        "uuid",
        "text",
        "bytea",
        "jsonb",
        "inet",
    ];
    Table {
        oid: 16_384,
        name: "public.events".to_owned(),
        may_insert: true,
        columns: types.map(|name| TableColumn::nullable(name, name)).into(),
    }
}

/// Decodes `data` as JSON. Panics only if a guarantee is broken.
pub fn exercise_json(data: &[u8]) {
    let (mut out, room) = (Vec::new(), &mut Room::boundless());
    check(
        json::decode(data, &table(), ROWS_MAX, BYTES_MAX, room, &mut out),
        &out,
    );
    check_columns(json::columns(data, ROWS_MAX));
}

/// Decodes `data` as an Arrow stream. Panics only if a guarantee is broken.
pub fn exercise_arrow(data: &[u8]) {
    let (mut out, room) = (Vec::new(), &mut Room::boundless());
    check(
        arrow::decode(data, &table(), ROWS_MAX, BYTES_MAX, room, &mut out),
        &out,
    );
    check_columns(arrow::columns(data, ROWS_MAX));
}

/// Checks the columns of a table for the body.
fn check_columns(columns: Result<Vec<(String, ColumnKind)>, Malformed>) {
    if let Err(malformed) = columns {
        let text = malformed.to_string();
        assert!(text.len() < 2_000, "messages are short: {text}");
    }
}

fn check(decoded: Result<usize, Malformed>, out: &[u8]) {
    match decoded {
        Ok(rows) => {
            let view = BatchView::verify(out).expect("what was decoded is a batch");
            assert_eq!(view.rows(), rows);
            assert!(rows <= ROWS_MAX, "rows are bounded");
            let columns_bytes = 512 * (1 + view.columns().len());
            assert!(out.len() <= BYTES_MAX + columns_bytes, "bytes are bounded");
        }
        Err(malformed) => {
            let text = malformed.to_string();
            assert!(text.len() < 2_000, "messages are short: {text}");
            assert!(out.is_empty(), "a fault leaves the old batch");
        }
    }
}
