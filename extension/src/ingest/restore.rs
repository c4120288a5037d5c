//! A segment's image, as it lay in object storage, becomes rows of a table again: one run of the current transaction.
//!
//! The table has the columns that the image's table had, at the same places, dropped ones too. What the rows had to satisfy they
//! satisfied when they were first inserted, so nothing is checked again.

use lanes_columnar::image::Image;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::target::Target;
use crate::error;
use crate::pg::ports;
use crate::storage::load::Shape;
use crate::table_am::{insert, routine};

/// Inserts the rows of a segment's image; returns how many.
#[pg_extern(sql = false)]
fn restore_segment(target: pg_sys::Oid, image: &[u8]) -> i64 {
    let target = Target::open(target).unwrap_or_else(|refusal| refusal.report());
    target.check_table_privilege();
    let relation = target.relation();
    // SAFETY: the target is open, and locked for writing.
    unsafe {
        if (*relation).rd_tableam != routine::routine() {
            error::raise(
                PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                format!(
                    "\"{}\" is no lanes table",
                    ports::RelationGetRelationName(relation)
                ),
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
        let shape = Shape::of((*relation).rd_att);
        if parsed.columns() > shape.kinds.len() {
            refuse("it has more columns");
        }
        let mut columns = shape.columns();
        for (index, column) in columns.iter_mut().enumerate() {
            let (kind, missing) = (shape.kinds[index], shape.missing[index].as_deref());
            let rows = 0..parsed.rows();
            if let Err(failure) = parsed.decode_range(index, kind, missing, rows, column) {
                refuse(&format!("column {}: {failure}", index + 1));
            }
        }
        let command = pg_sys::GetCurrentCommandId(true);
        insert::insert_columns(relation, &shape.kinds, &columns, parsed.rows(), command, 0);
        parsed.rows() as i64
    }
}

fn refuse(failure: &str) -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
        format!("the image is no segment of this table: {failure}"),
        "The table must have the columns of the one that the segment is from, at the same places.",
    )
}
