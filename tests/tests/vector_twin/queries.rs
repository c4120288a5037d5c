//! The generator of queries on `t` and `u`. Their answers do not depend on the stored order of
//! rows, unless [`Query`] says that rows are ordered.

use super::conditions::Writer;
use super::expressions::{call, calls, condition_or_none, equalities, further, key};
use super::nested;
use super::outer_joins;
use super::shapes;
use super::values::Column;
use super::windows;
use lanes_support::seed::Random;
use rand::RngExt;

/// Statements whose answers are compared.
#[derive(Debug, Clone)]
pub struct Query {
    /// The statements, run one after the other, without parameters.
    pub statements: Vec<String>,
    /// Whether rows are ordered.
    pub ordered: bool,
    /// Whether any error agrees with any other, because it may depend on the order of rows which
    /// one occurs.
    pub any_error: bool,
}

impl Query {
    fn one(statement: String) -> Query {
        Query {
            statements: vec![statement],
            ordered: false,
            any_error: false,
        }
    }
}

/// Returns any query.
pub fn query(random: &mut Random) -> Query {
    let prepared = random.random_ratio(1, 6);
    let plain = random.random_bool(0.6);
    let mut writer = Writer {
        random,
        parameters: prepared.then(Vec::new),
        alias: "t",
        plain,
    };
    if prepared {
        return prepare(&mut writer);
    }
    match writer.random.random_range(0..50) {
        0..=6 => Query::one(scan(&mut writer)),
        7..=12 => Query::one(aggregate(&mut writer)),
        13..=18 => Query::one(grouped(&mut writer)),
        19 => Query {
            ordered: true,
            ..Query::one(ordered(&mut writer))
        },
        20 => Query::one(joined(&mut writer)),
        21 | 22 => Query::one(joined_by_key(&mut writer)),
        23 => Query::one(sub_select(&mut writer)),
        24 | 25 => cursor(&mut writer),
        26 => change(&mut writer),
        27 | 28 => risky(&mut writer),
        29 | 30 => Query::one(outer_joins::null_side(&mut writer)),
        31 | 32 => Query::one(outer_joins::star(&mut writer)),
        33..=36 => Query::one(nested::nested(&mut writer)),
        37..=41 => Query::one(windows::windows(&mut writer)),
        42..=46 => Query::one(shapes::shape(&mut writer)),
        _ => Query::one(sets(&mut writer)),
    }
}

fn scan(w: &mut Writer<'_>) -> String {
    let condition = w.condition(2);
    match w.random.random_range(0..5) {
        0 => format!("SELECT t FROM t WHERE {condition} AND id % 50 = 1"),
        1 => {
            let (a, b) = (w.number().0, w.number().0);
            format!("SELECT id, {a}, {b}, s, n FROM t WHERE id % 20 = 3 AND {condition}")
        }
        2 => format!("SELECT count(*), sum(hashtext(t::text)) FROM t WHERE {condition}"),
        3 => {
            let (a, b) = (Column::any(w.random).name, Column::any(w.random).name);
            format!("SELECT DISTINCT {a}, {b} IS NULL FROM t WHERE {condition}")
        }
        _ => {
            let column = Column::any(w.random).name;
            format!(
                "SELECT {column}, tableoid::regclass::text = 't', id FROM t WHERE {condition} AND id < 6000"
            )
        }
    }
}

fn aggregate(w: &mut Writer<'_>) -> String {
    let (calls, condition) = (calls(w), condition_or_none(w));
    let having = w.one(&[
        "",
        "",
        "",
        " HAVING count(*) > 10",
        " HAVING bool_or(t.b)",
        " HAVING true",
    ]);
    format!("SELECT {calls} FROM t{condition}{having}")
}

fn grouped(w: &mut Writer<'_>) -> String {
    let keys: Vec<String> = (0..w.random.random_range(1..4)).map(|_| key(w)).collect();
    let (calls, condition) = (calls(w), condition_or_none(w));
    let having = w.one(&[
        "",
        "",
        " HAVING count(*) > 3",
        " HAVING min(t.i4) IS NOT NULL",
    ]);
    let positions: Vec<String> = (1..=keys.len()).map(|k| k.to_string()).collect();
    let group = match w.random.random_range(0..12) {
        0 => format!("ROLLUP ({})", positions.join(", ")),
        _ => positions.join(", "),
    };
    let order = w.one(&["", "", " ORDER BY count(*)", " ORDER BY 1"]);
    format!(
        "SELECT {}, {calls} FROM t{condition} GROUP BY {group}{having}{order}",
        keys.join(", ")
    )
}

fn ordered(w: &mut Writer<'_>) -> String {
    let column = Column::any(w.random);
    let direction = w.one(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
    let (limit, offset) = (w.random.random_range(0..40), w.random.random_range(0..10));
    let condition = w.condition(2);
    match w.random.random_range(0..7) {
        6 => {
            let text = w.one(&["s", "w", "v", "tdom"]);
            let order = format!(
                "{text} COLLATE \"C\"{direction}, {}{direction}",
                column.name
            );
            format!("SELECT id, {text} FROM t WHERE {condition} ORDER BY {order}, id LIMIT {limit}")
        }
        3 => format!(
            "SELECT DISTINCT ON (t.s, t.b) s, b, id FROM t WHERE {condition} ORDER BY t.b{direction}, t.s, t.{}{direction}, t.id",
            column.name
        ),
        4 => format!("SELECT DISTINCT s, b FROM t WHERE {condition} ORDER BY 2{direction}, 1"),
        5 => format!(
            "SELECT id FROM t WHERE {condition} ORDER BY {}{direction}, {}, id DESC LIMIT {limit}",
            column.name,
            Column::any(w.random).name
        ),
        0 => format!(
            "SELECT DISTINCT ON (t.s) s, id, i4 FROM t WHERE {condition} ORDER BY t.s, t.id{direction} LIMIT {limit}"
        ),
        1 => format!(
            "SELECT s, count(*) FROM t WHERE {condition} GROUP BY s ORDER BY 2{direction}, 1 LIMIT {limit}"
        ),
        _ => format!(
            "SELECT id, {0} FROM t WHERE {condition} ORDER BY {0}{direction}, id LIMIT {limit} OFFSET {offset}",
            column.name
        ),
    }
}

/// Returns a join of `t` by equality with the smaller `u`: rows, and groups by expressions over
/// both.
fn joined_by_key(w: &mut Writer<'_>) -> String {
    let on = equalities(w) + &further(w);
    let condition = condition_or_none(w);
    let kind = w.one(&["JOIN", "JOIN", "LEFT JOIN"]);
    let of_small = w.one(&[
        "u.s",
        "u.v::text",
        "coalesce(u.b, false)",
        "u.i2 % 3",
        "u.d",
        "u.tz",
        "u.f8 + 0",
        "u.uu",
        "upper(u.s) || 'x'",
    ]);
    let membership = match w.one(&["IN", "NOT", "EXISTS"]) {
        "IN" => "t.s IN (SELECT u.s FROM u WHERE u.i2 < 50)".to_owned(),
        "NOT" => format!("NOT EXISTS (SELECT FROM u WHERE {on})"),
        _ => format!("EXISTS (SELECT FROM u WHERE {on})"),
    };
    let and_member = match condition.is_empty() {
        true => format!(" WHERE {membership}"),
        false => format!("{condition} AND {membership}"),
    };
    // A row of a group is a joined row, which the ids of both sides identify.
    let (group, ordered) = (Column::any(w.random).name, Column::any(w.random).name);
    let direction = w.one(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
    let (limit, offset) = (w.random.random_range(1..200), w.random.random_range(0..20));
    let same = w.one(&["s", "i4", "i2", "d", "uu"]);
    match w.random.random_range(0..12) {
        // An anti join with columns of the side that has no match.
        11 => format!(
            "SELECT {of_small}, count(*), count(u.id), sum(u.i4), min(u.i8), max(u.f8) FROM t \
             LEFT JOIN u ON t.{same} = u.{same} WHERE u.{same} IS NULL GROUP BY 1"
        ),
        9 => format!(
            "SELECT t.id, u.id, u.s, t.{group} FROM t {kind} u ON {on}{condition} \
             ORDER BY t.{ordered}{direction}, t.id, u.id LIMIT {limit} OFFSET {offset}"
        ),
        10 => format!(
            "SELECT t.id, t.{group} FROM t{and_member} ORDER BY t.{ordered}{direction}, t.id LIMIT {limit}"
        ),
        7 => format!("SELECT DISTINCT {of_small}, t.{group} FROM t {kind} u ON {on}{condition}"),
        8 => format!(
            "SELECT DISTINCT ON ({of_small}, t.{group}) {of_small}, t.{group}, t.id, u.id, u.s FROM t {kind} u ON {on}{condition} \
             ORDER BY {of_small}, t.{group}, t.{ordered}{direction}, t.id, u.id"
        ),
        0 => format!(
            "SELECT t.id, u.id, u.s, t.{} FROM t {kind} u ON {on}{condition}",
            Column::any(w.random).name
        ),
        1 => format!("SELECT {} FROM t {kind} u ON {on}{condition}", calls(w)),
        2 => format!(
            "SELECT {of_small}, {} FROM t {kind} u ON {on}{condition} GROUP BY 1",
            calls(w)
        ),
        3 => format!(
            "SELECT {of_small}, {}, count(u.id), sum(u.i4), min(u.i8), max(t.i2::int8 - u.i2) FROM t {kind} u ON {on}{condition} GROUP BY 1, 2",
            key(w)
        ),
        4 => format!("SELECT t.id FROM t{and_member}"),
        5 => format!("SELECT {} FROM t{and_member}", calls(w)),
        _ => format!(
            "SELECT {}, {} FROM t{and_member} GROUP BY 1",
            key(w),
            calls(w)
        ),
    }
}

fn joined(w: &mut Writer<'_>) -> String {
    let condition = w.condition(1);
    let calls = calls(w);
    match w.random.random_range(0..7) {
        0 => format!("SELECT {calls} FROM t JOIN u USING (id) WHERE {condition}")
            .replace("t.id", "id"),
        1 => format!(
            "SELECT u.id, l.* FROM u LEFT JOIN LATERAL (SELECT {calls} FROM t WHERE t.i4 < u.i4 AND {condition}) l ON true"
        ),
        2 => format!(
            "SELECT u.id, l.* FROM u CROSS JOIN LATERAL (SELECT t.id, t.s FROM t WHERE t.s = u.s AND {condition} ORDER BY t.id DESC LIMIT 3) l"
        ),
        3 => format!(
            "SELECT u.id, (SELECT {} FROM t WHERE t.b = u.b AND {condition}) FROM u",
            call(w)
        ),
        4 => format!(
            "SELECT u.s, {calls} FROM t JOIN u ON t.s = u.s AND t.i2 > u.i2 WHERE {condition} GROUP BY u.s"
        ),
        5 => format!(
            "SELECT u.id, count(t.id) FROM u LEFT JOIN t ON t.id = u.id + 1 AND {condition} GROUP BY 1"
        ),
        _ => format!(
            "SELECT count(*) FROM u WHERE u.i4 >= ALL (SELECT t.i4 FROM t WHERE t.i4 IS NOT NULL AND {condition} AND t.id < 3000)"
        ),
    }
}

fn sub_select(w: &mut Writer<'_>) -> String {
    let (key, condition) = (key(w), w.condition(1));
    match w.random.random_range(0..4) {
        0 => format!(
            "SELECT count(*), sum(c) FROM (SELECT {key} AS k, count(*) AS c FROM t WHERE {condition} GROUP BY 1) q"
        ),
        1 => format!(
            "WITH q AS MATERIALIZED (SELECT {key} AS k, i2, s FROM t WHERE {condition}) SELECT k, count(*), max(i2), min(s) FROM q GROUP BY k"
        ),
        2 => format!(
            "SELECT k, c, sum(c) OVER (ORDER BY c, k) FROM (SELECT t.i2 AS k, count(*) AS c FROM t WHERE {condition} GROUP BY 1) q"
        ),
        _ => format!(
            "SELECT k, max(c) FROM (SELECT {key} AS k, t.b, count(*) AS c FROM t WHERE {condition} GROUP BY 1, 2) q GROUP BY k"
        ),
    }
}

fn sets(w: &mut Writer<'_>) -> String {
    let (a, b) = (w.condition(1), w.condition(1));
    match w.random.random_range(0..4) {
        0 => format!("SELECT s, i2 FROM t WHERE {a} UNION SELECT s, i2 FROM u t WHERE {b}"),
        1 => format!("SELECT id FROM t WHERE {a} EXCEPT SELECT id FROM t WHERE {b}"),
        2 => format!("SELECT count(*) FROM t WHERE {a} UNION ALL SELECT sum(i2) FROM t WHERE {b}"),
        _ => format!("SELECT s FROM t WHERE {a} INTERSECT SELECT s FROM t WHERE {b}"),
    }
}

/// Returns one expression that may fail, alone.
fn risky(w: &mut Writer<'_>) -> Query {
    let (expression, ty) = w.risky();
    let operator = w.one(&["=", "<", ">="]);
    let text = match w.random.random_range(0..6) {
        0 => format!("SELECT count(*) FROM t WHERE {expression} {operator} 1"),
        1 => format!("SELECT count(*) FROM t WHERE t.i4 <> 0 AND {expression} {operator} 1"),
        2 => format!("SELECT count(*) FROM t WHERE t.i4 = 0 OR {expression} {operator} 1"),
        3 => format!("SELECT sum({expression}) FILTER (WHERE t.i4 > 0) FROM t WHERE t.i2 < 1000"),
        4 => format!("SELECT {expression}, count(*) FROM t GROUP BY 1"),
        _ if ty == "double precision" => format!(
            "SELECT sum(t.f8 * t.f8), avg(t.f8), variance(t.f4) FROM t WHERE t.id < {}",
            w.random.random_range(0..9000)
        ),
        _ => format!("SELECT t.b, max({expression}) FROM t GROUP BY t.b"),
    };
    Query {
        any_error: true,
        ..Query::one(text)
    }
}

fn cursor(w: &mut Writer<'_>) -> Query {
    let condition = w.condition(2);
    let (first, second) = (w.random.random_range(0..30), w.random.random_range(1..9));
    let select = match w.random.random_bool(0.7) {
        true => format!("SELECT id, s, i4, f8 FROM t WHERE {condition} ORDER BY id"),
        false => format!("SELECT s, count(*) FROM t WHERE {condition} GROUP BY s ORDER BY s"),
    };
    let scroll = w.one(&["SCROLL ", "SCROLL ", "SCROLL CURSOR WITH HOLD FOR "]);
    let declare = match scroll.contains("HOLD") {
        true => format!("DECLARE c {scroll}{select}"),
        false => format!("DECLARE c {scroll}CURSOR FOR {select}"),
    };
    let mut statements = vec!["BEGIN".to_owned(), declare];
    if scroll.contains("HOLD") {
        statements.push("COMMIT".into());
    }
    statements.push(format!("FETCH {first} FROM c"));
    statements.push(format!("FETCH BACKWARD {second} FROM c"));
    statements.push(format!("MOVE ABSOLUTE {} FROM c", first * 2));
    statements.push(format!("FETCH {second} FROM c"));
    statements.push("FETCH LAST FROM c".into());
    statements.push("CLOSE c".into());
    statements.push("ROLLBACK".into());
    Query {
        statements,
        ordered: true,
        any_error: false,
    }
}

/// Returns a write through a scan, which is rolled back.
fn change(w: &mut Writer<'_>) -> Query {
    let condition = w.condition(2);
    let write = match w.random.random_range(0..4) {
        0 => format!("UPDATE t SET i2 = 1, s = s || 'z' WHERE {condition}"),
        1 => format!("DELETE FROM t WHERE {condition}"),
        2 => format!("UPDATE t SET v = u.v FROM u WHERE t.id = u.id AND {condition}"),
        _ => format!("DELETE FROM t USING u WHERE t.id = u.i2 AND {condition}"),
    };
    let digest =
        "SELECT count(*), sum(hashtextextended(t::text, 0)::numeric), sum(i2), min(s) FROM t";
    Query {
        statements: vec![
            "BEGIN".into(),
            write,
            digest.into(),
            format!("SELECT id FROM t WHERE ({condition}) AND id < 2000 FOR UPDATE"),
            "ROLLBACK".into(),
            digest.into(),
        ],
        ordered: false,
        any_error: false,
    }
}

fn prepare(w: &mut Writer<'_>) -> Query {
    let text = match w.random.random_range(0..5) {
        0 => scan(w),
        1 => aggregate(w),
        2 => grouped(w),
        3 => joined_by_key(w),
        _ => joined(w),
    };
    let parameters = w.parameters.take().unwrap_or_default();
    let types: Vec<&str> = parameters.iter().map(|c| c.base()).collect();
    let list = |items: Vec<String>| match items.is_empty() {
        true => String::new(),
        false => format!("({})", items.join(", ")),
    };
    let mode = w.one(&["force_generic_plan", "force_custom_plan", "auto"]);
    let mut statements = vec![
        format!("SET plan_cache_mode = {mode}"),
        format!(
            "PREPARE p{} AS {text}",
            list(types.iter().map(|t| (*t).to_owned()).collect())
        ),
    ];
    for _ in 0..3 {
        let values = parameters.iter().map(|c| w.constant(*c)).collect();
        statements.push(format!("EXECUTE p{}", list(values)));
    }
    statements.push("DEALLOCATE p".into());
    Query {
        statements,
        ordered: false,
        any_error: false,
    }
}
