//! The image of a segment, as it was in object storage, becomes rows of a table again: one run of
//! the current transaction.
//!
//! The table has the columns of the image's table in the same places, including dropped columns. It
//! may have more. These get the value that older rows have, or else their default, if that is not a
//! function call. The rows satisfied all constraints when they were first inserted, so none is
//! checked again but those of unique indexes and exclusion constraints, whose entries are made.
//!
//! The database that wrote the image is gone, and its digests with it, so nothing vouches for the
//! bytes. Everything that decoding relies on is verified: the form of each lane, the header of each
//! varlena, the encoding of texts, and the end of each name. PostgreSQL has no function to verify
//! the inside of a value of another type (a numeric, a jsonb, an array, a range, a type of an
//! extension), which is therefore taken on trust. So only superusers may call this function, and
//! `lanes-gateway restore` asks whether the store is trusted.

use lanes_columnar::column::Column;
use lanes_columnar::image::Image;
use lanes_columnar::kind::LaneKind;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::target::AppendTarget;
use crate::error;
use crate::pg::descriptor::{Attribute, base_type};
use crate::pg::{datum, text, transaction, whole_error};
use crate::table::insert;
use crate::table::run_indexes::RunIndexes;
use crate::table::shape::TableShape;

/// Inserts the rows of a segment's image. Returns their number.
#[pg_extern(sql = false)]
fn restore_segment(target: pg_sys::Oid, image: &[u8]) -> i64 {
    whole_error::whole(|| restore(target, image))
}

fn restore(target: pg_sys::Oid, image: &[u8]) -> i64 {
    let target = AppendTarget::open(target).unwrap_or_else(|refusal| refusal.report());
    target.check_table_privilege();
    let table = target.table();
    if !table.is_lanes() {
        error::raise(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a lanes table", table.name()),
            "Only rows of lanes tables are kept in segments.",
        );
    }
    let parsed = match Image::parse(image) {
        Ok(parsed) => parsed,
        Err(failure) => refuse(&failure.to_string()),
    };
    if parsed.rows() == 0 {
        return 0;
    }
    let shape = TableShape::of(table.descriptor());
    check_items(&parsed, &shape);
    if parsed.columns() > shape.kinds.len() {
        refuse("it has more columns");
    }
    let mut columns = shape.columns();
    for (index, column) in columns.iter_mut().enumerate() {
        let kind = shape.kinds[index];
        let mut missing = shape.missing[index].clone();
        if missing.is_none() && index >= parsed.columns() {
            missing = target.value_of_all(index, kind);
        }
        let rows = 0..parsed.rows();
        let decoded = parsed.decode_range(index, kind, missing.as_deref(), rows, column);
        if let Err(failure) = decoded {
            refuse(&format!("column {}: {failure}", index + 1));
        }
        if has_names(table.descriptor().attribute(index)) && !do_names_end(column) {
            refuse(&format!("column {}: a name has no end", index + 1));
        }
    }
    let command = transaction::writing_command();
    let rows = parsed.rows();
    let first_row = insert::insert_columns(table, &shape.kinds, &columns, rows, command, 0);
    let indexes = RunIndexes::open(table);
    indexes.enter(table, &columns, rows, command, first_row);
    indexes.close();
    rows as i64
}

/// Refuses an image unless everything that decoding relies on is sound.
fn check_items(parsed: &Image<'_>, shape: &TableShape) {
    let is_sound = |column: usize, item: &[u8]| {
        let is_text = matches!(
            shape.kinds.get(column),
            Some(LaneKind::Varlena {
                dictionary: true,
                ..
            })
        );
        datum::is_item(item) && (!is_text || text::is_server_text(datum::payload_of_item(item)))
    };
    if let Err(failure) = parsed.verify_sealed(is_sound) {
        refuse(&failure.to_string());
    }
}

/// Whether a column is of type name or of a domain over it.
fn has_names(attribute: &Attribute) -> bool {
    !attribute.attisdropped && base_type(attribute.atttypid) == pg_sys::NAMEOID
}

/// Whether all names of a column end within their bytes, as readers of names expect.
fn do_names_end(column: &Column) -> bool {
    let last = pg_sys::NAMEDATALEN as usize - 1;
    (0..column.rows())
        .all(|row| datum::fixed_bytes(column, row).is_none_or(|name| name.get(last) == Some(&0)))
}

fn refuse(failure: &str) -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
        format!("the image is no segment of this table: {failure}"),
        "The table must have the columns of the one that the segment is from, at the same places; the image must be as it was written.",
    )
}
