//! The generator of queries of unusual shapes: constants and repeated keys, keys that a condition makes constant,
//! set-returning functions, whole rows, sub-selects that are read again and again, appended sub-selects.

use super::conditions::Writer;
use super::expressions::{call, condition_or_none, key};
use super::values::{Column, Kind};
use rand::RngExt;

/// Returns a query of an unusual shape, whose answer does not depend on the order of rows.
pub fn shape(w: &mut Writer<'_>) -> String {
    match w.random.random_range(0..4) {
        0 => of_constants(w),
        1 => of_groups(w),
        2 => of_rows(w),
        _ => of_outer_rows(w),
    }
}

/// Returns a constant.
fn constant(w: &mut Writer<'_>) -> &'static str {
    let constants = [
        "42",
        "NULL::int",
        "'x'::text",
        "true",
        "1.5::float8",
        "pi()",
    ];
    constants[w.random.random_range(0..constants.len())]
}

fn integer(w: &mut Writer<'_>) -> &'static str {
    Column::of(w.random, Kind::Integer).name
}

/// Returns groups by constants, of constants, or by a key that equals one.
fn of_constants(w: &mut Writer<'_>) -> String {
    let (condition, constant, number) = (condition_or_none(w), constant(w), integer(w));
    let any = w.random.random_range(0..6);
    let (key, call) = (key(w), call(w));
    match any {
        0 => format!(
            "SELECT c, count(*), max(k::text) FROM (SELECT DISTINCT {key} AS k, {constant} AS c FROM t{condition}) q GROUP BY c"
        ),
        1 => format!(
            "SELECT c, sum(n), sum(d) FROM (SELECT {key} AS k, {constant} AS c, 7 AS d, count(*) AS n FROM t{condition} GROUP BY 1, 2) q GROUP BY c"
        ),
        2 => format!("SELECT {constant}, {call} FROM t{condition} GROUP BY 1"),
        3 => format!("SELECT {constant} FROM t{condition} HAVING count(*) > 3"),
        4 => format!(
            "SELECT sum(1), count(NULL), min(NULL::int), max('x'::text), count(DISTINCT 1), {call} FROM t{condition}"
        ),
        _ => {
            let column = Column::of(w.random, Kind::Integer);
            let value = w.constant(column);
            format!(
                "SELECT t.{number}, {key}, {key}, {call} FROM t WHERE t.{number} = {value} GROUP BY t.{number}, 2, 3"
            )
        }
    }
}

/// Returns groups that are appended, joined, filtered by rank, or grouped again by sets.
fn of_groups(w: &mut Writer<'_>) -> String {
    let (condition, number) = (condition_or_none(w), integer(w));
    let (key, call) = (key(w), call(w));
    match w.random.random_range(0..6) {
        0 => "SELECT k, sum(n) FROM (SELECT i2 AS k, count(*) AS n FROM t GROUP BY 1 UNION ALL SELECT i2, sum(id) FROM u GROUP BY 1) q GROUP BY k".into(),
        1 => format!("SELECT k, count(*) FROM (SELECT t.{number} AS k FROM t{condition} UNION ALL SELECT {number} FROM u UNION ALL SELECT 5) q GROUP BY k"),
        2 => format!("SELECT u.id, q.n FROM u JOIN (SELECT t.i2 AS k, count(*) AS n, max(t.id) AS top FROM t{condition} GROUP BY 1) q ON q.k = u.i2 AND q.top > u.id"),
        3 => format!("SELECT k, b, sum(n), count(*) FROM (SELECT {key} AS k, t.b, count(*) AS n FROM t{condition} GROUP BY 1, 2) q GROUP BY ROLLUP (k, b)"),
        4 => format!("SELECT k, n, rank() OVER (ORDER BY n), sum(n) OVER () FROM (SELECT {key} AS k, count(*) AS n FROM t{condition} GROUP BY 1) q"),
        _ => format!("SELECT {key}, {call}, count(*) OVER (), sum(count(*)) OVER () FROM t{condition} GROUP BY 1"),
    }
}

/// Returns rows as a whole, rows that are made of others, and rows that conditions exclude.
fn of_rows(w: &mut Writer<'_>) -> String {
    let (condition, number) = (condition_or_none(w), integer(w));
    match w.random.random_range(0..7) {
        0 => format!("SELECT count(t), count(t.*), count(*) FROM t{condition}"),
        1 => format!("SELECT t IS NULL, t IS NOT NULL, count(*) FROM t{condition} GROUP BY 1, 2"),
        2 => format!(
            "SELECT t.{number}, generate_series(1, t.i2 % 4) FROM t{condition} ORDER BY t.id LIMIT 300"
        ),
        3 => format!(
            "SELECT x, count(*) FROM t, unnest(ARRAY[t.{number}::int8, t.i2, NULL]) x{condition} GROUP BY 1"
        ),
        4 => format!(
            "SELECT count(*) FROM (SELECT 1 FROM t{condition} LIMIT {}) q",
            w.one(&["10", "0", "NULL", "(SELECT 5)"])
        ),
        5 => {
            let never = w.one(&["false", "NULL", "t.i2 > 5 AND t.i2 < 3", "1 = 0"]);
            format!("SELECT t.{number}, count(*) FROM t WHERE {never} GROUP BY 1")
        }
        _ => format!(
            "SELECT count(*), min(id) FROM t NATURAL {} JOIN (SELECT id, i2 FROM u) q",
            w.one(&["", "LEFT", "RIGHT", "FULL"])
        ),
    }
}

/// Returns sub-selects over `t` for each row of the smaller `u`.
fn of_outer_rows(w: &mut Writer<'_>) -> String {
    let (condition, number) = (w.condition(1), integer(w));
    let operator = w.one(&["=", "<", ">=", "<>"]);
    let same = format!("t.{number} {operator} u.{number} AND {condition}");
    let (key, call) = (key(w), call(w));
    match w.random.random_range(0..7) {
        0 => format!(
            "SELECT u.id, ARRAY(SELECT t.id FROM t WHERE {same} ORDER BY t.id LIMIT 4) FROM u"
        ),
        1 => format!("SELECT u.id FROM u WHERE u.i8 > (SELECT avg(t.i2) FROM t WHERE {same})"),
        2 => format!(
            "SELECT u.id, q.* FROM u LEFT JOIN LATERAL (SELECT {key} AS k, count(*) FROM t WHERE {same} GROUP BY 1) q ON true"
        ),
        3 => format!(
            "SELECT count(*) FILTER (WHERE EXISTS (SELECT FROM t WHERE {same})), sum((SELECT count(*) FROM t WHERE t.i2 = u.i2)) FROM u"
        ),
        4 => format!("SELECT (SELECT sum(u.{number}) FROM t WHERE t.id = 1), count(*) FROM u"),
        5 => {
            format!("SELECT u.s, CASE WHEN u.b THEN (SELECT {call} FROM t WHERE {same}) END FROM u")
        }
        _ => format!(
            "SELECT u.id, u.i2 IN (SELECT t.i2 FROM t WHERE {same}), u.i4 > ALL (SELECT t.i2 FROM t WHERE {same} AND t.id < 500) FROM u"
        ),
    }
}
