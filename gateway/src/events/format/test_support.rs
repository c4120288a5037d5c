//! Tables and batches for tests of the formats.

use lanes_wire::{BatchView, ColumnType, ColumnView, Values};

use crate::model::{Table, TableColumn};

/// Returns a table with these columns: names, and types as in `pg_catalog`.
pub(crate) fn table(columns: &[(&str, &str)]) -> Table {
    let columns = columns
        .iter()
        .map(|(name, sql_type)| TableColumn::nullable(name, sql_type))
        .collect();
    Table {
        oid: 16_384,
        name: "public.events".to_owned(),
        may_insert: true,
        columns,
    }
}

/// Returns names and cells in the order of the batch. Bytes and uuids are hexadecimal digits.
pub(crate) fn cells(view: &BatchView<'_>) -> Vec<(String, Vec<Option<String>>)> {
    view.columns()
        .iter()
        .map(|column| {
            let cells = (0..view.rows())
                .map(|row| (!column.is_null(row)).then(|| cell(column, row)))
                .collect();
            (column.name().to_owned(), cells)
        })
        .collect()
}

/// Returns [`cells`], sorted by the names of the columns.
pub(crate) fn cells_by_name(view: &BatchView<'_>) -> Vec<(String, Vec<Option<String>>)> {
    let mut cells = cells(view);
    cells.sort();
    cells
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn cell(column: &ColumnView<'_>, row: usize) -> String {
    let values = column.values();
    match column.column_type() {
        ColumnType::Bool => match values {
            Values::Bool(bits) => bits.get(row).to_string(),
            _ => unreachable!("the view has checked it"),
        },
        ColumnType::Int16 => i16::from_le_bytes(values.arrays().unwrap()[row]).to_string(),
        ColumnType::Int32 | ColumnType::Date => {
            i32::from_le_bytes(values.arrays().unwrap()[row]).to_string()
        }
        ColumnType::Int64 | ColumnType::Timestamp => {
            i64::from_le_bytes(values.arrays().unwrap()[row]).to_string()
        }
        ColumnType::Float32 => {
            format!("{:?}", f32::from_le_bytes(values.arrays().unwrap()[row]))
        }
        ColumnType::Float64 => {
            format!("{:?}", f64::from_le_bytes(values.arrays().unwrap()[row]))
        }
        ColumnType::Uuid => hex(&values.arrays::<16>().unwrap()[row]),
        ColumnType::Bytes => hex(column.item(row).unwrap()),
        ColumnType::Text => String::from_utf8(column.item(row).unwrap().to_vec()).unwrap(),
    }
}
