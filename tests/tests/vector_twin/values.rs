//! Columns of the tables, and literals that occur among their values.

use lanes_support::seed::Random;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// The kind of a column for the generator of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Integer,
    Float,
    Numeric,
    Text,
    Bool,
    Time,
    Uuid,
}

/// A column, which is the same in every table except for its values.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    /// The type as DDL spells it.
    pub ty: &'static str,
    pub kind: Kind,
    /// The styles of its values: expressions of the row number `g` and of a non-negative random
    /// number `h`.
    pub styles: &'static [&'static str],
    /// Literals of special values, without quotes.
    pub literals: &'static [&'static str],
}

/// Every column but `id`, the row number. Multiples of 1/4 add up exactly; `f8` also has numbers
/// that do not.
pub const COLUMNS: &[Column] = &[
    Column {
        name: "i2",
        ty: "smallint",
        kind: Kind::Integer,
        styles: &[
            "(h % 7)::int2",
            "(h % 30000 - 15000)::int2",
            "(ARRAY[0, -1, 32767, -32768, 5])[1 + h % 5]::int2",
        ],
        literals: &["0", "-1", "32767", "-32768", "5", "3"],
    },
    Column {
        name: "i4",
        ty: "integer",
        kind: Kind::Integer,
        styles: &[
            "(h % 20)::int4",
            "(h % 200000 - 100000)::int4",
            "g::int4",
            "(g / 1000)::int4",
            "(ARRAY[0, -1, 2147483647, -2147483648, 12])[1 + h % 5]::int4",
        ],
        literals: &["0", "-1", "2147483647", "-2147483648", "12", "1000", "4096"],
    },
    Column {
        name: "i8",
        ty: "bigint",
        kind: Kind::Integer,
        styles: &[
            "h % 11",
            "h - 1000000000",
            "g::int8 * 1000000007",
            "(ARRAY[0, -1, 9223372036854775807, -9223372036854775808, 77])[1 + h % 5]",
        ],
        literals: &[
            "0",
            "7",
            "9223372036854775807",
            "-9223372036854775808",
            "77",
            "100000000700",
        ],
    },
    Column {
        name: "dom",
        ty: "public.small_number",
        kind: Kind::Integer,
        styles: &["(h % 9)::int4"],
        literals: &["0", "4", "8"],
    },
    Column {
        name: "f4",
        ty: "real",
        kind: Kind::Float,
        styles: &[
            "(h % 100 / 4.0)::float4",
            "(ARRAY['NaN', '-0', '0', 'Infinity', '-Infinity', '1.5']::float4[])[1 + h % 6]",
            "(ARRAY['-0', '0', '2.25', '-2.25']::float4[])[1 + h % 4]",
        ],
        literals: &["0", "-0", "NaN", "Infinity", "-Infinity", "1.5", "20.25"],
    },
    Column {
        name: "f8",
        ty: "double precision",
        kind: Kind::Float,
        styles: &[
            "h % 1000000 / 7.0::float8",
            "(h % 8000 / 4.0 - 1000)::float8",
            "(ARRAY['NaN', '-0', '0', 'Infinity', '-Infinity', '-7.5', '1e-300']::float8[])[1 + h % 7]",
            "(ARRAY['-0', '0', '1', '-1']::float8[])[1 + h % 4]",
            "g / 8.0::float8",
        ],
        literals: &[
            "0",
            "-0",
            "NaN",
            "Infinity",
            "-Infinity",
            "-7.5",
            "500.25",
            "1",
            "100000",
        ],
    },
    Column {
        name: "n",
        ty: "numeric",
        kind: Kind::Numeric,
        styles: &[
            "(h % 50)::numeric / 8",
            "(ARRAY['NaN', 'Infinity', '0', '12.50']::numeric[])[1 + h % 4]",
            "(h % 1000000 / 100.0 - 5000)::numeric(12, 2)",
            "(ARRAY['7', '-3.5', '0.25', '12.50', '-0.001']::numeric[])[1 + h % 5]",
            "(ARRAY['1e19', '-1e-19', '99999999999999999.99', '7', '-2.5']::numeric[])[1 + h % 5]",
        ],
        literals: &["0", "1.125", "NaN", "12.5", "-3.50", "99999999999999999.99"],
    },
    Column {
        name: "b",
        ty: "boolean",
        kind: Kind::Bool,
        styles: &["h % 3 = 0", "true", "h % 100 <> 0"],
        literals: &["true", "false"],
    },
    Column {
        name: "s",
        ty: "text",
        kind: Kind::Text,
        styles: &[
            "'s' || h % 12",
            "(ARRAY['', 'a', 'A', 'ä', 'b%', 'back\\slash', 'abc'])[1 + h % 7]",
            "''",
        ],
        literals: &["", "s1", "s11", "a", "A", "b%", "abc", "none"],
    },
    Column {
        name: "w",
        ty: "text",
        kind: Kind::Text,
        styles: &[
            "'w' || h % 100000",
            "repeat(chr((65 + h % 26)::int), (h % 400)::int)",
            "CASE WHEN h % 500 = 0 THEN repeat('long ', 3000) ELSE 'short' || h % 1000 END",
        ],
        literals: &["w1", "AAA", "short7", "", "ZZZZ", "w5"],
    },
    Column {
        name: "v",
        ty: "varchar(20)",
        kind: Kind::Text,
        styles: &["'v' || h % 5", "left(md5(h::text), 20)"],
        literals: &["v0", "v4", "", "a"],
    },
    Column {
        name: "tdom",
        ty: "public.label",
        kind: Kind::Text,
        styles: &["'label ' || h % 4"],
        literals: &["label 0", "label 3", "label"],
    },
    Column {
        name: "d",
        ty: "date",
        kind: Kind::Time,
        styles: &[
            "date '2026-01-01' + (h % 400)::int",
            "date '2026-01-01' + (g / 500)::int",
            "(ARRAY['infinity', '-infinity', '2026-03-29', '0044-03-15 BC']::date[])[1 + h % 4]",
        ],
        literals: &[
            "2026-01-02",
            "infinity",
            "-infinity",
            "2026-03-29",
            "2027-01-01",
        ],
    },
    Column {
        name: "ts",
        ty: "timestamp",
        kind: Kind::Time,
        styles: &[
            "timestamp '2026-03-28 20:00' + g * interval '13 s'",
            "timestamp '2026-10-24' + h % 172800 * interval '1.000001 s'",
            "(ARRAY['infinity', '-infinity', '2026-03-29 02:30', '1960-02-29 12:34:56.789']::timestamp[])[1 + h % 4]",
        ],
        literals: &[
            "2026-03-29 02:30",
            "2026-10-25",
            "infinity",
            "-infinity",
            "2026-03-28 21:00:00.5",
        ],
    },
    Column {
        name: "tz",
        ty: "timestamptz",
        kind: Kind::Time,
        styles: &[
            "timestamptz '2026-03-28 20:00Z' + g * interval '13 s'",
            "timestamptz '2026-10-24 22:00Z' + h % 172800 * interval '1.000001 s'",
            "timestamptz '2025-12-30 22:00Z' + h % 3000 * interval '7 h'",
            "(ARRAY['infinity', '-infinity', '2026-03-29 01:30Z', '1890-02-28 12:34:56.789Z']::timestamptz[])[1 + h % 4]",
        ],
        literals: &[
            "2026-03-29T01:00:00Z",
            "2026-10-25 02:30",
            "infinity",
            "-infinity",
            "2026-03-28T21:00:00.5Z",
        ],
    },
    // No two rows have the same time, so aggregates in the order of time have one answer.
    Column {
        name: "uq",
        ty: "timestamptz",
        kind: Kind::Time,
        styles: &[
            "timestamptz '2026-03-28 20:00Z' + g * interval '13 s'",
            "timestamptz '2026-03-28 20:00Z' + (g * 7919 % 1000003) * interval '1 s'",
        ],
        literals: &["2026-03-28T21:00:00Z", "infinity"],
    },
    Column {
        name: "uu",
        ty: "uuid",
        kind: Kind::Uuid,
        styles: &[
            "('12345678-1234-1234-0000-00000000000' || h % 10)::uuid",
            "(lpad(to_hex(h % 40 * 6), 8, '0') || '-0000-0000-0000-000000000000')::uuid",
            "md5((h % 1000)::text)::uuid",
            "(lpad(to_hex(g / 700), 8, '0') || '-0000-0000-0000-000000000007')::uuid",
        ],
        literals: &[
            "12345678-1234-1234-0000-000000000000",
            "12345678-1234-1234-0000-000000000007",
            "12345678-1234-1233-ffff-ffffffffffff",
            "00000006-0000-0000-0000-000000000000",
            "0000000c-0000-0000-0000-000000000007",
            "000000c0-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "00000000-0000-0000-0000-000000000000",
        ],
    },
    Column {
        name: "tod",
        ty: "time",
        kind: Kind::Time,
        styles: &[
            "time '00:00' + h % 86400 * interval '1 s'",
            "(ARRAY['00:00', '24:00', '12:00']::time[])[1 + h % 3]",
        ],
        literals: &["00:00", "24:00", "12:00", "23:59:59"],
    },
];

impl Column {
    /// Returns any column.
    pub fn any(random: &mut Random) -> Column {
        *COLUMNS.choose(random).unwrap()
    }

    /// Whether rows that were there before the column may have one value, its default.
    pub fn may_be_late(self) -> bool {
        self.name != "uq"
    }

    /// Returns any column of a kind.
    pub fn of(random: &mut Random, kind: Kind) -> Column {
        let columns: Vec<&Column> = COLUMNS.iter().filter(|c| c.kind == kind).collect();
        **columns.choose(random).unwrap()
    }

    /// Returns the type that literals are cast to.
    pub fn base(self) -> &'static str {
        match self.ty {
            "public.small_number" => "integer",
            "public.label" | "varchar(20)" => "text",
            other => other,
        }
    }

    /// Returns a literal's text.
    pub fn literal(self, random: &mut Random) -> String {
        if random.random_ratio(1, 3) {
            let number = random.random_range(0..40);
            match self.name {
                "i2" | "i4" | "i8" | "dom" => return number.to_string(),
                "f4" | "f8" | "n" => return format!("{}", f64::from(number) / 4.0),
                "s" => return format!("s{number}"),
                "d" => return format!("2026-01-{:02}", number % 28 + 1),
                "tz" => return format!("2026-03-29 {:02}:15Z", number % 24),
                "ts" => return format!("2026-03-29 {:02}:15", number % 24),
                _ => {}
            }
        }
        (*self.literals.choose(random).unwrap()).to_owned()
    }
}
