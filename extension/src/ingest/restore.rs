//! A segment's image, as it lay in object storage, becomes rows of a table again: one run of the current transaction.
//!
//! The table has the columns that the image's table had, at the same places, dropped ones too. Columns that it has more
//! get the value that rows from before them have, or else their defaults, where these are values of no function. What the rows had to
//! satisfy they satisfied when they were first inserted, so no constraint is checked again.
//!
//! The database that wrote the image is gone, and its digests with it, so nothing vouches for the bytes. All that
//! decoding relies on is verified: the form of each lane, the header of each varlena, that text is text of the
//! database's encoding, and that a name ends. What a value of another type says inside itself (a numeric, a jsonb, an
//! array, a range, a type of an extension) PostgreSQL has no function to verify, and it is taken on trust. That is why
//! nobody but superusers may call this, and why `lanes-gateway restore` asks whether the store is trusted.

use lanes_columnar::column::Column;
use lanes_columnar::image::Image;
use lanes_columnar::kind::LaneKind;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::target::Target;
use crate::error;
use crate::pg::{datum, ports, text};
use crate::table::runs::Shape;
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
            if has_names((*relation).rd_att, index) && !do_names_end(column) {
                refuse(&format!("column {}: a name has no end", index + 1));
            }
        }
        let command = pg_sys::GetCurrentCommandId(true);
        insert::insert_columns(relation, &shape.kinds, &columns, parsed.rows(), command, 0);
        parsed.rows() as i64
    }
}

/// Whether a column is of type name or of a domain over it.
///
/// # Safety
/// `descriptor` is a live tuple descriptor with such a column.
unsafe fn has_names(descriptor: pg_sys::TupleDesc, column: usize) -> bool {
    // SAFETY: the caller's promise; a catalogue look-up of an existing type, a dropped column has none.
    unsafe {
        let attribute = ports::TupleDescAttr(descriptor, column);
        !attribute.attisdropped && pg_sys::getBaseType(attribute.atttypid) == pg_sys::NAMEOID
    }
}

/// Whether all names of a column end within their bytes, as whoever reads one expects.
fn do_names_end(column: &Column) -> bool {
    let (lane, last) = (column.lane(), pg_sys::NAMEDATALEN as usize - 1);
    // SAFETY: the column is alive, and has these rows, of a type of so many bytes.
    (0..column.rows()).all(|row| unsafe { lane.is_null(row) || *lane.pointer(row).add(last) == 0 })
}

fn refuse(failure: &str) -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
        format!("the image is no segment of this table: {failure}"),
        "The table must have the columns of the one that the segment is from, at the same places; the image must be as it was written.",
    )
}
