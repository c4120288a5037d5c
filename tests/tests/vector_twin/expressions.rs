//! The generator of aggregate calls, grouping expressions and join conditions.

use super::conditions::Writer;
use super::values::{Column, Kind};
use rand::RngExt;

/// Returns an aggregate call that cannot fail.
pub fn call(w: &mut Writer<'_>) -> String {
    let column = Column::any(w.random);
    let (name, (number, ty)) = (w.name(column), w.number());
    let float = Column::of(w.random, Kind::Float);
    let float = w.name(float);
    let any = if w.plain { 21 } else { 24 };
    let call = match w.random.random_range(0..any) {
        0..=2 => "count(*)".to_owned(),
        3 | 4 => format!("count({name})"),
        5..=8 => format!("{}({number})", w.one(&["sum", "avg"])),
        9 | 10 => format!("{}({number})", w.one(&["min", "max"])),
        22 if column.kind != Kind::Bool => format!("{}({name})", w.one(&["min", "max"])),
        13 => format!(
            "{}({})",
            w.one(&["bool_and", "bool_or", "every"]),
            w.condition(1)
        ),
        14 | 15 => {
            let function = w.one(&[
                "stddev",
                "stddev_pop",
                "stddev_samp",
                "variance",
                "var_pop",
                "var_samp",
            ]);
            let argument = if !w.plain && w.random.random_bool(0.3) {
                number
            } else {
                float
            };
            format!("{function}({argument})")
        }
        16 => format!("count({})", w.condition(0)),
        12 if ty != "numeric" => format!(
            "lanes.{}({number}, {}.id)",
            w.one(&["first", "last"]),
            w.alias
        ),
        11 if w.random.random_bool(0.5) => format!(
            "lanes.ema({float}::float8, {} ORDER BY {}.id)",
            w.one(&["5", "0.25", "1"]),
            w.alias
        ),
        11 => format!(
            "lanes.vwap({}.i2::float8, ({}.i4 % 50 + 60)::float8)",
            w.alias, w.alias
        ),
        20 => {
            let fraction = w.one(&["0", "0.25", "0.5", "0.99", "1"]);
            let direction = w.one(&["", " DESC"]);
            let (name, column) = match w.one(&["cont", "disc", "mode"]) {
                "cont" => (format!("percentile_cont({fraction})"), float),
                "disc" => (
                    format!("percentile_disc({fraction})"),
                    format!("{}.i4", w.alias),
                ),
                _ => ("mode()".to_owned(), format!("{}.i2", w.alias)),
            };
            format!("{name} WITHIN GROUP (ORDER BY {column}{direction})")
        }
        21 => {
            let decimal = w.decimal(2);
            match w.one(&["sum", "avg", "count", "least", "greatest"]) {
                // Of equal numbers with several scales, any may be found.
                "least" => format!("trim_scale(min({decimal}))"),
                "greatest" => format!("trim_scale(max({decimal}))"),
                function => format!("{function}({decimal})"),
            }
        }
        18 => over_time(w, &format!("{float}::float8")),
        17 => format!("count(DISTINCT {})", w.one(&[&name, &number])),
        19 => {
            let function = w.one(&["sum", "avg", "min", "max", "count"]);
            format!("{function}(DISTINCT {})", w.one(&[&number, &float]))
        }
        _ => format!("sum({0}.i4 % 100) + count({0}.b) * 2", w.alias),
    };
    let is_one_call = call.ends_with(')') && !call.contains(") + ") && !call.starts_with("trim");
    if is_one_call && w.random.random_ratio(1, 4) {
        let filter = w.condition(1);
        return format!("{call} FILTER (WHERE {filter})");
    }
    call
}

/// Returns a call of an aggregate in the order of time, or of a histogram.
fn over_time(w: &mut Writer<'_>, float: &str) -> String {
    let alias = w.alias;
    let order = match w.random.random_bool(0.2) {
        true => format!(" ORDER BY {alias}.uq"),
        false => String::new(),
    };
    match w.one(&["increase", "rate", "locf", "linear", "histogram"]) {
        "locf" => format!("lanes.time_weight({float}, {alias}.uq{order})"),
        "linear" => format!("lanes.time_weight({float}, {alias}.uq, 'linear'{order})"),
        "histogram" => format!("lanes.histogram({float}, -10.5, 300, 7)"),
        name => format!("lanes.counter_{name}({float}, {alias}.uq{order})"),
    }
}

pub fn calls(w: &mut Writer<'_>) -> String {
    let count = w.random.random_range(1..5);
    let calls: Vec<String> = (0..count).map(|_| call(w)).collect();
    calls.join(", ")
}

/// Returns a grouping expression that has one representation per group.
pub fn key(w: &mut Writer<'_>) -> String {
    let unit = w.one(&[
        "second", "minute", "hour", "day", "week", "month", "quarter", "year",
    ]);
    let width = w.one(&["7 min", "1 hour", "1 day", "90 s", "8 days"]);
    let any = if w.plain { 21 } else { 24 };
    match w.random.random_range(0..any) {
        0..=2 => "t.s".into(),
        4 => w.one(&["t.tdom", "t.v"]).into(),
        5 => "t.b".into(),
        6 => "t.i2".into(),
        7 => "t.i4 % 10".into(),
        8 => "t.f8 + 0".into(),
        9 => "t.f4 + 0".into(),
        10 => "t.d".into(),
        11 | 12 => format!("date_trunc('{unit}', t.tz)"),
        13 => format!("date_trunc('{unit}', t.ts)"),
        14 => format!("date_bin('{width}', t.tz, '2000-01-01 00:00:01Z')"),
        15 => format!("date_bin('{width}', t.ts, '2026-04-01')"),
        16 => format!("lanes.time_bucket('{width}', t.tz)"),
        17 => format!("lanes.time_bucket('{width}', t.tz, 'Europe/Berlin')"),
        18 => w.condition(0),
        19 => "t.s COLLATE \"C\"".into(),
        20 => "t.uu".into(),
        21 => "t.s::bpchar COLLATE \"C\"".into(),
        3 => "lanes.time_bucket(17, t.i4)".into(),
        22 => "floor(extract(epoch FROM t.tz) / 3600) * 3600".into(),
        _ => "length(t.w)".into(),
    }
}

/// Returns one or two equalities of `t` and `u`, mostly of columns that a hash join accepts.
pub fn equalities(w: &mut Writer<'_>) -> String {
    let one = |w: &mut Writer<'_>| match w.random.random_range(0..16) {
        0 => "t.id = u.id + 1".into(),
        1 => "t.i4 % 20 = u.i2".into(),
        2 => "u.i8 = t.i4".into(),
        3 => "t.id = u.i4".into(),
        4 => "t.s = u.v".into(),
        5 => "t.tdom = u.s || ''".into(),
        6 => "t.f8 = u.f8".into(),
        7 => "t.tz = u.ts".into(),
        8 => w.one(&["t.f4 = u.f8", "t.f8 = u.f4", "t.f4 = u.f4"]).into(),
        9 | 10 => "t.uu = u.uu".into(),
        _ => {
            let column = w.one(&["id", "i2", "i4", "i8", "s", "v", "d", "tz", "ts", "b", "n"]);
            format!("t.{column} = u.{column}")
        }
    };
    match w.random.random_bool(0.3) {
        true => format!("{} AND {}", one(w), one(w)),
        false => one(w),
    }
}

/// Returns a further condition between `t` and `u` that is no equality of columns, and that never fails; or none.
pub fn further(w: &mut Writer<'_>) -> String {
    if w.random.random_bool(0.6) {
        return String::new();
    }
    let condition = w.one(&[
        "t.i4 > u.i4",
        "t.f8 <= u.f4",
        "t.i2 <> u.i2",
        "t.i8 IS DISTINCT FROM u.i8",
        "coalesce(t.f4, u.f4) > 0",
        "t.id % 3 = u.id % 3",
        "t.tz BETWEEN u.tz AND u.ts::timestamptz",
        "CASE WHEN u.i2 > 20 THEN t.d < u.d ELSE t.b END",
        "(t.i2 > 30 OR u.s IS NULL)",
        "(u.b OR t.i4 > u.i2)",
        "t.s <> u.s",
        "t.v::text || 'a' < u.v",
        "t.n > u.n",
        "u.v LIKE 'a%'",
    ]);
    format!(" AND {condition}")
}

pub fn condition_or_none(w: &mut Writer<'_>) -> String {
    match w.random.random_bool(0.6) {
        true => format!(" WHERE {}", w.condition(2)),
        false => String::new(),
    }
}
