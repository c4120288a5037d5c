//! The generator of random conditions and numbers over the columns of `t`.

use super::values::{Column, Kind};
use lanes_support::seed::Random;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// Writes expressions, optionally with parameters of a prepared statement instead of literals.
pub struct Writer<'a> {
    pub random: &'a mut Random,
    /// The types of the parameters so far, each with the column that its values come from.
    pub parameters: Option<Vec<Column>>,
    /// The alias of the columns' table.
    pub alias: &'static str,
    /// Whether mostly vectorised expressions are written.
    pub plain: bool,
}

impl Writer<'_> {
    /// Returns one of several texts.
    pub fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of.choose(self.random).unwrap()
    }

    /// Returns a column with its alias.
    pub fn name(&self, column: Column) -> String {
        format!("{}.{}", self.alias, column.name)
    }

    /// Returns a literal that fits a column and is rarely NULL, or a parameter.
    pub fn literal(&mut self, column: Column) -> String {
        if let Some(parameters) = &mut self.parameters
            && parameters.len() < 4
            && self.random.random_bool(0.7)
        {
            parameters.push(column);
            return format!("${}", parameters.len());
        }
        self.constant(column)
    }

    /// Returns a literal that fits a column and is rarely NULL.
    pub fn constant(&mut self, column: Column) -> String {
        if self.random.random_ratio(1, 25) {
            return format!("NULL::{}", column.base());
        }
        let text = column.literal(self.random).replace('\'', "''");
        format!("'{text}'::{}", column.base())
    }

    /// Returns a number that cannot fail, and its type.
    pub fn number(&mut self) -> (String, &'static str) {
        let integer = Column::of(self.random, Kind::Integer);
        let name = self.name(integer);
        let float = Column::of(self.random, Kind::Float);
        let float = (self.name(float), float.ty);
        let any = if self.plain { 15 } else { 16 };
        match self.random.random_range(0..any) {
            0..=3 => (name, integer.base()),
            4..=5 => float,
            6 => (
                format!("({name} % {})", self.random.random_range(2..90)),
                integer.base(),
            ),
            7 => (
                format!("({name} / {})", self.random.random_range(2..9)),
                integer.base(),
            ),
            8 => (
                format!("({}.i2 + {}.i4 % 1000)", self.alias, self.alias),
                "integer",
            ),
            9 => (
                format!("({}.i4::int8 * {}.i2)", self.alias, self.alias),
                "bigint",
            ),
            10 => (
                format!("({}.i4 * 0.5::float8 - 3)", self.alias),
                "double precision",
            ),
            11 => (
                format!("(({}.i8 % 1000003)::float8 / 4)", self.alias),
                "double precision",
            ),
            12 => (format!("(-({name} % 100))"), integer.base()),
            13 => (
                format!("({}.i2::float4 + {}.f4)", self.alias, self.alias),
                "real",
            ),
            14 => (format!("({}.f4::float8)", self.alias), "double precision"),
            _ => (format!("coalesce({name}, 3)"), integer.base()),
        }
    }

    /// Returns a number that may fail: overflow, division by zero, out of range.
    pub fn risky(&mut self) -> (String, &'static str) {
        let a = self.alias;
        match self.random.random_range(0..10) {
            0 => (format!("({a}.i4 + {a}.i4)"), "integer"),
            1 => (format!("({a}.i8 * 3)"), "bigint"),
            2 => (format!("(1000 / {a}.i4)"), "integer"),
            3 => (format!("({a}.f8 / {a}.f8)"), "double precision"),
            4 => (format!("{a}.i4::int2"), "smallint"),
            5 => (format!("{a}.f8::int4"), "integer"),
            6 => (format!("(-{a}.i2)"), "smallint"),
            7 => (format!("({a}.i2 * {a}.i2)"), "smallint"),
            8 => (format!("({a}.f8 * 1e308)"), "double precision"),
            _ => (format!("({a}.i8 % ({a}.i2 - {a}.i2))"), "bigint"),
        }
    }

    /// Returns an expression of type `numeric` that cannot fail.
    pub fn decimal(&mut self, depth: u32) -> String {
        let a = self.alias;
        if depth == 0 {
            return match self.random.random_range(0..6) {
                0 => self
                    .one(&["1", "2.50", "-0.125", "NULL::numeric"])
                    .to_owned(),
                1 => format!("{a}.i4::numeric"),
                _ => format!("{a}.n"),
            };
        }
        let one = self.decimal(depth - 1);
        match self.random.random_range(0..8) {
            0 => format!("({one} + {})", self.decimal(depth - 1)),
            1 => format!("({one} - {})", self.decimal(depth - 1)),
            2 => format!("({one} * {})", self.decimal(depth - 1)),
            3 => format!("(-{one})"),
            4 => format!("coalesce({one}, {})", self.decimal(depth - 1)),
            5 => {
                let condition = self.condition(0);
                let other = self.decimal(depth - 1);
                format!("CASE WHEN {condition} THEN {one} ELSE {other} END")
            }
            _ => one,
        }
    }

    /// Returns a condition that cannot fail.
    pub fn condition(&mut self, depth: u32) -> String {
        if depth > 0 && self.random.random_bool(0.45) {
            let parts: Vec<String> = (0..self.random.random_range(2..4))
                .map(|_| self.condition(depth - 1))
                .collect();
            return match self.random.random_range(0..4) {
                0 | 1 => format!("({})", parts.join(" AND ")),
                2 => format!("({})", parts.join(" OR ")),
                _ => format!("NOT ({})", parts[0]),
            };
        }
        let operator = self.one(&["=", "<>", "<", "<=", ">", ">="]);
        let mut column = Column::any(self.random);
        while self.plain && column.kind == Kind::Numeric {
            column = Column::any(self.random);
        }
        let name = self.name(column);
        let any = if self.plain { 15 } else { 24 };
        match self.random.random_range(0..any) {
            0..=2 => format!("{name} {operator} {}", self.literal(column)),
            4 => format!("{} {operator} {name}", self.literal(column)),
            5 => self.range(column, &name),
            3 | 6 => self.list(column, &name),
            7 => format!("{name} IS {}NULL", self.one(&["", "NOT "])),
            8 => {
                let inner = match self.random.random_bool(0.5) {
                    true => format!("{}.b", self.alias),
                    false => format!("({})", self.condition(0)),
                };
                let test = self.one(&["TRUE", "FALSE", "UNKNOWN"]);
                format!("{inner} IS {}{test}", self.one(&["", "NOT "]))
            }
            9 => self.pattern(),
            10 | 11 => {
                let (left, _) = self.number();
                let (right, _) = self.number();
                format!("{left} {operator} {right}")
            }
            12 => {
                let (left, _) = self.number();
                let column = Column::of(self.random, Kind::Integer);
                format!("{left} {operator} {}", self.literal(column))
            }
            13 => self.times(operator),
            14 => self.by_value(column, &name),
            // Numerics are compared in conditions of their own, which plans of joins by time have not.
            22 => format!("{} {operator} {}", self.decimal(1), self.decimal(1)),
            15 => format!(
                "{name} IS {}DISTINCT FROM {}",
                self.one(&["", "NOT "]),
                self.constant(column)
            ),
            16 => format!("{0}.b{operator}(NOT {0}.b)", self.alias),
            17 => self
                .one(&["true", "NULL::bool", "random() >= 0", "1 = 1"])
                .to_owned(),
            18 => format!(
                "CASE WHEN {} THEN {} ELSE {name} IS NULL END",
                self.condition(0),
                self.condition(0)
            ),
            19 => self.subquery(),
            20 => format!("({name} {operator} {}) IS NULL", self.constant(column)),
            21 => format!("coalesce({}, false)", self.condition(0)),
            _ => format!("{0}.s {operator} {0}.v", self.alias),
        }
    }

    /// Returns a condition that PostgreSQL evaluates once for each value of a column.
    fn by_value(&mut self, column: Column, name: &str) -> String {
        let operator = self.one(&["=", "<>", "<", ">="]);
        let of_u = format!("SELECT x.{} FROM u x", column.name);
        match self.random.random_range(0..9) {
            0 => format!("hashtext({name}::text) % 3 = 1"),
            1 => format!("coalesce(length({name}::text), 4) {operator} 4"),
            2 => format!(
                "CASE WHEN {name} {operator} {} THEN NULL ELSE {name} IS NOT NULL END",
                self.constant(column)
            ),
            3 => format!(
                "greatest({name}, {}) {operator} {name}",
                self.literal(column)
            ),
            4 => format!("({name} IN ({of_u})) IS {}TRUE", self.one(&["", "NOT "])),
            5 => format!("{name} NOT IN ({of_u})"),
            6 => format!(
                "{name} NOT IN ({of_u} WHERE x.id % 2 = 0 AND x.{} IS NOT NULL)",
                column.name
            ),
            7 => format!(
                "({name} {operator} {} OR {name} IN ({of_u}))",
                self.literal(column)
            ),
            _ => format!(
                "nullif({name}, {}) IS DISTINCT FROM {}",
                self.constant(column),
                self.constant(column)
            ),
        }
    }

    fn range(&mut self, column: Column, name: &str) -> String {
        let (low, high) = (self.literal(column), self.literal(column));
        let not = self.one(&["", "", "NOT "]);
        let symmetric = self.one(&["", "", "SYMMETRIC "]);
        format!("{name} {not}BETWEEN {symmetric}{low} AND {high}")
    }

    fn list(&mut self, column: Column, name: &str) -> String {
        let count = self.random.random_range(1..6);
        let items: Vec<String> = (0..count).map(|_| self.constant(column)).collect();
        let (items, base) = (items.join(", "), column.base());
        match self.random.random_range(0..12) {
            0..=2 => format!("{name} IN ({items})"),
            3..=4 => format!("{name} NOT IN ({items})"),
            5 => format!("{name} = ANY (ARRAY[{items}]::{base}[])"),
            6 => format!("{name} <> ALL (ARRAY[{items}]::{base}[])"),
            _ => {
                let array = self.one(&["'{}'", "'{}'", "'{NULL}'", "NULL"]);
                let operator = self.one(&["= ANY", "<> ALL", "<> ALL", "< ALL"]);
                format!("{name} {operator} ({array}::{base}[])")
            }
        }
    }

    fn pattern(&mut self) -> String {
        let column = Column::of(self.random, Kind::Text);
        let name = self.name(column);
        let operator = self.one(&["LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE"]);
        let pattern = self.one(&[
            "s1%",
            "%1",
            "%a%",
            "_",
            "",
            "label%",
            "b\\%",
            "%",
            "A%",
            "w_2%",
            "back\\\\%",
            "%L%",
            "%Ä%",
            "%e_%",
            "%%",
        ]);
        let first = if self.plain { 3 } else { 0 };
        match self.random.random_range(first..6) {
            0 => format!("length({name}) > 2"),
            1 => format!("{name} || 'x' > 'ax'"),
            2 => format!("{name} ~ '^[sv]1'"),
            _ => format!("{name} {operator} '{pattern}'"),
        }
    }

    fn times(&mut self, operator: &str) -> String {
        let a = self.alias;
        let any = if self.plain { 2 } else { 9 };
        match self.random.random_range(0..any) {
            2 => format!("{a}.tz {operator} {a}.ts"),
            3 => format!("{a}.tz {operator} timestamp '2026-03-29 02:30'"),
            0 => format!("{a}.tz BETWEEN '2026-03-28T22:00:00Z' AND '2026-03-29T03:00:00.5Z'"),
            1 => format!("{a}.tz > now() - interval '100 years'"),
            4 => format!("{a}.ts >= '2026-03-29'::date"),
            5 => format!("{a}.d {operator} {a}.ts"),
            6 => format!("extract(hour FROM {a}.tz) = 2"),
            7 => format!("date_trunc('day', {a}.tz) {operator} '2026-03-29'"),
            _ => format!("{a}.d + 3 {operator} '2026-02-01'"),
        }
    }

    fn subquery(&mut self) -> String {
        let a = self.alias;
        match self.random.random_range(0..5) {
            0 => format!("{a}.i4 IN (SELECT i4 FROM u x)"),
            1 => format!("{a}.i4 NOT IN (SELECT i4 FROM u x WHERE i4 IS NOT NULL)"),
            2 => format!("EXISTS (SELECT 1 FROM u x WHERE x.id = {a}.i2)"),
            3 => format!("{a}.i4 <= (SELECT max(x.i4) FROM u x)"),
            _ => format!("{a}.s = (SELECT min(x.s) FROM u x)"),
        }
    }
}
