//! Answers against what a script expects.

use crate::script::{Eval, Kind, Pattern, Times};
use crate::series_notation::Item;
use lanes_promql::engine::{Sample, Series};
use lanes_promql::sample::is_stale;
use lanes_promql::{Answer, Value};

/// The relative error that a value may have.
const EPSILON: f64 = 0.000_001;

/// Whether values are equal up to the error, as Prometheus's tests compare them.
pub fn is_almost_equal(a: f64, b: f64) -> bool {
    if is_stale(a) || is_stale(b) {
        return is_stale(a) && is_stale(b);
    }
    if a.is_nan() && b.is_nan() || a == b {
        return true;
    }
    let (sum, difference) = (a.abs() + b.abs(), (a - b).abs());
    if a == 0.0 || b == 0.0 || sum < f64::MIN_POSITIVE {
        return difference < EPSILON * f64::MIN_POSITIVE;
    }
    difference / sum.min(f64::MAX) < EPSILON
}

/// Compares warnings and infos.
pub fn annotations(eval: &Eval, answer: &Answer) -> Result<(), String> {
    let groups = [
        (Kind::Warn, Kind::NoWarn, &answer.warnings),
        (Kind::Info, Kind::NoInfo, &answer.infos),
    ];
    for (expected, unexpected, found) in groups {
        if eval.expects(unexpected) && !found.is_empty() {
            return Err(format!("unexpected annotations {found:?}"));
        }
        let patterns: Vec<&Pattern> = eval.of(expected).collect();
        if patterns.is_empty() {
            continue;
        }
        let all_found = patterns
            .iter()
            .all(|pattern| found.iter().any(|text| pattern.matches(text)));
        let all_expected = found
            .iter()
            .all(|text| patterns.iter().any(|pattern| pattern.matches(text)));
        if !all_found || !all_expected {
            return Err(format!(
                "other annotations of {expected:?} than expected: {found:?}"
            ));
        }
    }
    Ok(())
}

/// Compares the error of an evaluation that has to fail.
pub fn failure(eval: &Eval, error: &str) -> Result<(), String> {
    match eval.of(Kind::Fail).all(|pattern| pattern.matches(error)) {
        true => Ok(()),
        false => Err(format!("another error than expected: {error}")),
    }
}

/// Compares a value.
pub fn value(eval: &Eval, value: &Value) -> Result<(), String> {
    match value {
        Value::Scalar(found) => match eval.expected.scalar {
            Some(expected) if is_almost_equal(expected, *found) => Ok(()),
            expected => Err(format!("scalar {found} instead of {expected:?}")),
        },
        Value::String(found) => match &eval.expected.string {
            Some(expected) if expected == found => Ok(()),
            expected => Err(format!("string {found:?} instead of {expected:?}")),
        },
        Value::Vector(samples) => vector(eval, samples),
        Value::Matrix(series) => matrix(eval, series),
    }
}

pub fn vector(eval: &Eval, samples: &[Sample]) -> Result<(), String> {
    if eval.expected.scalar.is_some() {
        return Err("a vector instead of a scalar".to_owned());
    }
    for (place, sample) in samples.iter().enumerate() {
        let (labels, found) = (&sample.labels, sample.value);
        let Some((position, items)) = eval.expected.series.get(labels) else {
            return Err(format!("unexpected {labels} with {found}"));
        };
        if eval.expects(Kind::Ordered) && *position != place + 1 {
            return Err(format!("{labels} at {} instead of {position}", place + 1));
        }
        match items.first() {
            Some(Item::Float(expected)) if is_almost_equal(*expected, found) => {}
            expected => return Err(format!("{found} instead of {expected:?} for {labels}")),
        }
    }
    let missing = eval.expected.series.keys();
    let mut missing = missing.filter(|labels| !samples.iter().any(|s| s.labels == **labels));
    missing
        .next()
        .map_or(Ok(()), |labels| Err(format!("{labels} is missing")))
}

fn matrix(eval: &Eval, series: &[Series]) -> Result<(), String> {
    let (start, step) = match (eval.expected.range_vector, eval.times) {
        (Some((start, _, step)), _) | (None, Times::Range(start, _, step)) => (start, step),
        (None, Times::Instant(at)) => (at, 0),
    };
    if eval.expects(Kind::Ordered) || eval.expected.scalar.is_some() {
        return Err("a matrix instead of another type".to_owned());
    }
    if !series.is_sorted_by(|a, b| a.labels < b.labels) {
        return Err("series are not sorted by labels".to_owned());
    }
    for found in series {
        let labels = &found.labels;
        let Some((_, items)) = eval.expected.series.get(labels) else {
            return Err(format!("unexpected {labels} with {:?}", found.values));
        };
        let mut expected = Vec::new();
        for (place, item) in items.iter().enumerate() {
            match item {
                Item::Omitted => {}
                Item::Float(value) => expected.push((start + step * place as i64, *value)),
                Item::Histogram => return Err(format!("{labels} has no histogram")),
            }
        }
        let times = expected.iter().map(|(time, _)| *time);
        let values = expected.iter().zip(&found.values);
        if !times.eq(found.timestamps.iter().copied())
            || !values
                .into_iter()
                .all(|((_, value), found)| is_almost_equal(*value, *found))
        {
            let (times, values) = (&found.timestamps, &found.values);
            return Err(format!(
                "{times:?} {values:?} instead of {expected:?} for {labels}"
            ));
        }
    }
    let missing = eval.expected.series.keys();
    let mut missing = missing.filter(|labels| !series.iter().any(|s| s.labels == **labels));
    missing
        .next()
        .map_or(Ok(()), |labels| Err(format!("{labels} is missing")))
}
