//! Values of columns that were added to tables with rows, for restored rows that lack these
//! columns.
//!
//! An image or an entry from before a column was added lacks the column, and the table's definition
//! contains the value only until the table is rewritten. While rows are restored, the column
//! therefore has this value as its default, which `lanes.restore_segment` and `lanes.append` use
//! for rows without the column. The column's own default is set afterwards.

use std::collections::{BTreeMap, HashMap};

use super::entry_rows::Type;
use super::plan::TablePlan;
use super::run::Restore;
use crate::deliver::describe::identifier;
use crate::objects::model::record::AddedColumn;

/// The added columns of one table, by position from 1 on.
pub type Added = BTreeMap<u16, AddedColumn>;

impl AddedColumn {
    /// Returns the value as an SQL literal of the type that the column had then.
    pub(super) fn literal(&self) -> String {
        let value = self.value.replace('\\', "\\\\").replace('\'', "''");
        format!("E'{value}'::{}", self.sql_type)
    }

    /// Returns the default of a column with this type in a table for rows of an image. The
    /// statement that creates the table cannot fail because of it, because every type can be cast
    /// by way of text.
    pub(super) fn default_of(&self, sql_type: &str) -> String {
        format!(" DEFAULT {}::text::{sql_type}", self.literal())
    }
}

impl TablePlan {
    /// Returns the added columns that still exist, by their current names.
    pub(super) fn added(&self) -> impl Iterator<Item = (&str, &AddedColumn)> {
        self.added.iter().filter_map(|(place, column)| {
            let index = usize::from(*place).checked_sub(1)?;
            let name = self.definition.columns.get(index)?.as_deref()?;
            Some((name, column))
        })
    }
}

impl Restore<'_> {
    /// Sets the defaults before a table's rows are restored. A value that cannot be cast to the
    /// current type is omitted, with a message.
    pub(super) async fn set_added_defaults(
        &self,
        table: &TablePlan,
        types: &HashMap<String, Type>,
    ) -> Result<(), String> {
        for (name, column) in table.added() {
            let Some(now) = types.get(name) else {
                continue;
            };
            let (column, name) = (column.literal(), identifier(name));
            let default = format!("ALTER COLUMN {name} SET DEFAULT {column}::{}", now.sql);
            self.alter(table, &default).await?;
        }
        Ok(())
    }

    /// Removes the defaults after the rows are restored.
    pub(super) async fn drop_added_defaults(&self, table: &TablePlan) -> Result<(), String> {
        for (name, _) in table.added() {
            let default = format!("ALTER COLUMN {} DROP DEFAULT", identifier(name));
            self.alter(table, &default).await?;
        }
        Ok(())
    }

    async fn alter(&self, table: &TablePlan, change: &str) -> Result<(), String> {
        let table = &table.definition.table;
        self.try_to(table, &format!("ALTER TABLE {table} {change}"))
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_literal_whatever_it_holds() {
        let column = AddedColumn {
            sql_type: "character varying(9)".to_owned(),
            value: r"a'b\c".to_owned(),
        };
        let literal = r"E'a''b\\c'::character varying(9)";
        assert_eq!(column.literal(), literal);
        assert_eq!(
            column.default_of("text"),
            format!(" DEFAULT {literal}::text::text")
        );
    }
}
