//! Expressions: the kinds of vectors, and scalars, strings and ranges as whole queries.

use crate::aggregations::{aggregation, count_values, top};
use crate::operators::{arithmetic, comparison, set_operation};
use crate::selectors::{
    instant, instant_of, label, matrix, metric, number, quoted, range_of, subquery,
};
use crate::writer::Writer;
use rand::RngExt;

/// How deep expressions are nested at most.
const DEPTH: u32 = 3;

type Write = fn(&mut Writer<'_>, u32) -> String;

/// The kinds of vectors, and how often each is chosen.
const KINDS: [(&str, u32, Write); 18] = [
    ("selector", 5, |w, _| instant(w)),
    ("rate", 9, rate),
    ("over time", 9, over_time),
    ("aggregation", 9, aggregation),
    ("topk", 4, top),
    ("count_values", 2, count_values),
    ("arithmetic", 7, arithmetic),
    ("comparison", 6, comparison),
    ("set operator", 5, set_operation),
    ("mathematics", 4, mathematics),
    ("bounds", 3, bounds),
    ("histogram", 5, histogram),
    ("labels", 5, labels),
    ("absent", 3, absent),
    ("date", 3, date),
    ("sort", 3, sort),
    ("unary", 2, unary),
    ("time", 4, time),
];

/// Functions of counters and of differences.
const RATES: [&str; 9] = [
    "rate", "rate", "increase", "delta", "irate", "idelta", "deriv", "changes", "resets",
];

/// Aggregations over time.
const OVER_TIME: [&str; 11] = [
    "avg_over_time",
    "min_over_time",
    "max_over_time",
    "sum_over_time",
    "count_over_time",
    "stddev_over_time",
    "stdvar_over_time",
    "last_over_time",
    "first_over_time",
    "present_over_time",
    "absent_over_time",
];

/// Functions that every library rounds alike.
const EXACT: [&str; 5] = ["abs", "ceil", "floor", "sqrt", "sgn"];

/// Functions whose last bits depend on the mathematical library.
const INEXACT: [&str; 17] = [
    "exp", "ln", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "deg",
];

/// Functions of a time.
const DATES: [&str; 8] = [
    "minute",
    "hour",
    "day_of_week",
    "day_of_month",
    "day_of_year",
    "days_in_month",
    "month",
    "year",
];

/// A query, and the kind of its outermost expression.
pub fn query(w: &mut Writer<'_>) -> (String, &'static str) {
    match w.random.random_range(0..30) {
        0 => (scalar(w, 2), "scalar"),
        1 => {
            let text = w.pick(&["text", "a\\b", "ü\"", ""]);
            (quoted(w, text), "string")
        }
        2 => {
            let metric = metric(w);
            (range_of(w, metric), "range")
        }
        3 => (subquery(w, 2), "range"),
        _ => {
            let depth = w.random.random_range(1..=DEPTH);
            vector_and_kind(w, depth)
        }
    }
}

/// A vector, nested at most so deep.
pub fn vector(w: &mut Writer<'_>, depth: u32) -> String {
    w.inside(|w| match depth {
        0 => instant(w),
        _ => vector_and_kind(w, depth).0,
    })
}

fn vector_and_kind(w: &mut Writer<'_>, depth: u32) -> (String, &'static str) {
    let sum: u32 = KINDS.iter().map(|(_, weight, _)| weight).sum();
    let mut place = w.random.random_range(0..sum);
    for (kind, weight, write) in KINDS {
        if place < weight {
            return (write(w, depth), kind);
        }
        place -= weight;
    }
    unreachable!("the weights sum up")
}

/// A call, whose name may be followed by a space.
fn call(w: &mut Writer<'_>, function: &'static str, arguments: &[String]) -> String {
    w.note(function);
    let space = if w.chance(3) { " " } else { "" };
    format!("{function}{space}({})", arguments.join(", "))
}

fn rate(w: &mut Writer<'_>, depth: u32) -> String {
    if w.chance(10) {
        let arguments = [matrix(w, depth), number(w)];
        return call(w, "predict_linear", &arguments);
    }
    let function = w.pick(&RATES);
    // Counting changes, a difference in the last bit counts.
    let is_exact = matches!(
        function,
        "changes" | "resets" | "rate" | "irate" | "increase"
    );
    let argument = match is_exact {
        true => matrix(w, depth),
        false => matrix(w, depth),
    };
    call(w, function, &[argument])
}

fn over_time(w: &mut Writer<'_>, depth: u32) -> String {
    if w.chance(12) {
        let quantile = w
            .pick(&["0.5", "0.9", "0", "1", "-1", "2", "0.99"])
            .to_owned();
        let arguments = [quantile, matrix(w, depth)];
        return call(w, "quantile_over_time", &arguments);
    }
    let function = w.pick(&OVER_TIME);
    let argument = matrix(w, depth);
    if function == "absent_over_time" && w.uses.contains("label twice") {
        w.note("absent of a label twice");
    }
    call(w, function, &[argument])
}

fn mathematics(w: &mut Writer<'_>, depth: u32) -> String {
    // Around such a function, a difference of two near values could enlarge that of the last bits.
    if w.nesting == 0 && w.chance(80) {
        let function = w.pick(&INEXACT);
        let argument = vector(w, depth - 1);
        let function = if function == "deg" && w.chance(50) {
            "rad"
        } else {
            function
        };
        return call(w, function, &[argument]);
    }
    let function = w.pick(&EXACT);
    let argument = vector(w, depth - 1);
    call(w, function, &[argument])
}

fn bounds(w: &mut Writer<'_>, depth: u32) -> String {
    let argument = vector(w, depth - 1);
    match w.random.random_range(0..5) {
        0 => {
            let arguments = [argument, scalar(w, 0), scalar(w, 0)];
            call(w, "clamp", &arguments)
        }
        1 => {
            let arguments = [argument, scalar(w, 1)];
            call(w, "clamp_min", &arguments)
        }
        2 => {
            let arguments = [argument, scalar(w, 1)];
            call(w, "clamp_max", &arguments)
        }
        3 => call(w, "round", &[argument]),
        _ => {
            let size = w.pick(&["0.1", "5", "10", "0.25", "0", "-1"]).to_owned();
            call(w, "round", &[argument, size])
        }
    }
}

fn histogram(w: &mut Writer<'_>, depth: u32) -> String {
    let metric = "latency_seconds_bucket";
    let buckets = w.inside(|w| match w.random.random_range(0..6) {
        0 => instant_of(w, metric),
        1 => vector(w, depth - 1),
        2 | 3 => {
            let range = range_of(w, metric);
            call(w, "rate", &[range])
        }
        _ => {
            let range = range_of(w, metric);
            let inner = call(w, "increase", &[range]);
            let by = w.pick(&["le", "le, job", "instance, le", "job"]);
            w.note("sum");
            w.note("by");
            format!("sum by ({by}) ({inner})")
        }
    });
    if w.chance(20) {
        let arguments = [scalar(w, 0), scalar(w, 0), buckets];
        return call(w, "histogram_fraction", &arguments);
    }
    let quantile = match w.chance(85) {
        true => w
            .pick(&["0.5", "0.9", "0.99", "0", "1", "-1", "2", "NaN", "0.01"])
            .to_owned(),
        false => scalar(w, 1),
    };
    call(w, "histogram_quantile", &[quantile, buckets])
}

fn labels(w: &mut Writer<'_>, depth: u32) -> String {
    let argument = vector(w, depth - 1);
    let destination = match w.chance(70) {
        true => w.pick(&["new", "a", "__name__"]),
        false => label(w),
    };
    let destination = quoted(w, destination);
    if w.chance(40) {
        let separator = w.pick(&["-", "", ", ", "ü"]);
        let mut arguments = vec![argument, destination, quoted(w, separator)];
        for _ in 0..w.random.random_range(0..4) {
            let name = label(w);
            arguments.push(quoted(w, name));
        }
        if w.chance(20) {
            let name = quoted(w, "__name__");
            arguments.push(name);
        }
        return call(w, "label_join", &arguments);
    }
    let (source, pattern, replacement) = w.pick(&[
        ("job", "(.*)", "$1"),
        ("instance", "(.):([0-9]+)", "$2/$1"),
        ("instance", "(?P<host>.*):.*", "${host}-x"),
        ("room", "(.).*", "$1$1"),
        ("job", "a.*", "fixed"),
        ("job", "nothing", "fixed"),
        ("job", ".*", ""),
        ("none", "", "was empty"),
        ("__name__", "(.*)_total", "$1"),
        ("job", "(a)(p)(i)", "$0$9$$x"),
        ("instance", "(.*)", "$1x"),
    ]);
    let arguments = [
        argument,
        destination,
        quoted(w, replacement),
        quoted(w, source),
        quoted(w, pattern),
    ];
    call(w, "label_replace", &arguments)
}

fn absent(w: &mut Writer<'_>, depth: u32) -> String {
    let argument = match w.chance(50) {
        true => w.inside(instant),
        false => vector(w, depth - 1),
    };
    if w.uses.contains("label twice") {
        w.note("absent of a label twice");
    }
    call(w, "absent", &[argument])
}

fn date(w: &mut Writer<'_>, depth: u32) -> String {
    let function = w.pick(&DATES);
    let argument = match w.random.random_range(0..4) {
        0 => return call(w, function, &[]),
        1 => {
            let time = w.pick(&["1709164800", "-86400", "951782400", "4102444800", "0"]);
            format!("vector({time})")
        }
        2 => {
            let inner = vector(w, depth - 1);
            timestamp(w, &inner)
        }
        _ => vector(w, depth - 1),
    };
    call(w, function, &[argument])
}

fn sort(w: &mut Writer<'_>, depth: u32) -> String {
    let function = w.pick(&["sort", "sort_desc"]);
    let argument = vector(w, depth - 1);
    call(w, function, &[argument])
}

fn unary(w: &mut Writer<'_>, depth: u32) -> String {
    w.note("unary");
    let sign = w.pick(&["-", "+", "- "]);
    let operand = vector(w, depth - 1);
    match w.chance(50) {
        true => format!("{sign}({operand})"),
        false => format!("{sign}{operand}"),
    }
}

fn time(w: &mut Writer<'_>, depth: u32) -> String {
    match w.random.random_range(0..3) {
        0 => {
            let argument = scalar(w, depth - 1);
            call(w, "vector", &[argument])
        }
        1 => {
            let argument = w.inside(instant);
            timestamp(w, &argument)
        }
        _ => {
            let argument = vector(w, depth - 1);
            timestamp(w, &argument)
        }
    }
}

fn timestamp(w: &mut Writer<'_>, argument: &str) -> String {
    if argument.contains('@') && argument.contains("offset") {
        w.note("timestamp of @ and offset");
    }
    call(w, "timestamp", &[argument.to_owned()])
}

/// A scalar.
pub fn scalar(w: &mut Writer<'_>, depth: u32) -> String {
    if depth == 0 {
        return number(w);
    }
    match w.random.random_range(0..7) {
        0..=2 => number(w),
        3 => call(w, "time", &[]),
        4 => call(w, "pi", &[]),
        5 => {
            let argument = vector(w, depth - 1);
            call(w, "scalar", &[argument])
        }
        _ => {
            let (left, right) = (scalar(w, depth - 1), scalar(w, depth - 1));
            let operator = w.pick_name(&["+", "-", "*", "/", "%", "== bool", "> bool"]);
            format!("({left} {operator} {right})")
        }
    }
}
