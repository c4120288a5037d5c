//! Tables of the same random rows in two schemas, `heap` and `lanes_side`.

use super::values::COLUMNS;
use lanes_support::seed::Random;
use postgres::Client;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// Creates types and schemas, once per cluster.
pub fn prepare(client: &mut Client) {
    client
        .batch_execute(
            "CREATE EXTENSION lanes; CREATE SCHEMA heap; CREATE SCHEMA lanes_side; \
             CREATE DOMAIN public.small_number AS integer; CREATE DOMAIN public.label AS text",
        )
        .unwrap();
}

/// The schema and the access method of each side.
pub const SIDES: [(&str, &str); 2] = [("heap", "heap"), ("lanes_side", "lanes")];

/// Creates `t`, with about `rows` rows, and the smaller `u` again on both sides. Returns the
/// statements, for a replay.
pub fn fill(client: &mut Client, random: &mut Random, rows: i64) -> Vec<String> {
    let mut done = Vec::new();
    let mut run = |client: &mut Client, sql: String| {
        client
            .batch_execute(&sql)
            .unwrap_or_else(|error| panic!("{error:?}\n{sql}"));
        done.push(sql);
    };
    for (table, rows) in [("t", rows), ("u", random.random_range(0..30))] {
        // Columns that were added later return their default for earlier rows.
        let late = random
            .random_bool(0.3)
            .then(|| COLUMNS.choose(random).unwrap())
            .filter(|column| column.may_be_late());
        let columns: Vec<String> = std::iter::once("id int".to_owned())
            .chain(
                COLUMNS
                    .iter()
                    .filter(|c| late.is_none_or(|late| late.name != c.name))
                    .map(|c| format!("{} {}", c.name, c.ty)),
            )
            .collect();
        let has_partitions = random.random_ratio(1, 4);
        for side in SIDES {
            let columns = columns.join(", ");
            let bounds = has_partitions.then_some((rows / 3, rows / 2));
            run(client, create(side, table, &columns, bounds));
        }
        let names: Vec<&str> = std::iter::once("id")
            .chain(COLUMNS.iter().map(|c| c.name))
            .collect();
        let source = series(random);
        let mut from = 1;
        let mut is_late = late.is_some();
        while from <= rows {
            let to = rows.min(from + *[1, 10, 900, 5_000, 30_000, 80_000].choose(random).unwrap());
            if is_late && random.random_bool(0.5) {
                add_late(client, table, late.unwrap(), random, &mut run);
                is_late = false;
            }
            let mut listed = names.clone();
            if is_late {
                listed.retain(|name| *name != late.unwrap().name);
            }
            let list = listed.join(", ");
            let aborted = random.random_ratio(1, 6);
            for (schema, _) in SIDES {
                let insert = format!(
                    "INSERT INTO {schema}.{table} ({list}) SELECT {list} FROM ({source} FROM \
                     (SELECT g, g * 7919 AS salt FROM generate_series({from}, {to}) g) r) q"
                );
                if aborted {
                    run(client, format!("BEGIN; {insert}; ROLLBACK"));
                }
                run(client, insert);
            }
            if random.random_ratio(1, 4) {
                seal(client, table, &mut run);
            }
            from = to + 1;
        }
        if is_late {
            add_late(client, table, late.unwrap(), random, &mut run);
        }
        for _ in 0..random.random_range(0..4) {
            let (modulus, rest) = (random.random_range(2..400), random.random_range(0..5));
            let low = random.random_range(0..rows.max(1));
            let change = match random.random_range(0..5) {
                0 => format!("DELETE FROM {{}}.{table} WHERE id % {modulus} = {rest}"),
                1 => format!(
                    "DELETE FROM {{}}.{table} WHERE id BETWEEN {low} AND {}",
                    low + 5_000
                ),
                2 => format!(
                    "UPDATE {{}}.{table} SET i4 = i4, s = 'changed' WHERE id % {modulus} = {rest}"
                ),
                3 => format!("UPDATE {{}}.{table} SET f8 = NULL, b = NOT b WHERE id = {low}"),
                _ => format!("BEGIN; DELETE FROM {{}}.{table}; ROLLBACK"),
            };
            for (schema, _) in SIDES {
                run(client, change.replace("{}", schema));
            }
        }
        if random.random_ratio(1, 12) {
            for (schema, _) in SIDES {
                run(client, format!("DELETE FROM {schema}.{table}"));
            }
        }
        if random.random_bool(0.4) {
            seal(client, table, &mut run);
        }
        for (schema, _) in SIDES {
            let sql = ["VACUUM", "ANALYZE"].choose(random).unwrap();
            run(client, format!("{sql} {schema}.{table}"));
        }
    }
    done
}

/// Returns the statements that create a table on one side. With bounds, it has three partitions.
fn create(
    (schema, method): (&str, &str),
    table: &str,
    columns: &str,
    bounds: Option<(i64, i64)>,
) -> String {
    let name = format!("{schema}.{table}");
    let created = match bounds {
        None => format!("CREATE TABLE {name} ({columns}, gone int) USING {method}"),
        Some((low, high)) => {
            let part = |number: u32, from: &str, to: &str| {
                format!(
                    "; CREATE TABLE {name}_{number} PARTITION OF {name} \
                     FOR VALUES FROM ({from}) TO ({to}) USING {method}"
                )
            };
            let (low, high) = (low.to_string(), (high + 1).to_string());
            format!("CREATE TABLE {name} ({columns}, gone int) PARTITION BY RANGE (id)")
                + &part(1, "MINVALUE", &low)
                + &part(2, &low, &high)
                + &part(3, &high, "MAXVALUE")
        }
    };
    format!("DROP TABLE IF EXISTS {name}; {created}; ALTER TABLE {name} DROP COLUMN gone")
}

/// Seals the tables of the lanes side, or their partitions, in the order of their rows.
fn seal(client: &mut Client, table: &str, run: &mut impl FnMut(&mut Client, String)) {
    for (schema, method) in SIDES {
        if method == "lanes" {
            let name = format!("{schema}.{table}");
            run(
                client,
                format!(
                    "SELECT lanes.seal(oid::regclass) FROM pg_class WHERE relkind = 'r' AND (oid = '{name}'::regclass OR \
                     oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = '{name}'::regclass))"
                ),
            );
        }
    }
}

fn add_late(
    client: &mut Client,
    table: &str,
    column: &super::values::Column,
    random: &mut Random,
    run: &mut impl FnMut(&mut Client, String),
) {
    let default = match random.random_bool(0.5) {
        true => format!("DEFAULT '{}'", column.literals.choose(random).unwrap()),
        false => String::new(),
    };
    for (schema, _) in SIDES {
        run(
            client,
            format!(
                "ALTER TABLE {schema}.{table} ADD COLUMN {} {} {default}",
                column.name, column.ty
            ),
        );
    }
}

/// Returns a `SELECT` of all columns from rows of `g` and `salt`. Each column has a style of its
/// own, with or without NULLs.
fn series(random: &mut Random) -> String {
    let seed: u32 = random.random();
    let columns: Vec<String> = COLUMNS
        .iter()
        .enumerate()
        .map(|(number, column)| {
            let style = column.styles.choose(random).unwrap();
            let noise = format!("(hashint8extended(salt, {seed}::int8 + {number}) & 2147483647)");
            let value = style.replace("h %", &format!("{noise} %")).replace("h -", &format!("{noise} -"));
            let value = value.replace("(h::text)", &format!("({noise}::text)"));
            let name = column.name;
            match random.random_range(0..4) {
                0 => {
                    let modulus = *[2, 5, 97].choose(random).unwrap();
                    format!("CASE WHEN hashint8extended(salt, {number}) % {modulus} <> 0 THEN {value} END AS {name}")
                }
                // Consecutive NULLs fill whole vectors.
                1 if random.random_ratio(1, 3) => {
                    format!("CASE WHEN g % 20000 > 9000 THEN {value} END AS {name}")
                }
                2 if random.random_ratio(1, 15) => format!("NULL::{} AS {name}", column.ty),
                _ => format!("{value} AS {name}"),
            }
        })
        .collect();
    format!("SELECT g AS id, {}", columns.join(", "))
}
