//! The generator of aggregations over a sub-select that aggregates `t`, or `t` joined with `u`.

use super::conditions::Writer;
use super::expressions::{equalities, key};
use super::values::{Column, Kind};
use rand::RngExt;

/// Returns an aggregation of a sub-select that aggregates.
pub fn nested(w: &mut Writer<'_>) -> String {
    let keys = w.random.random_range(1..4);
    let (below, joined) = below(w, keys);
    let below = match joined || w.random.random_ratio(4, 5) {
        true => below,
        // The query has three levels.
        false => {
            format!("SELECT k0, max(c) AS c, min(m) AS m, sum(x) AS x FROM ({below}) p GROUP BY k0")
        }
    };
    let keys = match below.contains(") p ") {
        true => 1,
        false => keys,
    };
    let calls: Vec<String> = (0..w.random.random_range(1..5)).map(|_| call(w)).collect();
    let having = w.one(&["", "", " HAVING count(*) > 2", " HAVING max(c) < 100"]);
    let condition = w.one(&["", "", " WHERE c > 2", " WHERE m IS NOT NULL AND x > 0"]);
    let group: Vec<String> = (0..w.random.random_range(0..3))
        .map(|_| match w.random.random_range(0..8) {
            0 => "c % 3".to_owned(),
            1 => "m > 10".to_owned(),
            2 => "k0 IS NULL".to_owned(),
            _ => format!("k{}", w.random.random_range(0..keys)),
        })
        .collect();
    let calls = calls.join(", ");
    if group.is_empty() {
        return format!("SELECT {calls} FROM ({below}) q{condition}{having}");
    }
    let positions: Vec<String> = (1..=group.len()).map(|k| k.to_string()).collect();
    format!(
        "SELECT {}, {calls} FROM ({below}) q{condition} GROUP BY {}{having}",
        group.join(", "),
        positions.join(", ")
    )
}

/// Returns the sub-select with a number of keys, whose answers do not depend on the order of rows,
/// and whether it joins.
fn below(w: &mut Writer<'_>, keys: usize) -> (String, bool) {
    let integer = Column::of(w.random, Kind::Integer).name;
    let condition = w.condition(1);
    let having = w.one(&["", "", " HAVING count(*) > 1", " HAVING min(t.i4) > -50"]);
    let joined = w.random.random_ratio(1, 3);
    let from = match joined {
        true => format!("t JOIN u ON {}", equalities(w)),
        false => "t".to_owned(),
    };
    let of_small = w.one(&["u.s", "u.d", "u.i2 % 3", "u.n"]).to_owned();
    let mut list = String::new();
    let mut positions = Vec::new();
    for place in 0..keys {
        let key = match joined && place == 0 {
            true => of_small.clone(),
            false => key(w),
        };
        list += &format!("{key} AS k{place}, ");
        positions.push((place + 1).to_string());
    }
    let query = format!(
        "SELECT {list}count(*) AS c, min(t.{integer}) AS m, max(t.i4 % 100) + count(t.b) AS x \
         FROM {from} WHERE {condition} GROUP BY {}{having}",
        positions.join(", ")
    );
    (query, joined)
}

/// Returns an aggregate of the sub-select's columns.
fn call(w: &mut Writer<'_>) -> String {
    let call = match w.random.random_range(0..8) {
        0 => "count(*)".to_owned(),
        1 => "count(k0)".to_owned(),
        2 => format!("{}(m)", w.one(&["min", "max", "count"])),
        3 => "sum(c) + count(x)".to_owned(),
        4 => "sum(c * 2 - 1)".to_owned(),
        5 => "avg(x::float8)".to_owned(),
        6 => "bool_or(x > 50)".to_owned(),
        _ => format!("{}(x)", w.one(&["sum", "avg", "stddev", "min"])),
    };
    match w.random.random_ratio(1, 4) && !call.contains(" + ") {
        true => {
            let filter = w.one(&["k0 IS NOT NULL", "c > 3", "m < 20 OR x IS NULL"]);
            format!("{call} FILTER (WHERE {filter})")
        }
        false => call,
    }
}
