//! Conditions on labels, as the planner passes them to [`lanes.metric_series()`](super::metric_series).
//!
//! ```text
//! condition   label | test | collation | number of values | values …
//! test        IS NULL, IS NOT NULL, or an operator with ANY or ALL: `= ANY`, `<> ALL`, `~~ ANY` …
//! ```
//! A label meets a condition if the operator is true with any of the values, or with all of them.
//! Equality of texts is a look-up. Every other operator is PostgreSQL's own function, which is
//! called once for each value of the label in a run of the index, but not before a series is found
//! for which the query would call it.
//!
//! The query checks each series again, so a condition that excludes few series is ignored.

use lanes_labels::index;
use lanes_labels::{IdSet, METRIC_NAME, Matcher};
use pgrx::pg_sys;
use pgrx::prelude::PgSqlErrorCode;

use super::source::{Run, RunBlocks, sound};
use crate::error;
use crate::pg::catalog;
use crate::pg::text;
use crate::pg::text_predicate::TextTest;

/// The operators on texts that conditions may use, and their functions.
const OPERATORS: [(&str, u32); 15] = [
    ("=", pg_sys::F_TEXTEQ),
    ("<>", pg_sys::F_TEXTNE),
    ("~~", pg_sys::F_TEXTLIKE),
    ("!~~", pg_sys::F_TEXTNLIKE),
    ("~~*", pg_sys::F_TEXTICLIKE),
    ("!~~*", pg_sys::F_TEXTICNLIKE),
    ("~", pg_sys::F_TEXTREGEXEQ),
    ("!~", pg_sys::F_TEXTREGEXNE),
    ("~*", pg_sys::F_TEXTICREGEXEQ),
    ("!~*", pg_sys::F_TEXTICREGEXNE),
    ("<", pg_sys::F_TEXT_LT),
    ("<=", pg_sys::F_TEXT_LE),
    (">", pg_sys::F_TEXT_GT),
    (">=", pg_sys::F_TEXT_GE),
    ("^@", pg_sys::F_STARTS_WITH),
];
/// The operators whose pattern must not end with a backslash.
const LIKES: [u32; 4] = [
    pg_sys::F_TEXTLIKE,
    pg_sys::F_TEXTNLIKE,
    pg_sys::F_TEXTICLIKE,
    pg_sys::F_TEXTICNLIKE,
];
/// The number of values of a label that are tested to exclude one series, which takes about as long as to read it.
const VALUES_A_SERIES: u64 = 16;
/// The number of values of a label that are tested even if there are few series.
const VALUES_MIN: u64 = 64;

/// The name of an operator that a condition may use, by its function.
pub fn operator(function: pg_sys::Oid) -> Option<&'static str> {
    let known = OPERATORS.iter();
    let found = known.clone().find(|(_, known)| *known == function.to_u32());
    found.map(|(name, _)| *name)
}

/// A condition by PostgreSQL's own operators.
pub struct Condition {
    label: String,
    test: Test,
}

enum Test {
    IsNull,
    IsNotNull,
    Any(Vec<TextTest>),
    All(Vec<TextTest>),
}

/// The conditions in an argument: look-ups, and all others.
pub fn read(texts: &[Option<String>]) -> (Vec<Matcher>, Vec<Condition>) {
    let (mut matchers, mut conditions) = (Vec::new(), Vec::new());
    let mut rest = texts;
    while !rest.is_empty() {
        let Some((label, test, collation, values, next)) = split(rest) else {
            error::raise(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                "conditions of lanes.metric_series() are not complete",
                "Omit them: the planner adds them.",
            );
        };
        rest = next;
        // NULL equals nothing. With ALL, dropping it makes the condition weaker, which is permitted.
        let values: Vec<&str> = values.iter().flatten().map(String::as_str).collect();
        let label = label.to_owned();
        if test == "= ANY" && is_deterministic(collation) {
            let values = values.into_iter().map(str::to_owned).collect();
            matchers.push(Matcher::one_of(label, values));
        } else if let Some(test) = Test::new(test, collation, &values) {
            conditions.push(Condition { label, test });
        }
    }
    (matchers, conditions)
}

type Split<'t> = (
    &'t str,
    &'t str,
    pg_sys::Oid,
    &'t [Option<String>],
    &'t [Option<String>],
);

/// The parts of the first condition, and the texts after it.
fn split(texts: &[Option<String>]) -> Option<Split<'_>> {
    let [
        Some(label),
        Some(test),
        Some(collation),
        Some(count),
        rest @ ..,
    ] = texts
    else {
        return None;
    };
    let (values, next) = rest.split_at_checked(count.parse().ok()?)?;
    let collation = pg_sys::Oid::from(collation.parse::<u32>().ok()?);
    Some((label, test, collation, values, next))
}

fn is_deterministic(collation: pg_sys::Oid) -> bool {
    collation != pg_sys::InvalidOid && catalog::is_deterministic(collation)
}

impl Test {
    /// A test; `None` if it is unknown, or if it might raise an error for some values.
    fn new(test: &str, collation: pg_sys::Oid, values: &[&str]) -> Option<Test> {
        match test {
            "IS NULL" => return Some(Test::IsNull),
            "IS NOT NULL" => return Some(Test::IsNotNull),
            _ => {}
        }
        let (operator, quantifier) = test.split_once(' ')?;
        let known = OPERATORS.iter().find(|(name, _)| *name == operator);
        let function = known.map(|(_, function)| *function)?;
        // Such a pattern is an error as soon as a text matches all before the backslash.
        let trailing = |value: &&str| value.len() - value.trim_end_matches('\\').len();
        if LIKES.contains(&function) && values.iter().any(|value| trailing(value) % 2 == 1) {
            return None;
        }
        let tests = values.iter().map(|value| {
            let value = text::server_text(value.as_bytes());
            TextTest::new(pg_sys::Oid::from(function), collation, &value)
        });
        match quantifier {
            "ANY" => Some(Test::Any(tests.collect::<Option<_>>()?)),
            "ALL" => Some(Test::All(tests.collect::<Option<_>>()?)),
            _ => None,
        }
    }

    /// The number of texts that a value is compared with.
    fn elements(&self) -> u64 {
        match self {
            Test::Any(tests) | Test::All(tests) => tests.len() as u64,
            Test::IsNull | Test::IsNotNull => 0,
        }
    }

    fn passes(&mut self, value: &str) -> bool {
        let value = text::server_text(value.as_bytes());
        match self {
            Test::Any(tests) => tests.iter_mut().any(|test| test.passes(&value)),
            Test::All(tests) => tests.iter_mut().all(|test| test.passes(&value)),
            Test::IsNull | Test::IsNotNull => false,
        }
    }
}

impl Condition {
    /// The series of a run, among some, that may meet the condition.
    pub fn narrow(&mut self, run: &mut Run, series: IdSet) -> IdSet {
        // The label sets that the view shows have no metric. The empty name stands for all series.
        if series.is_empty() || self.label == METRIC_NAME || self.label.is_empty() {
            return series;
        }
        let Run { directory, blocks } = run;
        let name = directory.name(&self.label);
        let has_label = |blocks: &mut RunBlocks| match name {
            Some(name) => sound(index::presence(name, blocks)),
            None => IdSet::new(),
        };
        match &mut self.test {
            Test::IsNull => series - has_label(blocks),
            // A label with an empty value is not NULL, but it is not in the index.
            Test::IsNotNull => series,
            test => {
                // Each value is compared with the elements of a list one by one.
                let values = name.map_or(0, |name| name.values) * test.elements();
                if values > VALUES_MIN + VALUES_A_SERIES * series.len() {
                    return series;
                }
                let without = &series - has_label(blocks);
                let Some(name) = name else {
                    return without;
                };
                let mut values = 0u32;
                let mut is_tested = false;
                let passes = |value: &str| {
                    values += 1;
                    is_tested = true;
                    if values.is_multiple_of(256) {
                        pgrx::check_for_interrupts!();
                    }
                    test.passes(value)
                };
                let found = sound(index::passing(name, blocks, &series, passes));
                // A label set that is not canonical may contain the label with an empty text.
                match without.is_empty() || is_tested && !test.passes("") {
                    true => found,
                    false => found | without,
                }
            }
        }
    }
}
