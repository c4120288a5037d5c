//! The generator of SQL's window functions over `t`. `id` ends each list of order keys, so that no
//! rows tie where their order would matter.

use super::conditions::Writer;
use super::expressions::condition_or_none;
use super::values::{Column, Kind};
use rand::RngExt;

/// Returns rows with window functions, or an aggregation of them, or the first rows of partitions.
pub fn windows(w: &mut Writer<'_>) -> String {
    let calls: Vec<String> = (0..w.random.random_range(1..5))
        .map(|place| format!("{} AS c{place}", call(w)))
        .collect();
    let (calls, condition) = (calls.join(", "), condition_or_none(w));
    let (window, frame) = (window(w), frame(w));
    let columns = format!("t.id, t.{}, t.s", Column::any(w.random).name);
    match w.random.random_range(0..6) {
        0 => format!(
            "SELECT count(c0), min(c0::text), max(id) FROM (SELECT t.id, {calls} FROM t{condition} WINDOW o AS ({window}), w AS (o {frame})) q"
        ),
        1 => {
            let rank = w.one(&["row_number", "rank", "dense_rank", "count"]);
            let rank = match rank {
                "count" => "count(*)".to_owned(),
                rank => format!("{rank}()"),
            };
            let operator = w.one(&["<=", "<", "="]);
            format!(
                "SELECT * FROM (SELECT {columns}, {rank} OVER ({window}) AS place FROM t{condition}) q WHERE place {operator} 3"
            )
        }
        _ => format!(
            "SELECT {columns}, {calls} FROM t{condition} WINDOW o AS ({window}), w AS (o {frame})"
        ),
    }
}

/// Returns partition keys and order keys.
fn window(w: &mut Writer<'_>) -> String {
    let keys: Vec<String> = (0..w.random.random_range(0..3))
        .map(|_| match w.random.random_range(0..4) {
            0 => "t.i4 % 7".to_owned(),
            1 => "date_trunc('day', t.tz)".to_owned(),
            _ => format!("t.{}", w.one(&["s", "b", "i2", "d", "v", "uu", "f4"])),
        })
        .collect();
    let partitions = match keys.is_empty() {
        true => String::new(),
        false => format!("PARTITION BY {} ", keys.join(", ")),
    };
    let orders: Vec<String> = (0..w.random.random_range(0..3))
        .map(|_| {
            let kind = [Kind::Integer, Kind::Float, Kind::Time][w.random.random_range(0..3)];
            let column = Column::of(w.random, kind).name;
            let direction = w.one(&["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
            format!("t.{column}{direction}, ")
        })
        .collect();
    let last = w.one(&["", " DESC"]);
    format!("{partitions}ORDER BY {}t.id{last}", orders.concat())
}

fn frame(w: &mut Writer<'_>) -> &'static str {
    w.one(&[
        "",
        "",
        "ROWS UNBOUNDED PRECEDING",
        "ROWS 3 PRECEDING",
        "ROWS BETWEEN 2 PRECEDING AND 5 FOLLOWING",
        "ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING",
        "ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
        "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        "GROUPS BETWEEN CURRENT ROW AND CURRENT ROW",
    ])
}

/// Returns a call over the window `w`, or over `o`, which has no frame.
fn call(w: &mut Writer<'_>) -> String {
    let column = format!("t.{}", Column::any(w.random).name);
    let (number, ty) = w.number();
    let offset = w.random.random_range(-2..4);
    let call = match w.random.random_range(0..12) {
        0 => w
            .one(&["row_number()", "rank()", "dense_rank()", "ntile(5)"])
            .to_owned(),
        1 => w.one(&["percent_rank()", "cume_dist()"]).to_owned(),
        2 => format!("{}({column})", w.one(&["lag", "lead"])),
        3 => format!("{}({number}, {offset})", w.one(&["lag", "lead"])),
        4 => format!("lag({number}, {offset}, '7'::{ty})"),
        5 => format!("{}({column})", w.one(&["first_value", "last_value"])),
        6 => format!("nth_value({number}, {})", w.random.random_range(1..4)),
        7 => w.one(&["count(*)", "count(t.s)", "count(t.f8)"]).to_owned(),
        8 | 9 => format!("{}({number})", w.one(&["sum", "avg"])),
        _ => format!("{}({number})", w.one(&["min", "max", "count"])),
    };
    let is_aggregate = ["count", "sum", "avg", "min", "max"]
        .iter()
        .any(|name| call.starts_with(&format!("{name}(")));
    let filter = match is_aggregate && w.random.random_ratio(1, 4) {
        true => format!(" FILTER (WHERE {})", w.condition(1)),
        false => String::new(),
    };
    format!("{call}{filter} OVER {}", w.one(&["o", "w", "w"]))
}
