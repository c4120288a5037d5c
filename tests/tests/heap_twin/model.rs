//! The generator's knowledge of the tables. It is read from the catalog before each statement, so
//! that rollbacks need no special treatment.

use super::values::Type;
use lanes_support::seed::Random;
use postgres::{Client, SimpleQueryMessage};
use rand::seq::IndexedRandom;

/// The tables of a script. `temp` is a temporary table of the first session.
pub const TABLES: [&str; 3] = ["a", "b", "unlogged"];

/// The current state of a table. Every table has `id int`, which no DDL changes.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: String,
    /// The columns other than `id`.
    pub columns: Vec<(String, Type)>,
}

impl Table {
    /// Returns any column other than `id`.
    pub fn column(&self, random: &mut Random) -> Option<&(String, Type)> {
        self.columns.choose(random)
    }

    /// Returns any column with a property.
    pub fn column_where(
        &self,
        random: &mut Random,
        wanted: impl Fn(&Type) -> bool,
    ) -> Option<(String, Type)> {
        let fitting: Vec<_> = self
            .columns
            .iter()
            .filter(|column| wanted(&column.1))
            .collect();
        fitting.choose(random).map(|column| (*column).clone())
    }
}

/// Reads the tables in this session's schema. Fails in an aborted transaction.
pub fn read(client: &mut Client) -> Result<Vec<Table>, postgres::Error> {
    let messages = client.simple_query(
        "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) \
         FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
         WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' \
         ORDER BY c.relname, a.attnum",
    )?;
    let mut tables: Vec<Table> = Vec::new();
    for message in messages {
        let SimpleQueryMessage::Row(row) = message else {
            continue;
        };
        let (table, column, ty) = (
            row.get(0).unwrap_or_default(),
            row.get(1).unwrap_or_default(),
            row.get(2).unwrap_or_default(),
        );
        if tables.last().is_none_or(|last| last.name != table) {
            tables.push(Table {
                name: table.to_owned(),
                columns: Vec::new(),
            });
        }
        // `format_type` omits a schema that is on the search path.
        let qualified = format!("public.{ty}");
        if let Some(ty) = Type::named(ty).or_else(|| Type::named(&qualified))
            && let Some(last) = tables.last_mut()
            && column != "id"
        {
            last.columns.push((column.to_owned(), ty));
        }
    }
    Ok(tables)
}
