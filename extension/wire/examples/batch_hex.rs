//! Prints a batch as a psql variable, for SQL tests that append one:
//!
//! ```text
//! cargo run -p lanes-wire --example batch_hex -- events ts:Timestamp=0,1000000 service:Text=api,NULL
//! \set events '\\x1000...'
//! ```
//!
//! Each column is `name:Type=value,value,…` with the types of [`ColumnType`]; `NULL` is a NULL,
//! nothing after `=` means no rows. A Uuid is 32 digits; Bytes are the characters themselves; a
//! Float64 may be given by its bits as `0x…`.

use std::error::Error;

use lanes_wire::{BatchBuilder, ColumnBuffer, ColumnType};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let variable = arguments
        .next()
        .ok_or("usage: batch_hex VARIABLE COLUMN...")?;
    let mut builder = BatchBuilder::new();
    for argument in arguments {
        let (head, values) = argument
            .split_once('=')
            .ok_or("a column is name:Type=values")?;
        let (name, type_name) = head.split_once(':').ok_or("a column is name:Type=values")?;
        let column_type = ColumnType::ALL
            .into_iter()
            .find(|one| one.name() == type_name)
            .ok_or("unknown type")?;
        let index = builder.add_column(name, column_type)?;
        for value in values.split(',').filter(|_| !values.is_empty()) {
            push(builder.column(index), value)?;
        }
    }
    let mut batch = Vec::new();
    builder.finish(&mut batch)?;
    let hex: String = batch.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("\\set {variable} '\\\\x{hex}'");
    Ok(())
}

fn push(column: &mut ColumnBuffer, value: &str) -> Result<(), Box<dyn Error>> {
    if value == "NULL" {
        column.push_null();
        return Ok(());
    }
    match column.column_type() {
        ColumnType::Bool => column.push_bool(value.parse()?)?,
        ColumnType::Int16 => column.push_i16(value.parse()?)?,
        ColumnType::Int32 | ColumnType::Date => column.push_i32(value.parse()?)?,
        ColumnType::Int64 | ColumnType::Timestamp => column.push_i64(value.parse()?)?,
        ColumnType::Float32 => column.push_f32(value.parse()?)?,
        ColumnType::Float64 => column.push_f64(match value.strip_prefix("0x") {
            Some(bits) => f64::from_bits(u64::from_str_radix(bits, 16)?),
            None => value.parse()?,
        })?,
        ColumnType::Uuid => column.push_uuid(u128::from_str_radix(value, 16)?.to_be_bytes())?,
        ColumnType::Text => column.push_text(value)?,
        ColumnType::Bytes => column.push_bytes(value.as_bytes())?,
    }
    Ok(())
}
