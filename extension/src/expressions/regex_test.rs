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
    collation != pg_sys::InvalidOid && read(function, pattern).is_some()
}

fn read(function: u32, pattern: TypedDatum) -> Option<Pattern> {
    let (ignores_case, _) = kind(function)?;
    Pattern::read(&pattern.bytes()?, ignores_case)
}

/// The test of a function, by its OID, with a pattern for which [`is_tested`] holds.
pub fn regex_test(
    function: u32,
    collation: Oid,
    pattern: TypedDatum,
    node: RunningNode,
) -> Option<LikeTest> {
    let (ignores_case, is_negated) = kind(function)?;
    let read = read(function, pattern)?;
    let positive = match ignores_case {
        false => pg_sys::F_TEXTREGEXEQ,
        true => pg_sys::F_TEXTICREGEXEQ,
    };
    let others = FunctionTest::new(positive, collation, pattern, false, node)?;
    let mut classes = read.classes().iter();
    let is_usual = classes.all(|class| is_usual(*class, collation))
        && (!ignores_case || lowers_ascii_alone(collation, node));
    let test: Box<dyn TextTest> = match is_usual {
        true => Box::new(Matches::new(read, Box::new(others))),
        false => Box::new(others),
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
