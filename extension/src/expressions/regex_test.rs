//! Constant regular expressions, without a call of PostgreSQL's function for most texts.
//!
//! A pattern that the engine [reads as PostgreSQL does](Pattern) is tested by the engine on texts of ASCII characters.
//! That PostgreSQL has the usual members of the pattern's classes, and the usual lower case, is asked once for each
//! pattern, because both depend on the collation.

use lanes_columnar::vector::regex_test::{Class, Matches, Pattern};
use lanes_columnar::vector::text::TextTest;
use pgrx::pg_sys::{self, Oid};

use super::like_test::{LikeTest, lowers_ascii_alone};
use super::scalar::RunningNode;
use crate::pg::exec::function_call::FunctionTest;
use crate::pg::text_predicate;
use crate::pg::typed_datum::TypedDatum;

/// How a function, by its OID, tests regular expressions: whether it ignores case, and whether its result is negated.
fn kind(function: u32) -> Option<(bool, bool)> {
    match function {
        pg_sys::F_TEXTREGEXEQ => Some((false, false)),
        pg_sys::F_TEXTREGEXNE => Some((false, true)),
        pg_sys::F_TEXTICREGEXEQ => Some((true, false)),
        pg_sys::F_TEXTICREGEXNE => Some((true, true)),
        _ => None,
    }
}

/// Whether a function, by its OID, tests a regular expression that the engine can test. Such a test raises no error.
pub fn is_tested(function: u32, collation: Oid, pattern: TypedDatum) -> bool {
    let is_covered = || pattern.bytes().is_some_and(|it| Pattern::is_covered(&it));
    collation != pg_sys::InvalidOid && kind(function).is_some() && is_covered()
}

/// The test of a function, by its OID, with a pattern for which [`is_tested`] holds.
pub fn regex_test(
    function: u32,
    collation: Oid,
    pattern: TypedDatum,
    node: RunningNode,
) -> Option<LikeTest> {
    let (ignores_case, is_negated) = kind(function)?;
    let positive = match ignores_case {
        false => pg_sys::F_TEXTREGEXEQ,
        true => pg_sys::F_TEXTICREGEXEQ,
    };
    let others = FunctionTest::new(positive, collation, pattern, false, node)?;
    let has_usual = |read: &Pattern| {
        let mut classes = read.classes().iter();
        classes.all(|class| is_usual(*class, collation))
            && (!ignores_case || lowers_ascii_alone(collation, node))
    };
    let read = Pattern::read(&pattern.bytes()?, ignores_case).filter(has_usual);
    let test: Box<dyn TextTest> = match read {
        Some(read) => Box::new(Matches::new(read, Box::new(others))),
        None => Box::new(others),
    };
    Some((test, is_negated))
}

/// Whether a class has its usual members among the characters of ASCII.
fn is_usual(class: Class, collation: Oid) -> bool {
    let (members, others): (Vec<u8>, Vec<u8>) = (1..128).partition(|c| class.has(*c));
    let all_match = |pattern: String, text: &[u8]| {
        let function = pg_sys::F_TEXTREGEXEQ.into();
        let test = text_predicate::TextTest::new(function, collation, pattern.as_bytes());
        test.is_some_and(|mut test| test.passes(text))
    };
    let set = class.name();
    let negated = set.replacen('[', "[^", 1);
    all_match(format!("^{set}*$"), &members) && all_match(format!("^{negated}*$"), &others)
}
