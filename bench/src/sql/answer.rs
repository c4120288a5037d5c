//! Answers of queries as values, and their comparison.
//!
//! Rows have no order: both sides are first sorted by their exact values. Each query's rows differ
//! in these values, or there is only one row. A floating-point number may differ by [`TOLERANCE`]
//! times the expected number, because engines add in different orders. Integers, times and text may
//! not differ.

use serde_json::Value as Json;
use std::cmp::Ordering;

/// The greatest difference of a floating-point number, as a share of the expected number.
pub const TOLERANCE: f64 = 1e-9;

/// One value of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// SQL's NULL.
    Null,
    /// A count, an integer, or a time in microseconds since the Unix epoch.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// Text.
    Text(String),
}

/// Rows of values.
pub type Answer = Vec<Vec<Value>>;

/// Compares an answer with the expected one.
///
/// # Errors
/// The first difference, in words.
pub fn verify(expected: &Answer, actual: &Answer) -> Result<(), String> {
    if expected.len() != actual.len() {
        return Err(format!(
            "{} rows instead of {}",
            actual.len(),
            expected.len()
        ));
    }
    let (expected, actual) = (sorted(expected), sorted(actual));
    for (row, (expected, actual)) in expected.iter().zip(&actual).enumerate() {
        if expected.len() != actual.len() {
            return Err(format!(
                "{} columns instead of {}",
                actual.len(),
                expected.len()
            ));
        }
        for (column, (expected, actual)) in expected.iter().zip(actual.iter()).enumerate() {
            if !is_equal(expected, actual) {
                return Err(format!(
                    "row {row}, column {column}: {actual:?} instead of {expected:?}"
                ));
            }
        }
    }
    Ok(())
}

/// Whether a value is the expected one. SQL's `sum` has several types: an integer may be expected
/// and arrive as a floating-point number if it is exact, and the other way round.
fn is_equal(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Null, Value::Null) => true,
        (Value::Integer(left), Value::Integer(right)) => left == right,
        (Value::Integer(left), Value::Float(right)) => *left as f64 == *right,
        (Value::Float(left), Value::Integer(right)) => is_near(*left, *right as f64),
        (Value::Float(left), Value::Float(right)) => is_near(*left, *right),
        (Value::Text(left), Value::Text(right)) => left == right,
        _ => false,
    }
}

fn is_near(expected: f64, actual: f64) -> bool {
    expected == actual || (expected - actual).abs() <= TOLERANCE * expected.abs()
}

/// Returns the rows, ordered by their columns from left to right.
fn sorted(answer: &Answer) -> Vec<&[Value]> {
    let mut rows: Vec<&[Value]> = answer.iter().map(Vec::as_slice).collect();
    rows.sort_by(|left, right| {
        let pairs = left.iter().zip(right.iter());
        pairs
            .map(|(left, right)| compare(left, right))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    });
    rows
}

fn compare(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Integer(_) | Value::Float(_) => 1,
        Value::Text(_) => 2,
    };
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
        (Value::Integer(left), Value::Float(right)) => (*left as f64).total_cmp(right),
        (Value::Float(left), Value::Integer(right)) => left.total_cmp(&(*right as f64)),
        (Value::Float(left), Value::Float(right)) => left.total_cmp(right),
        (Value::Text(left), Value::Text(right)) => left.cmp(right),
        _ => rank(left).cmp(&rank(right)),
    }
}

/// Reads an answer in the peers' format, a list of lists.
pub fn from_json(json: &Json) -> Result<Answer, String> {
    let list = |json: &Json| {
        json.as_array()
            .cloned()
            .ok_or_else(|| format!("an answer is a list of lists, not {json}"))
    };
    list(json)?
        .iter()
        .map(|row| list(row)?.iter().map(value_from_json).collect())
        .collect()
}

fn value_from_json(json: &Json) -> Result<Value, String> {
    match json {
        Json::Null => Ok(Value::Null),
        Json::Bool(value) => Ok(Value::Integer(i64::from(*value))),
        Json::String(text) => Ok(Value::Text(text.clone())),
        Json::Number(number) => number
            .as_i64()
            .map(Value::Integer)
            .or_else(|| number.as_f64().map(Value::Float))
            .ok_or_else(|| format!("the number {number} is too large")),
        other => Err(format!("{other} is not a value of an answer")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Value::{Float, Integer, Null, Text};

    fn one(value: Value) -> Answer {
        vec![vec![value]]
    }

    #[test]
    fn only_floats_may_differ_and_only_by_the_tolerance() {
        assert!(verify(&one(Float(1e6)), &one(Float(1e6 + 5e-4))).is_ok());
        assert!(verify(&one(Float(1e6)), &one(Float(1e6 + 2e-3))).is_err());
        assert!(verify(&one(Float(-2.0)), &one(Float(2.0))).is_err());
        assert!(verify(&one(Float(0.0)), &one(Float(1e-300))).is_err());
        assert!(verify(&one(Float(1.0)), &one(Float(f64::NAN))).is_err());
        assert!(verify(&one(Float(2.0)), &one(Integer(2))).is_ok());
        assert!(verify(&one(Integer(2)), &one(Float(2.0 + 1e-12))).is_err());
        // One microsecond of a present-day time is less than the tolerance of a float.
        assert!(
            verify(
                &one(Integer(1_767_225_600_000_000)),
                &one(Integer(1_767_225_600_000_001))
            )
            .is_err()
        );
        assert!(verify(&one(Null), &one(Float(0.0))).is_err());
        assert!(verify(&one(Null), &one(Null)).is_ok());
        assert!(verify(&one(Text("a".into())), &one(Text("b".into()))).is_err());
    }

    #[test]
    fn rows_are_compared_without_order_but_with_their_count() {
        let rows = |names: &[&str]| {
            names
                .iter()
                .map(|name| vec![Text((*name).into()), Float(1.0)])
                .collect::<Answer>()
        };
        assert!(verify(&rows(&["a", "b"]), &rows(&["b", "a"])).is_ok());
        assert!(verify(&rows(&["a", "b"]), &rows(&["a"])).is_err());
        assert!(verify(&rows(&["a", "b"]), &rows(&["a", "a"])).is_err());
        assert!(verify(&rows(&["a"]), &vec![vec![Text("a".into())]]).is_err());
    }

    #[test]
    fn json_distinguishes_integers_from_floats() {
        let json = serde_json::json!([[1, 1.5, "x", null, 1767225600000001i64]]);
        let expected = vec![
            Integer(1),
            Float(1.5),
            Text("x".into()),
            Null,
            Integer(1_767_225_600_000_001),
        ];
        assert_eq!(from_json(&json), Ok(vec![expected]));
        assert!(from_json(&serde_json::json!({"rows": []})).is_err());
        assert!(from_json(&serde_json::json!([[[1]]])).is_err());
    }
}
