//! The generator of joins with `t` on the null side, or with several smaller relations.

use super::conditions::Writer;
use super::expressions::{calls, equalities, further, key};
use super::values::Column;
use rand::RngExt;

/// Returns an expression over the smaller relation `alias`.
fn of_small(w: &mut Writer<'_>, alias: &str) -> String {
    let expression = w.one(&[
        "u.s",
        "u.i2 % 3",
        "u.d",
        "coalesce(u.b, false)",
        "upper(u.v) || 'x'",
    ]);
    expression.replace("u.", &format!("{alias}."))
}

/// Returns an outer join with `t` on the null side and `u`: rows, and groups by expressions over
/// both.
pub fn null_side(w: &mut Writer<'_>) -> String {
    let on = equalities(w) + &further(w);
    let join = match w.random.random_ratio(1, 4) {
        true => format!("u FULL JOIN t ON {on}"),
        false => format!("u LEFT JOIN t ON {on} AND {}", w.condition(1)),
    };
    let column = Column::any(w.random).name;
    match w.random.random_range(0..4) {
        0 => format!("SELECT u.id, u.s, t.id, t.{column} FROM {join}"),
        1 => format!("SELECT {}, count(u.id), count(t.id) FROM {join}", calls(w)),
        2 => format!(
            "SELECT {}, {} FROM {join} GROUP BY 1",
            of_small(w, "u"),
            calls(w)
        ),
        _ => format!(
            "SELECT {}, {}, count(*), sum(u.i4) FROM {join} GROUP BY 1, 2",
            of_small(w, "u"),
            key(w)
        ),
    }
}

/// Returns equalities of `own`, a smaller relation, with an `earlier` one, and sometimes with `t`
/// too.
fn over_earlier(w: &mut Writer<'_>, own: &str, earlier: &str) -> String {
    let first = w.one(&[
        "o.s = e.s",
        "o.s = upper(e.v)",
        "o.v = e.s",
        "o.i8 = e.i4",
        "o.i2 % 50 = e.i4 % 70",
        "o.f8 = e.f8",
        "o.f8 = e.f4",
        "o.d = e.d",
        "o.uu = e.uu",
        "o.id = coalesce(e.i2 % 9, 3)",
    ]);
    let second = w.one(&[
        "",
        "",
        " AND o.i2 = t.i2",
        " AND o.s = t.s",
        " AND o.b = e.b",
    ]);
    let on = format!("{first}{second}").replace("o.", &format!("{own}."));
    on.replace("e.", &format!("{earlier}."))
}

/// Returns a relation of few rows with the columns of `u`. Each row joins each of its matches on
/// every side, so there must be few.
fn few(w: &mut Writer<'_>, place: usize) -> String {
    let rest = 7 * place;
    match w.random.random_range(0..5) {
        0 => format!("(SELECT a.* FROM t a WHERE a.id % 900 = {rest})"),
        1 => format!("(SELECT a.* FROM t a JOIN u b ON b.s = a.s WHERE a.id % 900 = {rest})"),
        2 => format!("(SELECT b.* FROM t a JOIN u b ON b.i2 = a.i2 WHERE a.id % 900 = {rest})"),
        _ => format!("(SELECT * FROM u WHERE id % {rest} = 0)"),
    }
}

/// Returns a join of `t` with `u` twice or three times, each by its own keys, or by keys over a
/// relation that was joined before.
pub fn star(w: &mut Writer<'_>) -> String {
    let names = ["u", "x", "y"];
    let count = w.random.random_range(2..=3);
    let mut joins = String::from("t");
    for (place, name) in names[..count].iter().enumerate() {
        let kind = w.one(&["JOIN", "JOIN", "LEFT JOIN"]);
        let on = match place > 0 && w.random.random_bool(0.5) {
            true => {
                let earlier = w.one(&names[..place]);
                over_earlier(w, name, earlier)
            }
            false => (equalities(w) + &further(w)).replace("u.", &format!("{name}.")),
        };
        let small = match place {
            0 => "u".to_owned(),
            _ => few(w, place),
        };
        joins = format!("{joins} {kind} {small} {name} ON {on}");
    }
    // Some keys are booleans: every other row of each side matches.
    let condition = w.condition(1);
    let from = format!("FROM {joins} WHERE t.id % 40 = 1 AND {condition}");
    match w.random.random_range(0..3) {
        0 => format!("SELECT t.id, u.id, x.id, x.s {from}"),
        1 => format!("SELECT {}, sum(u.i4), count(x.id) {from}", calls(w)),
        _ => format!(
            "SELECT {}, {}, {}, count(*), count(x.id) {from} GROUP BY 1, 2, 3",
            of_small(w, "u"),
            of_small(w, "x"),
            key(w)
        ),
    }
}
