//! The entries of the fuzz targets of PromQL: the parser with its printer, and the engine.

use lanes_promql::ast::Expr;
use lanes_promql::json::{BodyOptions, write_body};
use lanes_promql::matcher::Matcher;
use lanes_promql::memory::{MemorySeries, MemorySource};
use lanes_promql::parser::{ParserOptions, parse};
use lanes_promql::sample::STALE_BITS;
use lanes_promql::{Answer, Engine, Error, Labels, Limits, Options, QueryTime, Value};
use std::cell::Cell;

/// The bytes of a query that are read. Longer texts are as deep, and only slower.
const QUERY_BYTES_MAX: usize = 4096;
/// The bytes before the query, which encode the [`Plan`] of an evaluation.
const PLAN_BYTES: usize = 4;
/// The samples of each series in memory, 15 s apart.
const SAMPLES: i64 = 40;
/// The looks at the interrupt after which an evaluation ends. Each is some milliseconds of work.
const INTERRUPTS_MAX: u32 = 20;

/// Limits of memory and reads of a query, small enough to be reached.
const LIMITS: Limits = Limits {
    samples_max: 20_000,
    series_max: 500,
    steps_max: 2_000,
    held_bytes_max: 1 << 20,
};

fn text(data: &[u8]) -> Option<&str> {
    let data = &data[..data.len().min(QUERY_BYTES_MAX)];
    std::str::from_utf8(data).ok()
}

/// Parses a query. The printed query has to parse to the same tree. The bits of the first byte are
/// the options of the parser.
pub fn promql_parser(data: &[u8]) {
    let Some((flags, data)) = data.split_first() else {
        return;
    };
    let options = ParserOptions {
        experimental_functions: flags & 1 != 0,
        fill_modifiers: flags & 2 != 0,
        unicode_names: flags & 4 != 0,
    };
    let Some(query) = text(data) else {
        return;
    };
    match parse(query, options) {
        Err(error) => assert!(error.span.start <= error.span.end, "{query}: {error:?}"),
        Ok(mut expr) => {
            let printed = expr.to_string();
            let mut again = parse(&printed, options)
                .unwrap_or_else(|error| panic!("{query:?} is printed as {printed:?}: {error}"));
            sort_matchers(&mut expr);
            sort_matchers(&mut again);
            assert_eq!(
                without_places(&again),
                without_places(&expr),
                "{query:?} is printed as {printed:?}"
            );
        }
    }
}

/// Sorts the matchers of all selectors, as the printer does.
fn sort_matchers(expr: &mut Expr) {
    match expr {
        Expr::Number(_) | Expr::String(_) => {}
        Expr::Selector(selector) => selector.matchers.sort_by_key(Matcher::to_string),
        Expr::Range(range) => range.selector.matchers.sort_by_key(Matcher::to_string),
        Expr::Subquery(subquery) => sort_matchers(&mut subquery.expr),
        Expr::Call(call) => call.args.iter_mut().for_each(sort_matchers),
        Expr::Aggregate(aggregate) => {
            sort_matchers(&mut aggregate.expr);
            aggregate.param.iter_mut().for_each(sort_matchers);
        }
        Expr::Binary(binary) => {
            sort_matchers(&mut binary.left);
            sort_matchers(&mut binary.right);
        }
        Expr::Unary(unary) => sort_matchers(&mut unary.expr),
        Expr::Paren(paren) => sort_matchers(&mut paren.expr),
    }
}

/// A tree as text without the places in the query, which the printed query changes.
fn without_places(expr: &Expr) -> String {
    let text = format!("{expr:?}");
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = ["start: ", "end: "]
        .iter()
        .filter_map(|name| Some(rest.find(name)? + name.len()))
        .min()
    {
        kept.push_str(&rest[..at]);
        rest = rest[at..].trim_start_matches(|digit: char| digit.is_ascii_digit());
    }
    kept + rest
}

/// When a query is evaluated, and how.
///
/// | byte | meaning |
/// |---|---|
/// | 0 | bit 0: at one time; bit 1: names are dropped in the end; bit 2: with an explanation |
/// | 1 | the first time, in units of 5 s |
/// | 2 | the number of steps |
/// | 3 | a step, in units of 700 ms; 0 is a millisecond |
struct Plan {
    time: QueryTime,
    is_delayed: bool,
    is_explained: bool,
}

impl Plan {
    fn of(bytes: [u8; PLAN_BYTES]) -> Plan {
        let start = i64::from(bytes[1]) * 5_000;
        let step = (i64::from(bytes[3]) * 700).max(1);
        let end = start + i64::from(bytes[2]) * step;
        Plan {
            time: match bytes[0] & 1 {
                0 => QueryTime::Steps { start, end, step },
                _ => QueryTime::At(start),
            },
            is_delayed: bytes[0] & 2 != 0,
            is_explained: bytes[0] & 4 != 0,
        }
    }
}

/// Evaluates a query over series in memory. What it returns has to lie on the grid of its times,
/// and it holds no more than it may.
pub fn promql_engine(data: &[u8]) {
    let Some((plan, data)) = data.split_first_chunk::<PLAN_BYTES>() else {
        return;
    };
    let (plan, Some(query)) = (Plan::of(*plan), text(data)) else {
        return;
    };
    let source = source();
    let options = Options {
        parser: ParserOptions {
            experimental_functions: true,
            fill_modifiers: true,
            unicode_names: true,
        },
        delayed_name_removal: plan.is_delayed,
        limits: LIMITS,
        ..Options::default()
    };
    let looks = Cell::new(0);
    let interrupt = || {
        looks.set(looks.get() + 1);
        match looks.get() > INTERRUPTS_MAX {
            true => Err(Error::Execution("the query takes too long".to_owned())),
            false => Ok(()),
        }
    };
    let engine = Engine::new(&source, options).with_interrupt(&interrupt);
    if plan.is_explained {
        let _ = engine.explain(query, plan.time);
    } else if let Ok(answer) = engine.query(query, plan.time) {
        check(&answer, plan.time, query);
    }
}

fn check(answer: &Answer, time: QueryTime, query: &str) {
    let statistics = answer.statistics;
    assert!(
        statistics.held_bytes_peak <= LIMITS.held_bytes_max,
        "{query}"
    );
    assert!(statistics.samples <= LIMITS.samples_max, "{query}");
    let (at, is_range) = match time {
        QueryTime::At(at) => (at, false),
        QueryTime::Steps { start, .. } => (start, true),
    };
    match &answer.value {
        Value::Matrix(series) => {
            for series in series {
                assert_eq!(series.timestamps.len(), series.values.len(), "{query}");
                assert!(!series.values.is_empty(), "{query}");
                assert!(series.timestamps.is_sorted_by(|a, b| a < b), "{query}");
                if let QueryTime::Steps { start, end, step } = time {
                    let is_met =
                        |time: &i64| (start..=end).contains(time) && (time - start) % step == 0;
                    assert!(series.timestamps.iter().all(is_met), "{query}");
                }
            }
            let has_order = series.is_sorted_by(|a, b| a.labels < b.labels);
            assert!(has_order, "{query}: label sets are in order and differ");
        }
        _ => assert!(!is_range, "{query}: a range of times has a matrix"),
    }
    let mut bytes = 0;
    write_body(answer, at, BodyOptions::default(), &mut |piece| {
        bytes += piece.len()
    });
    assert!(bytes > 0, "{query}");
}

/// A counter that is reset, gauges with values that are no numbers, a classic histogram, and a
/// series that ends.
fn source() -> MemorySource {
    let mut source = MemorySource::default();
    let mut add = |name: &str, labels: &[(&str, &str)], value: &dyn Fn(i64) -> f64| {
        let pairs = [("__name__", name)].into_iter();
        let steps = 0..SAMPLES;
        source.series.push(MemorySeries {
            labels: Labels::from_pairs(pairs.chain(labels.iter().copied())),
            timestamps: steps.clone().map(|step| 15_000 * step + 70).collect(),
            values: steps.map(value).collect(),
        });
    };
    for (a, b) in [("1", "x"), ("1", "y"), ("2", "x")] {
        add("c", &[("a", a), ("b", b)], &|step| (step % 17) as f64);
        add("m", &[("a", a), ("b", b)], &|step| match step % 9 {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => -0.0,
            _ => (step - 20) as f64,
        });
    }
    for (le, share) in [("0.1", 1.0), ("1", 3.0), ("+Inf", 4.0)] {
        add("h_bucket", &[("a", "1"), ("le", le)], &|step| {
            step as f64 * share
        });
    }
    add("e", &[("é", "\"")], &|step| match step < 20 {
        true => 1.0,
        false => f64::from_bits(STALE_BITS),
    });
    source
}
