//! `LIKE` and `ILIKE` with a pattern that stays the same, without a call of PostgreSQL's function for most texts.
//!
//! | condition | test |
//! |---|---|
//! | `x LIKE '%text%'` | a search for bytes: in UTF-8, bytes of a text are found only where a character begins |
//! | `x ILIKE pattern` | `lower(x) LIKE lower(pattern)`, as PostgreSQL defines it for UTF-8 |
//!
//! A text of ASCII characters is put into lower case here, if PostgreSQL's `lower` maps each of these characters as
//! ASCII does. That is asked once for each pattern; it is not so in Turkish, for example. No rule for the lower case
//! of an ASCII character looks at its neighbours, unless these are no ASCII characters. All other texts are left to
//! PostgreSQL.

use lanes_columnar::vector::text::TextTest;
use lanes_columnar::vector::text_search::{Contains, LowerAscii};
use pgrx::pg_sys::{self, Oid};

use super::function_call::FunctionTest;
use super::scalar::{self, RunningNode};
use crate::pg::typed_datum::TypedDatum;
use crate::pg::{datum, text};

/// A test, and whether its result is to be negated.
pub type LikeTest = (Box<dyn TextTest>, bool);

/// The test of a function, by its OID, with a pattern. `None`: PostgreSQL's function has to be called for each text.
pub fn like_test(
    function: u32,
    collation: Oid,
    pattern: TypedDatum,
    node: RunningNode,
) -> Option<LikeTest> {
    let is_negated = matches!(function, pg_sys::F_TEXTNLIKE | pg_sys::F_TEXTICNLIKE);
    let bytes = pattern.bytes()?;
    // SAFETY: reads a setting of the database.
    let is_utf8 = unsafe { pg_sys::GetDatabaseEncoding() } == pg_sys::pg_enc::PG_UTF8 as i32;
    // A pattern that ends with an escape may be an error.
    if !is_utf8 || bytes.ends_with(b"\\") {
        return None;
    }
    let contains = |pattern: &[u8]| -> Option<Box<dyn TextTest>> {
        Contains::wanted(pattern).map(|wanted| Box::new(Contains::new(wanted)) as _)
    };
    let test = match function {
        pg_sys::F_TEXTLIKE | pg_sys::F_TEXTNLIKE => contains(&bytes)?,
        pg_sys::F_TEXTICLIKE | pg_sys::F_TEXTICNLIKE => {
            if !lowers_ascii_alone(collation, node) {
                return None;
            }
            let lowered = lower(pattern, collation, node);
            let of_lowered = match contains(&lowered.bytes()?) {
                Some(test) => test,
                None => like(pg_sys::F_TEXTLIKE, collation, lowered, node)?,
            };
            let others = like(pg_sys::F_TEXTICLIKE, collation, pattern, node)?;
            Box::new(LowerAscii::new(of_lowered, others))
        }
        _ => return None,
    };
    Some((test, is_negated))
}

/// PostgreSQL's own function as a test.
fn like(
    function: u32,
    collation: Oid,
    pattern: TypedDatum,
    node: RunningNode,
) -> Option<Box<dyn TextTest>> {
    let test = FunctionTest::new(function, collation, pattern, false, node)?;
    Some(Box::new(test))
}

/// Whether PostgreSQL's `lower` maps ASCII characters as ASCII does.
fn lowers_ascii_alone(collation: Oid, node: RunningNode) -> bool {
    let all: Vec<u8> = (1..128).collect();
    let mut item = Vec::new();
    datum::item_from_payload(&all, true, &mut item);
    // SAFETY: a new text of the server's encoding, of which ASCII is a part.
    let text = unsafe { TypedDatum::new(text::allocated(&item), pg_sys::TEXTOID) };
    let lowered = lower(text, collation, node).bytes();
    lowered.is_some_and(|lowered| *lowered == *all.to_ascii_lowercase())
}

/// A text in lower case, in memory that lives until the node starts again.
fn lower(text: TypedDatum, collation: Oid, node: RunningNode) -> TypedDatum {
    // SAFETY: the function takes a text and returns one; the memory is the node's.
    unsafe {
        let before = pg_sys::MemoryContextSwitchTo(scalar::memory(node.as_ptr()));
        let function = pg_sys::F_LOWER_TEXT.into();
        let lowered = pg_sys::OidFunctionCall1Coll(function, collation, text.datum());
        pg_sys::MemoryContextSwitchTo(before);
        TypedDatum::new(lowered, pg_sys::TEXTOID)
    }
}
