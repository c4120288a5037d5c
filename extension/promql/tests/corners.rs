//! Corners in which random queries have found other answers than Prometheus's.

use lanes_promql::json::{self, BodyOptions};
use lanes_promql::memory::{MemorySeries, MemorySource};
use lanes_promql::sample::STALE_BITS;
use lanes_promql::{Engine, Error, Labels, Options, Value};

/// Milliseconds of a minute.
const MINUTE: i64 = 60_000;

/// A gauge `m` with a sample each minute for ten minutes, ten seconds after the whole minute.
fn source() -> MemorySource {
    let minutes = 0..10_i64;
    MemorySource {
        series: vec![MemorySeries {
            labels: Labels::from_pairs([("__name__", "m"), ("a", "x")]),
            timestamps: minutes
                .clone()
                .map(|minute| minute * MINUTE + 10_000)
                .collect(),
            values: minutes.map(|minute| minute as f64).collect(),
        }],
    }
}

/// The body of an answer, or the error.
fn ask(query: &str, times: Option<(i64, i64, i64)>) -> Result<String, Error> {
    let source = source();
    let engine = Engine::new(&source, Options::default());
    let answer = match times {
        None => engine.instant(query, 5 * MINUTE)?,
        Some((start, end, step)) => engine.range(query, start, end, step)?,
    };
    let mut body = String::new();
    let options = BodyOptions::default();
    json::write_body(&answer, 5 * MINUTE, options, &mut |piece| {
        body.push_str(&piece)
    });
    Ok(body)
}

fn instant(query: &str) -> String {
    ask(query, None).unwrap()
}

fn range(query: &str) -> String {
    ask(query, Some((4 * MINUTE, 6 * MINUTE, MINUTE))).unwrap()
}

/// A range of times with a single step.
fn short_range(query: &str) -> String {
    ask(query, Some((4 * MINUTE, 4 * MINUTE + 1, MINUTE))).unwrap()
}

#[test]
fn a_selector_with_a_sign_has_the_timestamp_of_the_evaluation() {
    for (query, seconds) in [
        ("timestamp(m)", 250),
        ("timestamp((m))", 250),
        ("timestamp(+m)", 300),
        ("timestamp(-m)", 300),
    ] {
        let body = instant(query);
        assert!(body.contains(&format!("\"{seconds}\"")), "{query}: {body}");
    }
    assert!(instant("absent(+n{a=\"x\"})").contains(r#""metric":{}"#));
}

#[test]
fn absent_takes_matchers_that_select_before_those_that_take_away() {
    for (matchers, labels) in [
        ("a=\"y\"", r#"{"a":"y"}"#),
        ("a!=\"x\",a=\"y\"", "{}"),
        ("a=\"y\",a!=\"x\"", "{}"),
        ("a=~\"y.*\",a=\"y\"", r#"{"a":"y"}"#),
        ("a=\"y\",a=~\"y.*\"", "{}"),
        ("b!=\"x\",a=\"y\"", r#"{"a":"y"}"#),
    ] {
        for query in [
            format!("absent(n{{{matchers}}})"),
            format!("absent_over_time(n{{{matchers}}}[1m])"),
        ] {
            let body = instant(&query);
            assert!(
                body.contains(&format!("\"metric\":{labels},")),
                "{query}: {body}"
            );
        }
    }
}

#[test]
fn bounds_keep_the_sign_of_zero_as_go_does() {
    assert!(instant("clamp_max(vector(0), -(0 ^ 1))").contains(r#""-0""#));
    assert!(instant("clamp_min(vector(-(0 ^ 1)), 0)").contains(r#""0""#));
}

#[test]
fn sort_is_told_to_be_ineffective_over_a_range_only() {
    let is_told = |body: String| body.contains("sort is ineffective");
    assert!(is_told(range("sort(m)")) && is_told(short_range("sort(m)")));
    assert!(is_told(instant("(sort(m))[2m:2m]")));
    assert!(!is_told(instant("sort(m)")));
    for fixed in ["sort(m @ 300)", "sum(sort_desc(vector(1)))"] {
        assert!(
            !is_told(range(fixed)) && !is_told(short_range(fixed)),
            "{fixed}"
        );
    }
    let nested = range("sort(sort_desc(m))");
    assert!(
        nested.contains("labels (1:1)") && !nested.contains("(1:6)"),
        "{nested}"
    );
}

#[test]
fn quantiles_are_told_where_they_are_used() {
    let is_told = |body: &str| body.contains("quantile value should be between");
    assert!(is_told(&instant("quantile_over_time(2, m[5m])")));
    assert!(!is_told(&instant("quantile_over_time(2, m[1s])")));
    let nested = instant("quantile(2, quantile(2, m))");
    assert!(
        nested.contains("got 2 (1:10)") && !nested.contains("(1:22)"),
        "{nested}"
    );
}

#[test]
fn the_place_of_a_subquery_is_lost() {
    assert!(instant("abs(rate(m[5m]))").contains("(1:10)"));
    assert!(instant("abs(rate((m)[5m:1m]))").contains("(1:1)"));
}

#[test]
fn types_that_have_no_steps_are_a_fault_of_the_text() {
    for query in ["m[5m]", "\"text\""] {
        let error = ask(query, Some((0, MINUTE, MINUTE))).unwrap_err();
        assert!(matches!(error, Error::Parse(_)), "{error:?}");
        assert!(error.to_string().starts_with("invalid expression type"));
    }
}

#[test]
fn values_that_are_no_time_have_a_year() {
    assert!(instant("year(vector(NaN))").contains(r#""292277026596""#));
}

#[test]
fn a_group_without_labels_needs_an_operand() {
    let error = |query| ask(query, None).unwrap_err().to_string();
    let place = "1:23: parse error: unexpected";
    assert_eq!(
        error("m + on (a) group_right"),
        format!("{place} end of input in grouping opts, expected \"(\"")
    );
    assert_eq!(
        error("m + on (a) group_right) m"),
        "1:24: parse error: unexpected right parenthesis ')'"
    );
    let place = "1:24: parse error: unexpected";
    assert_eq!(
        error("m + on (a) group_right ,m"),
        format!("{place} \",\" in grouping opts, expected \"(\"")
    );
    assert!(ask("m + on (a) group_right -m", None).is_ok());
}

/// The function of VictoriaMetrics by which vmalert finds when an alert became active.
#[test]
fn a_default_rollup_is_the_last_sample_of_a_range_unless_the_series_has_ended() {
    assert!(
        instant("default_rollup(m[1h])").contains(r#""__name__":"m","a":"x"},"value":[300,"4"]"#)
    );
    assert!(instant("default_rollup(m[10s])").contains(r#""result":[]"#));
    let mut source = source();
    source.series[0].timestamps.truncate(4);
    source.series[0].values.truncate(3);
    source.series[0].values.push(f64::from_bits(STALE_BITS));
    let engine = Engine::new(&source, Options::default());
    let value = |query: &str, minute: i64| engine.instant(query, minute * MINUTE).unwrap().value;
    for (query, before, after) in [
        ("count(default_rollup(m[1h]))", Some(1.0), None),
        ("count(last_over_time(m[1h]))", Some(1.0), Some(1.0)),
        ("count(m)", Some(1.0), None),
    ] {
        for (minute, expected) in [(3, before), (5, after)] {
            let Value::Vector(found) = value(query, minute) else {
                panic!("{query} is no vector");
            };
            let found = found.first().map(|sample| sample.value);
            assert_eq!(found, expected, "{query} at {minute}");
        }
    }
}
