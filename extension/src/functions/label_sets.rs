//! Label sets of a run of Prometheus series as one compressed value, and back.
//!
//! A row of `lanes.series_runs` is mostly below the size at which PostgreSQL begins to compress, and its label sets differ
//! in a few letters: packed they take a fraction. A packed value is UTF-8 whatever the database's encoding, because a dump
//! converts text and leaves bytes as they are.

use std::borrow::Cow;

use lanes_columnar::encoding::{pack_items, unpack_items};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::prelude::*;

use crate::error;
use crate::pg::text;

/// A value of type text, in the server's encoding: no Rust string unless that is UTF-8.
struct LabelSet(Vec<u8>);

impl IntoDatum for LabelSet {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        self.0.into_datum()
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}

// SAFETY: the datum that it becomes is of type text.
unsafe impl SqlTranslatable for LabelSet {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(LabelSet);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("text"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("text")));
}

/// Packs label sets.
#[pg_extern(sql = false)]
fn pack_label_sets(label_sets: Array<&[u8]>) -> Vec<u8> {
    let sets: Option<Vec<Cow<[u8]>>> = label_sets
        .iter()
        .map(|set| set.map(text::utf8_text))
        .collect();
    let Some(sets) = sets else {
        error::raise(
            PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            "a label set is NULL",
            "A series without labels has the label set {}.",
        );
    };
    pack_items(sets.iter().map(AsRef::as_ref)).unwrap_or_else(|failure| {
        error::raise(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            format!("the label sets cannot be packed: {failure}"),
            "Register fewer series at a time.",
        )
    })
}

/// Unpacks label sets.
#[pg_extern(sql = false)]
fn label_sets(packed: &[u8]) -> Vec<LabelSet> {
    let (mut sets, mut is_text) = (Vec::new(), true);
    let unpacked = unpack_items(packed, |set| {
        is_text = is_text && !set.contains(&0) && std::str::from_utf8(set).is_ok();
        if is_text {
            sets.push(LabelSet(text::server_text(set).into_owned()));
        }
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
