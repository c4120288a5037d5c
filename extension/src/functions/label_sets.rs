//! Label sets of a run of Prometheus series as one compressed value, and back.
//!
//! A row of `lanes.series_runs` is mostly below the size at which PostgreSQL begins to compress, and its label sets differ
//! in a few letters: packed they take a fraction.

use lanes_columnar::encoding::{pack_items, unpack_items};
use pgrx::prelude::*;

use crate::error;

/// Packs label sets.
#[pg_extern(sql = r#"
CREATE FUNCTION lanes.pack_label_sets(label_sets text[]) RETURNS bytea
IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION lanes.pack_label_sets(text[]) IS 'label sets as lanes.series_runs has them';
"#)]
fn pack_label_sets(label_sets: Array<&str>) -> Vec<u8> {
    let sets: Option<Vec<&[u8]>> = label_sets
        .iter()
        .map(|set| set.map(str::as_bytes))
        .collect();
    let Some(sets) = sets else {
        error::raise(
            PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            "a label set is NULL",
            "A series without labels has the label set {}.",
        );
    };
    pack_items(sets.into_iter()).unwrap_or_else(|failure| {
        error::raise(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            format!("the label sets cannot be packed: {failure}"),
            "Register fewer series at a time.",
        )
    })
}

/// Unpacks label sets.
#[pg_extern(sql = r#"
CREATE FUNCTION lanes.label_sets(packed bytea) RETURNS text[]
IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION lanes.label_sets(bytea) IS 'label sets of a row of lanes.series_runs, in the order of their ids';
"#)]
fn label_sets(packed: &[u8]) -> Vec<String> {
    let (mut sets, mut is_text) = (Vec::new(), true);
    let unpacked = unpack_items(packed, |set| match std::str::from_utf8(set) {
        Ok(set) => sets.push(set.to_owned()),
        Err(_) => is_text = false,
    });
    let failure = match unpacked {
        Ok(()) if is_text => return sets,
        Ok(()) => "they are no text".to_owned(),
        Err(failure) => failure.to_string(),
    };
    error::raise(
        PgSqlErrorCode::ERRCODE_INVALID_BINARY_REPRESENTATION,
        format!("the label sets cannot be unpacked: {failure}"),
        "Such values are made by lanes.pack_label_sets().",
    )
}
