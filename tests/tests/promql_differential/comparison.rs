//! The comparison of two replies: types, label sets, order, times, values, warnings, refusals.

use crate::query::Query;
use crate::sides::{Class, HttpReply, Reply};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How much two values may differ, relative to the greater one.
const TOLERANCE: f64 = 1e-12;
/// What a comparison may expect of the reference.
#[derive(Debug, Clone, Copy)]
pub struct Strictness {
    /// Whether refusals and warnings have the words of Prometheus 3, and matrices its order.
    pub is_newest: bool,
}

/// Compares the answer of Prometheus over HTTP with another one; returns the first difference.
pub fn compare_over_http(
    query: &Query,
    expected: &HttpReply,
    found: &HttpReply,
    strictness: Strictness,
) -> Result<(), String> {
    compare(query, &expected.reply, &found.reply, strictness)?;
    let (expected, found) = (expected.status, found.status);
    match expected == found {
        true => Ok(()),
        false => Err(format!("status {found}\n  expected {expected}")),
    }
}

/// Compares the reply of Prometheus with another one; returns the first difference.
pub fn compare(
    query: &Query,
    expected: &Reply,
    found: &Reply,
    strictness: Strictness,
) -> Result<(), String> {
    match (expected, found) {
        (Reply::Body(expected), Reply::Body(found)) => {
            bodies(expected, found)?;
            order(query, &expected["data"], &found["data"], strictness)?;
            match strictness.is_newest {
                true => notes(expected, found),
                false => Ok(()),
            }
        }
        (Reply::Body(body), Reply::Refused { text, .. }) => Err(format!(
            "refused: {text}\n  expected {}",
            shortened(&body["data"].to_string())
        )),
        (Reply::Refused { text, .. }, Reply::Body(body)) => Err(format!(
            "found {}\n  expected the error {text}",
            shortened(&body["data"].to_string())
        )),
        (
            Reply::Refused { class, text },
            Reply::Refused {
                class: other,
                text: found,
            },
        ) => {
            if *other == Class::Fault {
                return Err(format!("fails: {found}"));
            }
            if !strictness.is_newest {
                return Ok(());
            }
            let is_same = match class {
                Class::BadData => text == found,
                _ => fault(text) == fault(found),
            };
            match is_same && class == other {
                true => Ok(()),
                false => Err(format!(
                    "refused: {other:?} {found}\n  expected {class:?} {text}"
                )),
            }
        }
    }
}

/// The words of an error of the evaluation before the series that it names. Which of several
/// faults is found first is not defined, so all faults of matching are one.
fn fault(text: &str) -> &str {
    if text.contains("many-to-") || text.starts_with("multiple matches") {
        return "matching";
    }
    let end = text.find(['[', '{', ':', '"']).unwrap_or(text.len());
    &text[..end]
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn bodies(expected: &Value, found: &Value) -> Result<(), String> {
    let (expected, found) = (&expected["data"], &found["data"]);
    let (kind, other) = (&expected["resultType"], &found["resultType"]);
    if kind != other {
        return Err(format!("found the type {other}, expected {kind}"));
    }
    let (expected, found) = (&expected["result"], &found["result"]);
    match kind.as_str() {
        Some("string") => (expected == found)
            .then_some(())
            .ok_or_else(|| format!("found {found}, expected {expected}")),
        Some("scalar") => sample(expected, found),
        _ => series(items(expected), items(found)),
    }
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Compares series as sets of labels, and then the samples of each.
fn series(expected: &[Value], found: &[Value]) -> Result<(), String> {
    let by_labels = |series: &[Value]| -> Result<BTreeMap<String, Value>, String> {
        let mut map = BTreeMap::new();
        for one in series {
            // The keys of a JSON object are sorted here.
            let labels = one["metric"].to_string();
            if map.insert(labels.clone(), one.clone()).is_some() {
                return Err(format!("twice: {labels}"));
            }
        }
        Ok(map)
    };
    let (expected, found) = (by_labels(expected)?, by_labels(found)?);
    if let Some((labels, one)) = found.iter().find(|(key, _)| !expected.contains_key(*key)) {
        let one = shortened(&one.to_string());
        return Err(format!("not expected: {labels}: {one}"));
    }
    for (labels, expected) in &expected {
        let Some(found) = found.get(labels) else {
            let one = shortened(&expected.to_string());
            return Err(format!("missing: {labels}: {one}"));
        };
        let name = |fault: String| format!("{labels}: {fault}");
        if expected.get("value").is_some() {
            sample(&expected["value"], &found["value"]).map_err(name)?;
        } else {
            samples(items(&expected["values"]), items(&found["values"])).map_err(name)?;
        }
    }
    Ok(())
}

/// Compares the order of series, where one is defined. Matrices are sorted by labels, and vectors
/// of some kinds by values, of which equal ones have no order.
fn order(
    query: &Query,
    expected: &Value,
    found: &Value,
    strictness: Strictness,
) -> Result<(), String> {
    let is_matrix = expected["resultType"] == "matrix";
    let (expected, found) = (&expected["result"], &found["result"]);
    for (place, (expected, found)) in items(expected).iter().zip(items(found)).enumerate() {
        let name = |fault: String| format!("order at {place}: {fault}");
        if is_matrix && strictness.is_newest && expected["metric"] != found["metric"] {
            let (expected, found) = (&expected["metric"], &found["metric"]);
            return Err(name(format!("found {found}, expected {expected}")));
        }
        if query.is_sorted() || query.is_sorted_in_groups() && strictness.is_newest {
            let (expected, found) = (&expected["value"], &found["value"]);
            sample(expected, found).map_err(name)?;
        }
    }
    Ok(())
}

fn samples(expected: &[Value], found: &[Value]) -> Result<(), String> {
    for (expected, found) in expected.iter().zip(found) {
        sample(expected, found)?;
    }
    match expected.len() == found.len() {
        true => Ok(()),
        false => {
            let shorter = expected.len().min(found.len());
            let next = expected.get(shorter).or(found.get(shorter));
            Err(format!(
                "found {} samples, expected {}; the first that differs is {}",
                found.len(),
                expected.len(),
                next.unwrap_or(&Value::Null)
            ))
        }
    }
}

/// Compares `[time, "value"]`.
fn sample(expected: &Value, found: &Value) -> Result<(), String> {
    let told = || Err(format!("found {found}, expected {expected}"));
    if millis(&expected[0]) != millis(&found[0]) {
        return told();
    }
    match (number(&expected[1]), number(&found[1])) {
        (Some(expected), Some(found)) if is_near(expected, found) => Ok(()),
        _ => told(),
    }
}

/// Times are written with up to three decimals, which a double holds.
fn millis(time: &Value) -> Option<i64> {
    time.as_f64()
        .map(|seconds| (seconds * 1000.0).round() as i64)
}

fn number(text: &Value) -> Option<f64> {
    text.as_str()?.parse().ok()
}

/// Whether two values are equal but for rounding. NaN equals NaN, and an infinity itself alone. The
/// sign of a zero counts.
fn is_near(a: f64, b: f64) -> bool {
    if a.is_nan() || b.is_nan() {
        return a.is_nan() && b.is_nan();
    }
    if a == b {
        return a != 0.0 || a.is_sign_negative() == b.is_sign_negative();
    }
    a.is_finite() && b.is_finite() && (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
}

/// Compares warnings and infos.
fn notes(expected: &Value, found: &Value) -> Result<(), String> {
    let set = |notes: &Value| -> BTreeSet<String> {
        let notes = items(notes).iter().filter_map(Value::as_str);
        notes.map(without_count).collect()
    };
    for kind in ["warnings", "infos"] {
        let (expected, found) = (set(&expected[kind]), set(&found[kind]));
        // Prometheus omits any of many.
        let omitted = |notes: &BTreeSet<String>| {
            let mut notes = notes.iter();
            notes
                .find(|note| note.ends_with("annotations omitted"))
                .cloned()
        };
        let is_same = match omitted(&expected) {
            None => expected == found,
            count => count == omitted(&found) && expected.len() == found.len(),
        };
        if !is_same {
            return Err(format!("{kind}: found {found:?}, expected {expected:?}"));
        }
    }
    Ok(())
}

/// A note without the number of samples with buckets that had to be fixed, which Prometheus doubles
/// at each step.
fn without_count(note: &str) -> String {
    match (note.find(", over "), note.find(" samples from ")) {
        (Some(start), Some(end)) if start < end => format!("{}{}", &note[..start], &note[end..]),
        _ => note.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Times;
    use serde_json::json;

    const STRICT: Strictness = Strictness { is_newest: true };

    fn query(kind: &'static str, uses: &[&'static str]) -> Query {
        Query {
            text: String::new(),
            kind,
            uses: uses.iter().copied().collect(),
            times: Times::At(0),
            lookback: None,
        }
    }

    fn body(kind: &str, result: Value) -> Reply {
        Reply::Body(json!({"status": "success", "data": {"resultType": kind, "result": result}}))
    }

    fn vector(samples: &[(&str, &str)]) -> Reply {
        let one =
            |(name, value): &(&str, &str)| json!({"metric": {"a": name}, "value": [1, value]});
        body("vector", samples.iter().map(one).collect())
    }

    fn differs(kind: &'static str, expected: &Reply, found: &Reply) -> bool {
        compare(&query(kind, &[]), expected, found, STRICT).is_err()
    }

    #[test]
    fn values_agree_within_the_tolerance_only() {
        let of = |value| vector(&[("x", value)]);
        let is_near = |a, b| !differs("rate", &of(a), &of(b));
        assert!(is_near("1", "1.0000000000001") && !is_near("1", "1.00000000001"));
        assert!(is_near("NaN", "NaN") && !is_near("NaN", "0") && !is_near("0", "NaN"));
        assert!(is_near("+Inf", "+Inf") && !is_near("+Inf", "-Inf") && !is_near("+Inf", "1e308"));
        assert!(is_near("-0", "-0") && !is_near("-0", "0") && !is_near("1e-300", "0"));
    }

    #[test]
    fn series_agree_as_sets_and_as_lists_where_an_order_is_defined() {
        let (ab, ba) = (
            vector(&[("a", "1"), ("b", "2")]),
            vector(&[("b", "2"), ("a", "1")]),
        );
        assert!(!differs("rate", &ab, &ba) && differs("sort", &ab, &ba));
        let ties = (
            vector(&[("a", "1"), ("b", "1")]),
            vector(&[("b", "1"), ("a", "1")]),
        );
        assert!(!differs("sort", &ties.0, &ties.1));
        assert!(differs("rate", &ab, &vector(&[("a", "1")])));
        assert!(differs("rate", &vector(&[("a", "1")]), &ab));
        assert!(differs(
            "rate",
            &ab,
            &vector(&[("a", "1"), ("b", "2"), ("b", "2")])
        ));
        let series = |name: &str| json!({"metric": {"a": name}, "values": [[1, "1"]]});
        let matrix = |names: [&str; 2]| body("matrix", names.iter().map(|n| series(n)).collect());
        assert!(differs("rate", &matrix(["a", "b"]), &matrix(["b", "a"])));
        assert!(!differs("rate", &matrix(["a", "b"]), &matrix(["a", "b"])));
    }

    #[test]
    fn times_numbers_of_samples_and_types_agree() {
        let matrix = |values: Value| body("matrix", json!([{"metric": {}, "values": values}]));
        let two = matrix(json!([[1.5, "1"], [2.5, "1"]]));
        assert!(!differs(
            "rate",
            &two,
            &matrix(json!([[1.500, "1"], [2.500, "1.0"]]))
        ));
        assert!(differs(
            "rate",
            &two,
            &matrix(json!([[1.501, "1"], [2.5, "1"]]))
        ));
        assert!(differs("rate", &two, &matrix(json!([[1.5, "1"]]))));
        assert!(differs(
            "rate",
            &body("scalar", json!([1, "1"])),
            &body("string", json!([1, "1"]))
        ));
        assert!(differs(
            "rate",
            &body("scalar", json!([1, "1"])),
            &body("scalar", json!([2, "1"]))
        ));
    }

    #[test]
    fn refusals_and_notes_agree_in_words() {
        let refused = |class, text: &str| Reply::Refused {
            class,
            text: text.to_owned(),
        };
        let parse = refused(Class::BadData, "1:1: parse error: a");
        assert!(!differs("rate", &parse, &parse.clone()));
        assert!(differs(
            "rate",
            &parse,
            &refused(Class::BadData, "1:2: parse error: a")
        ));
        assert!(differs(
            "rate",
            &parse,
            &refused(Class::Execution, "1:1: parse error: a")
        ));
        let execution = |text| refused(Class::Execution, text);
        assert!(!differs(
            "rate",
            &execution("found a: {x}"),
            &execution("found a: {y}")
        ));
        assert!(differs(
            "rate",
            &execution("found a: {x}"),
            &execution("lost a: {x}")
        ));
        let (many, twice) = (execution("a; many-to-many"), execution("multiple matches"));
        assert!(!differs("rate", &many, &twice));
        let lax = Strictness { is_newest: false };
        let any = query("rate", &[]);
        assert!(compare(&any, &parse, &execution("other"), lax).is_ok());
        assert!(compare(&any, &parse, &refused(Class::Fault, "crash"), lax).is_err());
        assert!(compare(&any, &parse, &vector(&[]), lax).is_err());
        assert!(compare(&any, &vector(&[]), &parse, lax).is_err());
        let noted = |text: &str| {
            let data = json!({"resultType": "vector", "result": []});
            Reply::Body(json!({"data": data, "infos": [text]}))
        };
        assert!(!differs("rate", &noted("a"), &noted("a")));
        assert!(
            differs("rate", &noted("a"), &noted("b")) && differs("rate", &noted("a"), &vector(&[]))
        );
        assert!(compare(&any, &noted("a"), &noted("b"), lax).is_ok());
        let fixed = |count: u32| noted(&format!("fixed, over {count} samples from 1 to 2 (1:1)"));
        assert!(!differs("rate", &fixed(1), &fixed(2)));
        assert!(differs(
            "rate",
            &fixed(1),
            &noted("fixed, over 1 samples from 1 to 3 (1:1)")
        ));
        let omitted = |count: u32| noted(&format!("{count} more info annotations omitted"));
        assert!(differs("rate", &omitted(1), &omitted(2)));
    }
}
