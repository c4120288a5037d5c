//! The meaning of the storage parameters.
//!
//! | name | value | meaning |
//! |---|---|---|
//! | `order_by` | column names | by which sealed rows are sorted, the first counts most |
//! | `dedup` | bool | of rows with equal `order_by` columns, none of them NULL, sealing keeps the last |
//! | `hot` | interval | sealed rows whose newest time is older go to object storage, part by part |
//! | `retain` | interval | sealed rows whose newest time is older are dropped, part by part |
//! | `arena_budget` | bytes, with a unit | what the table's rows may take of the arena; 0: as much as there is |

use std::ffi::CStr;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::time_column;
use crate::error;
use crate::pg::definitions::Definition;
use crate::pg::table::OpenedTable;
use crate::pg::table_catalog::column_index;
use crate::pg::type_io;

pub const ORDER_BY: &CStr = c"order_by";
pub const DEDUP: &CStr = c"dedup";
pub const RETAIN: &CStr = c"retain";
pub const HOT: &CStr = c"hot";
pub const ARENA_BUDGET: &CStr = c"arena_budget";
/// The names of all parameters.
pub const NAMES: [&CStr; 5] = [ORDER_BY, DEDUP, RETAIN, HOT, ARENA_BUDGET];

const MICROSECONDS_A_DAY: i64 = 86_400_000_000;

/// A table's parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    order_by: Vec<String>,
    pub dedup: bool,
    /// Microseconds.
    pub retain: Option<i64>,
    /// Microseconds.
    pub hot: Option<i64>,
    /// Bytes; 0: no bound.
    pub arena_budget: Option<u64>,
}

impl Settings {
    /// The settings of some parameters, of which later ones take precedence. A wrong value is an ERROR.
    pub fn read<'a>(parameters: impl Iterator<Item = Definition<'a>>) -> Settings {
        let mut settings = Settings::default();
        for parameter in parameters {
            let name = parameter.name();
            if name == ORDER_BY {
                settings.order_by = order_by_columns(&parameter.text());
            } else if name == DEDUP {
                settings.dedup = parameter.boolean();
            } else if name == RETAIN {
                settings.retain = Some(age(&parameter.text(), "retain = '30 days'"));
            } else if name == HOT {
                settings.hot = Some(age(&parameter.text(), "hot = '6 hours'"));
            } else if name == ARENA_BUDGET {
                settings.arena_budget = Some(size(&parameter.text()));
            }
        }
        settings
    }

    /// Checks them against one another and the table's columns, which this transaction has locked.
    pub fn check(&self, table: pg_sys::Oid) {
        // No errors: a dump of a table that has them shall be restored.
        if self.dedup && self.order_by.is_empty() {
            error::warn(
                "dedup means nothing without order_by",
                "Of rows with equal order_by columns dedup keeps the last: set order_by = 'key, ts' too, or reset both.",
            );
        }
        if self.dedup && has_indexes(table) {
            refuse_index_with_dedup();
        }
        for (name, value) in [("retain", self.retain), ("hot", self.hot)] {
            if value.is_some() && !has_time(table) {
                error::warn(
                    format!("{name} means nothing without a time"),
                    "Rows are as old as their column of type timestamptz or timestamp says, and the table has none.",
                );
            }
        }
        for (place, name) in self.order_by.iter().enumerate() {
            if column_index(table, name).is_none() {
                error::raise(
                    PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                    format!("column \"{name}\" named in order_by does not exist"),
                    "order_by takes the table's column names, separated by commas: order_by = 'series, ts'.",
                );
            }
            if self.order_by[..place].contains(name) {
                error::raise(
                    PgSqlErrorCode::ERRCODE_DUPLICATE_COLUMN,
                    format!("column \"{name}\" appears twice in order_by"),
                    "Name each column once.",
                );
            }
        }
    }

    /// The value of `order_by` after a column has got another name; none if it does not name that column.
    pub fn order_by_renamed(&self, from: &str, to: &str) -> Option<String> {
        if !self.order_by.iter().any(|name| name == from) {
            return None;
        }
        let names = self.order_by.iter().map(String::as_str);
        let names = names.map(|name| quoted(if name == from { to } else { name }));
        Some(names.collect::<Vec<_>>().join(", "))
    }

    /// The columns of `order_by`, as indexes into the table's columns; `None`: one of them is gone.
    pub fn keys(&self, table: pg_sys::Oid) -> Option<Vec<usize>> {
        self.order_by
            .iter()
            .map(|name| column_index(table, name))
            .collect()
    }
}

/// Raises the ERROR that a table has both the parameter `dedup` and an index. Rows that dedup takes out are seen by
/// older snapshots only, and index entries do not find them.
pub fn refuse_index_with_dedup() -> ! {
    error::refuse(
        "a lanes table with the parameter dedup does not support indexes",
        "Drop the parameter: ALTER TABLE … RESET (dedup). A unique index with INSERT … ON CONFLICT also keeps one row a \
         key.",
    )
}

/// Whether a table, which this transaction has locked, has an index.
fn has_indexes(table: pg_sys::Oid) -> bool {
    OpenedTable::open(table, pg_sys::NoLock).get().has_indexes()
}

/// Whether a table, which this transaction has locked, has a column from which the age of a row follows.
fn has_time(table: pg_sys::Oid) -> bool {
    let opened = OpenedTable::open(table, pg_sys::NoLock);
    time_column::of(opened.get()).is_some()
}

/// An interval in microseconds, as a positive age; a month has 30 days.
fn age(value: &str, example: &str) -> i64 {
    let micros = type_io::parse_interval(value).and_then(|interval| {
        let days = i64::from(interval.months()) * 30 + i64::from(interval.days());
        days.checked_mul(MICROSECONDS_A_DAY)?
            .checked_add(interval.micros())
    });
    match micros.filter(|&micros| micros > 0) {
        Some(micros) => micros,
        None => error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("\"{value}\" is no age that rows may reach"),
            format!("Give a positive interval: {example}."),
        ),
    }
}

/// A number of bytes, with a unit or without.
fn size(value: &str) -> u64 {
    match u64::try_from(type_io::parse_size(value)) {
        Ok(bytes) => bytes,
        Err(_) => error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("\"{value}\" is no size that memory may have"),
            "Give a size: arena_budget = '256MB'; 0 for no bound but the arena's.",
        ),
    }
}

/// A column name in the form that `order_by` takes: in quotes, unless it has the same meaning
/// without.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// The column names of an `order_by` value, folded and unquoted as SQL identifiers are.
fn order_by_columns(value: &str) -> Vec<String> {
    let mut is_quoted = false;
    value
        .split(|c| {
            is_quoted ^= c == '"';
            c == ',' && !is_quoted
        })
        .map(|part| {
            let part = part.trim();
            match part
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'))
            {
                Some(quoted) => quoted.replace("\"\"", "\""),
                None => part.to_lowercase(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Settings, order_by_columns};

    #[test]
    fn order_by_follows_identifier_rules() {
        assert_eq!(order_by_columns("Series , ts"), ["series", "ts"]);
        assert_eq!(order_by_columns("\"Ts\"\"x\",a"), ["Ts\"x", "a"]);
        assert_eq!(order_by_columns("a, \"b, \"\"c\""), ["a", "b, \"c"]);
    }

    #[test]
    fn order_by_follows_a_renamed_column() {
        let settings = Settings {
            order_by: order_by_columns("a, \"B, c\", d"),
            ..Settings::default()
        };
        let renamed = |from, to| settings.order_by_renamed(from, to);
        assert_eq!(renamed("x", "y"), None);
        assert_eq!(renamed("a", "x_1").unwrap(), "x_1, \"B, c\", d");
        let odd = renamed("d", "D \"d\", d").unwrap();
        assert_eq!(order_by_columns(&odd), ["a", "B, c", "D \"d\", d"]);
    }
}
