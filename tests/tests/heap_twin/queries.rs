//! The generator of SELECTs whose answer, as a set of lines, does not depend on the stored order of
//! rows.

use super::model::Table;
use lanes_support::seed::Random;
use rand::RngExt;

/// Returns a condition over one table's columns that is often NULL.
pub fn condition(random: &mut Random, table: &Table, depth: u32) -> String {
    if depth > 0 && random.random_ratio(1, 3) {
        let left = condition(random, table, depth - 1);
        let right = condition(random, table, depth - 1);
        return match random.random_range(0..3) {
            0 => format!("({left} AND {right})"),
            1 => format!("({left} OR {right})"),
            _ => format!("NOT ({left})"),
        };
    }
    let low = random.random_range(0..2500);
    match (random.random_range(0..7), table.column(random).cloned()) {
        (0, _) | (_, None) => format!(
            "id % {} = {}",
            random.random_range(2..6),
            random.random_range(0..2)
        ),
        (1, _) => format!("id BETWEEN {low} AND {}", low + random.random_range(0..400)),
        (2, Some((column, _))) => format!("{column} IS NULL"),
        (3, Some((column, _))) => format!("{column} IS NOT NULL"),
        (4, Some((column, ty))) => {
            format!("{column} IS DISTINCT FROM {}", ty.literal(random))
        }
        (5, Some((column, ty))) => format!(
            "{column} IN ({}, {})",
            ty.literal_not_null(random),
            ty.literal(random)
        ),
        (_, Some((column, ty))) => {
            let operator = ["=", "<>", "<", "<=", ">", ">="][random.random_range(0..6)];
            format!("{column} {operator} {}", ty.literal(random))
        }
    }
}

/// Returns an expression of a group or a distinct row that has only one representation.
fn canonical(column: &str, ty: super::values::Type) -> String {
    match ty.name {
        "real" | "double precision" => format!("({column} + 0)"),
        "numeric" => format!("trim_scale({column})"),
        _ if ty.has_twins() => format!("{column}::text"),
        _ => column.to_owned(),
    }
}

/// Returns any query.
pub fn query(random: &mut Random, tables: &[Table]) -> String {
    let table = &tables[random.random_range(0..tables.len())];
    let other = &tables[random.random_range(0..tables.len())];
    let (t, o) = (&table.name, &other.name);
    let condition = condition(random, table, 2);
    let low = random.random_range(0..2500);
    match random.random_range(0..13) {
        0 => format!("SELECT * FROM {t} WHERE {condition}"),
        1 => format!("SELECT count(*), min(id), max(id), sum(id::int8) FROM {t} WHERE {condition}"),
        2 => match table.column_where(random, |ty| ty.number) {
            Some((column, _)) => format!(
                "SELECT count({column}), sum({column}), avg({column}) FROM {t} WHERE {condition}"
            ),
            None => format!("SELECT count(*) FROM {t}"),
        },
        3 => match table.column(random).cloned() {
            Some((column, ty)) => {
                let group = canonical(&column, ty);
                format!(
                    "SELECT {group}, count(*), sum(id::int8) FROM {t} WHERE {condition} GROUP BY 1"
                )
            }
            None => format!("SELECT count(*) FROM {t}"),
        },
        4 => match table.column(random).cloned() {
            Some((column, ty)) => format!(
                "SELECT DISTINCT {} FROM {t} WHERE {condition}",
                canonical(&column, ty)
            ),
            None => format!("SELECT DISTINCT id % 3 FROM {t}"),
        },
        5 => format!(
            "SELECT x.id, y FROM {t} x JOIN {o} y ON x.id = y.id + {}",
            random.random_range(0..3)
        ),
        6 => format!("SELECT x FROM {t} x WHERE id IN (SELECT id FROM {o} WHERE id % 2 = 0)"),
        7 => format!(
            "SELECT count(*) FROM {t} x WHERE NOT EXISTS (SELECT 1 FROM {o} y WHERE y.id = x.id) AND {condition}"
        ),
        8 => format!(
            "SELECT row_number() OVER (ORDER BY x::text COLLATE \"C\"), x FROM {t} x WHERE {condition} ORDER BY 1 LIMIT {} OFFSET {}",
            random.random_range(0..20),
            random.random_range(0..20)
        ),
        9 => match table.column_where(random, |ty| ty.ordered && !ty.has_twins()) {
            Some((column, ty))
                if !matches!(
                    ty.name,
                    "boolean" | "uuid" | "jsonb" | "bytea" | "public.pair" | "integer[]"
                ) =>
            {
                format!("SELECT min({column}), max({column}) FROM {t} WHERE {condition}")
            }
            _ => format!("SELECT max(id) FROM {t} WHERE {condition}"),
        },
        10 => format!(
            "SELECT x FROM {t} x WHERE x.ctid = ANY (ARRAY(SELECT ctid FROM {t} WHERE id BETWEEN {low} AND {low} + 7)) AND {condition}"
        ),
        11 => format!(
            "SELECT tableoid = '{t}'::regclass, xmin IS NULL, count(*) FROM {t} WHERE {condition} GROUP BY 1, 2"
        ),
        _ => format!(
            "SELECT (SELECT count(*) FROM {o} y WHERE y.id < x.id), x.id FROM {t} x WHERE x.id % 50 = 0"
        ),
    }
}

/// Returns a query over the whole table whose answer is short.
pub fn digest(table: &str) -> String {
    format!("SELECT count(*), sum(hashtextextended(x::text, 0)::numeric) FROM {table} x")
}
