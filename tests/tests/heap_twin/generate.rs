//! The generator of the next statement of a script.

use super::model::{TABLES, Table};
use super::queries::{condition, query};
use super::values::Type;
use lanes_support::seed::Random;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// One step of a script for one session. `{side}` in a text is replaced by the side's schema.
#[derive(Debug, Clone)]
pub enum Statement {
    Sql(String),
    /// `COPY … FROM '{file}'`, and the lines of the file.
    CopyIn(String, String),
    /// `COPY … TO STDOUT`.
    CopyOut(String),
}

/// The state of a session's transaction, as far as the choice of statements depends on it.
#[derive(Debug, Default)]
pub struct Session {
    pub in_transaction: bool,
    pub aborted: bool,
    pub savepoints: u32,
    /// Whether the transaction has opened a cursor.
    pub has_cursor: bool,
    pub prepared: Vec<String>,
}

/// Numbers that no two rows or names of a script share.
#[derive(Debug, Default)]
pub struct Counters {
    pub row: u32,
    pub name: u32,
}

/// The state on which the generator decides.
pub struct Scene<'a> {
    pub random: &'a mut Random,
    pub session: &'a Session,
    pub counters: &'a mut Counters,
    pub tables: &'a [Table],
    /// Whether VACUUM (FREEZE) may run. On heap it waits for pages that a cursor of another session
    /// is on, and that session waits for this one.
    pub may_freeze: bool,
}

impl Scene<'_> {
    /// Chooses the next statement.
    pub fn next(&mut self) -> Statement {
        if self.session.aborted {
            return Statement::Sql(self.way_out());
        }
        if self.tables.len() < 2 {
            return Statement::Sql(self.create_table());
        }
        match self.random.random_range(0..100) {
            0..=23 => self.insert(),
            24..=26 => Statement::Sql(self.insert_or_not()),
            27..=38 => Statement::Sql(self.update()),
            39..=47 => Statement::Sql(self.delete()),
            48..=66 => Statement::Sql(query(self.random, self.tables)),
            67..=76 => Statement::Sql(self.transaction_control()),
            77..=79 => Statement::Sql(self.index()),
            80..=84 => Statement::Sql(self.cursor()),
            85..=89 => Statement::Sql(self.alter()),
            90..=96 => Statement::Sql(self.maintain()),
            97 => Statement::CopyOut(format!(
                "COPY (SELECT * FROM {0} x ORDER BY x::text COLLATE \"C\") TO STDOUT (FORMAT {1})",
                self.table().name,
                ["text", "csv", "binary"].choose(self.random).unwrap()
            )),
            _ => Statement::Sql(self.create_table()),
        }
    }

    fn table(&mut self) -> Table {
        self.tables.choose(self.random).unwrap().clone()
    }

    fn way_out(&mut self) -> String {
        if self.session.savepoints > 0 && self.random.random_bool(0.6) {
            format!(
                "ROLLBACK TO s{}",
                self.random.random_range(1..=self.session.savepoints)
            )
        } else if self.random.random_ratio(1, 8) {
            "SELECT 1".to_owned()
        } else {
            ["ROLLBACK", "COMMIT"]
                .choose(self.random)
                .unwrap()
                .to_string()
        }
    }

    fn transaction_control(&mut self) -> String {
        if !self.session.in_transaction {
            if let Some(name) = self.session.prepared.choose(self.random) {
                let verb = ["COMMIT", "ROLLBACK"].choose(self.random).unwrap();
                return format!("{verb} PREPARED '{name}'");
            }
            return ["BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"]
                .choose(self.random)
                .unwrap()
                .to_string();
        }
        let savepoints = self.session.savepoints;
        match self.random.random_range(0..10) {
            0..=2 => "COMMIT".to_owned(),
            3 => "ROLLBACK".to_owned(),
            4 if self.session.prepared.is_empty() => {
                self.counters.name += 1;
                format!("PREPARE TRANSACTION '{{side}}_{}'", self.counters.name)
            }
            5 if savepoints > 0 => format!("RELEASE s{}", self.random.random_range(1..=savepoints)),
            6 | 7 if savepoints > 0 => {
                format!("ROLLBACK TO s{}", self.random.random_range(1..=savepoints))
            }
            _ => format!("SAVEPOINT s{}", savepoints + 1),
        }
    }

    fn create_table(&mut self) -> String {
        let name = *TABLES.choose(self.random).unwrap();
        if self.tables.iter().any(|table| table.name == name) {
            return match self.random.random_range(0..3) {
                0 => format!("DROP TABLE {name}"),
                1 => format!("CREATE TABLE {name} (id int)"),
                _ => format!("TRUNCATE {name}"),
            };
        }
        let kind = if name == "unlogged" { "UNLOGGED " } else { "" };
        if let Some(source) = self.tables.first()
            && self.random.random_ratio(1, 5)
        {
            return format!(
                "CREATE {kind}TABLE {name} AS SELECT * FROM {} WHERE id % 2 = 0",
                source.name
            );
        }
        let columns: Vec<String> = (0..self.random.random_range(1..8))
            .map(|_| {
                let (column, ty) = (self.fresh_column(), Type::any(self.random));
                match self.random.random_range(0..6) {
                    0 => format!("{column} {} DEFAULT {}", ty.name, ty.literal(self.random)),
                    _ => format!("{column} {}", ty.name),
                }
            })
            .collect();
        format!("CREATE {kind}TABLE {name} (id int, {})", columns.join(", "))
    }

    fn fresh_column(&mut self) -> String {
        self.counters.name += 1;
        format!("c{}", self.counters.name)
    }

    fn insert(&mut self) -> Statement {
        let table = self.table();
        let names: Vec<&str> = std::iter::once("id")
            .chain(table.columns.iter().map(|column| column.0.as_str()))
            .collect();
        let into = format!("{} ({})", table.name, names.join(", "));
        let first = self.counters.row;
        match self.random.random_range(0..10) {
            0..=4 => {
                let rows = self.random.random_range(1..12);
                self.counters.row += rows;
                let values: Vec<String> =
                    (0..rows).map(|row| self.row(&table, first + row)).collect();
                let returning = if self.random.random_ratio(1, 4) {
                    " RETURNING *"
                } else {
                    ""
                };
                Statement::Sql(format!(
                    "INSERT INTO {into} VALUES {}{returning}",
                    values.join(", ")
                ))
            }
            5 | 6 => {
                let rows = *[3, 50, 50, 700, 700, 3000].choose(self.random).unwrap();
                self.counters.row += rows;
                let expressions: Vec<String> = table
                    .columns
                    .iter()
                    .map(|column| column.1.series(self.random))
                    .collect();
                let mut list = vec![format!("{first} + g")];
                list.extend(expressions);
                Statement::Sql(format!(
                    "INSERT INTO {into} SELECT {} FROM generate_series(1, {rows}) g",
                    list.join(", ")
                ))
            }
            7 => {
                let rows = self.random.random_range(0..40);
                self.counters.row += rows;
                let lines: Vec<String> = (0..rows)
                    .map(|row| {
                        let mut fields = vec![(first + row).to_string()];
                        fields.extend(
                            table
                                .columns
                                .iter()
                                .map(|column| column.1.copy_field(self.random)),
                        );
                        fields.join("\t") + "\n"
                    })
                    .collect();
                let mut lines = lines.concat();
                if self.random.random_ratio(1, 8) {
                    lines.push_str("not a row\n");
                }
                Statement::CopyIn(format!("COPY {into} FROM '{{file}}'"), lines)
            }
            8 => {
                // A row fails in the middle of the statement.
                self.counters.row += 10;
                Statement::Sql(format!(
                    "INSERT INTO {} (id) SELECT {first} + 1 / (5 - g) FROM generate_series(1, 10) g",
                    table.name
                ))
            }
            _ => {
                let condition = condition(self.random, &table, 1);
                Statement::Sql(format!(
                    "INSERT INTO {0} SELECT * FROM {0} WHERE {condition} AND id % 7 = 0",
                    table.name
                ))
            }
        }
    }

    /// Inserts rows of which some may have an id that the table has already.
    fn insert_or_not(&mut self) -> String {
        let table = self.table();
        let names: Vec<&str> = std::iter::once("id")
            .chain(table.columns.iter().map(|column| column.0.as_str()))
            .collect();
        let ids = (0..self.random.random_range(1..8)).map(|_| {
            self.counters.row += 1;
            self.random.random_range(0..=self.counters.row)
        });
        let ids: Vec<u32> = ids.collect();
        let values: Vec<String> = ids.iter().map(|&id| self.row(&table, id)).collect();
        let set = match table.column(self.random) {
            Some((column, _)) => format!("{column} = excluded.{column}"),
            None => "id = excluded.id".to_owned(),
        };
        let action = match self.random.random_range(0..5) {
            0 | 1 => "DO NOTHING".to_owned(),
            2 => "(id) DO NOTHING".to_owned(),
            3 => format!("(id) DO UPDATE SET {set}"),
            _ => format!("(id) DO UPDATE SET {set} WHERE x.id % 2 = 0"),
        };
        // Without RETURNING, rows may be written in batches.
        let returning = match self.random.random_bool(0.5) {
            true => " RETURNING *",
            false => "",
        };
        format!(
            "INSERT INTO {} AS x ({}) VALUES {} ON CONFLICT {action}{returning}",
            table.name,
            names.join(", "),
            values.join(", ")
        )
    }

    /// Makes an index, or drops or rebuilds one.
    fn index(&mut self) -> String {
        let table = self.table();
        let name = &table.name;
        let existing = self.random.random_range(0..=self.counters.name);
        self.counters.name += 1;
        let index = format!("i{}", self.counters.name);
        let on = |what: &str| format!("CREATE INDEX {index} ON {name} {what}");
        match (self.random.random_range(0..12), table.column(self.random)) {
            (0..=2, Some((column, ty))) if ty.ordered => on(&format!("({column}, id)")),
            (3 | 4, Some((column, _))) => on(&format!("USING hash ({column})")),
            (5, _) => on("((id % 7)) WHERE id % 2 = 0"),
            (6, Some((column, _))) => on(&format!("(id DESC) INCLUDE ({column})")),
            (7 | 8, _) => format!("CREATE UNIQUE INDEX {index} ON {name} (id)"),
            (9, _) => format!("REINDEX TABLE {name}"),
            (10, _) => format!("DROP INDEX IF EXISTS i{existing}"),
            _ => on("(id)"),
        }
    }

    fn row(&mut self, table: &Table, id: u32) -> String {
        let mut values = vec![id.to_string()];
        values.extend(
            table
                .columns
                .iter()
                .map(|column| column.1.literal(self.random)),
        );
        format!("({})", values.join(", "))
    }

    /// A clause that returns the changed rows, at times.
    fn returning(&mut self) -> &'static str {
        match self.random.random_ratio(1, 3) {
            true => " RETURNING *",
            false => "",
        }
    }

    fn update(&mut self) -> String {
        let table = self.table();
        let name = &table.name;
        let condition = condition(self.random, &table, 1);
        let returning = self.returning();
        let Some((column, ty)) = table.column(self.random).cloned() else {
            return format!("UPDATE {name} SET id = id WHERE {condition}{returning}");
        };
        let value = ty.literal(self.random);
        match self.random.random_range(0..6) {
            0 => format!("UPDATE {name} SET {column} = DEFAULT WHERE {condition}{returning}"),
            1 => format!(
                "UPDATE {name} x SET {column} = (SELECT y.{column} FROM {name} y WHERE y.id = x.id % 100 ORDER BY y::text COLLATE \"C\" LIMIT 1) WHERE x.id % 40 = 0{returning}"
            ),
            2 => format!("UPDATE {name} SET {column} = {value}{returning}"),
            _ => format!("UPDATE {name} SET {column} = {value} WHERE {condition}{returning}"),
        }
    }

    fn delete(&mut self) -> String {
        let table = self.table();
        let name = &table.name;
        let condition = condition(self.random, &table, 1);
        let returning = self.returning();
        match self.random.random_range(0..8) {
            0 => format!("DELETE FROM {name}{returning}"),
            1 => {
                let other = self.table().name;
                format!(
                    "DELETE FROM {name} USING {other} o WHERE o.id = {name}.id AND o.id % 3 = 0"
                )
            }
            2 => format!(
                "SELECT * FROM {name} WHERE {condition} FOR {}",
                ["UPDATE", "SHARE", "UPDATE NOWAIT"]
                    .choose(self.random)
                    .unwrap()
            ),
            3 => format!(
                "WITH d AS (DELETE FROM {name} WHERE {condition} RETURNING *) SELECT count(*), sum(id::int8) FROM d"
            ),
            _ => format!("DELETE FROM {name} WHERE id % 3 = 1 AND {condition}{returning}"),
        }
    }

    fn cursor(&mut self) -> String {
        let table = self.table();
        let name = &table.name;
        if !self.session.in_transaction {
            return "BEGIN".to_owned();
        }
        let cursor = format!("k{}", self.random.random_range(0..2));
        match self.random.random_range(0..8) {
            0 => format!(
                "DECLARE {cursor} SCROLL CURSOR FOR SELECT x FROM {name} x ORDER BY x::text COLLATE \"C\""
            ),
            1 => format!(
                "DECLARE {cursor} SCROLL CURSOR FOR SELECT * FROM {name} WHERE {}",
                condition(self.random, &table, 1)
            ),
            2 => format!(
                "DECLARE {cursor} CURSOR FOR SELECT * FROM {name} WHERE id = {}; FETCH 1 FROM {cursor}; UPDATE {name} SET id = id WHERE CURRENT OF {cursor} RETURNING *",
                self.random.random_range(0..=self.counters.row)
            ),
            3 => format!("CLOSE {cursor}"),
            // The rows before and after a position depend on the order of rows, but the rows before
            // the start and after the end do not.
            4 => format!("MOVE BACKWARD ALL IN {cursor}; FETCH ALL FROM {cursor}"),
            5 => format!("MOVE FORWARD ALL IN {cursor}; FETCH BACKWARD ALL FROM {cursor}"),
            6 => format!(
                "DECLARE {cursor} SCROLL CURSOR FOR SELECT x FROM {name} x ORDER BY x::text COLLATE \"C\"; FETCH ABSOLUTE {} FROM {cursor}; FETCH BACKWARD 2 FROM {cursor}",
                self.random.random_range(-5..30)
            ),
            _ => format!("MOVE FORWARD ALL IN {cursor}"),
        }
    }

    fn alter(&mut self) -> String {
        let table = self.table();
        let name = &table.name;
        let new = self.fresh_column();
        let ty = Type::any(self.random);
        let old = table.column(self.random).cloned();
        match (self.random.random_range(0..12), old) {
            (0 | 1, _) => format!(
                "ALTER TABLE {name} ADD COLUMN {new} {} DEFAULT {}",
                ty.name,
                ty.literal(self.random)
            ),
            (2, _) => format!("ALTER TABLE {name} ADD COLUMN {new} {}", ty.name),
            (3, _) => format!(
                "ALTER TABLE {name} ADD COLUMN {new} int GENERATED ALWAYS AS (id % 5) STORED"
            ),
            (4, Some((old, _))) => format!("ALTER TABLE {name} DROP COLUMN {old}"),
            (5, Some((old, _))) => format!("ALTER TABLE {name} RENAME COLUMN {old} TO {new}"),
            (6, Some((old, ty))) if ty.name == "smallint" || ty.name == "integer" => {
                format!("ALTER TABLE {name} ALTER COLUMN {old} TYPE bigint")
            }
            (6 | 7, Some((old, _))) => {
                format!("ALTER TABLE {name} ALTER COLUMN {old} TYPE text USING {old}::text")
            }
            (8, Some((old, ty))) => format!(
                "ALTER TABLE {name} ALTER COLUMN {old} SET DEFAULT {}",
                ty.literal(self.random)
            ),
            (9, Some((old, _))) => format!(
                "ALTER TABLE {name} ALTER COLUMN {old} {} NOT NULL",
                ["SET", "DROP"].choose(self.random).unwrap()
            ),
            (10, Some(_)) => format!(
                "ALTER TABLE {name} ADD CHECK (id <> {})",
                self.random.random_range(0..3000)
            ),
            _ => format!(
                "ALTER TABLE {name} SET {}",
                ["LOGGED", "UNLOGGED"].choose(self.random).unwrap()
            ),
        }
    }

    fn maintain(&mut self) -> String {
        let table = self.table();
        let name = &table.name;
        match self.random.random_range(0..10) {
            0..=2 => return format!("SELECT seal('{name}')"),
            3 => return self.arrange(&table),
            _ => {}
        }
        let verb = [
            "VACUUM",
            "VACUUM",
            "VACUUM (FREEZE)",
            "VACUUM FULL",
            "ANALYZE",
            "VACUUM ANALYZE",
            "TRUNCATE",
        ]
        .choose(self.random)
        .unwrap();
        let verb = match *verb {
            "VACUUM (FREEZE)" if !self.may_freeze => "VACUUM",
            verb => verb,
        };
        format!("{verb} {name}")
    }

    fn arrange(&mut self, table: &Table) -> String {
        let keys = match table.column_where(self.random, |ty| ty.ordered) {
            Some((column, ty)) if ty.number || ty.name == "text" => [
                "id".to_owned(),
                format!("{column}, id"),
                format!("id, {column}"),
            ]
            .choose(self.random)
            .unwrap()
            .clone(),
            _ => "id".to_owned(),
        };
        format!("SELECT arrange('{}', '{keys}')", table.name)
    }
}
