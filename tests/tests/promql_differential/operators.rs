//! Binary operators. Operands are mostly chosen so that their series match each other.

use crate::selectors::{instant_of, label, metric, range_of};
use crate::vectors::{scalar, vector};
use crate::writer::Writer;
use rand::RngExt;

/// All binary operators.
#[cfg(test)]
pub const ALL: [&str; 16] = [
    "+", "-", "*", "/", "%", "^", "atan2", "==", "!=", ">", "<", ">=", "<=", "and", "or", "unless",
];

const ARITHMETIC: [&str; 9] = ["+", "+", "-", "-", "*", "*", "/", "/", "%"];
const POWERS: [&str; 2] = ["^", "atan2"];
const COMPARISONS: [&str; 6] = ["==", "!=", ">", "<", ">=", "<="];
const SETS: [&str; 3] = ["and", "or", "unless"];

/// A calculation.
pub fn arithmetic(w: &mut Writer<'_>, depth: u32) -> String {
    if w.nesting == 0 && w.chance(30) {
        let operator = w.pick_name(&POWERS);
        return operation(w, depth, operator);
    }
    match w.pick_name(&ARITHMETIC) {
        "%" => operation(w, depth, "%"),
        operator => operation(w, depth, operator),
    }
}

/// A comparison that filters, or returns 0 and 1.
pub fn comparison(w: &mut Writer<'_>, depth: u32) -> String {
    let mut operator = w.pick_name(&COMPARISONS).to_owned();
    if w.chance(40) {
        w.note("bool");
        operator.push_str(" bool");
    }
    operation(w, depth, &operator)
}

/// A set operation.
pub fn set_operation(w: &mut Writer<'_>, depth: u32) -> String {
    let operator = w.pick_name(&SETS);
    let matching = match w.random.random_range(0..5) {
        0 => {
            w.note("on");
            format!(" on ({})", label_list(w))
        }
        1 => {
            w.note("ignoring");
            format!(" ignoring ({})", label_list(w))
        }
        _ => String::new(),
    };
    let (left, right) = match w.chance(60) {
        true => {
            let metric = metric(w);
            w.inside(|w| (instant_of(w, metric), instant_of(w, metric)))
        }
        false => (vector(w, depth - 1), vector(w, depth - 1)),
    };
    joined(w, &left, &format!("{operator}{matching}"), &right)
}

fn label_list(w: &mut Writer<'_>) -> String {
    let count = w.random.random_range(0..3);
    let labels: Vec<&str> = (0..count).map(|_| label(w)).collect();
    labels.join(", ")
}

/// An operation of two operands with an operator that may be followed by `bool`.
fn operation(w: &mut Writer<'_>, depth: u32, operator: &str) -> String {
    match w.random.random_range(0..20) {
        0..=4 => {
            let (vector, scalar) = (vector(w, depth - 1), scalar(w, 1));
            joined(w, &vector, operator, &scalar)
        }
        5 | 6 => {
            let (scalar, vector) = (scalar(w, 1), vector(w, depth - 1));
            joined(w, &scalar, operator, &vector)
        }
        7..=10 => {
            let metric = metric(w);
            let (left, right) = w.inside(|w| match w.chance(50) {
                true => (instant_of(w, metric), instant_of(w, metric)),
                false => (rate_of(w, metric), rate_of(w, metric)),
            });
            joined(w, &left, operator, &right)
        }
        11..=13 => {
            let labels = w.pick(&["job", "job, instance", "instance", ""]);
            let (left, right) = (summed(w, depth, labels), summed(w, depth, labels));
            joined(w, &left, operator, &right)
        }
        14..=17 => many_to_one(w, operator),
        _ => {
            let (left, right) = (vector(w, depth - 1), vector(w, depth - 1));
            let matching = match w.random.random_range(0..3) {
                0 => {
                    w.note("on");
                    format!(" on (job, {})", label(w))
                }
                1 => {
                    w.note("ignoring");
                    format!(" ignoring ({})", label_list(w))
                }
                _ => String::new(),
            };
            joined(w, &left, &format!("{operator}{matching}"), &right)
        }
    }
}

fn rate_of(w: &mut Writer<'_>, metric: &str) -> String {
    w.note("rate");
    format!("rate({})", range_of(w, metric))
}

fn summed(w: &mut Writer<'_>, depth: u32, labels: &str) -> String {
    w.note("by");
    let operator = w.pick_name(&["sum", "max", "count", "avg"]);
    let inner = vector(w, depth - 1);
    format!("{operator} by ({labels}) ({inner})")
}

/// Many series of each instance with one.
fn many_to_one(w: &mut Writer<'_>, operator: &str) -> String {
    let many = w.pick(&[
        "cpu_seconds_total",
        "requests_total",
        "temperature",
        "queue_length",
    ]);
    let one = w.pick(&["target_info", "up", "memory_bytes", "specials"]);
    let (many, one) = w.inside(|w| (instant_of(w, many), instant_of(w, one)));
    let matching = match w.chance(60) {
        true => {
            w.note("on");
            "on (job, instance)"
        }
        false => {
            w.note("ignoring");
            "ignoring (mode, code, method, room, queue, version)"
        }
    };
    // Parentheses would be read as the list of labels.
    let include = w.pick(&[" ()", " ()", " (version)", " (version, none)"]);
    match w.chance(50) {
        true => {
            w.note("group_left");
            joined(
                w,
                &many,
                &format!("{operator} {matching} group_left{include}"),
                &one,
            )
        }
        false => {
            w.note("group_right");
            joined(
                w,
                &one,
                &format!("{operator} {matching} group_right{include}"),
                &many,
            )
        }
    }
}

/// Two operands with an operator between them. Without parentheses precedence decides.
fn joined(w: &mut Writer<'_>, left: &str, operator: &str, right: &str) -> String {
    let space = w.space();
    match w.chance(75) {
        true => format!("({left}) {operator}{space}({right})"),
        false => format!("{left} {operator}{space}{right}"),
    }
}
