//! Queries that are refused: damaged texts and wrong types.

use crate::selectors::{instant, matrix};
use crate::vectors;
use crate::writer::Writer;
use rand::RngExt;

/// A query that is likely to be refused, and its kind.
pub fn query(w: &mut Writer<'_>) -> (String, &'static str) {
    match w.chance(60) {
        true => (damaged(w), "broken text"),
        false => (mistyped(w), "broken types"),
    }
}

/// A query with a damage in one place. It may still be a query.
fn damaged(w: &mut Writer<'_>) -> String {
    w.note("damaged");
    let (text, _) = vectors::query(w);
    let mut characters: Vec<char> = text.chars().collect();
    let place = w.random.random_range(0..characters.len().max(1));
    match w.random.random_range(0..3) {
        0 if place < characters.len() => drop(characters.remove(place)),
        1 => {
            let more = w.pick(&[
                '(', ')', '{', '}', '[', ']', ',', '"', '5', '=', 'x', '@', ' ', '\\',
            ]);
            characters.insert(place.min(characters.len()), more);
        }
        _ => characters.truncate(place),
    }
    characters.into_iter().collect()
}

/// A query that can be read but has a wrong type, number of arguments or name.
fn mistyped(w: &mut Writer<'_>) -> String {
    w.note("mistyped");
    let vector = w.inside(instant);
    let range = w.inside(|w| matrix(w, 0));
    match w.random.random_range(0..18) {
        0 => format!("rate({vector})"),
        1 => format!("sum({range})"),
        2 => format!("histogram_quantile(\"0.5\", {vector})"),
        3 => format!("no_such_function({vector})"),
        4 => format!("{vector} and 1"),
        5 => "1 > 2".to_owned(),
        6 => format!("abs({vector}, 1)"),
        7 => format!("{vector} + {range}"),
        8 => format!("{vector} + bool {vector}"),
        9 => format!("topk({vector})"),
        10 => format!("sum by (job) without (instance) ({vector})"),
        11 => format!("{vector} and on (job) group_left {vector}"),
        12 => "{}".to_owned(),
        13 => "{job=~\".*\"}".to_owned(),
        14 => format!("label_replace({vector}, \"x\", \"$1\", \"job\", \"(\")"),
        15 => format!("{vector} + on (job) group_left (job) {vector}"),
        16 => format!("count_values(\"\", {vector})"),
        _ => format!("-\"text\" + {vector}"),
    }
}
