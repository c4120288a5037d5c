//! Packs the label sets of a row of `lanes.series_runs` into one compressed value, and unpacks them.
//!
//! Such a row is usually smaller than the size at which PostgreSQL starts to compress, and its
//! label sets differ in a few letters, so they take a fraction of the space when packed. A packed
//! value is UTF-8 in any database, because a dump converts the encoding of text but not of bytes.

use std::borrow::Cow;

use lanes_columnar::encoding::{pack_items, unpack_items};
use pgrx::prelude::*;

use crate::error;
use crate::pg::text::{self, ServerText};

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
fn label_sets(packed: &[u8]) -> Vec<ServerText> {
    let mut sets = Vec::new();
    unpack(packed, |set| sets.push(ServerText::of_utf8(set.as_bytes())));
    sets
}

/// Calls `visit` with each packed label set.
pub fn unpack(packed: &[u8], mut visit: impl FnMut(&str)) {
    unpack_wanted(packed, |_| true, |_, set| visit(set));
}

/// Calls `visit` with the place and the text of each packed label set that is wanted at its place.
pub fn unpack_wanted(
    packed: &[u8],
    is_wanted: impl Fn(u32) -> bool,
    mut visit: impl FnMut(u32, &str),
) {
    let (mut place, mut is_text) = (0, true);
    let unpacked = unpack_items(packed, |set| {
        if is_wanted(place) {
            match std::str::from_utf8(set) {
                Ok(set) if is_text && !set.contains('\0') => visit(place, set),
                _ => is_text = false,
            }
        }
        place += 1;
    });
    let failure = match unpacked {
        Ok(()) if is_text => return,
        Ok(()) => "they are not text".to_owned(),
        Err(failure) => failure.to_string(),
    };
    error::raise(
        PgSqlErrorCode::ERRCODE_INVALID_BINARY_REPRESENTATION,
        format!("the label sets cannot be unpacked: {failure}"),
        "lanes.pack_label_sets() makes such values.",
    )
}
