//! Properties of the parser and the engine on generated queries and series.

use lanes_promql::engine::{Engine, Options, Series};
use lanes_promql::error::LimitError;
use lanes_promql::memory::{MemorySeries, MemorySource};
use lanes_promql::parser::{ParserOptions, parse};
use lanes_promql::sample::STALE_BITS;
use lanes_promql::{Error, Labels, Limits, Value};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;

const PARSER: ParserOptions = ParserOptions {
    experimental_functions: true,
    fill_modifiers: true,
    unicode_names: false,
};

/// Vectors without others inside of them.
const LEAVES: [&str; 8] = [
    "m",
    "m{a=\"1\"}",
    "n offset 40s",
    "{b=~\"x|y\"}",
    "rate(m[1m])",
    "max_over_time(n[90s])",
    "m @ 120",
    "vector(2)",
];

/// Expressions around one or two vectors, `X` and `Y`.
const SHAPES: [&str; 22] = [
    "sum by (a) (X)",
    "avg without (b) (X)",
    "count(X)",
    "stddev(X)",
    "topk(2, X)",
    "bottomk by (a) (1, X)",
    "quantile(0.3, X)",
    "count_values(\"v\", X)",
    "-X",
    "abs(X)",
    "X > 3",
    "X > bool 3",
    "2 * X",
    "X + on (a, b) group_left () sum by (a, b) (Y)",
    "X and Y",
    "X or Y",
    "X unless on (a) Y",
    "absent(X)",
    "scalar(X) + Y",
    "label_replace(X, \"c\", \"$1\", \"a\", \"(.*)\")",
    "max_over_time(sum(X)[2m:30s])",
    "timestamp(X)",
];

fn query() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(&LEAVES[..]).prop_map(str::to_owned);
    leaf.prop_recursive(3, 12, 2, |inner| {
        (prop::sample::select(&SHAPES[..]), inner.clone(), inner).prop_map(|(shape, x, y)| {
            let pieces = shape
                .split('X')
                .map(|piece| piece.replace('Y', &format!("({y})")));
            pieces.collect::<Vec<_>>().join(&format!("({x})"))
        })
    })
}

/// Samples at irregular times, some of them stale or NaN.
fn columns() -> impl Strategy<Value = (Vec<i64>, Vec<f64>)> {
    let value = prop_oneof![
        8 => (0..50_i32).prop_map(f64::from),
        1 => Just(f64::NAN),
        1 => Just(f64::from_bits(STALE_BITS)),
    ];
    prop::collection::vec((1_i64..60_000, value), 0..30).prop_map(|samples| {
        let mut at = 0;
        let place = |(gap, value)| {
            at += gap;
            (at, value)
        };
        samples.into_iter().map(place).unzip()
    })
}

fn source() -> impl Strategy<Value = MemorySource> {
    let sets = ["m:1:x", "m:1:y", "m:2:x", "n:1:x", "n:2:y"];
    prop::collection::vec(columns(), sets.len()).prop_map(move |all| {
        let series = sets.iter().zip(all).map(|(set, (timestamps, values))| {
            let parts: Vec<&str> = set.split(':').collect();
            MemorySeries {
                labels: Labels::from_pairs([
                    ("__name__", parts[0]),
                    ("a", parts[1]),
                    ("b", parts[2]),
                ]),
                timestamps,
                values,
            }
        });
        MemorySource {
            series: series.collect(),
        }
    })
}

fn options(delayed_name_removal: bool) -> Options {
    Options {
        parser: PARSER,
        delayed_name_removal,
        ..Options::default()
    }
}

/// The bits of the values of each series at each time; all NaNs are alike.
fn bits(series: &[Series]) -> BTreeMap<(String, i64), u64> {
    let of = |series: &Series| {
        let labels = series.labels.to_string();
        let samples = series.timestamps.iter().zip(&series.values);
        let bits = |value: f64| {
            if value.is_nan() {
                f64::NAN.to_bits()
            } else {
                value.to_bits()
            }
        };
        let pairs = samples.map(move |(time, value)| ((labels.clone(), *time), bits(*value)));
        pairs.collect::<Vec<_>>()
    };
    series.iter().flat_map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn printed_queries_parse_to_the_same(query in query()) {
        let expr = parse(&query, PARSER).unwrap();
        let printed = expr.to_string();
        let again = parse(&printed, PARSER).unwrap();
        prop_assert_eq!(again.to_string(), printed);
    }

    #[test]
    fn texts_never_panic(text in "[a-z0-9{}()\\[\\]:,=~!<>+*/^@\"'` .é-]{0,40}") {
        let _ = parse(&text, PARSER);
    }

    /// A range query is evaluated column by column; each step has to be what a query of that time
    /// alone returns. Queries that fail at a step fail as a whole.
    #[test]
    fn steps_of_a_range_are_what_each_time_alone_returns(
        source in source(),
        query in query(),
        is_delayed in any::<bool>(),
        start in 0_i64..300_000,
        step in 1_i64..120_000,
    ) {
        // Of equal values `topk` and `bottomk` take the first, and `count_values` returns its groups in the order in
        // which it meets them, which is that of all steps in a range.
        let takes_first = query.contains("topk") || query.contains("bottomk");
        prop_assume!(!(takes_first && query.contains("count_values")));
        let engine = Engine::new(&source, options(is_delayed));
        let end = start + 9 * step;
        let mut expected = BTreeMap::new();
        let mut failure = None;
        for at in (0..10).map(|place| start + place * step) {
            match engine.instant(&query, at) {
                Ok(answer) => {
                    let Value::Vector(samples) = answer.value else {
                        return Err(TestCaseError::fail("no vector"));
                    };
                    let series: Vec<Series> = samples.into_iter().map(|sample| Series {
                        labels: sample.labels,
                        timestamps: vec![at],
                        values: vec![sample.value],
                    }).collect();
                    expected.extend(bits(&series));
                }
                Err(error) => failure = Some(error),
            }
        }
        match (engine.range(&query, start, end, step), failure) {
            (Ok(answer), None) => {
                let Value::Matrix(series) = answer.value else {
                    return Err(TestCaseError::fail("no matrix"));
                };
                prop_assert_eq!(bits(&series), expected, "{}", query);
            }
            (Err(_), Some(_)) => {}
            // Names that are dropped in the end may meet between steps only.
            (Err(Error::Execution(_)), None) if is_delayed => {}
            (result, failure) => {
                let message = format!("{query}: {result:?} but {failure:?}");
                return Err(TestCaseError::fail(message));
            }
        }
    }
}

fn counters(series: usize, samples: usize) -> MemorySource {
    let of = |number: usize| MemorySeries {
        labels: Labels::from_pairs([("__name__", "m"), ("a", &number.to_string())]),
        timestamps: (0..samples as i64).map(|place| place * 1000).collect(),
        values: (0..samples).map(|place| place as f64).collect(),
    };
    MemorySource {
        series: (0..series).map(of).collect(),
    }
}

#[test]
fn limits_name_what_is_exceeded() {
    let source = counters(20, 100);
    let limited = |limits: Limits, query: &str| {
        let engine = Engine::new(
            &source,
            Options {
                limits,
                ..options(false)
            },
        );
        engine
            .range(query, 0, 99_000, 1000)
            .unwrap_err()
            .to_string()
    };
    let all = Limits::default();
    let samples = limited(
        Limits {
            samples_max: 1999,
            ..all
        },
        "m",
    );
    assert!(samples.contains("may read 1999 samples"), "{samples}");
    let series = limited(
        Limits {
            series_max: 19,
            ..all
        },
        "sum(m)",
    );
    assert!(series.contains("may read 19 series"), "{series}");
    let steps = limited(
        Limits {
            steps_max: 99,
            ..all
        },
        "m",
    );
    assert!(steps.contains("may have 99 steps"), "{steps}");
    let inner = limited(
        Limits {
            steps_max: 100,
            ..all
        },
        "sum_over_time(m[1h:1ms])",
    );
    assert!(inner.contains("may have 100 steps"), "{inner}");
    let memory = limited(
        Limits {
            held_bytes_max: 10_000,
            ..all
        },
        "topk(3, m)",
    );
    assert!(memory.contains("may hold 10000 bytes"), "{memory}");
}

#[test]
fn labels_count_as_memory_and_have_a_length() {
    let source = counters(2000, 2);
    let limits = Limits {
        held_bytes_max: 4 << 20,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let engine = Engine::new(&source, options);
    let long = "x".repeat(4000);
    let error = engine.instant(
        &format!("count(label_replace(m, \"l\", \"{long}\", \"\", \"\"))"),
        0,
    );
    assert_eq!(error, Err(LimitError::Memory(4 << 20).into()));
    // Each call doubles the label.
    let mut query = "label_replace(m, \"l\", \"abcd\", \"\", \"\")".to_owned();
    for _ in 0..30 {
        query = format!("label_join({query}, \"l\", \"\", \"l\", \"l\")");
    }
    let one = counters(1, 2);
    let answer = Engine::new(&one, Options::default()).instant(&query, 0);
    let message = answer.unwrap_err().to_string();
    assert!(message.contains("longer than 1048576 bytes"), "{message}");
}

#[test]
fn an_interrupt_ends_an_evaluation() {
    let source = counters(50, 1000);
    let calls = Cell::new(0);
    let interrupt = || {
        calls.set(calls.get() + 1);
        if calls.get() > 3 {
            Err(Error::Canceled)
        } else {
            Ok(())
        }
    };
    let engine = Engine::new(&source, options(false)).with_interrupt(&interrupt);
    let query = "sum(quantile_over_time(0.5, m[10m]))";
    assert_eq!(
        engine.range(query, 0, 999_000, 100).unwrap_err(),
        Error::Canceled
    );
    assert_eq!(calls.get(), 4);
}

#[test]
fn reads_that_several_selectors_need_are_shared() {
    let source = counters(10, 100);
    let engine = Engine::new(&source, options(false));
    let answer = engine
        .range("sum(m) / count(m) + sum(rate(m[1m]))", 0, 99_000, 1000)
        .unwrap();
    assert_eq!(answer.statistics.series, 10);
    let apart = engine
        .range("sum(m) / count(m offset 1w)", 0, 99_000, 1000)
        .unwrap();
    assert_eq!(apart.statistics.series, 10);
}
