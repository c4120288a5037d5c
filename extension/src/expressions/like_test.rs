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

use super::scalar::RunningNode;
use crate::pg::exec::function_call::FunctionTest;
use crate::pg::text;
use crate::pg::typed_datum::TypedDatum;

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
    // A pattern that ends with an escape may be an error.
    if !text::is_server_in_utf8() || bytes.ends_with(b"\\") {
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
            let lowered = lower(pattern, collation, node)?;
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
pub(super) fn lowers_ascii_alone(collation: Oid, node: RunningNode) -> bool {
    let all: Vec<u8> = (1..128).collect();
    // ASCII is a part of every encoding of servers.
    let lowered = lower(TypedDatum::text(&all), collation, node).and_then(TypedDatum::bytes);
    lowered.is_some_and(|lowered| *lowered == *all.to_ascii_lowercase())
}

/// A text in lower case, in memory that lives until the node starts again.
fn lower(text: TypedDatum, collation: Oid, node: RunningNode) -> Option<TypedDatum> {
    node.memory().enter(|| text.lowered(collation))
}
