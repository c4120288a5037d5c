//! Random joins of `t` in which it is on the null side, or is joined with several smaller relations.

use super::conditions::Writer;
use super::queries::{calls, equalities, key};
use super::values::Column;
use rand::RngExt;

/// An expression over the smaller `alias`.
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

/// `t` on the null side of an outer join with `u`: rows, and groups by expressions over both.
pub fn null_side(w: &mut Writer<'_>) -> String {
    let on = equalities(w);
    // A FULL JOIN has equalities alone.
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

/// `t` joined with `u` twice or three times, each by keys of its own.
pub fn star(w: &mut Writer<'_>) -> String {
    let names = ["u", "x", "y"];
    let count = w.random.random_range(2..=3);
    let mut joins = String::from("t");
    for (place, name) in names[..count].iter().enumerate() {
        let kind = w.one(&["JOIN", "JOIN", "LEFT JOIN"]);
        let on = equalities(w).replace("u.", &format!("{name}."));
        // Few rows on all sides but one: each row meets each of its matches on every side.
        let few = match place {
            0 => "u".to_owned(),
            _ => format!("(SELECT * FROM u WHERE id % {} = 0)", 7 * place),
        };
        joins = format!("{joins} {kind} {few} {name} ON {on}");
    }
    // Some keys are bools: every other row of each side matches.
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
