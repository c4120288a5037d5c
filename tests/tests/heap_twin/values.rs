//! Column types and their literals.

use lanes_support::seed::Random;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// A column type of the generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    /// The name as `format_type` prints it.
    pub name: &'static str,
    /// Whether the type has `+`, `sum`, and an order.
    pub number: bool,
    /// Whether the type has `<`.
    pub ordered: bool,
    /// Literals without quotes, special values first.
    literals: &'static [&'static str],
    /// An expression of the row number `g`, for set-wise inserts.
    series: &'static str,
}

/// Every type of a column. Floats are multiples of 1/4, so that their sums do not depend on the
/// order of addition.
pub const TYPES: &[Type] = &[
    ty("boolean", false, true, &["true", "false"], "g % 3 = 0"),
    ty(
        "smallint",
        true,
        true,
        &["0", "-1", "32767", "-32768", "7"],
        "(g % 100)::int2",
    ),
    ty(
        "integer",
        true,
        true,
        &["0", "-1", "2147483647", "-2147483648", "42", "1000"],
        "g * 7 % 1000",
    ),
    ty(
        "bigint",
        true,
        true,
        &[
            "0",
            "9223372036854775807",
            "-9223372036854775808",
            "-5",
            "123456789012",
        ],
        "g::int8 * 1000000007",
    ),
    ty(
        "real",
        true,
        true,
        &["NaN", "-0", "Infinity", "-Infinity", "0", "1.5", "-2.25"],
        "g / 4.0::float4",
    ),
    ty(
        "double precision",
        true,
        true,
        &["NaN", "-0", "Infinity", "-Infinity", "0", "3.75", "-1000.5"],
        "g / 4.0::float8",
    ),
    ty(
        "numeric",
        true,
        true,
        &[
            "NaN",
            "0",
            "1.5",
            "-99999999999999999999.25",
            "0.000001",
            "Infinity",
        ],
        "g::numeric / 8",
    ),
    ty(
        "text",
        false,
        true,
        &[
            "",
            "a",
            "B",
            "naïve 日本",
            " ",
            "tab\tnew\nline",
            "the same words again and again",
            "v1",
            "v2",
        ],
        "'v' || g % 20",
    ),
    ty(
        "character varying(40)",
        false,
        true,
        &[
            "",
            "short",
            "é",
            "exactly forty characters long, no more xx",
        ],
        "'c' || g",
    ),
    ty(
        "character(5)",
        false,
        true,
        &["", "a", "abcde", "é"],
        "'f' || g % 9",
    ),
    ty(
        "bytea",
        false,
        true,
        &["", "\\x00", "\\xff00ff", "\\x0102030405060708"],
        "decode(md5(g::text), 'hex')",
    ),
    ty(
        "timestamp with time zone",
        false,
        true,
        &[
            "infinity",
            "-infinity",
            "2026-01-01 00:00:00+00",
            "1999-12-31 23:59:59.999999+00",
        ],
        "timestamptz '2026-01-01 00:00+00' + g * interval '1 min'",
    ),
    ty(
        "timestamp without time zone",
        false,
        true,
        &["infinity", "-infinity", "2026-01-01", "0044-03-15 BC"],
        "timestamp '2026-01-01' + g * interval '1 hour'",
    ),
    ty(
        "date",
        false,
        true,
        &["infinity", "-infinity", "2026-02-28", "1970-01-01"],
        "date '2026-01-01' + g % 400",
    ),
    ty(
        "time without time zone",
        false,
        true,
        &["00:00:00", "24:00:00", "12:34:56.789"],
        "time '00:00' + g * interval '1 s'",
    ),
    ty(
        "interval",
        false,
        true,
        &["0", "1 day", "-1 year 2 mons", "00:00:00.000001"],
        "g * interval '90 s'",
    ),
    ty(
        "uuid",
        false,
        true,
        &[
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ],
        "md5(g::text)::uuid",
    ),
    ty(
        "jsonb",
        false,
        true,
        &["null", "{}", "[1, \"two\", null]", "{\"a\": {\"b\": 1.50}}"],
        "jsonb_build_object('g', g % 5, 'list', ARRAY[g, NULL])",
    ),
    ty(
        "integer[]",
        false,
        true,
        &["{}", "{1,NULL,3}", "{{1,2},{3,4}}"],
        "ARRAY[g, g % 3, NULL]",
    ),
    ty(
        "public.mood",
        false,
        true,
        &["sad", "ok", "happy"],
        "(ARRAY['sad', 'ok', 'happy'])[1 + g % 3]::public.mood",
    ),
    ty(
        "public.pair",
        false,
        true,
        &["(1,one)", "(,)", "(2,)"],
        "ROW(g, 'p' || g)::public.pair",
    ),
];

const fn ty(
    name: &'static str,
    number: bool,
    ordered: bool,
    literals: &'static [&'static str],
    series: &'static str,
) -> Type {
    Type {
        name,
        number,
        ordered,
        literals,
        series,
    }
}

impl Type {
    /// Returns the type of a name, or `None` for a name that DDL created otherwise.
    pub fn named(name: &str) -> Option<Type> {
        TYPES.iter().copied().find(|ty| ty.name == name)
    }

    /// Returns any type.
    pub fn any(random: &mut Random) -> Type {
        *TYPES.choose(random).unwrap()
    }

    /// Whether equal values may have different representations (-0 and 0, 1.0 and 1.00), so that
    /// either may represent a group.
    pub fn has_twins(self) -> bool {
        matches!(
            self.name,
            "real" | "double precision" | "numeric" | "interval" | "jsonb"
        )
    }

    /// Returns a literal with its cast. One in seven is NULL.
    pub fn literal(self, random: &mut Random) -> String {
        if random.random_ratio(1, 7) {
            return format!("NULL::{}", self.name);
        }
        self.literal_not_null(random)
    }

    /// Returns a literal with its cast.
    pub fn literal_not_null(self, random: &mut Random) -> String {
        if self.name == "text" && random.random_ratio(1, 40) {
            let bytes = *[126, 127, 2000, 9000, 70000].choose(random).unwrap();
            return format!("repeat('long ', {})", bytes / 5);
        }
        let text = if random.random_ratio(1, 3) {
            self.common(random)
        } else {
            (*self.literals.choose(random).unwrap()).to_owned()
        };
        format!("'{}'::{}", text.replace('\'', "''"), self.name)
    }

    /// Returns an ordinary value that recurs often.
    fn common(self, random: &mut Random) -> String {
        let number = random.random_range(0..20);
        match self.name {
            "smallint" | "integer" | "bigint" | "numeric" => number.to_string(),
            "real" | "double precision" => format!("{}", f64::from(number) / 4.0),
            "text" | "character varying(40)" => format!("v{number}"),
            "date" => format!("2026-01-{:02}", number + 1),
            _ => (*self.literals.choose(random).unwrap()).to_owned(),
        }
    }

    /// Returns the literal as a field of COPY's text format.
    pub fn copy_field(self, random: &mut Random) -> String {
        if random.random_ratio(1, 7) {
            return "\\N".to_owned();
        }
        self.literals
            .choose(random)
            .unwrap()
            .replace('\\', "\\\\")
            .replace('\t', "\\t")
            .replace('\n', "\\n")
    }

    /// Returns an expression of the row number `g` that is NULL for some rows.
    pub fn series(self, random: &mut Random) -> String {
        match random.random_range(0..4) {
            0 => format!(
                "CASE WHEN g % {} <> 0 THEN {} END",
                random.random_range(2..9),
                self.series
            ),
            1 => self.literal(random),
            _ => self.series.to_owned(),
        }
    }
}
