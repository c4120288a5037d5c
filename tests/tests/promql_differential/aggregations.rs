//! Aggregations.

use crate::selectors::{instant_of, label, metric, range_of};
use crate::vectors::{scalar, vector};
use crate::writer::Writer;
use rand::RngExt;

/// All aggregations that are no experiments.
#[cfg(test)]
pub const OPERATORS: [&str; 12] = [
    "sum",
    "avg",
    "min",
    "max",
    "count",
    "group",
    "stddev",
    "stdvar",
    "quantile",
    "topk",
    "bottomk",
    "count_values",
];

/// An aggregation to one series of each group.
pub fn aggregation(w: &mut Writer<'_>, depth: u32) -> String {
    if w.chance(10) {
        w.note("quantile");
        let quantile = match w.chance(80) {
            true => w
                .pick(&["0.5", "0.9", "0", "1", "-1", "2", "NaN"])
                .to_owned(),
            false => parameter(w),
        };
        let inner = vector(w, depth - 1);
        return grouped(w, "quantile", &[quantile, inner]);
    }
    let operator = w.pick_name(&[
        "sum", "sum", "sum", "avg", "min", "max", "count", "group", "stddev", "stdvar",
    ]);
    let inner = match operator {
        // Their rounding depends on the order of the series.
        "stddev" | "stdvar" => ordered(w),
        _ => vector(w, depth - 1),
    };
    grouped(w, operator, &[inner])
}

/// A scalar as the parameter of an aggregation.
fn parameter(w: &mut Writer<'_>) -> String {
    let parameter = scalar(w, 1);
    if parameter.contains('@') {
        w.note("@ in a parameter");
    }
    parameter
}

/// `topk` and `bottomk`.
pub fn top(w: &mut Writer<'_>, depth: u32) -> String {
    let operator = w.pick_name(&["topk", "bottomk"]);
    let count = match w.chance(80) {
        true => w.pick(&["1", "2", "3", "10", "0", "-1", "2.7"]).to_owned(),
        false => parameter(w),
    };
    // Of equal values those of the first series stay, but Prometheus brings the series of most
    // expressions in any order.
    let inner = match w.chance(50) {
        true => ordered(w),
        false => {
            w.note("any tie");
            vector(w, depth - 1)
        }
    };
    grouped(w, operator, &[count, inner])
}

/// A vector whose series are in the order in which they were created.
fn ordered(w: &mut Writer<'_>) -> String {
    w.inside(|w| {
        let metric = metric(w);
        match w.random.random_range(0..3) {
            0 => {
                let function = w.pick_name(&["irate", "delta", "max_over_time"]);
                format!("{function}({})", range_of(w, metric))
            }
            _ => instant_of(w, metric),
        }
    })
}

/// `count_values`.
pub fn count_values(w: &mut Writer<'_>, depth: u32) -> String {
    w.note("count_values");
    let label = w.pick(&["\"value\"", "'job'", "`version`"]).to_owned();
    let inner = w.inside(|w| match w.chance(60) {
        true => instant_of(w, "queue_length"),
        false => vector(w, depth - 1),
    });
    grouped(w, "count_values", &[label, inner])
}

/// An aggregation with `by`, `without` or neither, before or after its arguments.
fn grouped(w: &mut Writer<'_>, operator: &str, arguments: &[String]) -> String {
    let operator = match w.chance(5) {
        true => operator.to_uppercase(),
        false => operator.to_owned(),
    };
    let arguments = format!("({})", arguments.join(", "));
    if w.chance(25) {
        return format!("{operator}{arguments}");
    }
    let word = w.pick_name(&["by", "by", "by", "without"]);
    let labels = grouping(w);
    let space = w.space();
    match w.chance(70) {
        true => format!("{operator} {word} ({labels}){space}{arguments}"),
        false => format!("{operator}{arguments}{space}{word} ({labels})"),
    }
}

fn grouping(w: &mut Writer<'_>) -> String {
    let count = w.pick(&[0, 1, 1, 1, 2, 2, 3]);
    let mut labels: Vec<&str> = (0..count).map(|_| label(w)).collect();
    if w.chance(10) {
        labels.push(w.pick(&["__name__", "job", "none"]));
    }
    labels.join(", ")
}
